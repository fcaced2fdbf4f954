"""Scoring of a run from its folder alone, without models, tools or images.

Records are read and scored one at a time, so that long runs need little memory; only the published metrics of a
benchmark need all records of a mode at once. Stored scores of another scoring version are kept until new ones are
requested.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import orjson

from agrotools.core import Mode, Record, RunStoreError, Score, UsageError
from agrotools.core.files import read_lines, remedy, temporary_sibling
from agrotools.core.installed import plugin_of
from agrotools.core.texts import benchmark_title
from agrotools.formats.benchmark import FRESH
from agrotools.formats.manifest import Manifest
from agrotools.runner.policies import is_baseline
from agrotools.runner.records import RECORDS_FILE, RecordIndex, iter_records, record_index
from agrotools.runner.repeated_calls import read_repeated_calls
from agrotools.runner.store import read_manifest
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import check_same_samples, side_by_side, unpaired_comparison
from agrotools.scoring.comparisons import comparisons as comparisons_of
from agrotools.scoring.contracts import NO_COMPARISONS, PublishedRun, TextComparisons, scoring_of
from agrotools.scoring.correlations import CorrelatedRun, correlations, model_of_run
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.event_counts import RESUME, TRUTH_METRIC
from agrotools.scoring.judging.judgements import JudgedRows, Judgement
from agrotools.scoring.judging.questions import Rubrics, read_rubrics
from agrotools.scoring.lost_points import LostPoints
from agrotools.scoring.metrics import PREDICTIONS, scores_sample
from agrotools.scoring.slots import pair_of, pair_rows
from agrotools.scoring.summary import Correlation, ModeSummary, RunComparison, Summary

JUDGEMENTS_FILE = "judgements.jsonl"
JUDGES_SPEND_FILE = "judges-spend.jsonl"
RUBRICS_PREFIX = "judge-rubrics-"
"""Prefix of the file name of the user's rubrics in a run folder."""
JUDGEMENT_HINT = "remove that line; the judge is then asked about it again"
SCORES_FILE = "scores.json"
EARLY_FILE = "until_decided.txt"
"""The command that continues a pair of runs, in both folders after ``--until-decided``."""


def read_judgements(run: Path) -> list[Judgement]:
    """Return the replies of judges about ``run``, if any; RunStoreError if a line cannot be read."""
    return read_lines(run / JUDGEMENTS_FILE, Judgement, JUDGEMENT_HINT)


def judged_rows(run: Path) -> JudgedRows:
    """Return the score rows of the judges of ``run``, by the rubrics in its folder or the built-in ones."""
    return JudgedRows(read_judgements(run), _rubrics_of(run))


def _rubrics_of(run: Path) -> Rubrics | None:
    """Return the user's rubrics of the last judging of the run; None for the built-in ones."""
    for path in sorted(run.glob(f"{RUBRICS_PREFIX}*")):
        try:
            return read_rubrics(
                path, read_manifest(run).benchmark, path.name.removeprefix(RUBRICS_PREFIX)
            )
        except UsageError as error:
            raise RunStoreError(
                error.message,
                hint="remove it, or judge again with other judge_rubrics in the file of --config",
            ) from error
    return None


def stopped_early(run: Path) -> str:
    """Return that ``--until-decided`` stopped a run before all samples, and what that means; empty if it did not."""
    if not (run / EARLY_FILE).is_file() or len(record_index(run)) >= sum(
        read_manifest(run).planned.values()
    ):
        return ""
    return (
        "--until-decided stopped this run before all samples, so that its intervals and p-values are not valid and its "
        f"difference is too large on average. The valid interval: {(run / EARLY_FILE).read_text()}"
    )


def warnings_of_looks(runs: Iterable[Path]) -> list[str]:
    """Return what it means for a comparison of runs that ``--until-decided`` stopped or tested them, each text once."""
    paths = [*runs]
    told = [stopped_early(run) for run in paths]
    if stopped := [text for text in dict.fromkeys(told) if text]:
        return stopped
    files = [file for run in paths if (file := run / EARLY_FILE).is_file()]
    pairs = Counter(file.read_text() for file in files)
    return [_SECOND_TEST.format(command=command) for command, n in pairs.items() if n > 1]


