"""The public Python API, available through ``import agrotools as at`` (examples in docs/python.md).

The command line calls the same functions.
"""

import importlib
import io
import sys
import threading
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property, partial
from heapq import nsmallest
from html import escape
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from agrotools.agents.modes import Policy, check_object, object_name
from agrotools.core import MODES, Mode, Protocol, Record, Score, UsageError
from agrotools.core.errors import InvalidRunError
from agrotools.core.texts import count_text, counted_names, names_hint
from agrotools.formats.benchmark import Benchmark
from agrotools.formats.manifest import Manifest
from agrotools.models.base import Model
from agrotools.runner.config import EvalConfig
from agrotools.runner.config_file import read_config
from agrotools.runner.policies import AgentFunction
from agrotools.runner.progress import notebook_display
from agrotools.runner.records import RecordIndex, flat_row, record_index
from agrotools.runner.store import read_manifest

if TYPE_CHECKING:
    from agrotools.analysis.study import StudyResult
    from agrotools.report.screen import Screen
    from agrotools.runner.gating import GatedRuns
    from agrotools.runner.rescore import Rescored
    from agrotools.scoring.statistics import Estimate
    from agrotools.scoring.summary import RunComparison, Summary
    from agrotools.scoring.validity import Validity

_LISTED = 10
"""Maximum number of ids listed in a message."""

_FIRST_MODES: tuple[Mode, ...] = ("end-to-end", "step-by-step", "no-tool")
"""Order of preference of :attr:`Run.scores` for a metric of several modes."""


class MetricScore(NamedTuple):
    """A metric of a run: a mean of scores in [0, 1] with its 95 % interval.

    Examples:
        >>> score = at.read_run("runs/new").scores["fas"]
        >>> print(score.value, score.interval, score.n)
    """

    metric: str
    mode: Mode
    value: float
    interval: tuple[float, float] | None
    """Lower and upper bound of the 95 % interval over clusters; None for fewer than 10 clusters."""
    n: int
    """Number of samples (or steps) in the mean."""
    clusters: int
    """Number of clusters: groups of samples that share a file."""


class MetricDifference(NamedTuple):
    """Difference of two runs (second minus first) in one metric, paired by sample.

    Examples:
        >>> for difference in at.compare("runs/old", "runs/new"):
        ...     print(difference.metric, difference.value, difference.p_adjusted)
    """

    metric: str
    mode: str
    first: str
    second: str
    value: float
    interval: tuple[float, float] | None
    p_adjusted: float | None
    """p-value adjusted by Holm's method over all differences of the comparison; None for fewer than 10 clusters."""
    detectable: float | None
    """Detectable difference with 80 % power at the 5 % level."""
    n: int
    bounds: tuple[float, float] | None = None
    """Difference with all missing scores set against the second run, and against the first; None: none is missing."""
    is_held: bool = True
    """False if scores are missing that could undo what the difference shows: there is no verdict."""


class Comparison(tuple[MetricDifference, ...]):
    """Differences between all pairs of runs on one benchmark, in the headline metrics of each mode.

    Examples:
        >>> comparison = at.compare("runs/old", "runs/new")
        >>> print(comparison, *comparison.warnings)
    """

    pairs: "Sequence[RunComparison]" = ()
    """Comparison of each pair with all that ``agrotools compare`` shows: metrics, tasks, causes, samples."""
    warnings: Sequence[str] = ()
    """Warnings: reasons that speak against the comparison, and what else differs between the runs."""

    def __repr__(self) -> str:
        return (
            "\n".join(_difference_line(each) for each in self)
            or "Comparison(no headline metric in common)"
        )


