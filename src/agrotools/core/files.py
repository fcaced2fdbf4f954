"""Atomic and durable file writing (whole files, append-only journals), cache folders, and hashes of files.

Data written to the operating system survives ``kill -9``; only synced data survives a power cut.
"""

import errno
import gc
import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import orjson
from pydantic import ValidationError

from agrotools.core.errors import RunStoreError, UsageError
from agrotools.core.frozen_model import FrozenModel
from agrotools.core.systems import PRIVATE_BINARY, is_own, user_name_part

Line = TypeVar("Line", bound=FrozenModel)

RECORDS_FILE = "records.jsonl"
MANIFEST_FILE = "manifest.json"
MANIFEST_COPY = ".manifest.copy.json"
SYNC_EVERY_S = 1.0

_numbers = count()


@contextmanager
def without_collecting() -> Generator[None]:
    """Switch off garbage collection, because visiting the many objects of a large file takes long."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@cache
def read_table(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file of this package, read once; lists become tuples."""
    return _frozen(tomllib.loads(path.read_text("utf-8")))


def read_text(path: Path) -> str:
    """Return the text of a file that people write: UTF-8 with or without a byte order mark, or UTF-16 with one."""
    content = path.read_bytes()
    return content.decode(
        "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    )


def read_toml(
    file: Path, what: str = "configuration file", *, hint: str = "check the path of --config"
) -> dict[str, Any]:
    """Read a TOML file (``what`` it holds) that the user gives; UsageError if it does not exist or is none."""
    try:
        if file.exists() and not (
            file.is_file() or file.is_dir() or file.parent == Path("/dev/fd")
        ):  # bash's <(...)
            raise UsageError(
                f"the {what} {file} is a pipe or a device: it may never end",
                hint="give a regular file",
            )
        return tomllib.loads(read_text(file))
    except FileNotFoundError as error:
        raise UsageError(f"there is no {what} {file}", hint=hint) from error
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"cannot read the {what} {file}: {error}", hint="it must be a TOML file"
        ) from error


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in cast("dict[str, Any]", value).items()}
    return tuple(map(_frozen, cast("list[Any]", value))) if isinstance(value, list) else value


def write_whole(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Write a file atomically: a reader sees either the old or the new content, never a part.

    With ``synced`` this also holds after a power cut; a cache with checksums can do without waiting for the disk.

    Raises:
        OSError: the file cannot be written; its old content is unchanged.
    """
    with temporary_sibling(path, synced=synced) as temporary:
        temporary.write_bytes(content)


def copy_whole(source: Path, path: Path) -> None:
    """Copy ``source`` to ``path`` atomically, as in :func:`write_whole`.

    Raises:
        OSError: the file cannot be copied; the old content of ``path`` is unchanged.
    """
    with temporary_sibling(path) as temporary:
        shutil.copyfile(source, temporary)


def write_new(path: Path, content: bytes) -> bool:
    """Write a new file atomically; return False without writing if ``path`` exists.

    Its folder is created. Nothing is synced.

    Raises:
        OSError: the file cannot be written.
    """
    if os.path.lexists(path):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary_path(path)
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
        with suppress(OSError):
            temporary.unlink()


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}")


@contextmanager
def temporary_sibling(path: Path, *, synced: bool = True) -> Generator[Path]:
    """Yield a temporary path next to ``path`` that replaces it if the block succeeds and is removed if it fails.

    A link stays, and the file that it points to is replaced.

    Raises:
        OSError: the file cannot be synced or renamed, or the path is of something else, such as a device.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "is no regular file", str(path))
    temporary = _temporary_path(path)
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
    """Wait until a file's content, or a folder's list of names, is on disk.

    Raises:
        OSError: syncing failed.
    """
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder, and writes its names immediately
    number = os.open(path, os.O_RDONLY | PRIVATE_BINARY)
    try:
        os.fsync(number)
    except OSError as error:
        # Some network file systems cannot sync a folder; they write its names immediately.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(number)


