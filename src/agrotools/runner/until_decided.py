"""Two runs made in turn, block by block of clusters in a fixed random order, until their difference is decided.

Two configurations come in; both run folders and a :class:`SequentialComparison` go out. Clusters are never split, and
their order follows from their names alone: if results could move it, the test of
:mod:`agrotools.scoring.sequential` would not be valid. Each folder keeps the command of the comparison
(:data:`agrotools.runner.rescore.EARLY_FILE`): the estimate of a pair that stopped early is too large on average, which
later comparisons of the folder have to say.
"""

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TextIO

from pydantic import Field

from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.core.files import write_whole
from agrotools.core.lazy import IntArray, np
from agrotools.core.texts import command_line
from agrotools.loading import Benchmark
from agrotools.models.endpoint import without_keys
from agrotools.runner.build import RunPlan, plan_run, stored_options
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.plan import WorkItems, remaining
from agrotools.runner.policies import is_agent
from agrotools.runner.records import RECORDS_FILE, record_index
from agrotools.runner.rescore import EARLY_FILE, benchmark_differences, scored_run
from agrotools.runner.store import read_manifest
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import check_same_samples, headline_pair
from agrotools.scoring.metrics import PREDICTIONS
from agrotools.scoring.missing import LimitPairs, paired_limits, run_limits
from agrotools.scoring.sequential import LOOKS, InterimLook, sequential_look
from agrotools.scoring.slots import pair_points
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import Missing
from agrotools.scoring.unit_estimates import shown_mean


class SequentialComparison(FrozenModel):
    """Difference of two runs, second minus first, after ``look`` of ``looks`` blocks of ``planned`` samples.

    ``runs`` are their folders. The interval of ``difference`` is valid at all looks together.
    """

    runs: tuple[str, str]
    models: tuple[str, str]
    mode: Mode
    metric: str
    means: tuple[float, float]
    difference: Estimate
    decided: bool
    look: int
    looks: int
    planned: int
    invalid: int
    """Number of samples in the blocks so far that have an invalid record in a run; without a valid one, they are left
    out of ``difference``."""
    missing: Annotated[Missing | None, Field(exclude_if=operator.not_)] = None
    """Scores of these blocks that a run lacks; it is decided only if it is so with all of them set against it."""


def run_until_decided(
    configs: Sequence[EvalConfig],
    progress: TextIO,
    benchmark: Benchmark,
    on_look: Callable[[SequentialComparison], None] = lambda _: None,
) -> SequentialComparison:
    """Run two configurations on the same blocks of samples in turn, until a look decides or all samples are run.

    They are compared in end-to-end if both have it, else in their first common mode, and only that is run.

    Args:
        benchmark: the loaded benchmark of both.
        on_look: callback for the comparison after each block.

    Raises:
        UsageError: not two different runs of one benchmark, or no score in common.
        BudgetReached: a budget is spent; the same call continues. Others as of ``evaluate``.
    """
    with without_keys():
        sides = [plan_run(each, benchmark) for each in configs]
    _check_two_runs(sides)
    mode = _common_mode(sides)
    block_of = sample_blocks(sides[0].items, mode)
    most = most_in_cluster(sides[0].items, mode)
    compared: SequentialComparison | None = None
    for block in range(max(block_of.values()) + 1):
        samples = {name for name, of_sample in block_of.items() if of_sample == block}
        for side in sides:
            _run_missing(side, mode, samples, progress, benchmark)
        compared = _compare_sides(sides, mode, block_of, block, most)
        if compared is None:
            continue
        on_look(compared)
        if compared.decided:
            break
    if compared is None:
        raise UsageError(
            f"these runs have no scored sample in common in mode {mode}", hint="see agrotools score"
        )
    command = command_line("compare", *compared.runs, "--until-decided")
    for side in sides:
        write_whole(side.folder / EARLY_FILE, command.encode())
    return compared


def _check_two_runs(sides: Sequence[RunPlan]) -> None:
    """Raise a UsageError unless these are two different runs of one benchmark."""
    folders = {side.folder.resolve() for side in sides}
    if len(sides) != 2 or len(folders) != 2:
        raise UsageError(
            "--until-decided compares two different runs", hint="e.g. -m MODEL -m OTHER"
        )
    different = benchmark_differences([side.manifest for side in sides])
    if different:
        raise UsageError(
            f"these runs cannot be compared: {different[0]}", hint="give two runs of one benchmark"
        )


