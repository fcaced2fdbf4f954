"""Attribution: the points that a run lost, split exactly into the parts that lost them.

The parts are ``planning`` (wrong or missing calls), ``arguments``, ``tool:NAME`` (errors of one tool), ``reading``
(right observations, wrong answer) and ``form`` (an answer that cannot be read). The gap of a sample is a cooperative
game: the value of a coalition is the score when its parts are replaced by the reference or the truth, and the share of
a part is its Shapley value (1953), the mean of its marginal contributions over all orders of replacement. See
:mod:`agrotools.analysis.counterfactual` for the replacements.

**Exact sums.** Shapley values are computed as fractions. Points are then rounded to multiples of ``2 ** -20`` by the
largest remainder (the gap first, then its parts), so that the floats of ``parts`` sum to ``gap`` exactly, in any order.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import factorial, floor
from pathlib import Path

from agrotools.core import FrozenModel, RunStoreError
from agrotools.scoring.metrics import FAS, SCORING_VERSION
from agrotools.scoring.statistics import Interval, estimate_difference

ATTRIBUTION_FILE = "attribution.json"
PLANNING, ARGUMENTS, READING, FORM = "planning", "arguments", "reading", "form"
TOOL = "tool:"
"""Start of the name of a tool's part; parts of tools that cannot be told apart are joined by ``+``."""
MEANINGS = {
    PLANNING: "wrong or missing call",
    ARGUMENTS: "wrong arguments",
    TOOL: "error of the tool",
    READING: "observation right, answer wrong",
    FORM: "answer cannot be read",
}
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
    """``ceiling - score``."""
    parts: dict[str, float]
    intervals: dict[str, Interval] = {}
    """95 % intervals over clusters, of ``gap`` and of each part; empty with fewer than 10 clusters."""


class SampleSplit(Split):
    """Gap of one record, and the parts that share points because the model was not asked again."""

    id: str
    epoch: int = 0
    task: str
    joint: tuple[str, ...] = ()


class JointParts(FrozenModel):
    """Parts whose points are only known together, with their common points in the run, and the reason."""

    parts: tuple[str, ...]
    points: float
    n_samples: int
    reason: str


class NoiseCurve(FrozenModel):
    """Score of the reference calls by the error of one tool (``scores``, by scale: 0 none, 1 as measured)."""

    n_calls: int
    scores: dict[str, float]
    gain: float
    """Points that the tool without errors would win."""


class ToolNoise(FrozenModel):
    """Predicted score of the reference calls, from errors measured on other clusters."""

    n: int
    draws: int
    predicted: float
    recorded: float
    """Score with the recorded results of the tools: that of ``baseline:oracle``."""
    tools: dict[str, NoiseCurve]


class Attribution(FrozenModel):
    """Split of the gap between a run and its ceiling: of the run, per task and per sample."""

    format: int = 1
    scoring: str = SCORING_VERSION
    metric: str = FAS
    rerun: bool = False
    """True if the model was asked again where a replaced part changes what it sees."""
    run: Split
    tasks: dict[str, Split]
    samples: tuple[SampleSplit, ...]
    joint: tuple[JointParts, ...] = ()
    left_out: dict[str, int] = {}
    """Number of records without a split, by reason."""
    notes: tuple[str, ...] = ()
    tool_noise: ToolNoise | None = None


def read_attribution(run: Path) -> Attribution | None:
    """Return the stored attribution of a run; None if there is none of the current scoring version."""
    path = run / ATTRIBUTION_FILE
    if not path.is_file():
        return None
    try:
        attribution = Attribution.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunStoreError(f"{path} cannot be read: {error}", hint=f"run agrotools attribute {run} again") from error
    return attribution if attribution.scoring == SCORING_VERSION else None


def part_meaning(part: str) -> str:
    """Return the meaning of a part in words."""
    return MEANINGS[TOOL if part.startswith(TOOL) else part]


def ordered_parts(parts: Iterable[str]) -> list[str]:
    """Return parts in the order of a sample: planning, arguments, tools by name, reading, form."""
    order = (PLANNING, ARGUMENTS, TOOL, READING, FORM)
    return sorted(set(parts), key=lambda part: (order.index(TOOL if part.startswith(TOOL) else part), part))


