"""Confinement of the worker by itself: it ends with its parent, drops its privileges, and restricts its access.

Landlock (``landlock(7)``) is used through system calls, because libc has no wrappers. All restrictions are inherited by
threads and cannot be undone.
"""

import ctypes
import math
import os
import resource
import signal
import struct
import time
from contextlib import suppress

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAPABILITY_VERSION_3 = 0x20080522
_SECCOMP_SET_MODE_FILTER, _FOR_ALL_THREADS = 1, 1
_RULE_PATH_BENEATH, _ABI_VERSION = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of file access rights that each version of Landlock knows."""
_NETWORK_RIGHTS, _SCOPES = 0b11, 0b11
_RESERVE = 4 * 2**20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def die_with(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends, even if the parent is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def drop_privileges() -> None:
    """Drop all capabilities, and the ability to gain any by running a program."""
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    capability = 0
    while _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def read_only(paths: list[str], listed: list[str], calls: dict[str, int]) -> None:
    """Restrict this process with Landlock to reading ``paths`` and listing ``listed``, without writing or network
    access."""
    version = _libc.syscall(calls["landlock_create_ruleset"], None, 0, _ABI_VERSION)
    _checked(version, "Landlock")
    files = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    network = _NETWORK_RIGHTS if version >= 4 else 0
    scopes = _SCOPES if version >= 6 else 0
    attributes = struct.pack("=QQQ", files, network, scopes)[
        : 24 if version >= 6 else 16 if version >= 4 else 8
    ]
    ruleset = _libc.syscall(calls["landlock_create_ruleset"], attributes, len(attributes), 0)
    _checked(ruleset, "Landlock")
    for path in (*paths, *listed):
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights = _READ_DIR if os.path.isdir(path) else 0
        if path not in listed:
            rights |= _READ_FILE
        rule = struct.pack("=Qi", rights, opened)
        _checked(
            _libc.syscall(calls["landlock_add_rule"], ruleset, _RULE_PATH_BENEATH, rule, 0), path
        )
        os.close(opened)
    _checked(_libc.syscall(calls["landlock_restrict_self"], ruleset, 0), "Landlock")
    os.close(ruleset)


def limit(limits: dict[str, int]) -> None:
    """Set the resource limits of the code; processor time counts from now."""
    used = math.ceil(time.process_time())
    memory, file, files = (
        limits["memory_mb"] * 2**20,
        limits["file_mb"] * 2**20,
        limits["open_files"],
    )
    rlimits: dict[int, tuple[int, int]] = {
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_CPU: (used + limits["cpu_s"], used + limits["cpu_s"] + 1),
        resource.RLIMIT_FSIZE: (file, file),
        resource.RLIMIT_NOFILE: (files, files),
        resource.RLIMIT_CORE: (0, 0),
    }
    for name, (soft, hard) in rlimits.items():
        _, limit = resource.getrlimit(name)
        if limit != resource.RLIM_INFINITY:
            soft, hard = min(soft, limit), min(hard, limit)
        resource.setrlimit(name, (soft, hard))


def filter_calls(program: bytes, calls: dict[str, int]) -> None:
    """Install a system call filter for all threads."""
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    filled = Program(len(program) // 8, ctypes.addressof(code))
    _checked(
        _libc.syscall(
            calls["seccomp"], _SECCOMP_SET_MODE_FILTER, _FOR_ALL_THREADS, ctypes.byref(filled)
        ),
        "seccomp",
    )


def reserve() -> bytearray | None:
    """Reserve memory that is freed when the code runs out of memory, so that the failure can still be reported."""
    with suppress(MemoryError):
        return bytearray(_RESERVE)
    return None


def _checked(status: int, what: str) -> None:
    # for all threads: a positive number is the thread that could not be filtered
    if status < 0 or (what in ("seccomp", "no_new_privs", "capset") and status > 0):
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
