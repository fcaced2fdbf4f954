"""Runs of a page: their data, facts and differences, floor and ceiling, and what happened in a record."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson

from agrotools.core import AgrotoolsError, Record, Score
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import benchmark_title, count_text, number_text
from agrotools.loading import BENCHMARKS, Loading, load_benchmark
from agrotools.loading.benchmarks import load_as
from agrotools.models.metered import read_spend
from agrotools.report.html.pictures import FILE_SHARES, benchmark_roots
from agrotools.report.layout import fields_text, harmless, percent, shortened
from agrotools.report.trace import why_wrong
from agrotools.runner.ladder import headline_mode, references_of, role_of
from agrotools.runner.manifest import Manifest
from agrotools.runner.policies import is_agent, is_baseline
from agrotools.runner.records import RECORDS_FILE, Key, RecordIndex, record_index
from agrotools.runner.rescore import (
    check_comparisons,
    judged_rows,
    summary_of,
    tally_of,
    twin_rows,
)
from agrotools.runner.store import read_manifest
from agrotools.runner.stored_scores import StoredScores
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import comparisons as comparisons_of
from agrotools.scoring.comparisons import differences_between, side_by_side
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons
from agrotools.scoring.judging.judgements import JudgedRows
from agrotools.scoring.lost_points import LostPoints, Shares
from agrotools.scoring.metrics import is_invalid, scores_sample
from agrotools.scoring.summary import ModeSummary, RunComparison, RunDifference, Summary


def value_of(record: Record, scores: Sequence[Score]) -> float | None:
    """Return the score of a record for sorting and colouring; None if it is invalid or has no right answer to compare.

    It is the Final Answer Score; in step-by-step, the share of right steps."""
    if is_invalid(record):
        return None
    if record.actions is None:
        return next((row.value for row in scores if scores_sample(row.metric)), None)
    return sum(step_is_right(record, index, scores) for index in range(len(record.actions))) / len(
        record.actions
    )


def step_is_right(record: Record, index: int, scores: Sequence[Score]) -> bool:
    """Return True if the predicted action of a step is the expected one, with right arguments or slots."""
    assert record.actions is not None
    steps = record.sample.reference.steps if record.sample.reference else ()
    rows = {row.metric: row for row in scores if row.step == index}
    return not why_wrong(record.actions[index], steps[index] if index < len(steps) else None, rows)


# --- runs ------------------------------------------------------------------------------------------------------------


@dataclass
class PageRun:
    """Run of the page. ``name`` is derived from its folder; it is safe in links and unique on the page."""

    folder: Path
    name: str
    manifest: Manifest
    records: RecordIndex
    roots: list[Path]
    comparisons: TextComparisons
    """Additional comparisons of texts that the run is scored by."""
    judges: JudgedRows
    tally: RunAggregator | None = None
    """Collector of the scores of all records; None if the summary is known."""
    scored: Summary | None = None
    lost: LostPoints | None = None
    """Lost points of records that were scored before; None: ``tally`` has them."""
    replaceable: dict[Key, Record] = field(default_factory=dict[Key, Record])
    """Invalid records, which may be run again while the page is open; empty if it is written once."""

    @property
    def summary(self) -> Summary:
        """Summary of the run, which is known once all its records are scored."""
        assert self.scored is not None
        return self.scored

    def scored_records(self) -> Iterator[tuple[Record, list[Score]]]:
        """Yield every record with its score rows: those that were stored just now, or else calculated ones."""
        if self.lost is None:
            for record in self.records:
                yield record, self.scores_of(record)
            return
        with StoredScores(self.folder) as stored:
            for record in self.records:
                yield record, stored.of(record)

    def scores_of(self, record: Record, *, live: bool = False) -> list[Score]:
        """Score a record, and count its scores in the summary."""
        scores = self.judges.joined(record, score_record(record, self.comparisons))
        self.replaceable.pop(record.key, None)
        if live and record.invalid is not None:
            self.replaceable[record.key] = record
        elif self.tally is not None:
            self.tally.add(record, scores)
        return [*scores, *twin_rows(record, scores, self.records)]

    def shares_of(self, record: Record, scores: Sequence[Score]) -> Shares:
        """Return the points that a record lost by part; ``scores``: its rows."""
        lost = self.lost or (self.tally.lost if self.tally else None)
        assert lost is not None, "a run was scored before, or is scored for the page"
        return lost.of_record(record, scores)


def opened_runs(
    folders: Sequence[Path],
    *,
    data_root: Path | None,
    summaries: Sequence[Summary] | None,
    tallies: Sequence[RunAggregator] = (),
    comparisons: TextComparisons = NO_COMPARISONS,
) -> list[PageRun]:
    """Open the runs; ``summaries``, ``tallies``: those of runs that were scored before, one for each run."""
    runs: list[PageRun] = []
    names = list(map(name_of, folders))
    for at, (folder, name) in enumerate(zip(folders, names, strict=True)):
        manifest, index = (
            read_manifest(folder),
            record_index(folder),
        )
        whole = manifest
        manifest = manifest.model_copy(update={"sample_ids": ()})
        if not len(index):
            raise index.without_samples
        check_comparisons(manifest, comparisons)
        roots, judges = benchmark_roots(manifest, folder, data_root), judged_rows(folder)
        name = name if names.index(name) == at else f"{name}-{names[: at + 1].count(name)}"
        run = PageRun(folder, name, manifest, index, roots, comparisons, judges)
        if summaries and len(tallies) == len(folders):
            run.scored, run.lost = summaries[at], tallies[at].lost
        else:
            run.tally = tally_of(folder, whole)
        runs.append(run)
    return runs


def name_of(folder: Path) -> str:
    """Return the name of a run in the addresses of a page, from its folder; several of one name get numbers."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name) or "run"


