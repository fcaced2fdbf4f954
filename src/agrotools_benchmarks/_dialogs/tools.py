"""The fourteen tools of GTA (Wang et al. 2024, arXiv 2407.08713) as declared in its toolmeta.json and AgentLego.

Each raises the errors of the tool of this package that implements it, which its decorator names.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from pydantic import Field, JsonValue

from agrotools.calling.contract import Agree, FileArgument, Tool, ToolResult, tool
from agrotools.core import Artifact, ToolError
from agrotools.text.expression_functions import (
    ExpressionError,
    Function,
    number,
    numbers,
    paired,
    real_function,
    whole,
)
from agrotools.text.expressions import evaluate
from agrotools.vision import Box
from agrotools_tools.general.annotation import add_text, draw_box
from agrotools_tools.general.calculate import calculate
from agrotools_tools.general.code import (
    LONGEST_CODE,
    plot_code,
    require_sympy,
    run_in_sandbox,
    solve_equations,
)
from agrotools_tools.general.large_models import (
    describe_attribute,
    describe_image,
    generate_image,
    read_formula,
    search_web,
    stylize_image,
)
from agrotools_tools.general.objects import count_given_object, locate_objects
from agrotools_tools.general.text import read_text

P = ParamSpec("P")
R = TypeVar("R", bound=ToolResult)

PictureFile = Annotated[Path, FileArgument("image", "path of the image")]
PicturePath = Annotated[Path, FileArgument("image", "path of the image, as text"), Agree("text")]
"""Image argument that a published tool declares as text; its type does not require that the file exists."""
Description = Annotated[
    str, Field(min_length=1, max_length=500, description="the description of the object")
]
BoxText = Annotated[str, Field(max_length=200, description="the box, in the form (x1, y1, x2, y2)")]
NONE_FOUND = "No object found."
_NUMBER = re.compile(r"[-+]?\d*\.?\d+")


class PublishedText(ToolResult):
    text: str
    """what the tool says"""


class PublishedImage(ToolResult):
    image: Artifact
    """the picture that the tool made"""


def published(like: Tool[..., Any]) -> Callable[[Callable[P, R]], Tool[P, R]]:
    """Return a decorator that declares a published tool implemented by the tool ``like``, with the same back-ends."""
    return tool(
        category="published",
        version=like.version,
        significant_digits=None,
        backends=like.backends,
        data_files=lambda: like.data_files,
        backend_files=like.files_for,
        cacheable=like.cacheable,
        files_by_last_part=True,
        libraries=like.libraries,
    )


def text_output(text: object, by: ToolResult) -> PublishedText:
    """Return a text output with the notes and flags of the result ``by``."""
    return PublishedText(text=str(text), notes=by.notes, flags=by.flags)


def image_output(image: Artifact, by: ToolResult) -> PublishedImage:
    """Return an image output with the notes and flags of the result ``by``."""
    return PublishedImage(image=image, notes=by.notes, flags=by.flags)


def read_box(text: str) -> Box:
    """Read a box, four numbers with any separators; ToolError ``invalid_argument`` if it is none or empty."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    if len(numbers) != 4:
        raise ToolError(
            "invalid_argument",
            f"bbox holds {len(numbers)} numbers, not four: {text[:60]!r}",
            argument="bbox",
            hint="write (x1, y1, x2, y2) in pixels",
        )
    x0, y0, x1, y1 = (round(max(-1e9, min(1e9, number))) for number in numbers)
    if x1 <= x0 or y1 <= y0:
        raise ToolError(
            "invalid_argument",
            f"the box ({x0}, {y0}, {x1}, {y1}) is empty",
            argument="bbox",
            hint="x1 < x2 and y1 < y2: upper left corner, then lower right corner",
        )
    return x0, y0, x1, y1


def box_text(box: Sequence[float]) -> str:
    """Format a box as ``(x1, y1, x2, y2)`` in whole pixels."""
    return f"({', '.join(f'{edge:.0f}' for edge in box)})"


def scored_text(box: Sequence[float], score: float, name: str = "") -> str:
    """Format a box with its score: ``name (x1, y1, x2, y2), score 76``."""
    return f"{name + ' ' if name else ''}{box_text(box)}, score {100 * score:.0f}"


