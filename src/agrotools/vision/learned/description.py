"""Captions, transcription, similarity and generation of pictures by large open models.

Sources: captions, Florence-2 (Xiao et al. 2024, arXiv 2311.06242); answers, BLIP (Li et al. 2022, arXiv 2201.12086);
formulas, Nougat (Blecher et al. 2023, arXiv 2308.13418) and others of its architecture; printed or written lines, TrOCR
(Li et al. 2021, arXiv 2109.10282); similarity, CLIP (Radford et al. 2021, arXiv 2103.00020) and BioCLIP, its version
trained on the tree of life (Stevens et al. 2024, arXiv 2311.18803); generation and editing of pictures, pipelines of
diffusers, latent diffusion (Rombach et al. 2021, arXiv 2112.10752) and InstructPix2Pix (Brooks et al. 2022, arXiv
2211.09800).

A model of another kind, or one that cannot be loaded, gives a ``ToolError`` of the kind ``backend_unavailable``.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision import Box
from agrotools.vision.learned import FLAG, RankedNames, TextAnswer
from agrotools.vision.learned.weights import LOCAL_ONLY, Weights, library, model_loader, unloadable, wrong_kind
from agrotools.vision.reading import crop_pixels

if TYPE_CHECKING:
    from PIL.Image import Image


_TASK = "<DETAILED_CAPTION>"
_MAX_CAPTION_TOKENS = 256
_MAX_QUESTION_TOKENS, _MAX_ANSWER_TOKENS = 64, 64


def describe(pixels: NDArray[np.uint8], box: Box, question: str | None, weights: Weights) -> TextAnswer:
    """Return a caption of the part ``box`` of a picture, or an answer; decoding is greedy and so reproducible.

    The flag ``question_not_answered`` marks models that take no question, such as Florence-2.
    """
    from PIL import Image

    part = Image.fromarray(crop_pixels(pixels, box))
    if weights.kind == "blip":
        text = _by_blip(part, question or "what does the picture show?", weights)
    elif weights.kind == "florence2":
        text = _by_florence(part, weights)
    else:
        raise wrong_kind(weights, "write text", "florence2", "blip")
    note = f"description: said by {weights.name} ({weights.kind}), not measured"
    is_ignored = question is not None and weights.kind == "florence2"
    return TextAnswer(text, (note,), (FLAG, "question_not_answered") if is_ignored else (FLAG,))


def _by_florence(image: "Image", weights: Weights) -> str:
    torch = library("torch")
    processor, model = _load_florence(weights)
    inputs = processor(text=_TASK, images=image, return_tensors="pt")
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
    transformers = library("transformers")

    processor = transformers.AutoProcessor.from_pretrained(weights.folder, **LOCAL_ONLY)
    model = transformers.Florence2ForConditionalGeneration.from_pretrained(
        weights.folder, use_safetensors=True, **LOCAL_ONLY
    )
    return processor, model.float().eval()


def _by_blip(image: "Image", question: str, weights: Weights) -> str:
    torch = library("torch")

    processor, tokens_of, model = _load_blip(weights)
    words = tokens_of(" ".join(question.split()), return_tensors="pt", truncation=True, max_length=_MAX_QUESTION_TOKENS)
    inputs = {name: words[name] for name in ("input_ids", "attention_mask")}
    inputs["pixel_values"] = processor(images=image, return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        written = model.generate(**inputs, max_new_tokens=_MAX_ANSWER_TOKENS, num_beams=1, do_sample=False)
    return " ".join(tokens_of.decode(written[0], skip_special_tokens=True).split())


@model_loader
def _load_blip(weights: Weights) -> tuple[Any, Any, Any]:
    transformers = library("transformers")

    config = transformers.AutoConfig.from_pretrained(weights.folder, **LOCAL_ONLY)
    if not any("QuestionAnswering" in name for name in config.architectures or ()):
        raise ValueError("it writes captions and answers no questions")
    pictures = transformers.BlipImageProcessorPil.from_pretrained(weights.folder, local_files_only=True)
    words = transformers.AutoTokenizer.from_pretrained(weights.folder, **LOCAL_ONLY)
    model = transformers.BlipForQuestionAnswering.from_pretrained(weights.folder, use_safetensors=True, **LOCAL_ONLY)
    return pictures, words, model.float().eval()


_MAX_FORMULA_TOKENS = 512


def transcribe(pixels: NDArray[np.uint8], box: Box, weights: Weights) -> TextAnswer:
    """Return the formula in the part ``box`` of a picture as LaTeX, with greedy decoding."""
    torch = library("torch")
    from PIL import Image

    if weights.kind != "vision-encoder-decoder":
        raise wrong_kind(weights, "write down what a picture says", "vision-encoder-decoder")
    processor, tokens_of, model = _load_formula_model(weights)
    inputs = processor(images=Image.fromarray(crop_pixels(pixels, box)), return_tensors="pt")
    with torch.inference_mode():
        written = model.generate(
            inputs["pixel_values"], max_new_tokens=_MAX_FORMULA_TOKENS, num_beams=1, do_sample=False
        )
    text = tokens_of.decode(written[0], skip_special_tokens=True).strip()
    return TextAnswer(text, (f"formula: written down by {weights.name} ({weights.kind})",), (FLAG,))


@model_loader
def _load_formula_model(weights: Weights) -> tuple[Any, Any, Any]:
    transformers = library("transformers")

    processor = transformers.AutoImageProcessor.from_pretrained(weights.folder, **LOCAL_ONLY)
    words = transformers.AutoTokenizer.from_pretrained(weights.folder, **LOCAL_ONLY)
    model = transformers.VisionEncoderDecoderModel.from_pretrained(weights.folder, use_safetensors=True, **LOCAL_ONLY)
    return processor, words, model.float().eval()


_OPEN_CLIP_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors")
"""Weights that the library prefers to all others: if one exists, it does not open a pickle."""
_TEMPLATES = ("a photo of {}.", "a close-up photo of {}.", "{} in the field.")


def rank_names(pixels: NDArray[np.uint8], box: Box, names: Sequence[str], weights: Weights) -> RankedNames:
    """Rank ``names`` by their similarity to the part ``box`` of a picture, with shares that sum to 1.

    The shares are the softmax over the cosines times the learned scale of the model; each name is put into three
    sentences, whose directions are averaged. Even for a picture of something else, one of the names is the likeliest.
    """
    torch = library("torch")
    from PIL import Image

    if weights.kind != "open_clip":
        raise wrong_kind(weights, "compare pictures with names", "open_clip")
    model, prepare, _ = _load_similarity_model(weights)
    with torch.inference_mode():
        picture = _unit(model.encode_image(prepare(Image.fromarray(crop_pixels(pixels, box)))[None]))[0]
        cosines = _directions(tuple(names), weights) @ picture
        shares = torch.softmax(float(model.logit_scale.detach().exp()) * cosines.double(), dim=0).tolist()
    ranked = sorted(zip(names, shares, strict=True), key=lambda one: -one[1])
    note = f"name: by likeness to the names, {weights.name} ({weights.kind}), not calibrated: no scores are given"
    return RankedNames(tuple(ranked), (note,), (FLAG,))


@lru_cache(maxsize=4)
def _directions(names: tuple[str, ...], weights: Weights) -> Any:
    """Return the directions of names, (names, width); they take far longer than a picture."""
    model, _, tokens = _load_similarity_model(weights)
    sentences = [template.format(name) for name in names for template in _TEMPLATES]
    words = _unit(model.encode_text(tokens(sentences))).view(len(names), len(_TEMPLATES), -1)
    return _unit(words.mean(dim=1))


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)


@model_loader
def _load_similarity_model(weights: Weights) -> tuple[Any, Any, Any]:
    """Return the model, its preparation of pictures and its tokenizer."""
    open_clip = library("open_clip")

    if not any((weights.folder / name).is_file() for name in _OPEN_CLIP_FILES):
        raise FileNotFoundError(f"none of {', '.join(_OPEN_CLIP_FILES)} is there")
    config = json.loads((weights.folder / "open_clip_config.json").read_text(encoding="utf-8"))
    if config["model_cfg"]["text_cfg"].get("hf_model_name"):
        raise ValueError("its words are read by another model of the hub, which would be fetched")
    place = f"local-dir:{weights.folder}"
    model, prepare = open_clip.create_model_from_pretrained(place)
    return model.eval(), prepare, open_clip.get_tokenizer(place)


_STEP_PX, _MOST_SIDE_PX = 8, 768
"""Sides of pictures in a pipeline: multiples of the first, at most the second."""


def draw_words(prompt: str, weights: Weights, *, seed: int, steps: int) -> NDArray[np.uint8]:
    """Generate a picture of ``prompt``, uint8 (rows, columns, 3), in the size that the model was trained on.

    Equal calls on one machine give equal pictures.
    """
    torch = library("torch")

    pipeline = _load_pipeline(_check_kind(weights), "AutoPipelineForText2Image")
    with torch.inference_mode():
        output = pipeline(prompt=prompt, num_inference_steps=steps, generator=torch.Generator("cpu").manual_seed(seed))
    return np.asarray(output.images[0].convert("RGB"), np.uint8)


def change_picture(
    pixels: NDArray[np.uint8], instruction: str, weights: Weights, *, seed: int, steps: int
) -> NDArray[np.uint8]:
    """Return a picture, uint8 (rows, columns, 3), edited by ``instruction``, at most 768 px per side."""
    torch = library("torch")
    from PIL import Image

    image = Image.fromarray(pixels)
    scale = min(1.0, _MOST_SIDE_PX / max(image.size))
    image = image.resize((_fit(image.width * scale), _fit(image.height * scale)), Image.Resampling.LANCZOS)
    pipeline = _load_pipeline(_check_kind(weights), "AutoPipelineForImage2Image")
    with torch.inference_mode():
        output = pipeline(
            prompt=instruction,
            image=image,
            num_inference_steps=steps,
            generator=torch.Generator("cpu").manual_seed(seed),
        )
    return np.asarray(output.images[0].convert("RGB"), np.uint8)


def _fit(side: float) -> int:
    return max(64, round(side / _STEP_PX) * _STEP_PX)


def _check_kind(weights: Weights) -> Weights:
    if weights.kind != "diffusers":
        raise wrong_kind(weights, "make pictures", "diffusers")
    return weights


@lru_cache(maxsize=1)
def _load_pipeline(weights: Weights, maker: str) -> Any:
    diffusers = library("diffusers")
    torch = library("torch")

    class_name = str(json.loads((weights.folder / "model_index.json").read_text("utf-8")).get("_class_name", ""))
    # An instruction pipeline has its own class, which the automatic classes do not know.
    make = diffusers.DiffusionPipeline if "InstructPix2Pix" in class_name else getattr(diffusers, maker)
    if maker == "AutoPipelineForText2Image" and "InstructPix2Pix" in class_name:
        why = f"{weights.name} changes pictures and makes none from words alone"
        hint = "a text-to-image model: stable-diffusion-v1-5/stable-diffusion-v1-5"
        raise ToolError("backend_unavailable", why, hint=hint)
    gpu = bool(torch.cuda.is_available())
    try:
        pipeline = make.from_pretrained(
            str(weights.folder),
            local_files_only=True,
            use_safetensors=True,
            torch_dtype=torch.float16 if gpu else torch.float32,
        )
        pipeline.set_progress_bar_config(disable=True)
        return pipeline.to("cuda") if gpu else pipeline
    except Exception as error:  # these libraries may raise any exception for a bad file
        raise unloadable(weights, error) from error
