"""Score rows of outcomes, and scores of slots, which compare the values in an answer with those of the sample.

``outcome_scores`` returns the rows of a no-tool or end-to-end record; its outcome is the weighted mean of its slots'
scores. ``score_slot`` scores one slot of an answer: the value that :mod:`agrotools.text.answer_reader` reads, which
knows no gold, is compared with the gold.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from agrotools.core import (
    AbstainSlot,
    Answer,
    BenchmarkError,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    KeywordsSlot,
    OpenTextSlot,
    PlotSlot,
    PlotSpec,
    Record,
    ReferenceTextsSlot,
    RunStoreError,
    Sample,
    Score,
    Slot,
    ToleranceSlot,
    Trajectory,
)
from agrotools.core.form_item import FormItem, asked_items, form_item
from agrotools.core.frozen_model import from_valid
from agrotools.core.installed import plugins_of_slots
from agrotools.core.slot import asked_slots
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons, scoring_of
from agrotools.scoring.floors import GuessPoints, prompt_floor
from agrotools.scoring.metrics import (
    CONSTANT_METRIC,
    FALSE_CONFIDENCE,
    FALSE_REFUSAL,
    FAS,
    FAS_TEXT,
    GUESS_METRIC,
    HARMFUL_ADVICE,
    METRICS,
    SLOT_METRIC,
    counts_in_fas,
    counts_in_guess,
    places_by_metric,
)
from agrotools.scoring.slot_weights import weighted_mean, weights_by_name
from agrotools.text.answer_form import UNKNOWN
from agrotools.text.answer_reader import FormValue, read_form
from agrotools.text.labels import label_key

VERSION = "3"
MAX_EXCERPT = 240
_EMPTY = "the answer is empty"
UNREAD_RULES = ("no form", "not a number", "neither yes nor no", "not one name", _EMPTY)
"""Rules of readings of an answer without a value, which was not given as unknown."""


class SlotScore(NamedTuple):
    """Score of a slot in [0, 1], and the reading that it is based on."""

    value: float
    reading: dict[str, JsonValue]


def outcome_scores(record: Record, comparisons: TextComparisons = NO_COMPARISONS) -> list[Score]:
    """Return the rows of a no-tool or end-to-end record: ``slot`` for each slot, then the record's metrics.

    A benchmark plug-in may score the whole record instead. Slots that only a judge can score have no rows. Open text
    counts in FAS only by a judge (:func:`agrotools.scoring.judging.judgements.joined`). Unanswerable samples have no
    rows of FAS and of the guess, which depend on the twin (:class:`PairTally`).

    Raises:
        RunStoreError: the record contains no trajectory.
        BenchmarkError: a plot slot of the sample contains no plot specification.
    """
    sample, trajectory = record.sample, _trajectory_of(record)
    slots = [slot for slot in sample.answer if not slot.judged]
    for plugin in plugins_of_slots(slots):
        score_whole = scoring_of(plugin.targets.scoring).score_record
        if score_whole is not None:
            return score_whole(record, trajectory, comparisons)

    scored = [_scored(slot, sample, trajectory) for slot in slots]
    knowing = _knowing_rows(record, scored)
    if any(row.metric == FALSE_REFUSAL and row.value for row in knowing):
        scored = [score._replace(value=0.0, reading={"rule": "refused"}) for score in scored]
    of_metrics = places_by_metric(slots)
    words = _words_rows(record, trajectory, [slots[at] for at in of_metrics.get(FAS_TEXT, ())])
    # An agent that takes no closing message was never asked for values.
    if trajectory.steps and trajectory.steps[-1].formless:
        return words

    pairs = list(zip(slots, scored, strict=True))
    # It adds the claims that were made to the readings of slots.
    harmful = _harmful_row(record, trajectory.answer_text or "", pairs)
    rows = [score_row(record, SLOT_METRIC, score, slot=slot.name) for slot, score in pairs]
    rows += _mean_rows(record, pairs, of_metrics)
    rows += words
    if record.mode != "no-tool":
        rows += knowing
    rows += harmful
    if GUESS_METRIC in of_metrics and sample.answerable:
        rows.append(score_row(record, GUESS_METRIC, SlotScore(guess_points(sample).score, {})))
    return rows


def _trajectory_of(record: Record) -> Trajectory:
    if record.trajectory is None:
        raise RunStoreError(
            f"the {record.mode} record of sample {record.sample.id} contains no trajectory",
            hint="make the run again with this version of agrotools",
        )
    return record.trajectory


def _mean_rows(
    record: Record,
    pairs: Sequence[tuple[Slot, SlotScore]],
    of_metrics: Mapping[str, Sequence[int]],
) -> list[Score]:
    """Return a row of each metric that is the mean of its slots. ``of_metrics``: the places of these by metric."""
    rows: list[Score] = []
    for metric, places in of_metrics.items():
        if _is_mean_of_slots(metric, record.sample):
            values = [(pairs[at][0], pairs[at][1].value) for at in places]
            rows.append(score_row(record, metric, _mean_of(values)))
    return rows


def _is_mean_of_slots(metric: str, sample: Sample) -> bool:
    """Return True for a metric whose row is the mean of its slots: not a judge's, not scored apart or by the twin."""
    if metric in _SCORED_APART or METRICS[metric].by_judge:
        return False
    return metric != FAS or sample.answerable