# --- expressions: Python syntax with the functions of the module math ---------------------------------------------

_MODULE = re.compile(r"(?<![\w.])math\.(?=[a-z])")
_IN_ANOTHER_BASE = re.compile(r"(?<![\w.])0(?:[xX][\da-fA-F]+|[oO][0-7]+|[bB][01]+)(?![\w.])")
_LARGEST = 10**300
_LONGEST = 1_000
"""Maximum length of an expression; the rest of a longer text is not read."""


def calculated(expression: str) -> str:
    """Evaluate an expression and return its value as Python prints it.

    The evaluator of agrotools is used, which runs no code; other Python syntax (comprehensions, tuples, methods...) is
    rejected with a hint.

    Raises:
        ToolError: ``invalid_argument``: it cannot be parsed, has no value, or would cost too much.
    """
    text = _IN_ANOTHER_BASE.sub(
        lambda written: str(int(written[0], 0)), _MODULE.sub("", expression[:_LONGEST])
    )
    try:
        return str(evaluate(text, {"tau": math.tau}, functions=_FUNCTIONS))
    except ExpressionError as error:
        raise ToolError(
            "invalid_argument", error.message, argument="expression", hint=error.hint
        ) from None


def _of_two(name: str, function: Callable[[float, float], float]) -> Function:
    return lambda x, y: function(number(x, name), number(y, name))


def _common_multiple(*values: JsonValue) -> JsonValue:
    multiple = 1
    for each in values:
        multiple = math.lcm(multiple, whole(each, "lcm", -_LARGEST, _LARGEST))
        if multiple > _LARGEST:
            raise OverflowError
    return multiple


def _permutations(n: JsonValue, k: JsonValue = None) -> JsonValue:
    chosen = None if k is None else whole(k, "perm: k", 0, 1000)
    return math.perm(whole(n, "perm: n", 0, 1000), chosen)


_DOMAINS = {
    **dict.fromkeys("asinh cosh erf erfc exp2 expm1 fabs sinh tanh trunc".split(), "any number"),
    "acosh": "a number from 1",
    "atanh": "a number between -1 and 1",
    "gamma": "any number but 0, -1, -2...",
    "lgamma": "any number but 0, -1, -2...",
    "log1p": "a number above -1",
}
_FUNCTIONS: dict[str, Function] = {
    **{name: real_function(name, getattr(math, name), domain) for name, domain in _DOMAINS.items()},
    **{
        name: _of_two(name, getattr(math, name))
        for name in ("copysign", "fmod", "pow", "remainder")
    },
    "dist": lambda p, q: math.dist(*paired(p, q, "dist")),
    "fsum": lambda values: math.fsum(numbers(values, "fsum", least=0)),
    "gcd": lambda *values: math.gcd(*(whole(each, "gcd", -_LARGEST, _LARGEST) for each in values)),
    "hypot": lambda *coordinates: math.hypot(*(number(each, "hypot") for each in coordinates)),
    "isqrt": lambda n: math.isqrt(whole(n, "isqrt: n", 0, _LARGEST)),
    "lcm": _common_multiple,
    "perm": _permutations,
}
"""Functions of Python's ``math`` that the evaluator lacks or has in another form."""


SURE = 0.5
"""Minimum score of a box, as in the published detector."""

Command = Annotated[
    str,
    Agree("text"),
    Field(
        min_length=1,
        max_length=LONGEST_CODE,
        description="Markdown format Python code with a function solution()",
    ),
]
Attribute = Annotated[
    str, Field(min_length=1, max_length=200, description="the attribute to describe")
]
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
Keywords = Annotated[
    str, Field(min_length=1, max_length=2000, description="keywords, with commas between them")
]


@published(calculate)
def Calculator(
    expression: Annotated[
        str,
        Agree("expression"),
        Field(min_length=1, max_length=500, description="one Python expression"),
    ],
) -> PublishedText:
    """Calculate a single Python expression. The functions and constants of the module math can be used."""
    return PublishedText(text=calculated(expression))