class Scores(dict[str, MetricScore]):
    """Metrics by id, shown as a table. The KeyError of an unknown id lists the closest and the available ids."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return (
            "\n".join(f"{name:{width}}  {_score_text(score)}" for name, score in self.items())
            or "Scores()"
        )

    def __missing__(self, metric: str) -> MetricScore:
        raise KeyError(_unknown("metric", metric, list(self)))


def _unknown(noun: str, name: str, known: Sequence[str]) -> str:
    """Return the message for a name that is not in ``known``."""
    close = get_close_matches(name, known, n=3) or [each for each in known if name in each][:3]
    suggestion = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no {noun} {name!r} in the run; {suggestion}it has {counted_names(known, _LISTED) or 'none'}"


class RunSample:
    """The records of one sample in a run, one for each mode and epoch, with their scores.

    Examples:
        >>> sample = at.read_run("runs/new").worst(1)[0]
        >>> sample.show()
    """

    def __init__(self, run: "Run", records: Sequence[Record]) -> None:
        self.run = run
        self.records = list(records)
        self.id = records[0].sample.id

    @property
    def query(self) -> str:
        """The question."""
        return self.records[0].sample.query

    @property
    def scores(self) -> list[Score]:
        """Score rows of all records of the sample."""
        return [score for record in self.records for score in self.run.score_record(record)]

    def show(self) -> None:
        """Show question, pictures, steps, answer and scores, as HTML in a notebook, else as text on standard output."""
        notebook = notebook_display()
        self._print(None) if notebook is None else notebook.display(
            notebook.HTML(self._repr_html_())
        )

    def _print(self, file: io.StringIO | None) -> None:
        from agrotools.report.explain import explain
        from agrotools.report.terminal import print_parts

        for record in self.records:
            print_parts(
                explain(record, self.run.score_record(record), self.run.judgements.of(record)), file
            )

    def _repr_html_(self) -> str:
        text = io.StringIO()
        self._print(text)
        return "".join(self._pictures()) + f"<pre>{escape(text.getvalue())}</pre>"

    def _pictures(self) -> Iterator[str]:
        from agrotools.agents.images import Preview, make_preview
        from agrotools.report.html.pictures import Absent, Places, benchmark_roots

        places, roots = (
            Places([self.run.path]),
            benchmark_roots(self.run.manifest, self.run.path, None),
        )
        for file in (file for file in self.records[0].sample.files if file.kind == "image"):
            path = places.of_file(file, roots)
            preview = (
                None
                if isinstance(path, Absent)
                else make_preview(path, file.name, file.kind, file.bands)
            )
            if isinstance(preview, Preview):
                yield f'<img src="{preview.image.url}" alt="{escape(file.name)}" style="max-width:24em">'

    def __repr__(self) -> str:
        scored = {record.mode: fmean(fas) for record in self.records if (fas := self._fas(record))}
        modes = dict.fromkeys(record.mode for record in self.records)
        texts = (
            f"{mode} fas {100 * scored[mode]:.4g}" if mode in scored else mode for mode in modes
        )
        return f"RunSample({self.id!r}, {', '.join(texts)})"

    def _fas(self, record: Record) -> list[float]:
        return [score.value for score in self.run.score_record(record) if score.metric == "fas"]


class Run:
    """A run folder with its scores, records and report. Records and scores are read on demand.

    Examples:
        >>> run = at.read_run("runs/new")
        >>> print(run.scores["fas"].value, len(run.samples()))

    Args:
        path: folder written by :func:`evaluate` or ``agrotools eval``.
        stopped: reason why the run ended before it was complete; None if it was not stopped.

    Raises:
        RunStoreError: the folder contains no run, or one that this version cannot read.
    """

    def __init__(self, path: str | Path, *, stopped: str | None = None) -> None:
        if not isinstance(path, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"a run is given by the path of its folder, not by {path!r}",
                hint="e.g. runs/my-run",
            )
        self.path = Path(path)
        self.manifest: Manifest = read_manifest(self.path)
        self.stopped = stopped
        self._allow_invalid = False

    @cached_property
    def _scored(self) -> "Rescored":
        from agrotools.runner.rescore import score_runs

        return score_runs([self.path], allow_invalid=self._allow_invalid)[0]

    @property
    def summary(self) -> "Summary":
        """All results of the run, as in ``scores.json``. The records are scored on first use."""
        return self._scored.summary

    @cached_property
    def screen(self) -> "Screen":
        """Screen of ``agrotools eval`` for the run: ``ladder`` (floor, planner, score, ceiling) and ``warnings``.

        The baselines of the ladder are run on first use, unless they are kept beside the run.
        """
        from agrotools.report.evaluation import RunScores, with_yardsticks
        from agrotools.report.screen import Screen

        scores = with_yardsticks(RunScores([self.path], [self._scored]))
        return Screen(scores.scored, scores.yardsticks)

    @property
    def validity(self) -> "Validity":
        """Validity of the scores: the exit code of ``agrotools score``, and the error that goes with it."""
        from agrotools.scoring.validity import check_validity

        return check_validity([self.summary], [str(self.path)], allow_invalid=self._allow_invalid)

    @property
    def scores(self) -> Scores:
        """Metrics by id, such as ``fas``. For a metric of several modes, the value is that of end-to-end if
        available, else of step-by-step. Use :meth:`mode_scores` for a particular mode."""
        modes = reversed(_FIRST_MODES)
        return Scores(
            {name: score for mode in modes for name, score in self.mode_scores(mode).items()}
        )

    def mode_scores(self, mode: Mode) -> Scores:
        """Return the metrics of one mode by id; empty if the run does not include the mode.

        Raises:
            UsageError: ``mode`` is not a mode.
        """
        if mode not in MODES:
            hint = names_hint(mode, MODES, f"modes: {', '.join(MODES)}")
            raise UsageError(f"unknown mode {mode!r}", hint=hint)
        part = self.summary.modes.get(mode)
        scores = Scores()
        for name, metric in (part.metrics if part else {}).items():
            mean = metric.overall
            scores[name] = MetricScore(name, mode, mean.value, _ends(mean), mean.n, mean.n_clusters)
        return scores

    def samples(self, mode: Mode | None = None) -> list[Record]:
        """Return the records, ordered by mode, sample and epoch; only those of ``mode`` if it is given."""
        return [record for record in self._index if mode in (None, record.mode)]

    def __getitem__(self, sample_id: str) -> RunSample:
        """Return the records of one sample.

        Raises:
            KeyError: the run has no sample with this id.
        """
        records = self._index.of_sample(sample_id)
        if not records:
            raise KeyError(
                _unknown(
                    "sample", sample_id, sorted({name for _, name, _ in self._index.each_key()})
                )
            )
        return RunSample(self, records)

    def worst(self, count: int = 5, metric: str = "fas") -> list[RunSample]:
        """Return the samples with the lowest scores, worst first, by their mean in the mode of :attr:`scores`.

        Raises:
            KeyError: the run has no such metric.
        """
        mode = self.scores[metric].mode
        values: dict[str, list[float]] = {}
        for row in self.rows():
            if row["mode"] == mode and metric in row:
                values.setdefault(row["sample"], []).append(row[metric])
        return [
            self[name] for name in nsmallest(count, values, key=lambda name: fmean(values[name]))
        ]

    def compare(self, other: "str | Path | Run") -> Comparison:
        """Return the differences of ``other`` minus this run, see :func:`compare`."""
        return compare(self, other)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def valid(self) -> int:
        """Number of records with a reply of the model."""
        return self._index.n_finished

    @cached_property
    def _index(self) -> RecordIndex:
        return record_index(self.path)

    @cached_property
    def judgements(self) -> Any:
        """Judgements of the run's answers, by record."""
        from agrotools.runner.rescore import judged_rows

        return judged_rows(self.path)

    def score_record(self, record: Record) -> list[Score]:
        """Return the score rows of one record, including those of judges."""
        from agrotools.runner.rescore import rows_of

        return self.judgements.joined(record, rows_of(record, self._index))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return one flat row per record.

        Columns: sample, mode, epoch, query (the question), gold (the right answer), answer, termination, seconds,
        tokens..., and the mean score of each metric.

        Raises:
            RunStoreError: a line of the records is damaged.
        """
        return (flat_row(record, self.score_record(record)) for record in self._index.undamaged())

    def to_pandas(self) -> Any:
        """Return :meth:`rows` as a ``pandas.DataFrame``.

        Raises:
            UsageError: pandas is not installed.
        """
        return _imported("pandas").DataFrame(list(self.rows()))

    def to_polars(self) -> Any:
        """Return :meth:`rows` as a ``polars.DataFrame``.

        Raises:
            UsageError: polars is not installed.
        """
        return _imported("polars").DataFrame(list(self.rows()), infer_schema_length=None)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report, a self-contained HTML file, and return its path.

        Args:
            path: path of the file; ``report.html`` in the run folder by default.
        """
        from agrotools.report.html.page import build_report

        return build_report([self.path], Path(path) if path else self.path / "report.html").path

    def __repr__(self) -> str:
        about = f"{self.manifest.model} on {self.manifest.benchmark}"
        return f"Run({str(self.path)!r}, {about}, {count_text(len(self), 'record')})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(each.metric)}</td><td>{each.mode}</td><td>{100 * each.value:.1f}</td>"
            f"<td>{_interval_text(each.interval)}</td><td>{each.n} ({each.clusters})</td></tr>"
            for mode in _FIRST_MODES
            for each in self.mode_scores(mode).values()
        )
        head = "<tr><th>metric</th><th>mode</th><th>%</th><th>95 % interval</th><th>n (clusters)</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"


