"""Loader of GTA (arXiv 2407.08713), its scoring rules, and the metrics and tables of its paper for a run.

docs/gta-thinkgeo-agent-x.md describes how the entries of the published files become samples. The rules are ported from
the behaviour of its scorer (github.com/open-compass/GTA, Apache-2.0, as of 2026: a category without a gold call has F1
0, while earlier versions divided by zero).
"""

from functools import partial
from pathlib import Path

from agrotools.core import Sample
from agrotools.core.progress import Progress, no_progress
from agrotools.core.registry import deferred
from agrotools.loading.facts import differences_of
from agrotools.report.contracts import Reporting
from agrotools.scoring.prediction_format import PredictionFormat
from agrotools_benchmarks._dialogs.entries import DialogForm, read_entries
from agrotools_benchmarks._dialogs.loading import (
    FileTable,
    Findings,
    PublishedBenchmark,
    ReadSet,
    entries_of,
)
from agrotools_benchmarks._dialogs.plugin_parts import table_layouts
from agrotools_benchmarks._dialogs.published_scorer import Rules
from agrotools_benchmarks._dialogs.scores import compare_dialogues, prediction_content, scoring_by
from agrotools_benchmarks.gta.plugin import FACTS, PAPER_RUN


def read_gta(path: Path, _: object = None, progress: Progress = no_progress) -> ReadSet:
    """Read all entries of a ``dataset.json`` and files beside it; BenchmarkError if it cannot be read or is empty."""
    entries = entries_of(path)
    findings = Findings()
    table = FileTable(path.parent)
    form = DialogForm(
        FACTS["image_tools"], [*FACTS["tools"]], prefix="gta", family="general", source="GTA"
    )
    samples = read_entries(entries, form, table, _with_groups, findings, progress)
    return ReadSet(path.parent, (path,), len(entries), samples, findings)


def _with_groups(sample: Sample) -> Sample:
    steps = len(sample.reference.steps) if sample.reference else 0
    groups = {"answer": sample.task_type, "steps": str(steps), "tools": str(len(sample.toolset))}
    return sample.model_copy(update={"groups": groups})


GTA = PublishedBenchmark(FACTS, read_gta)
RULES = Rules(
    name="gta",
    categories={f"{category[0]}_f1": tools for category, tools in FACTS["tool_categories"].items()},
    image_tools=FACTS["image_tools"],
    image_metric="ans_acc_imggen",
    recall=lambda hits, gold: hits / gold if gold else 0.0,
    guards_answers=True,
)
SCORING = scoring_by(RULES, PAPER_RUN)
FORMAT = PredictionFormat(
    "GTA",
    "gta",
    partial(compare_dialogues, rules=RULES),
    differences_of(FACTS, "gta"),
    refused={
        "judgements": ("GTA has no judge: --judgements is for thinkgeo and agentx", "leave it out")
    },
    write=partial(prediction_content, PAPER_RUN),
)
REPORTING = Reporting(
    tables=partial(
        deferred("agrotools_benchmarks._dialogs.report:published_tables"),
        "gta",
        table_layouts(FACTS),
    )
)
