"""Similarity of questions: TF-IDF vectors of words and word pairs, compared by their cosine.

Weights are ``(1 + ln tf) * ln(1 + n / df)`` (Salton and Buckley, Term-weighting approaches in automatic text
retrieval, 1988). Numbers and file names are masked: "is it above 5 %" and "is it above 12 %" are one question.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from agrotools.text.normalise import CJK, WORD, normalise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_SHARED = 10_000
"""A word or pair that more of the different questions share tells little, and is passed over: comparing stays quick."""

_TOKEN = re.compile(rf"{WORD}+|[{CJK}]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def masked(query: str, file_names: Iterable[str]) -> str:
    """``query`` in lower case with ``file`` in place of each file name and ``0`` in place of each number."""
    text = normalise(query)
    for name in sorted(file_names, key=len, reverse=True):
        text = text.replace(normalise(name), "file")
    return _NUMBER.sub("0", text)


class SimilarQuestions:
    """Cosines of a question with each of ``texts`` (:func:`masked`, each one once)."""

    def __init__(self, texts: Sequence[str]) -> None:
        import numpy as np

        self._ids: dict[str, int] = {}
        features, rows, counts = array("i"), array("i"), array("i")
        for row, text in enumerate(texts):
            for feature, count in Counter(_features(text)).items():
                features.append(self._ids.setdefault(feature, len(self._ids)))
                rows.append(row)
                counts.append(count)
        by_feature = np.argsort(np.array(features), kind="stable")
        self._rows = np.array(rows)[by_feature]
        df = np.bincount(np.array(features), minlength=len(self._ids))
        self._ends = np.concatenate([[0], np.cumsum(df)])
        self._idf = np.where(df <= MOST_SHARED, np.log(1 + len(texts) / np.maximum(df, 1)), 0.0)
        weights = (1 + np.log(np.array(counts)[by_feature])) * np.repeat(self._idf, df)
        norms = np.sqrt(np.bincount(self._rows, weights=weights**2, minlength=len(texts)))
        self._weights = weights / np.where(norms > 0, norms, 1.0)[self._rows]
        self._size = len(texts)

    def cosines(self, text: str) -> "NDArray[np.float64]":
        """One number in [0, 1] for each of the texts. The work is that of the texts that share a feature."""
        import numpy as np

        cosines = np.zeros(self._size)
        counts = Counter(_features(text))
        known = [(self._ids[feature], count) for feature, count in counts.items() if feature in self._ids]
        weights = {feature: (1 + math.log(count)) * float(self._idf[feature]) for feature, count in known}
        norm = math.sqrt(sum(weight**2 for weight in weights.values()))
        for feature, weight in weights.items():
            if weight:
                span = slice(self._ends[feature], self._ends[feature + 1])
                cosines[self._rows[span]] += weight / norm * self._weights[span]
        return cosines


def _features(text: str) -> Iterator[str]:
    words = _TOKEN.findall(text)
    yield from words
    for first, second in pairwise(words):
        yield f"{first} {second}"
