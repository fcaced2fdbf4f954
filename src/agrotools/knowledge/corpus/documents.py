"""Files of a corpus and their documents, read one at a time and in pieces: none is held in memory as a whole."""

import codecs
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from agrotools.core import CorpusError, UsageError

Progress = Callable[[str, int, int], None]
"""Called with the name of the stage, the amount done, and the total."""

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
"""Number of bytes read at once."""
LONGEST = 8 * 1024 * 1024
"""Maximum bytes of a line, or characters of a wiki page; longer ones are skipped and counted."""
_TEXT_FIELDS = ("text", "contents", "content", "passage")
_PLACE_FIELDS = ("url", "id")
_ENCODINGS = ("utf-8-sig", "gb18030")


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One file of a corpus. ``name``: path inside the corpus, with ``/``."""

    path: Path
    name: str
    form: Form
    size: int
    mtime_ns: int


def corpus_files(corpus: Path) -> Iterator[CorpusFile]:
    """Yield the files of a corpus in order of their names: a single file, or all files of known formats in a folder.

    Names that begin with a dot are skipped; links to folders are not followed.

    Raises:
        UsageError: there is no such file or folder, or the file has an unknown format.
        CorpusError: a file or folder in the corpus cannot be read.
    """
    if corpus.is_dir():
        yield from _in_folder(corpus, "")
        return
    if not corpus.exists():
        raise UsageError(f"{corpus} does not exist", hint="give a file or a folder of text")
    form = _form(corpus.name)
    file = None if form is None else _regular_file(corpus, corpus.name, form)
    if file is None:
        raise UsageError(f"{corpus} is not a text file of a known kind", hint=f"give {READ}, or a folder of these")
    yield file


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
        elif (form := _form(name)) is not None and (file := _regular_file(folder / name, inside + name, form)):
            yield file


def _form(name: str) -> Form | None:
    return next((form for suffix, form in _FORMS if name.lower().endswith(suffix)), None)


def _regular_file(path: Path, name: str, form: Form) -> CorpusFile | None:
    """Return the file, or None if it is not a regular file (reading a pipe might never end)."""
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return CorpusFile(path, name, form, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _unreadable(path: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"{path} cannot be read: {error.strerror}", hint="make it readable, or remove it from the corpus"
    )


@dataclass(frozen=True)
class CorpusStamp:
    """Number and total size of the files of a corpus, and a hash of their names, sizes and modification times."""

    files: int
    size: int
    sha256: str


def stamp(corpus: Path) -> CorpusStamp:
    """Return the stamp of a corpus without opening files. Raises the errors of :func:`corpus_files`."""
    total = hashlib.sha256()
    files = size = 0
    for file in corpus_files(corpus):
        total.update(f"{file.name}\0{file.size}\0{file.mtime_ns}\0".encode("utf-8", "surrogateescape"))
        files += 1
        size += file.size
    return CorpusStamp(files, size, total.hexdigest())


def content_hash(corpus: Path, size: int, progress: Progress) -> str:
    """Return the SHA-256 of names and contents of all files. ``size``: total bytes, for ``progress``.

    Raises:
        CorpusError: a file cannot be read.
    """
    total = hashlib.sha256()
    offset = 0
    for file in corpus_files(corpus):
        of_file = hashlib.sha256()
        for block in blocks(file):
            of_file.update(block)
            offset += len(block)
            progress("hashing the corpus (MB)", min(offset, size) // MEGABYTE, size // MEGABYTE)
        total.update(file.name.encode("utf-8", "surrogateescape") + b"\0" + of_file.digest())
    return total.hexdigest()


def blocks(file: CorpusFile) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of a quarter of a megabyte.

    Raises:
        CorpusError: the file cannot be read.
    """
    try:
        with file.path.open("rb") as opened:
            while block := opened.read(_BLOCK):
                yield block
    except OSError as error:
        raise _unreadable(file.path, error) from error


@dataclass(frozen=True, slots=True)
class Document:
    """Text with a name. ``title`` is empty if the corpus has none; ``pieces`` can be iterated once."""

    source: str
    title: str
    pieces: Iterable[str]


