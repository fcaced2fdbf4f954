"""Files that outlive the process and the machine (whole or not at all, and journals that only grow), and their folders.

What a process hands to the operating system survives ``kill -9``; only what was synced survives a power cut.
"""

import errno
import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

SYNC_EVERY_S = 1.0

_numbers = count()


def write_whole(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Write a file so that a reader finds the old content or the new, never a part; where ``synced``, also after a
    power cut (a wait for the disk that a cache with checksums need not make).

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    with written_beside(path, synced=synced) as temporary:
        temporary.write_bytes(content)


def copy_whole(source: Path, path: Path) -> None:
    """:func:`write_whole` with the content of ``source``.

    Raises:
        OSError: it cannot be copied; what was there stays.
    """
    with written_beside(path) as temporary:
        shutil.copyfile(source, temporary)


def write_new(path: Path, content: bytes) -> bool:
    """Write a file that is never seen half written; False, and nothing done, where something of that name exists.

    Its folder is created. Nothing is synced.

    Raises:
        OSError: it cannot be written.
    """
    if os.path.lexists(path):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _name_beside(path)
    try:
        temporary.write_bytes(content)
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            temporary.replace(path)
        return True
    finally:
        temporary.unlink(missing_ok=True)


def _name_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}")


@contextmanager
def written_beside(path: Path, *, synced: bool = True) -> Generator[Path]:
    """A temporary name beside ``path``, which takes its place when the block ends well and is removed otherwise.

    Raises:
        OSError: it cannot be synced or take the place.
    """
    temporary = _name_beside(path)
    try:
        yield temporary
        if synced:
            sync(temporary)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    if synced:
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk.

    Raises:
        OSError: the disk refused it.
    """
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    except OSError as error:
        # Some network file systems cannot sync a folder; their names are written at once.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(number)


class Journal:
    """A file of lines that is only appended to.

    A line reaches the operating system before :meth:`append` returns, in one write; a thread syncs it to disk within
    ``sync_every_s`` seconds, so that whoever appends never waits for a disk. A line that could not be written whole
    is taken back at once: what is appended later never stands on the rest of a line. One process may hold it.

    Raises:
        OSError: it cannot be opened for writing.
    """

    def __init__(self, path: Path, sync_every_s: float = SYNC_EVERY_S) -> None:
        self.path = path
        self._sync_every_s = sync_every_s
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._end = os.fstat(self._file).st_size
        self._torn = False
        self._unsynced = False
        self._fault: OSError | None = None
        self._closing = threading.Event()
        self._syncing: threading.Thread | None = None

    def append(self, line: bytes) -> None:
        """Write ``line``, or several, each ending in a line break.

        Raises:
            OSError: it was not written, or lines before it could not be synced. Lines that were synced stay.
        """
        if self._fault is not None:
            raise self._fault
        if self._torn:
            self._take_back()
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "it was deleted while in use", str(self.path))
        self._torn = True  # until the whole line is there, whatever interrupts this
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:] if written else line)
        except OSError:
            self._end += line.rfind(b"\n", 0, written) + 1
            with suppress(OSError):
                self._take_back()
            raise
        self._end += len(line)
        self._torn = False
        self._unsynced = True
        if self._syncing is None:
            self._syncing = threading.Thread(target=self._sync_regularly, name=f"sync {self.path.name}", daemon=True)
            self._syncing.start()

    def _take_back(self) -> None:
        os.ftruncate(self._file, self._end)
        self._torn = False

    def _sync_regularly(self) -> None:
        while not self._closing.wait(self._sync_every_s) and self._fault is None:
            self._sync()

    def _sync(self) -> None:
        if self._unsynced:
            self._unsynced = False
            try:
                os.fsync(self._file)
            except OSError as error:
                self._fault = error

    def close(self) -> None:
        """Sync and close.

        Raises:
            OSError: what was appended could not be synced.
        """
        self._closing.set()
        if self._syncing is not None:
            self._syncing.join()
        self._sync()
        os.close(self._file)
        if self._fault is not None:
            raise self._fault


def cache_dir(*parts: str) -> Path:
    """A folder inside the user's cache (``AGROTOOLS_CACHE`` if set). Not created here: the writer creates it."""
    override = os.environ.get("AGROTOOLS_CACHE")
    if override:
        root = Path(override).expanduser()
    else:
        from platformdirs import user_cache_path

        root = user_cache_path("agrotools")
    return root.joinpath(*parts)


def artifact_path(folder: Path, sha256: str, suffix: str) -> Path:
    """Where a file that a tool made lies in a run folder or a benchmark folder, named by its content."""
    return folder / "artifacts" / f"{sha256}{suffix}"
