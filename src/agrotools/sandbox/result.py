"""Results of a run of untrusted code: its limits, how it ended, and its pictures, decoded and encoded anew."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from agrotools.core import AgrotoolsError

SandboxTermination = Literal[
    "ok",
    "error",
    "wall_timeout",
    "cpu_limit",
    "memory",
    "output_cap",
    "artifact_cap",
    "denied",
    "infrastructure",
]
"""How a run ended. Only ``infrastructure`` is not the doing of the code: its worker never began, or was lost."""

NO_INPUTS: Mapping[str, bytes] = MappingProxyType({})


class SandboxUnavailable(AgrotoolsError):
    """Nothing on this machine can run untrusted code safely, or the runner asked for cannot."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of a run. All are enforced from outside the code."""

    wall_s: float = 30.0
    """from the moment the code starts: for code that waits. Code that computes meets ``cpu_s`` first, also
    where it has but a fifth of a busy core"""
    cpu_s: int = 5
    """processor time; whole seconds, as the kernel counts"""
    memory_mb: int = 1500
    """address space, the interpreter and its libraries (about 400 MB) included"""
    file_mb: int = 20
    """size of one file"""
    open_files: int = 128
    output_bytes: int = 2**20
    """of standard output, and as much of standard error and of the value"""
    artifacts: int = 8
    artifact_bytes: int = 8 * 2**20
    """of each"""
    artifact_pixels: int = 16_000_000
    """of each"""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class SandboxArtifact:
    """A picture that the code drew, decoded and encoded anew outside of the sandbox."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class SandboxResult:
    """Result of a run."""

    value: str | None
    """``str`` of what the function returned; None where it returned None or a figure, or nothing was called"""
    stdout: str = field(repr=False)
    artifacts: tuple[SandboxArtifact, ...]
    """the returned figure first, then what the code saved, in order"""
    termination: SandboxTermination
    message: str
    """one line that says what went wrong and, where known, in which line of the code; empty where nothing did"""
    seconds: float
    """wall time from the start of the code to its result"""
    runner: str
    log: str = field(default="", repr=False)
    """all that is known of a failure: traceback, standard error, exit status. Not for a model"""

    @property
    def ok(self) -> bool:
        return self.termination == "ok"


_PNG = b"\x89PNG\r\n\x1a\n"
_LONGEST_NAME = 80


class BadPicture(Exception):
    """Its text says what is wrong, for whoever wrote the code."""


def check_picture(name: str, content: bytes, limits: Limits) -> SandboxArtifact:
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
