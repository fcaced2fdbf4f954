"""How much a picture looks like each of some names, with models that put pictures and words into one space.

Sources: CLIP (Radford et al. 2021, arXiv 2103.00020); BioCLIP, the same taught on the tree of life (Stevens et al.
2024, arXiv 2311.18803).
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

_OPEN_CLIP_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors")
"""Those that the library takes before any other: with one of them there, it looks at no pickle."""
KINDS = ("open_clip", "clip")
_TEMPLATES = ("a photo of {}.", "a close-up photo of {}.", "{} in the field.")


def likeness(pixels: NDArray[np.uint8], names: Sequence[str], weights: Weights) -> NDArray[np.float64]:
    """A share (n,) for each name, together 1: softmax over the cosines times the scale that the model has learnt.

    Names are put into three sentences each, whose directions are averaged. Shares are among the names given alone: of
    a picture of something else, one of them is the likeliest all the same.

    Args:
        pixels: uint8 (rows, columns, 3).
        names: at least one.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    if weights.kind not in KINDS:
        raise wrong_kind(weights, "compare pictures with names", KINDS)
    of_picture, of_texts, scale = _loaded(weights)
    with torch.inference_mode():
        picture = _unit(of_picture(Image.fromarray(pixels)))
        sentences = [template.format(name) for name in names for template in _TEMPLATES]
        words = _unit(of_texts(sentences)).view(len(names), len(_TEMPLATES), -1)
        cosines = _unit(words.mean(dim=1)) @ picture[0]
        return torch.softmax(scale * cosines.double(), dim=0).numpy()


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> tuple[Callable[[Any], Any], Callable[[list[str]], Any], float]:
    """From a picture and from sentences to vectors (n, width), and the scale of their cosines."""
    try:
        return _of_open_clip(weights) if weights.kind == "open_clip" else _of_transformers(weights)
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error


def _of_open_clip(weights: Weights) -> tuple[Callable[[Any], Any], Callable[[list[str]], Any], float]:
    open_clip = library("open_clip")

    if not any((weights.folder / name).is_file() for name in _OPEN_CLIP_FILES):
        raise FileNotFoundError(f"none of {', '.join(_OPEN_CLIP_FILES)} is there")
    config = json.loads((weights.folder / "open_clip_config.json").read_text(encoding="utf-8"))
    if config["model_cfg"]["text_cfg"].get("hf_model_name"):
        raise ValueError("its words are read by another model of the hub, which would be fetched")
    place = f"local-dir:{weights.folder}"
    model, prepare = open_clip.create_model_from_pretrained(place)
    model.eval()
    tokens = open_clip.get_tokenizer(place)
    return (
        lambda image: model.encode_image(prepare(image)[None]),
        lambda sentences: model.encode_text(tokens(sentences)),
        float(model.logit_scale.detach().exp()),
    )


def _of_transformers(weights: Weights) -> tuple[Callable[[Any], Any], Callable[[list[str]], Any], float]:
    transformers = library("transformers")

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    prepare = transformers.CLIPImageProcessorPil.from_pretrained(weights.folder, local_files_only=True)
    tokens = transformers.AutoTokenizer.from_pretrained(weights.folder, **options)
    model = transformers.CLIPModel.from_pretrained(weights.folder, use_safetensors=True, **options)
    model = model.float().eval()

    def of_picture(image: Any) -> Any:
        return _vectors(model.get_image_features(**prepare(images=image, return_tensors="pt")))

    def of_texts(sentences: list[str]) -> Any:
        return _vectors(
            model.get_text_features(**tokens(sentences, padding=True, truncation=True, return_tensors="pt"))
        )

    return of_picture, of_texts, float(model.logit_scale.detach().exp())


def _vectors(output: Any) -> Any:
    return getattr(output, "pooler_output", output)
