"""What the general tools ask a vision model: words on a picture, a change, lines of text, named and outlined things."""

from typing import Annotated

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from agrotools.tools.vlm.asking import FLAG, ModelReply, asked
from agrotools.tools.vlm.picture import ModelPicture, picture_for_model
from agrotools.tools.vlm.said import Labelled, Outlined, Said
from agrotools.vision.formats import Box

LONGEST = 1500
MOST_THINGS = 300
_OVER_EDGE = 0.02
_LONG_REPLY = 12_000

Edges = Annotated[
    tuple[float, float, float, float],
    Field(description="[x0, y0, x1, y1] in pixels of the picture as shown, x to the right, y down"),
]


class Words(ModelReply):
    """What was asked for, in words."""

    answer: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST),
        Field(description="plain text, at most a few sentences"),
    ]


class Formula(ModelReply):
    """A formula."""

    latex: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST),
        Field(description="LaTeX, without dollar signs around it; several formulas on lines of their own"),
    ]


class NamedThing(ModelReply):
    """One thing, or one line of text."""

    name: Annotated[str, Field(min_length=1, max_length=500, description="what it is, or what the line says")]
    box: Edges
    score: Annotated[float, Field(ge=0, le=1, description="how sure you are, 0 to 1")] = 1.0


class NamedThings(ModelReply):
    """All of them."""

    things: Annotated[list[NamedThing], Field(max_length=MOST_THINGS, description="each once; [] for none")]


class OutlinedThing(ModelReply):
    """One thing and its outline."""

    outline: Annotated[
        list[tuple[float, float]],
        Field(min_length=3, max_length=200, description="[[x, y], ...] around the thing, pixels of the picture"),
    ]
    score: Annotated[float, Field(ge=0, le=1, description="how sure you are, 0 to 1")] = 1.0


class OutlinedThings(ModelReply):
    """All of them."""

    things: Annotated[list[OutlinedThing], Field(max_length=100, description="each once; [] for none")]


def describe_picture(pixels: NDArray[np.uint8], box: Box, question: str | None) -> Said:
    """What a picture, uint8 (rows, columns, 3), shows in the part ``box``, or the answer to ``question``.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    wanted = (
        f"Answer this question about the picture: {_quoted(question)}"
        if question
        else "Describe what this picture shows: what there is, where, and what it looks like."
    )
    return _words(wanted, picture_for_model(pixels, box), ())


def describe_part(pixels: NDArray[np.uint8], box: Box, attribute: str) -> Said:
    """What ``attribute`` the thing in the part ``box`` of a picture has. The model sees the part and where it lies.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    height, width = pixels.shape[:2]
    part = picture_for_model(pixels, box)
    whole = picture_for_model(_framed(pixels, box), (0, 0, width, height))
    wanted = (
        "The first picture is a part of the second, where a magenta frame shows it. Say of the thing in the first "
        f"picture what its {_quoted(attribute)} is."
    )
    return _words(wanted, part, (whole.jpeg,))


def compare(before: NDArray[np.uint8], after: NDArray[np.uint8], question: str) -> Said:
    """What changed from one picture to another, both uint8 (rows, columns, 3), as far as ``question`` asks for it.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    first, second = (picture_for_model(each, (0, 0, each.shape[1], each.shape[0])) for each in (before, after))
    wanted = (
        "The two pictures show one place, the first one earlier and the second one later. Say what has changed, as "
        f"far as this asks for it: {_quoted(question)}"
    )
    return _words(wanted, first, (second.jpeg,))


def read_latex(pixels: NDArray[np.uint8], box: Box) -> Said:
    """The formula in the part ``box`` of a picture, as LaTeX.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    picture = picture_for_model(pixels, box)
    said, note = asked("Write the formula in this picture as LaTeX, exactly as it stands.", picture.jpeg, Formula)
    return Said(said.latex, (f"formula: {note}",), (FLAG,))


