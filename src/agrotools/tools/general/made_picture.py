"""What making and changing pictures share: back-ends, the reply of an images endpoint, and keeping the picture."""

import base64
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import ToolResult
from agrotools.tools.learned import LEARNED, weight_files
from agrotools.tools.outside import IMAGES
from agrotools.tools.outside.request import Request, asked_outside

if TYPE_CHECKING:
    from PIL.Image import Image

BACKENDS = ("offline", LEARNED, IMAGES)
STEPS = 25
_MOST_PX = 40_000_000


class MadePicture(ToolResult):
    image: Artifact
    """the picture"""
    width_px: int
    height_px: int


def picture_files(backend: str) -> tuple[Path, ...]:
    """The files of the model that a back-end names; an endpoint has none here.

    Raises:
        ToolError: ``backend_unavailable``, see :func:`agrotools.tools.learned.weight_files`.
    """
    return weight_files(backend) if backend.startswith(LEARNED) else ()


def by_endpoint(backend: str, prompt: str, pictures: tuple[bytes, ...] = ()) -> tuple["Image", tuple[str, ...]]:
    """The picture that an images endpoint makes, and notes.

    Raises:
        ToolError: as :func:`agrotools.tools.outside.request.asked_outside`; ``tool_failed``: its reply is no picture.
    """
    from PIL import Image

    model = backend.removeprefix(IMAGES)
    reply = asked_outside(Request(backend, {"prompt": prompt}, pictures))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(base64.b64decode(reply["picture"])), formats=["PNG", "JPEG", "WEBP"])
            if picture.width * picture.height > _MOST_PX:
                raise ValueError("too large")
            picture = picture.convert("RGB")
    except Exception as error:  # decoders raise whatever a damaged picture leads them to
        raise ToolError("tool_failed", f"what {model} made is no picture that can be read", hint="ask again") from error
    revised = reply.get("revised_prompt")
    return picture, (f"made by {model}", *((f"the endpoint reworded it: {revised}",) if revised else ()))
