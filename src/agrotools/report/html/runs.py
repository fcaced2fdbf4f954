"""The runs of a page: what is read of them before anything is written."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools.core import Mode, Record, RunStoreError, Sample
from agrotools.report.html.choosing import Candidate, Pair, chosen_pairs, value_of
from agrotools.report.html.pictures import artifact_key, file_key
from agrotools.report.html.places import benchmark_roots
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import RecordIndex, record_index
from agrotools.runner.store import read_manifest
from agrotools.scoring import Summary, Tally, score_record


@dataclass
class Run:
    """A run of the page. ``name`` is that of its folder, made fit for links and different from those of the others."""

    folder: Path
    name: str
    manifest: Manifest
    index: RecordIndex
    roots: list[Path]
    summary: Summary

    def chosen(self, pairs: set[Pair]) -> Iterator[Record]:
        """The records of these samples and modes, one at a time."""
        return (record for key in self.index.keys if (key[0], key[1]) in pairs and (record := self.index.get(key)))


def opened_runs(
    folders: Sequence[Path],
    samples: int,
    *,
    data_root: Path | None,
    summaries: Sequence[Summary] | None,
    allow_invalid: bool,
) -> tuple[list[Run], set[Pair]]:
    """The runs and the samples to show of them. Every record is scored once, or none where nothing depends on it:
    the summaries are given, and all samples are shown.

    Raises:
        RunStoreError: not a run, or one without records.
    """
    manifests = [read_manifest(folder) for folder in folders]
    indices = [record_index(folder) for folder in folders]
    for folder, index in zip(folders, indices, strict=True):
        if not len(index):
            raise RunStoreError(f"the run {folder} holds no finished sample", hint="run agrotools eval again to go on")
    if summaries is not None and max(map(len, indices)) <= samples:
        modes: dict[str, Mode] = {mode: mode for manifest in manifests for mode in manifest.modes}
        pairs: set[Pair] = {(modes[key[0]], key[1]) for index in indices for key in index.keys}
        given = list(summaries)
    else:
        candidates: dict[Pair, Candidate] = {}
        tallies = [_tallied(at, index, candidates) for at, index in enumerate(indices)]
        given = summaries or [
            _summary(tally, manifest, allow_invalid) for tally, manifest in zip(tallies, manifests, strict=True)
        ]
        privileged = frozenset(at for at, manifest in enumerate(manifests) if manifest.privileged)
        pairs = chosen_pairs(candidates, samples, privileged=privileged)
    names = _distinct([re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name) or "run" for folder in folders])
    runs = [
        Run(folder, name, manifest, index, benchmark_roots(manifest, folder, data_root), summary)
        for folder, name, manifest, index, summary in zip(folders, names, manifests, indices, given, strict=True)
    ]
    return runs, pairs


def _tallied(at: int, index: RecordIndex, candidates: dict[Pair, Candidate]) -> Tally:
    """The tally of a run; what its records scored goes to ``candidates``."""
    tally = Tally()
    for record in index:
        scores = score_record(record)
        tally.add(record, scores)
        candidate = candidates.setdefault((record.mode, record.sample.id), Candidate(record.sample.task_type))
        candidate.epochs = max(candidate.epochs, record.epoch + 1)
        value = value_of(record, scores)
        if value is not None:
            candidate.values[at].append(value)
    if tally.wants_answers:
        for record in index:
            tally.add_answer(record)
    return tally


def _summary(tally: Tally, manifest: Manifest, allow_invalid: bool) -> Summary:
    return tally.summary(
        benchmark=manifest.benchmark,
        benchmark_version=manifest.benchmark_version,
        synthetic=manifest.synthetic,
        model=manifest.model,
        protocol=manifest.protocol,
        privileged=manifest.privileged,
        allow_invalid=allow_invalid,
    )


def count_pictures(runs: Sequence[Run], pairs: set[Pair]) -> int:
    """How many distinct pictures the chosen records may have."""
    keys: set[object] = set()
    for run in runs:
        for record in run.chosen(pairs):
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
