"""Search in any corpus of text, with an index on disk that is built once in limited memory.

An index is a file of SQLite with the passages and a full-text table (FTS5) of their terms.
Ranking is the bm25() of FTS5, with k1 = 1.2 and b = 0.75. Terms are cut here, because no tokenizer of FTS5 cuts Chinese
into words: pairs of adjacent characters in scripts without spaces, else words and numbers in lower case.
"""

import hashlib
import json
import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import CorpusError, UsageError
from agrotools.core.files import temporary_sibling
from agrotools.core.progress import Progress, no_progress

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
    paths, root = (
        (sorted(corpus.rglob("*")), corpus) if corpus.is_dir() else ([corpus], corpus.parent)
    )
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path for name, path in names.items() if _NAME.fullmatch(name) and path.is_file()}


def stamp(corpus: Path) -> str:
    """Return a hash of the names, sizes and modification times of the files of a corpus."""
    states = [(name, path.stat()) for name, path in corpus_files(corpus).items()]
    return hashlib.sha256(
        repr([(name, each.st_size, each.st_mtime_ns) for name, each in states]).encode()
    ).hexdigest()


def read_corpus(corpus: Path, skipped: Counter[str]) -> Iterator[Piece]:
    """Yield the text of all documents of a corpus, and count those that are ``skipped``, by the reason."""
    done = 0
    for name, path in corpus_files(corpus).items():
        for piece in (_read_lines if path.suffix.lower() == ".jsonl" else _read_text)(
            path, name, skipped
        ):
            source, title = (
                " ".join(_CONTROLS.sub(" ", each).split())[:_LONGEST_NAME] for each in piece[:2]
            )
            yield Piece(
                source, title, piece.position, _CONTROLS.sub(" ", piece.text), done + piece.read
            )
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
            text = (
                row.get("text")
                or row.get("contents")
                or row.get("content")
                or row.get("passage")
                or ""
            )
            text = "\n".join(map(str, text)) if isinstance(text, list) else str(text)  # pyright: ignore
            place = str(row.get("url") or row.get("id") or "")
            source = place if "://" in place else f"{name}#{place}" if place else f"{name}:{number}"
            if text.strip():
                yield Piece(source, str(row.get("title") or ""), 0, text, file.tell())
            elif line.strip():
                skipped["without text"] += 1


