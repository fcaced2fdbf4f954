"""System call filters, assembled without a library as classic BPF for ``seccomp(2)``.

A filter sees the number of a call, the architecture and six 64-bit arguments, but not the memory that they point to.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

Stage = Literal["start", "code", "code_reading_host"]
"""``start``: for a worker that is being set up. ``code``: for untrusted code in a separate file system.
``code_reading_host``: for untrusted code that sees the host's file system and may open nothing for writing."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
_EPERM, _ENOSYS, _ENOTTY = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS, _ERRNO | errno.ENOTTY

_CLONE_THREAD = 0x00010000
_PR_SET_NAME = 15
_FCNTLS = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY"""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX"""
_WRITING = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
)


def assemble(stage: Stage, architecture: str) -> bytes:
    """Return the filter of a stage as an array of ``struct sock_filter``."""
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_JUMP_EQUAL, AUDIT_ARCHITECTURES[architecture], 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
    ]
    if architecture == "x86_64":
        lines += [_line(_JUMP_AT_LEAST, _X32, 0, 1), _line(_RETURN, _KILL)]
    lines += [_line(_JUMP_AT_LEAST, LAST_KNOWN + 1, 0, 1), _line(_RETURN, _ENOSYS)]
    # libc falls back to clone and openat, whose flags a filter can see
    refused = [name for name, call in SYSTEM_CALLS.items() if call.refused in _REFUSED_IN[stage]]
    refusals = dict.fromkeys(refused, _EPERM) | {"clone3": _ENOSYS, "openat2": _ENOSYS}
    for name in sorted(refusals):
        if (value := number(name, architecture)) is not None:
            lines += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, refusals[name])]
    if stage == "start":
        lines += _threads_only(architecture)
    else:
        lines += _on("ioctl", architecture, _by_value(1, _IOCTLS, listed=_ALLOW, other=_ENOTTY))
        lines += _on("fcntl", architecture, _by_value(1, _FCNTLS, listed=_EPERM, other=_ALLOW))
        lines += _on("prctl", architecture, _by_value(0, (_PR_SET_NAME,), listed=_ALLOW, other=_EPERM))
        lines += _on("prlimit64", architecture, _unless_null(2))
    if stage == "code_reading_host":
        lines += _on("open", architecture, _if_bits(1, _WRITING))
        lines += _on("openat", architecture, _if_bits(2, _WRITING))
    lines.append(_line(_RETURN, _ALLOW))
    return b"".join(lines)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _on(name: str, architecture: str, body: list[bytes]) -> list[bytes]:
    """Return lines that run ``body``, which ends the filter, for this call only."""
    value = number(name, architecture)
    return [] if value is None else [_line(_JUMP_EQUAL, value, 0, len(body)), *body]


def _argument(index: int, *, high: bool = False) -> bytes:
    return _line(_LOAD, 16 + 8 * index + (4 if high else 0))


def _threads_only(architecture: str) -> list[bytes]:
    body = [_argument(0), _line(_JUMP_BITS, _CLONE_THREAD, 1, 0), _line(_RETURN, _EPERM), _line(_RETURN, _ALLOW)]
    return _on("clone", architecture, body)


def _by_value(index: int, values: Iterable[int], *, listed: int, other: int) -> list[bytes]:
    """Return lines with one verdict if an argument is one of ``values``, and another one otherwise."""
    body = [_argument(index)]
    for value in values:
        body += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, listed)]
    return [*body, _line(_RETURN, other)]


def _if_bits(index: int, bits: int) -> list[bytes]:
    return [_argument(index), _line(_JUMP_BITS, bits, 0, 1), _line(_RETURN, _EPERM), _line(_RETURN, _ALLOW)]


def _unless_null(index: int) -> list[bytes]:
    """Return lines that allow only a NULL pointer, with which a call can query but not set values."""
    return [
        _argument(index),
        _line(_JUMP_EQUAL, 0, 0, 3),
        _argument(index, high=True),
        _line(_JUMP_EQUAL, 0, 0, 1),
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _EPERM),
    ]


LAST_KNOWN = 450
"""Highest known call number; newer calls fail as unknown."""

Refused = Literal["always", "code", "host", ""]
"""Stage from which on a call is refused.

``always``: from the first instruction of a worker. This includes the file calls that Landlock does not check (chmod,
utime...) and calls on other processes, because without a process namespace they could reach this one. ``code``: once
the worker is set up, because bubblewrap and the worker itself need them before. This includes threads (clone): code
that draws or solves starts none, and many small ones would exhaust the process numbers of a machine. ``host``: if the
worker sees the host's file system, which it may only read. Empty: allowed, or decided by the arguments.
"""
_REFUSED_IN: dict[Stage, tuple[Refused, ...]] = {
    "start": ("always",),
    "code": ("always", "code"),
    "code_reading_host": ("always", "code", "host"),
}


class SystemCall(NamedTuple):
    """Numbers of a call, None on an architecture without it, and the stage from which on it is refused."""

    x86_64: int | None
    aarch64: int | None
    refused: Refused


def _read_system_calls() -> dict[str, SystemCall]:
    """Read the calls that filters distinguish from ``system_calls.csv``."""
    calls: dict[str, SystemCall] = {}
    for line in Path(__file__).with_name("system_calls.csv").read_text("ascii").splitlines()[1:]:
        name, *numbers, refused = line.split(",")
        if refused not in get_args(Refused):
            raise ValueError(f"system_calls.csv: {line}")
        x86_64, aarch64 = (int(number) if number else None for number in numbers)
        calls[name] = SystemCall(x86_64, aarch64, cast(Refused, refused))
    return calls


SYSTEM_CALLS = _read_system_calls()
AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def machine() -> str | None:
    """Return ``x86_64`` or ``aarch64``; None if system calls cannot be filtered on this machine."""
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    return name if name in AUDIT_ARCHITECTURES and platform.system() == "Linux" else None


def number(name: str, architecture: str) -> int | None:
    """Return the number of a call; None if the architecture does not have it."""
    return SYSTEM_CALLS[name].x86_64 if architecture == "x86_64" else SYSTEM_CALLS[name].aarch64
