"""Communication with a worker over pipes during a job: output is limited, and frames are parsed as untrusted data."""

import json
import os
import select
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from agrotools.sandbox.result import Limits

START_TIMEOUT_S = 60.0
"""Timeout until a worker is ready, and again until it starts the code; a busy machine may need tens of seconds."""
CHUNK = 2**16
_HEAD = struct.Struct(">cI")
_LONGEST_NAME = 300
_MESSAGE_BYTES = 2**17
"""Maximum number of bytes that a worker adds to a result (message, traceback)."""

Cause = Literal["done", "ended", "not_started", "wall_timeout", "output_cap", "artifact_cap", "malformed"]


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
        picture = limits.artifact_bytes + _LONGEST_NAME
        self._longest = {b"S": 0, b"A": picture, b"F": picture, b"D": 8 * limits.output_bytes + _MESSAGE_BYTES}

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
            limit = begun + START_TIMEOUT_S if self._started is None else self._started + self._limits.wall_s
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
        (outcome.figures if kind == b"F" else outcome.saved).append((name.decode(errors="replace"), picture))
        return "artifact_cap" if len(outcome.figures) + len(outcome.saved) > self._limits.artifacts else None

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
        outcome.stdout, outcome.stderr = (bytes(self._outputs[name][:limit]) for name in ("stdout", "stderr"))
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