class Journal:
    """An append-only file of lines.

    A line is passed to the operating system in one write before :meth:`append` returns; a thread syncs it to disk
    within ``sync_every_s`` seconds, so that :meth:`append` never waits for the disk. A partly written line is removed
    at once, so that later lines never follow a fragment. Only one process may have the file open.

    Raises:
        OSError: the file cannot be opened for writing.
    """

    def __init__(self, path: Path, sync_every_s: float = SYNC_EVERY_S) -> None:
        self.path = path
        self._sync_every_s = sync_every_s
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | PRIVATE_BINARY, 0o644)
        self._end = os.fstat(self._file).st_size
        self._torn = False
        self._unsynced = False
        self._fault: OSError | None = None
        self._closing = threading.Event()
        self._syncing: threading.Thread | None = None

    def append(self, line: bytes) -> None:
        """Write one or more lines, each ending in a line break.

        Raises:
            OSError: they cannot be written, or earlier lines could not be synced. Synced lines are unchanged.
        """
        if self._fault is not None:
            raise self._fault
        if self._torn:
            self._take_back()
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "it was deleted while in use", str(self.path))
        self._torn = True  # until the whole line is written, in case of an interruption
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
            self._syncing = threading.Thread(
                target=self._sync_regularly, name=f"sync {self.path.name}", daemon=True
            )
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
            OSError: appended lines could not be synced.
        """
        self._closing.set()
        if self._syncing is not None:
            self._syncing.join()
        self._sync()
        os.close(self._file)
        if self._fault is not None:
            raise self._fault


class LineFile(Generic[Line]):
    """An append-only file of records, one per line: ``records`` were read on opening, :meth:`add` appends one.

    The file is created with the first line. An incomplete last line (from a power cut while writing) is removed.
    ``hint`` is the hint of the error about an invalid line.

    Raises:
        RunStoreError: the file cannot be read or written, or has a line that is not a ``kind``.
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
        """Append one record.

        Raises:
            RunStoreError: it cannot be written; no part of it is left in the file.
        """
        try:
            self._journal = self._journal or Journal(self.path)
            self._journal.append(orjson.dumps(line.model_dump(mode="json")) + b"\n")
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def close(self) -> None:
        """Sync and close the file.

        Raises:
            RunStoreError: the last records could not be synced.
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
    """Return the records of a file, without an incomplete last line; empty if there is no file.

    Raises:
        RunStoreError: the file cannot be read, or has a line that is not a ``kind``.
    """
    return _read(path, kind, hint)[0]


def _read(path: Path, kind: type[Line], hint: str) -> tuple[list[Line], int]:
    """Return the records, and the offset of the end of the last complete line."""
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
                        what = re.sub(
                            r"(?<!^)(?=[A-Z])", " ", kind.__name__.removesuffix("Record")
                        ).lower()
                        raise RunStoreError(
                            f"{path}, line {number} is not a {what}", hint=hint
                        ) from error
                whole += len(line)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunStoreError(
            f"{path} cannot be read: {error.strerror}", hint="make it a file you may read"
        ) from error
    return rows, whole


def _unwritable(path: Path, error: OSError) -> RunStoreError:
    return RunStoreError(
        f"{path} cannot be written: {error.strerror or error}",
        hint=f"{remedy(error)} and run the same command again to resume",
    )


def is_full(error: OSError) -> bool:
    """Return True if a disk, or what a user may write to it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def remedy(error: OSError) -> str:
    """Return what helps against an error of the system with a file."""
    if is_full(error):
        return "free some space"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n)"
    return "check that it can be read and written"


