"""Attribution: the points that a run lost, split exactly into the parts that lost them.

The parts are ``planning`` (wrong or missing calls), ``arguments``, ``fault`` (put into a call by ``--faults``),
``tool:NAME`` (errors of one tool), ``reading`` (right observations, wrong answer) and ``form`` (an answer that cannot
be read). The gap of a sample is a cooperative game: the value of a coalition is the score when its parts are replaced
by the reference or the truth, and the share of a part is its Shapley value (1953), the mean of its marginal
contributions over all orders of replacement. See :mod:`agrotools.analysis.counterfactual` for the replacements.

:func:`first_part` names the part without running a tool: the first one that went wrong according to the record.

**Exact sums.** Shapley values are computed as fractions. Points are then rounded to multiples of ``2 ** -20`` by the
largest remainder (the gap first, then its parts), so that the floats of ``parts`` sum to ``gap`` exactly, in any order.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import factorial, floor
from pathlib import Path

from pydantic import ConfigDict

from agrotools.core import (
    FrozenModel,
    Mode,
    Observation,
    Record,
    ReferenceStep,
    Sample,
    Score,
    Slot,
)
from agrotools.core.base import command_line
from agrotools.core.files import RECORDS_FILE, sha256_of_file
from agrotools.core.form_item import asked_items
from agrotools.scoring.matching import OwnCall, gives_truth, landed_faults, missing_calls, own_calls
from agrotools.scoring.metrics import FAS, SCORING_VERSION, SLOT_METRIC
from agrotools.scoring.slots import refusals
from agrotools.scoring.statistics import Interval, estimate_difference, estimate_mean
from agrotools.scoring.steps import implied_slot
from agrotools.text.submission import is_complete

ATTRIBUTION_FILE = "attribution.json"
PLANNING, ARGUMENTS, FAULT, READING, FORM, ANSWER = (
    "planning",
    "arguments",
    "fault",
    "reading",
    "form",
    "answer",
)
TOOL = "tool:"
"""Start of the name of a tool's part; parts of tools that cannot be told apart are joined by ``+``."""
MEANINGS = {
    PLANNING: "wrong or missing call",
    ARGUMENTS: "wrong arguments",
    FAULT: "injected into a call by --faults",
    TOOL: "result differs from the benchmark's truth: one of them is wrong",
    READING: "observation right, answer wrong",
    FORM: "answer cannot be read",
    ANSWER: "wrong answer: without tools, or after the same calls and results as in the other run",
}
"""Parts and their meanings. :data:`ANSWER` is only a :func:`first_part`, and a cause in comparisons."""
AT_LIMIT = ("max_steps", "context", "timeout")
"""Endings of a sample that went on calling; the other endings without an answer are of the form."""
_STEP = 2**20
_WITH_OLDER_KEYS = ConfigDict(extra="ignore")
"""Files that older versions wrote have further keys."""


class Split(FrozenModel):
    """Gap of one sample, a task or a run, in points of 100, and the points of each part, which sum to it.

    A negative share is a gain: two errors that cancel, or an error that hides another one.
    """

    n: int = 1
    """Number of samples."""
    n_clusters: int = 1
    score: float
    ceiling: float = 100.0
    gap: float
    """``ceiling - score``, before the score of a run is raised to 0."""
    parts: dict[str, float]
    intervals: dict[str, Interval] = {}
    """95 % intervals over clusters, of ``gap`` and of each part; empty with fewer than 10 clusters."""


class SampleSplit(Split):
    """Gap of one record."""

    model_config = _WITH_OLDER_KEYS

    id: str
    epoch: int = 0
    task: str


class Attribution(FrozenModel):
    """Split of the gap between a run and its ceiling: of the run, per task and per sample."""

    model_config = _WITH_OLDER_KEYS

    format: int = 1
    scoring: str = SCORING_VERSION
    records: str = ""
    """Hash of the records that were split."""
    metric: str = FAS
    run: Split
    tasks: dict[str, Split]
    samples: tuple[SampleSplit, ...]
    left_out: dict[str, int] = {}
    """Number of records without a split, by reason."""
    notes: tuple[str, ...] = ()


def read_attribution(run: Path) -> tuple[Attribution | None, str]:
    """Return the stored attribution of a run, or None and the reason why the stored one is out of date.

    The reason, which names the command to run again, is empty if nothing is stored.
    """
    path = run / ATTRIBUTION_FILE
    if not path.is_file():
        return None, ""
    try:
        attribution = Attribution.model_validate_json(path.read_bytes())
        if attribution.scoring != SCORING_VERSION:
            why = f"is out of date: it is of scoring version {attribution.scoring}"
        elif attribution.records != records_hash(run):
            why = "is out of date: the records have changed since"
        else:
            return attribution, ""
    except (OSError, ValueError) as error:
        why = f"cannot be read: {str(error).splitlines()[0]}"
    return None, f"{ATTRIBUTION_FILE} {why}; run again: {command_line('attribute', run)}"


def records_hash(run: Path) -> str:
    """Return the hash of the records of a run."""
    return sha256_of_file(run / RECORDS_FILE)


