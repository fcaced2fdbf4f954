"""Yardsticks of a run: baselines on the same samples, floor and ceiling, to place the score of a model between them.

The floor is ``guess`` or ``constant``, whichever is higher in all. The scores of constants are in the summary of the
run itself (:mod:`agrotools.scoring.constants`), so that ``constant`` is never run for this.

The ceiling is only of samples whose answer follows from the reference calls (:attr:`Sample.derivable`).

A finished run of the same baseline beside the run is used if it has the same samples, tools and back-ends. Otherwise
the floors (``guess``, whose only tool is ``plot``, and, where some questions cannot be answered, ``colours``) and the
ceiling (``oracle``, which makes the reference calls) are run with the tool results that the benchmark has recorded, in
milliseconds per sample; the charts of the floors are drawn, because no result is recorded for them. The planner is
never run for this.

These runs are kept in the folder ``.references`` beside the run: all runs on the same samples, and every later score
or page of them, take them from there. They are no part of a run's exit code, budget or resumption.
"""

import io
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from agrotools.core import MODES, AgrotoolsError, Mode, RunStoreError, UsageError
from agrotools.core.files import sha256_of_json
from agrotools.core.libraries import MissingLibraryError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import facts_of, select_samples
from agrotools.formats.manifest import Manifest
from agrotools.loading import Benchmark
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.plan import RECORDED
from agrotools.runner.records import RecordIndex, record_index
from agrotools.runner.rescore import Rescored, score_runs
from agrotools.runner.store import read_manifest
from agrotools.scoring.metrics import CONSTANT_METRIC, FAS
from agrotools.scoring.summary import Summary

GUESS, CONSTANT, COLOURS = "baseline:guess", "baseline:constant", "baseline:colours"
PLANNER, CEILING = "baseline:planner", "baseline:oracle"
_ROLES = {
    GUESS: "floor",
    CONSTANT: "floor",
    COLOURS: "colours",
    PLANNER: "planner",
    CEILING: "ceiling",
}
MOST_SAMPLES = 5000
"""Most samples on which floor and ceiling are computed, so that the screen comes within seconds."""
_SAME = ("scoring", "benchmark_hash", "degrade", "faults", "backends", "tool_data", "toolset_hash")
"""Fields of the manifest in which a run of a baseline must agree with the run that it is a yardstick for."""


@dataclass(frozen=True)
class Yardsticks:
    """Scores of baselines on the samples of a run, by name.

    ``recorded``: names computed from recorded results.
    ``notes``: why a baseline is missing that should be there.
    """

    scored: Mapping[str, Rescored] = field(default_factory=dict[str, Rescored])
    recorded: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def summaries(self) -> dict[str, Summary]:
        return {name: each.summary for name, each in self.scored.items()}


def role_of(summary: Summary, mode: Mode) -> str:
    """Return ``floor``, ``colours``, ``planner``, ``ceiling``, ``baseline`` or ``model``."""
    part = summary.modes.get(mode)
    if summary.model in _ROLES and not (summary.model == CEILING and part and part.n_underivable):
        return _ROLES[summary.model]
    return "baseline" if summary.model.startswith("baseline:") else "model"


def roles_of(summaries: Sequence[Summary], mode: Mode) -> list[str]:
    """Return the roles of runs that are shown together: of several floors, the highest is the floor."""
    roles = [role_of(summary, mode) for summary in summaries]
    scores = {at: _fas(summaries[at], mode) for at, role in enumerate(roles) if role == "floor"}
    for at in scores:
        if scores[at] < max(scores.values()):
            roles[at] = "baseline"
    return roles


def _fas(summary: Summary, mode: Mode) -> float:
    metric = summary.modes[mode].metrics.get(FAS) if mode in summary.modes else None
    return metric.overall.value if metric else 0.0


def with_constant(yardsticks: Yardsticks, run: Rescored, mode: Mode) -> Yardsticks:
    """Return yardsticks with the scores of constants on the samples of a run, if these are its floor."""
    part = run.summary.modes.get(mode)
    if part is None or part.floor != CONSTANT_METRIC:
        return yardsticks
    metrics = {FAS: part.metrics[CONSTANT_METRIC]}
    summary = Summary(
        model=CONSTANT,
        benchmark=run.summary.benchmark,
        benchmark_options=run.summary.benchmark_options,
        synthetic=run.summary.synthetic,
        scoring=run.summary.scoring,
        modes={mode: part.model_copy(update={"metrics": metrics, "lost": None})},
    )
    constant = Rescored(summary, tally=run.tally.of_constants() if run.tally else None)
    others = {name: each for name, each in yardsticks.scored.items() if name != GUESS}
    return replace(yardsticks, scored={**others, CONSTANT: constant})


def headline_mode(modes: tuple[Mode, ...]) -> Mode:
    """Return the mode that a run is judged by: the end-to-end mode if it has it."""
    return next(mode for mode in ("end-to-end", *MODES) if mode in modes)