def evaluate(
    benchmark: str | Path | Benchmark = "embedded",
    model: str | Model | Policy | AgentFunction = "baseline:planner",
    *,
    mode: Mode | str = "all",
    quick: bool = False,
    task_types: Sequence[str] = (),
    limit: int | None = None,
    shard: tuple[int, int] | str | None = None,
    epochs: int = 1,
    protocol: Protocol | None = None,
    base_url: str | None = None,
    out: str | Path | None = None,
    progress: TextIO | None = None,
    **options: Any,
) -> Run:
    """Run a benchmark with a model, score it, and return the run. The same call again resumes an incomplete run.

    Examples:
        >>> run = at.evaluate("my-farm", model="baseline:guess", mode="no-tool")
        >>> print(run.scores["fas"].value)

    Args:
        benchmark: name, folder, or a loaded benchmark.
        model: model name as for ``agrotools eval --model``; an object with ``generate`` (a model) or ``act`` (a
            policy); or an agent: a plain or async function from a :class:`Task` to its answer. The run of an object is
            resumed only if ``out`` is its folder, because its code may have changed under the same name.
        mode: ``no-tool``, ``step-by-step``, ``end-to-end`` or ``all``.
        quick: run the quick part of the benchmark, a fixed selection of its samples, in a run folder of its own.
        task_types: run only questions of these task types, e.g. ``["pest_diagnosis"]``, in a run folder of its own.
        limit: run a fixed random subset of this many samples in each mode; all by default.
        shard: run one of several parts of the samples, for runs on several machines: ``(3, 16)`` or ``"3/16"`` is the
            third of 16. :func:`merge` joins them.
        epochs: number of repeats of every sample.
        protocol: ``react``, ``tool-calling`` or a protocol of a benchmark plug-in; the benchmark's own by default.
        base_url: OpenAI-compatible endpoint of the model.
        out: run folder; ``runs/BENCHMARK-MODEL-HASH`` by default.
        progress: stream for progress and notes; standard error by default.
        **options: other keys of a config file, such as ``faults``, ``temperature``, ``budget`` or ``backends``.

    Raises:
        UsageError: an argument is invalid or does not fit the others.
        BenchmarkError: the benchmark cannot be loaded.
        RunStoreError: the run folder cannot be read or written, or belongs to another run.
        InfrastructureError: the endpoint no longer responds.
        InvalidRunError: no sample got a reply; its attribute ``run`` is the run.
        BudgetReached: the budget does not even allow the first sample.
    """
    if not isinstance(model, str):
        check_object(model)
    name = model if isinstance(model, str) else object_name(model)
    given = {
        "mode": mode,
        "quick": quick,
        "task_types": task_types,
        "limit": limit,
        "epochs": epochs,
        "protocol": protocol,
        "base_url": base_url,
    }
    given |= {"shard": shard, "out": out}
    given["benchmark"] = str(benchmark.root if isinstance(benchmark, Benchmark) else benchmark)
    values = {key: value for key, value in {**given, **options}.items() if value is not None}
    config = read_config(None, values, [name])[0]
    run = evaluate_config(
        config,
        progress or sys.stderr,
        model=None if isinstance(model, str) else model,
        benchmark=benchmark if isinstance(benchmark, Benchmark) else None,
    )
    if len(run) and not run.valid:
        first = next(iter(run._index))
        raise InvalidRunError(
            f"all {count_text(len(run), 'sample')} of {run.path} are invalid; the first: {first.invalid}",
            run=run,
            hint="the same call runs them again",
        )
    return run