_SECOND_TEST = (
    "--until-decided tested these runs while they were made, so that this is a second test of the same samples: of two "
    "equal runs, one of the two tests finds one better in up to 10 % of cases. The verdict to report: {command}"
)


OnScored = Callable[[Path, Record, list[Score]], None]
"""Callback for a scored record: folder of its run, record, score rows."""


class WorstSample(NamedTuple):
    """Sample with the lowest score of a mode. Among samples without points, one with an answer is easier to read."""

    score: float
    is_unanswerable: bool
    sample: str
    mode: Mode


class Rescored(NamedTuple):
    """Result of scoring a run.

    ``worst``: of each mode the sample with the lowest score, as far as any was scored;
    ``tally``: data behind the summary (None: the summary was stored).
    """

    summary: Summary
    worst: Sequence[WorstSample] = ()
    tally: RunAggregator | None = None

    def telling_sample(self, modes: Collection[Mode] = ()) -> WorstSample | None:
        """Return a sample with the lowest score for inspection, or None if nothing was scored.

        Args:
            modes: modes that it may be of; empty for all.
        """
        return min((each for each in self.worst if not modes or each.mode in modes), default=None)


def rescore(
    run: Path,
    *,
    allow_invalid: bool = False,
    comparisons: TextComparisons = NO_COMPARISONS,
    on_scored: OnScored | None = None,
) -> Rescored:
    """Score every record of ``run``, and write summary and score rows to ``scores.json``.

    Args:
        comparisons: text comparisons for metrics that are computed only on request.
        on_scored: callback for every record with its score rows, by mode, sample and epoch.

    Raises:
        UsageError: a requested comparison is not installed, or not defined for this benchmark;
        RunStoreError: not a run folder, one without records, or one that cannot be written.
    """
    manifest = read_manifest(run)
    tally = tally_of(run, manifest)
    manifest = manifest.model_copy(update={"sample_ids": ()})
    check_comparisons(manifest, comparisons)
    try:
        # The summary precedes the rows in the file, but is known after them.
        with temporary_sibling(run / SCORES_FILE) as temporary, TemporaryFile(dir=run) as rows:
            judges = judged_rows(run)
            index = record_index(run).undamaged()
            worst = _score(index, rows, comparisons, judges, on_scored, tally)
            embedder = comparisons.embedder
            summary = summary_of(
                run, manifest, tally, judges, allow_invalid=allow_invalid, embedder=embedder
            )
            data = orjson.dumps(
                summary.model_dump(mode="json"), option=orjson.OPT_INDENT_2
            ).replace(b"\n", b"\n  ")
            has_rows = rows.tell() > 0
            rows.seek(0)
            with temporary.open("wb") as file:
                file.write(b'{\n  "summary": ' + data + b',\n  "scores": [')
                copyfileobj(rows, file)
                file.write(b"\n  ]" if has_rows else b"]")
                file.write(b"\n}")
    except OSError as error:
        raise RunStoreError(
            f"cannot write the scores into {run}: {error.strerror or error}",
            hint=f"{remedy(error)}, or score a copy of the folder in a place where you may write",
        ) from error
    return Rescored(summary, worst, tally)


def score_runs(
    runs: Sequence[Path],
    *,
    allow_invalid: bool = False,
    comparisons: TextComparisons = NO_COMPARISONS,
    on_scored: OnScored | None = None,
) -> list[Rescored]:
    """Score runs side by side, with the arguments of :func:`rescore`, and write a ``scores.json`` for each."""
    rescored: list[Rescored] = []
    for run in runs:
        rescored.append(
            rescore(run, allow_invalid=allow_invalid, comparisons=comparisons, on_scored=on_scored)
        )
    aggregators = [each.tally for each in rescored if each.tally is not None]
    summaries = side_by_side(
        [each.summary for each in rescored], aggregators if len(aggregators) > 1 else []
    )
    return [
        each._replace(summary=summary) for each, summary in zip(rescored, summaries, strict=True)
    ]


