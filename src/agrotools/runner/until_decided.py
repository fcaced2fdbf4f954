"""Two runs made in turn, block by block of clusters in a fixed random order, until their difference is decided."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TextIO

from agrotools.benchmarks import Benchmark
from agrotools.core import FrozenModel, Mode, UsageError
from agrotools.models.endpoint import without_keys
from agrotools.runner.build import PreparedRun, prepare_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.plan import Plan, remaining
from agrotools.runner.policies import is_agent
from agrotools.runner.records import RECORDS_FILE, record_index
from agrotools.runner.rescore import benchmark_differences, scored_run
from agrotools.runner.store import read_manifest
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import check_same_samples, headline_pair
from agrotools.scoring.metrics import PREDICTIONS
from agrotools.scoring.sequential import LOOKS, sequential_look
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.units import shown_mean


class SequentialComparison(FrozenModel):
    """Difference of two runs, first minus second, after ``look`` of ``looks`` blocks of ``planned`` samples."""

    runs: tuple[str, str]
    """Folders of the runs."""
    models: tuple[str, str]
    mode: Mode
    metric: str
    means: tuple[float, float]
    difference: Estimate
    """Its interval is valid at all looks together."""
    decided: bool
    look: int
    looks: int
    planned: int


Block = Mapping[str, Sequence[str]]
"""Ids of the samples of each cluster of a block."""


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
    if len(configs) != 2:
        raise UsageError(f"--until-decided compares two runs (got {len(configs)})", hint="e.g. -m MODEL -m OTHER")
    with without_keys():
        sides = [prepare_run(each, benchmark) for each in configs]
    if different := benchmark_differences([each.manifest for each in sides]):
        raise UsageError(f"these runs cannot be compared: {different[0]}", hint="give two runs of one benchmark")
    if sides[0].folder.resolve() == sides[1].folder.resolve():
        raise UsageError("--until-decided compares two different runs", hint="e.g. -m MODEL -m OTHER")
    modes: list[Mode] = [mode for mode in sides[0].plan.sizes() if mode in sides[1].plan.sizes()]
    if not modes:
        raise UsageError("these runs have no mode in common", hint="e.g. --mode end-to-end")
    mode = "end-to-end" if "end-to-end" in modes else modes[0]
    blocks = cluster_blocks(sides[0].plan, mode)
    compared, tallies = None, list[RunAggregator]()
    for number, block in enumerate(blocks, start=1):
        samples = frozenset(name for names in block.values() for name in names)
        has_run = [_run_missing(side, mode, samples, progress, benchmark) for side in sides]
        if any(has_run) or not tallies:
            tallies = [scored_run(side.folder) for side in sides]
            check_same_samples(*tallies)
        compared = _compared(sides, tallies, mode, blocks, number)
        if compared is not None:
            on_look(compared)
            if compared.decided:
                break
    if compared is None:
        raise UsageError(f"these runs have no scored sample in common in mode {mode}", hint="see agrotools score")
    return compared


def cluster_blocks(plan: Plan, mode: Mode) -> list[Block]:
    """Return the samples of a mode in at most :data:`~agrotools.scoring.sequential.LOOKS` blocks of whole clusters.

    The order of the clusters is that of the hashes of their names: random, and the same for every pair of runs.
    """
    members: dict[str, list[str]] = {}
    for at in next(part.positions for part in plan.parts if part.mode == mode):
        sample = plan.samples[at]
        members.setdefault(sample.cluster or sample.id, []).append(sample.id)
    blocks: list[dict[str, list[str]]] = [{} for _ in range(LOOKS)]
    before, total = 0, sum(map(len, members.values()))
    for cluster in sorted(members, key=lambda name: sha256(name.encode()).digest()):
        blocks[before * LOOKS // total][cluster] = members[cluster]
        before += len(members[cluster])
    return [block for block in blocks if block]


def _run_missing(
    side: PreparedRun, mode: Mode, samples: frozenset[str], progress: TextIO, benchmark: Benchmark
) -> bool:
    """Run what a run lacks of ``samples``; return False if it lacks nothing."""
    plan = side.plan.among(samples, mode)
    if (side.folder / RECORDS_FILE).is_file():
        index = record_index(side.folder)
        plan = remaining(plan, index, index.failed)
    if not len(plan):
        return False
    config = side.config.model_copy(update={"mode": mode, "out": side.folder})
    ended = evaluate(config, progress, benchmark=benchmark, only=samples)
    if ended.stopped:
        raise ended.stopped
    return True


def _compared(
    sides: Sequence[PreparedRun], tallies: Sequence[RunAggregator], mode: Mode, blocks: Sequence[Block], number: int
) -> SequentialComparison | None:
    """Return the comparison after the first ``number`` blocks; None if they hold no pair of scores."""
    block_of = {cluster: at for at, block in enumerate(blocks[:number]) for cluster in block}
    pair = headline_pair(tallies[0], tallies[1], mode)
    names = tallies[0].table.ids(pair.clusters.tolist()) if pair else []
    kept = [at for at, name in enumerate(names) if name in block_of]
    if pair is None or not kept:
        return None
    counts = [sum(map(len, block.values())) for block in blocks]
    first, second, clusters = pair.first[kept], pair.second[kept], [names[at] for at in kept]
    shares = [sum(counts[: at + 1]) / sum(counts) for at in range(number)]
    look = sequential_look(first - second, clusters, [block_of[name] for name in clusters], shares)
    return SequentialComparison(
        runs=(str(sides[0].folder), str(sides[1].folder)),
        models=(sides[0].manifest.labelled_model, sides[1].manifest.labelled_model),
        mode=mode,
        metric=pair.metric,
        means=(shown_mean(first), shown_mean(second)),
        difference=look.difference,
        decided=look.decided,
        look=number,
        looks=len(blocks),
        planned=sum(counts),
    )


def config_of_run(folder: Path) -> EvalConfig:
    """Return the configuration that continues a run, from its manifest alone.

    Raises:
        UsageError: the manifest lacks what an agent, a server of ``--serve`` or a vision model of tools needs.
    """
    run = read_manifest(folder)
    if is_agent(run.model) or run.server or run.vlm_base_url or run.shard or run.protocol == PREDICTIONS:
        raise UsageError(
            f"{folder} cannot be continued from its folder alone",
            hint="agrotools eval BENCHMARK -m MODEL -m OTHER --until-decided, with the options of both runs",
        )
    same = ("base_url", "protocol", "images", "max_steps", "tools", "backends", "degrade", "faults", "quick", "epochs")
    values = {name: value for name, value in run.settings.items() if name in EvalConfig.model_fields}
    values |= {name: getattr(run, name) for name in ("model", "data_root", *same)}
    values |= {"benchmark": run.benchmark_path, "options": run.benchmark_options, "mode": ",".join(run.modes)}
    values |= {"limit": max(run.planned.values(), default=0) // run.epochs or None, "out": folder}
    values |= {"seed": values.get("seed", run.seed or None)}
    return EvalConfig.model_validate({name: value for name, value in values.items() if value not in ("", None)})
