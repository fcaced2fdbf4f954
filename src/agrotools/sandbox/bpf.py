"""The system call filters, assembled here so that no library is needed: classic BPF, as ``seccomp(2)`` takes it.

A filter sees the number of a call, the architecture and six 64-bit arguments, and no memory that they point to.
"""

import errno
import os
import struct
from collections.abc import Iterable
from typing import Literal

from agrotools.sandbox.syscalls import (
    AUDIT_ARCHITECTURES,
    DENIED,
    DENIED_TO_CODE,
    DENIED_WITHOUT_A_FILE_SYSTEM,
    LAST_KNOWN,
    number,
)

Stage = Literal["start", "code", "code_reading_host"]
"""``start``: for a worker that is being set up. ``code``: for untrusted code in its own file system.
``code_reading_host``: the same where it sees the host's file system, and so may open nothing for writing."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
_EPERM, _ENOSYS, _ENOTTY = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS, _ERRNO | errno.ENOTTY

_CLONE_THREAD = 0x00010000
_PR_SET_NAME = 15
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY = 8, 10, 15, 1024, 1026
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX"""
_WRITING = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
)


def assemble(stage: Stage, architecture: str) -> bytes:
    """The filter of a stage as an array of ``struct sock_filter``."""
    refused = set(DENIED)
    if stage != "start":
        refused |= DENIED_TO_CODE
    if stage == "code_reading_host":
        refused |= DENIED_WITHOUT_A_FILE_SYSTEM
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
    refusals = dict.fromkeys(refused, _EPERM) | {"clone3": _ENOSYS, "openat2": _ENOSYS}
    for name in sorted(refusals):
        if (value := number(name, architecture)) is not None:
            lines += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, refusals[name])]
    if stage == "start":
        lines += _threads_only(architecture)
    else:
        lines += _on("ioctl", architecture, _unless_one_of(1, _IOCTLS, _ENOTTY))
        lines += _on("fcntl", architecture, _if_one_of(1, (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY)))
        lines += _on("prctl", architecture, _unless_one_of(0, (_PR_SET_NAME,), _EPERM))
        lines += _on("prlimit64", architecture, _unless_null(2))
    if stage == "code_reading_host":
        lines += _on("open", architecture, _if_bits(1, _WRITING))
        lines += _on("openat", architecture, _if_bits(2, _WRITING))
    lines.append(_line(_RETURN, _ALLOW))
    return b"".join(lines)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _on(name: str, architecture: str, body: list[bytes]) -> list[bytes]:
    """Run ``body``, which ends the filter, for this call only."""
    value = number(name, architecture)
    return [] if value is None else [_line(_JUMP_EQUAL, value, 0, len(body)), *body]


def _argument(index: int, *, high: bool = False) -> bytes:
    return _line(_LOAD, 16 + 8 * index + (4 if high else 0))


def _threads_only(architecture: str) -> list[bytes]:
    body = [_argument(0), _line(_JUMP_BITS, _CLONE_THREAD, 1, 0), _line(_RETURN, _EPERM), _line(_RETURN, _ALLOW)]
    return _on("clone", architecture, body)


def _if_one_of(index: int, values: Iterable[int]) -> list[bytes]:
    return _by_value(index, values, found=_EPERM, other=_ALLOW)


def _unless_one_of(index: int, values: Iterable[int], refusal: int) -> list[bytes]:
    return _by_value(index, values, found=_ALLOW, other=refusal)


def _by_value(index: int, values: Iterable[int], *, found: int, other: int) -> list[bytes]:
    body = [_argument(index)]
    for value in values:
        body += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, found)]
    return [*body, _line(_RETURN, other)]


def _if_bits(index: int, bits: int) -> list[bytes]:
    return [_argument(index), _line(_JUMP_BITS, bits, 0, 1), _line(_RETURN, _EPERM), _line(_RETURN, _ALLOW)]


def _unless_null(index: int) -> list[bytes]:
    """A pointer must be NULL: there is nothing to set then, only to ask for."""
    return [
        _argument(index),
        _line(_JUMP_EQUAL, 0, 0, 3),
        _argument(index, high=True),
        _line(_JUMP_EQUAL, 0, 0, 1),
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _EPERM),
    ]