def name_things(pixels: NDArray[np.uint8], box: Box, names: tuple[str, ...]) -> Labelled:
    """All things of ``names`` in the part ``box`` of a picture.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`; a name outside the list is no usable reply.
    """
    wanted = (
        "Find every object in the picture that is of one of these kinds, and give it the kind's name exactly as it "
        f"stands here: {_quoted(list(names))}."
    )
    return _things(wanted, pixels, box, frozenset(names))


def read_lines(pixels: NDArray[np.uint8], box: Box) -> Labelled:
    """The lines of text in the part ``box`` of a picture, in reading order.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    wanted = (
        "Read all text in the picture, line by line in reading order, exactly as it stands, misprints included: one "
        "entry for each line, its text as the name, in the language it is written in."
    )
    return _things(wanted, pixels, box, None)


def outline_things(pixels: NDArray[np.uint8], box: Box, text: str) -> Outlined:
    """The outlines of what ``text`` names in the part ``box`` of a picture.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`.
    """
    picture = picture_for_model(pixels, box)
    wanted = (
        f"Outline every {_quoted(text)} in this picture of {picture.width_px} x {picture.height_px} pixels as closely "
        "as you can, in pixels of this picture. Outline nothing twice."
    )

    def fault(seen: OutlinedThings) -> str | None:
        for number, thing in enumerate(seen.things):
            if not all(_inside(picture, x, y) for x, y in thing.outline):
                return f"things.{number}.outline leaves the picture of {picture.width_px} x {picture.height_px} pixels"
        return None

    seen, note = asked(wanted, picture.jpeg, OutlinedThings, fault, max_output_tokens=_LONG_REPLY)
    outlines = [
        picture.original(np.array([[x, y, x, y] for x, y in thing.outline], np.float64))[:, :2] for thing in seen.things
    ]
    return Outlined(outlines, [thing.score for thing in seen.things], (f"outlines: {note}",), (FLAG,))


def _words(wanted: str, picture: ModelPicture, more: tuple[bytes, ...]) -> Said:
    said, note = asked(wanted, picture.jpeg, Words, more=more)
    return Said(said.answer, (f"answer: {note}",), (FLAG,))


def _things(wanted: str, pixels: NDArray[np.uint8], box: Box, names: frozenset[str] | None) -> Labelled:
    picture = picture_for_model(pixels, box)
    size = f"{picture.width_px} x {picture.height_px} pixels"
    text = f"{wanted} Give each a box that fits it closely, in pixels of this picture of {size}."

    def fault(seen: NamedThings) -> str | None:
        for number, thing in enumerate(seen.things):
            x0, y0, x1, y1 = thing.box
            if not (x0 < x1 and y0 < y1 and _inside(picture, x0, y0) and _inside(picture, x1, y1)):
                return f"things.{number}.box {list(thing.box)} is no box inside the picture of {size}"
            if names is not None and thing.name not in names:
                return f"things.{number}.name {thing.name[:60]!r} is not in the list"
        return None

    seen, note = asked(text, picture.jpeg, NamedThings, fault, max_output_tokens=_LONG_REPLY)
    boxes = picture.original(np.array([thing.box for thing in seen.things], np.float64).reshape(-1, 4))
    scores = np.array([thing.score for thing in seen.things], np.float64)
    labels = [" ".join(thing.name.split()) for thing in seen.things]
    return Labelled(boxes, scores, labels, (note, "scores are the model's own word"), (FLAG,))


def _inside(picture: ModelPicture, x: float, y: float) -> bool:
    across, down = _OVER_EDGE * picture.width_px, _OVER_EDGE * picture.height_px
    return -across <= x <= picture.width_px + across and -down <= y <= picture.height_px + down


def _framed(pixels: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    import cv2

    framed = pixels.copy()
    width = max(2, round(max(pixels.shape[:2]) / 250))
    cv2.rectangle(framed, (box[0], box[1]), (box[2] - 1, box[3] - 1), (255, 0, 255), width)
    return framed


def _quoted(value: object) -> str:
    return orjson.dumps(value).decode()