def scored_run(run: Path) -> RunAggregator:
    """Score every record of ``run`` by the current scoring version, with causes of lost points; nothing is written.

    Raises:
        RunStoreError: not a run folder, or one without records.
    """
    tally = tally_of(run, read_manifest(run))
    _score(record_index(run).undamaged(), None, NO_COMPARISONS, judged_rows(run), None, tally)
    return tally


def tally_of(run: Path, manifest: Manifest) -> RunAggregator:
    """Return an empty tally of a run, which knows the samples that the run was to answer."""
    repeated = read_repeated_calls(run)
    tally = RunAggregator(protocol=manifest.protocol, lost=LostPoints(repeated.of))
    tally.planned = frozenset(manifest.sample_ids)
    tally.planned_epochs = manifest.epochs
    return tally


def check_distinct(runs: Sequence[Path]) -> None:
    """Raise a UsageError if two paths are of one run folder."""
    known: dict[Path, Path] = {}
    for run in runs:
        if (place := run.resolve()) in known:
            raise UsageError(
                f"{run} and {known[place]} are one run or table", hint="give each once"
            )
        known[place] = run


def compare_runs(runs: Sequence[Path]) -> list[RunComparison]:
    """Compare every pair of runs, second minus first, paired by sample; nothing is written.

    Runs are named by their models, or by their folders if two have the same model.

    Raises:
        UsageError: fewer than two runs, runs of different benchmarks, or runs without a scored sample in common;
        RunStoreError: a run cannot be read.
    """
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs", hint="agrotools compare RUN OTHER_RUN")
    manifests = [read_manifest(run) for run in runs]
    models = [manifest.labelled_model for manifest in manifests]
    names = models if len(set(models)) == len(models) else [str(run) for run in runs]
    first = manifests[0]
    title = benchmark_title(first.benchmark, first.benchmark_version)
    if len(runs) == 2 and _drawn_anew(*manifests):
        second = manifests[1]
        title = f"{benchmark_title(second.benchmark, second.benchmark_version)} minus {title}"
        compared = _compare_unpaired(runs, names)
    else:
        compared = _compare_pairs(runs, manifests, names)
    if not any(each.headline for each in compared):
        modes = "; ".join(
            f"{name}: {', '.join(each.modes)}" for name, each in zip(names, manifests, strict=True)
        )
        raise UsageError(
            f"these runs have no scored sample in common (modes: {modes})",
            hint="compare runs in the same mode on the same samples",
        )
    privileged = [name for name, each in zip(names, manifests, strict=True) if each.privileged]
    contents = [content_of(run) for run in runs]
    same_records = [one == another for one, another in combinations(contents, 2)]
    described: list[RunComparison] = []
    pairs = combinations(range(len(runs)), 2)
    for pair, each, is_same in zip(pairs, compared, same_records, strict=True):
        update = {
            "benchmark": title,
            "synthetic": first.synthetic,
            "quick": all(manifest.quick for manifest in manifests),
            "n_questions": max(manifests[at].n_questions for at in pair),
            "task_types": _common_task_types(manifests[at] for at in pair),
            "privileged": tuple(name for name in (each.first, each.second) if name in privileged),
            "same_records": is_same,
        }
        described.append(each.model_copy(update=update))
    return described


