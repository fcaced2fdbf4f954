"""Questions of a tool to the vision model: pictures as it gets them, the reply in the form that was asked for."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from agrotools.core import ToolError
from agrotools.text.loose_json import NotJson, loads, values_in
from agrotools.tools.services import MOST_QUESTIONS, NAME_A_MODEL, Question
from agrotools.tools.workspace import vision_in_use
from agrotools.vision import Box

FLAG = "model_opinion"
_LONGEST_REPLY = 100_000
_LONGEST_QUOTED = 4_000
_MOST_VALUES = 20
_SHOWN = 80

ReplyType = TypeVar("ReplyType", bound=BaseModel)


class ModelReply(BaseModel):
    """Base of what a model is asked to reply. More than was asked for is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


def ask_model(
    text: str,
    jpeg: bytes,
    reply_type: type[ReplyType],
    check: Callable[[ReplyType], str | None] = lambda _reply: None,
    *,
    max_output_tokens: int = 1024,
    more: tuple[bytes, ...] = (),
) -> tuple[ReplyType, str]:
    """Ask the vision model of the running tool; its reply in the form that was asked for, and the note on it.

    A reply that is not in that form gets one question that says what is wrong with it.

    Args:
        text: what is wanted, in words. The schema of ``reply_type`` is written below it.
        jpeg: the picture, see :func:`picture_for_model`.
        reply_type: what the reply is read as.
        check: what is wrong with a reply that has the form; None where nothing is.
        max_output_tokens: of the reply.
        more: further pictures, shown after the first.

    Raises:
        ToolError: ``backend_unavailable`` (no vision model), ``tool_failed`` (two replies in no usable form), and what
            the endpoint's failures are told as.
    """
    model = vision_in_use()
    if model is None:
        raise ToolError("backend_unavailable", "the back-end vlm has no model to ask", hint=NAME_A_MODEL)
    schema = reply_type.model_json_schema()
    form = f"Reply with one JSON object and nothing else. Its JSON Schema:\n{orjson.dumps(schema).decode()}"
    question = Question(f"{text}\n\n{form}", jpeg, schema, max_output_tokens, more=more)
    for _ in range(MOST_QUESTIONS):
        reply = model.ask(question)
        read, fault = _read(reply, reply_type, check)
        if read is not None:
            return read, f"said by the model {model.name}, not measured"
        question = replace(question, earlier=(reply[:_LONGEST_QUOTED], fault))
    raise ToolError(
        "tool_failed",
        f"the model {model.name} gave no usable reply: {fault}",  # pyright: ignore[reportPossiblyUnboundVariable]
        hint="another region or question may work; if not, use another model or back-end",
    )


def _read(
    reply: str, reply_type: type[ReplyType], check: Callable[[ReplyType], str | None]
) -> tuple[ReplyType | None, str]:
    """The last value in a reply that is what was wanted; else what is wrong with the last."""
    text = reply[-_LONGEST_REPLY:]
    fault = f"it holds no JSON: {_excerpt(text)}" if text.strip() else "it is empty"
    is_last = True
    for start, end in reversed(values_in(text)[-_MOST_VALUES:]):
        try:
            read = reply_type.model_validate(loads(text[start:end]))
            wrong = check(read)
        except NotJson as error:
            wrong = f"its JSON cannot be read: {error}"
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the object"
            wrong = f"{where}: {first['msg']}"
        else:
            if wrong is None:
                return read, ""
        if is_last:
            fault, is_last = wrong[:300], False
    return None, fault


def _excerpt(text: str) -> str:
    line = " ".join(text[: 10 * _SHOWN].split())
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")


LONGEST_SIDE_PX = 1568
_QUALITY = 90


@dataclass(frozen=True)
class ModelPicture:
    """The part ``box`` of a picture (in its pixels), encoded; ``width_px`` and ``height_px`` are those sent."""

    jpeg: bytes
    width_px: int
    height_px: int
    box: Box

    def original(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Boxes (n, 4) in pixels as sent, in pixels of the picture; what stands over its edge is cut off."""
        x0, y0, x1, y1 = self.box
        across, down = (x1 - x0) / self.width_px, (y1 - y0) / self.height_px
        placed = boxes * np.array([across, down, across, down]) + np.array([x0, y0, x0, y0])
        return np.clip(placed, [x0, y0, x0, y0], [x1, y1, x1, y1])


def picture_for_model(pixels: NDArray[np.uint8], box: Box) -> ModelPicture:
    """The part ``box`` of a picture, uint8 (rows, columns, 3), as a JPEG of at most 1,568 px a side."""
    from PIL import Image

    x0, y0, x1, y1 = box
    image = Image.fromarray(np.ascontiguousarray(pixels[y0:y1, x0:x1]))
    image.thumbnail((LONGEST_SIDE_PX, LONGEST_SIDE_PX), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=_QUALITY)
    return ModelPicture(out.getvalue(), image.width, image.height, box)


class TextAnswer(NamedTuple):
    """Words, and what to say of them."""

    text: str
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class DetectedBoxes(NamedTuple):
    """Boxes (n, 4) in pixels of the whole picture and scores (n,), best first; what to say of them."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class RankedNames(NamedTuple):
    """``candidates``: names of the list with scores in 0..1, best first; empty where the model sees none of them."""

    candidates: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class LabelledBoxes(NamedTuple):
    """Boxes (n, 4) in pixels of the whole picture, scores (n,) and a name or text of each; what to say of them."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: list[str]
    notes: tuple[str, ...]
    flags: tuple[str, ...]


class OutlineSet(NamedTuple):
    """Outlines, each (points, 2) in pixels of the whole picture, and a score of each; what to say of them."""

    outlines: list[NDArray[np.float64]]
    scores: list[float]
    notes: tuple[str, ...]
    flags: tuple[str, ...]
