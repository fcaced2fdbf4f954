"""From the files of a corpus to its documents, one at a time and each in pieces: nothing is held whole."""

import codecs
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agrotools.core import CorpusError
from agrotools.knowledge.corpus.files import CorpusFile, blocks, corpus_files

LONGEST = 8 * 1024 * 1024
"""Bytes of a line, or characters of a wiki page, at most: what is longer is passed over, and told."""
_TEXT_FIELDS = ("text", "contents", "content", "passage")
_PLACE_FIELDS = ("url", "id")
_ENCODINGS = ("utf-8-sig", "gb18030")


@dataclass(frozen=True, slots=True)
class Document:
    """A text with a name. ``title`` is empty where the corpus gives none; ``pieces`` can be gone through once."""

    source: str
    title: str
    pieces: Iterable[str]


@dataclass
class Tally:
    """How far reading is, and what was passed over."""

    bytes_read: int = 0
    without_text: int = 0
    too_long: int = 0
    redirects: int = 0
    other_pages: int = 0
    """Pages of a dump that are no articles: talk, templates, scripts."""

    def passed_over(self) -> dict[str, int]:
        told = {
            "without text": self.without_text,
            f"longer than {LONGEST // 1024**2} MiB": self.too_long,
            "redirects": self.redirects,
            "pages that are no articles": self.other_pages,
        }
        return {what: number for what, number in told.items() if number}


def read_corpus(
    corpus: Path, tally: Tally, *, text_field: str | None = None, title_field: str | None = None
) -> Iterator[Document]:
    """All documents of a corpus. A document has to be gone through before the next is asked for.

    Args:
        corpus: a file or a folder.
        tally: counts as reading goes on.
        text_field, title_field: names of the fields in JSONL, where they are not the usual ones.

    Raises:
        UsageError: there is no such corpus.
        CorpusError: a file cannot be read as what its name says.
    """
    from agrotools.knowledge.corpus.wikipedia import read_dump

    for file in corpus_files(corpus):
        if file.form == "text":
            yield Document(file.name, "", _text_pieces(file, tally))
        elif file.form == "lines":
            yield from _lines(file, tally, text_field, title_field)
        else:
            yield from read_dump(file, tally)


def _text_pieces(file: CorpusFile, tally: Tally) -> Iterator[str]:
    # Should the file change meanwhile, that is found out when all is read.
    decoder = codecs.getincrementaldecoder(_encoding(file))("replace")
    for block in blocks(file):
        tally.bytes_read += len(block)
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def _encoding(file: CorpusFile) -> str:
    """The first encoding in which the whole file can be read."""
    for encoding in _ENCODINGS:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            for block in blocks(file):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return encoding
    raise CorpusError(f"{file.path} is text neither in UTF-8 nor in GB18030", hint="save it as UTF-8")


def _lines(file: CorpusFile, tally: Tally, text_field: str | None, title_field: str | None) -> Iterator[Document]:
    with_text = 0
    fields: list[str] = []
    for number, line in _numbered(file, tally):
        row = _row(file, number, line)
        text = _text(row, (text_field,) if text_field else _TEXT_FIELDS)
        if not text.strip():
            tally.without_text += 1
            fields = fields or list(row)
            continue
        with_text += 1
        place = next((str(row[key]) for key in _PLACE_FIELDS if isinstance(row.get(key), str | int) and row[key]), "")
        title = row.get(title_field or "title")
        yield Document(
            place if "://" in place else f"{file.name}#{place}" if place else f"{file.name}:{number}",
            title.strip() if isinstance(title, str) else "",
            (text,),
        )
    if not with_text and fields:
        wanted = text_field or ", ".join(_TEXT_FIELDS[:-1]) + f" or {_TEXT_FIELDS[-1]}"
        raise CorpusError(
            f"no line of {file.path} has text in a field {wanted}",
            hint=f"name the field that holds it; the first line has: {', '.join(map(str, fields[:20]))[:300]}",
        )


def _numbered(file: CorpusFile, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; what is too long is counted and passed over."""
    number, line, too_long = 1, bytearray(), False
    for block in blocks(file):
        tally.bytes_read += len(block)
        *ended, last = block.split(b"\n")
        for part in ended:
            if too_long or len(line) + len(part) > LONGEST:
                tally.too_long += 1
            elif (whole := bytes(line) + part).strip():
                yield number, whole
            line.clear()
            too_long = False
            number += 1
        line += last
        if len(line) > LONGEST:
            too_long = True
            line.clear()
    if too_long:
        tally.too_long += 1
    elif line.strip():
        yield number, bytes(line)


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
    raise CorpusError(
        f"{file.path}, line {number}, is no JSON object: {line[:60].decode('utf-8', 'replace')!r}",
        hint="each line of a .jsonl file holds one object; mend or remove this line",
    )


def _text(row: dict[str, Any], fields: Iterable[str]) -> str:
    for field in fields:
        value = row.get(field)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = "\n".join(value)
        if isinstance(value, str) and value:
            return value
    return ""