def _common_task_types(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the task types that all of these runs asked; empty if none of them is limited to some."""
    limited = [each.task_types.names for each in manifests if each.task_types]
    if not limited:
        return ()
    return tuple(name for name in limited[0] if all(name in names for names in limited))


def _compare_unpaired(runs: Sequence[Path], names: Sequence[str]) -> list[RunComparison]:
    """Compare two runs whose samples differ."""
    first, second = (scored_run(run) for run in runs)
    return [unpaired_comparison(first, second, (names[0], names[1]))]


def _compare_pairs(
    runs: Sequence[Path], manifests: Sequence[Manifest], names: Sequence[str]
) -> list[RunComparison]:
    """Compare every pair of runs by sample; UsageError if they are not of one content of a benchmark."""
    if different := benchmark_differences(manifests):
        raise UsageError(
            f"these runs cannot be compared: {'; '.join(different)}",
            hint="run both on one content of the benchmark",
        )
    tallies = [scored_run(run) for run in runs]
    for other in tallies[1:]:
        check_same_samples(tallies[0], other)
    models = [model_of_run(manifest.model) for manifest in manifests]
    correlated = correlations([*map(CorrelatedRun, models, tallies)])
    pairs = combinations(range(len(runs)), 2)
    return [
        each.model_copy(update={"correlations": _of_pair(correlated, pair)})
        for each, pair in zip(comparisons_of(tallies, names), pairs, strict=True)
    ]


def _of_pair(correlated: Sequence[Correlation], pair: tuple[int, int]) -> tuple[Correlation, ...]:
    """Return the correlations over models, and those in the two runs of a pair, which get the numbers 0 and 1."""
    found = [each for each in correlated if each.run is None]
    for place, number in enumerate(pair):
        of_run = [each for each in correlated if each.run == number]
        found += [each.model_copy(update={"run": place}) for each in of_run]
    return tuple(found)


_TIMES = re.compile(rb'"[a-z_]*seconds":[\d.e-]+')


def content_of(run: Path) -> frozenset[int]:
    """Return hashes of the records of a run without times: equal for two runs with the same records."""
    with (run / RECORDS_FILE).open("rb") as lines:
        return frozenset(hash(_TIMES.sub(b"", line)) for line in lines)


def _drawn_anew(first: Manifest, second: Manifest) -> bool:
    """Return True if one run is of a benchmark from new scenes (``--fresh-seed``) and the other of the published one,
    or of another seed."""
    versions = {first.benchmark_version, second.benchmark_version}
    published = {version.partition(FRESH)[0] for version in versions}
    return first.benchmark == second.benchmark and len(versions) == 2 and len(published) == 1


def benchmark_differences(manifests: Sequence[Manifest]) -> list[str]:
    """Return the first difference of the benchmarks of runs: name, version, options or content; empty if none."""
    for field, words in _BENCHMARK.items():
        values: list[str] = []
        for manifest in manifests:
            # Runs on degraded pictures are compared by the content that was degraded.
            is_degraded = field == "benchmark_hash" and manifest.clean_hash
            value = str(getattr(manifest, "clean_hash" if is_degraded else field))
            if value not in values:
                values.append(value)
        if len(values) > 1:
            return [f"different {words}: {' / '.join(value[:40] for value in values)}"]
    return []


_BENCHMARK = {
    "benchmark": "benchmarks",
    "benchmark_version": "benchmark versions",
    "benchmark_options": "benchmark options",
    "benchmark_hash": "content of the benchmark",
}
"""Fields of the manifest that name the benchmark, with their names in messages."""


def check_comparisons(manifest: Manifest, comparisons: TextComparisons) -> None:
    """Raise a UsageError if a comparison is not installed, or the run's benchmark has no metric for it."""
    plugin = plugin_of(manifest.benchmark)
    if (
        plugin is not None
        and (check := scoring_of(plugin.targets.scoring).check_comparisons) is not None
    ):
        check(comparisons)


def twin_rows(record: Record, rows: Sequence[Score], index: RecordIndex) -> list[Score]:
    """Return the rows that an unanswerable record gets from that of its twin, if ``index`` holds a valid one."""
    sample = record.sample
    if sample.answerable or sample.twin is None or not rows:
        return []
    twin = index.get((record.mode, sample.twin, record.epoch))
    if twin is None or not twin.sample.answerable or pair_of(twin) != pair_of(record):
        return []
    return pair_rows(record, rows, twin, others) if (others := score_record(twin)) else []


def rows_of(
    record: Record, index: RecordIndex, comparisons: TextComparisons = NO_COMPARISONS
) -> list[Score]:
    """Return all score rows of a record of the run whose records ``index`` holds, without those of judges."""
    rows = score_record(record, comparisons)
    return [*rows, *twin_rows(record, rows, index)]


_score_json = Score.__pydantic_serializer__.to_json


def _score(
    index: RecordIndex,
    rows: IO[bytes] | None,
    comparisons: TextComparisons,
    judges: JudgedRows,
    on_scored: OnScored | None,
    tally: RunAggregator,
) -> list[WorstSample]:
    """Add the records of ``index`` to ``tally``, and their score rows as lines of a JSON list to ``rows``, if given.

    Returns:
        The sample with the lowest score of each mode; none if neither rows nor a callback are given.
    """
    worst: dict[Mode, WorstSample] = {}
    before = b"\n    "
    for record in index:
        scores = judges.joined(record, score_record(record, comparisons))
        tally.add(record, scores)
        if rows is None and on_scored is None:
            continue  # the tally knows the twins, and nothing else is wanted
        scores += twin_rows(record, scores, index)
        if on_scored is not None:
            on_scored(index.path.parent, record, scores)
        if rows is not None and scores:
            # The mode is inserted into the JSON text, because building a dictionary first takes twice as long.
            opening = b'{"mode":"' + record.mode.encode() + b'",'
            rows.write(
                before + b",\n    ".join([opening + _score_json(score)[1:] for score in scores])
            )
            before = b",\n    "
        for score in scores:
            if not (scores_sample(score.metric) or score.metric == TRUTH_METRIC):
                continue
            candidate = WorstSample(
                score=max(score.value, 0.0),
                is_unanswerable=not record.sample.answerable,
                sample=score.sample_id,
                mode=record.mode,
            )
            worst[record.mode] = min(worst.get(record.mode, candidate), candidate)
    tally.notes = index.notes
    if not tally.modes:
        raise index.without_samples
    return [*worst.values()]


def _add_published(
    summary: Summary, run: Path, manifest: Manifest, embedder: Embedder | None, judges: JudgedRows
) -> Summary:
    plugin = plugin_of(manifest.benchmark)
    if plugin is None or (publish := scoring_of(plugin.targets.scoring).published) is None:
        return summary
    whole = read_manifest(run)
    modes: dict[Mode, ModeSummary] = {}
    for mode, part in summary.modes.items():
        records = [record for record in iter_records(run) if record.mode == mode]
        published_run = PublishedRun(whole, mode, records, judges, embedder)
        modes[mode] = part.model_copy(update={"published": publish(published_run)})
    return summary.model_copy(update={"modes": modes})


def summary_of(
    run: Path,
    manifest: Manifest,
    tally: RunAggregator,
    judges: JudgedRows,
    *,
    allow_invalid: bool = False,
    embedder: Embedder | None = None,
    published: bool = True,
) -> Summary:
    """Return the summary of a run's tally, with fields of its manifest, judge agreement and published metrics, if any.

    Without ``published``, the metrics of the benchmark's own paper, which need all records, are left out.

    Raises:
        RunStoreError: the records of ``run`` cannot be read.
    """
    summary = tally.summary(
        allow_invalid=allow_invalid,
        planned=manifest.planned,
        is_baseline=is_baseline(manifest.model) or manifest.protocol == PREDICTIONS,
    )
    options = dict(manifest.benchmark_options)
    if manifest.degrade:
        options["degrade"] = manifest.degrade
    if manifest.faults:
        options["faults"] = manifest.faults
    if manifest.tool_images:
        options["tool_images"] = True
    warnings = summary.warnings
    if early := stopped_early(run):
        warnings = (early, *(line for line in warnings if not line.endswith(RESUME)))
    update: dict[str, Any] = {
        "benchmark": manifest.benchmark,
        "benchmark_version": manifest.benchmark_version,
        "benchmark_options": options,
        "synthetic": manifest.synthetic,
        "quick": manifest.quick,
        "task_types": manifest.task_types,
        "shard": str(manifest.shard) if manifest.shard else "",
        "model": manifest.model,
        "name": manifest.name,
        "protocol": manifest.protocol,
        "privileged": manifest.privileged,
        "unsealed": manifest.sealed is False,
        "tools": manifest.tools,
        "tool_checks": manifest.tool_checks,
        "judging": judges.panel(),
        "warnings": (*manifest.benchmark_warnings, *tally.notes, *warnings),
    }
    summary = summary.model_copy(update=update)
    return _add_published(summary, run, manifest, embedder, judges) if published else summary
