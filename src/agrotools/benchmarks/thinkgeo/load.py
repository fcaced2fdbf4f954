"""ThinkGeo (Shabbir et al. 2025, arXiv 2505.23752): 486 questions on satellite and aerial images, with 14 tools.

436 are on optical images, 50 on radar (SAR). Asked from the files as they are published. How its entries become
samples: docs/gta-thinkgeo-agent-x.md.
"""

from functools import partial
from pathlib import Path
from typing import Any, Literal

from agrotools.benchmarks._dialogs.entries import DialogForm, ReadEntry, read_entry
from agrotools.benchmarks._dialogs.files import FileTable
from agrotools.benchmarks._dialogs.findings import EntryFindings, Findings, PublishedSettings
from agrotools.benchmarks._dialogs.json_files import entries_of, read_json
from agrotools.benchmarks._dialogs.layouts import Layout, find_file, how_to_get
from agrotools.benchmarks._dialogs.samples import ReadSet, benchmark_of, samples_of
from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.benchmarks.thinkgeo.plugin import TOOLS
from agrotools.benchmarks.thinkgeo.use_cases import difficulties, use_case
from agrotools.core import BenchmarkError, Sample
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark, SourceNote

VERSION = "1"
THINKGEO = SourceNote(
    name="ThinkGeo",
    licence="Apache-2.0 (its repository), CC BY 4.0 (its page at Hugging Face)",
    url="https://github.com/mbzuai-oryx/ThinkGeo",
    citation="Shabbir et al. 2025, ThinkGeo: Evaluating Tool-Augmented Agents for Remote Sensing (arXiv 2505.23752)",
)
THINKGEO_LAYOUT = Layout(
    name="thinkgeo",
    files=("ThinkGeoBench.json",),
    folders=(
        *("ThinkGeo_dataset", "data/ThinkGeo_dataset", "opencompass/data/ThinkGeo_dataset"),
        *("thinkgeo/ThinkGeo_dataset", "ThinkGeo/opencompass/data/ThinkGeo_dataset", "ThinkGeo", "thinkgeo"),
    ),
    tree="DIR/ThinkGeo_dataset/ThinkGeoBench.json and DIR/ThinkGeo_dataset/image/ (radar images: a second JSON file "
    "with SAR in its name, beside it or in a folder with SAR in its name)",
    get_it="https://huggingface.co/datasets/MBZUAI/ThinkGeo",
)


class ThinkGeoSettings(PublishedSettings):
    """The options of ``agrotools eval thinkgeo``."""

    split: Literal["optical", "sar", "all"] = "optical"
    """Which images: the 436 questions of the paper's main table, the 50 on radar images, or both."""


def load_thinkgeo(loading: Loading) -> Benchmark:
    """ThinkGeo below ``loading.data_root``.

    Raises:
        UsageError: no folder was given, or an option that there is not.
        BenchmarkError: the files are not there or cannot be read, or entries cannot be used.
    """
    settings = settings_of(ThinkGeoSettings, "thinkgeo", loading.options)
    read = read_thinkgeo(find_file(THINKGEO_LAYOUT, loading.data_root), settings.split, loading.progress)
    description = "questions on satellite and aerial images, with tools"
    return benchmark_of("thinkgeo", VERSION, description, THINKGEO, tuple(TOOLS), read, settings)


def read_thinkgeo(path: Path, split: str = "optical", progress: Progress = no_progress) -> ReadSet:
    """All entries of ``ThinkGeoBench.json``, of its SAR split, or of both; file paths relative to the JSON's folder.

    Raises:
        BenchmarkError: a file cannot be read or holds no entries, or there is none of the SAR split.
    """
    root = path.parent
    findings = Findings()
    table = FileTable(root)
    parts = [("optical", path)] if split in ("optical", "all") else []
    parts += [("sar", find_sar(path))] if split in ("sar", "all") else []
    samples: list[Sample] = []
    count = 0
    for sensor, file in parts:
        entries = entries_of(read_json(file), file)
        count += len(entries)
        findings.part = "sar " if sensor == "sar" else ""
        prefix = "thinkgeo" if sensor == "optical" else "thinkgeo-sar"
        folder = file.parent.relative_to(root).as_posix().removeprefix(".")
        form = DialogForm("thinkgeo", prefix, family="remote_sensing", source="ThinkGeo", folder=folder)
        own = samples_of(entries, partial(_read_one, form, table, sensor), findings, progress, f"{sensor} entries")
        samples += _with_difficulty(own) if sensor == "optical" else own
    return ReadSet(root, tuple(file for _, file in parts), count, samples, findings)


def find_sar(path: Path) -> Path:
    """The file of the SAR split: another JSON file with SAR in its name, or in a folder with SAR in its name.

    Raises:
        BenchmarkError: there is none.
    """
    folders = sorted(each for each in path.parent.iterdir() if each.is_dir() and "sar" in each.name.casefold())
    beside = [each for each in sorted(path.parent.glob("*.json")) if "sar" in each.name.casefold()]
    inside = [each for folder in folders for each in sorted(folder.glob("*.json")) if each.name != "toolmeta.json"]
    for each in (*beside, *inside):
        if each != path:
            return each
    raise BenchmarkError(f"{path.parent} holds no JSON file of the SAR split", hint=how_to_get(THINKGEO_LAYOUT))


def _read_one(
    form: DialogForm, table: FileTable, sensor: str, position: int, entry: Any, found: EntryFindings
) -> Sample | None:
    read = read_entry(position, entry, form, table, found)
    return _grouped(read, sensor) if read else None


def _grouped(read: ReadEntry, sensor: str) -> Sample:
    sample = read.sample
    steps = sample.reference.steps if sample.reference else ()
    about = use_case(sample.query, [file.name for file in sample.files], [step.tool for step in steps])
    groups = {"use_case": about, "sensor": sensor, "answer": read.kind, "steps": str(len(steps))}
    return sample.model_copy(update={"groups": groups, "task_type": about})


def _with_difficulty(samples: list[Sample]) -> list[Sample]:
    return [
        sample.model_copy(update={"groups": {"difficulty": difficulty, **sample.groups}})
        for sample, difficulty in zip(samples, difficulties(samples), strict=True)
    ]


__all__ = ["THINKGEO", "THINKGEO_LAYOUT", "ThinkGeoSettings", "find_sar", "load_thinkgeo", "read_thinkgeo"]
