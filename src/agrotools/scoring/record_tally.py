"""Counts over the records of one mode: what a summary holds beside the means of score rows.

Records come in one by one, each with its score rows (:meth:`RecordTally.add`), and no record is kept: a long run takes
little memory. Out go the parts of a :class:`agrotools.scoring.summary.ModeSummary`, whether its headline is withheld,
and the entries of benchmark plug-ins. An invalid record is counted with its reason, and left out of all counts of
events.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agrotools.core import Mode, Protocol, Record, Score
from agrotools.core.form_item import asked_items
from agrotools.core.installed import plugins_of_slots
from agrotools.core.texts import count_text, first_names
from agrotools.scoring.contracts import ModeTally as PluginTally
from agrotools.scoring.contracts import scoring_of
from agrotools.scoring.error_classes import Errors, add_record, error_counts
from agrotools.scoring.event_counts import EventCounts, ending_of, mostly_unread
from agrotools.scoring.metrics import (
    FALSE_CONFIDENCE,
    FALSE_REFUSAL,
    FAS_TEXT,
    OPEN_TEXT,
    OUTCOME_METRICS,
    PREDICTIONS,
    STEP_METRICS,
    SUMMARY_METRICS,
    is_invalid,
    is_judged_text,
)
from agrotools.scoring.sample_traits import SampleTraits, broken_down
from agrotools.scoring.slots import PairTally, answer_of
from agrotools.scoring.summary import (
    MAX_INVALID_SHARE,
    Counts,
    ErrorCount,
    Invalid,
    NoForm,
    Seconds,
    SecondsByPart,
)
from agrotools.scoring.unread import UnreadTally
from agrotools.text.answer_reader import is_complete

_AMOUNT = re.compile(
    r"(?<!HTTP )(?<!code )(?<!status )(?<!signal )(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-])"
)
"""Number in a reason that may differ between records of one cause; codes, names and addresses tell causes apart."""


def group_reasons(reasons: Mapping[str, int]) -> dict[str, int]:
    """Return reasons with their numbers of records, the most frequent first.

    Those that differ only in amounts are one, which shows the range of each: ``10,106..10,809 characters``.
    """
    groups: dict[str, list[str]] = {}
    for reason in reasons:
        groups.setdefault(_AMOUNT.sub("#", reason), []).append(reason)
    counts = Counter[str]()
    for group in groups.values():
        counts[_with_ranges(group)] += sum(reasons[reason] for reason in group)
    return dict(counts.most_common())


def _with_ranges(reasons: Sequence[str]) -> str:
    """Return the first of several reasons, with the lowest and highest of each amount in which they differ."""
    first, *_ = reasons
    ranges: list[str] = []
    for amounts in zip(*(_AMOUNT.findall(reason) for reason in reasons), strict=True):
        ordered = sorted(amounts, key=lambda amount: float(amount.replace(",", "")))
        lowest, highest = ordered[0], ordered[-1]
        ranges.append(lowest if lowest == highest else f"{lowest}..{highest}")
    left = iter(ranges)
    return _AMOUNT.sub(lambda _: next(left), first)


class RecordTally:
    """Counts over the records of one mode. Samples and their traits are given by number (:class:`ScoreTable`)."""

    def __init__(self, mode: Mode, protocol: Protocol) -> None:
        self.mode: Mode = mode
        self.n_records = 0
        self.n_epochs = 0
        self.endings = Counter[str]()
        """Number of records without an answer, by cause."""
        self.pairs = PairTally()
        self.events = EventCounts()
        self.changed: dict[str, None] = {}
        """Ids of the samples whose question or right answer was changed in the records."""
        self.unread = UnreadTally()
        """Values that were not read, in runs of prediction files."""
        self.without_open_text = set[int]()
        """Samples whose open text is not in FAS, because no judge graded it."""
        self._protocol: Protocol = protocol
        self._invalid_reasons = Counter[str]()
        self._n_answers = 0
        """Number of answers that are asked for a form, in runs of prediction files."""
        self._n_no_form = 0
        self._errors = Errors()
        self._seconds: dict[int, tuple[float, int]] = {}
        """Sum of the seconds of the valid records and their number, by number of the traits of the sample."""
        self._plugin_tallies: dict[str, PluginTally] = {}

    def add(self, record: Record, sample: int, traits: int, rows: Sequence[Score]) -> None:
        """Add a record and its own score rows: those that do not depend on the record of a twin."""
        self._add_ending(record)
        if record.is_changed:
            self.changed[record.sample.id] = None
        if is_invalid(record):
            return
        self._add_form(record, sample, rows)
        self._add_seconds(record, traits)
        self._add_events(record, rows)
        self._add_to_plugins(record, rows)
        self._add_open_text(record, sample, rows)

    def _add_ending(self, record: Record) -> None:
        self.n_records += 1
        self.n_epochs = max(self.n_epochs, record.epoch + 1)
        ending = ending_of(record)
        if ending is not None:
            self.endings[ending] += 1
        if is_invalid(record):
            of_trajectory = record.trajectory.reason if record.trajectory else ""
            self._invalid_reasons[record.invalid or of_trajectory or "infrastructure"] += 1

    def _add_form(self, record: Record, sample: int, rows: Sequence[Score]) -> None:
        if self._protocol != PREDICTIONS:
            return
        self.unread.add(record, sample, rows)
        is_complete_form = _has_form(record)
        if is_complete_form is None:
            return
        self._n_answers += 1
        if not is_complete_form:
            self._n_no_form += 1

    def _add_seconds(self, record: Record, traits: int) -> None:
        total, n = self._seconds.get(traits, (0.0, 0))
        self._seconds[traits] = (total + record.seconds, n + 1)

    def _add_events(self, record: Record, rows: Sequence[Score]) -> None:
        self.events.add(record, rows)
        add_record(record, self._errors, self._protocol, rows)

    def _add_to_plugins(self, record: Record, rows: Sequence[Score]) -> None:
        for plugin in plugins_of_slots(record.sample.answer):
            new_tally = scoring_of(plugin.targets.scoring).tally
            if new_tally is None:
                continue
            if plugin.name not in self._plugin_tallies:
                self._plugin_tallies[plugin.name] = new_tally()
            self._plugin_tallies[plugin.name].add(record, rows)

    def _add_open_text(self, record: Record, sample: int, rows: Sequence[Score]) -> None:
        if record.trajectory is None:
            return
        has_open_text = any(map(is_judged_text, record.sample.answer))
        if has_open_text and all(row.metric != OPEN_TEXT for row in rows):
            self.without_open_text.add(sample)

    # --- results -------------------------------------------------------------------------------------------------

    @property
    def engine_metrics(self) -> list[str]:
        """Metrics of the engine that the mode has.

        A run whose replies could mostly not be read neither answers nor refuses, and has no metrics of that. A run of
        an agent that submits no form has only that of its own words.
        """
        if self.mode == "step-by-step":
            left_out = SUMMARY_METRICS if self.lacks_forms else ()
            return [metric for metric in STEP_METRICS if metric not in left_out]
        if self.events.formless:
            return [FAS_TEXT]
        left_out = (FALSE_CONFIDENCE, FALSE_REFUSAL) if self.is_unread else ()
        return [metric for metric in OUTCOME_METRICS if metric not in left_out]

    @property
    def is_unread(self) -> bool:
        """True if more than half of the records ended with output that is neither a call nor an answer."""
        return mostly_unread(self.endings, self.n_records)

    @property
    def invalid(self) -> Invalid:
        """Records that are invalid."""
        n = self._invalid_reasons.total()
        reasons = group_reasons(self._invalid_reasons)
        return Invalid(n=n, share=n / self.n_records, reasons=reasons)

    @property
    def no_form(self) -> NoForm | None:
        """Answers without a complete form, in a run of a prediction file; None in others, and if none is asked for."""
        return NoForm(n=self._n_no_form, of=self._n_answers) if self._n_answers else None

    @property
    def lacks_forms(self) -> bool:
        """True if so many answers hold no complete form that scores of the forms say nothing."""
        return self.no_form is not None and self.no_form.too_many

    @property
    def withheld(self) -> str:
        """Reason why there is no headline unless it is allowed; empty if there is none."""
        if self.changed:
            return changed_text(self.changed)
        if self.invalid.share > MAX_INVALID_SHARE:
            return "more than 1 % of its records are invalid"
        if self.mode != "step-by-step" and self.lacks_forms:
            return "more than 20 % of its answers hold no complete form"
        return ""

    @property
    def counts(self) -> Counts:
        """Counts of events in the valid records."""
        return self.events.counts(self.pairs.n_right, self.pairs.n_alone)

    @property
    def errors(self) -> tuple[ErrorCount, ...]:
        """Counts of each class of errors in the valid records."""
        return error_counts(self._errors, self.mode, self._protocol)

    def seconds(self, traits: Sequence[SampleTraits]) -> SecondsByPart | None:
        """Return the seconds per query; None if no record is valid. ``traits``: those of the table, by number."""
        if not self._seconds:
            return None
        parts = broken_down([*self._seconds], traits, self._mean_seconds)
        return SecondsByPart(
            overall=parts.overall,
            by_family=parts.by_family,
            by_task_type=parts.by_task_type,
            by_answer_type=parts.by_answer_type,
            by_group=parts.by_group,
        )

    def _mean_seconds(self, traits: Sequence[int]) -> Seconds:
        total = sum(self._seconds[each][0] for each in traits)
        n = sum(self._seconds[each][1] for each in traits)
        return Seconds(mean=total / n, n=n)

    def plugin_results(self) -> dict[str, Any]:
        """Return the entries of benchmark plug-ins in the summary of the mode."""
        results: dict[str, Any] = {}
        for tally in self._plugin_tallies.values():
            results.update(tally.results())
        return results


_CHANGED_SHOWN = 5
"""Changed samples that a message names."""


def changed_text(changed: Collection[str]) -> str:
    """Return how many samples were changed in the records, and the first of them."""
    ids = sorted(changed)
    have = "has" if len(ids) == 1 else "have"
    return (
        f"{count_text(len(ids), 'sample')} {have} another question or right answer in the records than when "
        f"they were written: {first_names(ids, _CHANGED_SHOWN)}"
    )


def _has_form(record: Record) -> bool | None:
    """Return True if the answer holds its complete form; None if there is no answer, or it needs no form."""
    text = answer_of(record)
    items = asked_items(record.sample.answer)
    needs_no_form = all(item.free_text for item in items)
    if text is None or needs_no_form or plugins_of_slots(record.sample.answer):
        return None
    return is_complete(text, items)
