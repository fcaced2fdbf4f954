"""The fourteen tools of GTA (Wang et al. 2024, arXiv 2407.08713), as its toolmeta.json and AgentLego declare them."""

import json
from typing import Annotated

from pydantic import Field

from agrotools.benchmarks._dialogs.calculating import calculated
from agrotools.benchmarks._dialogs.tool_forms import (
    NONE_FOUND,
    BoxText,
    Description,
    PictureFile,
    PublishedImage,
    PublishedText,
    box_text,
    drawn,
    published,
    read_box,
    said,
    scored_text,
)
from agrotools.core import ToolError
from agrotools.tools.contract import Agree
from agrotools.tools.general.annotation import add_text, draw_box
from agrotools.tools.general.calculate import calculate
from agrotools.tools.general.code import LONGEST_CODE, plot_code, run_in_sandbox, solve_equations
from agrotools.tools.general.description import describe_attribute, describe_image
from agrotools.tools.general.generation import generate_image, stylize_image
from agrotools.tools.general.objects import count_given_object, locate_objects
from agrotools.tools.general.search_web import search_web
from agrotools.tools.general.text import read_formula, read_text

SURE = 0.5
"""Below this score a published detector says nothing."""

Command = Annotated[
    str,
    Agree("text"),
    Field(min_length=1, max_length=LONGEST_CODE, description="Markdown format Python code with a function solution()"),
]
Attribute = Annotated[str, Field(min_length=1, max_length=200, description="the attribute to describe")]
Query = Annotated[str, Field(min_length=1, max_length=500, description="what to search for")]
HowMany = Annotated[int, Field(ge=1, le=100, description="how many results")]
OnlyBest = Annotated[bool, Field(description="only the object with the highest score")]
Annotation = Annotated[str | None, Field(max_length=200, description="written at the box")]
Words = Annotated[str, Field(min_length=1, max_length=500, description="the text")]
Position = Annotated[
    str,
    Field(
        min_length=2,
        max_length=60,
        description="lower left corner as (x, y), or l, m or r and t, m or b for left, middle, right and top, "
        "middle, bottom: mt is the middle of the top",
    ),
]
TextColour = Annotated[str, Field(max_length=40, description="the colour of the text")]
Keywords = Annotated[str, Field(min_length=1, max_length=2000, description="keywords, with commas between them")]


@published(calculate)
def Calculator(
    expression: Annotated[
        str, Agree("expression"), Field(min_length=1, max_length=500, description="one Python expression")
    ],
) -> PublishedText:
    """Calculate a single Python expression. The functions and constants of the module math can be used.

    Raises:
        ToolError: ``invalid_argument``.
    """
    return PublishedText(text=calculated(expression))


@published(read_text)
def OCR(image: PictureFile) -> PublishedText:
    """Read all text in an image, a line each, as: (x1, y1, x2, y2) text

    Raises:
        ToolError: as :func:`agrotools.tools.general.text.read_text`.
    """
    found = read_text.function(image)
    return said("\n".join(f"{box_text(line.box)} {line.text}" for line in found.lines), found)


@published(count_given_object)
def CountGivenObject(image: PictureFile, text: Description, bbox: BoxText | None = None) -> PublishedText:
    """Count an object in an image, or in a box of it. Gives a whole number.

    Raises:
        ToolError: as :func:`agrotools.tools.general.objects.count_given_object`.
    """
    found = count_given_object.function(image, text, region=None if bbox is None else read_box(bbox))
    return said(found.count, found)


@published(describe_image)
def ImageDescription(image: PictureFile) -> PublishedText:
    """Describe an image in a few words.

    Raises:
        ToolError: as :func:`agrotools.tools.general.description.describe_image`.
    """
    found = describe_image.function(image)
    return said(found.description, found)


@published(search_web)
def GoogleSearch(
    query: Query,
    k: HowMany = 10,
) -> PublishedText:
    """Search the web. Gives excerpts of the pages found, numbered.

    Raises:
        ToolError: as :func:`agrotools.tools.general.search_web.search_web`.
    """
    found = search_web.function(query, min(k, 20))
    return said(found.text, found)


