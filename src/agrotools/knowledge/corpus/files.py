"""Which files a corpus consists of, and how it is known again."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agrotools.core import CorpusError, UsageError

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and how much there is."""

Form = Literal["text", "lines", "dump"]
READ = ".txt, .md, .jsonl, .xml and .xml.bz2"
_FORMS: tuple[tuple[str, Form], ...] = (
    (".txt", "text"),
    (".md", "text"),
    (".jsonl", "lines"),
    (".xml", "dump"),
    (".xml.bz2", "dump"),
)
MEGABYTE = 1_000_000
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file of a corpus. ``name``: its path inside the corpus, with ``/``."""

    path: Path
    name: str
    form: Form
    size: int
    mtime_ns: int


def corpus_files(corpus: Path) -> Iterator[CorpusFile]:
    """The files of a corpus, in order of their names: one file, or all in a folder that we read.

    Names that begin with a dot are passed over; links to folders are not followed.

    Raises:
        UsageError: there is no such file or folder, or the file is none that we read.
        CorpusError: something in it cannot be looked at.
    """
    if corpus.is_dir():
        yield from _in_folder(corpus, "")
        return
    if not corpus.exists():
        raise UsageError(f"there is no {corpus}", hint="give a file or a folder of text")
    form = _form(corpus.name)
    found = None if form is None else _file(corpus, corpus.name, form)
    if found is None:
        raise UsageError(f"{corpus} is no file of text that is read", hint=f"read are {READ}, and folders of these")
    yield found


def _in_folder(folder: Path, inside: str) -> Iterator[CorpusFile]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                (entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name[0] != "."
            )
    except OSError as error:
        raise _unreadable(folder, error) from error
    for name, is_folder in names:
        if is_folder:
            yield from _in_folder(folder / name, f"{inside}{name}/")
        elif (form := _form(name)) is not None and (found := _file(folder / name, inside + name, form)) is not None:
            yield found


def _form(name: str) -> Form | None:
    return next((form for suffix, form in _FORMS if name.lower().endswith(suffix)), None)


def _file(path: Path, name: str, form: Form) -> CorpusFile | None:
    """The file; None where it is no regular one: a pipe would never end."""
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return CorpusFile(path, name, form, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _unreadable(path: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"{path} cannot be read: {error.strerror}", hint="make it readable, or take it out of the corpus"
    )


@dataclass(frozen=True)
class Stamp:
    """How many files there are and how large, and a hash of their names, sizes and times of change: quick to take."""

    files: int
    size: int
    sha256: str


def stamp(corpus: Path) -> Stamp:
    """Raises as :func:`corpus_files` does."""
    seen = hashlib.sha256()
    files = size = 0
    for file in corpus_files(corpus):
        seen.update(f"{file.name}\0{file.size}\0{file.mtime_ns}\0".encode("utf-8", "surrogateescape"))
        files += 1
        size += file.size
    return Stamp(files, size, seen.hexdigest())


def content_hash(corpus: Path, size: int, progress: Progress) -> str:
    """SHA-256 over names and contents of all files. ``size``: bytes that there are, for ``progress``.

    Raises:
        CorpusError: a file cannot be read.
    """
    seen = hashlib.sha256()
    done = 0
    for file in corpus_files(corpus):
        own = hashlib.sha256()
        for block in blocks(file):
            own.update(block)
            done += len(block)
            progress("hashing the corpus (MB)", min(done, size) // MEGABYTE, size // MEGABYTE)
        seen.update(file.name.encode("utf-8", "surrogateescape") + b"\0" + own.digest())
    return seen.hexdigest()


def blocks(file: CorpusFile) -> Iterator[bytes]:
    """The bytes of a file, a quarter of a megabyte at a time.

    Raises:
        CorpusError: it cannot be read.
    """
    try:
        with file.path.open("rb") as opened:
            while block := opened.read(_BLOCK):
                yield block
    except OSError as error:
        raise _unreadable(file.path, error) from error