UNITS = 300
"""Maximum number of units per passage: words, or characters in scripts without spaces."""
_LONGEST_PASSAGE, _LONGEST_QUERY = 10 * UNITS, 10_000
_MOST_MATCHES, _MOST_SHARE, _FREQUENT = 10_000, 0.05, 100
"""Matches that a search ranks, at least this number and share; beyond both, the commonest terms, of ``_FREQUENT``
passages or more, are left out."""
_PAIRED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
"""Scripts without spaces: Thai, Lao, Burmese, Khmer, kana, ideographs."""
_TERM = re.compile(rf"([{_PAIRED}]{{2,}})|[{_PAIRED}]|(?:\d+(?:\.\d+)+|[^\W_{_PAIRED}])+")
_FULL = re.compile(rf"(?:[\W_]*+(?:[{_PAIRED}]|[^\W_{_PAIRED}]++)){{1,{UNITS}}}[\W_]*+")
_CLOSING = r"[”’」』）》】\"')\]]*+"
_ENDS = (rf"(?s).*(?:[。！？!?；;…\n]{_CLOSING}|\.{_CLOSING}\s)", r"(?s).*[，、：,:\s]")
"""Text up to the last end of a sentence, and up to the last pause."""
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192;
CREATE TABLE about_4 (manifest TEXT);
CREATE TABLE passages (number INTEGER PRIMARY KEY, text TEXT, source TEXT, title TEXT, position INTEGER);
CREATE VIRTUAL TABLE terms USING fts5(
    body, content = '', tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'");
INSERT INTO terms (terms, rank) VALUES ('hashsize', 33554432);
CREATE VIRTUAL TABLE counts USING fts5vocab(terms, row);
CREATE TABLE frequent (term TEXT PRIMARY KEY, passages INTEGER) WITHOUT ROWID;
BEGIN;
"""
_SEARCH = """
SELECT text, source, title, -score, position
FROM (SELECT rowid, bm25(terms) AS score FROM terms WHERE terms MATCH ? ORDER BY score, rowid LIMIT ?)
JOIN passages ON number = rowid ORDER BY score, number
"""


class Passage(NamedTuple):
    """Search result. ``source``: file and line, id or URL; ``position``: of its first character in the document."""

    text: str
    source: str
    title: str
    score: float
    position: int


class CorpusIndex:
    """Index of a corpus, opened for search. Any number of threads may search it.

    ``manifest`` has the hash of all passages, ``sha256``; ``stale`` says that the corpus has changed since, or is None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        if not self.path.is_file():
            raise UsageError(
                f"{self.path} is not a corpus index",
                hint="agrotools tools kb index CORPUS --out FILE",
            )
        self.manifest: dict[str, Any] = json.loads(
            self._select("SELECT manifest FROM about_4")[0][0]
        )
        corpus = Path(self.manifest["corpus"])
        changed = corpus.exists() and stamp(corpus) != self.manifest["stamp"]
        self.stale = (
            f"the corpus {corpus} has changed since the index was built" if changed else None
        )

    def search(self, query: str, k: int = 5) -> list[Passage]:
        """Return the up to ``k`` passages with terms of a question, best first, ties in the order of the corpus."""
        if k < 1:
            raise UsageError(f"k is {k}", hint="ask for one passage or more")
        terms = dict.fromkeys(cut_terms(query[:_LONGEST_QUERY]), 0)
        listed = (
            "SELECT term, passages FROM frequent WHERE term IN (SELECT value FROM json_each(?))"
        )
        terms.update(self._select(listed, json.dumps(list(terms))))
        chosen, matches, most = (
            list[str](),
            0,
            max(_MOST_MATCHES, self.manifest["passages"] * _MOST_SHARE),
        )
        for term, passages in sorted(terms.items(), key=lambda item: item[1]):
            matches += passages
            if matches <= most or not chosen:
                chosen.append(f'"{term}"')
        return (
            [Passage(*row) for row in self._select(_SEARCH, " OR ".join(chosen), k)]
            if chosen
            else []
        )

    def _select(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            with closing(
                sqlite3.connect(f"{self.path.as_uri()}?mode=ro&immutable=1", uri=True)
            ) as database:
                return database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            hint = "remove the file and build it again, with a Python whose sqlite3 has FTS5"
            raise CorpusError(
                f"{self.path} is damaged or no index that this version reads: {error}", hint=hint
            ) from error


def build_index(
    corpus: Path, out: Path, *, replace: bool = False, progress: Progress = no_progress
) -> CorpusIndex:
    """Build the index of a corpus in the file ``out``, or open it if it is up to date.

    Args:
        corpus: a file or a folder: .txt, .md and .jsonl.
        out: file of the index; an interrupted build leaves it as it was.
        replace: replace an index of something else.
        progress: called with the name of the stage, the amount done, and the total.

    Raises:
        UsageError: the corpus does not exist or contains no text, or ``out`` contains something else.
        CorpusError: a file of the corpus cannot be read, or the index cannot be written.
    """
    corpus, out = corpus.expanduser().absolute(), out.expanduser().absolute()
    if not corpus.exists():
        raise UsageError(f"{corpus} does not exist", hint="give a file or a folder of text")
    before = stamp(corpus)
    if out.exists():
        opened = CorpusIndex(out)
        if opened.manifest["stamp"] == before:
            return opened
        if not replace:
            hint = "give --replace to build it again, or choose another file"
            raise UsageError(
                f"{out} is the index of another corpus, or of this one before it changed", hint=hint
            )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with (
            temporary_sibling(out) as path,
            closing(sqlite3.connect(path, isolation_level=None)) as database,
        ):
            database.executescript(_SCHEMA)
            manifest = _fill(database, corpus, progress) | {"corpus": str(corpus), "stamp": before}
            database.execute("INSERT INTO about_4 VALUES (?)", (json.dumps(manifest),))
            database.execute("INSERT INTO terms (terms) VALUES ('optimize')")
            database.execute(
                "INSERT INTO frequent SELECT term, doc FROM counts WHERE doc >= ?", (_FREQUENT,)
            )
            database.execute("COMMIT")
    except (OSError, sqlite3.Error) as error:
        hint = "check that files can be read and written, that the disk has space, and that sqlite3 has FTS5"
        raise CorpusError(f"the index {out} cannot be built: {error}", hint=hint) from error
    return CorpusIndex(out)


def _fill(database: sqlite3.Connection, corpus: Path, progress: Progress) -> dict[str, Any]:
    size = sum(path.stat().st_size for path in corpus_files(corpus).values()) // 1_000_000
    skipped = Counter[str]()
    documents = 0
    passages = 0
    read = -1
    total = hashlib.sha256()
    for piece in read_corpus(corpus, skipped):
        documents += not piece.position
        for position, text in split(piece.text):
            passages += 1
            row = (passages, text, piece.source, piece.title, piece.position + position)
            total.update(repr(row).encode())
            database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", row)
            # The title is indexed too, because later passages of an article may refer to its subject only as "it".
            terms = " ".join(cut_terms(f"{piece.title}\n{text}"))
            database.execute("INSERT INTO terms (rowid, body) VALUES (?, ?)", (passages, terms))
        if piece.read // 1_000_000 > read:
            progress("indexing the corpus (MB)", read := piece.read // 1_000_000, size)
    if not passages:
        raise UsageError(f"{corpus} contains no text", hint=f"give {READ}")
    return {
        "sha256": total.hexdigest(),
        "documents": documents,
        "passages": passages,
        "skipped": dict(skipped),
    }


def cut_terms(text: str) -> Iterator[str]:
    """Yield the terms of a text; a character without neighbours is a term itself."""
    for match in _TERM.finditer(unicodedata.normalize("NFKC", text).lower()):
        yield from map("".join, pairwise(match[1])) if match[1] else (match[0],)


def split(text: str) -> Iterator[tuple[int, str]]:
    """Yield passages, ``(position, text)``, that end at a sentence, or else a pause, if that leaves them half full."""
    at = 0
    while at < len(text):
        window = text[at : at + _LONGEST_PASSAGE]
        end = len(window)
        if full := _FULL.match(window):
            end = full.end()
            if at + end < len(text):
                found = (re.compile(each).match(window, end // 2, end) for each in _ENDS)
                end = next((each.end() for each in found if each), end)
            yield at + len(window) - len(window.lstrip()), window[:end].strip()
        at += end