def _mean_of(pairs: Sequence[tuple[Slot, float]]) -> SlotScore:
    """Return the mean of the values of slots by their weights, and what it is the mean of."""
    mean = weighted_mean([slot for slot, _ in pairs], [value for _, value in pairs])
    reading: dict[str, JsonValue] = {"slots": {slot.name: value for slot, value in pairs}}
    weights = weights_by_name([slot for slot, _ in pairs])
    if len(set(weights.values())) > 1:
        reading["weights"] = {**weights}
    return SlotScore(min(1.0, mean), reading)


def _knowing_rows(record: Record, scored: Sequence[SlotScore]) -> list[Score]:
    """Return the row of false confidence or of false refusal; none if the benchmark offers no refusal."""
    if not record.sample.may_abstain:
        return []
    if record.sample.answerable:
        return [score_row(record, FALSE_REFUSAL, SlotScore(float(refused(record)), {}))]
    wrong = answer_of(record) is not None and not any(score.value for score in scored)
    return [score_row(record, FALSE_CONFIDENCE, SlotScore(float(wrong), {}))]


_SCORED_APART = (
    GUESS_METRIC,
    CONSTANT_METRIC,
    FALSE_CONFIDENCE,
    FALSE_REFUSAL,
    HARMFUL_ADVICE,
    FAS_TEXT,
)


def own_words(trajectory: Trajectory) -> str:
    """Return the model's own words of its answer, without the form that followed them."""
    step = trajectory.steps[-1]
    form = step.form_replies[-1].text.strip() if step.form_replies else ""
    return step.text.removesuffix(form).strip() or form


def _words_rows(record: Record, trajectory: Trajectory, slots: Sequence[Slot]) -> list[Score]:
    """Return the row of slots as the model's own words give them; none without an answer or such slots."""
    if trajectory.answer_text is None or not slots:
        return []
    from agrotools.scoring.keywords import read_words

    words = own_words(trajectory)
    values: dict[str, float] = {}
    for slot in slots:
        value = read_words(form_item(slot), words)
        values[slot.name] = float(_is_right(slot, value, {}))
    mean = weighted_mean(slots, list(values.values()))
    return [score_row(record, FAS_TEXT, SlotScore(mean, {"slots": {**values}}))]


