"""Copies of photographs without the place, names, dates and descriptions that cameras and people write into them."""

import re
from collections.abc import Iterator, Set
from io import BytesIO
from pathlib import Path

from PIL import Image

from agrotools.core import ToolError
from agrotools.vision.reading import read_image

_CAMERA = {271, 272, 274}
"""EXIF tags that stay: make, model and orientation."""
_EXPOSURE = {33434, 33437, 34855, 37386, 40962, 40963, 41486, 41487, 41488, 41989}
"""Tags of the EXIF block that stay: exposure, aperture, sensitivity, focal length, size and resolution."""
_EXIF_BLOCK = 0x8769
_EXIF = b"Exif\0\0"
_SCAN, _END, _APP1 = 0xDA, 0xD9, 0xE1
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""Marker after the compressed pixels of a scan."""
_PRIVATE = {_APP1, 0xED, 0xFE}
"""JPEG segments with EXIF, XMP, IPTC or a comment."""
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_TEXTS = {b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"tIME"}


def without_identity(path: Path) -> bytes | None:
    """Return a JPEG or PNG without metadata that may tell where, when and by whom it was taken, with equal pixels.

    Returns:
        The content, for HEIC and AVIF always and as a JPEG, since no provider reads them; None if there is no such
        metadata, the file is of another type, or it is damaged.
    """
    content = path.read_bytes()
    try:
        if content[4:8] == b"ftyp":
            return _as_jpeg(path)
        if content.startswith(_PNG):
            parts = [part for name, part in _chunks(content) if name not in _PNG_TEXTS]
            cleaned = _PNG + b"".join(parts)
        elif content.startswith(b"\xff\xd8"):
            cleaned = _clean_jpeg(content)
        else:
            return None
    except (IndexError, ValueError, ToolError):
        return None
    return cleaned if cleaned != content else None


def _as_jpeg(path: Path) -> bytes:
    pixels, stream = read_image(path, may_be_blank=True).pixels, BytesIO()
    with Image.open(path) as picture:
        profile, exif = picture.info.get("icc_profile"), _camera_data(picture.info.get("exif", b""), _CAMERA - {274})
    Image.fromarray(pixels).save(stream, "JPEG", quality=95, subsampling=0, icc_profile=profile, exif=exif)
    return stream.getvalue()


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    while at < len(content):
        end = at + 12 + int.from_bytes(content[at : at + 4])
        if end > len(content):
            raise ValueError("the last chunk is cut off")
        yield content[at + 4 : at + 8], content[at:end]
        at = end


def _clean_jpeg(content: bytes) -> bytes:
    parts, at = [content[:2]], 2
    while True:
        if content[at] != 0xFF:
            raise ValueError("no segment where one is expected")
        marker, end = content[at + 1], at + 2 + int.from_bytes(content[at + 2 : at + 4])
        if marker == _END:  # what follows is a further picture or data of the phone, with metadata of its own
            return b"".join([*parts, content[at : at + 2]])
        if marker == _SCAN:
            after = _AFTER_SCAN.search(content, end)
            end = after.start() if after else len(content)
        payload = content[at + 4 : end]
        if marker not in _PRIVATE:
            parts.append(content[at:end])
        elif payload.startswith(_EXIF) and (exif := _camera_data(payload)):
            parts.append(bytes([0xFF, _APP1]) + (len(exif) + 2).to_bytes(2) + exif)
        at = end


def _camera_data(payload: bytes, kept: Set[int] = _CAMERA) -> bytes:
    """Return the EXIF data about the camera, as they are if there are no others; empty if there are none."""
    old, new = Image.Exif(), Image.Exif()
    try:
        old.load(payload)
        block = old.get_ifd(_EXIF_BLOCK)
        new.update({tag: value for tag, value in old.items() if tag in kept})
        new.get_ifd(_EXIF_BLOCK).update({tag: value for tag, value in block.items() if tag in _EXPOSURE})
    except Exception:  # Pillow may raise any exception for a damaged block.
        return b""
    if not {*old} - kept - {_EXIF_BLOCK} and not {*block} - _EXPOSURE:
        return payload
    return new.tobytes() if len(new) or new.get_ifd(_EXIF_BLOCK) else b""
