"""Steps as they ran, and what somebody wrote of an answer, for tests of composing and drafting."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from agrotools.core import Observation, ReferenceStep, SampleFile
from agrotools.core.files import sha256_of_file
from agrotools_build.composing import AnswerPart


def picture(root: Path, name: str = "image_1.png", seed: int = 0) -> SampleFile:
    """Draw a picture of noise into the ``files`` of a benchmark folder, and return it as a file of a sample."""
    path = root / "files" / name
    path.parent.mkdir(exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 255, (48, 64, 3))
    Image.fromarray(noise.astype(np.uint8)).save(path)
    return SampleFile(
        name=name,
        path=f"files/{name}",
        kind="image",
        sha256=sha256_of_file(path),
        width_px=64,
        height_px=48,
    )


def ran(tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> ReferenceStep:
    """A step that returned ``result``."""
    return ReferenceStep(tool=tool, arguments=arguments, observation=Observation(result=result))


def part(form: str, from_: str, **fields: Any) -> AnswerPart:
    """A part of an answer."""
    written = {"name": "value", "label": "what is asked for", "form": form, "from": from_}
    return AnswerPart.model_validate({**written, **fields})