def _common_mode(sides: Sequence[RunPlan]) -> Mode:
    """Return the mode that two runs are compared in; UsageError if they have none in common."""
    first, second = (side.items.sizes() for side in sides)
    modes: list[Mode] = [mode for mode in first if mode in second]
    if not modes:
        raise UsageError("these runs have no mode in common", hint="e.g. --mode end-to-end")
    return "end-to-end" if "end-to-end" in modes else modes[0]


def sample_blocks(items: WorkItems, mode: Mode) -> dict[str, int]:
    """Return the block, from 0, of each sample of a mode: at most :data:`LOOKS` of whole clusters.

    The order of the clusters is that of the hashes of their names: random, and the same for every pair of runs.
    """
    members: dict[str, list[str]] = {}
    for position in next(part.positions for part in items.parts if part.mode == mode):
        sample = items.samples[position]
        members.setdefault(sample.cluster or sample.id, []).append(sample.id)
    total = sum(map(len, members.values()))
    block_of = dict[str, int]()
    # Numbers of the blocks by the part of the samples in which they begin; a large cluster leaves no gap in them.
    number_of = dict[int, int]()
    for cluster in sorted(members, key=lambda name: sha256(name.encode()).digest()):
        part = len(block_of) * LOOKS // total
        number = number_of.setdefault(part, len(number_of))
        block_of |= dict.fromkeys(members[cluster], number)
    return block_of


def most_in_cluster(items: WorkItems, mode: Mode) -> tuple[float, float]:
    """Return the largest weight of a cluster, and the largest absolute difference of a cluster's mean.

    The weight of a cluster is the sum of those of its units: samples, in step-by-step their steps.
    """
    weights = defaultdict[str, float](float)
    has_pairs = False
    for position in next(part.positions for part in items.parts if part.mode == mode):
        sample = items.samples[position]
        steps = len(sample.reference.steps) if sample.reference else 0
        n_units = steps + 1 if mode == "step-by-step" else 1
        weights[sample.cluster or sample.id] += n_units * sample.weight
        has_pairs |= not sample.answerable
    return max(weights.values()), reach_of_clusters(has_pairs=has_pairs)


def reach_of_clusters(*, has_pairs: bool) -> float:
    """Return the largest absolute difference of two runs in the mean of a cluster.

    They differ by at most 1 on a sample. In a pair of an answerable sample and its unanswerable twin, the best run
    answers the one right (1) and refuses the other. The worst refuses the one (0), but not the other.
    """
    if not has_pairs:
        return 1.0
    best = 1 + pair_points(refused=True, twin_refused=False)
    worst = pair_points(refused=False, twin_refused=True)
    return (best - worst) / 2


def _run_missing(
    side: RunPlan, mode: Mode, samples: Collection[str], progress: TextIO, benchmark: Benchmark
) -> None:
    items = side.items.among(samples, mode)
    if (side.folder / RECORDS_FILE).is_file():
        index = record_index(side.folder)
        items = remaining(items, index, index.failed)
    if len(items):
        config = side.config.with_options(mode=mode, out=side.folder)
        ended = evaluate(config, progress, benchmark=benchmark, only=samples)
        if ended.stopped:
            raise ended.stopped