def summarise(runs: Sequence[PageRun], *, allow_invalid: bool, finished: bool = True) -> None:
    """Set the summaries of runs whose records have all been scored.

    Unless a run is ``finished``, what needs its records again is left out: published metrics.
    """
    tallies: list[RunAggregator] = []
    for run in runs:
        if run.tally is None:
            continue
        tally = deepcopy(run.tally) if run.replaceable else run.tally
        for record in run.replaceable.values():
            tally.add(record, [])
        tallies.append(tally)
        run.scored = summary_of(
            run.folder,
            run.manifest,
            tally,
            run.judges,
            allow_invalid=allow_invalid,
            embedder=run.comparisons.embedder,
            published=finished,
        )
    for run, summary in zip(
        runs, side_by_side([run.summary for run in runs], tallies), strict=True
    ):
        run.scored = summary


def differences(runs: Sequence[PageRun], tallies: Sequence[RunAggregator]) -> list[RunDifference]:
    """Return the differences of all pairs of runs, of quick parts and privileged ones, too, as ``compare`` does."""
    if len(tallies) != len(runs):
        return []
    pairs = [*combinations(range(len(runs)), 2)]
    return differences_between(
        [run.summary.model_copy(update={"quick": False}) for run in runs], tallies, pairs
    )


MOST_COMPARED = 4
"""Most runs of a page whose differences are also shown by task and by cause."""


def compared(
    runs: Sequence[PageRun], tallies: Sequence[RunAggregator]
) -> dict[tuple[int, int], RunComparison]:
    """Return the comparison of each pair of a few runs, by their numbers."""
    if len(tallies) != len(runs) or not 1 < len(runs) <= MOST_COMPARED:
        return {}
    found = comparisons_of(tallies, [run.name for run in runs])
    return dict(zip(combinations(range(len(runs)), 2), found, strict=True))


def floor_and_ceiling(
    runs: Sequence[PageRun], data_root: Path | None, progress: Progress = no_progress
) -> Mapping[str, Summary]:
    """Return the summaries of baselines on the samples of the first model's run, if its benchmark can be loaded."""
    run = next((run for run in runs if not is_baseline(run.manifest.model)), runs[0])
    manifest = run.manifest
    roles = {role_of(each.summary, headline_mode(each.manifest.modes)) for each in runs}
    if {"floor", "ceiling"} <= roles:
        return {}
    with suppress(AgrotoolsError, OSError, IndexError):
        if manifest.benchmark_path in BENCHMARKS:
            place, options = data_root or manifest.data_root, manifest.benchmark_options
            loading = Loading(
                Path(place) if place else None, options, quick=manifest.quick, files_later=True
            )
            benchmark = load_as(manifest.benchmark_path, loading)
        else:
            benchmark = load_benchmark(run.roots[0])
        if benchmark.content_hash == manifest.benchmark_hash:
            scored = references_of(run.folder, benchmark, data_root, progress).scored
            return {name: each.summary for name, each in scored.items()}
    return {}


def count_shares(runs: Sequence[PageRun]) -> int:
    """Return an upper bound of the shares of the pictures in all records, whose lines are only scanned."""
    files, made = set[object](), set[object]()
    for run in runs:
        with (run.folder / RECORDS_FILE).open("rb") as lines:
            for line in lines:
                if b'"sha256"' not in line:
                    continue  # neither a file nor an artifact
                with suppress(ValueError, LookupError, TypeError):
                    record = orjson.loads(line)
                    files.update(
                        each.get("sha256") or each["path"] for each in record["sample"]["files"]
                    )
                    made.update(_artifacts_of(record))
    return FILE_SHARES * len(files) + len(made)


def _artifacts_of(record: dict[str, Any]) -> Iterator[object]:
    """Yield the hashes of the files that tools made for a record, given as JSON."""
    sample, trajectory = record["sample"], record.get("trajectory")
    steps = trajectory["steps"] if trajectory else ()
    if record.get("actions") is not None and sample.get("reference"):
        steps = sample["reference"]["steps"]
    for step in steps:
        yield from (
            each.get("sha256") for each in (step.get("observation") or {}).get("artifacts", ())
        )


