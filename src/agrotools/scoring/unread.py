"""Values of imported answers that were not read, and what they leave open in a verdict.

A live model is asked a second time for a value that is not read, and then scores 0. Nobody asks the author of a file
of predictions, whose value may be right all the same. It scores 0 in the printed score; where runs are compared, it may
be anything (:mod:`agrotools.scoring.missing`). So nobody gains by a value that cannot be read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agrotools.core import Record, Score
from agrotools.core.form_item import FormItem, asked_items
from agrotools.core.installed import plugins_of_slots
from agrotools.scoring.metrics import FAS, counts_in_fas
from agrotools.scoring.slot_weights import weighted_mean
from agrotools.scoring.slots import Pair, pair_of, pair_points
from agrotools.scoring.summary import Unread, UnreadValue
from agrotools.text.answer_reader import FormValue, read_form

_LONGEST_TEXT = 80
"""Most characters of a value that the list of unread values holds: a line of a terminal."""


class OpenScore(NamedTuple):
    """What the unread values of a record leave open.

    ``above``: what they may add to its score. ``may_refuse``: the answer may be a refusal. ``n_asked``: number of
    values that the answer was read for.
    """

    values: Sequence[UnreadValue] = ()
    above: float = 0.0
    may_refuse: bool = False
    n_asked: int = 0


def open_score(record: Record, rows: Sequence[Score]) -> OpenScore:
    """Return what is not read of an answer. An answer without any text says nothing that could be read.

    ``rows``: score rows of the record. A value that scores although it is none of the options is read.
    """
    trajectory, sample = record.trajectory, record.sample
    text = trajectory.answer_text if trajectory is not None else None
    if text is None or not text.strip() or plugins_of_slots(sample.answer):
        return OpenScore()
    if trajectory is not None and trajectory.steps[-1].form_replies:  # its author was asked
        return OpenScore()
    items = asked_items(sample.answer)
    read: Mapping[str, FormValue] = read_form(text, items) or {}
    scored = {row.slot for row in rows if row.slot is not None and row.value > 0}
    unread: list[UnreadValue] = []
    closed = [item for item in items if not item.free_text]
    for item in closed:
        value = read.get(item.name)
        if (value is None or not value.is_read) and item.name not in scored:
            written = text if value is None else value.text
            shown = " ".join(written.split())[:_LONGEST_TEXT]
            unread.append(UnreadValue(sample=sample.id, item=item.name, text=shown))
    names = {each.item for each in unread}
    may_refuse = bool(unread) and _gives_no_other(items, read, names)
    above = _worth(record, rows, names) if sample.answerable else float(may_refuse)
    return OpenScore(unread, above, may_refuse, len(closed))


def _gives_no_other(
    items: Sequence[FormItem], read: Mapping[str, FormValue], unread: set[str]
) -> bool:
    """Return True if every item is unread or ``unknown``: the answer may then be a refusal in other words."""
    return all(
        item.name in unread or read[item.name].unknown for item in items if item.name in read
    )


def _worth(record: Record, rows: Sequence[Score], names: set[str]) -> float:
    """Return the share of the Final Answer Score that the slots ``names`` have."""
    row = next((row for row in rows if row.metric == FAS), None)
    if row is None or not names:
        return 0.0
    in_mean = row.reading.get("slots")
    slots = [slot for slot in record.sample.answer if counts_in_fas(slot)]
    if isinstance(in_mean, dict):
        slots = [slot for slot in record.sample.answer if slot.name in in_mean]
    return weighted_mean(slots, [float(slot.name in names) for slot in slots]) if slots else 0.0


class UnreadTally:
    """Unread values of the records of one mode, and the range that they leave to the score of each sample.

    Samples are given by number (:class:`agrotools.scoring.score_table.ScoreTable`); ranges are sums over epochs.
    """

    def __init__(self) -> None:
        self.values: list[UnreadValue] = []
        self.n_asked = 0
        self.above = defaultdict[int, float](float)
        self.below = defaultdict[int, float](float)
        """Points by unanswerable sample that it loses if the unread answer to its twin is a refusal."""
        self.unread_of = defaultdict[int, int](int)
        """Number of unread values by sample."""
        self.asked_of = defaultdict[int, int](int)
        """Number of values that were asked for by sample."""
        self._waiting: dict[Pair, tuple[int, bool]] = {}
        """First record of a pair: its sample, and whether it may be a refusal of the answerable twin."""

    def add(self, record: Record, sample: int, rows: Sequence[Score]) -> None:
        """Add a valid record with its own score rows."""
        found = open_score(record, rows)
        self.values += found.values
        self.n_asked += found.n_asked
        self.asked_of[sample] += found.n_asked
        self.unread_of[sample] += len(found.values)
        self.above[sample] += found.above
        pair = pair_of(record)
        if pair is None:
            return
        may_refuse_twin = record.sample.answerable and found.may_refuse
        other = self._waiting.pop(pair, None)
        if other is None:
            self._waiting[pair] = (sample, may_refuse_twin)
            return
        other_sample, other_may_refuse = other
        unanswerable = other_sample if record.sample.answerable else sample
        if may_refuse_twin or other_may_refuse:
            self.below[unanswerable] -= pair_points(refused=False, twin_refused=True)

    @property
    def summary(self) -> Unread | None:
        """The unread values; None if all are read."""
        return Unread(of=self.n_asked, values=tuple(self.values)) if self.values else None
