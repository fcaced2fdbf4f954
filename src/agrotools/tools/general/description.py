"""Descriptions of pictures in words: of a whole picture, of one attribute, of a change."""

from pathlib import Path
from typing import Annotated, cast

from pydantic import Field

from agrotools.core import Arguments, ToolError
from agrotools.tools.arguments import ReferenceCall
from agrotools.tools.contract import FileArgument, ImageFile, Region, ToolResult, tool
from agrotools.tools.general.images import chosen_backend, open_image
from agrotools.tools.learned import LEARNED, describe_learned, weight_files
from agrotools.tools.services import VLM


class ImageDescription(ToolResult):
    description: str
    """what the model says of the picture, or its answer to the question"""


def _resolve(call: Arguments, _known: ReferenceCall) -> Arguments:
    return {**call, "question": _stripped_question(cast("str | None", call["question"]))}


def _stripped_question(question: str | None) -> str | None:
    """A question of spaces alone asks nothing."""
    return (question or "").strip() or None


@tool(
    category="general",
    version="1",
    backends=("offline", LEARNED, VLM),
    backend_files=weight_files,
    resolves=_resolve,
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
    looked = open_image(image)
    stripped_question = _stripped_question(question)
    if backend == VLM:
        from agrotools.tools.services.vision_tasks import describe_picture

        answer = describe_picture(looked.pixels, looked.box, stripped_question)
    else:
        answer = describe_learned(backend, looked.pixels, looked.box, stripped_question)
    return ImageDescription(
        description=answer.text, notes=(*looked.notes, *answer.notes), flags=(*looked.flags, *answer.flags)
    )


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
    looked = open_image(image, region)
    if backend == VLM:
        from agrotools.tools.services.vision_tasks import describe_part

        answer = describe_part(looked.pixels, looked.box, attribute)
    else:
        answer = describe_learned(backend, looked.pixels, looked.box, f"what is the {attribute} of this?")
        if "question_not_answered" in answer.flags:
            raise ToolError(
                "backend_unavailable",
                "this model writes captions and takes no question, so it cannot say one attribute",
                hint="choose a model that answers: learned:Salesforce/blip-vqa-base, or vlm",
            )
    return AttributeDescription(
        description=answer.text, notes=(*looked.notes, *answer.notes), flags=(*looked.flags, *answer.flags)
    )


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
    first, second = open_image(before, argument="before"), open_image(after, argument="after")
    from agrotools.tools.services.vision_tasks import compare

    answer = compare(first.pixels, second.pixels, question)
    sizes = () if first.pixels.shape == second.pixels.shape else ("sizes_differ",)
    return ImageComparison(
        answer=answer.text,
        notes=(*first.notes, *second.notes, *answer.notes),
        flags=tuple(dict.fromkeys((*first.flags, *second.flags, *answer.flags, *sizes))),
    )
