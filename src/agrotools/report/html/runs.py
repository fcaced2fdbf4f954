"""Runs of a page: the data read before anything is written, their facts, and differences between them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agrotools.core import Record, RunStoreError, Sample
from agrotools.plugin import NO_COMPARISONS, TextComparisons
from agrotools.report.html.choosing import Outcomes
from agrotools.report.html.pictures import artifact_key, benchmark_roots, file_key
from agrotools.report.layout import fields_text, percent, shortened
from agrotools.runner.costs import read_spend
from agrotools.runner.manifest import Manifest
from agrotools.runner.policies import is_baseline
from agrotools.runner.records import RECORDS_FILE, OrderedRecords, RecordIndex
from agrotools.runner.rescore import check_comparisons, judged_rows, shown_as_stored, summary_of
from agrotools.runner.store import read_manifest
from agrotools.scoring import ModeSummary, RunAggregator, Summary, score_record
from agrotools.scoring.aggregate import side_by_side
from agrotools.scoring.judging import JudgedRows


@dataclass
class Run:
    """A run of the page. ``name`` is that of its folder, made fit for links and different from those of the others."""

    folder: Path
    name: str
    manifest: Manifest
    records: OrderedRecords
    roots: list[Path]
    summary: Summary
    comparisons: TextComparisons
    """Comparisons of texts that it is scored by, too."""
    places: Sequence[int]
    """Places of the shown records among ``records``."""

    def shown(self) -> Iterator[Record]:
        """The records that are shown, one at a time."""
        return self.records.at(self.places)


def opened_runs(
    folders: Sequence[Path],
    samples: int,
    *,
    data_root: Path | None,
    summaries: Sequence[Summary] | None,
    outcomes: Outcomes | None = None,
    allow_invalid: bool,
    comparisons: TextComparisons = NO_COMPARISONS,
) -> list[Run]:
    """The runs, and which of their records to show. Every record is scored once, or none where nothing depends on it:
    the summaries are given, and the outcomes are, too, or all samples are shown. Stored summaries of another scoring
    version are shown as they are.

    Raises:
        RunStoreError: not a run, or one without records;
        ScoringVersionError: the runs' scores are of different scoring versions;
        UsageError: what texts are to be compared by is not installed, or not known for this benchmark.
    """
    manifests = [read_manifest(folder).model_copy(update={"sample_ids": ()}) for folder in folders]
    shelves = [RecordIndex(folder).drained() for folder in folders]
    for folder, shelf in zip(folders, shelves, strict=True):
        if not len(shelf):
            raise RunStoreError(f"the run {folder} holds no finished sample", hint="run agrotools eval again to resume")
    if summaries is None:
        needs = {"--allow-invalid": allow_invalid, "--with": comparisons.names, "--embedder": comparisons.embedder}
        stored = shown_as_stored(folders, [name for name, value in needs.items() if value])
        summaries = side_by_side([stored[folder] for folder in folders], ()) if stored else None
    for manifest in manifests:
        check_comparisons(manifest, comparisons)
    places: Sequence[Sequence[int]]
    if summaries is not None and max(map(len, shelves)) <= samples:
        resolved = list(summaries)
        places = [range(len(shelf)) for shelf in shelves]
    else:
        resolved = list(summaries or ())
        tallies: list[RunAggregator] = []
        if summaries is None or outcomes is None:
            outcomes = Outcomes()
            for folder, shelf, manifest in zip(folders, shelves, manifests, strict=True):
                tally, judges = None if summaries else RunAggregator(protocol=manifest.protocol), judged_rows(folder)
                _score(shelf, outcomes, tally, judges, comparisons)
                if tally is not None:
                    summary = summary_of(
                        folder, manifest, tally, judges, allow_invalid=allow_invalid, embedder=comparisons.embedder
                    )
                    resolved.append(summary)
                    tallies.append(tally)
            if tallies:
                resolved = side_by_side(resolved, tallies)
        privileged = frozenset(at for at, manifest in enumerate(manifests) if manifest.privileged)
        places = outcomes.chosen(samples, privileged=privileged)
    names = _distinct([re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name) or "run" for folder in folders])
    return [
        Run(
            folder,
            name,
            manifest,
            shelf,
            benchmark_roots(manifest, folder, data_root),
            summary,
            comparisons,
            shown_places,
        )
        for folder, name, manifest, shelf, summary, shown_places in zip(
            folders, names, manifests, shelves, resolved, places, strict=True
        )
    ]


def _score(
    records: OrderedRecords,
    outcomes: Outcomes,
    tally: RunAggregator | None,
    judges: JudgedRows,
    comparisons: TextComparisons,
) -> None:
    """Score the records of a run for ``outcomes``, and for ``tally`` where one is wanted."""
    outcomes.begin_run()
    for record in records:
        scores = [*score_record(record, comparisons), *judges.rows(record)]
        outcomes.add(record, scores)
        if tally is not None:
            tally.add(record, scores)
    if tally is not None and tally.wants_answers:
        for record in records:
            tally.add_answer(record)


def count_pictures(runs: Sequence[Run]) -> int:
    """Upper bound of the number of distinct pictures of the shown records."""
    keys: set[object] = set()
    for run in runs:
        for record in run.shown():
            keys.update(map(file_key, record.sample.files))
            observations = [step.observation for step in record.trajectory.steps] if record.trajectory else []
            observations += _recorded(record.sample) if record.actions is not None else []
            keys.update(artifact_key(artifact) for each in observations if each for artifact in each.artifacts)
    return len(keys)


def _recorded(sample: Sample):
    return [step.observation for step in sample.reference.steps] if sample.reference else []


def _distinct(names: Sequence[str]) -> list[str]:
    """Unique names: repeated ones get a number."""
    return [
        name if names.index(name) == at else f"{name}-{names[: at + 1].count(name)}" for at, name in enumerate(names)
    ]


_HASH_DIGITS = 12
_COMPARED = {
    "benchmark_hash": "benchmark",
    "toolset_hash": "toolset",
    "tool_data": "data files of the tools",
    "backends": "back-ends of the tools",
}
"""Manifest fields that must be equal for two runs to be comparable, in words."""


@dataclass(frozen=True)
class RunFacts:
    """Facts of one run: model, outcome of each mode, and settings."""

    name: str
    folder: str
    model: str
    privileged: bool
    benchmark: str
    synthetic: bool
    finished: str
    modes: list[tuple[str, str]]
    settings: list[tuple[str, str]]


def run_facts(name: str, folder: Path, manifest: Manifest, summary: Summary) -> RunFacts:
    """The facts of the run in ``folder``."""
    spend = read_spend(folder / "spend.jsonl")
    settings = {
        "cost": f"{spend.usd:.4f} USD for {spend.replies} replies" if spend.replies else "",
        "protocol": "" if is_baseline(manifest.model) else manifest.protocol,
        "images": "shown" if manifest.images else "not shown",
        "epochs": str(manifest.epochs),
        "step limit": str(manifest.max_steps),
        "seed": str(manifest.seed),
        "sampling": fields_text(manifest.settings) or "endpoint defaults",
        "endpoint": manifest.base_url or "none",
        "toolset": ", ".join(manifest.toolset),
        "toolset hash": manifest.toolset_hash[:_HASH_DIGITS],
        "back-ends": fields_text(dict(manifest.backends)) or "offline",
        "prompt hash": manifest.prompt_hash[:_HASH_DIGITS] or "no prompt",
        "benchmark hash": manifest.benchmark_hash[:_HASH_DIGITS],
        "agrotools": manifest.agrotools,
        "started with": f"scoring version {manifest.scoring}",
        "python": manifest.python,
        "libraries": fields_text(dict(manifest.libraries)),
    }
    return RunFacts(
        name=name,
        folder=str(folder),
        model=manifest.model,
        privileged=manifest.privileged,
        benchmark=f"{manifest.benchmark} {manifest.benchmark_version}",
        synthetic=manifest.synthetic,
        finished=_written(folder / RECORDS_FILE),
        modes=[(mode, _mode_text(part)) for mode, part in summary.modes.items()],
        settings=[(word, value) for word, value in settings.items() if value],
    )


def _mode_text(part: ModeSummary) -> str:
    invalid = f", {part.invalid.n} invalid ({percent(part.invalid.share)} %)" if part.invalid.n else ""
    hidden = "" if part.headline else ": too many to report scores"
    ended = ", ".join(f"{name} {n}" for name, n in part.counts.terminations.items())
    epochs = f" x {part.epochs} epochs" if part.epochs > 1 else ""
    return f"{part.n_samples} samples{epochs}{invalid}{hidden}{f' ({ended})' if ended else ''}"


def _written(path: Path) -> str:
    try:
        return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC"
    except OSError:
        return "unknown"


def incomparable(manifests: Sequence[Manifest]) -> list[str]:
    """Differences that make the scores of runs incomparable; empty where there are none.

    Prompts are compared among the runs that have one (baselines have none).
    """
    differences = [
        f"different {words}: {_differing([getattr(manifest, field) for manifest in manifests])}"
        for field, words in _COMPARED.items()
        if any(getattr(manifest, field) != getattr(manifests[0], field) for manifest in manifests[1:])
    ]
    prompts = [manifest.prompt_hash for manifest in manifests if manifest.prompt_hash]
    if len(set(prompts)) > 1:
        differences.append(f"different prompts: {_differing(prompts)}")
    return differences


def _differing(values: Sequence[object]) -> str:
    value_texts = [value[:_HASH_DIGITS] if isinstance(value, str) else fields_text(dict(value)) for value in values]  # type: ignore[call-overload]
    return shortened(" / ".join(dict.fromkeys(text or "none" for text in value_texts)))
