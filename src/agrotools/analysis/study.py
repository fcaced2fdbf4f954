"""Studies: models, benchmarks and lists of tools from one TOML file, run one after the other and compared together.

A study stores no state of its own. Its folder holds an ordinary run folder for each combination, so that the same
command resumes it after any interruption, and all commands for runs work on its parts.

The harness (protocol or agent around a model) is a factor: runs of the same models in the same harnesses form a table.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast
from urllib.parse import urlsplit

from agrotools.core import BENCHMARKS, AgrotoolsError, InfrastructureError, Mode, UsageError
from agrotools.core.errors import EndpointRefusal, EndpointUnreachable
from agrotools.core.files import read_toml
from agrotools.core.installed import benchmark_id
from agrotools.core.lazy import np
from agrotools.core.texts import count_text, name_in_tables
from agrotools.formats.benchmark import read_header
from agrotools.loading import Benchmark
from agrotools.models.endpoint import without_keys
from agrotools.models.metered import SPEND_FILE, read_spend
from agrotools.runner.build import RunPlan, load_for_run, plan_run
from agrotools.runner.config import OPTIONS, EvalConfig
from agrotools.runner.config_file import check_keys, read_config
from agrotools.runner.estimate import CostEstimate, estimate
from agrotools.runner.evaluate import evaluate
from agrotools.runner.plan import WorkItems, remaining
from agrotools.runner.policies import (
    is_agent,
    is_agent_server,
    is_baseline,
    names_endpoint,
    run_protocol,
)
from agrotools.runner.records import RECORDS_FILE, record_index
from agrotools.runner.rescore import check_distinct, rescore
from agrotools.runner.run_settings import DEFAULT_PROTOCOL, resolve_settings
from agrotools.runner.store import read_manifest, resolved_manifest
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.comparisons import (
    common_samples,
    differences_between,
    headline_metrics,
    values_on,
)
from agrotools.scoring.correlations import CorrelatedRun, correlations, model_of_run
from agrotools.scoring.statistics import Estimate as Mean
from agrotools.scoring.statistics import adjusted, estimate_difference, estimate_mean
from agrotools.scoring.summary import Correlation, ModeSummary, RunDifference, Summary

_OF_STUDY = ("benchmark", "model", "mode", "tools", "epochs", "budget", "out")
_OF_ROW = ("name", "label", *(key for key in OPTIONS if key not in _OF_STUDY))
_RESULTS = "results"
"""Key of a study file that no run has: the folder that the results of the runs are written to."""
_LONGEST_NAME = 120
"""Most characters of the name of a run folder."""


class StudyRun(NamedTuple):
    """One run of a study: shown names of its model and benchmark, its configuration, and its harness."""

    label: str
    benchmark: str
    config: EvalConfig
    harness: str = ""
    """Agent, or protocol around the model; empty: the protocol that the benchmark was published with."""

    @property
    def folder(self) -> Path:
        return cast(Path, self.config.run.out)

    @property
    def title(self) -> str:
        tools = f", tools {self.config.tools.offered}" if self.config.tools.offered != "all" else ""
        protocol = f", protocol {self.config.agent.protocol}" if self.config.agent.protocol else ""
        return f"{self.label} on {self.benchmark}{tools}{protocol}"


class Study(NamedTuple):
    """Folder, total budget in USD and runs of a study, model by model."""

    folder: Path
    budget: float | None
    runs: tuple[StudyRun, ...]
    results: Path | None = None
    """Folder for the results of the runs, and a table of them to paste; None: none are written."""


class RunState(NamedTuple):
    """Records of one run of a study, and the ``problem`` that keeps it from being complete."""

    run: StudyRun
    planned: int = 0
    finished: int = 0
    invalid: int = 0
    expected: CostEstimate | None = None
    """Estimated cost of the missing records; None without a paid endpoint."""
    problem: str = ""
    lacking: tuple[Mode, ...] = ()
    """Modes of the study that the benchmark has and the policy lacks."""

    @property
    def modes(self) -> list[Mode]:
        return [mode for mode in self.run.config.run.modes if mode not in self.lacking]

    @property
    def complete(self) -> bool:
        return not self.problem and self.finished == self.planned


class RunFactors(NamedTuple):
    """What is varied in a study: a run is of one benchmark with a list of tools, a model and its harness."""

    benchmark: str
    tools: str
    model: str
    harness: str


class HarnessEffects(NamedTuple):
    """Scores of models in harnesses, on the samples of a benchmark that all these runs have."""

    benchmark: str
    tools: str
    mode: Mode
    metric: str
    models: Sequence[str]
    harnesses: Sequence[str]
    means: dict[tuple[str, str], Mean]
    """Mean score by model and harness."""
    differences: list[Mean]
    """Each harness but the first, minus the first, over the mean scores of the models; adjusted together."""


class StudyCorrelations(NamedTuple):
    """Correlations of steps with answers in the runs on a benchmark with one list of tools."""

    benchmark: str
    tools: str
    runs: Sequence[str]
    """Names of the runs, by their numbers in the correlations."""
    correlations: Sequence[Correlation]


class StudyResult(NamedTuple):
    """Runs of a study, the summaries of those with records, and the adjusted differences between these."""

    study: Study
    states: Sequence[RunState]
    scored: Sequence[tuple[StudyRun, Summary]]
    differences: Sequence[RunDifference]
    effects: Sequence[HarnessEffects] = ()
    correlations: Sequence[StudyCorrelations] = ()

    def _repr_markdown_(self) -> str:
        from agrotools.analysis.study_tables import study_tables
        from agrotools.report.text_tables import markdown

        return markdown(study_tables(self))


def read_study(file: Path, budget: float | None = None) -> Study:
    """Read a study from a TOML file: keys of ``agrotools eval``, with lists of benchmarks, models, modes and tools.

    Benchmarks and models are names, or tables with ``name``, ``label`` and keys that apply to them alone. ``budget``
    replaces that of the file.

    Raises:
        UsageError: the file cannot be read, or a key or a value is not valid; the closest key is suggested.
    """
    values = read_toml(file, "study file", hint="give the path of a study file")
    check_keys(values, (*OPTIONS, _RESULTS), str(file))
    benchmarks = _rows(values.pop("benchmark", "embedded"), "benchmark", file)
    models = _rows(values.pop("model", []), "model", file)
    modes = _texts(values.pop("mode", "all"), "mode", file)
    tools = _texts(values.pop("tools", "all"), "tools", file)
    protocols = _texts(values.pop("protocol", ""), "protocol", file)
    folder = Path(str(values.pop("out", None) or f"runs/{file.stem}"))
    results = values.pop(_RESULTS, None)
    of_file = values.pop("budget", None)
    budget = of_file if budget is None else budget
    values["budget"] = budget
    values["mode"] = ",".join(modes)
    shown_names = _shown_names(benchmarks)
    runs: list[StudyRun] = []
    for model, benchmark, selection, protocol in product(models, benchmarks, tools, protocols):
        row = benchmark | model
        # Agents, baselines and models with a protocol of their own run once.
        is_first = protocol == protocols[0]
        if is_first or _harness(row["name"], row.get("protocol", protocol)) == protocol:
            of_run = {**values, "protocol": protocol or None, **row, "tools": selection}
            run = _study_run(of_run, benchmark, model, folder, file)
            runs.append(run._replace(benchmark=shown_names[run.benchmark]))
    if budget is not None and not (isinstance(budget, int | float) and budget > 0):
        raise UsageError(
            f"{file}: budget should be greater than 0 (got {budget!r})", hint="e.g. budget = 5"
        )
    if results is not None and not (isinstance(results, str) and results):
        raise UsageError(
            f"{file}: results should be a folder (got {results!r})", hint='e.g. results = "results"'
        )
    folders = [run.folder for run in runs]
    if twice := next((run for run in runs if folders.count(run.folder) > 1), None):
        raise UsageError(
            f"{file}: two runs are called {twice.title}",
            hint="give their models or benchmarks a label each, or list each combination once",
        )
    return Study(folder, budget, tuple(_with_hosts(runs)), Path(results) if results else None)


def _with_hosts(runs: Sequence[StudyRun]) -> list[StudyRun]:
    """Return runs whose labels tell agents apart: where addresses end alike, with their hosts."""
    addresses: dict[str, set[str]] = {}
    for run in runs:
        addresses.setdefault(run.label, set()).add(run.config.model.name)
    named: list[StudyRun] = []
    for run in runs:
        model = run.config.model.name
        is_shared = len(addresses[run.label]) > 1 and is_agent_server(model)
        host = urlsplit(model).netloc.rpartition("@")[2]
        named.append(run._replace(label=f"{run.label} ({host})") if is_shared else run)
    return named


def _benchmark_label(benchmark: Mapping[str, Any]) -> str:
    """Return what the folders of the runs on a benchmark begin with: its label, or the name of its folder."""
    return str(benchmark.get("label", Path(str(benchmark["name"])).name))


def _shown_names(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the name in tables by the label of a benchmark: a folder without a label has the name in its header.

    Folders whose headers have the same name keep the names of the folders: a table holds one benchmark.
    """
    names: dict[str, str] = {}
    for benchmark in benchmarks:
        label, name = _benchmark_label(benchmark), str(benchmark["name"])
        names[label] = label
        is_installed = benchmark_id(name) in BENCHMARKS
        if "label" not in benchmark and not is_installed:
            with suppress(AgrotoolsError, OSError):  # loading the benchmark states the error
                names[label] = read_header(Path(name).expanduser()).name
    n_benchmarks = Counter(names.values())
    return {label: name if n_benchmarks[name] == 1 else label for label, name in names.items()}


