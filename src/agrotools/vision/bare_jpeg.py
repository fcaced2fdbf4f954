"""A JPEG stripped to what its picture needs, without decoding it: no comments, positions, dates, thumbnails, profiles.

Segments as in ITU-T T.81 (1992), annex B.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

_START = b"\xff\xd8"
_FRAMES = (0xC0, 0xC1, 0xC2)
"""Baseline, extended and progressive, Huffman-coded: what every reader of JPEG knows."""
_TABLES = (0xC4, 0xDB, 0xDD)
_JFIF, _EXIF, _MULTI_PICTURE, _ADOBE = 0xE0, 0xE1, 0xE2, 0xEE
_SCAN, _END = 0xDA, 0xD9
_MOST_BYTES = 8 * 2**20
# A literal first byte lets the search skip from one to the next: a repeat in its place takes sixty times as long.
_AFTER_SCAN = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")


@dataclass(frozen=True)
class BareJpeg:
    """The bytes of a picture alone, and its size."""

    content: bytes = field(repr=False)
    width_px: int
    height_px: int


def bare_jpeg(path: Path, longest_px: int) -> BareJpeg | None:
    """The picture of a JPEG file as it is stored, without anything else that the file says.

    None where that is not what a person would see, or not surely: other formats, pictures that are stored turned or
    in CMYK, several pictures in a file, rare codings, and files that are cut short. Pixels are not decoded: noise in
    them looks like noise to any decoder. None, too, for pictures of more than ``longest_px`` on a side, and for files
    of more bytes than such a picture takes.
    """
    try:
        # Not read up to a limit: that would make room for the limit first, at more cost than all the rest.
        bare = _strip(path.read_bytes()) if path.stat().st_size <= _MOST_BYTES else None
    except (OSError, IndexError):
        return None
    return bare if bare and max(bare.width_px, bare.height_px) <= longest_px else None


def _strip(data: bytes) -> BareJpeg | None:
    if not data.startswith(_START):
        return None
    whole = memoryview(data)
    kept: list[bytes | memoryview] = [_START]
    size: tuple[int, int] | None = None
    has_pixels = False
    at = len(_START)
    while True:
        while data[at] == 0xFF and data[at + 1] == 0xFF:
            at += 1
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == _END:
            kept.append(b"\xff\xd9")
            return BareJpeg(b"".join(kept), *size) if size and has_pixels else None
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4])
        payload = data[at + 4 : end]
        if len(payload) != end - at - 4:
            return None
        if marker in _FRAMES:
            precision, height, width, components = payload[0], *_shorts(payload[1:5]), payload[5]
            if precision != 8 or components not in (1, 3) or size is not None or not width * height:
                return None
            size = (width, height)
            kept.append(whole[at:end])
        elif marker in _TABLES or (marker == _ADOBE and payload.startswith(b"Adobe")):
            kept.append(whole[at:end])
        elif marker == _SCAN:
            after = _AFTER_SCAN.search(data, end)
            if after is None:
                return None
            end = after.start()
            has_pixels = True
            kept.append(whole[at:end])
        elif marker == _JFIF and payload.startswith(b"JFIF\0"):
            # Version, unit and density; a thumbnail that may follow is left out.
            kept.append(b"\xff\xe0" + (16).to_bytes(2) + payload[:12] + b"\0\0")
        elif _changes_appearance(marker, payload):
            return None
        at = end


def _changes_appearance(marker: int, payload: bytes) -> bool:
    """True if the segment changes how the stored picture is shown, or is unknown."""
    if marker == _EXIF and payload.startswith(b"Exif\0"):
        return not _is_upright(payload[6:])
    if marker == _MULTI_PICTURE and payload.startswith(b"MPF\0"):
        return True
    return not 0xE0 <= marker <= 0xFE


def _shorts(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[:2]), int.from_bytes(data[2:4])


def _is_upright(exif: bytes) -> bool:
    """True if the EXIF block asks for no rotation. One that cannot be read is left to the reader."""
    from PIL import Image

    block = Image.Exif()
    try:
        block.load(exif)
        return block.get(0x0112, 1) == 1
    except Exception:  # Pillow raises whatever a damaged block leads it to.
        return False
