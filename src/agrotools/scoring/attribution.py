"""Parts that lose the points of a run, and their exact split.

The parts are ``planning`` (wrong or missing calls), ``arguments``, ``fault`` (put into a call by ``--faults``),
``tool:NAME`` (errors of one tool), ``reading`` (right observations, wrong answer), ``twin`` (a refusal that the
answerable twin got, too), ``form`` (an answer that cannot be read) and ``answer`` (no call explains it: no calls are
asked for, or a judge graded open text). The gap of a sample is a cooperative game: the value of a coalition is the
score when its parts are replaced by the reference or the truth, and the share of a part is its Shapley value (1953),
the mean of its marginal contributions over all orders of replacement. See :mod:`agrotools.scoring.counterfactual` for
the replacements, :mod:`agrotools.scoring.lost_points` for their sums.

**Exact sums.** Shapley values are computed as fractions. Points are then rounded to multiples of ``2 ** -20`` by the
largest remainder (the gap first, then its parts), so that the floats of ``parts`` sum to ``gap`` exactly, in any order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import factorial, floor
from typing import NamedTuple

from agrotools.core import FrozenModel
from agrotools.core.lazy import np
from agrotools.scoring.statistics import Interval, estimate_difference, estimate_mean

PLANNING, ARGUMENTS, FAULT, READING, TWIN, FORM, ANSWER = (
    "planning",
    "arguments",
    "fault",
    "reading",
    "twin",
    "form",
    "answer",
)
TOOL = "tool:"
"""Start of the name of a tool's part; parts of tools that cannot be told apart are joined by ``+``."""


class Cause(NamedTuple):
    """What people read of a part; data files hold its id."""

    label: str
    meaning: str


CAUSES = {
    PLANNING: Cause("wrong plan", "a call is wrong or missing"),
    ARGUMENTS: Cause("wrong arguments", "a call's arguments disagree with the reference"),
    FAULT: Cause("injected faults", "--faults put an error into a call"),
    TOOL: Cause(
        "tool errors",
        "a result is missing or differs from the truth, even of a call that was not made; either may be wrong",
    ),
    READING: Cause("misread results", "results right, answer wrong"),
    TWIN: Cause("twin refused", "the answerable twin was refused, too: this refusal shows nothing"),
    FORM: Cause(
        "unread answers", "a value was not read, in a live run after it was asked for again"
    ),
    ANSWER: Cause("wrong answers", "no call explains it"),
}
"""Parts in the order of a sample, as every screen, page and document names them."""
AT_LIMIT = ("max_steps", "context", "timeout")
"""Endings of a sample that went on calling; the other endings without an answer are of the form."""
_STEP = 2**20


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


class Attribution(FrozenModel):
    """Split of the gap between a run and its ceiling in one mode: over all samples with a score, and per task."""

    run: Split
    tasks: dict[str, Split]
    unknown_results: int = 0
    """Number of calls with other arguments than those of the run whose results the split would need and does not know;
    ``agrotools attribute`` makes them."""


def cause_of(part: str) -> str:
    """Return the key of a part in :data:`CAUSES`: the parts of all tools have one."""
    return TOOL if part.startswith(TOOL) else part


def part_label(part: str) -> str:
    """Return the name of a part for people; a part of tools names them: ``tool errors (count_objects)``."""
    if not part.startswith(TOOL):
        return CAUSES[part].label
    tools = part.removeprefix(TOOL).replace("+", ", ")
    return f"{CAUSES[TOOL].label} ({tools})" if tools else CAUSES[TOOL].label


def part_meaning(part: str) -> str:
    """Return the meaning of a part in words."""
    return CAUSES[cause_of(part)].meaning


def ordered_parts(parts: Iterable[str]) -> list[str]:
    """Return parts in the order of a sample: planning, arguments, faults, tools by name, reading, form."""
    order = [*CAUSES]
    return sorted(set(parts), key=lambda part: (order.index(cause_of(part)), part))


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
class LostSample:
    """Points that a sample lost by each part, as fractions of 1, over all its epochs."""

    task: str
    cluster: int
    shares: Mapping[str, Fraction]
    weight: float = 1.0


def attribution_of(samples: Sequence[LostSample], unknown_results: int = 0) -> Attribution:
    """Return the split of a run from those of its samples, at least one."""
    tasks = sorted({each.task for each in samples})
    return Attribution(
        run=_split(samples),
        tasks={task: _split([each for each in samples if each.task == task]) for task in tasks},
        unknown_results=unknown_results,
    )


def mean_shares(
    shares: Sequence[Mapping[str, Fraction]], weights: Sequence[float] | None = None
) -> dict[str, Fraction]:
    """Return the mean of each part; parts that one lacks are 0 there. ``weights``: None if all weigh the same."""
    parts = ordered_parts(part for each in shares for part in each)
    exact = [Fraction(1)] * len(shares) if weights is None else [*map(Fraction, weights)]
    total = sum(exact, Fraction(0))
    means: dict[str, Fraction] = {}
    for part in parts:
        weighted = (
            each[part] * weight for each, weight in zip(shares, exact, strict=True) if part in each
        )
        means[part] = sum(weighted, Fraction(0)) / total
    return means


def _split(samples: Sequence[LostSample]) -> Split:
    clusters = [each.cluster for each in samples]
    lost = [each.shares for each in samples]
    parts = ordered_parts(part for shares in lost for part, share in shares.items() if share)
    weights = np.array([each.weight for each in samples])
    means, none = mean_shares(lost, weights.tolist()), [0.0] * len(lost)
    gap, points = rounded_points({part: means[part] for part in parts})
    intervals: dict[str, Interval] = {}
    for part in parts:  # by the cluster bootstrap of paired differences
        of_part = [float(shares.get(part, 0)) for shares in lost]
        if interval := estimate_difference(of_part, none, clusters, weights).interval:
            intervals[part] = Interval(lower=100 * interval.lower, upper=100 * interval.upper)
    scores = [float(1 - sum(shares.values())) for shares in lost]
    if interval := estimate_mean(scores, clusters, weights).interval:
        intervals["gap"] = Interval(
            lower=100 - 100 * interval.upper, upper=100 - 100 * interval.lower
        )
    return Split(
        n=len(lost),
        n_clusters=len(set(clusters)),
        score=max(0.0, 100 - gap),
        gap=gap,
        parts=points,
        intervals=intervals,
    )
