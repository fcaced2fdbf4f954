"""Pack the benchmark ``field``: build it from the annotated images and write what may be distributed.

Makes src/agrotools_benchmarks/data/field.jsonl.xz.

    python training/pack_field.py DATA [BENCHMARK]

The oracle then answers the questions, and ``split_field.py`` decides which of them the tools reach.

``DATA`` holds the data sets (``DATASET/truth.json`` with the repository, commit and path of each file). The data sets
that are left out, with the reason, are in ``UNUSED``. Heads for crop and weeds must have been trained before
(``agrotools tools packs train crop-weed --data DATA``). ``BENCHMARK`` is a folder that was built by an earlier call, to
pack it again; its reference calls do not run again, the oracle does. Where only results of tools changed, and the
oracle scores as before, ``record_again.py`` keeps the questions.
"""

import hashlib
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from field_parts import PARTS, build_field
from field_parts.converted import RECIPES
from field_parts.rejected import without_rejected
from split_field import BEYOND, GROUP, REACHED_KNOWN, REACHED_NEW, with_reach

import agrotools
import agrotools_benchmarks
from agrotools.calling import get_tool
from agrotools.core import Sample
from agrotools.formats.benchmark import Benchmark, content_hash_of, load_folder
from agrotools.loading.pack import write_pack
from agrotools.scoring.metrics import FAS
from agrotools.scoring.statistics import estimate_mean
from agrotools.vision.reading import read_labels
from agrotools_benchmarks.field.load import with_equal_task_types
from agrotools_benchmarks.field.pack import DataSetNote, PackedFile, PackHead, pixel_hash
from agrotools_build.sources.part import listing_of

OUT = Path(agrotools_benchmarks.__file__).parent / "data" / "field.jsonl.xz"
VERSION = "19"
QUICK = 60
"""Number of samples in the quick part, without twins."""
QUICK_BYTES = 20_000_000
"""Most bytes of the photographs of the quick part: a first look should not need a large download."""
UNUSED = {
    "dsifn_cd": (24, "the terms of its data are not stated"),
    "multiband": (3, "its files are in a package of PyPI, not in a repository"),
    "oil_palms": (
        75,
        "its labels miss palms: in three of eight questions two readers counted a quarter to a half more",
    ),
}
"""Data sets that are left out: number of questions that this costs, and the reason."""
NOTES = (
    "scores are means over task types, which count the same; but no question counts more than about eight times as "
    "much as without weights",
    "no questions on farm ponds: no photographs of ponds on two dates with outlines by people could be had",
)
"""What every report says: how questions are weighted, and which task types have none, with the reason."""
IMAGE_KEYS = ("image", "before", "after", "chm", "dsm", "dtm")
"""Keys of an item of ``truth.json`` whose files are shown, in the order of the paths of its source."""


def originals_of(data: Path, name: str) -> dict[str, PackedFile]:
    """Return the files of a data set that questions may show, by SHA-256."""
    found: dict[str, PackedFile] = {}
    for item in json.loads((data / name / "truth.json").read_text("utf-8")):
        keys = [key for key in IMAGE_KEYS if key in item]
        for key, source in zip(keys, item["source"]["paths"], strict=False):
            found |= {each.sha256: each for each in [packed(data, name, item, item[key], source)]}
    return found


def packed(data: Path, name: str, item: dict, local: str, source: str) -> PackedFile:
    content = (data / name / local).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    converted = name == "cwfid"
    return PackedFile(
        path=f"files/{digest[:16]}{Path(local).suffix.lower()}",
        sha256=digest,
        size=None if converted else len(content),
        repo=item["source"]["repo"],
        commit=item["source"]["commit"],
        source=source,
        local=f"{name}/{local}",
        convert="jpeg" if converted else "",
    )


def masks_of(data: Path) -> list[PackedFile]:
    """Return the masks that the heads for crop and weeds learn from."""
    masks: list[PackedFile] = []
    for item in json.loads((data / "cwfid/truth.json").read_text("utf-8")):
        for key, source, convert in zip(
            ("mask", "vegetation"), item["source"]["paths"][1:3], ("classes", "plants"), strict=True
        ):
            plane = read_labels(data / "cwfid" / item[key]).classes.astype(np.uint8)
            place = {
                "repo": item["source"]["repo"],
                "commit": item["source"]["commit"],
                "source": source,
            }
            local = f"cwfid/{item[key]}"
            masks.append(
                PackedFile.model_validate(
                    {
                        "path": local,
                        "sha256": pixel_hash(plane),
                        "local": local,
                        "convert": convert,
                        **place,
                    }
                )
            )
    return masks


def pack(data: Path, benchmark: Benchmark) -> PackHead:
    """Write the pack of a benchmark that was built from ``data``; return its head."""
    used = {file.sha256 for sample in benchmark.samples for file in sample.files}
    files: list[PackedFile] = []
    notes: list[DataSetNote] = []
    for name in PARTS:
        listing = listing_of(f"field.{name}")
        own = {file.sha256: file for file in RECIPES.values() if file.local.startswith(f"{name}/")}
        originals = {} if name in UNUSED else originals_of(data, name)
        ours = [file for digest, file in {**originals, **own}.items() if digest in used]
        questions = sum(
            sample.id.rpartition("-")[0] == listing.part for sample in benchmark.samples
        )
        cost, reason = UNUSED.get(name, (questions, ""))
        notes.append(
            DataSetNote(
                folder=name,
                source=listing.source,
                photographs=len(ours),
                questions=cost,
                unused=reason,
            )
        )
        files += ours
    known = {file.sha256 for file in files}
    if lost := used - known:
        raise SystemExit(f"{len(lost)} files of the samples are in no truth.json")
    by_path = {file.sha256: file.path for file in files}
    by_id = sorted(benchmark.samples, key=lambda sample: sample.id)
    samples = with_equal_task_types(by_id)
    sizes = {file.path: file.size or _stored_size(benchmark, file) for file in files}
    more = {
        "version": VERSION,
        "quick": quick_ids(samples, sizes),
        "metadata": metadata_of(benchmark.header.metadata, samples),
    }
    header = benchmark.header.model_copy(update=more)
    for sample in samples:
        if wrong := [file.path for file in sample.files if by_path[str(file.sha256)] != file.path]:
            raise SystemExit(f"{sample.id}: {wrong[0]} is stored under another name")
    head = PackHead(
        header=header,
        content_hash=content_hash_of(header, samples),
        data_sets=tuple(notes),
        files=tuple(files),
        head_files=tuple(masks_of(data)),
    )
    described = {
        file.path: file.model_dump(exclude={"path"}, exclude_defaults=True) for file in head.files
    }
    facts = head.model_dump(
        mode="json", include={"content_hash", "data_sets", "head_files"}, exclude_defaults=True
    )
    write_pack(OUT, header, described, samples, **facts)
    return head


