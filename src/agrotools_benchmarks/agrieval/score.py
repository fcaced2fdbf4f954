"""Scores of examination questions: option letters, and texts compared with a reference text.

The definitions are those of AgriEval (arXiv 2507.21773): a question with several correct options counts only if exactly
these are given; ROUGE-L is computed over characters with alpha 1. Additional metrics are a partial credit and ROUGE-L
without punctuation.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from agrotools.core import FrozenModel, Record, Score, Trajectory, UsageError
from agrotools.scoring.choices import read_choices
from agrotools.scoring.contracts import Scoring, TextComparisons
from agrotools.scoring.embedders import MINILM, MPNET
from agrotools.scoring.judging.contracts import JudgedMetric, Judging
from agrotools.scoring.judging.questions import JudgeQuestion, Rubrics, open_question
from agrotools.scoring.slots import SLOT_METRIC
from agrotools.scoring.statistics import Estimate, estimate_mean
from agrotools.text.rouge import rouge_l, rouge_l_normalised
from agrotools_benchmarks.agrieval import published_scorer
from agrotools_benchmarks.agrieval.plugin import ROUGES, OptionsSlot, ReferenceTextSlot, has_text

VERSION = "1"
READ_METRICS = ("agrieval.accuracy", "agrieval.partial", "agrieval.accuracy_published")
PUBLISHED_ROUGES = tuple(f"agrieval.{name}_published" for name in ROUGES)
"""Overlap metrics that AgriEval's own code computes for open questions without a model."""
TEXT_METRICS = ("agrieval.rouge_l", "agrieval.rouge_l_normalised", *PUBLISHED_ROUGES)
SIMILARITIES = {MINILM: "agrieval.similarity_minilm", MPNET: "agrieval.similarity_mpnet"}
"""Cosine metrics by the name of their embedder."""
JUDGE = "agrieval.judge"


def optional_metrics(comparisons: TextComparisons) -> dict[str, Callable[[str, str], float]]:
    """Return the requested optional metrics, each with its function of an answer and a reference text.

    Raises:
        UsageError: there is no metric for the embedder.
    """
    embedder = comparisons.embedder
    if embedder is None:
        return {}
    if embedder.name not in SIMILARITIES:
        fault = f"open questions are not compared by the embedder {embedder.name}"
        raise UsageError(fault, hint=f"known: {', '.join(SIMILARITIES)}")
    return {SIMILARITIES[embedder.name]: embedder.similarity}


def score_record(
    record: Record, trajectory: Trajectory, comparisons: TextComparisons
) -> list[Score]:
    """Return the rows of a record whose sample is an examination question; ``slot`` holds the parsed answer.

    ``benchmark.toml`` says what each metric means. ``agrieval.likelihood`` is there only if the endpoint returned
    probabilities and a single option is correct.

    Raises:
        UsageError: the dependency of an optional metric is not installed.
    """
    (slot,) = record.sample.answer
    answer = trajectory.answer_text
    reading: dict[str, JsonValue]
    values: dict[str, float]
    if answer is None:
        reading = {"rule": "no answer", "termination": trajectory.termination}
        metrics = TEXT_METRICS if isinstance(slot, ReferenceTextSlot) else READ_METRICS
        values = dict.fromkeys(metrics, 0.0)
    elif isinstance(slot, OptionsSlot):
        reading, values = read_options(slot, answer)
    else:
        assert isinstance(slot, ReferenceTextSlot)
        reading = {"text": answer[:240], "rule": "longest common subsequence of characters"}
        values = text_values(slot, answer)
    if isinstance(slot, OptionsSlot) and (likeliest := _likeliest(slot, trajectory)) is not None:
        reading["likeliest"] = likeliest
        values["agrieval.likelihood"] = float(slot.value == (likeliest,))
    if isinstance(slot, ReferenceTextSlot):
        more = optional_metrics(comparisons).items()
        values |= {metric: score(answer, slot.value) if answer else 0.0 for metric, score in more}
    rows = [_row(record, metric, value) for metric, value in values.items()]
    return [_row(record, "slot", rows[0].value, slot.name, reading), *rows]


