"""Samples under review (of a benchmark folder, a benchmark by name, or a run), and the application of a review."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from pydantic import JsonValue, ValidationError

from agrotools.core import BenchmarkError, FrozenModel, RunStoreError, Sample, UsageError
from agrotools.core.files import MANIFEST_FILE
from agrotools.core.progress import Progress, no_progress
from agrotools.core.readings import Readings
from agrotools.core.texts import benchmark_title, command_line, count_text, counted_names
from agrotools.formats.benchmark import HEADER_FILE, QUALITY_FILE, BenchmarkHeader
from agrotools.formats.funnel import DRAFTS_KEY, REVIEWED_KEY
from agrotools.formats.writing import replace_folder
from agrotools.loading import BENCHMARKS, Benchmark, Loading, load_benchmark
from agrotools.loading.benchmarks import load_as
from agrotools.loading.validate import validate_folder
from agrotools.report.html.pictures import benchmark_roots
from agrotools.report.layout import harmless, shortened
from agrotools.runner.records import RECORDS_FILE, RecordIndex
from agrotools.runner.store import read_manifest
from agrotools.scoring.steps import implied_slot, shown_results
from agrotools_build.answer_origin import OWN_LABELS, origin_of
from agrotools_build.drafting.funnel import reviewed_by_family
from agrotools_build.export.folder import copy_files, write_benchmark
from agrotools_build.labels import LABELS_FILE, read_labels, write_labels
from agrotools_build.quality import Finding, write_findings
from agrotools_build.review.agreement import (
    REVIEW_FILE,
    Decision,
    Status,
    apply_edits,
    review_status,
    valid_decisions,
)
from agrotools_build.review.versions import Version, Versions, content_of, written_folder

TOOLS_DIFFER = "tools differ"
TOOL_FAILED = "tool failed"
TOOL_VALUE = "value of a tool"
_QUERY_SHOWN = 140


@dataclass(frozen=True)
class Facts:
    """Facts of a sample for the list and the filters of the page."""

    content: str
    """first 16 digits of the SHA-256 of the sample; a decision is valid for this version only"""
    task_type: str
    source: str
    query: str
    flags: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Material:
    """Samples to review and possible locations of their files. ``benchmark`` is None if a run is under review."""

    title: str
    journal: Path
    samples: Mapping[str, Sample] | Sequence[Sample]
    facts: dict[str, Facts]
    """facts by sample id, in the order of the benchmark"""
    roots: list[Path]
    artifact_folders: list[Path]
    flags: dict[str, list[Finding]]
    """flags by sample id, as they were raised; :meth:`shown_flags` for people and files"""
    benchmark: Benchmark | None = None
    notes: list[str] = field(default_factory=list)
    versions: Versions | None = None
    """samples that reviewers corrected or wrote; None if they cannot (a run, a benchmark that is drawn again)"""

    def sample(self, sample_id: str) -> Sample | None:
        if sample_id not in self.facts:
            return None
        if self.versions is not None and (version := self.versions.sample(sample_id)) is not None:
            return version
        if self.benchmark is not None:
            return self.benchmark.prepare(self.benchmark.sample(sample_id))
        return cast("Mapping[str, Sample]", self.samples)[sample_id]

    @property
    def contents(self) -> dict[str, str]:
        # A copy, as another thread may take in a new question meanwhile.
        return {sample_id: facts.content for sample_id, facts in [*self.facts.items()]}

    @property
    def corrected(self) -> list[str]:
        """Ids of samples that reviewers corrected."""
        return [] if self.versions is None else self.versions.corrected

    def update(self) -> None:
        """Take in what reviewers corrected and wrote meanwhile, also in other processes."""
        if self.versions is None:
            return
        for sample_id, sample in self.versions.update(self.contents).items():
            self.facts[sample_id] = facts_of_sample(sample, self.flags.get(sample_id, ()))

    def shown_flags(self, sample_id: str) -> list[Finding]:
        """Return the flags of a sample; those of a corrected one say that they were raised before.

        They were raised on another content, but may still hold: a reviewer must see them.
        """
        flags = self.flags.get(sample_id, [])
        is_corrected = self.versions is not None and self.versions.sample(sample_id) is not None
        return [*map(_of_earlier_content, flags)] if is_corrected else flags

    def history(self, sample_id: str) -> list[Version]:
        """Return the versions of a sample that reviewers saved, the oldest first."""
        return [] if self.versions is None else self.versions.history(sample_id)


def open_material(
    what: str,
    *,
    log: Path | None = None,
    data_root: Path | None = None,
    progress: Progress = no_progress,
    readings: Readings | None = None,
) -> Material:
    """Open a benchmark folder, a benchmark known by name, or a run folder for review.

    ``log``: file of the decisions. Default: ``review.jsonl`` in the folder or, for a benchmark by name (whose folder is
    rebuilt when a file in it changes), ``NAME.review.jsonl`` in the working directory. ``data_root``: the folder of a
    run's benchmark, if it has moved. ``readings``: asks where the files of a benchmark by name may be read in two ways.
    BenchmarkError, RunStoreError, UsageError: ``what`` is broken, or neither.
    """
    folder = Path(what).expanduser()
    if what in BENCHMARKS:
        loading = Loading(
            progress=progress, files_later=True, readings=readings
        )  # scenes are drawn when their samples are opened
        return _of_benchmark(load_as(what, loading), log or Path(f"{what}.review.jsonl"))
    if not folder.is_dir():
        known = ", ".join(BENCHMARKS.names())
        hint = f"give a benchmark folder, a run folder, or a name ({known})"
        raise UsageError(f"there is no folder {what}", hint=hint)
    if not (folder / HEADER_FILE).is_file() and (
        (folder / RECORDS_FILE).exists() or (folder / MANIFEST_FILE).exists()
    ):
        return _of_run(folder, log or folder / REVIEW_FILE, data_root)
    benchmark = load_benchmark(folder)
    if (folder / MANIFEST_FILE).is_file() and log is None:
        why = f"{folder} is a benchmark that is drawn again when a file in it changes"
        raise UsageError(
            why,
            hint=f"review it by its name ({benchmark.name}), or name a file of decisions with --log",
        )
    return _of_benchmark(benchmark, log or folder / REVIEW_FILE)


def drawn_sample(material: Material, count: int) -> Material:
    """Return the material with ``count`` samples drawn at random, or all if it has no more.

    The draw follows from the ids alone: every reviewer sees the same samples, and a larger draw contains a smaller one.
    """
    by_draw = sorted(material.facts, key=lambda name: hashlib.sha256(name.encode()).digest())
    drawn = {*by_draw[:count]}
    facts = {name: facts for name, facts in material.facts.items() if name in drawn}
    return replace(material, facts=facts)


def _of_benchmark(benchmark: Benchmark, journal: Path) -> Material:
    flags, notes = read_flags(benchmark.root / QUALITY_FILE)
    title = benchmark_title(benchmark.name, benchmark.version)
    facts = {
        sample.id: facts_of_sample(sample, flags.get(sample.id, ())) for sample in benchmark.samples
    }
    roots = [benchmark.root]
    is_drawn_again = (benchmark.root / MANIFEST_FILE).is_file() or benchmark.make_files is not None
    material = Material(
        title,
        journal,
        benchmark.samples,
        facts,
        roots,
        roots,
        flags,
        benchmark,
        notes,
        versions=None if is_drawn_again else Versions(written_folder(journal)),
    )
    material.update()
    if material.versions is not None and material.versions.outdated:
        notes.append(
            f"{count_text(material.versions.outdated, 'correction')} of samples that changed since: not shown"
        )
    return material


def _of_run(run: Path, journal: Path, data_root: Path | None) -> Material:
    manifest = read_manifest(run)
    index = RecordIndex(run)
    samples = {record.sample.id: record.sample for record in index}
    if not samples:
        why = f"the run {run} contains no finished sample, so there is nothing to review"
        raise RunStoreError(
            why, hint="run agrotools eval again to resume, or review the benchmark folder itself"
        )
    roots = benchmark_roots(manifest, run, data_root)
    notes = list(index.notes)
    if not roots and any(sample.files for sample in samples.values()):
        notes.append(
            f"the benchmark of the run ({manifest.benchmark_path}) is not there: no pictures; see --data-root"
        )
    flags, more = read_flags(roots[0] / QUALITY_FILE) if roots else ({}, [])
    notes += more
    facts = {name: facts_of_sample(sample, flags.get(name, ())) for name, sample in samples.items()}
    title = f"run {run.resolve().name} ({benchmark_title(manifest.benchmark, manifest.benchmark_version)})"
    return Material(title, journal, samples, facts, roots, [run, *roots], flags, None, notes)


_BEFORE = "before the correction: "
"""Start of the message of a flag that was raised on the sample as it was before somebody corrected it."""


def _of_earlier_content(flag: Finding) -> Finding:
    """Return a flag whose message says that it was raised before a correction, once if an earlier review said so."""
    return flag.model_copy(update={"message": _BEFORE + flag.message.removeprefix(_BEFORE)})


def facts_of_sample(sample: Sample, flags: Sequence[Finding]) -> Facts:
    """Return the content hash and the filter facts of ``sample``."""
    return Facts(
        content=content_of(sample),
        task_type=harmless(sample.task_type),
        source=harmless(sample.source),
        query=shortened(harmless(sample.query).replace("\n", " "), _QUERY_SHOWN),
        flags=tuple(
            dict.fromkeys(harmless(flag.check) for flag in (*flags, *reference_flags(sample)))
        ),
    )


def reference_flags(sample: Sample) -> list[Finding]:
    """Return flags for failed reference calls, observations that lead to another answer, and answers without a label.

    None is a fault of the sample: answers come from labels, or the sample says that they are a tool's.
    """
    if sample.reference is None:
        return []
    found: dict[str, str] = {}
    if by_tools := [slot.name for slot in sample.answer if origin_of(sample, slot) == "tool"]:
        found[TOOL_VALUE] = f"no label: a tool measured {', '.join(by_tools)}"
    steps = enumerate(sample.reference.steps, start=1)
    if failed := [
        str(number) for number, step in steps if step.observation is None or step.observation.error
    ]:
        found[TOOL_FAILED] = f"in step {', '.join(failed)}"
    results = shown_results(sample.reference)
    implied = {
        slot.name: implied_slot(slot, results)
        for slot in sample.answer
        if not slot.made_by_tools and slot.from_
    }
    if other := [name for name, each in implied.items() if each.differs or each.slot is None]:
        found[TOOLS_DIFFER] = (
            f"the observations give another answer, or none, for {', '.join(other)}"
        )
    return [
        Finding(id=sample.id, check=check, severity="info", message=text)
        for check, text in found.items()
    ]


def read_flags(path: Path) -> tuple[dict[str, list[Finding]], list[str]]:
    """Read flags by sample id from ``quality.jsonl``, and return notes on the file as the second result."""
    flags: dict[str, list[Finding]] = {}
    bad = 0
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        return {}, [f"{path.name} cannot be read: {error.strerror or error}"]
    for line in filter(bytes.strip, lines):
        try:
            finding = Finding.model_validate_json(line)
            flags.setdefault(finding.id, []).append(finding)
        except ValidationError:
            bad += 1
    return flags, [f"{path.name}: {bad} lines could not be read"] if bad else []


OnDisputed = Literal["keep", "drop"]
_ADDED = "+reviewed"
_UNDECIDED = "without a decision"
"""Reason for which ``--accepted`` drops a sample."""
_DIFFER = "reviewers differ"
"""Reason for which ``--disputed drop`` drops a sample."""


class Applied(FrozenModel):
    """Result of applying a review."""

    out: str
    kept: int
    edited: tuple[str, ...]
    corrected: tuple[str, ...] = ()
    """ids of samples whose question or trace a reviewer corrected"""
    written: tuple[str, ...] = ()
    """ids of samples that a reviewer wrote from nothing"""
    dropped: dict[str, tuple[str, ...]]
    """ids of dropped samples by reason"""
    disputed: tuple[str, ...]
    """ids of disputed samples, kept unchanged or dropped as requested"""
    undecided: int
    """number of undecided samples that are kept unchanged"""
    faults: tuple[str, ...]
    """faults that ``agrotools benchmarks check`` finds in the new folder"""


def apply_review(
    material: Material,
    decisions: Sequence[Decision],
    out: Path,
    *,
    disputed: OnDisputed | None = None,
    accepted: bool = False,
) -> Applied:
    """Write a new benchmark folder to ``out``; the reviewed one is not changed.

    Samples rejected by every reviewer who decided are dropped, edits proposed identically by all are applied, undecided
    samples are kept, or dropped with ``accepted``. ``disputed``: what happens to others; UsageError if that is needed
    and None, if ``out`` overlaps the reviewed folder, or for a run. BenchmarkError: nothing is left, an edit does not
    fit, ``out`` holds something else.
    """
    benchmark = _benchmark_to_review(material, out)
    settled = _settle(material, decisions, disputed=disputed, accepted=accepted)
    samples = _remaining_samples(material, benchmark, settled)
    if not samples:
        raise BenchmarkError(
            "no sample would be left: nobody accepted one",
            hint="look at the decisions with --summary",
        )
    remaining = {sample.id for sample in samples}
    changed = {
        "edited": settled.with_status("edited"),
        "corrected": tuple(name for name in material.corrected if name in remaining),
        "written": tuple(name for name in _written_ids(material) if name in remaining),
    }
    header = _header(benchmark, material, settled, changed)
    faults = _write_reviewed(material, benchmark, header, samples, out)
    undecided = [name for name in settled.with_status("undecided") if name not in settled.gone]
    return Applied(
        out=str(out),
        kept=len(samples),
        dropped=settled.dropped,
        disputed=settled.with_status("disputed"),
        undecided=len(undecided),
        faults=faults,
        **changed,
    )


def _benchmark_to_review(material: Material, out: Path) -> Benchmark:
    """Return the benchmark under review; UsageError if it is a run, or if ``out`` overlaps its folder."""
    benchmark = material.benchmark
    if benchmark is None:
        where = material.roots[0] if material.roots else "DIR"
        why = "decisions can be applied to a benchmark folder, not to a run"
        raise UsageError(
            why,
            hint=command_line(
                "review", where, "--log", material.journal, "--apply", "--out", "NEW"
            ),
        )
    root, target = benchmark.root, out.expanduser().resolve()
    if target.is_relative_to(root) or root.is_relative_to(target):
        why = f"{out} is, contains or is inside the folder under review"
        raise UsageError(why, hint="choose another folder with --out")
    return benchmark


@dataclass(frozen=True)
class _Settled:
    """What the decisions of all reviewers come to."""

    decided: Mapping[str, Sequence[Decision]]
    """valid decisions by sample"""
    statuses: Mapping[str, Status]
    """by sample, in the order of the benchmark"""
    dropped: dict[str, tuple[str, ...]]
    """ids of dropped samples by reason"""

    def with_status(self, status: Status) -> tuple[str, ...]:
        """Return the ids of the samples with a status."""
        return tuple(name for name, of_sample in self.statuses.items() if of_sample == status)

    @property
    def gone(self) -> set[str]:
        """Ids of all dropped samples."""
        return {name for names in self.dropped.values() for name in names}


def _settle(
    material: Material,
    decisions: Sequence[Decision],
    *,
    disputed: OnDisputed | None,
    accepted: bool,
) -> _Settled:
    """Decide for each sample whether it is dropped, and why.

    Raises:
        UsageError: reviewers differ, and ``disputed`` does not say what then happens.
    """
    decided = valid_decisions(decisions, material.contents)
    statuses: dict[str, Status] = {
        name: review_status(decided.get(name, [])) for name in material.facts
    }
    dropped: dict[str, list[str]] = {}
    for name, status in statuses.items():
        if status == "rejected":
            # A sample rejected by several has the reason of the first.
            dropped.setdefault(decided[name][0].reason, []).append(name)
        elif status == "disputed" and disputed == "drop":
            dropped.setdefault(_DIFFER, []).append(name)
        elif status == "undecided" and accepted:
            dropped.setdefault(_UNDECIDED, []).append(name)
    settled = _Settled(
        decided, statuses, {reason: tuple(names) for reason, names in dropped.items()}
    )
    contested = settled.with_status("disputed")
    if contested and disputed is None:
        hint = (
            "settle them on the page (filter: disputed), or say --disputed keep or --disputed drop"
        )
        why = f"reviewers differ on {len(contested)} samples: {counted_names(contested, 5)}"
        raise UsageError(why, hint=hint)
    return settled


def _written_ids(material: Material) -> list[str]:
    """Return the ids of the samples that reviewers wrote from nothing."""
    versions = material.versions
    return [sample.id for sample in versions.written] if versions else []


def _remaining_samples(material: Material, benchmark: Benchmark, settled: _Settled) -> list[Sample]:
    """Return the samples that are not dropped, as reviewers corrected, wrote and edited them."""
    versions = material.versions
    samples = list(benchmark.samples)
    if versions is not None:
        latest = [versions.sample(sample.id) or sample for sample in samples]
        samples = [*latest, *versions.written]
    kept = [sample for sample in samples if sample.id not in settled.gone]
    edited = set(settled.with_status("edited"))
    return [
        _edited(sample, settled.decided[sample.id]) if sample.id in edited else sample
        for sample in kept
    ]


def _write_reviewed(
    material: Material,
    benchmark: Benchmark,
    header: BenchmarkHeader,
    samples: Sequence[Sample],
    out: Path,
) -> tuple[str, ...]:
    """Write the new folder, completely or not at all, and return what ``agrotools benchmarks check`` finds in it."""
    root = benchmark.root
    with replace_folder(out) as folder:
        prepared = [*map(benchmark.prepare, samples)]
        copy_files(root, prepared, folder)
        if (root / LABELS_FILE).is_file():
            write_labels(folder, read_labels(root))
        if (root / QUALITY_FILE).is_file():
            flags = [flag for sample in prepared for flag in material.shown_flags(sample.id)]
            write_findings(folder, flags)
        write_benchmark(folder, header, prepared)
        faults = validate_folder(folder)
    return tuple(f"{fault.where}: {fault.message} ({fault.hint})" for fault in faults)


def _edited(sample: Sample, decisions: Sequence[Decision]) -> Sample:
    """Return a sample with the edit that all reviewers proposed; it says whose label a typed value is."""
    edits = decisions[0].edits
    assert edits is not None
    try:
        edited = apply_edits(sample, edits)
    except ValueError as error:
        why = f"the edit of sample {sample.id} does not fit it: {error}"
        raise BenchmarkError(why, hint="decide that sample again on the page") from error
    typed = [name for name, edit in edits.slots.items() if edit.value is not None]
    if not typed:
        return edited
    people: JsonValue = [decision.reviewer for decision in decisions]
    labels: dict[str, JsonValue] = dict.fromkeys(typed, people)
    return edited.model_copy(update={"metadata": {**edited.metadata, OWN_LABELS: labels}})


def _header(
    benchmark: Benchmark,
    material: Material,
    settled: _Settled,
    changed: Mapping[str, Sequence[str]],
) -> BenchmarkHeader:
    """Return the header of the new folder. ``changed``: ids of edited, corrected and written samples."""
    header = benchmark.header
    version = header.version if header.version.endswith(_ADDED) else header.version + _ADDED
    log = material.journal
    digest = (
        {"journal_sha256": hashlib.sha256(log.read_bytes()).hexdigest()} if log.is_file() else {}
    )
    ids: dict[str, JsonValue] = {kind: [*names] for kind, names in changed.items()}
    review: JsonValue = {
        "of": benchmark.content_hash,
        **digest,
        "dropped": len(settled.gone),
        **ids,
    }
    metadata = {**header.metadata, "review": review}
    if DRAFTS_KEY in metadata:
        by_family = reviewed_by_family(benchmark.samples, settled.decided, changed["corrected"])
        metadata[REVIEWED_KEY] = {**by_family}
    return header.model_copy(update={"version": version, "metadata": metadata})