def _stored_size(benchmark: Benchmark, file: PackedFile) -> int:
    """Return the bytes of a converted file, as it is stored here."""
    return (benchmark.root / file.path).stat().st_size


def quick_ids(samples: Sequence[Sample], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the ids of the quick part: each task and answer type in proportion, at least once; twins together.

    ``sizes``: bytes of the files by path. Questions whose photographs would make the part too large are passed over,
    but never the first of a task and answer type.
    """
    strata: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for sample in samples:
        strata[sample.task_type, sample.answer_type].append(sample.id)
    places: list[tuple[bool, float, str]] = []
    for members in strata.values():
        members.sort(key=lambda each: zlib.crc32(each.encode()))
        places += [(at > 0, (at + 0.5) / len(members), each) for at, each in enumerate(members)]
    files_of = {sample.id: {file.path for file in sample.files} for sample in samples}
    ids, shown = set[str](), set[str]()
    for is_more, _, each in sorted(places):
        more_files = shown | files_of[each]
        fits = sum(sizes[path] for path in more_files) <= QUICK_BYTES
        if len(ids) < max(QUICK, len(strata)) and (fits or not is_more):
            ids.add(each)
            shown = more_files
    return tuple(
        sorted(ids | {sample.twin for sample in samples if sample.twin and sample.id in ids})
    )


def metadata_of(metadata: Mapping[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the metadata of the build, with the versions of the tools that the reference calls used."""
    steps = (step for sample in samples if sample.reference for step in sample.reference.steps)
    tools = {name: get_tool(name).version for name in sorted({step.tool for step in steps})}
    kept = {key: value for key, value in metadata.items() if key not in ("absent", "notes")}
    return {**kept, "tools": tools, "notes": [*NOTES]}


def described_data_sets(
    listed: Sequence[Mapping[str, Any]], samples: Sequence[Sample], files: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the data sets of a pack, with their numbers of questions and files; those that were not listed come last.

    ``files``: descriptions of the files that samples show, by path.
    """
    notes = {str(each["folder"]): DataSetNote.model_validate(each) for each in listed}
    for name in PARTS:
        if name not in notes and name not in UNUSED:
            listing = listing_of(f"field.{name}")
            notes[name] = DataSetNote(folder=name, source=listing.source, questions=0)
    described: list[dict[str, Any]] = []
    for name, note in notes.items():
        if not note.unused:
            part = listing_of(f"field.{name}").part
            questions = sum(sample.id.rpartition("-")[0] == part for sample in samples)
            own = sum(facts["local"].startswith(f"{name}/") for facts in files.values())
            note = note.model_copy(update={"questions": questions, "photographs": own})
        if note.unused or note.questions:
            described.append(note.model_dump(mode="json", exclude_defaults=True))
    return described


def oracle_scores(benchmark: Path, out: Path) -> dict[str, float]:
    """Return the score of the oracle, which runs the reference calls, for each sample."""
    run = agrotools.evaluate(benchmark, "baseline:oracle", mode="end-to-end", out=out)
    return {row["sample"]: row[FAS] for row in run.rows()}


def print_sides(samples: Sequence[Sample], scores: Mapping[str, float]) -> None:
    """Print the score of the oracle on each side of the split."""
    for side in (REACHED_KNOWN, REACHED_NEW, BEYOND):
        ours = [sample for sample in samples if sample.groups[GROUP] == side]
        print(
            side,
            estimate_mean(
                [scores[sample.id] for sample in ours], [sample.cluster for sample in ours]
            ),
        )


def main() -> None:
    data = Path(sys.argv[1]).resolve()
    with TemporaryDirectory() as scratch:
        used = [name for name in PARTS if name not in UNUSED]
        if len(sys.argv) > 2:
            built = Path(sys.argv[2])
            for name in used:
                PARTS[name](data / name, Path(scratch))  # so that the converted files are known
        else:
            chosen, built = Path(scratch) / "data", Path(scratch) / "field"
            chosen.mkdir()
            for name in used:
                (chosen / name).symlink_to(data / name)
            build_field(chosen, built)
        benchmark, scores = load_folder(built), oracle_scores(built, Path(scratch) / "oracle")
        samples = with_reach(without_rejected(benchmark.samples), scores)
        print_sides(samples, scores)
        head = pack(data, replace(benchmark, samples=samples))
    photographs = sum(note.photographs for note in head.data_sets)
    questions = sum(note.questions for note in head.data_sets if not note.unused)
    print(
        f"{questions} questions, {photographs} photographs, {OUT.stat().st_size:,} bytes, {head.content_hash}"
    )


if __name__ == "__main__":
    main()