_HASH_DIGITS = 12
_COMPARED = {
    "degrade": "degradation",
    "faults": "faults in tool calls",
    "toolset_hash": "toolset",
    "backends": "back-ends of the tools",
}
"""Manifest fields that must be equal for two runs to be comparable, and their names in messages."""


def run_facts(name: str, folder: Path, manifest: Manifest, summary: Summary) -> dict[str, Any]:
    """Return facts about the run in ``folder`` for the page: model, outcome of each mode, and settings."""
    spend = read_spend(folder / "spend.jsonl")
    unknown = (
        "not reported by the agent" if is_agent(manifest.model) or manifest.sealed is False else ""
    )
    settings = {
        "cost": f"{number_text(spend.usd, 4)} USD for {spend.replies} replies"
        if spend.replies
        else unknown,
        "protocol": "" if is_baseline(manifest.model) else manifest.protocol,
        "images": ""
        if is_baseline(manifest.model)
        else "shown"
        if manifest.images
        else "not shown",
        "degraded": f"{manifest.degrade} (this page shows the original pictures)"
        if manifest.degrade
        else "",
        "faults in tool calls": manifest.faults,
        "epochs": str(manifest.epochs),
        "step limit": str(manifest.max_steps),
        "seed": str(manifest.seed),
        "sampling": fields_text(manifest.settings)
        or ("endpoint defaults" if manifest.base_url else ""),
        "endpoint": manifest.base_url or "",
        "toolset": ", ".join(manifest.toolset),
        "tools offered": ""
        if manifest.tools == "all"
        else f"{manifest.tools} (of each sample; --tools)",
        "toolset hash": manifest.toolset_hash[:_HASH_DIGITS],
        "back-ends": fields_text(dict(manifest.backends)) or "offline",
        "prompt hash": manifest.prompt_hash[:_HASH_DIGITS] or "no prompt",
        "benchmark hash": manifest.benchmark_hash[:_HASH_DIGITS],
        "agrotools": manifest.agrotools,
        "scoring version at the start": str(manifest.scoring),
        "python": manifest.python,
        "libraries": fields_text(dict(manifest.libraries)),
    }
    return {
        "name": name,
        "folder": harmless(str(folder)),
        "model": manifest.model,
        "privileged": manifest.privileged,
        "unsealed": manifest.sealed is False,
        "benchmark": benchmark_title(manifest.benchmark, manifest.benchmark_version),
        "synthetic": manifest.synthetic,
        "finished": f"{datetime.fromtimestamp((folder / RECORDS_FILE).stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC",
        "modes": [(mode, _mode_text(part)) for mode, part in summary.modes.items()],
        "settings": [(word, value) for word, value in settings.items() if value],
    }


def _mode_text(part: ModeSummary) -> str:
    invalid = (
        f", {part.invalid.n} invalid ({percent(part.invalid.share)} %)" if part.invalid.n else ""
    )
    hidden = "" if part.headline else f"; no score: {part.withheld}"
    ended = ", ".join(f"{name} {n}" for name, n in part.counts.terminations.items())
    epochs = f" x {part.epochs} epochs" if part.epochs > 1 else ""
    return f"{count_text(part.n_samples, 'sample')}{epochs}{invalid}{hidden}{f' ({ended})' if ended else ''}"


def incomparable(manifests: Sequence[Manifest]) -> list[str]:
    """Return the differences that make the scores of runs incomparable; empty if there are none.

    Prompts are compared only among runs that have one (baselines have none).
    """
    benchmarks = [manifest.clean_hash or manifest.benchmark_hash for manifest in manifests]
    differences = (
        [f"different benchmark: {_differing(benchmarks)}"] if len(set(benchmarks)) > 1 else []
    )
    if len({manifest.quick for manifest in manifests}) > 1:
        differences.append(
            "some ran only the quick part of the benchmark, whose samples are too few to rank models"
        )
    for name, words in _COMPARED.items():
        values = [getattr(manifest, name) for manifest in manifests]
        differences += [f"different {words}: {_differing(values)}"] * any(
            value != values[0] for value in values
        )
    for tool in dict.fromkeys(tool for manifest in manifests for tool in manifest.tool_data):
        digests = {manifest.tool_data[tool] for manifest in manifests if tool in manifest.tool_data}
        if len(digests) > 1:
            where = (
                "that only some of the runs had"
                if "" in digests
                else "that changed between the runs"
            )
            differences.append(f"{tool} has data files (e.g. trained heads) {where}")
    prompts = [manifest.prompt_hash for manifest in manifests if manifest.prompt_hash]
    if len(set(prompts)) > 1:
        differences.append(f"different prompts: {_differing(prompts)}")
    return differences


def _differing(values: Sequence[object]) -> str:
    value_texts = [
        value[:_HASH_DIGITS] if isinstance(value, str) else fields_text(dict(value))  # type: ignore[call-overload]
        for value in values
    ]
    return shortened(" / ".join(dict.fromkeys(text or "none" for text in value_texts)))
