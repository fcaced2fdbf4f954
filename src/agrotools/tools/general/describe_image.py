"""What a picture shows, in words."""

from typing import Annotated

from pydantic import Field

from agrotools.tools.contract import ImageFile, ToolResult, tool
from agrotools.tools.general.looking import chosen_backend, look_at
from agrotools.tools.learned import LEARNED, describe_learned, weight_files
from agrotools.tools.vlm import VLM


class ImageDescription(ToolResult):
    description: str
    """what the model says of the picture, or its answer to the question"""


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
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
    asked = question.strip() or None if question else None
    if backend == VLM:
        from agrotools.tools.vlm.general import describe_picture

        said = describe_picture(looked.pixels, looked.box, asked)
    else:
        said = describe_learned(backend, looked.pixels, looked.box, asked)
    return ImageDescription(
        description=said.text, notes=(*looked.notes, *said.notes), flags=(*looked.flags, *said.flags)
    )
