"""Add data sets to the packed benchmark ``field``, or build theirs again; all other questions stay as they are.

Makes src/agrotools_benchmarks/data/field.jsonl.xz, as ``pack_field.py`` does.

    python training/add_to_field.py DATA WORK NAME...

``DATA`` holds the prepared data sets (``prepare_field.py``), ``WORK`` takes the built questions. Raise ``VERSION`` in
``pack_field.py`` first. ``pack_field.py`` builds all data sets; this is for the case that one of them is not at hand,
or that reviewed questions should not be drawn again. What rests on all questions is set anew: weights, levels of
difficulty, and the group of what tools reach.
"""

import argparse
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from field_parts import (
    DESCRIPTION,
    MOST_OF_A_PHOTOGRAPH,
    PARTS,
    as_asked,
    twins_within_sources,
)
from field_parts.converted import RECIPES
from field_parts.rejected import without_rejected
from pack_field import OUT, VERSION, originals_of, quick_ids
from pydantic import JsonValue
from revise_field import recorded_scores
from revise_packs import carry_over
from split_field import with_reach

from agrotools.calling import get_tool
from agrotools.core import Sample
from agrotools.core.progress import no_progress
from agrotools.formats.benchmark import (
    Benchmark,
    BenchmarkHeader,
    content_hash_of,
    load_folder,
    with_clusters,
)
from agrotools.loading.pack import write_pack
from agrotools_benchmarks.field.load import with_equal_task_types
from agrotools_benchmarks.field.pack import (
    DataSetNote,
    PackedFile,
    PackHead,
    read_head,
    read_samples,
)
from agrotools_build.building import with_levels
from agrotools_build.sources.assembling import assembled
from agrotools_build.sources.part import listing_of


def build(names: Sequence[str], data: Path, work: Path) -> Benchmark:
    """Return the questions of these data sets."""
    scratch, built = work / "converted", work / "built"
    for folder in (scratch, built):
        shutil.rmtree(folder, ignore_errors=True)
    scratch.mkdir(parents=True)
    parts = [as_asked(PARTS[name](data / name, scratch)) for name in names]
    assembled(
        parts,
        built,
        name="field",
        version="3",
        description=DESCRIPTION,
        progress=no_progress,
        most_of_a_file=MOST_OF_A_PHOTOGRAPH,
        people_decide=True,
        paired=twins_within_sources(parts),
    )
    benchmark = load_folder(built)
    return replace(benchmark, samples=without_rejected(benchmark.samples))


def files_of(
    names: Sequence[str], data: Path, samples: Sequence[Sample]
) -> dict[str, list[PackedFile]]:
    """Return the files that the questions show, by data set."""
    used = {file.sha256 for sample in samples for file in sample.files}
    found: dict[str, list[PackedFile]] = {}
    for name in names:
        own = {file.sha256: file for file in RECIPES.values() if file.local.startswith(f"{name}/")}
        both = {**originals_of(data, name), **own}
        found[name] = [file for digest, file in both.items() if digest in used]
    return found


def part_of(sample: Sample) -> str:
    return sample.id.rpartition("-")[0]


def add(names: Sequence[str], data: Path, work: Path) -> None:
    """Write the pack with the data sets ``names``, built from ``data``."""
    head, before, built = read_head(), read_samples(), build(names, data, work)
    files = files_of(names, data, built.samples)
    listings = {name: listing_of(f"field.{name}") for name in names}
    counts = Counter(part_of(sample) for sample in built.samples)
    added = [
        DataSetNote(
            folder=name,
            source=listing.source,
            photographs=len(files[name]),
            questions=counts[listing.part],
        )
        for name, listing in listings.items()
    ]
    notes = [*(note for note in head.data_sets if note.folder not in names), *added]
    every_file = [file for file in head.files if file.local.partition("/")[0] not in names]
    every_file += [file for some in files.values() for file in some]
    parts = {listing.part for listing in listings.values()}
    samples = [*(each for each in before if part_of(each) not in parts), *built.samples]
    # The benchmark has unanswerable questions, so each of its questions says that a refusal is possible.
    shared = {"canary": head.header.canary, "may_abstain": True}
    samples = [each.model_copy(update=shared) for each in samples]
    samples = with_levels(with_clusters(sorted(samples, key=lambda sample: sample.id)))
    samples = with_equal_task_types(with_reach(samples, recorded_scores(samples)))
    header = header_of(head, built, notes, samples, every_file)
    packed = PackHead(
        header=header,
        content_hash=content_hash_of(header, samples),
        data_sets=tuple(notes),
        files=tuple(every_file),
        head_files=head.head_files,
    )
    write(packed, samples)
    carry_over("field", before, samples, OUT.parent)
    print(f"{len(samples)} questions, {len(every_file)} files, {packed.content_hash}")
    for note in added:
        print(f"{note.folder}: {note.questions} questions, {note.photographs} files")


def header_of(
    head: PackHead,
    built: Benchmark,
    notes: Sequence[DataSetNote],
    samples: Sequence[Sample],
    files: Sequence[PackedFile],
) -> BenchmarkHeader:
    """Return the header of the whole benchmark: sources, terms, and what is known of the build of each part."""
    used = {note.source.name: note.source for note in notes if not note.unused}
    terms = "; ".join(f"{name}: {source.licence}" for name, source in used.items()).rstrip(".")
    metadata = {**head.header.metadata}
    for key in ("shares", "left_out"):
        of_parts = cast("dict[str, JsonValue]", built.header.metadata.get(key) or {})
        metadata[key] = {**cast("dict[str, JsonValue]", metadata[key]), **of_parts}
    metadata["tools"] = versions_of_tools(metadata, built.samples)
    stored = {file.path: built.root / file.path for file in files}
    known = {path: place.stat().st_size for path, place in stored.items() if place.is_file()}
    sizes = {file.path: file.size or known.get(file.path, _CONVERTED_BYTES) for file in files}
    return head.header.model_copy(
        update={
            "version": VERSION,
            "sources": tuple(used.values()),
            "licence": f"{terms}. Questions and reference calls: Apache-2.0.",
            "quick": quick_ids(samples, sizes),
            "metadata": metadata,
        }
    )


def versions_of_tools(
    metadata: Mapping[str, JsonValue], built: Sequence[Sample]
) -> dict[str, JsonValue]:
    """Return the versions of the tools whose results are recorded: those that the pack names, and those of new calls.

    SystemExit: a new call is of another version than the recorded ones of this tool.
    """
    known = cast("dict[str, JsonValue]", metadata["tools"])
    called = {step.tool for each in built if each.reference for step in each.reference.steps}
    new = {tool: get_tool(tool).version for tool in sorted(called)}
    if other := [tool for tool, version in new.items() if known.get(tool, version) != version]:
        raise SystemExit(f"run record_again.py first: {', '.join(other)} has another version now")
    return {**known, **new}


_CONVERTED_BYTES = 100_000
"""Taken for a converted file of a data set that is not built here; most are pictures of this size."""


def write(head: PackHead, samples: Sequence[Sample]) -> None:
    described = {
        file.path: file.model_dump(mode="json", exclude={"path"}, exclude_defaults=True)
        for file in head.files
    }
    facts = head.model_dump(
        mode="json", include={"content_hash", "data_sets", "head_files"}, exclude_defaults=True
    )
    write_pack(OUT, head.header, described, samples, **facts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=PARTS)
    arguments = parser.parse_args()
    add(arguments.names, arguments.data.resolve(), arguments.work.resolve())


if __name__ == "__main__":
    main()
