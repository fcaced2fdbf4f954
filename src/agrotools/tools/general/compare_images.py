"""What changed between two pictures, answered for a text."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from agrotools.tools.contract import FileArgument, ToolResult, tool
from agrotools.tools.general.looking import chosen_backend, look_at
from agrotools.tools.vlm import VLM

BeforeFile = Annotated[Path, FileArgument("image", "name of the earlier image file")]
AfterFile = Annotated[Path, FileArgument("image", "name of the later image file")]


class ImageComparison(ToolResult):
    answer: str
    """what the model says has changed"""


@tool(category="general", version="1", backends=("offline", VLM))
def compare_images(
    before: BeforeFile,
    after: AfterFile,
    question: Annotated[str, Field(min_length=1, max_length=500, description="what is asked about the change")],
) -> ImageComparison:
    """Say what changed between two pictures of one place, as far as a question asks for it.

    Needs a vision model (vlm), which sees both pictures. For measured change of fields, buildings and ponds
    detect_change works without one.

    Raises:
        ToolError: ``backend_unavailable``, and as the readers.
    """
    chosen_backend("comparing two pictures in words")
    first, second = look_at(before, argument="before"), look_at(after, argument="after")
    from agrotools.tools.vlm.general import compare

    said = compare(first.pixels, second.pixels, question)
    sizes = () if first.pixels.shape == second.pixels.shape else ("sizes_differ",)
    return ImageComparison(
        answer=said.text,
        notes=(*first.notes, *second.notes, *said.notes),
        flags=tuple(dict.fromkeys((*first.flags, *second.flags, *said.flags, *sizes))),
    )
