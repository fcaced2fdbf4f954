"""One attribute of one thing in a picture, in words."""

from typing import Annotated

from pydantic import Field

from agrotools.core import ToolError
from agrotools.tools.contract import ImageFile, Region, ToolResult, tool
from agrotools.tools.general.looking import chosen_backend, look_at
from agrotools.tools.learned import LEARNED, describe_learned, weight_files
from agrotools.tools.vlm import VLM


class AttributeDescription(ToolResult):
    description: str
    """what the model says of the attribute"""


@tool(category="general", version="1", backends=("offline", LEARNED, VLM), backend_files=weight_files)
def describe_attribute(
    image: ImageFile,
    region: Region,
    attribute: Annotated[
        str, Field(min_length=1, max_length=200, description="what is asked of it: colour, material, brand, pose...")
    ],
) -> AttributeDescription:
    """Say what one attribute of the thing in a region of a picture is.

    Needs a large model: vlm, or learned with a BLIP that answers questions.

    Raises:
        ToolError: ``backend_unavailable`` (also for a model that takes no question), ``region_empty``, and as the
            readers.
    """
    backend = chosen_backend("naming an attribute", learned="Salesforce/blip-vqa-base")
    looked = look_at(image, region)
    if backend == VLM:
        from agrotools.tools.vlm.general import describe_part

        said = describe_part(looked.pixels, looked.box, attribute)
    else:
        said = describe_learned(backend, looked.pixels, looked.box, f"what is the {attribute} of this?")
        if "question_not_answered" in said.flags:
            raise ToolError(
                "backend_unavailable",
                "this model writes captions and takes no question, so it cannot say one attribute",
                hint="choose a model that answers: learned:Salesforce/blip-vqa-base, or vlm",
            )
    return AttributeDescription(
        description=said.text, notes=(*looked.notes, *said.notes), flags=(*looked.flags, *said.flags)
    )