def provide_home() -> None:
    """Set ``HOME`` to a folder of the temporary files if the user has no home folder, as in containers and cron jobs.

    Raises:
        UsageError: that folder cannot be made, or belongs to somebody else.
    """
    if os.environ.get("HOME"):
        return
    os.environ.pop("HOME", None)  # an empty one hides that of the user's account
    if Path(os.path.expanduser("~")).is_absolute():  # noqa: PTH111
        return
    folder = Path(tempfile.gettempdir(), f"agrotools-home-{user_name_part()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        can_be_used = is_own(folder) and not folder.is_symlink()
    except OSError:
        can_be_used = False
    if not can_be_used:
        raise UsageError(
            f"there is no home folder, and {folder} cannot be used",
            hint="set HOME to your own folder",
        )
    os.environ["HOME"] = str(folder)


def cache_dir(*parts: str) -> Path:
    """Return a folder inside the user's cache (``AGROTOOLS_CACHE`` if set), without creating it."""
    provide_home()
    override = os.environ.get("AGROTOOLS_CACHE")
    if override:
        root = Path(override).expanduser()
    else:
        from platformdirs import user_cache_path

        root = user_cache_path("agrotools")
    return root.joinpath(*parts)


def cached_files(*parts: str, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files with one of ``suffixes`` in a folder of the user's cache, sorted; empty if it does not exist."""
    folder = cache_dir(*parts)
    return (
        sorted(path for path in folder.iterdir() if path.suffix in suffixes)
        if folder.is_dir()
        else []
    )


def hub_cache() -> Path:
    """Return the Hugging Face cache: ``HF_HUB_CACHE``, else ``HF_HOME``/hub, else ``~/.cache/huggingface/hub``."""
    provide_home()
    if chosen := os.environ.get("HF_HUB_CACHE"):
        return Path(chosen).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    caches = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(caches).expanduser() / "huggingface" / "hub"


def artifact_path(folder: Path, sha256: str, suffix: str) -> Path:
    """Return the path of a tool's output file in a run or benchmark folder, named by its hash."""
    return folder / "artifacts" / f"{sha256}{suffix}"


def unexpected_content(head: bytes) -> tuple[str, str] | None:
    """Return what a file holds in place of its data, by its first bytes, and how to get them; None for other content.

    Servers send a web page in place of a missing file, and a clone without Git LFS holds pointers.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:30].lower()
    if not start:
        return "empty", "download it again"
    if start.startswith((b"<!doctype html", b"<html")):
        return "a web page", "download it again"
    return (
        ("a pointer of Git LFS", "git lfs pull")
        if start.startswith(b"version https://git-lfs")
        else None
    )


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def was_changed(path: str, sha256: str) -> bool:
    """Return True if a file was written since this process began, and has another content than that of a hash."""
    try:
        changed_ns = os.stat(path).st_ctime_ns  # noqa: PTH116 - in a third of the time of a path's
        return changed_ns > _STARTED_NS and not _has_hash(path, changed_ns, sha256)
    except OSError:
        return False


_STARTED_NS = time.time_ns()


@lru_cache(maxsize=4096)
def _has_hash(path: str, _changed_ns: int, sha256: str) -> bool:
    return sha256_of_file(Path(path)) == sha256


def sha256_of_json(value: object) -> str:
    """Return the SHA-256 of data as JSON with sorted keys, as hexadecimal digits."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def pairs_by_hash(hashes: Iterable[str]) -> list[list[str]]:
    """Return the distinct ``hashes`` in ascending order as pairs: ranks 0 and 1 are pair 0, ranks 2 and 3 pair 1...

    The last pair has one hash if their number is odd.
    """
    ranked = sorted(set(hashes))
    return [ranked[start : start + 2] for start in range(0, len(ranked), 2)]


def fold_of(hashes: Iterable[str]) -> dict[str, int]:
    """Return the fold of each hash: 0 for members of pairs 0, 2, 4... and 1 for members of pairs 1, 3, 5...

    Both members of a pair are always in the same fold, so that a question about both files has one fold.
    """
    return {member: rank % 2 for rank, pair in enumerate(pairs_by_hash(hashes)) for member in pair}
