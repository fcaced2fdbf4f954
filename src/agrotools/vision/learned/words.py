"""A picture in words, with Florence-2 (Xiao et al. 2024, arXiv 2311.06242) or BLIP (Li et al. 2022, arXiv
2201.12086)."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

if TYPE_CHECKING:
    from PIL.Image import Image

_TASK = "<DETAILED_CAPTION>"
_LONGEST = 256
_LONGEST_QUESTION, _LONGEST_ANSWER = 64, 64


class Caption(NamedTuple):
    """What the model wrote. ``answers``: whether it was told the question, which Florence-2 does not take."""

    text: str
    answers: bool


def describe(pixels: NDArray[np.uint8], question: str | None, weights: Weights) -> Caption:
    """What a picture, uint8 (rows, columns, 3), shows. The likeliest words are taken, so that equal calls agree.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    if weights.kind == "blip":
        return _by_blip(Image.fromarray(pixels), question, weights)
    if weights.kind != "florence2":
        raise wrong_kind(weights, "write text", ("florence2", "blip"))
    processor, model = _loaded(weights)
    inputs = processor(text=_TASK, images=Image.fromarray(pixels), return_tensors="pt")
    with torch.inference_mode():
        tokens = model.generate(
            input_ids=inputs["input_ids"],
            pixel_values=inputs["pixel_values"],
            max_new_tokens=_LONGEST,
            num_beams=1,
            do_sample=False,
        )
    return Caption(" ".join(processor.batch_decode(tokens, skip_special_tokens=True)[0].split()), answers=False)


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> tuple[Any, Any]:
    transformers = library("transformers")

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        processor = transformers.AutoProcessor.from_pretrained(weights.folder, **options)
        model = transformers.Florence2ForConditionalGeneration.from_pretrained(
            weights.folder, use_safetensors=True, **options
        )
        return processor, model.float().eval()
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error


def _by_blip(image: "Image", question: str | None, weights: Weights) -> Caption:
    torch = library("torch")

    processor, tokens_of, model, answers = _loaded_blip(weights)
    inputs = {"pixel_values": processor(images=image, return_tensors="pt")["pixel_values"]}
    if answers:
        asked = " ".join((question or "what does the picture show?").split())
        words = tokens_of(asked, return_tensors="pt", truncation=True, max_length=_LONGEST_QUESTION)
        inputs |= {"input_ids": words["input_ids"], "attention_mask": words["attention_mask"]}
    with torch.inference_mode():
        written = model.generate(**inputs, max_new_tokens=_LONGEST_ANSWER, num_beams=1, do_sample=False)
    text = " ".join(tokens_of.decode(written[0], skip_special_tokens=True).split())
    return Caption(text, answers=answers and bool(question))


@lru_cache(maxsize=1)
def _loaded_blip(weights: Weights) -> tuple[Any, Any, Any, bool]:
    """Pictures to arrays, words to numbers, the model, and whether it answers questions."""
    transformers = library("transformers")

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(weights.folder, **options)
        answers = any("QuestionAnswering" in name for name in config.architectures or ())
        make = transformers.BlipForQuestionAnswering if answers else transformers.BlipForConditionalGeneration
        pictures = transformers.BlipImageProcessorPil.from_pretrained(weights.folder, local_files_only=True)
        words = transformers.AutoTokenizer.from_pretrained(weights.folder, **options)
        model = make.from_pretrained(weights.folder, use_safetensors=True, **options)
        return pictures, words, model.float().eval(), answers
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error