def text_values(slot: ReferenceTextSlot, answer: str) -> dict[str, float]:
    """Return the :data:`TEXT_METRICS` of an answer, each 0 to 1."""
    ours = rouge_l(answer, slot.value), rouge_l_normalised(answer, slot.value)
    theirs = published_scorer.rouges(published_scorer.as_compared(answer, slot.value))
    return dict(zip(TEXT_METRICS, (*ours, *theirs.values()), strict=True))


def read_options(slot: OptionsSlot, answer: str) -> tuple[dict[str, JsonValue], dict[str, float]]:
    """Return the parsed answer and its :data:`READ_METRICS`, each 0 to 1."""
    read = read_choices(answer, slot.options, slot.kind)
    read_letters, right = set(read.letters), set(slot.value)
    reading: dict[str, JsonValue] = {
        "value": [*read.letters],
        "rule": read.rule,
        "candidate": read.candidate[:120],
    }
    if read.ambiguous:
        reading["ambiguous"] = True
    partial = len(read_letters) / len(right) if read_letters <= right else 0.0
    letters = "".join(slot.value)
    theirs = published_scorer.credit(answer, slot.options, slot.kind, letters)
    values = (float(read_letters == right), partial, theirs)
    return reading, dict(zip(READ_METRICS, values, strict=True))


def _likeliest(slot: OptionsSlot, trajectory: Trajectory) -> str | None:
    """Return the option whose letter is the most likely first token; None without probabilities."""
    reply = trajectory.steps[-1].reply if trajectory.steps else trajectory.halted_by
    if slot.kind == "multiple" or reply is None or not reply.first_token:
        return None
    totals = dict.fromkeys(slot.options, 0.0)
    for token, probability in reply.first_token.items():
        letter = token.strip().upper()
        if letter in totals:
            totals[letter] += probability
    best = max(totals, key=lambda letter: totals[letter])
    return best if totals[best] > 0 else None


def _row(
    record: Record,
    metric: str,
    value: float,
    slot: str | None = None,
    reading: dict[str, JsonValue] | None = None,
) -> Score:
    return Score(
        metric=metric,
        version=VERSION,
        sample_id=record.sample.id,
        epoch=record.epoch,
        slot=slot,
        value=value,
        reading=reading or {},
    )


def _questions(record: Record, _: Rubrics | None) -> list[JudgeQuestion]:
    """Return a question about each answer that is compared with a reference text."""
    answer = (
        record.trajectory.answer_text
        if record.trajectory is not None and record.invalid is None
        else None
    )
    if answer is None or not answer.strip():
        return []
    # The prompt is not used, because its examples and passages contain answers and differ between settings.
    question = str(record.sample.metadata.get("question") or record.sample.query)
    texts = [slot for slot in record.sample.answer if isinstance(slot, ReferenceTextSlot)]
    return [open_question(JUDGE, slot.name, question, slot.value, answer) for slot in texts]


class Rotations(FrozenModel):
    """Results of questions asked with their options in every rotation, so that each text was once in each place."""

    n_questions: int
    accuracy: Estimate
    """Mean over the rotations of a question, which weights all places equally."""
    majority: Estimate
    """The options chosen in more rotations than any others are correct."""
    consistency: Estimate
    """The same options, by their text, were chosen in all rotations, correct or not; choosing none does not count."""


class OptionPlaces(FrozenModel):
    """Places of chosen and of correct options, from the first, over questions with one correct option.

    ``preference``: total variation distance between the two distributions, 0 to 1. ``unread``: number of answers from
    which no option could be parsed. ``constant``: share of all choice questions that the best constant answer gets
    right, one for each kind of question (single, multiple, true or false); None if it was not counted.
    """

    n: int
    chosen: tuple[int, ...]
    right: tuple[int, ...]
    unread: int
    preference: float
    constant: float | None = None