def _study_run(
    values: Mapping[str, Any],
    benchmark: Mapping[str, Any],
    model: Mapping[str, Any],
    folder: Path,
    file: Path,
) -> StudyRun:
    name = str(model["name"])
    benchmark_label = _benchmark_label(benchmark)
    given = str(model.get("label", ""))
    label = given or name_in_tables(name)
    options = {key: value for key, value in values.items() if key not in ("name", "label")}
    pays = names_endpoint(name) or is_agent(name) or "vlm_model" in options
    if not pays or options["budget"] is None:
        del options["budget"]
    options |= {
        "benchmark": str(benchmark["name"]),
        "out": folder / _folder_name(benchmark_label, given or name, values),
        "name": given,
    }
    try:
        (config,) = read_config(None, options, [name])
        _ = config.run.modes
    except UsageError as error:
        raise UsageError(f"{file}, model {label}: {error.message}", hint=error.hint) from error
    return StudyRun(label, benchmark_label, config, _harness(name, config.agent.protocol or ""))


def _harness(model: str, protocol: str) -> str:
    """Return the agent that a model name stands for, or the protocol of a model; a baseline has none."""
    return model if is_agent(model) else "none" if is_baseline(model) else protocol


def _folder_name(benchmark: str, label: str, values: Mapping[str, Any]) -> str:
    """Return the name of the folder of a run, with a hyphen for all but letters, digits and four signs."""
    tools = "" if values["tools"] == "all" else f"tools-{values['tools']}"
    words = (benchmark, label, values["protocol"] or "", tools)
    text = "-".join(filter(None, words))
    name = "".join(letter if letter.isalnum() or letter in "._-+" else "-" for letter in text)
    return name[:_LONGEST_NAME].strip("-.")


