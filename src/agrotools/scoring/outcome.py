"""Outcome scores (no-tool and end-to-end): one row per slot, and one per sample and metric.

A sample's score is the mean of its slots' scores by their weights, without those of open text whose facts other
subjects share, which have a metric of their own; a sample without an answer scores 0, whatever it
drew before.
"""

from collections.abc import Callable

from pydantic import JsonValue, ValidationError

from agrotools.core import (
    CLOSED_SLOT_TYPES,
    JUDGED_SLOT_TYPES,
    BenchmarkError,
    ImageCallsSlot,
    PlotSlot,
    PlotSpec,
    Record,
    RunStoreError,
    Sample,
    Score,
    Slot,
    Trajectory,
    counts_in_headline,
)
from agrotools.scoring.image_calls import score_image_calls
from agrotools.scoring.judging.questions import JUDGED_METRICS
from agrotools.scoring.knowledge_answers import (
    EXTRA_METRICS,
    OPTION_METRICS,
    TEXT_METRICS,
    Extras,
    is_knowledge_slot,
    knowledge_scores,
)
from agrotools.scoring.plots import drawn_spec, score_plot
from agrotools.scoring.slots import SlotScore, score_slot
from agrotools.text import format_answer
from agrotools.text.guess_model import guessable, guessed_values

VERSION = "2"
SLOT_METRIC = "agrotools.slot"

GUESS_METRIC = "agrotools.guess"
"""FAS of the answer that the prompt alone suggests (:mod:`agrotools.text.guess_model`), for the same sample."""

APART_METRIC = "agrotools.ots_apart"
"""OTS of the slots that count in no headline: other subjects share too many of their facts."""


SLOTS_OF_METRIC: dict[str, Callable[[Slot], bool]] = {
    "agrotools.fas": lambda slot: (
        not is_knowledge_slot(slot) and slot.type not in JUDGED_SLOT_TYPES and counts_in_headline(slot)
    ),
    "agrotools.css": lambda slot: slot.type in CLOSED_SLOT_TYPES,
    "agrotools.ots": lambda slot: slot.type == "open_text" and counts_in_headline(slot),
    APART_METRIC: lambda slot: not counts_in_headline(slot),
    "agrotools.plot": lambda slot: slot.type == "plot",
    GUESS_METRIC: lambda slot: guessable(slot) and counts_in_headline(slot),
    **dict.fromkeys(OPTION_METRICS, lambda slot: slot.type == "options"),
    **dict.fromkeys((*TEXT_METRICS, *EXTRA_METRICS), lambda slot: slot.type == "reference_text"),
    **{name: metric.belongs for name, metric in JUDGED_METRICS.items()},
}
"""Which slots of a sample each metric is the mean of; a sample without any has no row of that metric."""

SAMPLE_METRICS = ("agrotools.fas", "agrieval.accuracy", "agrieval.rouge_l", "gta2.score_corrected", APART_METRIC)
"""Metrics that stand for a whole sample, the first that it has; none before a judge was asked about it."""


def outcome_scores(record: Record, extras: Extras | None = None) -> list[Score]:
    """The rows of a record of no-tool or end-to-end: ``agrotools.slot`` per slot, then those of SLOTS_OF_METRIC.

    Examination questions have those of :mod:`agrotools.scoring.knowledge_answers` instead, which ``extras`` are for.
    Slots that a judge alone can score have none.

    Raises:
        RunStoreError: the record holds no trajectory.
        BenchmarkError: a plot slot of the sample holds no plot specification.
    """
    if record.trajectory is None:
        raise RunStoreError(
            f"the {record.mode} record of sample {record.sample.id} holds no trajectory",
            hint="the run was made by another version, or the file was altered",
        )
    slots = [slot for slot in record.sample.answer if slot.type not in JUDGED_SLOT_TYPES]
    if any(map(is_knowledge_slot, slots)):
        return knowledge_scores(record, record.trajectory, extras)
    scored = [_scored(slot, record.sample, record.trajectory) for slot in slots]
    rows = [_row(record, SLOT_METRIC, score, slot=slot.name) for slot, score in zip(slots, scored, strict=True)]
    for metric, belongs in SLOTS_OF_METRIC.items():
        if metric in JUDGED_METRICS or metric == GUESS_METRIC:
            continue  # By those who were asked, where anybody was; and below.
        own = [(slot, score.value) for slot, score in zip(slots, scored, strict=True) if belongs(slot)]
        if own:
            mean = sum(slot.weight * value for slot, value in own) / sum(slot.weight for slot, _ in own)
            reading: dict[str, JsonValue] = {"slots": {slot.name: value for slot, value in own}}
            if len({slot.weight for slot, _ in own}) > 1:
                reading["weights"] = {slot.name: slot.weight for slot, _ in own}
            rows.append(_row(record, metric, SlotScore(min(1.0, mean), reading, used_form=False)))
    if any(map(SLOTS_OF_METRIC[GUESS_METRIC], slots)):
        rows.append(_row(record, GUESS_METRIC, SlotScore(guess_score(record.sample), {}, used_form=False)))
    return rows


def _scored(slot: Slot, sample: Sample, trajectory: Trajectory) -> SlotScore:
    answer = trajectory.answer
    if answer is None:
        return SlotScore(0.0, {"rule": "no answer", "termination": trajectory.termination}, used_form=False)
    if isinstance(slot, PlotSlot):
        try:
            reference = PlotSpec.model_validate(slot.value)
        except ValidationError as error:
            raise BenchmarkError(
                f"plot slot {slot.name} holds no plot specification", hint="check the benchmark: agrotools validate DIR"
            ) from error
        value, reading = score_plot(reference, drawn_spec(trajectory))
        return SlotScore(value=value, reading=reading, used_form=False)
    if isinstance(slot, ImageCallsSlot):
        value, reading = score_image_calls(slot, sample, trajectory)
        return SlotScore(value=value, reading=reading, used_form=False)
    return score_slot(slot, sample.answer, answer)


def guess_score(sample: Sample) -> float:
    """What the answer that the prompt alone suggests would score; figures 0, as none is drawn."""
    answer = format_answer(sample.answer, guessed_values(sample, sample.answer))
    weights = sum(slot.weight for slot in sample.answer if counts_in_headline(slot))
    counted = filter(SLOTS_OF_METRIC[GUESS_METRIC], sample.answer)
    guessed = [slot for slot in counted if not isinstance(slot, PlotSlot)]
    return sum(slot.weight * score_slot(slot, sample.answer, answer).value for slot in guessed) / weights


def _row(record: Record, metric: str, score: SlotScore, *, slot: str | None = None) -> Score:
    return Score(
        metric=metric,
        version=VERSION,
        sample_id=record.sample.id,
        epoch=record.epoch,
        slot=slot,
        value=score.value,
        reading={**score.reading, "used_form": score.used_form} if slot else score.reading,
    )
