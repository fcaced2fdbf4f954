"""The runs of a page: what is read of them before anything is written."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools.core import Record, RunStoreError, Sample
from agrotools.plugin import NO_COMPARISONS, TextComparisons
from agrotools.report.html.choosing import Outcomes
from agrotools.report.html.pictures import artifact_key, file_key
from agrotools.report.html.places import benchmark_roots
from agrotools.runner.judging import judged_rows
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import OrderedRecords, RecordIndex
from agrotools.runner.rescore import check_comparisons, summary_of
from agrotools.runner.store import read_manifest
from agrotools.runner.stored_scores import shown_as_stored
from agrotools.scoring import RunAggregator, Summary, score_record
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
    """Where the records that are shown stand among ``records``."""

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
            raise RunStoreError(f"the run {folder} holds no finished sample", hint="run agrotools eval again to go on")
    if summaries is None:
        needs = {"--allow-invalid": allow_invalid, "--with": comparisons.names, "--embedder": comparisons.embedder}
        stored = shown_as_stored(folders, [name for name, value in needs.items() if value])
        summaries = side_by_side([stored[folder] for folder in folders], ()) if stored else None
    for manifest in manifests:
        check_comparisons(manifest, comparisons)
    places: Sequence[Sequence[int]]
    if summaries is not None and max(map(len, shelves)) <= samples:
        given = list(summaries)
        places = [range(len(shelf)) for shelf in shelves]
    else:
        given = list(summaries or ())
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
                    given.append(summary)
                    tallies.append(tally)
            if tallies:
                given = side_by_side(given, tallies)
        privileged = frozenset(at for at, manifest in enumerate(manifests) if manifest.privileged)
        places = outcomes.chosen(samples, privileged=privileged)
    names = _distinct([re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name) or "run" for folder in folders])
    return [
        Run(folder, name, manifest, shelf, benchmark_roots(manifest, folder, data_root), summary, comparisons, shown)
        for folder, name, manifest, shelf, summary, shown in zip(
            folders, names, manifests, shelves, given, places, strict=True
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
    """How many distinct pictures the records that are shown may have."""
    keys: set[object] = set()
    for run in runs:
        for record in run.shown():
            keys.update(map(file_key, record.sample.files))
            made = [step.observation for step in record.trajectory.steps] if record.trajectory else []
            made += _recorded(record.sample) if record.actions is not None else []
            keys.update(artifact_key(artifact) for each in made if each for artifact in each.artifacts)
    return len(keys)


def _recorded(sample: Sample):
    return [step.observation for step in sample.reference.steps] if sample.reference else []


def _distinct(names: Sequence[str]) -> list[str]:
    """Each name once: later ones get a number."""
    return [
        name if names.index(name) == at else f"{name}-{names[: at + 1].count(name)}" for at, name in enumerate(names)
    ]