def _harmful_row(
    record: Record, answer: str, scored: Sequence[tuple[Slot, SlotScore]]
) -> list[Score]:
    """Return the row of harmful advice, and add the claims that were made to the readings of their slots."""
    listed = [
        (slot, score) for slot, score in scored if isinstance(slot, OpenTextSlot) and slot.harmful
    ]
    if not listed:
        return []
    from agrotools.scoring.open_text import find_harmful

    count = 0
    for slot, score in listed:
        if made := find_harmful(slot, answer):
            count += len(made)
            score.reading["harmful"] = [*made]
    return [score_row(record, HARMFUL_ADVICE, SlotScore(float(count > 0), {"claims": count}))]


def _scored(slot: Slot, sample: Sample, trajectory: Trajectory) -> SlotScore:
    answer = trajectory.answer
    # None also of no_form: a form that was asked for and is not whole scores 0, while an imported answer that nobody
    # was asked about is answered, and scores by the values that it gives.
    if answer is None:
        reading: dict[str, JsonValue] = {"rule": "no answer"}
        if (
            trajectory.termination == "no_form"
            and not slot.made_by_tools
            and not isinstance(slot, AbstainSlot)
        ):
            reading = score_slot(slot, sample.answer, trajectory.answer_text or "").reading
        return SlotScore(0.0, {**reading, "termination": trajectory.termination})
    if isinstance(slot, AbstainSlot) and _has_drawn(slot.asks, trajectory, sample):
        return SlotScore(0.0, {"rule": "answered"})
    if isinstance(slot, PlotSlot):
        from agrotools.scoring.plots import drawn_spec, score_plot

        chart = drawn_spec(trajectory, sample.declared)
        return SlotScore(*score_plot(_reference_chart(slot), chart, slot.rel_tol, slot.abs_tol))
    for plugin in plugins_of_slots((slot,)):
        if (scorer := scoring_of(plugin.targets.scoring).call_scorers.get(slot.type)) is not None:
            return scorer(slot, sample, trajectory)
    return score_slot(slot, sample.answer, answer)


def _reference_chart(slot: PlotSlot) -> PlotSpec:
    try:
        return PlotSpec.model_validate(slot.value)
    except ValidationError as error:
        raise BenchmarkError(
            f"plot slot {slot.name} contains no plot specification",
            hint="check the benchmark: agrotools benchmarks check DIR",
        ) from error


_MOST_GUESSES = 50_000
_guesses: dict[bytes, tuple[tuple[float, ...], bool]] = {}
"""Points of guesses, and whether they refuse, by the hash of what they depend on (gold alone, or prompt and gold),
because epochs and runs repeat a benchmark, and counts or yes and no repeat among its questions."""
_GUESSED_FROM = {"query", "files", "answer", "answerable", "may_abstain"}


def guess_points(sample: Sample) -> GuessPoints:
    """Return the points of the answer and the chart that the prompt suggests, by slot."""
    gold = b"\n".join([slot.__pydantic_serializer__.to_json(slot) for slot in sample.answer])
    if sample.may_abstain or not prompt_floor().ignores_prompt(sample.answer):
        gold = sample.model_dump_json(include=_GUESSED_FROM).encode()
    key = blake2b(gold, digest_size=16).digest()
    if key not in _guesses:
        if len(_guesses) >= _MOST_GUESSES:
            _guesses.clear()
        _guesses[key] = _points_of_guess(sample)
    points, refuses = _guesses[key]
    guessed = [slot.name for slot in sample.answer if counts_in_guess(slot)]
    by_name = dict(zip(guessed, points, strict=True))
    return GuessPoints([*filter(counts_in_fas, sample.answer)], by_name, refuses)


def _points_of_guess(sample: Sample) -> tuple[tuple[float, ...], bool]:
    """Return the points of each slot that counts in a guess, and whether the guess refuses."""
    floor = prompt_floor()
    answer = floor.answer(sample)
    refuses = answer == UNKNOWN
    points: list[float] = []
    for slot in filter(counts_in_guess, sample.answer):
        if isinstance(slot, PlotSlot):
            from agrotools.scoring.plots import score_plot

            chart = None if refuses else floor.chart(sample)
            points.append(score_plot(_reference_chart(slot), chart, slot.rel_tol, slot.abs_tol)[0])
        else:
            points.append(score_slot(slot, sample.answer, answer).value)
    return tuple(points), refuses