def part_meaning(part: str) -> str:
    """Return the meaning of a part in words."""
    return MEANINGS[TOOL if part.startswith(TOOL) else part]


def first_part(record: Record, rows: Sequence[Score]) -> str:
    """Return the first part that went wrong in a valid no-tool or end-to-end record; ``rows``: its scores.

    The parts are checked in the order in which a solution is made, from the record alone: calls, arguments, results,
    answer.
    """
    sample, trajectory = record.sample, record.trajectory
    if trajectory is None or trajectory.answer is None:
        return PLANNING if trajectory is not None and trajectory.termination in AT_LIMIT else FORM
    in_words = {slot.name for slot in sample.answer if slot.type == "open_text"}
    wrong = {
        row.slot: row
        for row in rows
        if row.slot is not None and row.value < 1 and row.slot not in in_words
    }
    if not wrong:
        return READING  # of the twin, which was refused, or open text, which a judge graded
    names = ("value", "facts", "off_by")
    is_form = all(
        row.reading.get(name) in (None, [], {}) for row in wrong.values() for name in names
    )
    if not sample.answerable:  # a refusal has no value to read
        is_form = lacks_values(sample, trajectory.answer)
    if record.mode == "no-tool" or sample.reference is None or not sample.reference.steps:
        return FORM if is_form else ANSWER
    steps, own = sample.reference.steps, own_calls(record)
    missing, untrue = missing_calls(steps, own), _untrue_results(record, steps, own)
    for at, each in enumerate(own):
        if each is None or each.wrong:
            return ARGUMENTS if each else PLANNING if at in missing or not untrue else untrue[0]
    if _mislead(sample, [slot for slot in sample.answer if slot.name in wrong], own):
        return next(iter(untrue), TOOL + steps[-1].tool)
    if not is_form:
        return READING
    return FAULT if FAULT in untrue else FORM


def lacks_values(sample: Sample, answer: str) -> bool:
    """True if values are asked for in text, and an answer does not give them all, not even as ``unknown``."""
    items = asked_items(sample.answer)
    return bool(items) and not is_complete(answer, items)


def _untrue_results(
    record: Record, steps: Sequence[ReferenceStep], own: Sequence[OwnCall | None]
) -> list[str]:
    """Return the part of each call of the run whose result contradicts the truth, in the order of the reference."""
    truths = [
        Observation(result=step.truth) if step.truth is not None else step.observation
        for step in steps
    ]
    faults = landed_faults(record, own)
    return [
        FAULT if at in faults else TOOL + steps[at].tool
        for at, (each, truth) in enumerate(zip(own, truths, strict=True))
        if each and not gives_truth(record.sample, at, each.step.observation, truth)
    ]


def _mislead(sample: Sample, slots: Sequence[Slot], own: Sequence[OwnCall | None]) -> bool:
    """Return True if the results of the run imply another answer in one of ``slots``, or none where they should."""
    results = [each.values if each else None for each in own]
    pairs = [(slot, implied_slot(slot, results)) for slot in slots if not slot.made_by_tools]
    # If the calls are right and their results imply no answer, the tool has abstained or failed.
    silent = any(
        each.slot is None and (not sample.answerable or slot.from_ is not None)
        for slot, each in pairs
    )
    return (
        silent
        or any(each.differs for _, each in pairs)
        or any(slot.made_by_tools for slot in slots)
    )


