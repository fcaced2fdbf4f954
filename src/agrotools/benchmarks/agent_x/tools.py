"""The tools of Agent-X (Ashraf et al. 2025, arXiv 2505.24876) that are GTA's under other names."""

from agrotools.benchmarks._dialogs.tools import (
    AddText,
    Annotation,
    Attribute,
    BoxText,
    Command,
    CountGivenObject,
    Description,
    DrawBox,
    GoogleSearch,
    HowMany,
    ImageDescription,
    Keywords,
    OnlyBest,
    PictureFile,
    Plot,
    Position,
    PublishedImage,
    PublishedText,
    Query,
    RegionAttributeDescription,
    TextColour,
    TextToBbox,
    TextToImage,
    Words,
    published,
)
from agrotools.tools.general.annotation import add_text, draw_box
from agrotools.tools.general.code import plot_code
from agrotools.tools.general.large_models import describe_attribute, describe_image, generate_image
from agrotools.tools.general.objects import count_given_object, locate_objects
from agrotools.tools.general.search_web import search_web


@published(count_given_object)
def ObjectCounter(image: PictureFile, text: Description) -> PublishedText:
    """Count an object in an image. Gives a whole number.

    Raises:
        ToolError: as CountGivenObject.
    """
    return CountGivenObject.function(image, text)


@published(describe_image)
def SceneDescriber(image: PictureFile) -> PublishedText:
    """Describe an image in a few words.

    Raises:
        ToolError: as ImageDescription.
    """
    return ImageDescription.function(image)


@published(search_web)
def WebSearch(
    query: Query,
    k: HowMany = 10,
) -> PublishedText:
    """Search the web. Gives excerpts of the pages found, numbered.

    Raises:
        ToolError: as GoogleSearch.
    """
    return GoogleSearch.function(query, k)


@published(describe_attribute)
def RegionDescriber(
    image: PictureFile,
    bbox: BoxText,
    attribute: Attribute,
) -> PublishedText:
    """Describe an attribute of what is in a box of an image.

    Raises:
        ToolError: as RegionAttributeDescription.
    """
    return RegionAttributeDescription.function(image, bbox, attribute)


@published(locate_objects)
def LocateObjectByText(
    image: PictureFile,
    text: Description,
    top1: OnlyBest = True,
) -> PublishedText:
    """Find the object that a text describes. Gives boxes and scores, a line each, as: (x1, y1, x2, y2), score 76

    Raises:
        ToolError: as TextToBbox.
    """
    return TextToBbox.function(image, text, top1)


@published(plot_code)
def CodePlotter(command: Command) -> PublishedImage:
    """Draw a figure by Python code. The function solution() takes no argument and returns a matplotlib figure.

    Raises:
        ToolError: as Plot.
    """
    return Plot.function(command)


@published(draw_box)
def DrawBoundingBox(
    image: PictureFile,
    bbox: BoxText,
    annotation: Annotation = None,
) -> PublishedImage:
    """Draw a box on an image.

    Raises:
        ToolError: as DrawBox.
    """
    return DrawBox.function(image, bbox, annotation)


@published(add_text)
def OverlayText(
    image: PictureFile,
    text: Words,
    position: Position,
    color: TextColour = "red",
) -> PublishedImage:
    """Write text on an image.

    Raises:
        ToolError: as AddText.
    """
    return AddText.function(image, text, position, color)


@published(generate_image)
def ImageGenerator(
    keywords: Keywords,
) -> PublishedImage:
    """Make an image of what keywords say.

    Raises:
        ToolError: as TextToImage.
    """
    return TextToImage.function(keywords)