_EXAMPLES = {
    "model": '["baseline:guess", "openai:gpt-4.1"]',
    "benchmark": '["embedded", "./my-farm"]',
}


def _rows(value: object, key: str, file: Path) -> list[dict[str, Any]]:
    """Return the entries of a list of names and tables as tables."""
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    rows = [
        cast("dict[str, Any]", entry if isinstance(entry, dict) else {"name": entry})
        for entry in entries
    ]
    for row in rows:
        check_keys(row, _OF_ROW, f"[[{key}]] of {file}")
        if not isinstance(row.get("name"), str) or not row["name"]:
            raise UsageError(
                f"{file}: an entry of {key} has no name", hint=f'e.g. [[{key}]] with name = "NAME"'
            )
    if not rows:
        raise UsageError(f"{file} names no {key}", hint=f"e.g. {key} = {_EXAMPLES[key]}")
    return rows


def _texts(value: object, key: str, file: Path) -> list[str]:
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"{file}: {key} should be a text or a list of texts (got {value!r})",
            hint=f'e.g. {key} = "all"',
        )
    return cast("list[str]", texts)


def _planned_runs(study: Study, progress: TextIO) -> list[tuple[StudyRun, Benchmark]]:
    """Return each run with its benchmark, which is loaded once.

    A run whose published protocol lacks modes is followed by one in our protocol, which has only these modes.
    """
    loaded: dict[str, Benchmark] = {}
    planned: list[tuple[StudyRun, Benchmark]] = []
    for run in study.runs:
        of_benchmark = run.config.benchmark
        options = sorted(of_benchmark.options.items())
        key = repr((of_benchmark.name, of_benchmark.data_root, options, of_benchmark.quick))
        if key not in loaded:
            loaded[key] = load_for_run(run.config, progress)
        benchmark = loaded[key]
        planned.append((run, benchmark))
        with suppress(AgrotoolsError):  # the run itself fails with it
            settings = resolve_settings(run.config, benchmark)
            has = run_protocol(settings.protocol).modes
            lacking = [mode for mode in settings.modes if mode not in has]
            if lacking and settings.note:
                out = run.folder.with_name(f"{run.folder.name}-{DEFAULT_PROTOCOL}")
                config = run.config.with_options(
                    mode=",".join(lacking), protocol=DEFAULT_PROTOCOL, out=out
                )
                planned.append((run._replace(config=config), benchmark))
    return planned


