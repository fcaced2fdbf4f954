"""What happened in a run beside the scores: ends, errors, steps, tokens, time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from agrotools.core import CallTools, Halt, Record, Reply, Score, Unparseable
from agrotools.scoring.outcome import SLOT_METRIC
from agrotools.scoring.summary import Amount, Counts

TRUTH_METRIC = "agrotools.summ_acc_truth"
"""The row of the answer step: every sample with a slot other than plots has one."""


def counted(records: Sequence[Record], scores: Sequence[Sequence[Score]]) -> Counts:
    """Counts over the valid ``records`` of one mode; ``scores`` run parallel to them."""
    rows = [row for own in scores for row in own]
    step_by_step = any(record.actions is not None for record in records)
    successes = sum(row.metric == "agrotools.fas" and row.value >= 1 - 1e-9 for row in rows)
    steps = [step for record in records if record.trajectory for step in record.trajectory.steps]
    actions = [action for record in records for action in record.actions or ()]
    errors = [step.observation.error.kind for step in steps if step.observation and step.observation.error]
    terminations = [record.trajectory.termination for record in records if record.trajectory]
    jaccards = _numbers(row.reading.get("jaccard") for row in rows if row.metric == SLOT_METRIC)
    forms = _answer_forms(records, scores)
    ious = _box_ious(rows)
    differing = {row.sample_id for row in rows if row.metric == TRUTH_METRIC and row.reading.get("differs")}
    return Counts(
        successes=None if step_by_step else successes,
        terminations=_by_frequency([*terminations, *(a.termination for a in actions if isinstance(a, Halt))]),
        unparseable=sum(step.kind == "unparseable" for step in steps)
        + sum(isinstance(action, Unparseable) for action in actions),
        unscored_calls=sum(len(action.calls) - 1 for action in actions if isinstance(action, CallTools)),
        tool_calls=sum(step.kind == "call" for step in steps)
        + sum(len(action.calls) for action in actions if isinstance(action, CallTools)),
        tool_errors=_by_frequency(errors),
        answers=len(forms),
        used_form=sum(forms),
        median_box_iou=median(ious) if ious else None,
        implied_differs=len(differing),
        choice_set_jaccard=sum(jaccards) / len(jaccards) if jaccards else None,
        spent=_spent(records, None if step_by_step else successes),
    )


def _box_ious(rows: Sequence[Score]) -> list[float]:
    """IoU of every predicted box with that of the reference call that it was compared with."""
    compared = [row.reading.get("arguments") for row in rows if row.metric == "agrotools.arg_acc"]
    arguments = [
        argument for own in compared if isinstance(own, list) for argument in own if isinstance(argument, dict)
    ]
    details = [argument.get("detail") for argument in arguments if argument.get("kind") == "box"]
    return _numbers(detail.get("iou") for detail in details if isinstance(detail, dict))


def _answer_forms(records: Sequence[Record], scores: Sequence[Sequence[Score]]) -> list[bool]:
    """For each answer that was read: whether every slot was read from the answer form."""
    forms = [
        row.reading.get("used_form") is True
        for rows in scores
        for row in rows
        if row.metric == TRUTH_METRIC and row.reading.get("predicted") == "answer"
    ]
    for record, rows in zip(records, scores, strict=True):
        plots = {slot.name for slot in record.sample.answer if slot.type == "plot"}
        answered = record.trajectory is not None and record.trajectory.answer is not None
        read = [row for row in rows if row.metric == SLOT_METRIC and row.slot not in plots]
        if answered and read:
            forms.append(all(row.reading.get("used_form") is True for row in read))
    return forms


def _spent(records: Sequence[Record], successes: int | None) -> dict[str, Amount]:
    totals = defaultdict[str, float](float)
    for record in records:
        replies = _replies(record)
        steps = record.trajectory.steps if record.trajectory else ()
        turns = len({step.turn for step in steps}) if record.trajectory else len(record.actions or ())
        totals["turns"] += turns
        totals["input_tokens"] += sum(reply.usage.input_tokens for reply in replies)
        totals["output_tokens"] += sum(reply.usage.output_tokens for reply in replies)
        totals["seconds"] += record.seconds
        totals["tool_seconds"] += sum(step.seconds for step in steps)
    return {
        name: Amount(
            total=total, per_record=total / max(len(records), 1), per_success=total / successes if successes else None
        )
        for name, total in totals.items()
    }


def _replies(record: Record) -> list[Reply]:
    sources = record.trajectory.steps if record.trajectory else record.actions or ()
    return [source.reply for source in sources if source.reply is not None]


def _by_frequency(items: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(items).items(), key=lambda item: (-item[1], item[0])))


def _numbers(values: Iterable[object]) -> list[float]:
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