def yardsticks_of(
    run: Path,
    benchmark: Benchmark,
    data_root: Path | None = None,
    progress: Progress = no_progress,
    mode: Mode | None = None,
) -> Yardsticks:
    """Return floor, planner and ceiling of the samples that ``run`` has finished in ``mode`` (its headline mode).

    A baseline without a run of its own is left out on degraded files, on more than :data:`MOST_SAMPLES` samples, and
    as ceiling where no tools are called.

    Raises:
        RunStoreError: the run cannot be read.
    """
    manifest = read_manifest(run)
    mode = mode or headline_mode(manifest.modes)
    index = record_index(run)
    finished = {*index.finished_ids(mode)}
    scored = _read_finished_yardsticks(run, manifest, mode, index)
    all_ids = facts_of(benchmark.samples).ids
    places = [at for at, sample_id in enumerate(all_ids) if sample_id in finished]
    can_refuse = any(not benchmark.samples[at].answerable for at in places)
    names = _names_to_run(manifest, mode, len(finished), scored, can_refuse=can_refuse)
    if not names:
        return Yardsticks(scored)
    notes: list[str] = []
    for number, name in enumerate(names):
        progress("floor and ceiling", number, len(names))
        chosen = places
        if name == CEILING and mode == "end-to-end":
            chosen = [at for at in places if benchmark.samples[at].derivable]
        if not chosen:
            continue
        part = replace(benchmark, samples=select_samples(benchmark.samples, chosen))
        config = EvalConfig.of(
            benchmark=manifest.benchmark_path,
            data_root=data_root,
            model=name,
            mode=mode,
            backends=_recorded_backends(name, benchmark, mode),
        )
        try:
            key = _key(manifest, config, [all_ids[at] for at in chosen])
            scored[name] = _run_or_resume_yardstick(run, config, part, key)
        except MissingLibraryError as error:
            notes.append(f"{name} is not shown for comparison: {error}")
        except UsageError:
            pass
        except (AgrotoolsError, OSError) as error:
            notes.append(f"{name} could not be run to compare with: {error}")
    progress("floor and ceiling", len(names), len(names))
    recorded = frozenset(name for name in names if name in scored)
    return Yardsticks(scored, recorded, tuple(notes))


def _read_finished_yardsticks(
    run: Path, manifest: Manifest, mode: Mode, index: RecordIndex
) -> dict[str, Rescored]:
    """Return the scores of the baselines that have a finished run of their own beside ``run``, by name."""
    scored: dict[str, Rescored] = {}
    for name, role in _ROLES.items():
        if name == CONSTANT:
            continue  # its scores are in the summary
        beside = _beside(run, manifest, name, mode, index)
        if beside is not None and role_of(beside.summary, mode) == role:
            scored[name] = beside
    return scored


def _names_to_run(
    manifest: Manifest,
    mode: Mode,
    n_samples: int,
    scored: Collection[str],
    *,
    can_refuse: bool,
) -> list[str]:
    """Return the baselines that are run to compare with: floors and ceiling, as far as they are not ``scored``.

    ``can_refuse``: True if some of the samples cannot be answered, which is what ``colours`` looks for.
    """
    if manifest.degrade or manifest.faults or not 0 < n_samples <= MOST_SAMPLES:
        return []
    wanted = [GUESS]
    if mode == "end-to-end" and can_refuse:
        wanted.append(COLOURS)
    if mode != "no-tool":
        wanted.append(CEILING)
    return [name for name in wanted if name not in scored]


def _recorded_backends(name: str, benchmark: Benchmark, mode: Mode) -> dict[str, str]:
    """Return the tools whose recorded results a baseline gets; the charts of the floor are drawn."""
    if mode == "no-tool":
        return {}
    tools = [tool for tool in benchmark.toolset if name == CEILING or tool != "plot"]
    return dict.fromkeys(tools, RECORDED)


YARDSTICKS_FOLDER = ".references"
"""Folder beside runs with the baselines that were run to compare with; it does not count among the runs."""


def _key(manifest: Manifest, config: EvalConfig, ids: Sequence[str]) -> str:
    """Return what the run of a yardstick depends on, as a short hash: a run with the same key has the same scores."""
    content = [
        manifest.agrotools,
        manifest.scoring,
        manifest.benchmark_hash,
        manifest.toolset_hash,
        config.run.mode,
        config.tools.backends,
        ids,
    ]
    return sha256_of_json(content)[:12]


def _run_or_resume_yardstick(
    run: Path, config: EvalConfig, benchmark: Benchmark, key: str
) -> Rescored:
    """Return the scores of a baseline, which is run unless its run is kept beside ``run``.

    Where nothing can be kept (the folder may not be written, or another process writes it), it is run in a temporary
    folder.
    """
    role = config.model.name.removeprefix("baseline:")
    kept = run.absolute().parent / YARDSTICKS_FOLDER / f"{benchmark.name}-{role}-{key}"
    try:
        kept.parent.mkdir(exist_ok=True)
        return _run_yardstick(config, benchmark, kept)
    except (OSError, RunStoreError):
        with tempfile.TemporaryDirectory(prefix="agrotools-") as folder:
            return _run_yardstick(config, benchmark, Path(folder) / "run")


def _run_yardstick(config: EvalConfig, benchmark: Benchmark, folder: Path) -> Rescored:
    """Run what is missing of a baseline in ``folder``, and score it."""
    evaluate(config.with_options(out=folder), io.StringIO(), benchmark=benchmark)
    return score_runs([folder])[0]


def _beside(
    run: Path, manifest: Manifest, name: str, mode: Mode, index: RecordIndex
) -> Rescored | None:
    """Return the scores of a complete run of baseline ``name`` on the samples of ``index`` beside ``run``, if any."""
    for folder in sorted(run.absolute().parent.glob(f"*{name.removeprefix('baseline:')}*")):
        with suppress(AgrotoolsError):
            other = read_manifest(folder)
            if other.model != name or mode not in other.modes:
                continue
            if any(getattr(other, each) != getattr(manifest, each) for each in _SAME):
                continue
            pairs = zip_longest(index.finished_ids(mode), record_index(folder).finished_ids(mode))
            if all(one == another for one, another in pairs):
                return score_runs([folder])[0]
    return None
