"""Similarity of questions: cosines of TF-IDF vectors of words and word pairs.

Weights are ``(1 + ln tf) * ln(1 + n / df)`` (Salton and Buckley, Term-weighting approaches in automatic text retrieval,
1988). Numbers and file names are masked, so that "is it above 5 %" and "is it above 12 %" are one question.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from agrotools.agents.baselines.guess import NUMBER
from agrotools.text.normalise import TOKEN, normalise

MOST_SHARED = 10_000
"""Words and pairs in more distinct questions than this are ignored, because they are uninformative and slow."""


def masked(query: str, file_names: Iterable[str]) -> str:
    """Return ``query`` in lower case, with ``file`` in place of each file name and ``0`` in place of each number."""
    text = normalise(query)
    for name in sorted(file_names, key=len, reverse=True):
        text = text.replace(normalise(name), "file")
    return NUMBER.sub("0", text)


class SimilarQuestions:
    """Cosine similarities between a question and each of ``texts`` (distinct, :func:`masked`)."""

    def __init__(self, texts: Sequence[str]) -> None:
        from scipy.sparse import csr_array

        self._ids: dict[str, int] = {}
        entries = (
            (self._ids.setdefault(feature, len(self._ids)), row, count)
            for row, text in enumerate(texts)
            for feature, count in Counter(_features(text)).items()
        )
        features, rows, counts = (
            np.fromiter(chain.from_iterable(entries), np.int32).reshape(-1, 3).T
        )
        df = np.bincount(features, minlength=len(self._ids))
        self._idf = np.where(df <= MOST_SHARED, np.log(1 + len(texts) / np.maximum(df, 1)), 0.0)
        weights = (1 + np.log(counts)) * self._idf[features]
        norms = np.sqrt(np.bincount(rows, weights=weights**2, minlength=len(texts)))
        weights /= np.where(norms > 0, norms, 1.0)[rows]
        self._weights = csr_array((weights, (features, rows)), shape=(len(self._ids), len(texts)))

    def cosines(self, text: str) -> NDArray[np.float64]:
        """Return one cosine in [0, 1] per text. The cost depends only on the texts that share a feature."""
        counts = {
            self._ids[each]: count
            for each, count in Counter(_features(text)).items()
            if each in self._ids
        }
        features = np.array(list(counts), dtype=np.int32)
        weights = (1 + np.log(list(counts.values()))) * self._idf[features]
        return weights / (np.linalg.norm(weights) or 1.0) @ self._weights[features]


def _features(text: str) -> Iterator[str]:
    words = TOKEN.findall(text)
    yield from words
    for first, second in pairwise(words):
        yield f"{first} {second}"
