"""Text in a picture as a model writes it that was taught pairs of both: formulas by Nougat (Blecher et al. 2023, arXiv
2308.13418) and others of its build, printed or written lines by TrOCR (Li et al. 2021, arXiv 2109.10282)."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

_LONGEST = 512


def write_down(pixels: NDArray[np.uint8], weights: Weights) -> str:
    """What the model makes of a picture, uint8 (rows, columns, 3). The likeliest words are taken.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    if weights.kind != "vision-encoder-decoder":
        raise wrong_kind(weights, "write down what a picture says", ("vision-encoder-decoder",))
    processor, tokens_of, model = _loaded(weights)
    inputs = processor(images=Image.fromarray(pixels), return_tensors="pt")
    with torch.inference_mode():
        written = model.generate(inputs["pixel_values"], max_new_tokens=_LONGEST, num_beams=1, do_sample=False)
    return tokens_of.decode(written[0], skip_special_tokens=True).strip()


@lru_cache(maxsize=1)
def _loaded(weights: Weights) -> tuple[Any, Any, Any]:
    transformers = library("transformers")

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(weights.folder, **options)
        words = transformers.AutoTokenizer.from_pretrained(weights.folder, **options)
        model = transformers.VisionEncoderDecoderModel.from_pretrained(weights.folder, use_safetensors=True, **options)
        return processor, words, model.float().eval()
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error
