"""Tasks for the vision model: encoding of pictures, questions, and validated replies. Pictures are uint8 (rows,
columns, 3). Every task raises the errors of :func:`ask_model`."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from agrotools.calling.services import MOST_QUESTIONS, NAME_A_MODEL, Question
from agrotools.calling.workspace import vision_in_use
from agrotools.core import ToolError
from agrotools.text.loose_json import NotJson, loads, values_in
from agrotools.vision import Box
from agrotools.vision.reading import crop_pixels

FLAG = "model_opinion"
_LONGEST_REPLY = 100_000
_LONGEST_QUOTED = 4_000
_MOST_VALUES = 20
_SHOWN = 80

ReplyType = TypeVar("ReplyType", bound=BaseModel)


class TextAnswer(NamedTuple):
    """Text of the model, with notes and flags."""

    text: str
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class FoundObjects(NamedTuple):
    """Boxes (n, 4) in pixels of the whole picture, scores (n,) and names, with notes and flags.

    ``names``: name of each object or text of each line; empty if all objects are of the requested kind.
    """

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    names: list[str]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class RankedNames(NamedTuple):
    """Ranked names, with notes and flags.

    ``candidates``: names from the given list with scores in 0..1, best first; empty if the model sees none of them.
    """

    candidates: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class ModelReply(BaseModel):
    """Base class of replies; additional fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


def ask_model(
    text: str,
    pictures: "tuple[ModelPicture, ...]",
    reply_type: type[ReplyType],
    check: Callable[[ReplyType], str | None] = lambda _reply: None,
    *,
    max_output_tokens: int = 1024,
) -> tuple[ReplyType, str]:
    """Ask the vision model of the running tool; return the reply and a note on its origin.

    The schema of ``reply_type`` is appended to the ``text``. After a reply that is invalid or has a fault by ``check``
    the model is asked once more, with the fault. ToolError ``backend_unavailable`` (no vision model), ``tool_failed``
    (two invalid replies), and errors of the endpoint.
    """
    model = vision_in_use()
    if model is None:
        raise ToolError(
            "backend_unavailable", "the back-end vlm has no model to ask", setup=NAME_A_MODEL
        )
    schema = reply_type.model_json_schema()
    form = f"Reply with one JSON object and nothing else. Its JSON Schema:\n{orjson.dumps(schema).decode()}"
    question = Question(
        f"{text}\n\n{form}", tuple(each.jpeg for each in pictures), schema, max_output_tokens
    )
    fault = ""
    for _ in range(MOST_QUESTIONS):
        reply = model.ask(question)
        read, fault = _read(reply, reply_type, check)
        if read is not None:
            return read, f"said by the model {model.name}, not measured"
        question = replace(question, earlier=(reply[:_LONGEST_QUOTED], fault))
    hint = "another region or question may work; if not, use another model or back-end"
    raise ToolError(
        "tool_failed", f"the model {model.name} gave no usable reply: {fault}", hint=hint
    )


def _read(
    reply: str, reply_type: type[ReplyType], check: Callable[[ReplyType], str | None]
) -> tuple[ReplyType | None, str]:
    """Return the last valid JSON value in a reply, or None and the fault in the last value."""
    text, faults = reply[-_LONGEST_REPLY:], list[str]()
    for start, end in reversed(values_in(text)[-_MOST_VALUES:]):
        try:
            read = reply_type.model_validate(loads(text[start:end]))
        except NotJson as error:
            faults.append(f"its JSON cannot be read: {error}")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            faults.append(f"{'.'.join(map(str, first['loc'])) or 'the object'}: {first['msg']}")
        else:
            if (wrong := check(read)) is None:
                return read, ""
            faults.append(wrong)
    line = " ".join(text[: 10 * _SHOWN].split())
    shown = line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
    return None, faults[0][
        :300
    ] if faults else f"it holds no JSON: {shown!r}" if line else "it is empty"


LONGEST_SIDE_PX = 1568
_QUALITY = 90


