"""What happened in a run beside the scores: ends, errors, steps, tokens, time."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from agrotools.core import CallTools, Halt, Record, Score, Unparseable
from agrotools.scoring.metrics import SLOT_METRIC, sample_metrics
from agrotools.scoring.summary import Amount, CallRatio, Counts

TRUTH_METRIC = "agrotools.summ_acc_truth"
"""The row of the answer step: every sample with a slot other than plots has one."""


class Tallied:
    """Counts over the valid records of one mode, record by record."""

    def __init__(self) -> None:
        self._sample_metrics = sample_metrics()
        self._n = 0
        self._step_by_step = False
        self._successes = 0
        self._counts = Counter[str]()
        self._terminations = Counter[str]()
        self._form_failures = Counter[str]()
        self._errors = Counter[str]()
        self._jaccards = array("d")
        self._ious = array("d")
        self._differing: set[str] = set()
        self._totals = defaultdict[str, float](float)

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """A valid record and its rows."""
        self._n += 1
        self._step_by_step = self._step_by_step or record.actions is not None
        of_sample = next((row.value for row in rows if row.metric in self._sample_metrics), 0.0)
        self._successes += of_sample >= 1 - 1e-9
        if record.trajectory:
            self._terminations[record.trajectory.termination] += 1
            for step in record.trajectory.steps:
                self._counts[step.kind] += 1
                self._counts["recorded"] += step.recorded
                if step.observation and step.observation.error:
                    self._errors[step.observation.error.kind] += 1
        for action in record.actions or ():
            if isinstance(action, Halt):
                self._terminations[action.termination] += 1
            elif isinstance(action, Unparseable):
                self._counts["unparseable"] += 1
            elif isinstance(action, CallTools):
                self._counts["call"] += len(action.calls)
                self._counts["unscored"] += len(action.calls) - 1
        if not record.sample.schematic:  # these two stand for how well it was done, as the headline does
            self._jaccards.extend(_numbers(row.reading.get("jaccard") for row in rows if row.metric == SLOT_METRIC))
            if record.actions is not None:
                self._ious.extend(_box_ious(rows))
        if any(row.metric == TRUTH_METRIC and row.reading.get("differs") for row in rows):
            self._differing.add(record.sample.id)
        forms = _answer_forms(record, rows)
        self._counts["answers"] += len(forms)
        self._counts["forms"] += sum(forms)
        if record.form_reply is not None:
            self._counts["asked"] += 1
            ended = record.form_reply.finish_reason
            if ended not in ("stop", "tool_calls"):
                self._form_failures[ended] += 1
            elif not record.form_reply.text.strip():
                self._form_failures["empty"] += 1
        for name, amount in _spent(record).items():
            self._totals[name] += amount

    def counts(self) -> Counts:
        """All that was counted."""
        successes = None if self._step_by_step else self._successes
        return Counts(
            successes=successes,
            terminations=_by_frequency(self._terminations),
            unparseable=self._counts["unparseable"],
            unscored_calls=self._counts["unscored"],
            tool_calls=self._counts["call"],
            tool_errors=_by_frequency(self._errors),
            recorded=self._counts["recorded"],
            answers=self._counts["answers"],
            used_form=self._counts["forms"],
            asked_for_form=self._counts["asked"],
            form_failures=_by_frequency(self._form_failures),
            median_box_iou=median(self._ious) if self._ious else None,
            implied_differs=len(self._differing),
            choice_set_jaccard=sum(self._jaccards) / len(self._jaccards) if self._jaccards else None,
            spent={
                name: Amount(
                    total=total,
                    per_record=total / self._n,
                    per_success=total / successes if successes else None,
                )
                for name, total in self._totals.items()
            },
        )


class CallTally:
    """Calls made and needed in the answered records of one mode, record by record."""

    def __init__(self) -> None:
        self._ratios = array("d")
        self._made = self._needed = 0

    def add(self, record: Record) -> None:
        """A valid record."""
        needed = len(record.sample.reference.steps) if record.sample.reference else 0
        if record.mode != "end-to-end" or record.sample.schematic or not needed:
            return
        if record.trajectory is not None and record.trajectory.answer is not None:
            made = len(record.trajectory.calls)
            self._ratios.append(made / needed)
            self._made, self._needed = self._made + made, self._needed + needed

    def ratio(self) -> CallRatio | None:
        """None without such records."""
        n = len(self._ratios)
        if not n:
            return None
        return CallRatio(mean=sum(self._ratios) / n, n=n, made=self._made, needed=self._needed)


def _box_ious(rows: Sequence[Score]) -> list[float]:
    """IoU of every predicted box with that of the reference call that it was compared with."""
    compared = [row.reading.get("arguments") for row in rows if row.metric == "agrotools.arg_acc"]
    arguments = [
        argument for own in compared if isinstance(own, list) for argument in own if isinstance(argument, dict)
    ]
    details = [argument.get("detail") for argument in arguments if argument.get("kind") == "box"]
    return _numbers(detail.get("iou") for detail in details if isinstance(detail, dict))


def _answer_forms(record: Record, rows: Sequence[Score]) -> list[bool]:
    """For each answer that was read: whether every slot was read from the answer form."""
    forms = [
        row.reading.get("used_form") is True
        for row in rows
        if row.metric == TRUTH_METRIC and row.reading.get("predicted") == "answer"
    ]
    formless = {slot.name for slot in record.sample.answer if slot.made or slot.scored_apart}
    answered = record.trajectory is not None and record.trajectory.answer is not None
    read = [row for row in rows if row.metric == SLOT_METRIC and row.slot not in formless]
    if answered and read:
        forms.append(all(row.reading.get("used_form") is True for row in read))
    return forms


def _spent(record: Record) -> dict[str, float]:
    replies = record.replies
    steps = record.trajectory.steps if record.trajectory else ()
    return {
        "turns": len({step.turn for step in steps}) if record.trajectory else len(record.actions or ()),
        "input_tokens": sum(reply.usage.input_tokens for reply in replies),
        "output_tokens": sum(reply.usage.output_tokens for reply in replies),
        "seconds": record.seconds,
        "tool_seconds": sum(step.seconds for step in steps),
    }


def _by_frequency(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _numbers(values: Iterable[object]) -> list[float]:
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
