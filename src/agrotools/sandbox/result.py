"""Result of a run of untrusted code: limits, termination, and images that are decoded and encoded again."""

import io
import re
from dataclasses import dataclass, field
from typing import Literal

from agrotools.core import AgrotoolsError

SandboxTermination = Literal[
    "ok", "error", "wall_timeout", "cpu_limit", "memory", "output_cap", "artifact_cap", "denied", "infrastructure"
]
"""Termination of a run. Only ``infrastructure`` is not caused by the code: its worker never started, or was lost."""


class SandboxUnavailable(AgrotoolsError):
    """No runner, or not the requested one, can run untrusted code safely on this machine."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of a run. All are enforced from outside the code."""

    wall_s: float = 30.0
    """Wall time from the start of the code in seconds. It limits code that waits; code that computes reaches ``cpu_s``
    first, even with a fifth of a busy core."""
    cpu_s: int = 5
    """Processor time in whole seconds, the unit of the kernel."""
    memory_mb: int = 1500
    """Address space in MB, including the interpreter and its libraries (about 400 MB)."""
    file_mb: int = 20
    """Maximum size of one file in MB."""
    open_files: int = 128
    output_bytes: int = 2**20
    """Maximum size of standard output, and separately of standard error and of the value."""
    artifacts: int = 8
    artifact_bytes: int = 8 * 2**20
    """Maximum size of each artifact."""
    artifact_pixels: int = 16_000_000
    """Maximum number of pixels of each artifact."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class SandboxArtifact:
    """Image drawn by the code, decoded and encoded again outside the sandbox."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class SandboxResult:
    """Result of a run."""

    value: str | None
    """``str`` of the function's result; None if it returned None or a figure, or if no function was called."""
    stdout: str = field(repr=False)
    artifacts: tuple[SandboxArtifact, ...]
    """The returned figure first, then the images that the code saved, in order."""
    termination: SandboxTermination
    message: str
    """One-line description of the failure, with the line of the code if known; empty on success."""
    seconds: float
    """Wall time from the start of the code to its result, in seconds."""
    runner: str
    log: str = field(default="", repr=False)
    """Details of a failure: traceback, standard error, exit status. Not to be shown to a model."""

    @property
    def ok(self) -> bool:
        return self.termination == "ok"


_PNG = b"\x89PNG\r\n\x1a\n"
_LONGEST_NAME = 80


class BadPicture(Exception):
    """Image that cannot be accepted; the message is for the author of the code."""


def check_picture(name: str, content: bytes, limits: Limits) -> SandboxArtifact:
    """Decode a picture and encode it as an artifact. Equal pictures give equal content.

    Raises:
        BadPicture: it is not a valid PNG image, or larger than ``limits`` allow.
    """
    from PIL import Image

    name = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII).strip(". ")[-_LONGEST_NAME:] or "plot.png"
    if not content.startswith(_PNG):
        raise BadPicture(f"{name} is not a PNG picture")
    if len(content) > limits.artifact_bytes:
        raise BadPicture(f"{name} has {len(content):,} bytes, more than {limits.artifact_bytes:,}")
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            # The size that Pillow uses for decoding, which need not be that of the last header chunk.
            width, height = image.size
            if width * height > limits.artifact_pixels:
                raise BadPicture(f"{name} has {width} x {height} pixels, more than {limits.artifact_pixels:,} in all")
            pixels = image.convert("RGBA")
    except BadPicture:
        raise
    except Exception as error:  # decoders may raise anything on hostile data
        raise BadPicture(f"{name} cannot be read as a PNG picture ({type(error).__name__})") from error
    if pixels.getchannel("A").getextrema() == (255, 255):
        pixels = pixels.convert("RGB")
    encoded = io.BytesIO()
    pixels.save(encoded, format="PNG", compress_level=3)
    return SandboxArtifact(name, "image/png", encoded.getvalue())
