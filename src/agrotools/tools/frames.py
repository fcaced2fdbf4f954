"""The wire between the executor and its workers: one JSON message, then the bytes it speaks of.

A frame is the length of the JSON (4 bytes, big-endian), the length of all that follows it (8 bytes), the JSON, and the
contents of artifacts one after the other; the message says how long each is.
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import orjson

_HEADER = struct.Struct(">IQ")

Reply = tuple[dict[str, Any], list[bytes]]
"""What a frame holds: the message and the contents of its artifacts."""

LARGEST_MESSAGE = 16 * 2**20
LARGEST_CONTENT = 256 * 2**20


class BrokenFrame(Exception):
    """What came is no frame: the other side is gone or does not speak this language."""


def packed(message: dict[str, Any], contents: Sequence[bytes] = ()) -> bytes:
    """A message and its contents as one frame.

    Raises:
        OverflowError: more than a frame may hold.
    """
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
    return _unpacked(source.read(head), source.read(total))


async def receive_frame(source: asyncio.StreamReader) -> Reply:
    """The next frame.

    Raises:
        BrokenFrame: the stream ended, or what came is no frame.
    """
    try:
        head, total = _HEADER.unpack(await source.readexactly(_HEADER.size))
        if head > LARGEST_MESSAGE or total > LARGEST_CONTENT:
            raise BrokenFrame("the frame is too large")
        return _unpacked(await source.readexactly(head), await source.readexactly(total))
    except (asyncio.IncompleteReadError, ConnectionError, orjson.JSONDecodeError) as error:
        raise BrokenFrame(str(error)) from error


def _unpacked(head: bytes, rest: bytes) -> Reply:
    message: dict[str, Any] = orjson.loads(head)
    contents: list[bytes] = []
    start = 0
    for length in message.pop("lengths", []):
        contents.append(rest[start : start + length])
        start += length
    return message, contents
