"""From the parts that data sets contribute to a benchmark folder: questions chosen, calls run, files copied."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from agrotools import __version__
from agrotools.construct.building import build_samples
from agrotools.construct.choosing import choose
from agrotools.construct.export import FILES_FOLDER, replacing, write_benchmark
from agrotools.construct.progress import Progress
from agrotools.construct.sources.part import Part
from agrotools.core import Sample
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.tools import AGROTOOLS

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
) -> BenchmarkHeader:
    """Write the benchmark of these parts to ``out``, whole or not at all.

    Returns:
        The header, whose licence names the terms of every data set that was used.

    Raises:
        BenchmarkError: ``out`` holds something else than a benchmark, or a chain fails on true values.
        InfrastructureError: no tool worker can be started.
    """
    with replacing(out) as made:
        (made / FILES_FOLDER).mkdir()
        samples: list[Sample] = []
        of_parts: dict[str, JsonValue] = {}
        for part in parts:
            chosen = choose(part.subjects, part.questions, part.samples, SEED)
            shown = {file.path for item in chosen for file in item.asked.files}
            for stored in sorted(shown & part.files.keys()):
                shutil.copyfile(part.files[stored], made / stored)
            of_part = build_samples(
                chosen, made, prefix=part.name, source=part.source.name, toolset=AGROTOOLS, progress=progress
            )
            samples += of_part
            of_parts |= {**part.metadata, **part.described(of_part)}
        header = BenchmarkHeader(
            name=name,
            version=version,
            licence="; ".join(f"{part.source.name}: {part.source.licence}" for part in parts).rstrip(".")
            + ". Questions and reference calls: Apache-2.0.",
            description=description,
            toolset=AGROTOOLS,
            sources=tuple(part.source for part in parts),
            metadata={"agrotools": __version__, "seed": SEED, **of_parts, **(metadata or {})},
        )
        write_benchmark(made, header, samples)
    return header