@published(read_text)
def OCR(image: PictureFile) -> PublishedText:
    """Read all text in an image, a line each, as: (x1, y1, x2, y2) text"""
    result = read_text.function(image)
    return text_output(
        "\n".join(f"{box_text(line.box)} {line.text}" for line in result.lines), result
    )


@published(count_given_object)
def CountGivenObject(
    image: PictureFile, text: Description, bbox: BoxText | None = None
) -> PublishedText:
    """Count an object in an image, or in a box of it. Gives a whole number."""
    result = count_given_object.function(
        image, text, region=None if bbox is None else read_box(bbox)
    )
    return text_output(result.count, result)


@published(describe_image)
def ImageDescription(image: PictureFile) -> PublishedText:
    """Describe an image in a few words."""
    result = describe_image.function(image)
    return text_output(result.description, result)


@published(search_web)
def GoogleSearch(query: Query, k: HowMany = 10) -> PublishedText:
    """Search the web. Gives excerpts of the pages found, numbered."""
    result = search_web.function(query, min(k, 20))
    return text_output(result.text, result)


@published(describe_attribute)
def RegionAttributeDescription(
    image: PictureFile, bbox: BoxText, attribute: Attribute
) -> PublishedText:
    """Describe an attribute of what is in a box of an image."""
    result = describe_attribute.function(image, read_box(bbox), attribute)
    return text_output(result.description, result)


@published(locate_objects)
def TextToBbox(image: PictureFile, text: Description, top1: OnlyBest = True) -> PublishedText:
    """Find the object that a text describes. Gives boxes and scores, a line each, as: (x1, y1, x2, y2), score 76"""
    result = locate_objects.function(image, text, top1, score_min=SURE)
    lines = [
        scored_text(box, score) for box, score in zip(result.boxes, result.scores, strict=True)
    ]
    return text_output("\n".join(lines) or NONE_FOUND, result)


@published(plot_code)
def Plot(command: Command) -> PublishedImage:
    """Draw a figure by Python code. The function solution() takes no argument and returns a matplotlib figure."""
    result = plot_code.function(command)
    return image_output(result.image, result)


@published(read_formula)
def MathOCR(image: PictureFile) -> PublishedText:
    """Read a mathematical expression in an image. Gives JSON that holds it as LaTeX."""
    result = read_formula.function(image)
    return text_output(
        json.dumps({"text": f"$ {result.latex} $", "latex_styled": result.latex}), result
    )


@published(solve_equations)
def Solver(command: Command) -> PublishedText:
    """Solve equations by Python code that uses SymPy. The function solution() takes no argument and returns text.

    Code that fails gives its error as text, as in the published tool.
    """
    require_sympy()
    ran = run_in_sandbox(command, argument="command")
    return PublishedText(
        text=ran.fault or str(ran.value), flags=("code_failed",) if ran.fault else ("by_code",)
    )


@published(draw_box)
def DrawBox(image: PictureFile, bbox: BoxText, annotation: Annotation = None) -> PublishedImage:
    """Draw a box on an image."""
    result = draw_box.function(image, read_box(bbox), annotation)
    return image_output(result.image, result)


@published(add_text)
def AddText(
    image: PictureFile, text: Words, position: Position, color: TextColour = "red"
) -> PublishedImage:
    """Write text on an image."""
    try:
        result = add_text.function(image, text, position, color)
    except ToolError as error:
        argument = "color" if error.argument == "colour" else error.argument
        hint, candidates = error.hint, error.candidates
        raise ToolError(
            error.kind, error.message, argument=argument, hint=hint, candidates=candidates
        ) from None
    return image_output(result.image, result)


@published(generate_image)
def TextToImage(keywords: Keywords) -> PublishedImage:
    """Make an image of what keywords say."""
    result = generate_image.function(keywords)
    return image_output(result.image, result)


@published(stylize_image)
def ImageStylization(
    image: PictureFile,
    instruction: Annotated[
        str, Field(min_length=1, max_length=2000, description="how to change the image")
    ],
) -> PublishedImage:
    """Change an image as an instruction says, for instance: turn him into a cyborg."""
    result = stylize_image.function(image, instruction)
    return image_output(result.image, result)
