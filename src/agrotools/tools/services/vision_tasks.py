"""Tasks of tools for a vision model: description, naming, counting, reading, outlining.

Pictures are uint8 (rows, columns, 3). Every function raises a ``ToolError`` as :func:`ask_model` does.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import AliasChoices, Field, StringConstraints, model_validator

from agrotools.tools.services.vision_client import (
    FLAG,
    DetectedBoxes,
    LabelledBoxes,
    ModelPicture,
    ModelReply,
    OutlineSet,
    RankedNames,
    TextAnswer,
    ask_model,
    picture_for_model,
)
from agrotools.vision import Box

LONGEST = 1500
MOST_THINGS = 300
_OVER_EDGE = 0.02
_LONG_REPLY = 12_000
"""Output tokens, enough for 300 boxes; a budget sets this much aside for each question."""
_OWN_WORD = "scores are the model's own word"

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


def describe_picture(pixels: NDArray[np.uint8], box: Box, question: str | None) -> TextAnswer:
    """Description of the part ``box`` of a picture, uint8 (rows, columns, 3), or the answer to ``question``."""
    instruction = (
        f"Answer this question about the picture: {_quote(question)}"
        if question
        else "Describe what this picture shows: what there is, where, and what it looks like."
    )
    return _ask_words(instruction, picture_for_model(pixels, box), ())


def describe_part(pixels: NDArray[np.uint8], box: Box, attribute: str) -> TextAnswer:
    """Value of ``attribute`` for the object in the part ``box`` of a picture. The model sees the part in its place."""
    height, width = pixels.shape[:2]
    part = picture_for_model(pixels, box)
    whole = picture_for_model(_draw_frame(pixels, box), (0, 0, width, height))
    instruction = (
        "The first picture is a part of the second, where a magenta frame shows it. Say of the thing in the first "
        f"picture what its {_quote(attribute)} is."
    )
    return _ask_words(instruction, part, (whole.jpeg,))


def compare(before: NDArray[np.uint8], after: NDArray[np.uint8], question: str) -> TextAnswer:
    """Changes from one picture to another, both uint8 (rows, columns, 3), as far as ``question`` asks for them."""
    first, second = (picture_for_model(each, (0, 0, each.shape[1], each.shape[0])) for each in (before, after))
    instruction = (
        "The two pictures show one place, the first one earlier and the second one later. Say what has changed, as "
        f"far as this asks for it: {_quote(question)}"
    )
    return _ask_words(instruction, first, (second.jpeg,))


def read_latex(pixels: NDArray[np.uint8], box: Box) -> TextAnswer:
    """The formula in the part ``box`` of a picture, as LaTeX."""
    picture = picture_for_model(pixels, box)
    reply, note = ask_model("Write the formula in this picture as LaTeX, exactly as it stands.", picture.jpeg, Formula)
    return TextAnswer(reply.latex, (f"formula: {note}",), (FLAG,))


def name_things(pixels: NDArray[np.uint8], box: Box, names: tuple[str, ...]) -> LabelledBoxes:
    """All things of ``names`` in the part ``box`` of a picture.

    A name outside the list is no usable reply.
    """
    instruction = (
        "Find every object in the picture that is of one of these kinds, and give it the kind's name exactly as it "
        f"stands here: {_quote(list(names))}."
    )
    return _ask_things(instruction, pixels, box, frozenset(names))


def read_lines(pixels: NDArray[np.uint8], box: Box) -> LabelledBoxes:
    """The lines of text in the part ``box`` of a picture, in reading order."""
    instruction = (
        "Read all text in the picture, line by line in reading order, exactly as it stands, misprints included: one "
        "entry for each line, its text as the name, in the language it is written in."
    )
    return _ask_things(instruction, pixels, box, None)


def outline_things(pixels: NDArray[np.uint8], box: Box, text: str) -> OutlineSet:
    """The outlines of what ``text`` names in the part ``box`` of a picture."""
    picture = picture_for_model(pixels, box)
    instruction = (
        f"Outline every {_quote(text)} in this picture of {picture.width_px} x {picture.height_px} pixels as closely "
        "as you can, in pixels of this picture. Outline nothing twice."
    )

    def fault(seen: OutlinedThings) -> str | None:
        for number, thing in enumerate(seen.things):
            if not all(_is_inside(picture, x, y) for x, y in thing.outline):
                return f"things.{number}.outline leaves the picture of {picture.width_px} x {picture.height_px} pixels"
        return None

    seen, note = ask_model(instruction, picture.jpeg, OutlinedThings, fault, max_output_tokens=_LONG_REPLY)
    outlines = [
        picture.original(np.array([[x, y, x, y] for x, y in thing.outline], np.float64))[:, :2] for thing in seen.things
    ]
    return OutlineSet(outlines, [thing.score for thing in seen.things], (f"outlines: {note}",), (FLAG,))


def _ask_words(instruction: str, picture: ModelPicture, more: tuple[bytes, ...]) -> TextAnswer:
    reply, note = ask_model(instruction, picture.jpeg, Words, more=more)
    return TextAnswer(reply.answer, (f"answer: {note}",), (FLAG,))


def _ask_things(instruction: str, pixels: NDArray[np.uint8], box: Box, names: frozenset[str] | None) -> LabelledBoxes:
    picture = picture_for_model(pixels, box)
    size = f"{picture.width_px} x {picture.height_px} pixels"
    text = f"{instruction} Give each a box that fits it closely, in pixels of this picture of {size}."

    def fault(seen: NamedThings) -> str | None:
        for number, thing in enumerate(seen.things):
            if not _is_box_inside(picture, thing.box):
                return f"things.{number}.box {list(thing.box)} is no box inside the picture of {size}"
            if names is not None and thing.name not in names:
                return f"things.{number}.name {thing.name[:60]!r} is not in the list"
        return None

    seen, note = ask_model(text, picture.jpeg, NamedThings, fault, max_output_tokens=_LONG_REPLY)
    boxes = picture.original(np.array([thing.box for thing in seen.things], np.float64).reshape(-1, 4))
    scores = np.array([thing.score for thing in seen.things], np.float64)
    labels = [" ".join(thing.name.split()) for thing in seen.things]
    return LabelledBoxes(boxes, scores, labels, (note, _OWN_WORD), (FLAG,))


def _is_inside(picture: ModelPicture, x: float, y: float) -> bool:
    across, down = _OVER_EDGE * picture.width_px, _OVER_EDGE * picture.height_px
    return -across <= x <= picture.width_px + across and -down <= y <= picture.height_px + down


def _is_box_inside(picture: ModelPicture, box: tuple[float, float, float, float]) -> bool:
    x0, y0, x1, y1 = box
    return x0 < x1 and y0 < y1 and _is_inside(picture, x0, y0) and _is_inside(picture, x1, y1)


def _draw_frame(pixels: NDArray[np.uint8], box: Box) -> NDArray[np.uint8]:
    import cv2

    framed = pixels.copy()
    width = max(2, round(max(pixels.shape[:2]) / 250))
    cv2.rectangle(framed, (box[0], box[1]), (box[2] - 1, box[3] - 1), (255, 0, 255), width)
    return framed


def _quote(value: object) -> str:
    return orjson.dumps(value).decode()


MOST_OBJECTS = 500


class SeenObject(ModelReply):
    """One of the things."""

    box: Annotated[
        tuple[float, float, float, float],
        Field(
            validation_alias=AliasChoices("box", "bbox_2d", "bbox"),
            description="[x0, y0, x1, y1] in pixels of the picture as shown, x to the right, y down",
        ),
    ]
    score: Annotated[float, Field(ge=0, le=1, description="how sure you are that it is one, 0 to 1")] = 1.0


class SeenObjects(ModelReply):
    """All things of the kind that was asked for."""

    objects: Annotated[list[SeenObject], Field(max_length=MOST_OBJECTS, description="each thing once; [] for none")]

    @model_validator(mode="before")
    @classmethod
    def _of_bare_list(cls, value: Any) -> Any:
        return {"objects": value} if isinstance(value, list) else value


def locate_by_model(pixels: NDArray[np.uint8], box: Box, target: str) -> DetectedBoxes:
    """Boxes of ``target`` by a vision model in the part ``box`` of a picture, uint8 (rows, columns, 3)."""
    picture = picture_for_model(pixels, box)
    width, height = picture.width_px, picture.height_px
    text = (
        f"Find every {_quote(target)} in this picture of {width} x {height} pixels. Give each one a box that fits it "
        f"closely, in pixels of this picture: x from 0 to {width}, y from 0 to {height}. Count nothing twice, and "
        "leave out nothing that is partly hidden but surely there."
    )

    def fault(seen: SeenObjects) -> str | None:
        for number, thing in enumerate(seen.objects):
            if not _is_box_inside(picture, thing.box):
                return (
                    f"objects.{number}.box {list(thing.box)} is no box inside the picture of {width} x {height} pixels"
                )
        return None

    seen, note = ask_model(text, picture.jpeg, SeenObjects, fault, max_output_tokens=_LONG_REPLY)
    boxes = picture.original(np.array([thing.box for thing in seen.objects], np.float64).reshape(-1, 4))
    scores = np.array([thing.score for thing in seen.objects], np.float64)
    order = np.lexsort((boxes[:, 0], boxes[:, 1], -scores))
    return DetectedBoxes(boxes[order], scores[order], (note, _OWN_WORD), (FLAG,))


class SeenRegion(ModelReply):
    """What the picture shows."""

    description: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST),
        Field(description="plain text, a few sentences"),
    ]


def describe(pixels: NDArray[np.uint8], box: Box, question: str | None) -> TextAnswer:
    """Description by a vision model of the part ``box`` of a picture, or its answer to ``question``."""
    picture = picture_for_model(pixels, box)
    instruction = (
        f"Answer this question about the picture: {_quote(question)}"
        if question
        else "Describe what this picture shows: plants and their state, soil, water, buildings, damage."
    )
    text = f"{instruction} Give no amounts that would have to be measured."
    seen, note = ask_model(text, picture.jpeg, SeenRegion)
    return TextAnswer(seen.description, (f"description: {note}",), (FLAG,))


MOST_NAMES = 400


class NamedGuess(ModelReply):
    """One name that may be the right one."""

    name: Annotated[str, Field(description="exactly as it stands in the list")]
    score: Annotated[float, Field(ge=0, le=1, description="how likely it is the right one, 0 to 1")]


class NamedGuesses(ModelReply):
    """The names that may be right, the likeliest first."""

    candidates: Annotated[list[NamedGuess], Field(max_length=20, description="[] where none of the list is shown")]


def choose_name(
    pixels: NDArray[np.uint8], box: Box, what: str, names: Sequence[str], *, top_k: int = 3, hint: str = ""
) -> RankedNames:
    """Names chosen by a vision model for the part ``box`` of a picture, uint8 (rows, columns, 3).

    Args:
        what: what is to be named: "weed species", "disease or pest of bean".
        names: all that may be said; at least one, at most 400.
        top_k: candidates at most.
        hint: a sentence more about the picture.

    A name outside the list is no usable reply.
    """
    picture = picture_for_model(pixels, box)
    known = {_folded(name): name for name in names[:MOST_NAMES]}
    text = (
        f"Which {what} does this picture show? {hint}\nChoose from this list and from nothing else: "
        f"{_quote(list(known.values()))}\nGive up to {top_k} candidates, the likeliest first. The "
        "scores together are at most 1. If it is none of them, or nothing can be told, give no candidates."
    )

    def fault(guesses: NamedGuesses) -> str | None:
        outside = [guess.name for guess in guesses.candidates if _folded(guess.name) not in known]
        return f"{outside[0][:60]!r} is not in the list" if outside else None

    guesses, note = ask_model(text, picture.jpeg, NamedGuesses, fault)
    best: dict[str, float] = {}
    for guess in guesses.candidates:
        name = known[_folded(guess.name)]
        best[name] = max(guess.score, best.get(name, 0.0))
    ranked = sorted(best.items(), key=lambda item: -item[1])[:top_k]
    return RankedNames(tuple(ranked), (f"name: {note}", f"{_OWN_WORD}, not calibrated"), (FLAG,))


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())