def _compare_sides(
    sides: Sequence[RunPlan],
    mode: Mode,
    block_of: dict[str, int],
    block: int,
    most: tuple[float, float],
) -> SequentialComparison | None:
    """Return the comparison after ``block``; None if there is no pair of scores.

    ``most``: weight and difference of a cluster, as :func:`most_in_cluster` returns them.
    """
    tallies = [scored_run(side.folder) for side in sides]
    check_same_samples(*tallies)
    pair = headline_pair(tallies[0], tallies[1], mode)
    if pair is None:
        return None
    blocks = _blocks_of(pair.samples, block_of, block)
    kept = blocks <= block
    if not kept.any():
        return None
    first = pair.first[kept]
    second = pair.second[kept]
    largest, reach = most
    weights = pair.weights[kept]
    look = sequential_look(
        second - first, pair.clusters[kept], blocks[kept], weights, largest=largest, reach=reach
    )
    decided = look.decided
    missing: Missing | None = None
    limits = _limits_so_far(tallies, mode, pair.metric, block_of, block)
    if any(limits.lacking):
        against_second = _look_at_limit(limits, block_of, most, for_second=False)
        for_second = _look_at_limit(limits, block_of, most, for_second=True)
        missing = Missing(
            samples=limits.lacking,
            lowest=against_second.difference,
            highest=for_second.difference,
        )
        # The run that the difference favours must be better with all missing scores set against it.
        favours_second = look.difference.value > 0
        worst = against_second if favours_second else for_second
        still_favours_second = worst.difference.value > 0
        decided = decided and worst.decided and still_favours_second == favours_second
    failed = _failed_samples(sides, mode)
    return SequentialComparison(
        runs=(str(sides[0].folder), str(sides[1].folder)),
        models=(sides[0].manifest.labelled_model, sides[1].manifest.labelled_model),
        mode=mode,
        metric=pair.metric,
        means=(shown_mean(first, weights), shown_mean(second, weights)),
        difference=look.difference,
        decided=decided,
        missing=missing,
        look=block + 1,
        looks=max(block_of.values()) + 1,
        planned=len(block_of),
        invalid=int((_blocks_of(failed, block_of, block) <= block).sum()),
    )


def _blocks_of(samples: Collection[str], block_of: dict[str, int], block: int) -> IntArray:
    """Return the blocks of samples; of a sample without one the block after ``block``, which is not compared yet."""
    return np.array([block_of.get(name, block + 1) for name in samples], dtype=np.int64)


def _failed_samples(sides: Sequence[RunPlan], mode: Mode) -> set[str]:
    """Return the samples that have an invalid record of a mode in a run."""
    failed = set[str]()
    for side in sides:
        for failed_mode, name, _epoch in record_index(side.folder).failed:
            if failed_mode == mode:
                failed.add(name)
    return failed


def _look_at_limit(
    limits: LimitPairs, block_of: dict[str, int], most: tuple[float, float], *, for_second: bool
) -> InterimLook:
    """Return the look with all missing scores set for the second run, or against it."""
    first, second = limits.scores(for_second=for_second)
    blocks = np.array([block_of[unit.sample] for unit in limits.units], dtype=np.int64)
    largest, reach = most
    return sequential_look(
        second - first, limits.clusters, blocks, limits.weights, largest=largest, reach=reach
    )


def _limits_so_far(
    tallies: Sequence[RunAggregator],
    mode: Mode,
    metric: str,
    block_of: dict[str, int],
    block: int,
) -> LimitPairs:
    """Return the limits of the scores of both runs in the samples up to ``block``."""
    so_far = [
        {
            unit: limits
            for unit, limits in run_limits(run, mode, metric).items()
            if block_of.get(unit.sample, block + 1) <= block
        }
        for run in tallies
    ]
    return paired_limits(so_far[0], so_far[1])


def config_of_run(folder: Path) -> EvalConfig:
    """Return the configuration that continues a run, from its manifest alone.

    Raises:
        UsageError: the manifest lacks what an agent, a server of ``--serve`` or a vision model of tools needs.
    """
    run = read_manifest(folder)
    if run.degrade:
        raise UsageError(
            f"{folder} cannot be continued: its pictures were degraded ({run.degrade})",
            hint="agrotools compare, without --until-decided, compares what it has",
        )
    if (
        is_agent(run.model)
        or run.server
        or run.vlm_base_url
        or run.shard
        or run.protocol == PREDICTIONS
    ):
        raise UsageError(
            f"{folder} cannot be continued from its folder alone",
            hint="agrotools eval BENCHMARK -m MODEL -m OTHER --until-decided, with the options of both runs",
        )
    most_planned = max(run.planned.values(), default=0)
    values: dict[str, Any] = {
        **stored_options(run),
        "options": run.benchmark_options,
        "data_root": run.data_root,
        "quick": run.quick,
        "task_types": run.task_types.names if run.task_types else (),
        "limit": most_planned // run.epochs or None,
        "mode": ",".join(run.modes),
        "epochs": run.epochs,
        "protocol": run.protocol,
        "tools": run.tools,
        "backends": run.backends,
        "faults": run.faults,
        "out": folder,
    }
    values.setdefault("seed", run.seed or None)
    given = {name: value for name, value in values.items() if value not in ("", None, ())}
    return EvalConfig.of(**given)