def score_row(
    record: Record,
    metric: str,
    score: SlotScore,
    *,
    version: str = VERSION,
    slot: str | None = None,
    step: int | None = None,
    judge: str | None = None,
    prompt: str | None = None,
) -> Score:
    """Return the row of a metric for a record; see :class:`agrotools.core.Score` (``prompt``: hash of the judge's)."""
    fields = {
        "metric": metric,
        "version": version,
        "sample_id": record.sample.id,
        "epoch": record.epoch,
        "slot": slot,
        "step": step,
        "value": score.value,
        "reading": score.reading,
        "judge": judge,
        "judge_prompt_hash": prompt,
    }
    return from_valid(Score, fields)


def _has_drawn(slots: Sequence[Slot], trajectory: Trajectory, sample: Sample) -> bool:
    from agrotools.scoring.plots import drawn_spec

    return (
        any(isinstance(slot, PlotSlot) for slot in slots)
        and drawn_spec(trajectory, sample.declared) is not None
    )


def answer_of(record: Record) -> str | None:
    """Return the final answer of a record, in step-by-step that of the last step; None if there is none."""
    if record.trajectory is not None:
        return record.trajectory.answer
    last = record.actions[-1] if record.actions else None
    return last.text if isinstance(last, Answer) else None


def refused(record: Record) -> bool:
    """Return True if a record ends in a refusal. Who draws a chart that was asked for answers, whatever is said."""
    text = answer_of(record)
    return text is not None and _is_refusal(record.sample, record.trajectory, text)


def _is_refusal(sample: Sample, trajectory: Trajectory | None, text: str) -> bool:
    slots = asked_slots(sample.answer)
    return not (trajectory and _has_drawn(slots, trajectory, sample)) and refuses(slots, text)


def outcome_value(sample: Sample, trajectory: Trajectory) -> float:
    """Return what one trajectory adds to the Final Answer Score, -1 to 1, without the record of a twin.

    A refusal adds what :func:`refusal_points` says, so that the mean over whole pairs is that of the rows in FAS. No
    answer adds 0.
    """
    if trajectory.answer is None:
        return 0.0
    if sample.may_abstain and _is_refusal(sample, trajectory, trajectory.answer):
        return refusal_points(sample)
    slots = [slot for slot in sample.answer if counts_in_fas(slot)]
    if not sample.answerable or not slots:
        return 0.0
    values = [_scored(slot, sample, trajectory).value for slot in slots]
    return min(1.0, weighted_mean(slots, values))


def best_outcome(sample: Sample) -> float:
    """Return the most that one trajectory of a sample can add to the Final Answer Score."""
    return 1.0 if sample.answerable else refusal_points(sample)


def refusal_points(sample: Sample) -> float:
    """Return what the refusal of one sample adds to the Final Answer Score, if its twin is not refused.

    The refusal of an answerable sample takes its points from the unanswerable twin, if it has one.
    """
    if not sample.answerable:
        return pair_points(refused=True, twin_refused=False)
    return pair_points(refused=False, twin_refused=True) if sample.twin else 0.0


def refused_twin_text() -> str:
    """Return what the refusal of an answerable twin takes, in words: ``1 point less``."""
    points = -pair_points(refused=False, twin_refused=True)
    return f"{points:g} {'point' if points == 1 else 'points'} less"


def pair_points(*, refused: bool, twin_refused: bool) -> float:
    """Return the points of an unanswerable sample: 1 for its refusal, less 1 for that of its answerable twin.

    Whoever refuses everything, or nothing, gets 0 from pairs.
    """
    return float(refused) - float(twin_refused)


