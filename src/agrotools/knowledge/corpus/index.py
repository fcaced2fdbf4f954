"""Index of a corpus of text, opened to be searched.

Scores are BM25 (Robertson and Zaragoza 2009) in the form that Kamphuis, de Vries, Boytsov and Lin 2020 ("Which BM25 Do
You Mean?") call Lucene (accurate), with Lucene's own constants, without the constant factor k1 + 1 as in Lucene since
version 8: the sum over the terms of the question, repeated ones repeatedly, of

    ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean_length))

with k1 = 1.2, b = 0.75; N passages, df of them with the term, tf times in this one (63 at most).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from agrotools.core import CorpusError, UsageError
from agrotools.core.base import FrozenModel
from agrotools.knowledge.corpus.documents import content_hash, stamp
from agrotools.knowledge.corpus.terms import TermCutter, TokensName
from agrotools.knowledge.corpus.writing import (
    COUNT_BITS,
    DOCUMENT_ENDS,
    DOCUMENTS,
    END_TYPE,
    MOST_COUNTED,
    OFFSET_TYPE,
    OFFSETS,
    PASSAGES,
    POSTING_TYPE,
    ROW_TYPE,
    ROWS,
    TERM_TYPE,
    TERMS,
    TEXTS,
    mix_terms,
)

MANIFEST = "index.json"
DATA = "agrotools-corpus-"
"""Prefix of the names of data folders. Those that no manifest names are removed."""
FORMAT = 2
K1, B = 1.2, 0.75
LONGEST_QUERY = 10_000
"""Characters of a question that are used; the rest is ignored."""
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
    """of names and contents of all files"""
    stamp: str
    """of names, sizes and times of change: as long as it is the same, nothing has to be hashed"""


class IndexSettings(FrozenModel):
    """Settings that change the index of the same corpus."""

    tokens: TokensName
    tokens_version: str
    units: int
    text_field: str | None = None
    title_field: str | None = None


class IndexManifest(FrozenModel):
    """``index.json``, written last and whole: a stopped build leaves data that no manifest names."""

    format: int
    corpus: CorpusState
    settings: IndexSettings
    documents: _Count
    passages: _Count
    terms: _Count
    postings: _Count
    occurrences: _Count
    """of terms in passages, repeated ones included: the mean length of a passage is ``occurrences / passages``"""
    text_bytes: _Count
    document_bytes: _Count
    passed_over: dict[str, int]
    data: Annotated[str, Field(pattern=rf"^{DATA}[0-9a-f]{{8}}$")]
    """name of the folder with the data"""


@dataclass(frozen=True, slots=True)
class Passage:
    """A search result.

    ``source``: file and line, id or address; ``title``: of the document, empty where the corpus gives none;
    ``position``: of its first character in the document's plain text.
    """

    text: str
    source: str
    title: str
    score: float
    position: int


def read_manifest(folder: Path) -> IndexManifest:
    """The manifest of an index.

    Raises:
        UsageError: there is no index, or its build was stopped.
        CorpusError: it cannot be read.
    """
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            manifest = IndexManifest.model_validate_json(file.read(_LONGEST_MANIFEST))
    except (FileNotFoundError, NotADirectoryError) as error:
        stopped = folder.is_dir() and any(folder.glob(f"{DATA}*"))
        fault = "holds an index that was not finished" if stopped else "holds no index of a corpus"
        raise UsageError(f"{folder} {fault}", hint=f"agrotools kb index CORPUS --out {folder}") from error
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}", hint="make it readable") from error
    except ValidationError as error:
        raise CorpusError(f"{path} is not the manifest of an index: {error.errors()[0]['msg']}", hint=_AGAIN) from error
    if manifest.format != FORMAT:
        raise CorpusError(f"{folder} has format {manifest.format}; this version reads format {FORMAT}", hint=_AGAIN)
    return manifest


class CorpusIndex:
    """Index of a corpus, opened with :meth:`open`. It never changes: any number of threads may search it."""

    def __init__(self, folder: Path, manifest: IndexManifest, stale: str | None) -> None:
        self.folder = folder
        self.manifest = manifest
        self.stale = stale
        """Reason why the index no longer matches the corpus; None where it does or the corpus is out of reach."""
        tokens = manifest.settings.tokens
        self._cutter = TermCutter(tokens)
        if self._cutter.version != manifest.settings.tokens_version:
            was, now = manifest.settings.tokens_version, self._cutter.version
            raise CorpusError(f"{folder} was built with {tokens} of version {was}, here is {now}", hint=_AGAIN)
        data = folder / manifest.data
        self._terms = _mapped(data / TERMS, TERM_TYPE, manifest.terms)
        self._offsets = _mapped(data / OFFSETS, OFFSET_TYPE, manifest.terms + 1)
        self._postings = _mapped(data / PASSAGES, POSTING_TYPE, manifest.postings)
        self._rows = _mapped(data / ROWS, ROW_TYPE, manifest.passages)
        self._document_ends = _mapped(data / DOCUMENT_ENDS, END_TYPE, manifest.documents)
        self._texts = _mapped(data / TEXTS, np.dtype(np.uint8), manifest.text_bytes)
        self._documents = _mapped(data / DOCUMENTS, np.dtype(np.uint8), manifest.document_bytes)
        mean = manifest.occurrences / manifest.passages
        self._norms = (K1 * (1 - B) + K1 * B / mean * self._rows["length"]).astype(np.float32)

    @classmethod
    def open(cls, folder: Path, *, check: bool = True) -> "CorpusIndex":
        """Open an index.

        Args:
            folder: where it was built.
            check: check that the corpus is unchanged, see :attr:`stale`. Where times or sizes of its files differ, it
                is hashed, which takes a second or more for each gigabyte.

        Raises:
            UsageError: there is no index, its build was stopped, or it needs jieba.
            CorpusError: it is damaged, or of another version, and has to be built again.
        """
        folder = folder.expanduser().absolute()
        manifest = read_manifest(folder)
        return cls(folder, manifest, _stale(manifest) if check else None)

    def identity(self) -> dict[str, object]:
        """Hash of the corpus, settings and ranking, to be recorded with a run."""
        manifest = self.manifest
        return {
            "corpus": Path(manifest.corpus.path).name,
            "corpus_sha256": manifest.corpus.sha256,
            "settings": manifest.settings.model_dump(exclude_none=True),
            "passages": manifest.passages,
            "ranking": f"BM25, Lucene (accurate), k1 {K1}, b {B}",
        }

    def search(self, query: str, k: int = 5) -> list[Passage]:
        """The ``k`` passages with the highest scores, best first, equal ones in the order of the corpus.

        Passages without any term of the question are not found, so that there may be fewer, or none.

        Raises:
            UsageError: ``k`` is less than 1.
        """
        if k < 1:
            raise UsageError(f"k is {k}", hint="ask for one passage or more")
        try:
            scores = self._scores(query[:LONGEST_QUERY])
            return [self._passage(number, float(scores[number])) for number in _best(scores, k)]
        except IndexError as error:
            raise CorpusError(f"{self.folder} is damaged: it refers to missing passages", hint=_AGAIN) from error

    def _scores(self, query: str) -> NDArray[np.float64]:
        """(passages,) scores; 0 for passages without any term of the question."""
        scores = np.zeros(len(self._rows))
        terms, repeats = np.unique(mix_terms(self._cutter.terms([query])[0]), return_counts=True)
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
        row = self._rows[number]
        start = int(self._rows[number - 1]["end"]) if number else 0
        text = self._texts[start : int(row["end"])].tobytes().decode("utf-8", "replace")
        document = self._document(int(row["document"]))
        return Passage(text, document["source"], document["title"], score, int(row["position"]))

    def _document(self, number: int) -> dict[str, str]:
        start = int(self._document_ends[number - 1]) if number else 0
        line = self._documents[start : int(self._document_ends[number])].tobytes()
        try:
            row = json.loads(line)
            return {"source": str(row["source"]), "title": str(row["title"])}
        except (ValueError, KeyError, TypeError) as error:
            raise CorpusError(f"{self.folder} is damaged: document {number} cannot be read", hint=_AGAIN) from error


def _best(scores: NDArray[np.float64], k: int) -> list[int]:
    """Places of the ``k`` highest scores above 0, the highest first, equal ones in order."""
    # That many blocks have a score as high as this, so that nothing lower is among the best.
    highest = np.maximum.reduceat(scores, np.arange(0, len(scores), _BLOCK))
    least = np.partition(highest, -k)[-k] if len(highest) >= k else 0.0
    places = np.flatnonzero(scores >= least) if least > 0 else np.flatnonzero(scores)
    return places[np.argsort(-scores[places], kind="stable")][:k].tolist()


def _mapped(path: Path, kind: np.dtype, count: int) -> NDArray:
    """A memory-mapped file of ``count`` numbers."""
    try:
        size = path.stat().st_size
        if size == count * kind.itemsize and count:
            # A plain array over the map: a memmap would do bookkeeping at every slice.
            return np.asarray(np.memmap(path, kind, "r"))
    except OSError as error:
        raise CorpusError(f"the index is damaged: {path}: {error.strerror}", hint=_AGAIN) from error
    raise CorpusError(f"the index is damaged: {path} has {size} bytes, not {count * kind.itemsize}", hint=_AGAIN)


def _stale(manifest: IndexManifest) -> str | None:
    corpus = Path(manifest.corpus.path)
    if not corpus.exists():
        return None
    try:
        current = stamp(corpus)
        if current.sha256 == manifest.corpus.stamp:
            return None
        same_size = (current.files, current.size) == (manifest.corpus.files, manifest.corpus.bytes)
        if same_size and content_hash(corpus, current.size, lambda *_: None) == manifest.corpus.sha256:
            return None
    except (UsageError, CorpusError) as error:
        return f"the corpus {corpus} can no longer be read: {error.message}"
    return f"the corpus {corpus} has changed since the index was built"