@published(describe_attribute)
def RegionAttributeDescription(
    image: PictureFile,
    bbox: BoxText,
    attribute: Attribute,
) -> PublishedText:
    """Describe an attribute of what is in a box of an image.

    Raises:
        ToolError: as :func:`agrotools.tools.general.description.describe_attribute`.
    """
    found = describe_attribute.function(image, read_box(bbox), attribute)
    return said(found.description, found)


@published(locate_objects)
def TextToBbox(
    image: PictureFile,
    text: Description,
    top1: OnlyBest = True,
) -> PublishedText:
    """Find the object that a text describes. Gives boxes and scores, a line each, as: (x1, y1, x2, y2), score 76

    Raises:
        ToolError: as :func:`agrotools.tools.general.objects.locate_objects`.
    """
    found = locate_objects.function(image, text, top1, score_min=SURE)
    lines = [scored_text(box, score) for box, score in zip(found.boxes, found.scores, strict=True)]
    return said("\n".join(lines) or NONE_FOUND, found)


@published(plot_code)
def Plot(command: Command) -> PublishedImage:
    """Draw a figure by Python code. The function solution() takes no argument and returns a matplotlib figure.

    Raises:
        ToolError: as :func:`agrotools.tools.general.code.plot_code`.
    """
    made = plot_code.function(command)
    return drawn(made.image, made)


@published(read_formula)
def MathOCR(image: PictureFile) -> PublishedText:
    """Read a mathematical expression in an image. Gives JSON that holds it as LaTeX.

    Raises:
        ToolError: as :func:`agrotools.tools.general.text.read_formula`.
    """
    found = read_formula.function(image)
    return said(json.dumps({"text": f"$ {found.latex} $", "latex_styled": found.latex}), found)


@published(solve_equations)
def Solver(command: Command) -> PublishedText:
    """Solve equations by Python code that uses SymPy. The function solution() takes no argument and returns text.

    Code that fails gives its error as text, as in the published tool.

    Raises:
        ToolError: as :func:`agrotools.tools.general.code.solve_equations`, but for code that fails.
    """
    ran = run_in_sandbox(command, argument="command")
    return PublishedText(text=ran.fault or str(ran.value), flags=("code_failed",) if ran.fault else ("by_code",))


@published(draw_box)
def DrawBox(
    image: PictureFile,
    bbox: BoxText,
    annotation: Annotation = None,
) -> PublishedImage:
    """Draw a box on an image.

    Raises:
        ToolError: as :func:`agrotools.tools.general.annotation.draw_box`.
    """
    made = draw_box.function(image, read_box(bbox), annotation)
    return drawn(made.image, made)


@published(add_text)
def AddText(
    image: PictureFile,
    text: Words,
    position: Position,
    color: TextColour = "red",
) -> PublishedImage:
    """Write text on an image.

    Raises:
        ToolError: as :func:`agrotools.tools.general.annotation.add_text`.
    """
    try:
        made = add_text.function(image, text, position, color)
    except ToolError as error:
        raise _renamed(error, "colour", "color") from None
    return drawn(made.image, made)


@published(generate_image)
def TextToImage(
    keywords: Keywords,
) -> PublishedImage:
    """Make an image of what keywords say.

    Raises:
        ToolError: as :func:`agrotools.tools.general.generation.generate_image`.
    """
    made = generate_image.function(keywords)
    return drawn(made.image, made)


@published(stylize_image)
def ImageStylization(
    image: PictureFile,
    instruction: Annotated[str, Field(min_length=1, max_length=2000, description="how to change the image")],
) -> PublishedImage:
    """Change an image as an instruction says, for instance: turn him into a cyborg.

    Raises:
        ToolError: as :func:`agrotools.tools.general.generation.stylize_image`.
    """
    made = stylize_image.function(image, instruction)
    return drawn(made.image, made)


def _renamed(error: ToolError, ours: str, theirs: str) -> ToolError:
    """An error about an argument that the published tool calls otherwise."""
    argument = theirs if error.argument == ours else error.argument
    return ToolError(error.kind, error.message, argument=argument, hint=error.hint, candidates=error.candidates)