def evaluate_config(
    config: EvalConfig,
    progress: TextIO,
    *,
    model: Model | Policy | AgentFunction | None = None,
    benchmark: Benchmark | None = None,
) -> Run:
    """Run the missing samples of the run described by ``config``; see :func:`evaluate`. Scores are computed on use.

    Args:
        config: configuration of the run.
        progress: stream for progress and notes.
        model: object to use instead of the model named in ``config``.
        benchmark: loaded benchmark to use instead of the one named in ``config``.
    """
    from agrotools.runner.evaluate import evaluate as run
    from agrotools.runner.evaluate import outside_event_loop

    stop = threading.Event()
    done = outside_event_loop(
        lambda: run(config, progress, model=model, benchmark=benchmark, stop=stop), stop
    )
    reason = f"{done.stopped.message}\nhint: {done.stopped.hint}" if done.stopped else None
    return Run(done.run, stopped=reason)


def study(
    file: str | Path,
    *,
    dry_run: bool = False,
    allow_invalid: bool = False,
    progress: TextIO | None = None,
) -> "StudyResult":
    """Run what is missing of a study file (models x benchmarks x lists of tools), and compare its runs in one table.

    Examples:
        >>> result = at.study("study.toml", dry_run=True)
        >>> print(result.states[0].problem)

    Args:
        file: TOML file as for ``agrotools study``.
        dry_run: only count the missing records and estimate their cost; runs that have records are compared.
        allow_invalid: report headline scores even if more than 1 % of samples are invalid.
        progress: stream for progress and notes; standard error by default.

    Raises:
        UsageError, BenchmarkError: the file is not valid, or a benchmark cannot be loaded. Faults of a single run are
            in its state: ``result.states[0].problem``.
    """
    from agrotools.analysis.study import inspect_study, read_study, run_study, study_result
    from agrotools.runner.evaluate import outside_event_loop

    plan, stream, stop = read_study(Path(file)), progress or sys.stderr, threading.Event()
    act = (
        partial(inspect_study, plan, stream)
        if dry_run
        else partial(run_study, plan, stream, stop=stop)
    )
    return study_result(plan, outside_event_loop(act, stop), allow_invalid=allow_invalid)


