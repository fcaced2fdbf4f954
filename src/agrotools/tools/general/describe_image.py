"""What a picture shows, in words."""

from typing import Annotated, cast

from pydantic import Field

from agrotools.core import Arguments
from agrotools.tools.contract import ImageFile, ToolResult, tool
from agrotools.tools.general.looking import chosen_backend, look_at
from agrotools.tools.learned import LEARNED, describe_learned, weight_files
from agrotools.tools.resolving import Known
from agrotools.tools.vlm import VLM


class ImageDescription(ToolResult):
    description: str
    """what the model says of the picture, or its answer to the question"""


def _resolved(call: Arguments, _known: Known) -> Arguments:
    return {**call, "question": _asked(cast("str | None", call["question"]))}


def _asked(question: str | None) -> str | None:
    """A question of spaces alone asks nothing."""
    return (question or "").strip() or None


@tool(
    category="general",
    version="1",
    backends=("offline", LEARNED, VLM),
    backend_files=weight_files,
    resolves=_resolved,
)
def describe_image(
    image: ImageFile,
    question: Annotated[
        str | None, Field(max_length=500, description="what is to be answered; none: a caption")
    ] = None,
) -> ImageDescription:
    """Describe a picture in a few sentences, or answer a question about it.

    Needs a large model: vlm, or learned with Florence-2 (which takes no question) or BLIP.

    Raises:
        ToolError: ``backend_unavailable``, and as the readers.
    """
    backend = chosen_backend("describing a picture", learned="florence-community/Florence-2-base")
    looked = look_at(image)
    asked = _asked(question)
    if backend == VLM:
        from agrotools.tools.vlm.general import describe_picture

        said = describe_picture(looked.pixels, looked.box, asked)
    else:
        said = describe_learned(backend, looked.pixels, looked.box, asked)
    return ImageDescription(
        description=said.text, notes=(*looked.notes, *said.notes), flags=(*looked.flags, *said.flags)
    )