def study_of_runs(folders: Sequence[Path]) -> tuple[Study, list[RunState]]:
    """Return a study of runs that were made one by one; RunStoreError if a folder is not a run.

    Runs are named by their models, or by their folders if two differ in none of the columns. UsageError: a run is given
    twice.
    """
    check_distinct(folders)
    states: list[RunState] = []
    rows = Counter[tuple[str, ...]]()
    for folder in folders:
        run, n = read_manifest(folder), len(record_index(folder))
        values = {
            "model": run.model,
            "mode": ",".join(run.modes),
            "tools": run.tools,
            "out": folder,
        }
        config = EvalConfig.of(**{**values, "agent_model": run.settings.get("agent_model")})
        model = config.agent.model or name_in_tables(run.model)
        label = run.name or Path(model).name.removesuffix(".gguf")
        study_run = StudyRun(label, run.benchmark, config, _harness(run.model, run.protocol))
        states.append(RunState(study_run, sum(run.planned.values()), n))
        rows.update((*_row(study_run), mode) for mode in run.modes)
    for at, (folder, state) in enumerate(zip(folders, states, strict=True)):
        if any(rows[*_row(state.run), mode] > 1 for mode in state.modes):
            states[at] = state._replace(run=state.run._replace(label=str(folder)))
    return Study(Path(), None, tuple(state.run for state in states)), states


def _row(run: StudyRun) -> tuple[str, str, str, str]:
    return run.benchmark, run.config.tools.offered, run.label, run.harness


def inspect_study(study: Study, progress: TextIO) -> list[RunState]:
    """Return how much of each run is done, with the estimated cost of the rest. No model is called.

    A run that lacks its key has the estimate and the problem.

    Raises:
        BenchmarkError, UsageError: a benchmark cannot be loaded.
    """
    states: list[RunState] = []
    for run, benchmark in _planned_runs(study, progress):
        state = inspect_run(run, benchmark, estimates=True)
        if state.problem:
            with without_keys():
                priced = inspect_run(run, benchmark, estimates=True)
            state = priced._replace(problem=state.problem)
        states.append(state)
    return states


def inspect_run(run: StudyRun, benchmark: Benchmark, *, estimates: bool = False) -> RunState:
    """Return how much of a run is done, with the estimated cost of the rest if ``estimates``."""
    try:
        plan = plan_run(run.config, benchmark)
        resolved_manifest(run.folder, plan.manifest)
        index = record_index(run.folder) if (run.folder / RECORDS_FILE).is_file() else None
        items, failed = plan.items, index.failed if index else frozenset()
        todo = remaining(items, index, failed) if index else items
        expected = asyncio.run(_estimated(plan, todo, wanted=estimates))
    except AgrotoolsError as error:
        return RunState(run, problem=error.message)
    n_invalid = sum(map(failed.__contains__, items.keys()))
    lacking: list[Mode] = [mode for mode in plan.settings.modes if mode not in plan.source.modes]
    return RunState(
        run, len(items), len(items) - len(todo), n_invalid, expected, lacking=tuple(lacking)
    )


async def _estimated(plan: RunPlan, todo: WorkItems, *, wanted: bool) -> CostEstimate | None:
    source = plan.source
    try:
        if not (wanted and len(todo) and source.base_url):
            return None
        return await estimate(todo, plan.benchmark, source, source.price)
    finally:
        if source.model is not None:
            await source.model.close()


def spent_usd(states: Sequence[RunState]) -> dict[Path, float]:
    """Return the US dollars spent so far by run folder."""
    return {state.run.folder: read_spend(state.run.folder / SPEND_FILE).usd for state in states}


