"""Captions and similarity of pictures by large open models.

Sources: captions, Florence-2 (Xiao et al. 2024, arXiv 2311.06242); similarity, CLIP (Radford et al. 2021, arXiv
2103.00020) and BioCLIP, its version trained on the tree of life (Stevens et al. 2024, arXiv 2311.18803).

A model that cannot be loaded gives a ``ToolError``.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from reading import Box, Pixels, crop
from weights import LOCAL_ONLY, Weights, model_loader, on_device, torch_library

_TASK = "<DETAILED_CAPTION>"
_MAX_CAPTION_TOKENS = 256


def caption(pixels: Pixels, box: Box, weights: Weights) -> str:
    """Return a caption of the part ``box`` of a picture; decoding is greedy and so reproducible."""
    torch = torch_library()
    processor, model = _load_florence(weights)
    inputs = processor(text=_TASK, images=crop(pixels, box), return_tensors="pt")
    inputs = inputs.to(model.device)
    with torch.inference_mode():
        tokens = model.generate(
            input_ids=inputs["input_ids"],
            pixel_values=inputs["pixel_values"],
            max_new_tokens=_MAX_CAPTION_TOKENS,
            num_beams=1,
            do_sample=False,
        )
    return " ".join(processor.batch_decode(tokens, skip_special_tokens=True)[0].split())


@model_loader
def _load_florence(weights: Weights) -> tuple[Any, Any]:
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(weights.folder, **LOCAL_ONLY)
    model = transformers.Florence2ForConditionalGeneration.from_pretrained(
        weights.folder, use_safetensors=True, **LOCAL_ONLY
    )
    return processor, on_device(model)


_OPEN_CLIP_FILES = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "model.safetensors",
)
"""Weights that the library prefers to all others: if one exists, it does not open a pickle."""
_TEMPLATES = ("a photo of {}.", "a close-up photo of {}.", "{} in the field.")


def rank_names(
    pixels: Pixels, box: Box, names: Sequence[str], weights: Weights
) -> list[tuple[str, float]]:
    """Rank ``names`` by their similarity to the part ``box`` of a picture, best first, with shares that sum to 1.

    The shares are the softmax over the cosines times the learned scale of the model; each name is put into three
    sentences, whose directions are averaged. Even for a picture of something else, one of the names is the likeliest.
    """
    torch = torch_library()
    model, prepare, _ = _load_similarity_model(weights)
    with torch.inference_mode():
        pixel_values = prepare(crop(pixels, box))[None]
        picture = _unit(model.encode_image(pixel_values.to(model.logit_scale.device)))[0]
        cosines = _directions(tuple(names), weights) @ picture
        shares = torch.softmax(
            float(model.logit_scale.detach().exp()) * cosines.double(), dim=0
        ).tolist()
    return sorted(zip(names, shares, strict=True), key=lambda ranked: -ranked[1])


@lru_cache(maxsize=4)
def _directions(names: tuple[str, ...], weights: Weights) -> Any:
    """Return the directions of names, (names, width); they take far longer than a picture."""
    model, _, tokens = _load_similarity_model(weights)
    sentences = [template.format(name) for name in names for template in _TEMPLATES]
    directions = _unit(model.encode_text(tokens(sentences).to(model.logit_scale.device)))
    words = directions.view(len(names), len(_TEMPLATES), -1)
    return _unit(words.mean(dim=1))


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)


@model_loader
def _load_similarity_model(weights: Weights) -> tuple[Any, Any, Any]:
    """Return the model, its preparation of pictures and its tokenizer."""
    import open_clip

    if not any((weights.folder / name).is_file() for name in _OPEN_CLIP_FILES):
        raise FileNotFoundError(f"none of {', '.join(_OPEN_CLIP_FILES)} is there")
    config = json.loads((weights.folder / "open_clip_config.json").read_text(encoding="utf-8"))
    if config["model_cfg"]["text_cfg"].get("hf_model_name"):
        raise ValueError("its words are read by another model of the hub, which would be fetched")
    place = f"local-dir:{weights.folder}"
    model, prepare = open_clip.create_model_from_pretrained(place)
    return on_device(model), prepare, open_clip.get_tokenizer(place)
