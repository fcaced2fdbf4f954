"""Where models look for the right option: places chosen and right, and answers to every rotation of the options."""

from array import array
from collections import Counter
from collections.abc import Sequence

from agrotools.benchmarks.agrieval.slots import OptionsSlot
from agrotools.core import FrozenModel, Record, Score
from agrotools.scoring.slots import SLOT_METRIC
from agrotools.scoring.statistics import Estimate, estimate_mean


class Rotations(FrozenModel):
    """Questions that were asked with their options in every rotation: each text stood in each place once.

    ``accuracy``: mean over the rotations of a question, so that no place is worth more than another. ``majority``: the
    options chosen in more rotations than any others are the right ones. ``consistency``: the same options were chosen,
    by their text, in all rotations (whether right or not; none is no choice).
    """

    n_questions: int
    accuracy: Estimate
    majority: Estimate
    consistency: Estimate


class OptionPlaces(FrozenModel):
    """Questions with one right option, by the place of an option from the first: how often chosen, how often right.

    ``preference``: total variation distance between the two, 0 to 1: how much of the choices would have to move for the
    places to be chosen as often as they are right. ``unread``: answers from which no option could be read.
    """

    n: int
    chosen: tuple[int, ...]
    right: tuple[int, ...]
    unread: int
    preference: float


class OptionPlacesTally:
    """Places of chosen and right options over the records of one mode."""

    def __init__(self) -> None:
        self._chosen, self._right = Counter[int](), Counter[int]()
        self._n = self._unread = 0
        self._questions: dict[tuple[str, int], _Question] = {}
        """By id without the rotation, and epoch."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """A valid record and its rows; those of other samples than multiple-choice questions are passed over."""
        slot = record.sample.answer[0]
        if not isinstance(slot, OptionsSlot):
            return
        read = next((row.reading.get("value") for row in rows if row.metric == SLOT_METRIC), None)
        given = [str(letter) for letter in read] if isinstance(read, list) else []
        letters = list(slot.options)
        if slot.kind == "single":
            self._n += 1
            self._right[letters.index(slot.value[0])] += 1
            if len(given) == 1:
                self._chosen[letters.index(given[0])] += 1
            else:
                self._unread += 1
        if record.sample.metadata.get("rotation") is not None:
            key = (record.sample.id.rpartition("-r")[0], record.epoch)
            self._questions.setdefault(key, _Question(record.sample.cluster or key[0])).add(slot, given)

    def results(self) -> dict[str, FrozenModel]:
        """``option_places`` and ``rotations``, as far as such questions were asked."""
        found = {"option_places": self.places(), "rotations": self.rotations()}
        return {name: result for name, result in found.items() if result is not None}

    def places(self) -> OptionPlaces | None:
        """What was chosen and what was right, or None where no question with one right option was asked."""
        if not self._n:
            return None
        last = max(*self._chosen, *self._right, 0)
        chosen, right = (tuple(counts[place] for place in range(last + 1)) for counts in (self._chosen, self._right))
        given = sum(chosen)
        apart = sum(abs(c / given - r / self._n) for c, r in zip(chosen, right, strict=True)) / 2 if given else 0.0
        return OptionPlaces(n=self._n, chosen=chosen, right=right, unread=self._unread, preference=apart)

    def rotations(self) -> Rotations | None:
        """Over the questions that were answered in every rotation, or None where there are none."""
        import numpy as np

        whole = {key: question for key, question in self._questions.items() if question.whole}
        if not whole:
            return None
        names: dict[str, int] = {}
        clusters = np.array([names.setdefault(each.cluster, len(names)) for each in whole.values()], dtype=np.int64)

        def mean(values: Sequence[float]) -> Estimate:
            return estimate_mean(np.array(values, dtype=np.float64), clusters)

        return Rotations(
            n_questions=len({item for item, _ in whole}),
            accuracy=mean([question.accuracy for question in whole.values()]),
            majority=mean([question.majority for question in whole.values()]),
            consistency=mean([question.consistent for question in whole.values()]),
        )


class _Question:
    """The answers to all rotations of a question, by the texts of the options chosen."""

    __slots__ = ("_answers", "_asked", "_options", "_right", "cluster")

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self._answers = Counter[frozenset[str]]()
        self._asked = array("B")
        self._options = 0
        self._right = frozenset[str]()

    def add(self, slot: OptionsSlot, given: Sequence[str]) -> None:
        self._options = len(slot.options)
        self._right = frozenset(slot.options[letter] for letter in slot.value)
        chosen = frozenset(slot.options[letter] for letter in given)
        self._answers[chosen] += 1
        self._asked.append(chosen == self._right)

    @property
    def whole(self) -> bool:
        return len(self._asked) == self._options

    @property
    def accuracy(self) -> float:
        return sum(self._asked) / len(self._asked)

    @property
    def majority(self) -> float:
        ranked = self._answers.most_common(2)
        clear = len(ranked) == 1 or ranked[0][1] > ranked[1][1]
        return float(clear and ranked[0][0] == self._right)

    @property
    def consistent(self) -> float:
        return float(len(self._answers) == 1 and frozenset[str]() not in self._answers)
