"""Score rows of records: those of steps (step-by-step), and outcome scores (no-tool and end-to-end).

Outcome scores are one row per slot, and one per sample and metric. A sample's score is the mean of its slots' scores by
their weights, without those of open text whose facts other subjects share, which have a metric of their own; a sample
without an answer scores 0, whatever it drew before.
"""

from pydantic import JsonValue, ValidationError

from agrotools.core import (
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
from agrotools.plugin import NO_COMPARISONS, TextComparisons, plugins_of_slots
from agrotools.scoring.metrics import GUESS_METRIC, SLOT_METRIC, SLOTS_OF_METRIC, metrics_about
from agrotools.scoring.sample_units import is_invalid
from agrotools.scoring.slots import SlotScore, score_slot
from agrotools.scoring.steps import step_scores
from agrotools.text import format_answer

VERSION = "2"


def score_record(record: Record, comparisons: TextComparisons = NO_COMPARISONS) -> list[Score]:
    """All score rows of a record; an invalid record has none. ``comparisons``: metrics computed only when asked for.

    Raises:
        RunStoreError: the record does not hold what its mode needs.
        BenchmarkError: the gold of the sample cannot be scored against.
    """
    if is_invalid(record):
        return []
    return step_scores(record) if record.mode == "step-by-step" else outcome_scores(record, comparisons)


def outcome_scores(record: Record, comparisons: TextComparisons = NO_COMPARISONS) -> list[Score]:
    """The rows of a record of no-tool or end-to-end: ``agrotools.slot`` per slot, then those of its metrics.

    A benchmark plug-in may score the whole record by itself. Slots that a judge alone can score have no rows.

    Raises:
        RunStoreError: the record holds no trajectory.
        BenchmarkError: a plot slot of the sample holds no plot specification.
    """
    if record.trajectory is None:
        raise RunStoreError(
            f"the {record.mode} record of sample {record.sample.id} holds no trajectory",
            hint="the run was made by another version, or the file was altered",
        )
    slots = [slot for slot in record.sample.answer if not slot.judged]
    for plugin in plugins_of_slots(slots):
        if plugin.scoring.score_record is not None:
            return plugin.scoring.score_record(record, record.trajectory, comparisons)
    scored = [_scored(slot, record.sample, record.trajectory) for slot in slots]
    rows = [_row(record, SLOT_METRIC, score, slot=slot.name) for slot, score in zip(slots, scored, strict=True)]
    for metric, info in metrics_about(slots).items():
        if info.slots is None or info.by_judge or metric == GUESS_METRIC:
            continue  # By those who were asked, where anybody was; and below.
        own = [(slot, score.value) for slot, score in zip(slots, scored, strict=True) if info.slots(slot)]
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
        from agrotools.scoring.plots import drawn_spec, score_plot

        try:
            reference = PlotSpec.model_validate(slot.value)
        except ValidationError as error:
            raise BenchmarkError(
                f"plot slot {slot.name} holds no plot specification", hint="check the benchmark: agrotools validate DIR"
            ) from error
        value, reading = score_plot(reference, drawn_spec(trajectory))
        return SlotScore(value=value, reading=reading, used_form=False)
    if isinstance(slot, ImageCallsSlot):
        from agrotools.scoring.steps import score_image_calls

        value, reading = score_image_calls(slot, sample, trajectory)
        return SlotScore(value=value, reading=reading, used_form=False)
    return score_slot(slot, sample.answer, answer)


def guess_score(sample: Sample) -> float:
    """What the answer that the prompt alone suggests would score; figures 0, as none is drawn."""
    from agrotools.text.guess_model import guessed_values

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