def read_run(path: str | Path) -> Run:
    """Open a run folder written by :func:`evaluate` or ``agrotools eval``.

    Examples:
        >>> run = at.read_run("runs/new")
        >>> print([record.trajectory.answer for record in run.samples()])

    Raises:
        RunStoreError: the folder contains no run, or one that this version cannot read.
    """
    return Run(path)


def merge(runs: Sequence[str | Path | Run], out: str | Path, *, allow_missing: bool = False) -> Run:
    """Merge the shards of a run (:func:`evaluate` with ``shard``) into one run, equal to that without shards.

    Examples:
        >>> run = at.merge(["runs/part-1", "runs/part-2"], out="runs/whole")

    Args:
        runs: runs of all shards, or their folders.
        out: folder of the merged run, which must not exist or be empty.
        allow_missing: merge what is there if shards are missing or not finished.

    Raises:
        UsageError: a run is not a shard, shards of different runs, or shards are missing or not finished.
        RunStoreError: a run cannot be read, a line of its records is damaged, or ``out`` cannot be written.
    """
    from agrotools.runner.shards import merge_runs

    each_run = [runs] if isinstance(runs, str) else runs
    folders = [each.path if isinstance(each, Run) else Path(each) for each in each_run]
    return Run(merge_runs(folders, Path(out), allow_missing=allow_missing).run)


def score(run: str | Path | Run, *, allow_invalid: bool = False) -> Run:
    """Score the records of a run again, without calling a model, and write its ``scores.json``.

    Examples:
        >>> run = at.score("runs/new")

    Args:
        run: a run, or its folder.
        allow_invalid: report headline scores even if more than 1 % of samples are invalid.
    """
    from agrotools.runner.rescore import score_runs

    fresh = Run(run.path if isinstance(run, Run) else run)
    fresh._allow_invalid = allow_invalid
    fresh._scored = score_runs([fresh.path], allow_invalid=allow_invalid)[0]
    return fresh


