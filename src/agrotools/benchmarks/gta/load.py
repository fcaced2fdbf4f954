"""Loader of GTA (Wang et al. 2024, arXiv 2407.08713): 229 human-written questions on 252 images, with 14 tools.

Reads the published files. docs/gta-thinkgeo-agent-x.md describes how their entries become samples.
"""

from pathlib import Path

from agrotools.benchmarks._dialogs.entries import DialogForm, ReadEntry, read_entries
from agrotools.benchmarks._dialogs.files import FileTable, entries_of
from agrotools.benchmarks._dialogs.loading import (
    Findings,
    Layout,
    PublishedSettings,
    ReadSet,
    benchmark_of,
    file_check,
)
from agrotools.benchmarks.checking import FileCheck
from agrotools.benchmarks.gta.plugin import IMAGE_TOOLS, PAPER_RUN, TOOLS
from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.core import Sample
from agrotools.core.base import Progress, no_progress
from agrotools.formats.benchmark import Benchmark, SourceNote

GTA = SourceNote(
    name="GTA",
    licence="Apache-2.0",
    url="https://github.com/open-compass/GTA",
    citation="Wang et al. 2024, GTA: A Benchmark for General Tool Agents (arXiv 2407.08713)",
)
GTA_LAYOUT = Layout(
    name="gta",
    files=("dataset.json",),
    folders=(
        *("gta_dataset", "data/gta_dataset", "opencompass/data/gta_dataset", "GTA/opencompass/data/gta_dataset"),
        *("gta/gta_dataset", "gta/data/gta_dataset", "GTA/data/gta_dataset", "gta", "GTA"),
    ),
    tree="DIR/gta_dataset/dataset.json and DIR/gta_dataset/image/",
    get_it="https://github.com/open-compass/GTA/releases/download/v0.1.0/gta_dataset.zip",
)


class GtaSettings(PublishedSettings):
    """Options of ``agrotools eval gta``."""


def load_gta(loading: Loading) -> Benchmark:
    """Load GTA from ``loading.data_root``.

    Raises:
        UsageError: no folder was given, or an option is unknown.
        BenchmarkError: the files are missing or cannot be read, or entries cannot be used.
    """
    settings = settings_of(GtaSettings, "gta", loading.options)
    read = read_gta(GTA_LAYOUT.find(loading.data_root), loading.progress)
    description = "general questions on images, with tools"
    return benchmark_of("gta", description, GTA, PAPER_RUN, tuple(TOOLS), read, settings)


def check_gta(data_root: Path | None, progress: Progress) -> FileCheck:
    """Check the files below ``data_root``; raises the same errors as :func:`load_gta`."""
    return file_check(read_gta(GTA_LAYOUT.find(data_root), progress), GTA_LAYOUT)


def read_gta(path: Path, progress: Progress = no_progress) -> ReadSet:
    """Read all entries of a ``dataset.json``; file paths are relative to its folder.

    Raises:
        BenchmarkError: the file cannot be read, or holds no entries.
    """
    entries = entries_of(path)
    findings = Findings()
    table = FileTable(path.parent)
    form = DialogForm(IMAGE_TOOLS, prefix="gta", family="general", source="GTA")
    samples = read_entries(entries, form, table, _with_groups, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings)


def _with_groups(read: ReadEntry) -> Sample:
    sample = read.sample
    steps = len(sample.reference.steps) if sample.reference else 0
    groups = {"answer": read.kind, "steps": str(steps), "tools": str(len(sample.toolset))}
    return sample.model_copy(update={"groups": groups})
