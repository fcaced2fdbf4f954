"""Frames between the executor and its workers: one JSON message, then the bytes of its artifacts.

A frame is the length of the JSON (4 bytes, big-endian), the length of all that follows it (8 bytes), the JSON, and the
contents of artifacts one after the other; the message says how long each is.
"""

import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import orjson

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