def compare(*runs: str | Path | Run) -> Comparison:
    """Return the paired differences of all pairs of runs on one benchmark, with joint p-value adjustment (Holm).

    The same differences as those of ``agrotools compare``: in the headline metric of each mode, on common samples,
    the later run minus the earlier. The attribute ``pairs`` has all others, and ``warnings`` what speaks against them.

    Examples:
        >>> lower = [each for each in at.compare("runs/old", "runs/new") if each.value < 0]

    Raises:
        UsageError: fewer than two runs, or runs of different benchmarks.
        RunStoreError: a run cannot be read.
    """
    from agrotools.report.evaluation import compare_with_reasons

    paths = [each.path if isinstance(each, Run) else Path(each) for each in runs]
    all_pairs = compare_with_reasons(paths)
    differences: list[MetricDifference] = []
    for (first, second), compared in zip(
        combinations(map(str, paths), 2), all_pairs.pairs, strict=True
    ):
        for mode, metric in compared.headline.items():
            found = compared.modes[mode][metric].overall
            missing = compared.missing.get(mode)
            bounds = missing and (missing.lowest.value, missing.highest.value)
            is_held = missing is None or (found.differs() and missing.allows(found.value))
            differences.append(
                MetricDifference(
                    metric=metric,
                    mode=mode,
                    first=first,
                    second=second,
                    value=found.value,
                    interval=_ends(found),
                    p_adjusted=found.p_adjusted,
                    detectable=found.detectable,
                    n=found.n,
                    bounds=bounds,
                    is_held=is_held,
                )
            )
    comparison = Comparison(differences)
    comparison.pairs, comparison.warnings = all_pairs
    return comparison


def gate(
    new: str | Path | Run,
    against: str | Path | Run,
    *,
    max_drop: float = 0.0,
    mode: Mode | None = None,
    allow_invalid: bool = False,
) -> "GatedRuns":
    """Test whether a run is worse than an older one by more than ``max_drop``, as ``agrotools gate`` does.

    ``result.passed`` of what is returned is the verdict; ``result`` has what it rests on.

    Examples:
        >>> verdict = at.gate("runs/new", "runs/old", max_drop=0.02)
        >>> print(verdict.result.passed)

    Args:
        new: a run, its folder, or a file of ``agrotools gate --save``.
        against: the older run.
        max_drop: allowed drop of the score, of which 1 is the highest: 0.02 is two points.
        mode: mode that is tested; by default the headline mode of those that both have.
        allow_invalid: test the samples that both have a score of, even if many are invalid.

    Raises:
        UsageError: the runs differ in more than the version that is tested, or have too few clusters in common.
        RunStoreError: a run cannot be read.
    """
    from agrotools.runner.gating import gate_runs

    newer, older = (each.path if isinstance(each, Run) else Path(each) for each in (new, against))
    return gate_runs(newer, older, mode, max_drop, allow_invalid=allow_invalid)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} is not installed", hint=f"pip install {name}") from error


def _ends(estimate: "Estimate") -> tuple[float, float] | None:
    return (estimate.interval.lower, estimate.interval.upper) if estimate.interval else None


def _interval_text(interval: tuple[float, float] | None) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}" if interval else ""


def _score_text(score: MetricScore) -> str:
    interval = f" [{_interval_text(score.interval)}]" if score.interval else ""
    return f"{100 * score.value:5.1f}{interval}  ({score.mode}, n {score.n})"


def _difference_line(each: MetricDifference) -> str:
    adjusted = (
        f", adjusted p {each.p_adjusted:.3g}"
        if each.p_adjusted is not None
        else ", too few clusters for a p"
    )
    detectable = f", detectable {100 * each.detectable:.0f}" if each.detectable is not None else ""
    interval = f" [{_interval_text(each.interval)}]" if each.interval else ""
    if each.bounds and not each.is_held:
        lower, upper = (f"{100 * end:+.1f}" for end in each.bounds)
        adjusted = f", no verdict: scores are missing, with them {lower} to {upper}"
    return (
        f"{each.metric} ({each.mode}): {100 * each.value:+.1f} points{interval}, n {each.n}{adjusted}{detectable};"
        f" {each.second} minus {each.first}"
    )
