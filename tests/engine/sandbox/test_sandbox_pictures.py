"""Pictures as a worker could send them."""

import struct
import zlib

import pytest

from agrotools.sandbox.result import DEFAULT_LIMITS, BadPicture, check_picture


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _size(side: int) -> bytes:
    return _chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))


@pytest.mark.parametrize("before", [_size(1), _chunk(b"tEXt", struct.pack(">II", 1, 1) + b"a\0b")])
def test_the_size_that_counts_is_the_one_that_is_decoded(before: bytes) -> None:
    pixels = _chunk(b"IDAT", zlib.compress(bytes(9001 * 9000)))
    content = b"\x89PNG\r\n\x1a\n" + before + _size(9000) + pixels + _chunk(b"IEND", b"")
    with pytest.raises(BadPicture, match="9000 x 9000 pixels"):
        check_picture("plot.png", content, DEFAULT_LIMITS)