class OptionPlacesTally:
    """Counter of the places of chosen and correct options over the records of one mode."""

    def __init__(self) -> None:
        self._chosen, self._right = Counter[int](), Counter[int]()
        self._n = self._unread = 0
        self._answers: dict[str, Counter[tuple[str, ...]]] = {}
        """Correct letters by kind of question."""
        self._questions: dict[tuple[str, int], _Question] = {}
        """Answers to each question, by sample id without the rotation, and epoch."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid record and its rows; samples other than multiple-choice questions are ignored."""
        slot = record.sample.answer[0]
        if not isinstance(slot, OptionsSlot):
            return
        read = next((row.reading.get("value") for row in rows if row.metric == SLOT_METRIC), None)
        read_letters = [str(letter) for letter in read] if isinstance(read, list) else []
        letters = list(slot.options)
        self._answers.setdefault(slot.kind, Counter())[tuple(slot.value)] += 1
        if slot.kind == "single":
            self._n += 1
            self._right[letters.index(slot.value[0])] += 1
            if len(read_letters) == 1:
                self._chosen[letters.index(read_letters[0])] += 1
            else:
                self._unread += 1
        if record.sample.metadata.get("rotation") is not None:
            key = (record.sample.id.rpartition("-r")[0], record.epoch)
            chosen, right = (
                frozenset(slot.options[letter] for letter in each)
                for each in (read_letters, slot.value)
            )
            question = _Question(record.sample.cluster or key[0], len(letters), right)
            self._questions.setdefault(key, question).answers[chosen] += 1

    def results(self) -> dict[str, FrozenModel]:
        """Return ``option_places`` and ``rotations``, each only if there were such questions."""
        results = {"option_places": self.places(), "rotations": self.rotations()}
        return {name: result for name, result in results.items() if result is not None}

    def places(self) -> OptionPlaces | None:
        """Return the places of chosen and correct options; None if no question has a single correct option."""
        if not self._n:
            return None
        last = max(*self._chosen, *self._right, 0)
        chosen, right = (
            tuple(counts[place] for place in range(last + 1))
            for counts in (self._chosen, self._right)
        )
        n_choices = sum(chosen)
        distances = (
            abs(c / max(n_choices, 1) - r / self._n) for c, r in zip(chosen, right, strict=True)
        )
        apart = sum(distances) / 2 if n_choices else 0.0
        kinds, counts = (
            self._answers.values(),
            {"n": self._n, "chosen": chosen, "right": right, "unread": self._unread},
        )
        constant = sum(max(kind.values()) for kind in kinds) / sum(kind.total() for kind in kinds)
        return OptionPlaces.model_validate({**counts, "preference": apart, "constant": constant})

    def rotations(self) -> Rotations | None:
        """Return the results over the questions that were answered in every rotation; None if there are none."""
        whole = {key: question for key, question in self._questions.items() if question.whole}
        if not whole:
            return None
        clusters = [question.cluster for question in whole.values()]
        scores = [
            (question.accuracy, question.majority, question.consistent)
            for question in whole.values()
        ]
        accuracy, majority, consistency = (
            estimate_mean(values, clusters) for values in zip(*scores, strict=True)
        )
        n_questions = len({item for item, _ in whole})
        return Rotations(
            n_questions=n_questions, accuracy=accuracy, majority=majority, consistency=consistency
        )


@dataclass(slots=True)
class _Question:
    """Answers to all rotations of a question, by the texts of the chosen options."""

    cluster: str
    options: int
    right: frozenset[str]
    answers: Counter[frozenset[str]] = field(default_factory=Counter[frozenset[str]])

    @property
    def whole(self) -> bool:
        return self.answers.total() == self.options

    @property
    def accuracy(self) -> float:
        return self.answers[self.right] / self.options

    @property
    def majority(self) -> float:
        ranked = self.answers.most_common(2)
        clear = len(ranked) == 1 or ranked[0][1] > ranked[1][1]
        return float(clear and ranked[0][0] == self.right)

    @property
    def consistent(self) -> float:
        return float(len(self.answers) == 1 and frozenset[str]() not in self.answers)


SCORING = Scoring(
    score_record=score_record, check_comparisons=optional_metrics, tally=OptionPlacesTally
)
JUDGING = Judging(metrics={JUDGE: JudgedMetric(has_text)}, questions=_questions, calibrated=JUDGE)