def refuses(slots: Sequence[Slot], answer: str) -> bool:
    """Return True if ``answer`` abstains in every slot. A text alone abstains where only a chart is asked for."""
    form = read_form(answer, asked_items(slots))
    return form is not None and all(value.unknown for value in form.values())


def submitted_text(slot: Slot, slots: Sequence[Slot], answer: str) -> str:
    """Return the value of a slot of free text in the form of an answer; the whole answer if it gives no whole form."""
    form = read_form(answer, asked_items(slots))
    return form[slot.name].text if form is not None else answer


def score_slot(slot: Slot, slots: Sequence[Slot], answer: str) -> SlotScore:
    """Score one slot of an answer. ``slots`` are all slots of the sample, which the answer must give values of.

    Raises:
        TypeError: the answer of the slot is a file, not text, or no plug-in scores its type.
    """
    for plugin in plugins_of_slots((slot,)):
        if (scorer := scoring_of(plugin.targets.scoring).slot_scorers.get(slot.type)) is not None:
            return scorer(slot, slots, answer)
    if slot.made_by_tools:
        raise TypeError(f"slots of type {slot.type} are not scored here")
    items = asked_items(slots)
    if isinstance(slot, AbstainSlot):
        refused = refuses(slot.asks, answer)
        return SlotScore(float(refused), {"rule": "refused" if refused else "answered"})
    if isinstance(slot, _IN_WORDS):
        return _score_words(slot, submitted_text(slot, slots, answer))
    form = read_form(answer, items)
    if form is None:
        return SlotScore(0.0, {"rule": "no form"})
    value = form[slot.name]
    item = next(item for item in items if item.name == slot.name)
    details: dict[str, JsonValue] = {"text": value.text[:MAX_EXCERPT], **_details(item, value)}
    return SlotScore(float(_is_right(slot, value, details)), details)


def _details(item: FormItem, value: FormValue) -> dict[str, JsonValue]:
    """Return what is read of the form, and why it has no value."""
    if value.unknown:
        return {"rule": "unknown"}
    if value.number is not None:
        return {"value": value.number}
    if value.yes is not None:
        return {"value": value.yes}
    if value.names:
        return {"value": [*value.names[:20]]}
    if item.type == "boolean":
        return {"rule": "neither yes nor no"}
    return {"rule": "not a number" if item.is_number else "not one name"}


_IN_WORDS = OpenTextSlot | KeywordsSlot | ReferenceTextsSlot


def _is_right(slot: Slot, value: FormValue, details: dict[str, JsonValue]) -> bool:
    """Compare what an answer states with the gold, and add the difference to the details of the reading."""
    if not isinstance(slot, ToleranceSlot | ExactSlot | BooleanSlot | ChoiceSetSlot | FileSlot):
        raise TypeError(f"slots of type {slot.type} are not scored here")
    if isinstance(slot, BooleanSlot):
        return value.yes is slot.value
    if isinstance(slot, ChoiceSetSlot):
        right, stated = set(slot.value), set(value.names)
        details["jaccard"] = len(right & stated) / len(right | stated) if right | stated else 1.0
        return bool(stated) and stated == right
    if isinstance(slot, FileSlot):
        return value.names == (slot.value,)
    if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
        if len(value.names) != 1:
            return False
        (name,) = value.names
        return name == slot.value if name in slot.choices else name in map(label_key, slot.names)
    if value.number is None:
        return False
    gold, margin = float(slot.value), slot.margin if isinstance(slot, ToleranceSlot) else 0.0
    details["off_by"] = abs(value.number - gold)
    return _is_within(value.number, gold, margin)


def _is_within(number: float, gold: float, margin: float) -> bool:
    """Return True if ``number`` is within ``margin`` of ``gold``, with a relative tolerance of 1e-9."""
    slack = 1e-9 * max(abs(gold), abs(number))
    return slack < math.inf and abs(number - gold) <= margin + slack


