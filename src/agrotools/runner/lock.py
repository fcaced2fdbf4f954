"""One process at a time: an advisory lock on a run folder that ends with its process, however that ends."""

import errno
import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

from agrotools.core import RunStoreError

LOCK_FILE = ".lock"

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class RunLock:
    """The exclusive lock on ``folder``, held until :meth:`close` or the end of the process.

    The lock file names its holder by process id and machine. What an ended process left there counts for nothing:
    the lock itself is the operating system's (``flock``).

    Raises:
        RunStoreError: another process holds it, or the file system has no locks.
        OSError: the lock file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_FILE
        while True:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            try:
                self._take(folder)
                if _is_file(self._file, path):
                    with suppress(OSError):  # a full disk keeps the name out, not the lock
                        os.ftruncate(self._file, 0)
                        os.pwrite(self._file, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                    return
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)  # the file was removed between opening and locking: its lock keeps nobody out

    def _take(self, folder: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunStoreError(
                f"the run {folder} is in use by {_holder(os.pread(self._file, 200, 0))}",
                hint="wait for it, or choose another folder with --out",
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            (folder / LOCK_FILE).unlink(missing_ok=True)
            raise RunStoreError(
                f"the file system of {folder} cannot lock files ({error.strerror}), so two processes could mix there",
                hint="choose a folder on a local disk with --out, and copy the run when it is done",
            ) from error

    def close(self) -> None:
        os.close(self._file)


def _is_file(number: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(number), path.lstat())
    except FileNotFoundError:
        return False


def _holder(content: bytes) -> str:
    """Who wrote the lock file, unless that one has ended: then the lock is held by one that has not signed yet."""
    pid, _, machine = content.decode(errors="replace").strip().partition(" on ")
    if not pid.isdecimal():
        return "another process"
    if machine and machine != socket.gethostname():
        return f"process {pid} on {machine}"
    return f"process {pid}" if Path(f"/proc/{pid}").exists() or not Path("/proc/self").exists() else "another process"