def run_study(
    study: Study, progress: TextIO, *, stop: threading.Event | None = None
) -> list[RunState]:
    """Run what is missing of a study. A run that fails is reported, and the others continue.

    A model whose endpoint does not answer or refuses all requests is not tried on further benchmarks.

    Raises:
        BenchmarkError, UsageError: a benchmark cannot be loaded.
        KeyboardInterrupt: the study was interrupted; finished samples are kept.
    """
    planned = _planned_runs(study, progress)
    states = [inspect_run(run, benchmark) for run, benchmark in planned]
    for state in states:
        if state.problem:
            print(f"study: {state.run.title}: {state.problem}", file=progress, flush=True)
    unreachable: set[tuple[str, str | None]] = set()
    for at, state in enumerate(states):
        if state.complete:
            continue
        config = state.run.config
        endpoint = (config.model.name, config.model.base_url)
        spent = spent_usd(states)
        total = sum(spent.values())
        problem = state.problem
        if study.budget is not None and config.run.budget is not None:
            # What the run itself has spent already counts in its own budget.
            of_run = study.budget - total + spent[state.run.folder]
            config = config.with_options(budget=of_run)
            if of_run <= spent[state.run.folder]:
                problem = problem or "not run: the budget is spent"
        if endpoint in unreachable:
            problem = problem or "not run: its endpoint failed before in this study"
        if not problem:
            position = _position(states, at, study, total)
            print(f"study: {position}", file=progress, flush=True)
            run, benchmark = planned[at]
            try:
                ended = evaluate(config, progress, benchmark=benchmark, stop=stop)
                problem = ended.stopped.message if ended.stopped else ""
            except AgrotoolsError as error:
                problem = error.message
                if isinstance(error, InfrastructureError | EndpointRefusal | EndpointUnreachable):
                    unreachable.add(endpoint)
            states[at] = inspect_run(run, benchmark)
        if problem:
            states[at] = states[at]._replace(problem=problem)
        if problem != state.problem:
            print(f"study: {state.run.title}: {problem}", file=progress, flush=True)
    return states


def _position(states: Sequence[RunState], at: int, study: Study, spent: float) -> str:
    """Return which run of a study is next, the records of all runs, and what was spent of the budget."""
    finished = sum(state.finished for state in states)
    planned = sum(state.planned for state in states)
    budget = f", {spent:.2f} of {study.budget:g} USD" if study.budget is not None else ""
    records = f"{finished:,} of {count_text(planned, 'record')}"
    return f"run {at + 1} of {len(states)}, {records}{budget}: {states[at].run.title}"


def study_result(
    study: Study, states: Sequence[RunState], *, allow_invalid: bool = False
) -> StudyResult:
    """Score the runs that have records, and compare them.

    Compared are models with the same tools, and the tools of the same model, on the same benchmark; privileged
    policies only with each other. All these differences are adjusted together. Modes with missing records or too many
    invalid ones are not compared.

    Raises:
        RunStoreError: a run cannot be read or its scores cannot be written.
    """
    runs = [state.run for state in states if state.finished + state.invalid]
    rescored = [rescore(run.folder, allow_invalid=allow_invalid) for run in runs]
    scored = [(run, each.summary) for run, each in zip(runs, rescored, strict=True)]
    pairs: list[tuple[int, int]] = []
    for (first, one), (second, other) in combinations(enumerate(scored), 2):
        if _are_compared(one, other):
            pairs.append((first, second))
    tallies = [each.tally for each in rescored if each.tally is not None]
    complete = [_without_incomplete(summary) for _, summary in scored]
    return StudyResult(
        study=study,
        states=states,
        scored=scored,
        differences=differences_between(complete, tallies, pairs),
        effects=harness_effects(_factors(scored), complete, tallies),
        correlations=_correlations(_factors(scored), complete, tallies),
    )


def _correlations(
    runs: Sequence[RunFactors], summaries: Sequence[Summary], tallies: Sequence[RunAggregator]
) -> list[StudyCorrelations]:
    """Return the correlations for each benchmark and list of tools, of the runs whose modes are complete."""
    several_harnesses = len({run.harness for run in runs} - {"none"}) > 1
    grouped: dict[tuple[str, str], dict[str, CorrelatedRun]] = {}
    for run, summary, tally in zip(runs, summaries, tallies, strict=True):
        if all(part.headline for part in summary.modes.values()):
            name = f"{run.model}, {run.harness}" if several_harnesses else run.model
            correlated = CorrelatedRun(model_of_run(run.model), tally)
            grouped.setdefault((run.benchmark, run.tools), {})[name] = correlated
    return [
        StudyCorrelations(benchmark, tools, [*group], correlations([*group.values()]))
        for (benchmark, tools), group in grouped.items()
    ]