class CauseTally:
    """Points lost by part, for each sample of a run."""

    def __init__(self) -> None:
        self._losses: dict[tuple[Mode, str], dict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._splits: dict[str, dict[str, float]] = {}
        self._calls: dict[tuple[Mode, str], set[int]] = defaultdict(set)
        """Hashes of the calls and results of each sample's epochs that ended with an answer; of the others, 0."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a valid record with its score rows."""
        if record.mode == "end-to-end" and (made := record.trajectory) is not None:
            calls = [each.model_dump(include={"call", "observation"}) for each in made.calls]
            seen = hash(json.dumps(calls, sort_keys=True)) if made.answer is not None else 0
            self._calls[record.mode, record.sample.id].add(seen)
        sample = record.sample
        value = next(
            (
                row.value
                for row in rows
                if row.metric == (FAS if sample.answerable else SLOT_METRIC)
            ),
            1.0,
        )
        if value < 1:
            self._losses[record.mode, sample.id][first_part(record, rows)] += 1 - value
        if sample.answerable and sample.twin and refusals(record, rows)[FAS]:
            self._losses[record.mode, sample.twin][READING] += 1.0

    def attribute(self, attribution: Attribution) -> None:
        """Use the split of end-to-end samples by ``agrotools attribute`` instead of their first part."""
        epochs = Counter(each.id for each in attribution.samples)
        self._splits = {each.id: defaultdict(float) for each in attribution.samples}
        for each in attribution.samples:
            for part, points in each.parts.items():
                self._splits[each.id][part] += points / 100 / epochs[each.id]

    def losses(
        self, mode: Mode, sample_id: str, score: float, other: "CauseTally | None" = None
    ) -> dict[str, float]:
        """Return the points (as fractions) that a sample lost by each part; their sum is ``1 - score``.

        The point that an unanswerable sample loses because its twin was refused is of the reading. ``other`` is of a
        run that scored the sample differently: if its calls and results are the same, no earlier part than the answer
        is the cause."""
        split = self._splits.get(sample_id, {}) if mode == "end-to-end" else {}
        if split and abs(sum(split.values()) + score - 1) < 1e-6:
            return split
        known = self._losses.get((mode, sample_id), {READING: 1.0})
        losses = {part: (1 - score) * loss / sum(known.values()) for part, loss in known.items()}
        calls = self._calls.get((mode, sample_id), {0})
        if (
            other is None
            or len(calls) > 1
            or 0 in calls
            or calls != other._calls.get((mode, sample_id))
        ):
            return losses
        return losses if losses.keys() <= {READING, FORM} else {ANSWER: 1 - score}


def ordered_parts(parts: Iterable[str]) -> list[str]:
    """Return parts in the order of a sample: planning, arguments, faults, tools by name, reading, form."""
    order = [*MEANINGS]
    return sorted(
        set(parts), key=lambda part: (order.index(TOOL if part.startswith(TOOL) else part), part)
    )


def shapley_values(
    players: Sequence[str], value: Mapping[frozenset[str], Fraction]
) -> dict[str, Fraction]:
    """Return the Shapley value of each player; ``value`` holds the value of every coalition."""
    n = len(players)
    shares = dict.fromkeys(players, Fraction(0))
    for size in range(n):
        weight = Fraction(factorial(size) * factorial(n - size - 1), factorial(n))
        for members in combinations(players, size):
            coalition = frozenset(members)
            for player in players:
                if player not in coalition and (
                    gain := value[coalition | {player}] - value[coalition]
                ):
                    shares[player] += weight * gain
    return shares


def rounded_points(shares: Mapping[str, Fraction]) -> tuple[float, dict[str, float]]:
    """Return the sum of ``shares`` (of a score of 1) in points, and its parts; the parts sum to it exactly."""
    steps = {part: share * 100 * _STEP for part, share in shares.items()}
    down = {part: floor(each) for part, each in steps.items()}
    total = round(sum(steps.values(), Fraction(0)))
    by_remainder = sorted(shares, key=lambda part: (down[part] - steps[part], part))
    for part in by_remainder[: total - sum(down.values())]:
        down[part] += 1
    return total / _STEP, {part: each / _STEP for part, each in down.items()}


@dataclass(frozen=True)
class Shares:
    """Exact result of one record, before rounding: the points that each part lost, of 1."""

    id: str
    epoch: int
    task: str
    cluster: str
    shares: dict[str, Fraction]


def attribution_of(
    results: Sequence[Shares],
    *,
    records: str = "",
    left_out: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> Attribution:
    """Return the attribution of a run from the shares of its records, at least one; epochs are averaged first."""
    tasks = sorted({each.task for each in results})
    return Attribution(
        records=records,
        run=_split(results),
        tasks={task: _split([each for each in results if each.task == task]) for task in tasks},
        samples=tuple(_sample_split(each) for each in results),
        left_out=dict(left_out or {}),
        notes=tuple(notes),
    )


def _sample_split(result: Shares) -> SampleSplit:
    gap, parts = rounded_points(result.shares)
    return SampleSplit(
        id=result.id,
        epoch=result.epoch,
        task=result.task,
        score=100 - gap,
        gap=gap,
        parts={part: parts[part] for part in ordered_parts(parts) if parts[part]},
    )


def _mean(shares: Sequence[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    parts = {part for each in shares for part in each}
    return {
        part: sum((each.get(part, Fraction(0)) for each in shares), Fraction(0)) / len(shares)
        for part in parts
    }


def _split(results: Sequence[Shares]) -> Split:
    samples: dict[str, list[Shares]] = {}
    for each in results:
        samples.setdefault(each.id, []).append(each)
    clusters = [epochs[0].cluster for epochs in samples.values()]
    lost = [_mean([each.shares for each in epochs]) for epochs in samples.values()]
    parts = ordered_parts(part for shares in lost for part, share in shares.items() if share)
    means, none = _mean(lost), [0.0] * len(lost)
    gap, points = rounded_points({part: means[part] for part in parts})
    intervals: dict[str, Interval] = {}
    for part in parts:  # by the cluster bootstrap of paired differences
        if each := estimate_difference(
            [float(shares.get(part, 0)) for shares in lost], none, clusters
        ).interval:
            intervals[part] = Interval(lower=100 * each.lower, upper=100 * each.upper)
    if score := estimate_mean(
        [float(1 - sum(shares.values())) for shares in lost], clusters
    ).interval:
        intervals["gap"] = Interval(lower=100 - 100 * score.upper, upper=100 - 100 * score.lower)
    return Split(
        n=len(lost),
        n_clusters=len(set(clusters)),
        score=max(0.0, 100 - gap),
        gap=gap,
        parts=points,
        intervals=intervals,
    )
