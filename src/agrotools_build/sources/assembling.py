"""Assembly of a benchmark folder from parts: questions are chosen, calls run, files copied."""

import importlib.metadata
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pydantic import JsonValue

from agrotools.core import BenchmarkError, Sample
from agrotools.core.progress import Progress
from agrotools.core.texts import count_text
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader
from agrotools.formats.writing import canary_of, replace_folder
from agrotools_build.building import Group, build_samples
from agrotools_build.choosing import (
    Chosen,
    Marginals,
    choose,
    choose_allocated,
    composition,
    whole_question,
)
from agrotools_build.export.folder import write_benchmark
from agrotools_build.sources.part import REACH, Part
from agrotools_build.templates.thing import Subject
from agrotools_build.templates.wording import sentences
from agrotools_tools import AGROTOOLS

SEED = 20140906


def assembled(
    parts: Sequence[Part],
    out: Path,
    *,
    name: str,
    version: str,
    description: str,
    progress: Progress,
    metadata: Mapping[str, JsonValue] | None = None,
    shares: Mapping[str, JsonValue] | None = None,
    paired: Callable[[list[Chosen], list[Subject]], Sequence[Chosen]] | None = None,
    wanted: Marginals | None = None,
    most_of_a_file: int | None = None,
    people_decide: bool = False,
    may_share: bool = False,
    backends: Mapping[str, str] | None = None,
) -> BenchmarkHeader:
    """Write the benchmark of these parts to ``out``, completely or not at all; its licence lists the terms of all.

    ``shares``: entries for absent parts in the metadata. ``paired`` returns the chosen questions with unanswerable
    twins, which the numbers of samples do not count. ``wanted``: marginals of all parts together; without them, the
    questions of each part are spread evenly over its templates. ``most_of_a_file``: most answerable questions that show
    the same file, unless ``wanted`` is given. ``may_share``: as in :func:`~agrotools_build.choosing.choose`.
    ``people_decide``, ``backends``: as in :func:`~agrotools_build.building.build_samples`. BenchmarkError: most chains
    break, or nothing can be asked.
    """
    with replace_folder(out) as partial:
        (partial / FILES_FOLDER).mkdir()
        groups: list[Group] = []
        chosen_of_parts = (
            chosen_evenly(parts, most_of_a_file, may_share=may_share)
            if wanted is None
            else _chosen_together(parts, wanted)
        )
        asked: Sequence[Chosen] = list(chain.from_iterable(chosen_of_parts))
        if paired is not None:
            asked = paired([*asked], [subject for part in parts for subject in part.subjects])
        used_paths = {file.path for item in asked for file in item.instance.files}
        for part in parts:
            subjects = {id(subject) for subject in part.subjects}
            ours = [item for item in asked if id(item.subject) in subjects]
            for stored in sorted(used_paths & part.files.keys()):
                shutil.copyfile(part.files[stored], partial / stored)
            groups.append(Group(part.name, part.source.name, ours))
        samples, tally = build_samples(
            groups,
            partial,
            toolset=AGROTOOLS,
            progress=progress,
            backends=backends,
            people_decide=people_decide,
        )
        if not samples:
            why = "".join(f"; {count} {reason}" for reason, count in tally.dropped.items())
            raise BenchmarkError(
                f"nothing can be asked: no sample is left{why}",
                hint="check the data and what is asked",
            )
        samples = [_with_reach(sample, parts) for sample in samples]
        metadata_of_parts: dict[str, JsonValue] = {}
        shares_of_parts: dict[str, JsonValue] = {}
        left_out: dict[str, JsonValue] = {}
        for part, chosen in zip(parts, chosen_of_parts, strict=True):
            of_part = [sample for sample in samples if sample.id.rpartition("-")[0] == part.name]
            metadata_of_parts |= {**part.metadata, **part.described(of_part)}
            key = part.name if part.name == name else part.name.replace("-", "_")
            shares_of_parts[key] = _share(
                part, len(chosen), sum(sample.answerable for sample in of_part)
            )
            if dropped := {reason: count for reason, count in part.dropped.items() if count}:
                left_out[part.name] = {**dropped}
        # Several parts may be of one source.
        sources = tuple({part.source.name: part.source for part in parts}.values())
        header = BenchmarkHeader(
            name=name,
            version=version,
            licence="; ".join(f"{source.name}: {source.licence}" for source in sources).rstrip(".")
            + ". Questions and reference calls: Apache-2.0.",
            description=description,
            canary=canary_of(name, version),
            toolset=AGROTOOLS,
            sources=sources,
            metadata={
                "agrotools": importlib.metadata.version("agrotools"),
                "seed": SEED,
                **metadata_of_parts,
                "shares": {**shares_of_parts, **(shares or {})},
                **({"left_out": left_out} if left_out else {}),
                **({"composition": composition(samples, wanted)} if wanted else {}),
                **tally.metadata(),
                **(metadata or {}),
            },
        )
        write_benchmark(partial, header, samples)
    return header


def chosen_evenly(
    parts: Sequence[Part], most_of_a_file: int | None, *, may_share: bool = False
) -> list[list[Chosen]]:
    """Return the questions of each part, spread evenly over its templates.

    No two parts share a sentence; with ``may_share``, no two ask the same.
    """
    chosen_of_parts: list[list[Chosen]] = []
    used: set[str] = set()
    parts_of_words = whole_question if may_share else sentences
    for part in parts:
        chosen = choose(
            part.subjects,
            part.questions,
            part.samples,
            SEED,
            used,
            most_of_a_file=most_of_a_file,
            may_share=may_share,
        )
        used.update(each for item in chosen for each in parts_of_words(item.query))
        chosen_of_parts.append(chosen)
    return chosen_of_parts


def _chosen_together(parts: Sequence[Part], wanted: Marginals) -> list[list[Chosen]]:
    stocks = {part.name: (part.subjects, part.questions) for part in parts}
    shares = {part.name: part.samples for part in parts}
    chosen = choose_allocated(stocks, replace(wanted, sources=shares), SEED)
    subjects = [{id(subject) for subject in part.subjects} for part in parts]
    return [[item for item in chosen if id(item.subject) in ours] for ours in subjects]


def _with_reach(sample: Sample, parts: Sequence[Part]) -> Sample:
    part = next(part for part in parts if part.name == sample.id.rpartition("-")[0])
    side = part.reach.get(str(sample.template))
    return sample.model_copy(update={"groups": {**sample.groups, REACH: side}}) if side else sample


def _share(part: Part, chosen: int, made: int) -> dict[str, JsonValue]:
    """Return the number of samples wanted of a part, the number made, and the reason for a shortfall."""
    reasons: list[str] = []
    if chosen < part.samples:
        pictures = count_text(len(part.files), "picture")
        reasons.append(
            f"{part.samples - chosen} could not be asked: not enough different questions about {pictures}"
        )
    if made < chosen:
        reasons.append(f"{chosen - made} broke")
    return {
        "wanted": part.samples,
        "made": made,
        **({"why": "; ".join(reasons)} if reasons else {}),
    }