def shapley_values(players: Sequence[str], value: Mapping[frozenset[str], Fraction]) -> dict[str, Fraction]:
    """Return the Shapley value of each player; ``value`` holds the value of every coalition."""
    n = len(players)
    shares = dict.fromkeys(players, Fraction(0))
    for size in range(n):
        weight = Fraction(factorial(size) * factorial(n - size - 1), factorial(n))
        for members in combinations(players, size):
            coalition = frozenset(members)
            for player in players:
                if player not in coalition and (gain := value[coalition | {player}] - value[coalition]):
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
    joint: tuple[str, ...] = ()
    reason: str = ""


def attribution_of(
    results: Sequence[Shares],
    *,
    rerun: bool = False,
    left_out: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> Attribution:
    """Return the attribution of a run from the shares of its records; epochs of a sample are averaged first.

    Raises:
        ValueError: there are no results.
    """
    if not results:
        raise ValueError("no results")
    tasks = sorted({each.task for each in results})
    return Attribution(
        rerun=rerun,
        run=_split(results),
        tasks={task: _split([each for each in results if each.task == task]) for task in tasks},
        samples=tuple(_sample_split(each) for each in results),
        joint=_joint(results),
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
        joint=result.joint,
    )


def _by_sample(results: Sequence[Shares]) -> list[tuple[str, dict[str, Fraction]]]:
    """Return the cluster of each sample and its shares, averaged over its epochs."""
    samples: dict[str, list[Shares]] = {}
    for each in results:
        samples.setdefault(each.id, []).append(each)
    return [
        (
            epochs[0].cluster,
            {
                part: sum((each.shares.get(part, Fraction(0)) for each in epochs), Fraction(0)) / len(epochs)
                for part in {part for each in epochs for part in each.shares}
            },
        )
        for epochs in samples.values()
    ]


def _split(results: Sequence[Shares]) -> Split:
    samples = _by_sample(results)
    parts = ordered_parts(part for _, shares in samples for part, share in shares.items() if share)
    means = {
        part: sum((shares.get(part, Fraction(0)) for _, shares in samples), Fraction(0)) / len(samples)
        for part in parts
    }
    gap, points = rounded_points(means)
    clusters = [cluster for cluster, _ in samples]
    intervals = {part: _interval([shares.get(part, 0) for _, shares in samples], clusters) for part in parts}
    intervals["gap"] = _interval([sum(shares.values()) for _, shares in samples], clusters)
    return Split(
        n=len(samples),
        n_clusters=len(set(clusters)),
        score=100 - gap,
        gap=gap,
        parts=points,
        intervals={part: each for part, each in intervals.items() if each is not None},
    )


def _interval(values: Sequence[Fraction | int], clusters: Sequence[Hashable]) -> Interval | None:
    """Return the interval of the mean of ``values``, in points, by the cluster bootstrap of paired differences."""
    interval = estimate_difference([float(each) for each in values], [0.0] * len(values), clusters).interval
    return interval and Interval(lower=100 * interval.lower, upper=100 * interval.upper)


def _joint(results: Sequence[Shares]) -> tuple[JointParts, ...]:
    """Return the groups of parts that are known only together, the largest first."""
    n_samples = len({each.id for each in results})
    epochs: dict[str, int] = {}
    for each in results:
        epochs[each.id] = epochs.get(each.id, 0) + 1
    groups: dict[tuple[tuple[str, ...], str], list[Shares]] = {}
    for each in results:
        if each.joint:
            groups.setdefault((each.joint, each.reason), []).append(each)
    rows = [
        JointParts(
            parts=parts,
            reason=reason,
            n_samples=len({each.id for each in members}),
            points=round(
                float(
                    sum(
                        100 * each.shares.get(part, Fraction(0)) / epochs[each.id] / n_samples
                        for each in members
                        for part in parts
                    )
                ),
                6,
            ),
        )
        for (parts, reason), members in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.points), row.parts)))
