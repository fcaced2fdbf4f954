"""Files that outlive the process and the machine (whole or not at all, and journals that only grow), folders, hashes.

What a process hands to the operating system survives ``kill -9``; only what was synced survives a power cut.
"""

import errno
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Generic, TypeVar

import orjson
from pydantic import ValidationError

from agrotools.core.base import FrozenModel, RunStoreError

Line = TypeVar("Line", bound=FrozenModel)

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


class LineFile(Generic[Line]):
    """An append-only file of records, one a line: ``records`` are those read on opening, :meth:`add` appends.

    The file is created with the first line. A torn last line (the machine went down while it was written) is cut off.
    ``hint`` is for a line that is none.
    Raises:
        RunStoreError: it cannot be read or written, or a line in it is no ``kind``.
    """

    def __init__(self, path: Path, kind: type[Line], hint: str) -> None:
        self.path = path
        self._journal: Journal | None = None
        self.records, whole = _read(path, kind, hint)
        try:
            if path.exists() and path.stat().st_size > whole:
                os.truncate(path, whole)
        except OSError as error:
            raise _unwritable(path, error) from error

    def add(self, line: Line) -> None:
        """Append one.

        Raises:
            RunStoreError: it cannot be written; nothing of it is left in the file.
        """
        try:
            self._journal = self._journal or Journal(self.path)
            self._journal.append(orjson.dumps(line.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def close(self) -> None:
        """Sync and close the file.

        Raises:
            RunStoreError: the disk refused what was written last.
        """
        try:
            if self._journal is not None:
                self._journal.close()
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def __enter__(self) -> "LineFile[Line]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_lines(path: Path, kind: type[Line], hint: str) -> list[Line]:
    """Records of a file, without a torn last line; empty if there is no file.

    Raises:
        RunStoreError: it cannot be read, or a line in it is no ``kind``.
    """
    return _read(path, kind, hint)[0]


def _read(path: Path, kind: type[Line], hint: str) -> tuple[list[Line], int]:
    """Records, and the offset at which the last complete line ends."""
    rows: list[Line] = []
    whole = 0
    if path.exists() and not path.is_file():
        raise RunStoreError(f"{path} is not a file", hint="remove or replace it")
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                if line.strip():
                    try:
                        rows.append(kind.model_validate_json(line))
                    except ValidationError as error:
                        what = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__.removesuffix("Record")).lower()
                        raise RunStoreError(f"{path}, line {number} is not a {what}", hint=hint) from error
                whole += len(line)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunStoreError(f"{path} cannot be read: {error.strerror}", hint="make it a file you may read") from error
    return rows, whole


def _unwritable(path: Path, error: OSError) -> RunStoreError:
    return RunStoreError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="free some space and run the same command again to resume",
    )


def cache_dir(*parts: str) -> Path:
    """A folder inside the user's cache (``AGROTOOLS_CACHE`` if set). Not created here: the writer creates it."""
    override = os.environ.get("AGROTOOLS_CACHE")
    if override:
        root = Path(override).expanduser()
    else:
        from platformdirs import user_cache_path

        root = user_cache_path("agrotools")
    return root.joinpath(*parts)


def cached_files(*parts: str, suffixes: tuple[str, ...]) -> list[Path]:
    """The files with one of the endings in a folder inside the user's cache, sorted; none where it does not exist."""
    folder = cache_dir(*parts)
    return sorted(path for path in folder.iterdir() if path.suffix in suffixes) if folder.is_dir() else []


def hub_cache() -> Path:
    """The folder of the hub's cache: ``HF_HUB_CACHE``, else ``HF_HOME``/hub, else ``~/.cache/huggingface/hub``."""
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen).expanduser()
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface")  # noqa: PTH118
    return Path(home).expanduser() / "hub"


def artifact_path(folder: Path, sha256: str, suffix: str) -> Path:
    """Path of a file that a tool made in a run folder or a benchmark folder, named by its content."""
    return folder / "artifacts" / f"{sha256}{suffix}"


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pairs_by_hash(hashes: Iterable[str]) -> list[list[str]]:
    """Distinct ``hashes`` in ascending order, two by two: ranks 0 and 1 are pair 0, ranks 2 and 3 pair 1...

    The last pair holds one hash where their number is odd.
    """
    ranked = sorted(set(hashes))
    return [ranked[start : start + 2] for start in range(0, len(ranked), 2)]


def fold_of(hashes: Iterable[str]) -> dict[str, int]:
    """The fold of each hash: 0 for members of pairs 0, 2, 4... and 1 for members of pairs 1, 3, 5...

    Both members of a pair are always in the same fold, so a question on the two of them has one fold.
    """
    return {member: rank % 2 for rank, pair in enumerate(pairs_by_hash(hashes)) for member in pair}
