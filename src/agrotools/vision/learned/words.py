"""A picture in words, with Florence-2 (Xiao et al. 2024, arXiv 2311.06242)."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

_TASK = "<DETAILED_CAPTION>"
_LONGEST = 256


class Caption(NamedTuple):
    """What the model wrote. ``answers``: whether it was told the question (Florence-2 takes none)."""

    text: str
    answers: bool


def describe(pixels: NDArray[np.uint8], question: str | None, weights: Weights) -> Caption:
    """What a picture, uint8 (rows, columns, 3), shows. The likeliest words are taken, so that equal calls agree.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    del question
    if weights.kind != "florence2":
        raise wrong_kind(weights, "write text", ("florence2",))
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
