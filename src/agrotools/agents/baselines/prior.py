"""Baseline ``prior``: median or mode of the same slots in other clusters; and the similarity of questions.

Questions are TF-IDF vectors of words and word pairs, compared by cosine. Weights are ``(1 + ln tf) * ln(1 + n / df)``
(Salton and Buckley, Term-weighting approaches in automatic text retrieval, 1988). Numbers and file names are masked,
so that "is it above 5 %" and "is it above 12 %" are one question.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.agents.baselines.guess import NUMBER
from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    KeywordsSlot,
    ReferenceTextsSlot,
    Sample,
    SampleView,
    Slot,
    ToleranceSlot,
)
from agrotools.core.slot import asked_slots
from agrotools.text.answer_form import format_answer
from agrotools.text.normalise import TOKEN, normalise


class PriorTable:
    """Answers of a benchmark by template and slot, for guesses that exclude the sample's own cluster."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._seen: dict[tuple[str, ...], _Group] = defaultdict(_Group)
        for sample in samples:
            self.add(sample)

    def add(self, sample: Sample) -> None:
        """Add the answers of one more sample; must precede the first guess."""
        for slot in sample.answer:
            value = _gold(slot)
            if value is not None:
                for key in _keys(sample, slot):
                    self._seen[key].add(sample.cluster, value)

    def guess(self, sample: Sample, slot: Slot) -> JsonValue:
        """Return the prior for ``slot`` from the narrowest group with values in other clusters, or None."""
        for key in _keys(sample, slot):
            group = self._seen.get(key)
            if group is not None and (guess := group.typical_outside(sample.cluster)) is not None:
                if not isinstance(slot, FileSlot):
                    return guess
                names = sorted(slot.choices)
                return names[min(int(str(guess)), len(names) - 1)] if names else None
        return None

    def answer(self, sample: Sample, _view: SampleView) -> str:
        """Return the prior of every slot that has one, in the answer form."""
        values = {slot.name: self.guess(sample, slot) for slot in asked_slots(sample.answer)}
        return format_answer(
            sample.answer, {name: value for name, value in values.items() if value is not None}
        )


class _Group:
    def __init__(self) -> None:
        self._values: list[JsonValue] = []
        self._of_cluster: dict[str | None, list[JsonValue]] = defaultdict(list)
        self._guesses: dict[str | None, JsonValue] = {}

    def add(self, cluster: str | None, value: JsonValue) -> None:
        self._values.append(value)
        self._of_cluster[cluster].append(value)

    def typical_outside(self, cluster: str | None) -> JsonValue:
        """Return the median of the values of other clusters, or the most frequent one if not all are numbers."""
        if cluster not in self._guesses:
            self._guesses[cluster] = self._typical_without(cluster)
        return self._guesses[cluster]

    def _typical_without(self, cluster: str | None) -> JsonValue:
        excluded = self._of_cluster.get(cluster, [])
        n = len(self._values) - len(excluded)
        if not n:
            return None
        numbers = [number for number, of_cluster in self._numbers if of_cluster != cluster]
        if len(numbers) == n:
            return median({numbers[(n - 1) // 2], numbers[n // 2]})
        counts = self._counts - Counter(map(str, excluded))
        return self._by_text[min(counts, key=lambda text: (-counts[text], text))]

    @cached_property
    def _numbers(self) -> list[tuple[float, str | None]]:
        pairs = [
            (value, cluster)
            for cluster, values in self._of_cluster.items()
            for value in values
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        return sorted(pairs, key=lambda pair: pair[0])

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(map(str, self._values))

    @cached_property
    def _by_text(self) -> dict[str, JsonValue]:
        return {str(value): value for value in reversed(self._values)}


def _keys(sample: Sample, slot: Slot) -> tuple[tuple[str, ...], ...]:
    """Return group keys from the narrowest to the widest. A label is comparable only within its label set."""
    if isinstance(slot, ToleranceSlot):
        unit = slot.unit or ""
        return (("template", sample.template, slot.name), ("name", slot.name, unit), ("unit", unit))
    if isinstance(slot, BooleanSlot):
        return (("template", sample.template, slot.name), ("boolean",))
    return (("template", sample.template, slot.name),)


def _gold(slot: Slot) -> JsonValue:
    if isinstance(slot, ToleranceSlot | BooleanSlot | ExactSlot):
        return slot.value
    if isinstance(slot, FileSlot):
        # File names differ between samples, so a file is represented by its position in the sorted names.
        return str(sorted(slot.choices).index(slot.value)) if slot.value in slot.choices else None
    if isinstance(slot, ChoiceSetSlot):
        return list(slot.value)
    if isinstance(slot, KeywordsSlot):
        return ", ".join(group[0] for group in slot.whitelist if group) or None
    return slot.values[0] if isinstance(slot, ReferenceTextsSlot) else slot.comparable_value


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