@dataclass(frozen=True)
class ModelPicture:
    """Encoded part ``box`` of a picture, in its pixels. ``width_px``, ``height_px``: size of the encoded picture."""

    jpeg: bytes
    width_px: int
    height_px: int
    box: Box

    @property
    def size(self) -> str:
        """Width and height in words."""
        return f"{self.width_px} x {self.height_px} pixels"

    def original(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert boxes (n, 4) from pixels of the encoded picture to pixels of the original, clipped to ``box``."""
        x0, y0, x1, y1 = self.box
        across, down = (x1 - x0) / self.width_px, (y1 - y0) / self.height_px
        placed = boxes * np.array([across, down, across, down]) + np.array([x0, y0, x0, y0])
        return np.clip(placed, [x0, y0, x0, y0], [x1, y1, x1, y1])


def picture_for_model(pixels: NDArray[np.uint8], box: Box) -> ModelPicture:
    """Encode the part ``box`` of a picture, uint8 (rows, columns, 3), as a JPEG of at most 1,568 px a side."""
    from PIL import Image

    image = Image.fromarray(crop_pixels(pixels, box))
    image.thumbnail((LONGEST_SIDE_PX, LONGEST_SIDE_PX), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=_QUALITY)
    return ModelPicture(out.getvalue(), image.width, image.height, box)


# Field order, names, descriptions and docstrings of the replies below are part of the prompts.
LONGEST = 1500
MOST_THINGS = 300
MOST_OBJECTS = 500
MOST_NAMES = 400
_OVER_EDGE = 0.02
_LONG_REPLY = 12_000
"""Output tokens that are enough for 300 boxes; a budget reserves this number for each question."""
_OWN_WORD = "scores are the model's own word"
_BOX = "[x0, y0, x1, y1] in pixels of the picture as shown, x to the right, y down"

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST)]
_Edges = tuple[float, float, float, float]


class Words(ModelReply):
    """What was asked for, in words."""

    answer: Annotated[_Text, Field(description="plain text, at most a few sentences")]


class Formula(ModelReply):
    """A formula."""

    latex: Annotated[
        _Text,
        Field(
            description="LaTeX, without dollar signs around it; several formulas on lines of their own"
        ),
    ]


class SeenRegion(ModelReply):
    """What the picture shows."""

    description: Annotated[_Text, Field(description="plain text, a few sentences")]


class NamedThing(ModelReply):
    """One thing, or one line of text."""

    name: Annotated[
        str, Field(min_length=1, max_length=500, description="what it is, or what the line says")
    ]
    box: Annotated[_Edges, Field(description=_BOX)]
    score: Annotated[float, Field(ge=0, le=1, description="how sure you are, 0 to 1")] = 1.0


class NamedThings(ModelReply):
    """All of them."""

    things: Annotated[
        list[NamedThing], Field(max_length=MOST_THINGS, description="each once; [] for none")
    ]


class OutlinedThing(ModelReply):
    """One thing and its outline."""

    outline: Annotated[
        list[tuple[float, float]],
        Field(
            min_length=3,
            max_length=200,
            description="[[x, y], ...] around the thing, pixels of the picture",
        ),
    ]
    score: Annotated[float, Field(ge=0, le=1, description="how sure you are, 0 to 1")] = 1.0


class OutlinedThings(ModelReply):
    """All of them."""

    things: Annotated[
        list[OutlinedThing], Field(max_length=100, description="each once; [] for none")
    ]


class SeenObject(ModelReply):
    """One of the things."""

    box: Annotated[
        _Edges, Field(validation_alias=AliasChoices("box", "bbox_2d", "bbox"), description=_BOX)
    ]
    score: Annotated[
        float, Field(ge=0, le=1, description="how sure you are that it is one, 0 to 1")
    ] = 1.0


class SeenObjects(ModelReply):
    """All things of the kind that was asked for."""

    objects: Annotated[
        list[SeenObject], Field(max_length=MOST_OBJECTS, description="each thing once; [] for none")
    ]

    @model_validator(mode="before")
    @classmethod
    def _of_bare_list(cls, value: Any) -> Any:
        return {"objects": value} if isinstance(value, list) else value


class NamedGuess(ModelReply):
    """One name that may be the right one."""

    name: Annotated[str, Field(description="exactly as it stands in the list")]
    score: Annotated[float, Field(ge=0, le=1, description="how likely it is the right one, 0 to 1")]


class NamedGuesses(ModelReply):
    """The names that may be right, the likeliest first."""

    candidates: Annotated[
        list[NamedGuess], Field(max_length=20, description="[] where none of the list is shown")
    ]


def describe_picture(pixels: NDArray[np.uint8], box: Box, question: str | None) -> TextAnswer:
    """Describe the part ``box`` of a picture, uint8 (rows, columns, 3), or answer ``question`` about it."""
    default = "Describe what this picture shows: what there is, where, and what it looks like."
    return _ask_words(_question_or(question, default), picture_for_model(pixels, box))


def describe(pixels: NDArray[np.uint8], box: Box, question: str | None) -> TextAnswer:
    """Describe the part ``box`` of an agricultural picture, or answer ``question`` about it, without measurements."""
    default = (
        "Describe what this picture shows: plants and their state, soil, water, buildings, damage."
    )
    text = f"{_question_or(question, default)} Give no amounts that would have to be measured."
    seen, note = ask_model(text, (picture_for_model(pixels, box),), SeenRegion)
    return TextAnswer(seen.description, (f"description: {note}",), (FLAG,))


def describe_part(pixels: NDArray[np.uint8], box: Box, attribute: str) -> TextAnswer:
    """Describe ``attribute`` of the object in the part ``box``, shown alone and with a frame in the picture."""
    instruction = (
        "The first picture is a part of the second, where a magenta frame shows it. Say of the thing in the first "
        f"picture what its {_quote(attribute)} is."
    )
    import cv2

    framed, width = pixels.copy(), max(2, round(max(pixels.shape[:2]) / 250))
    cv2.rectangle(framed, (box[0], box[1]), (box[2] - 1, box[3] - 1), (255, 0, 255), width)
    return _ask_words(instruction, picture_for_model(pixels, box), _whole(framed))


def compare(before: NDArray[np.uint8], after: NDArray[np.uint8], question: str) -> TextAnswer:
    """Describe the changes between two pictures, both uint8 (rows, columns, 3), that ``question`` asks for."""
    instruction = (
        "The two pictures show one place, the first one earlier and the second one later. Say what has changed, as "
        f"far as this asks for it: {_quote(question)}"
    )
    return _ask_words(instruction, _whole(before), _whole(after))


def read_latex(pixels: NDArray[np.uint8], box: Box) -> TextAnswer:
    """Read the formula in the part ``box`` of a picture as LaTeX."""
    picture = picture_for_model(pixels, box)
    reply, note = ask_model(
        "Write the formula in this picture as LaTeX, exactly as it stands.", (picture,), Formula
    )
    return TextAnswer(reply.latex, (f"formula: {note}",), (FLAG,))


def name_things(pixels: NDArray[np.uint8], box: Box, names: tuple[str, ...]) -> FoundObjects:
    """Find all objects of the kinds ``names`` in the part ``box`` of a picture; other names in a reply are invalid."""
    instruction = (
        "Find every object in the picture that is of one of these kinds, and give it the kind's name exactly as it "
        f"stands here: {_quote(list(names))}."
    )
    return _ask_things(instruction, pixels, box, frozenset(names))


def read_lines(pixels: NDArray[np.uint8], box: Box) -> FoundObjects:
    """Read the lines of text in the part ``box`` of a picture, in reading order."""
    instruction = (
        "Read all text in the picture, line by line in reading order, exactly as it stands, misprints included: one "
        "entry for each line, its text as the name, in the language it is written in."
    )
    return _ask_things(instruction, pixels, box, None)


def locate_by_model(pixels: NDArray[np.uint8], box: Box, target: str) -> FoundObjects:
    """Find ``target`` in the part ``box`` of a picture; boxes are sorted by score, best first."""
    picture = picture_for_model(pixels, box)
    text = (
        f"Find every {_quote(target)} in this picture of {picture.size}. Give each one a box that fits it "
        f"closely, in pixels of this picture: x from 0 to {picture.width_px}, y from 0 to {picture.height_px}. Count "
        "nothing twice, and leave out nothing that is partly hidden but surely there."
    )

    def fault(seen: SeenObjects) -> str | None:
        wrong = (
            _box_fault(picture, f"objects.{number}", thing.box)
            for number, thing in enumerate(seen.objects)
        )
        return next(filter(None, wrong), None)

    seen, note = ask_model(text, (picture,), SeenObjects, fault, max_output_tokens=_LONG_REPLY)
    boxes, scores = _placed(picture, seen.objects)
    order = np.lexsort((boxes[:, 0], boxes[:, 1], -scores))
    return FoundObjects(boxes[order], scores[order], [], (note, _OWN_WORD), (FLAG,))


def outline_things(
    pixels: NDArray[np.uint8], box: Box, text: str
) -> tuple[list[NDArray[np.float64]], list[float], tuple[str, ...], tuple[str, ...]]:
    """Outline the objects that ``text`` names in the part ``box`` of a picture: outlines, (points, 2) in pixels of
    the whole picture, their scores, notes and flags."""
    picture = picture_for_model(pixels, box)
    instruction = (
        f"Outline every {_quote(text)} in this picture of {picture.size} as closely "
        "as you can, in pixels of this picture. Outline nothing twice."
    )

    def fault(seen: OutlinedThings) -> str | None:
        for number, thing in enumerate(seen.things):
            if not all(_is_inside(picture, x, y) for x, y in thing.outline):
                return f"things.{number}.outline leaves the picture of {picture.size}"
        return None

    seen, note = ask_model(
        instruction, (picture,), OutlinedThings, fault, max_output_tokens=_LONG_REPLY
    )
    outlines = [
        picture.original(np.tile(np.array(thing.outline), 2))[:, :2] for thing in seen.things
    ]
    return outlines, [thing.score for thing in seen.things], (f"outlines: {note}",), (FLAG,)


def choose_name(
    pixels: NDArray[np.uint8], box: Box, what: str, names: Sequence[str], *, top_k: int = 3
) -> RankedNames:
    """Choose up to ``top_k`` of the first 400 ``names`` for the part ``box`` of a picture; a name outside the list
    makes a reply invalid. ``what``: kind of thing to name: "weed species", "disease or pest of bean"."""
    picture = picture_for_model(pixels, box)
    known = {_folded(name): name for name in names[:MOST_NAMES]}
    text = (
        f"Which {what} does this picture show? \nChoose from this list and from nothing else: "
        f"{_quote(list(known.values()))}\nGive up to {top_k} candidates, the likeliest first. The "
        "scores together are at most 1. If it is none of them, or nothing can be told, give no candidates."
    )

    def fault(guesses: NamedGuesses) -> str | None:
        outside = [guess.name for guess in guesses.candidates if _folded(guess.name) not in known]
        return f"{outside[0][:60]!r} is not in the list" if outside else None

    guesses, note = ask_model(text, (picture,), NamedGuesses, fault)
    best: dict[str, float] = {}
    for guess in guesses.candidates:
        name = known[_folded(guess.name)]
        best[name] = max(guess.score, best.get(name, 0.0))
    ranked = sorted(best.items(), key=lambda item: -item[1])[:top_k]
    return RankedNames(tuple(ranked), (f"name: {note}", f"{_OWN_WORD}, not calibrated"), (FLAG,))


def _question_or(question: str | None, default: str) -> str:
    return f"Answer this question about the picture: {_quote(question)}" if question else default


def _ask_words(instruction: str, *pictures: ModelPicture) -> TextAnswer:
    reply, note = ask_model(instruction, pictures, Words)
    return TextAnswer(reply.answer, (f"answer: {note}",), (FLAG,))


def _ask_things(
    instruction: str, pixels: NDArray[np.uint8], box: Box, names: frozenset[str] | None
) -> FoundObjects:
    picture = picture_for_model(pixels, box)
    text = f"{instruction} Give each a box that fits it closely, in pixels of this picture of {picture.size}."

    def fault(seen: NamedThings) -> str | None:
        for number, thing in enumerate(seen.things):
            if wrong := _box_fault(picture, f"things.{number}", thing.box):
                return wrong
            if names is not None and thing.name not in names:
                return f"things.{number}.name {thing.name[:60]!r} is not in the list"
        return None

    seen, note = ask_model(text, (picture,), NamedThings, fault, max_output_tokens=_LONG_REPLY)
    named = [" ".join(thing.name.split()) for thing in seen.things]
    return FoundObjects(*_placed(picture, seen.things), named, (note, _OWN_WORD), (FLAG,))


def _placed(
    picture: ModelPicture, things: "Sequence[NamedThing | SeenObject]"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return boxes (n, 4) in pixels of the whole picture and scores (n,)."""
    boxes = picture.original(np.array([thing.box for thing in things], np.float64).reshape(-1, 4))
    return boxes, np.array([thing.score for thing in things], np.float64)


def _is_inside(picture: ModelPicture, x: float, y: float) -> bool:
    across, down = _OVER_EDGE * picture.width_px, _OVER_EDGE * picture.height_px
    return -across <= x <= picture.width_px + across and -down <= y <= picture.height_px + down


def _box_fault(picture: ModelPicture, where: str, box: _Edges) -> str | None:
    x0, y0, x1, y1 = box
    if x0 < x1 and y0 < y1 and _is_inside(picture, x0, y0) and _is_inside(picture, x1, y1):
        return None
    return f"{where}.box {list(box)} is no box inside the picture of {picture.size}"


def _whole(pixels: NDArray[np.uint8]) -> ModelPicture:
    return picture_for_model(pixels, (0, 0, pixels.shape[1], pixels.shape[0]))


def _quote(value: object) -> str:
    return orjson.dumps(value).decode()


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())
