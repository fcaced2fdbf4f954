"""Application of a review to a benchmark: rejected samples are dropped, agreed edits are made."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import orjson

from agrotools.benchmarks import Benchmark
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.export import copy_files, write_benchmark
from agrotools.build.review.agreement import Decision, apply_edits, reason_key, review_status, valid_decisions
from agrotools.build.review.material import Material, reviewed_benchmark
from agrotools.core import BenchmarkError, FrozenModel, Sample, UsageError
from agrotools.formats.benchmark import QUALITY_FILE
from agrotools.formats.writing import replace_folder

OnDisputed = Literal["keep", "drop"]
_ADDED = "+reviewed"


class Applied(FrozenModel):
    """Result of applying a review."""

    out: str
    kept: int
    edited: tuple[str, ...]
    dropped: dict[str, tuple[str, ...]]
    """ids of dropped samples by reason, the most frequent reason first"""
    disputed: tuple[str, ...]
    """ids of disputed samples, kept unchanged or dropped as requested"""
    undecided: int
    """number of undecided samples, which are kept unchanged"""
    faults: tuple[str, ...]
    """faults that ``agrotools benchmarks check`` finds in the new folder"""


def apply_review(
    material: Material, decisions: Sequence[Decision], out: Path, *, disputed: OnDisputed | None = None
) -> Applied:
    """Write a new benchmark folder to ``out``; the reviewed one is not changed.

    Samples rejected by every reviewer who decided are dropped, edits proposed identically by all are applied, undecided
    samples are kept. ``disputed`` determines what happens to samples on which reviewers differ.

    Raises:
        UsageError: a run is under review; ``out`` overlaps the reviewed folder; or samples are disputed and
            ``disputed`` is None.
        BenchmarkError: no sample would be left, an edit does not fit, or ``out`` is not writable or contains something
            other than a benchmark.
    """
    benchmark = reviewed_benchmark(material)
    root, target = benchmark.root, out.expanduser().resolve()
    if target == root or target.is_relative_to(root) or root.is_relative_to(target):
        raise UsageError(
            f"{out} is, contains or is inside the folder under review", hint="choose another folder with --out"
        )
    by_sample = valid_decisions(decisions, material.contents)
    standings = {sample_id: review_status(by_sample.get(sample_id, [])) for sample_id in material.facts}
    contested = tuple(sample_id for sample_id, standing in standings.items() if standing == "disputed")
    if contested and disputed is None:
        examples = ", ".join(contested[:5]) + (f" and {len(contested) - 5} more" if len(contested) > 5 else "")
        hint = "settle them on the page (filter: disputed), or say --disputed keep or --disputed drop"
        raise UsageError(f"reviewers differ on {len(contested)} samples: {examples}", hint=hint)
    dropped = _dropped(by_sample, standings, contested if disputed == "drop" else ())
    gone = {sample_id for ids in dropped.values() for sample_id in ids}
    changed = tuple(sample_id for sample_id, standing in standings.items() if standing == "edited")
    remaining = list(_remaining(benchmark, by_sample, gone, frozenset(changed)))
    if not remaining:
        raise BenchmarkError("no sample would be left: all were rejected", hint="look at the reasons with --summary")
    with replace_folder(out) as folder:
        remaining = [*map(benchmark.prepare, remaining)]
        copy_files(benchmark.root, remaining, folder)
        _copy_flags(benchmark.root / QUALITY_FILE, folder / QUALITY_FILE, {sample.id for sample in remaining})
        write_benchmark(folder, _header(benchmark, material, len(gone), changed), remaining)
        faults = tuple(f"{fault.where}: {fault.message} ({fault.hint})" for fault in validate_folder(folder))
    return Applied(
        out=str(out),
        kept=len(remaining),
        edited=changed,
        dropped=dropped,
        disputed=contested,
        undecided=sum(standings[one] == "undecided" and one not in gone for one in standings),
        faults=faults,
    )


def _dropped(
    by_sample: Mapping[str, Sequence[Decision]], standings: Mapping[str, str], contested: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return dropped ids by reason, most frequent first; a sample rejected by several has the reason of the first."""
    wording: dict[str, str] = {}
    ids: dict[str, list[str]] = {}
    for sample_id, standing in standings.items():
        if standing == "rejected":
            reason = by_sample[sample_id][0].reason
        elif sample_id in contested:
            reason = "reviewers differ"
        else:
            continue
        key = reason_key(reason)
        ids.setdefault(wording.setdefault(key, reason), []).append(sample_id)
    ordered = Counter({reason: len(sample_ids) for reason, sample_ids in ids.items()}).most_common()
    return {reason: tuple(ids[reason]) for reason, _ in ordered}


def _remaining(
    benchmark: Benchmark, by_sample: Mapping[str, Sequence[Decision]], gone: set[str], changed: frozenset[str]
) -> Iterator[Sample]:
    for sample in benchmark.samples:
        if sample.id in gone:
            continue
        if sample.id not in changed:
            yield sample
            continue
        edits = by_sample[sample.id][0].edits
        assert edits is not None
        try:
            yield apply_edits(sample, edits)
        except ValueError as error:
            raise BenchmarkError(
                f"the edit of sample {sample.id} does not fit it: {error}", hint="decide that sample again on the page"
            ) from error


def _copy_flags(source: Path, target: Path, ids: set[str]) -> None:
    """Copy the automatic flags of the remaining samples unchanged."""
    if not source.is_file():
        return
    with target.open("wb") as file:
        for line in source.read_bytes().splitlines(keepends=True):
            with suppress(ValueError, LookupError, TypeError):
                if orjson.loads(line)["id"] in ids:
                    file.write(line)


def _header(benchmark: Benchmark, material: Material, dropped: int, changed: Sequence[str]):
    """Return the header of the reviewed benchmark, with a new version and its origin."""
    header = benchmark.header
    version = header.version if header.version.endswith(_ADDED) else header.version + _ADDED
    log = material.journal
    review = {
        "of": benchmark.content_hash,
        "journal_sha256": hashlib.sha256(log.read_bytes()).hexdigest() if log.is_file() else None,
        "dropped": dropped,
        "edited": list(changed),
    }
    return header.model_copy(
        update={
            "version": version,
            "metadata": {**header.metadata, "review": {k: v for k, v in review.items() if v is not None}},
        }
    )
