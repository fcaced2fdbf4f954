"""Loader of GTA (Wang et al. 2024, arXiv 2407.08713): 229 human-written questions on 252 images, with 14 tools.

Reads the published files. docs/gta-thinkgeo-agent-x.md describes how their entries become samples.
"""

from pathlib import Path

from agrotools.benchmarks._dialogs.entries import DialogForm, read_entries
from agrotools.benchmarks._dialogs.files import FileTable, entries_of
from agrotools.benchmarks._dialogs.loading import Findings, PublishedBenchmark, ReadSet
from agrotools.benchmarks.gta.plugin import FACTS
from agrotools.core import Sample
from agrotools.core.base import Progress, no_progress


def read_gta(path: Path, _: object = None, progress: Progress = no_progress) -> ReadSet:
    """Read all entries of a ``dataset.json`` and files beside it; BenchmarkError if it cannot be read or is empty."""
    entries = entries_of(path)
    findings = Findings()
    table = FileTable(path.parent)
    form = DialogForm(FACTS["image_tools"], [*FACTS["tools"]], prefix="gta", family="general", source="GTA")
    samples = read_entries(entries, form, table, _with_groups, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings)


def _with_groups(sample: Sample) -> Sample:
    steps = len(sample.reference.steps) if sample.reference else 0
    groups = {"answer": sample.task_type, "steps": str(steps), "tools": str(len(sample.toolset))}
    return sample.model_copy(update={"groups": groups})


GTA = PublishedBenchmark(FACTS, read_gta)
