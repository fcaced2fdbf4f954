"""Tools of ThinkGeo (Shabbir et al. 2025, arXiv 2505.23752) that GTA does not have."""

from typing import Annotated

from pydantic import Field

from agrotools_benchmarks._dialogs.tools import (
    NONE_FOUND,
    Description,
    PictureFile,
    PicturePath,
    PublishedText,
    published,
    scored_text,
    text_output,
)
from agrotools_tools.general.large_models import compare_images
from agrotools_tools.general.objects import detect_objects, segment_objects


@published(segment_objects)
def SegmentObjectPixels(
    image: PictureFile,
    text: Description,
    flag: Annotated[
        bool, Field(description="true: the pixels of each object; false: their sum")
    ] = True,
) -> PublishedText:
    """Count the pixels that an object covers in an image. Gives "a, b, c", or their sum; 0 if there is none."""
    result = segment_objects.function(image, text)
    return text_output(
        (", ".join(map(str, result.pixels)) or "0") if flag else sum(result.pixels), result
    )


@published(detect_objects)
def ObjectDetection(image: PictureFile) -> PublishedText:
    """Find all common objects in an image. Gives a line each, as: label (x1, y1, x2, y2), score 76"""
    result = detect_objects.function(image)
    lines = [scored_text(each.box, each.score, each.name) for each in result.objects]
    return text_output("\n".join(lines) or NONE_FOUND, result)


@published(compare_images)
def ChangeDetection(
    text: Annotated[
        str, Field(min_length=1, max_length=500, description="what is asked about the change")
    ],
    pre_image: PicturePath,
    post_image: PicturePath,
) -> PublishedText:
    """Describe the change between two images of one place, before and after."""
    result = compare_images.function(pre_image, post_image, text)
    return text_output(result.answer, result)
