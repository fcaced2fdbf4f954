"""What an operating system may lack. Windows has no ``fcntl``, ``resource``, ``poll``, ``pread`` and user numbers.

What differs between them in processes and signals is in :mod:`agrotools.core.processes`.
"""

import os
import select
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PRIVATE_BINARY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags of :func:`os.open`: other programs do not inherit the file; Windows leaves its line breaks as they are."""
HAS_GROUPS = hasattr(os, "killpg")
"""Processes form groups and have parents by number, as on Linux and macOS."""
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_reading = threading.Lock()


def has_poll() -> bool:
    """Return True if any open file can be waited for, not only a socket."""
    return hasattr(select, "poll")


def is_own(folder: Path) -> bool:
    """Return True if a folder belongs to the user, or users have no numbers, so that nobody can tell.

    Raises:
        OSError: the folder cannot be looked at.
    """
    return not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()


def user_name_part() -> str:
    """Return the number of the user, for the name of a file in a folder that several users share."""
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def read_at(number: int, size: int, place: int) -> bytes:
    """Return at most ``size`` bytes from ``place`` on, in an open file. Threads may read the same file.

    Raises:
        OSError: they cannot be read.
    """
    if hasattr(os, "pread"):
        return os.pread(number, size, place)
    with _reading:
        os.lseek(number, place, os.SEEK_SET)
        return os.read(number, size)


@contextmanager
def locked(file: BinaryIO, path: Path) -> Generator[None]:
    """Let no other process write to an open file within the block. Disks that have no locks are written without one."""
    try:
        import fcntl
    except ImportError:
        from filelock import FileLock

        with FileLock(path.with_name(f".{path.name}.lock")):
            yield
        return
    with suppress(OSError):  # the lock ends when the file is closed
        fcntl.flock(file, fcntl.LOCK_EX)
    yield


def has_no_reader(number: int) -> bool:
    """Return True if an open file is a pipe whose reader has closed it; False where the system does not tell."""
    if not has_poll():
        return False
    poll = select.poll()
    poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def wait_for_writer_end(number: int) -> None:
    """Wait until the writer of a pipe closes it; at most until then on systems that cannot wait for a pipe."""
    if has_poll():
        poll = select.poll()
        poll.register(number, 0)
        poll.poll()


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends. It does so on Linux alone."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def limit_memory(most_bytes: int) -> None:
    """Limit the memory of this process that can be written, and write no dumps; nothing on Windows.

    Not address space is limited: CUDA reserves 16 GB of addresses before the first byte is used.

    Raises:
        OSError, ValueError: Linux refuses the limit. macOS does not limit memory.
    """
    try:
        import resource
    except ImportError:
        return
    limits = {resource.RLIMIT_DATA: most_bytes, resource.RLIMIT_CORE: 0}
    for limit, value in limits.items():
        _, most = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):
            if sys.platform == "linux":
                raise
