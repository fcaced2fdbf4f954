"""Files of a corpus as pieces of plain text, each small enough to be held in memory."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import CorpusError

READ = ".txt, .md and .jsonl (with text in text, contents, content or passage)"
_NAME = re.compile(r"(?:[^./][^/]*/)*[^./][^/]*\.(?:txt|md|jsonl)", re.IGNORECASE)
_PIECE, _LONGEST_LINE, _LONGEST_NAME = 1 << 20, 8 << 20, 200
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that could control a terminal or cannot be encoded; each is replaced by a space."""


class Piece(NamedTuple):
    """Text of a document, or the part of a long text file at ``position``; ``read``: bytes read of the file so far."""

    source: str
    title: str
    position: int
    text: str
    read: int


def corpus_files(corpus: Path) -> dict[str, Path]:
    """Return the files of a corpus by name: a file, or all files of known formats below a folder, in order."""
    paths, root = (sorted(corpus.rglob("*")), corpus) if corpus.is_dir() else ([corpus], corpus.parent)
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path for name, path in names.items() if _NAME.fullmatch(name) and path.is_file()}


def stamp(corpus: Path) -> str:
    """Return a hash of the names, sizes and modification times of the files of a corpus."""
    states = [(name, path.stat()) for name, path in corpus_files(corpus).items()]
    return hashlib.sha256(repr([(name, each.st_size, each.st_mtime_ns) for name, each in states]).encode()).hexdigest()


def read_corpus(corpus: Path, skipped: Counter[str]) -> Iterator[Piece]:
    """Yield the text of all documents of a corpus, and count those that are ``skipped``, by the reason."""
    done = 0
    for name, path in corpus_files(corpus).items():
        for piece in (_read_lines if path.suffix.lower() == ".jsonl" else _read_text)(path, name, skipped):
            source, title = (" ".join(_CONTROLS.sub(" ", each).split())[:_LONGEST_NAME] for each in piece[:2])
            yield Piece(source, title, piece.position, _CONTROLS.sub(" ", piece.text), done + piece.read)
        done += path.stat().st_size


def _read_text(path: Path, name: str, _: Counter[str]) -> Iterator[Piece]:
    for encoding in ("utf-8-sig", "gb18030"):
        position = 0
        try:
            with path.open(encoding=encoding) as file:
                while text := file.read(_PIECE) + file.readline(_PIECE):
                    yield Piece(name, "", position, text, file.buffer.tell())  # pyright: ignore
                    position += len(text)
            return
        except UnicodeDecodeError:
            if position:
                break
    raise CorpusError(f"{path} is neither UTF-8 nor GB18030 text", hint="save it as UTF-8")


def _read_lines(path: Path, name: str, skipped: Counter[str]) -> Iterator[Piece]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
            try:
                row: dict[str, Any] = dict(json.loads(line)) if line.strip() else {"text": ""}
            except (ValueError, TypeError, RecursionError) as error:
                fault = f"{path}, line {number}, is not a JSON object of at most {_LONGEST_LINE >> 20} MiB"
                raise CorpusError(fault, hint="fix or remove this line") from error
            text = row.get("text") or row.get("contents") or row.get("content") or row.get("passage") or ""
            text = "\n".join(map(str, text)) if isinstance(text, list) else str(text)  # pyright: ignore
            place = str(row.get("url") or row.get("id") or "")
            source = place if "://" in place else f"{name}#{place}" if place else f"{name}:{number}"
            if text.strip():
                yield Piece(source, str(row.get("title") or ""), 0, text, file.tell())
            elif line.strip():
                skipped["without text"] += 1
