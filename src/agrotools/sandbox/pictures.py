"""Pictures that came out of a sandbox: looked at, decoded and encoded anew, so that nothing else comes with them."""

import io
import re

from agrotools.sandbox.result import Limits, SandboxArtifact

_PNG = b"\x89PNG\r\n\x1a\n"
_LONGEST_NAME = 80


class BadPicture(Exception):
    """Its text says what is wrong, for whoever wrote the code."""


def checked(name: str, content: bytes, limits: Limits) -> SandboxArtifact:
    """The same picture as an artifact. Of equal pictures the content is equal.

    Raises:
        BadPicture: it is no PNG that can be decoded, or larger than ``limits`` allow.
    """
    from PIL import Image

    name = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII).strip(". ")[-_LONGEST_NAME:] or "plot.png"
    if not content.startswith(_PNG):
        raise BadPicture(f"{name} is not a PNG picture")
    if len(content) > limits.artifact_bytes:
        raise BadPicture(f"{name} has {len(content):,} bytes, more than {limits.artifact_bytes:,}")
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            # As Pillow will decode it: the first chunk that states a size need not be the last.
            width, height = image.size
            if width * height > limits.artifact_pixels:
                raise BadPicture(f"{name} has {width} x {height} pixels, more than {limits.artifact_pixels:,} in all")
            pixels = image.convert("RGBA")
    except BadPicture:
        raise
    except Exception as error:  # whatever a decoder makes of hostile bytes
        raise BadPicture(f"{name} cannot be read as a PNG picture ({type(error).__name__})") from error
    if pixels.getchannel("A").getextrema() == (255, 255):
        pixels = pixels.convert("RGB")
    encoded = io.BytesIO()
    pixels.save(encoded, format="PNG", compress_level=3)
    return SandboxArtifact(name, "image/png", encoded.getvalue())
