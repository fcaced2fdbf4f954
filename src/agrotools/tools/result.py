"""Result of a tool, its plain JSON form, and the frames in which it travels between the executor and its workers.

A frame is the length of the JSON (4 bytes, big-endian), the length of all that follows it (8 bytes), the JSON, and the
contents of artifacts one after the other; the message says how long each is.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, BinaryIO, cast

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue

from agrotools.core import Artifact

ARTIFACT_KEY = "$artifact"
"""In an encoded result, ``{"$artifact": n}`` stands where the name of the n-th artifact will be written."""


class ToolResult(BaseModel):
    """Base of all results. Fields carry their unit in the name; a field of type ``Artifact`` is a file that was made.

    A line of text below a field is its description. ``notes`` say what the numbers rest on (method, scale used);
    ``flags`` are short identifiers that say where they may be wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class ResultPart(BaseModel):
    """Base of the records inside a result."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)


def encode_result(
    result: ToolResult, significant_digits: int | None = 6
) -> tuple[dict[str, JsonValue], tuple[Artifact, ...]]:
    """The result as JSON with place holders for its artifacts, and the artifacts, numbered in order of appearance.

    Floats are rounded to ``significant_digits`` (None: as they are); NaN and infinities become null, since JSON has
    neither; integers beyond 64 bits become floats. Notes and flags come last.
    """
    artifacts: list[Artifact] = []

    def plain(value: Any) -> JsonValue:
        if isinstance(value, Artifact):
            if value not in artifacts:
                artifacts.append(value)
            return {ARTIFACT_KEY: artifacts.index(value)}
        if isinstance(value, BaseModel):
            names = {name: field.alias or name for name, field in type(value).model_fields.items()}
            return {alias: plain(getattr(value, name)) for name, alias in names.items()}
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, Enum):
            return plain(value.value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return round_significant(float(value), significant_digits)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return round_significant(value, significant_digits)
        if hasattr(value, "tolist"):  # numpy scalars and arrays, without importing numpy
            return plain(value.tolist())
        if isinstance(value, (list, tuple, set, frozenset)):
            return [plain(item) for item in value]
        raise TypeError(f"a result cannot hold a {type(value).__name__}")

    encoded = cast(dict[str, JsonValue], plain(result))
    for name in ("notes", "flags"):
        encoded[name] = encoded.pop(name)
    return encoded, tuple(artifacts)


def round_significant(value: float, significant_digits: int | None) -> float | None:
    """``value`` to that many significant digits; None where it is not finite."""
    if not math.isfinite(value):
        return None
    return value if significant_digits is None else float(f"{value:.{significant_digits}g}")


def with_artifact_names(value: JsonValue, names: list[str]) -> JsonValue:
    """An encoded result with the names of its artifacts written in place of the numbers."""
    if isinstance(value, dict):
        if value.keys() == {ARTIFACT_KEY}:
            return names[cast(int, value[ARTIFACT_KEY])]
        return {key: with_artifact_names(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [with_artifact_names(item, names) for item in value]
    return value


_HEADER = struct.Struct(">IQ")

Reply = tuple[dict[str, Any], list[bytes]]
"""Message and the contents of its artifacts."""

LARGEST_MESSAGE = 16 * 2**20
LARGEST_CONTENT = 256 * 2**20


class BrokenFrame(Exception):
    """Invalid frame: the other side is gone or does not follow this format."""


def pack_frame(message: dict[str, Any], contents: Sequence[bytes] = ()) -> bytes:
    """A message and its contents as one frame.

    Raises:
        OverflowError: more than a frame may hold.
    """
    if contents:
        message = {**message, "lengths": [len(content) for content in contents]}
    head = orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS)
    total = sum(len(content) for content in contents)
    if len(head) > LARGEST_MESSAGE or total > LARGEST_CONTENT:
        raise OverflowError(f"the message has {len(head)} bytes and {total} bytes of artifacts")
    return b"".join((_HEADER.pack(len(head), total), head, *contents))


def read_frame(source: BinaryIO) -> Reply | None:
    """The next frame, blocking; None at the end of the stream."""
    header = source.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    head, total = _HEADER.unpack(header)
    return _unpack(source.read(head), source.read(total))


class FrameReader:
    """Puts frames together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = 0
        """Length of the frame that is arriving; 0 while its header is not complete."""

    @property
    def empty(self) -> bool:
        """True if no byte has arrived since the last complete frame."""
        return not self._buffer

    def feed(self, data: bytes) -> Reply | None:
        """The frame that ``data`` completes, if it does. What comes behind it is kept.

        Raises:
            BrokenFrame: what came is no frame.
        """
        self._buffer += data
        if not self._needed:
            if len(self._buffer) < _HEADER.size:
                return None
            head, total = _HEADER.unpack_from(self._buffer)
            if head > LARGEST_MESSAGE or total > LARGEST_CONTENT:
                raise BrokenFrame("the frame is too large")
            self._needed = _HEADER.size + head + total
        if len(self._buffer) < self._needed:
            return None
        head, _ = _HEADER.unpack_from(self._buffer)
        middle = _HEADER.size + head
        with memoryview(self._buffer) as view:
            body, rest = bytes(view[_HEADER.size : middle]), bytes(view[middle : self._needed])
        del self._buffer[: self._needed]
        self._needed = 0
        return _unpack(body, rest)


def _unpack(head: bytes, rest: bytes) -> Reply:
    try:
        message = orjson.loads(head)
        lengths = message.pop("lengths", [])
        contents: list[bytes] = []
        start = 0
        for length in lengths:
            contents.append(rest[start : start + length])
            start += length
    except (orjson.JSONDecodeError, AttributeError, TypeError) as error:
        raise BrokenFrame(f"the message is no JSON object: {error}") from error
    return message, contents