@dataclass
class ReadingCounts:
    """Progress of reading a corpus, and counts of skipped items."""

    bytes_read: int = 0
    without_text: int = 0
    too_long: int = 0
    redirects: int = 0
    other_pages: int = 0
    """number of pages of a dump that are not articles: talk, templates, scripts"""

    def skipped(self) -> dict[str, int]:
        numbers = {
            "without text": self.without_text,
            f"longer than {LONGEST // 1024**2} MiB": self.too_long,
            "redirects": self.redirects,
            "pages that are not articles": self.other_pages,
        }
        return {what: number for what, number in numbers.items() if number}


def read_corpus(corpus: Path, counts: ReadingCounts) -> Iterator[Document]:
    """Yield all documents of a corpus and update ``counts``. Read a document to its end before requesting the next.

    Raises:
        UsageError: the corpus does not exist.
        CorpusError: a file does not have the format given by its name.
    """
    from agrotools.knowledge.corpus.wikipedia import read_dump

    for file in corpus_files(corpus):
        if file.form == "text":
            yield Document(file.name, "", _text_pieces(file, counts))
        elif file.form == "lines":
            yield from _lines(file, counts)
        else:
            yield from read_dump(file, counts)


def _text_pieces(file: CorpusFile, counts: ReadingCounts) -> Iterator[str]:
    # Changes of the file during reading are detected at the end.
    decoder = codecs.getincrementaldecoder(_encoding(file))("replace")
    for block in blocks(file):
        counts.bytes_read += len(block)
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def _encoding(file: CorpusFile) -> str:
    """Return the first encoding that decodes the whole file."""
    for encoding in _ENCODINGS:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            for block in blocks(file):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return encoding
    raise CorpusError(f"{file.path} is neither UTF-8 nor GB18030 text", hint="save it as UTF-8")


def _lines(file: CorpusFile, counts: ReadingCounts) -> Iterator[Document]:
    with_text = 0
    fields: list[str] = []
    for number, line in _numbered(file, counts):
        row = _row(file, number, line)
        text = _text(row)
        if not text.strip():
            counts.without_text += 1
            fields = fields or list(row)
            continue
        with_text += 1
        place = next((str(row[key]) for key in _PLACE_FIELDS if isinstance(row.get(key), str | int) and row[key]), "")
        title = row.get("title")
        yield Document(
            place if "://" in place else f"{file.name}#{place}" if place else f"{file.name}:{number}",
            title.strip() if isinstance(title, str) else "",
            (text,),
        )
    if not with_text and fields:
        raise CorpusError(
            f"no line of {file.path} has text in a field {', '.join(_TEXT_FIELDS[:-1])} or {_TEXT_FIELDS[-1]}",
            hint=f"rename the field that holds it; the first line has: {', '.join(map(str, fields[:20]))[:300]}",
        )


def _numbered(file: CorpusFile, counts: ReadingCounts) -> Iterator[tuple[int, bytes]]:
    """Yield non-blank lines with their numbers; overlong lines are counted and skipped."""
    try:
        with file.path.open("rb") as opened:
            for number in count(1):
                line = opened.readline(LONGEST + 1)
                counts.bytes_read += len(line)
                if len(line) <= LONGEST:
                    if not line:
                        return
                    if line.strip():
                        yield number, line
                    continue
                counts.too_long += 1
                while line and not line.endswith(b"\n"):
                    line = opened.readline(_BLOCK)
                    counts.bytes_read += len(line)
    except OSError as error:
        raise _unreadable(file.path, error) from error


def _row(file: CorpusFile, number: int, line: bytes) -> dict[str, Any]:
    for encoding in _ENCODINGS:
        try:
            row = json.loads(line.decode(encoding))
        except UnicodeDecodeError:
            continue
        except (ValueError, RecursionError):
            break
        if isinstance(row, dict):
            return row
        break
    why = f"{file.path}, line {number}, is not a JSON object: {line[:60].decode('utf-8', 'replace')!r}"
    raise CorpusError(why, hint="each line of a .jsonl file holds one object; fix or remove this line")


def _text(row: dict[str, Any]) -> str:
    for field in _TEXT_FIELDS:
        value = row.get(field)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = "\n".join(value)
        if isinstance(value, str) and value:
            return value
    return ""
