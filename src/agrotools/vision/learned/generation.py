"""Pictures made from words, and pictures changed by words, with pipelines of diffusers.

Sources: latent diffusion (Rombach et al. 2021, arXiv 2112.10752), InstructPix2Pix (Brooks et al. 2022, arXiv
2211.09800).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.vision.learned.weights import Weights, library, unloadable, wrong_kind

_STEP_PX = 8
"""Pipelines take sides that are multiples of this."""


def draw_words(prompt: str, weights: Weights, *, seed: int, steps: int, side_px: int | None) -> NDArray[np.uint8]:
    """A picture, uint8 (rows, columns, 3), of what ``prompt`` says. Equal calls on one machine give equal pictures.

    Args:
        side_px: width and height; None for the size that the model was taught.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")

    size = {} if side_px is None else {"width": _fit(side_px), "height": _fit(side_px)}
    pipeline = _load_pipeline(_check_kind(weights), "AutoPipelineForText2Image")
    with torch.inference_mode():
        output = pipeline(
            prompt=prompt, num_inference_steps=steps, generator=torch.Generator("cpu").manual_seed(seed), **size
        )
    return np.asarray(output.images[0].convert("RGB"), np.uint8)


def change_picture(
    pixels: NDArray[np.uint8], instruction: str, weights: Weights, *, seed: int, steps: int, longest_px: int = 768
) -> NDArray[np.uint8]:
    """A picture, uint8 (rows, columns, 3), changed as ``instruction`` says, at most ``longest_px`` a side.

    Raises:
        ToolError: ``backend_unavailable``: not such a model, or it cannot be loaded.
    """
    torch = library("torch")
    from PIL import Image

    image = Image.fromarray(pixels)
    scale = min(1.0, longest_px / max(image.size))
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
        raise wrong_kind(weights, "make pictures", ("diffusers",))
    return weights


@lru_cache(maxsize=1)
def _load_pipeline(weights: Weights, maker: str) -> Any:
    diffusers = library("diffusers")
    torch = library("torch")

    class_name = _pipeline_name(weights)
    # A pipeline that is told what to change has a class of its own, which no automatic choice knows.
    make = diffusers.DiffusionPipeline if "InstructPix2Pix" in class_name else getattr(diffusers, maker)
    if maker == "AutoPipelineForText2Image" and "InstructPix2Pix" in class_name:
        raise ToolError(
            "backend_unavailable",
            f"{weights.name} changes pictures and makes none from words alone",
            hint="a text-to-image model: stable-diffusion-v1-5/stable-diffusion-v1-5",
        )
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
    except Exception as error:  # these libraries raise whatever a wrong file leads them to
        raise unloadable(weights, error) from error


def _pipeline_name(weights: Weights) -> str:
    import json

    return str(json.loads((weights.folder / "model_index.json").read_text(encoding="utf-8")).get("_class_name", ""))
