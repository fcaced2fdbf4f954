"""Result of a run of untrusted code: limits, termination, and images that are decoded and encoded again."""

import io
import json
import os
import re
import select
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Literal

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
                raise BadPicture(
                    f"{name} has {width} x {height} pixels, more than {limits.artifact_pixels:,} in all"
                )
            pixels = image.convert("RGBA")
    except BadPicture:
        raise
    except Exception as error:  # decoders may raise anything on hostile data
        raise BadPicture(
            f"{name} cannot be read as a PNG picture ({type(error).__name__})"
        ) from error
    if pixels.getchannel("A").getextrema() == (255, 255):
        pixels = pixels.convert("RGB")
    encoded = io.BytesIO()
    pixels.save(encoded, format="PNG", compress_level=3)
    return SandboxArtifact(name, "image/png", encoded.getvalue())


START_TIMEOUT_S = 60.0
"""Timeout until a worker is ready, and again until it starts the code; a busy machine may need tens of seconds."""
CHUNK = 2**16
_HEAD = struct.Struct(">cI")
_LONGEST_FILE_NAME = 300
_MESSAGE_BYTES = 2**17
"""Maximum number of bytes that a worker adds to a result (message, traceback)."""

Cause = Literal[
    "done", "ended", "not_started", "wall_timeout", "output_cap", "artifact_cap", "malformed"
]


@dataclass
class JobOutcome:
    """Outcome of a job. All fields except ``cause``, ``status`` and ``seconds`` are untrusted output of the code."""

    cause: Cause = "ended"
    reply: dict[str, Any] = field(default_factory=dict[str, Any])
    figures: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    saved: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    stdout: bytes = b""
    stderr: bytes = b""
    status: int | None = None
    """Exit status of the worker, negative for a signal; None if it had to be killed."""
    seconds: float = 0.0


def frame(kind: bytes, content: bytes = b"") -> bytes:
    """Return a frame for either direction: one byte for the kind, the length, the content."""
    return _HEAD.pack(kind, len(content)) + content


class Exchange:
    """Transfer of a job to a worker and of its output back, over four pipes."""

    def __init__(self, stdin: int, stdout: int, stderr: int, result: int, limits: Limits) -> None:
        self._stdin = stdin
        self._streams = {stdout: "stdout", stderr: "stderr", result: "result"}
        self._limits = limits
        self._outcome = JobOutcome()
        self._started: float | None = None
        self._outputs = {"stdout": bytearray(), "stderr": bytearray()}
        self._frames = bytearray()
        picture = limits.artifact_bytes + _LONGEST_FILE_NAME
        self._longest = {
            b"S": 0,
            b"A": picture,
            b"F": picture,
            b"D": 8 * limits.output_bytes + _MESSAGE_BYTES,
        }

    def run(self, job: bytes) -> JobOutcome:
        """Send the job and read until it ends or exceeds a limit. The process is not stopped."""
        left_to_send = memoryview(job)
        open_streams = dict(self._streams)
        poll = select.poll()
        for fd in (*open_streams, self._stdin):
            os.set_blocking(fd, False)
        for fd in open_streams:
            poll.register(fd, select.POLLIN)
        poll.register(self._stdin, select.POLLOUT)
        begun = time.monotonic()
        cause: Cause | None = None
        while cause is None and "result" in open_streams.values():
            limit = (
                begun + START_TIMEOUT_S
                if self._started is None
                else self._started + self._limits.wall_s
            )
            if (remaining_s := limit - time.monotonic()) <= 0:
                cause = "not_started" if self._started is None else "wall_timeout"
                break
            for fd, _ in poll.poll(1000 * remaining_s):
                if fd == self._stdin:
                    left_to_send = _send(fd, left_to_send)
                    if not left_to_send:
                        poll.unregister(fd)
                elif (data := read_some(fd)) == b"":
                    poll.unregister(fd)
                    del open_streams[fd]
                elif data is not None:
                    cause = cause or self._receive(open_streams[fd], data)
        return self._finish(cause)

    def _receive(self, name: str, data: bytes) -> Cause | None:
        if name == "result":
            return self._take(data)
        self._outputs[name] += data
        return "output_cap" if len(self._outputs[name]) > self._limits.output_bytes else None

    def _take(self, data: bytes) -> Cause | None:
        """Parse frames; the first one that exceeds a limit or is malformed ends the job."""
        frames = self._frames
        frames += data
        while len(frames) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(frames)
            if kind not in self._longest:
                return "malformed"
            if length > self._longest[kind]:
                return "artifact_cap" if kind in (b"A", b"F") else "malformed"
            end = _HEAD.size + length
            if len(frames) < end:
                return None
            content = bytes(frames[_HEAD.size : end])
            del frames[:end]
            if (cause := self._handle(kind, content)) is not None:
                return cause
        return None

    def _handle(self, kind: bytes, content: bytes) -> Cause | None:
        outcome = self._outcome
        if kind == b"S":
            self._started = self._started or time.monotonic()
            return None
        if kind == b"D":
            try:
                message = json.loads(content)
            except (ValueError, RecursionError):
                return "malformed"
            outcome.reply = message if isinstance(message, dict) else {}
            return "done"
        name, _, picture = content.partition(b"\0")
        (outcome.figures if kind == b"F" else outcome.saved).append(
            (name.decode(errors="replace"), picture)
        )
        return (
            "artifact_cap"
            if len(outcome.figures) + len(outcome.saved) > self._limits.artifacts
            else None
        )

    def _finish(self, cause: Cause | None) -> JobOutcome:
        outcome, limit = self._outcome, self._limits.output_bytes
        if self._started is not None:
            outcome.seconds = time.monotonic() - self._started
        for fd, name in self._streams.items():
            if name == "result":
                continue
            output = self._outputs[name]
            output += drain(fd, limit - len(output))
            if len(output) > limit and cause in (None, "done"):
                cause = "output_cap"
        outcome.cause = cause or ("ended" if self._started is not None else "not_started")
        outcome.stdout, outcome.stderr = (
            bytes(self._outputs[name][:limit]) for name in ("stdout", "stderr")
        )
        return outcome


def read_some(fd: int) -> bytes | None:
    """Read from a pipe once. Returns None if there are no data yet, and empty data at the end."""
    try:
        return os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def drain(fd: int, limit: int) -> bytes:
    """Read the data that a pipe holds already, until there are more than ``limit`` bytes."""
    os.set_blocking(fd, False)
    data = bytearray()
    while len(data) <= limit and (part := read_some(fd)):
        data += part
    return bytes(data)


def _send(fd: int, data: memoryview) -> memoryview:
    """Write to a pipe and return the remaining data; they are empty if the reader has closed the pipe."""
    try:
        return data[os.write(fd, data[:CHUNK]) :]
    except BlockingIOError:
        return data
    except OSError:
        return data[:0]