def _are_compared(first: tuple[StudyRun, Summary], second: tuple[StudyRun, Summary]) -> bool:
    """Return True if two runs differ in the model alone, or in the tools alone."""
    (one, mine), (other, theirs) = first, second
    if one.benchmark != other.benchmark or mine.privileged != theirs.privileged:
        return False
    same_tools = one.config.tools.offered == other.config.tools.offered
    same_model = (one.label, one.harness) == (other.label, other.harness)
    return same_tools or same_model


def _without_incomplete(summary: Summary) -> Summary:
    """Return a summary in which modes with missing records have no headline, so that they are not compared."""
    modes: dict[Mode, ModeSummary] = {}
    for mode, part in summary.modes.items():
        is_headline = part.headline and mode not in summary.missing
        modes[mode] = part.model_copy(update={"headline": is_headline})
    return summary.model_copy(update={"modes": modes})


def _factors(scored: Sequence[tuple[StudyRun, Summary]]) -> list[RunFactors]:
    """Return the factors of each run; the same model with other settings is named by the labels of its runs."""
    factors: list[RunFactors] = []
    labels: dict[RunFactors, set[str]] = {}
    for run, summary in scored:
        of_run = RunFactors(
            benchmark=run.benchmark,
            tools=run.config.tools.offered,
            model=run.config.agent.model or run.config.model.name,
            harness=run.harness or summary.protocol,
        )
        factors.append(of_run)
        labels.setdefault(of_run, set()).add(run.label)
    return [
        of_run._replace(model=run.label) if len(labels[of_run]) > 1 else of_run
        for of_run, (run, _) in zip(factors, scored, strict=True)
    ]


# --- harnesses --------------------------------------------------------------------------------------------------------


_Grid = dict[tuple[str, str], RunAggregator]
"""Scores of runs by model and harness."""


def harness_effects(
    runs: Sequence[RunFactors],
    summaries: Sequence[Summary],
    tallies: Sequence[RunAggregator],
) -> list[HarnessEffects]:
    """Return the effects for each benchmark, list of tools and mode but step-by-step.

    Models that lack one of the harnesses are left out, and before them the harnesses of a single model.
    """
    grids: dict[tuple[str, str, Mode, str], _Grid] = {}
    for run, summary, tally in zip(runs, summaries, tallies, strict=True):
        if run.harness == "none":
            continue
        for mode, metric in headline_metrics(summary, tally):
            if mode != "step-by-step":
                grid = grids.setdefault((run.benchmark, run.tools, mode, metric), {})
                grid[run.model, run.harness] = tally
    effects: list[HarnessEffects] = []
    for (benchmark, tools, mode, metric), grid in grids.items():
        models, harnesses = _complete_grid(grid)
        cells = [*product(models, harnesses)]
        samples = common_samples([grid[cell] for cell in cells], mode, metric)
        if len(harnesses) < 2 or not samples:
            continue
        columns = [values_on(samples, grid[cell], mode, metric) for cell in cells]
        scores = np.array([column.values for column in columns])
        clusters, weights = columns[0].clusters, columns[0].weights
        means = {
            cell: estimate_mean(values, clusters, weights)
            for cell, values in zip(cells, scores, strict=True)
        }
        # Axes: models, harnesses, samples.
        of_harnesses = scores.reshape(len(models), len(harnesses), -1).mean(axis=0)
        first, *others = of_harnesses
        differences = [estimate_difference(values, first, clusters, weights) for values in others]
        effects.append(
            HarnessEffects(
                benchmark=benchmark,
                tools=tools,
                mode=mode,
                metric=metric,
                models=models,
                harnesses=harnesses,
                means=means,
                differences=adjusted(differences),
            )
        )
    return effects


def _complete_grid(grid: _Grid) -> tuple[list[str], list[str]]:
    """Return the harnesses of several models (all of them if there are none), and the models that have all of these."""
    models = dict.fromkeys(model for model, _ in grid)
    harnesses = dict.fromkeys(harness for _, harness in grid)
    common: list[str] = []
    for harness in harnesses:
        n_models = sum((model, harness) in grid for model in models)
        if n_models > 1:
            common.append(harness)
    common = common or [*harnesses]
    complete = [model for model in models if all((model, harness) in grid for harness in common)]
    return complete, common
