"""Two runs made in turn, block by block of clusters in a fixed random order, until their difference is decided."""

import operator
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, TextIO

from pydantic import Field

from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.core.files import write_whole
from agrotools.core.lazy import np
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
    if len({side.folder.resolve() for side in sides}) != 2 or len(sides) != 2:
        raise UsageError(
            "--until-decided compares two different runs", hint="e.g. -m MODEL -m OTHER"
        )
    if different := benchmark_differences([each.manifest for each in sides]):
        raise UsageError(
            f"these runs cannot be compared: {different[0]}", hint="give two runs of one benchmark"
        )
    modes: list[Mode] = [mode for mode in sides[0].items.sizes() if mode in sides[1].items.sizes()]
    if not modes:
        raise UsageError("these runs have no mode in common", hint="e.g. --mode end-to-end")
    mode = "end-to-end" if "end-to-end" in modes else modes[0]
    block_of = sample_blocks(sides[0].items, mode)
    compared, block = None, 0
    while block <= max(block_of.values()) and not (compared and compared.decided):
        samples = {name for name, at in block_of.items() if at == block}
        for side in sides:
            _run_missing(side, mode, samples, progress, benchmark)
        if compared := _compared(
            sides, mode, block_of, block, most_in_cluster(sides[0].items, mode)
        ):
            on_look(compared)
        block += 1
    if compared is None:
        raise UsageError(
            f"these runs have no scored sample in common in mode {mode}", hint="see agrotools score"
        )
    for side in sides if compared.look < compared.looks else ():
        write_whole(
            side.folder / EARLY_FILE,
            command_line("compare", *compared.runs, "--until-decided").encode(),
        )
    return compared


def sample_blocks(items: WorkItems, mode: Mode) -> dict[str, int]:
    """Return the block, from 0, of each sample of a mode: at most :data:`LOOKS` of whole clusters.

    The order of the clusters is that of the hashes of their names: random, and the same for every pair of runs.
    """
    members: dict[str, list[str]] = {}
    for at in next(part.positions for part in items.parts if part.mode == mode):
        sample = items.samples[at]
        members.setdefault(sample.cluster or sample.id, []).append(sample.id)
    total, block_of, number_of = sum(map(len, members.values())), dict[str, int](), dict[int, int]()
    for cluster in sorted(members, key=lambda name: sha256(name.encode()).digest()):
        number = number_of.setdefault(
            len(block_of) * LOOKS // total, len(number_of)
        )  # without gaps
        block_of |= dict.fromkeys(members[cluster], number)
    return block_of


def most_in_cluster(items: WorkItems, mode: Mode) -> tuple[int, float]:
    """Return the largest number of units in a cluster, and the largest absolute difference of a cluster's mean.

    A unit is a sample, in step-by-step a step. Two runs differ by at most 1 on a sample. A pair of an answerable sample
    and its unanswerable twin has a sum of -1 (both refused, wrongly and without credit) to 2, hence a mean difference
    of at most 3 / 2.
    """
    units: Counter[str] = Counter()
    reach = 1.0
    for at in next(part.positions for part in items.parts if part.mode == mode):
        sample = items.samples[at]
        steps = len(sample.reference.steps) if sample.reference else 0
        units[sample.cluster or sample.id] += steps + 1 if mode == "step-by-step" else 1
        if not sample.answerable:
            reach = 1.5
    return max(units.values()), reach


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


def _compared(
    sides: Sequence[RunPlan],
    mode: Mode,
    block_of: dict[str, int],
    block: int,
    most: tuple[int, float],
) -> SequentialComparison | None:
    """Return the comparison after ``block``; None if there is no pair of scores."""
    tallies = [scored_run(side.folder) for side in sides]
    check_same_samples(*tallies)
    pair = headline_pair(tallies[0], tallies[1], mode)
    blocks = np.array(
        [block_of.get(name, block + 1) for name in pair.samples] if pair else [], dtype=np.int64
    )
    kept = blocks <= block
    if pair is None or not kept.any():
        return None
    first, second = pair.first[kept], pair.second[kept]
    failed = {
        name for side in sides for of, name, _ in record_index(side.folder).failed if of == mode
    }
    largest, reach = most
    look = sequential_look(
        second - first, pair.clusters[kept], blocks[kept], largest=largest, reach=reach
    )
    decided, missing = look.decided, None
    pairs = _limits_so_far(tallies, mode, pair.metric, block_of, block)
    if any(pairs.lacking):
        of_pairs = np.array([block_of[unit.sample] for unit in pairs.units], dtype=np.int64)
        bounds: list[InterimLook] = []
        for for_second in (False, True):
            lower, upper = pairs.scores(for_second=for_second)
            bounds.append(
                sequential_look(
                    upper - lower, pairs.clusters, of_pairs, largest=largest, reach=reach
                )
            )
        missing = Missing(
            samples=pairs.lacking, lowest=bounds[0].difference, highest=bounds[1].difference
        )
        # The run that the difference favours must be better with all missing scores set against it.
        is_second = look.difference.value > 0
        worst = bounds[0] if is_second else bounds[1]
        decided = decided and worst.decided and (worst.difference.value > 0) == is_second
    return SequentialComparison(
        runs=(str(sides[0].folder), str(sides[1].folder)),
        models=(sides[0].manifest.labelled_model, sides[1].manifest.labelled_model),
        mode=mode,
        metric=pair.metric,
        means=(shown_mean(first), shown_mean(second)),
        difference=look.difference,
        decided=decided,
        missing=missing,
        look=block + 1,
        looks=max(block_of.values()) + 1,
        planned=len(block_of),
        invalid=sum(block_of.get(name, block + 1) <= block for name in failed),
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
    same = ("data_root", "protocol", "tools", "backends", "degrade", "faults", "quick", "epochs")
    values = stored_options(run) | {name: getattr(run, name) for name in same}
    values |= {"options": run.benchmark_options, "mode": ",".join(run.modes)}
    values |= {"limit": max(run.planned.values(), default=0) // run.epochs or None, "out": folder}
    values |= {"seed": values.get("seed", run.seed or None)}
    return EvalConfig.of(
        **{name: value for name, value in values.items() if value not in ("", None)}
    )
