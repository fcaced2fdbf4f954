"""Index of a text corpus, opened for search.

Scores are BM25 (Robertson and Zaragoza 2009) in the variant that Kamphuis, de Vries, Boytsov and Lin 2020 ("Which BM25
Do You Mean?") call Lucene (accurate), with Lucene's own constants and, as in Lucene since version 8, without the
constant factor k1 + 1: the sum over the terms of the question, with repetitions, of

    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean_length))

with k1 = 1.2 and b = 0.75; N is the number of passages, df the number of passages with the term, tf the number of its
occurrences in this passage (at most 63).

The data are memory-mapped files of little-endian numbers: ``postings.terms`` (8 bytes each, ascending),
``postings.offsets`` (8 bytes, one more than there are terms: the position of each term's first posting, and the end of
the last), ``postings.passages`` (4 bytes each: 26 bits number of a passage, ascending within a term, and 6 bits number
of occurrences of the term in it, at most 63), and ``passages.rows`` (:data:`ROW_TYPE`), which locates lines of
``passages.jsonl``.

bm25s computes the same scores and searches faster, but builds only in memory: see docs/retrieval.md.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from agrotools.core import CorpusError, UsageError
from agrotools.core.base import FrozenModel, command_line
from agrotools.knowledge.corpus.documents import stamp
from agrotools.knowledge.corpus.terms import TERMS_VERSION, UNITS, terms_of

MANIFEST = "index.json"
DATA = "agrotools-corpus-"
"""Prefix of the names of data folders. Folders that no manifest names are removed."""
FORMAT = 3
K1, B = 1.2, 0.75
COUNT_BITS = 6
MOST_COUNTED = (1 << COUNT_BITS) - 1
MOST_PASSAGES = 1 << (32 - COUNT_BITS)
TERM_TYPE, OFFSET_TYPE, POSTING_TYPE = np.dtype("<u8"), np.dtype("<u8"), np.dtype("<u4")
TERMS, OFFSETS, POSTINGS = "postings.terms", "postings.offsets", "postings.passages"
PASSAGES, ROWS = "passages.jsonl", "passages.rows"
ROW_TYPE = np.dtype([("end", "<u8"), ("length", "<u4")])
"""Row of a passage: end of its line in ``passages.jsonl``, and its number of terms."""
LONGEST_QUERY = 10_000
"""Maximum length of a question, characters; the rest is ignored."""
_AGAIN = "build it again: agrotools kb index CORPUS --out DIR --replace"
_BLOCK = 256
_LONGEST_MANIFEST = 1 << 20
_Count = Annotated[int, Field(ge=1)]


class CorpusState(FrozenModel):
    """Corpus that an index was built from."""

    path: str
    files: int
    bytes: int
    sha256: str
    """SHA-256 of names and contents of all files"""
    stamp: str
    """hash of names, sizes and modification times"""


class IndexSettings(FrozenModel):
    """Version of the terms, and maximum number of units per passage."""

    tokens: Literal["bigrams"] = "bigrams"
    tokens_version: str = TERMS_VERSION
    units: int = UNITS


class IndexManifest(FrozenModel):
    """Content of ``index.json``.

    It is written atomically at the end, so that data of an interrupted build are not named in any manifest.
    """

    format: int
    corpus: CorpusState
    settings: IndexSettings
    documents: _Count
    passages: _Count
    terms: _Count
    postings: _Count
    occurrences: _Count
    """number of terms in passages, with repetitions; the mean length of a passage is ``occurrences / passages``"""
    text_bytes: _Count
    passed_over: dict[str, int]
    data: Annotated[str, Field(pattern=rf"^{DATA}[0-9a-f]{{8}}$")]
    """name of the data folder"""


@dataclass(frozen=True, slots=True)
class Passage:
    """Search result.

    ``source``: file and line, id or URL; ``title``: title of the document, empty if the corpus has none; ``position``:
    position of the passage's first character in the document's plain text.
    """

    text: str
    source: str
    title: str
    score: float
    position: int


def read_manifest(folder: Path) -> IndexManifest:
    """Read the manifest of an index.

    Raises:
        UsageError: there is no index, or its build was interrupted.
        CorpusError: the manifest cannot be read.
    """
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LONGEST_MANIFEST))
        version = content["format"]
        if version == FORMAT:
            return IndexManifest.model_validate(content)
    except (FileNotFoundError, NotADirectoryError) as error:
        stopped = folder.is_dir() and any(folder.glob(f"{DATA}*"))
        fault = "holds an index that was not finished" if stopped else "holds no index of a corpus"
        raise UsageError(f"{folder} {fault}", hint=command_line("kb", "index", "CORPUS", "--out", folder)) from error
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}", hint="make it readable") from error
    except ValidationError as error:
        raise CorpusError(f"{path} is not the manifest of an index: {error.errors()[0]['msg']}", hint=_AGAIN) from error
    except (ValueError, LookupError, TypeError) as error:
        raise CorpusError(f"{path} is not the manifest of an index: {error}", hint=_AGAIN) from error
    raise CorpusError(f"{folder} has format {version}; this version reads format {FORMAT}", hint=_AGAIN)


class CorpusIndex:
    """Index of a corpus, opened with :meth:`open`. It is immutable, so any number of threads may search it."""

    def __init__(self, folder: Path, manifest: IndexManifest, stale: str | None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.stale = stale
        """reason why the index no longer matches the corpus; None if it matches or the corpus is not available"""
        if manifest.settings.tokens_version != TERMS_VERSION:
            version = manifest.settings.tokens_version
            raise CorpusError(
                f"{folder} was built with terms of version {version}, here is {TERMS_VERSION}", hint=_AGAIN
            )
        data = folder / manifest.data
        self._terms = _mapped(data / TERMS, TERM_TYPE, manifest.terms)
        self._offsets = _mapped(data / OFFSETS, OFFSET_TYPE, manifest.terms + 1)
        self._postings = _mapped(data / POSTINGS, POSTING_TYPE, manifest.postings)
        self._rows = _mapped(data / ROWS, ROW_TYPE, manifest.passages)
        self._passages = _mapped(data / PASSAGES, np.dtype(np.uint8), manifest.text_bytes)
        mean = manifest.occurrences / manifest.passages
        self._norms = (K1 * (1 - B) + K1 * B / mean * self._rows["length"]).astype(np.float32)

    @classmethod
    def open(cls, folder: Path) -> "CorpusIndex":
        """Open an index.

        Raises:
            UsageError: there is no index, or its build was interrupted.
            CorpusError: the index is damaged or of another version, and must be rebuilt.
        """
        folder = folder.expanduser().absolute()
        manifest = read_manifest(folder)
        return cls(folder, manifest, _stale(manifest))

    def identity(self) -> dict[str, object]:
        """Return the hash of the corpus, settings and ranking, to be recorded with a run."""
        manifest = self.manifest
        return {
            "corpus": Path(manifest.corpus.path).name,
            "corpus_sha256": manifest.corpus.sha256,
            "settings": manifest.settings.model_dump(exclude_none=True),
            "passages": manifest.passages,
            "ranking": f"BM25, Lucene (accurate), k1 {K1}, b {B}",
        }

    def search(self, query: str, k: int = 5) -> list[Passage]:
        """Return the ``k`` passages with the highest scores, best first, ties in the order of the corpus.

        Passages without any term of the question are not returned, so there may be fewer than ``k``, or none.

        Raises:
            UsageError: ``k`` is less than 1.
            CorpusError: the index is damaged.
        """
        if k < 1:
            raise UsageError(f"k is {k}", hint="ask for one passage or more")
        try:
            scores = self._scores(query[:LONGEST_QUERY])
            return [self._passage(number, float(scores[number])) for number in _best(scores, k)]
        except IndexError as error:
            raise CorpusError(f"{self.folder} is damaged: it refers to missing passages", hint=_AGAIN) from error

    def _scores(self, query: str) -> NDArray[np.float64]:
        """Return scores (passages,); 0 for passages without any term of the question."""
        scores = np.zeros(len(self._rows))
        terms, repeats = np.unique(terms_of([query])[0], return_counts=True)
        for term, times, place in zip(terms, repeats, np.searchsorted(self._terms, terms), strict=True):
            if place == len(self._terms) or self._terms[place] != term:
                continue
            postings = self._postings[int(self._offsets[place]) : int(self._offsets[place + 1])]
            passages = (postings >> COUNT_BITS).astype(np.intp)
            counts = (postings & MOST_COUNTED).astype(np.float32)
            rarity = np.log1p((len(scores) - len(postings) + 0.5) / (len(postings) + 0.5))
            shares = counts / (counts + self._norms.take(passages))
            scores[passages] = scores.take(passages) + shares * np.float32(times * rarity)
        return scores

    def _passage(self, number: int, score: float) -> Passage:
        start = int(self._rows[number - 1]["end"]) if number else 0
        line = self._passages[start : int(self._rows[number]["end"])].tobytes()
        try:
            return Passage(**json.loads(line), score=score)
        except (ValueError, TypeError) as error:
            raise CorpusError(f"{self.folder} is damaged: passage {number} cannot be read", hint=_AGAIN) from error


def _best(scores: NDArray[np.float64], k: int) -> list[int]:
    """Return the indices of the ``k`` highest scores above 0, highest first, ties in order."""
    # At least k blocks have a score this high, so lower scores cannot be among the best.
    highest = np.maximum.reduceat(scores, np.arange(0, len(scores), _BLOCK))
    least = np.partition(highest, -k)[-k] if len(highest) >= k else 0.0
    places = np.flatnonzero(scores >= least) if least > 0 else np.flatnonzero(scores)
    return places[np.argsort(-scores[places], kind="stable")][:k].tolist()


def _mapped(path: Path, kind: np.dtype, count: int) -> NDArray:
    """Map a file of ``count`` numbers into memory."""
    try:
        size = path.stat().st_size
        if size == count * kind.itemsize and count:
            # A plain array over the map: np.memmap has an overhead for every slice.
            return np.asarray(np.memmap(path, kind, "r"))
    except OSError as error:
        raise CorpusError(f"the index is damaged: {path}: {error.strerror}", hint=_AGAIN) from error
    raise CorpusError(f"the index is damaged: {path} has {size} bytes, not {count * kind.itemsize}", hint=_AGAIN)


def _stale(manifest: IndexManifest) -> str | None:
    corpus = Path(manifest.corpus.path)
    if not corpus.exists():
        return None
    try:
        if stamp(corpus).sha256 == manifest.corpus.stamp:
            return None
    except (UsageError, CorpusError) as error:
        return f"the corpus {corpus} can no longer be read: {error.message}"
    return f"the corpus {corpus} has changed since the index was built"