def _score_words(slot: OpenTextSlot | KeywordsSlot | ReferenceTextsSlot, text: str) -> SlotScore:
    from agrotools.scoring.keywords import score_keywords, score_texts
    from agrotools.scoring.open_text import score_facts

    if not text.strip():
        return SlotScore(0.0, {"rule": _EMPTY})
    if isinstance(slot, KeywordsSlot):
        value, reading = score_keywords(slot, text)
    elif isinstance(slot, ReferenceTextsSlot):
        value, reading = score_texts(slot, text)
    else:
        value, reading = score_facts(slot, text)
    return SlotScore(value, {"text": text[:MAX_EXCERPT], **reading})


# --- unanswerable samples, each of which counts only beside the record of its answerable twin -------------------------
#
# If both records of an epoch are valid, the unanswerable sample scores 1 if it alone was refused, -1 if the twin alone
# was, and else 0. Refusals at random therefore earn nothing in the mean. Without both records it has no score.

NO_TWIN = "not in FAS: no valid record of the answerable twin"
Pair = tuple[str | None, str | None, int]


def pair_of(record: Record) -> Pair | None:
    """Return the ids of the unanswerable and the answerable sample, and the epoch; None for other records."""
    sample = record.sample
    if record.actions is not None or (sample.answerable and sample.twin is None):
        return None
    return (
        (sample.twin, sample.id, record.epoch)
        if sample.answerable
        else (sample.id, sample.twin, record.epoch)
    )


def refusals(record: Record, rows: Sequence[Score]) -> dict[str, bool]:
    """Return whether a record of a pair refuses (FAS), and whether the guess from its prompt does ."""
    sample = record.sample
    refused = any(
        row.reading.get("rule") == "refused" or (row.metric == FALSE_REFUSAL and row.value)
        for row in rows
    )
    return {FAS: refused, GUESS_METRIC: prompt_floor().answer(sample) == UNKNOWN}


def pair_rows(
    record: Record, rows: Sequence[Score], twin: Record, twin_rows: Sequence[Score]
) -> list[Score]:
    """Return the rows that the valid record of a twin adds to those of an unanswerable sample."""
    other = refusals(twin, twin_rows)
    scores = {
        metric: SlotScore(
            pair_points(refused=own, twin_refused=other[metric]),
            {"twin": twin.sample.id, "twin_refused": other[metric]},
        )
        for metric, own in refusals(record, rows).items()
    }
    return [score_row(record, metric, score) for metric, score in scores.items()]


def refused_twin(rows: Sequence[Score]) -> str:
    """Return the id of the answerable twin if its refusal takes a point from these rows; else an empty text."""
    return next(
        (
            str(row.reading["twin"])
            for row in rows
            if row.metric == FAS and row.reading.get("twin_refused")
        ),
        "",
    )


class PairTally:
    """Records of one mode whose twin is awaited, and the number of unanswerable samples that score 1."""

    def __init__(self) -> None:
        self.n_right = 0
        self._waiting: dict[Pair, tuple[bool, int, dict[str, bool]]] = {}

    def add(
        self, record: Record, number: int, rows: Sequence[Score]
    ) -> tuple[int, dict[str, float]] | None:
        """Add the valid record of the sample with this number.

        Returns:
            The number of the unanswerable sample and its scores, if the pair is complete."""
        if (pair := pair_of(record)) is None:
            return None
        answerable, refused = record.sample.answerable, refusals(record, rows)
        other = self._waiting.pop(pair, None)
        if other is None:
            self._waiting[pair] = (answerable, number, refused)
            return None
        own, twin = (other[2], refused) if answerable else (refused, other[2])
        scores = {
            metric: pair_points(refused=own[metric], twin_refused=twin[metric]) for metric in own
        }
        self.n_right += own[FAS] and not twin[FAS]
        return (other[1] if answerable else number), scores

    @property
    def n_alone(self) -> int:
        """Number of unanswerable samples without a valid record of the twin in an epoch of theirs."""
        return len({number for answerable, number, _ in self._waiting.values() if not answerable})
