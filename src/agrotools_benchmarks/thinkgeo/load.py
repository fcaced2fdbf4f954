"""Loader of ThinkGeo (Shabbir et al. 2025, arXiv 2505.23752): 486 questions on remote sensing images, with 14 tools.

436 questions are on optical images, 50 on radar images (SAR). Reads the published files; docs/gta-thinkgeo-agent-x.md
describes how their entries become samples.

Use cases are detected from words in the question, the file names and the tools. This is **a rule of this package**,
because the published file does not name them: the use case with the most matching words wins, the first of the list in
a tie, and ``other`` without any match. Difficulty follows section 3.3 of the paper.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from agrotools.core import BenchmarkError, Sample
from agrotools.core.files import read_table
from agrotools.core.progress import Progress, no_progress
from agrotools.loading.checking import FileCheck
from agrotools_benchmarks._dialogs.entries import DialogForm, read_entries
from agrotools_benchmarks._dialogs.loading import (
    FileTable,
    Findings,
    PublishedBenchmark,
    PublishedSettings,
    ReadSet,
    entries_of,
    file_check,
)
from agrotools_benchmarks.thinkgeo.plugin import FACTS, PLUGIN


class ThinkGeoSettings(PublishedSettings):
    """Options of ``agrotools eval thinkgeo``."""

    split: Literal["optical", "sar", "all"] = "optical"
    """Set of questions: the 436 of the paper's main table, the 50 on radar images, or both."""


def read_thinkgeo(path: Path, split: str = "optical", progress: Progress = no_progress) -> ReadSet:
    """Read all entries of ``ThinkGeoBench.json``, of its SAR split, or of both; paths are relative to the JSON's
    folder.

    Raises:
        BenchmarkError: a file cannot be read or contains no entries, or the requested SAR split is missing.
    """
    root = path.parent
    findings = Findings()
    table = FileTable(root)
    parts = [("optical", path)] if split in ("optical", "all") else []
    parts += [("sar", find_sar(path))] if split in ("sar", "all") else []
    samples: list[Sample] = []
    count = 0
    for sensor, file in parts:
        entries = entries_of(file)
        count += len(entries)
        is_sar = sensor == "sar"
        findings.part, prefix = ("sar ", "thinkgeo-sar") if is_sar else ("", "thinkgeo")
        folder = file.parent.relative_to(root).as_posix().removeprefix(".")
        tools = [*FACTS["tools"]]
        form = DialogForm(
            FACTS["image_tools"], tools, prefix, "remote_sensing", source="ThinkGeo", folder=folder
        )
        with_groups = partial(_with_groups, sensor)
        of_sensor = read_entries(
            entries, form, table, with_groups, findings, progress, f"{sensor} entries"
        )
        for sample, level in zip(of_sensor, difficulties(of_sensor), strict=True):
            groups = sample.groups if is_sar else {"difficulty": level, **sample.groups}
            samples.append(sample.model_copy(update={"groups": groups}))
    return ReadSet(root, tuple(file for _, file in parts), count, samples, findings)


def find_sar(path: Path) -> Path:
    """Find the SAR split: a JSON file with SAR in its name or its folder's; BenchmarkError if there is none."""
    folders = sorted(
        each for each in path.parent.iterdir() if each.is_dir() and "sar" in each.name.casefold()
    )
    beside = [each for each in sorted(path.parent.glob("*.json")) if "sar" in each.name.casefold()]
    inside = [
        each
        for folder in folders
        for each in sorted(folder.glob("*.json"))
        if each.name != "toolmeta.json"
    ]
    for each in (*beside, *inside):
        if each != path:
            return each
    raise BenchmarkError(
        f"{path.parent} contains no JSON file of the SAR split", hint=THINKGEO.layout.source
    )


def _with_groups(sensor: str, sample: Sample) -> Sample:
    steps = sample.reference.steps if sample.reference else ()
    about = use_case(
        sample.query, [file.name for file in sample.files], [step.tool for step in steps]
    )
    groups = {
        "use_case": about,
        "sensor": sensor,
        "answer": sample.task_type,
        "steps": str(len(steps)),
    }
    return sample.model_copy(update={"groups": groups, "task_type": about})


THINKGEO = PublishedBenchmark(
    FACTS,
    lambda path, settings, progress: read_thinkgeo(path, settings.split, progress),
    ThinkGeoSettings,
)


def check_thinkgeo(data_root: Path | None, progress: Progress) -> FileCheck:
    """Check the files below ``data_root``, including the SAR split if it exists.

    Raises:
        UsageError, BenchmarkError: as for :meth:`PublishedBenchmark.load`.
    """
    path = THINKGEO.layout.find(data_root)
    try:
        find_sar(path)
        split = "all"
    except BenchmarkError:
        split = "optical"
    read = read_thinkgeo(path, split, progress)
    notes = ["the SAR split is not there: 50 questions fewer"] if len(read.files) < 2 else []
    has_sar = any(sample.groups.get("sensor") == "sar" for sample in read.samples)
    optical = tuple(each for each in PLUGIN.paper.counts if not each.name.startswith("radar"))
    return file_check(read, THINKGEO.layout, notes, None if has_sar else optical)


_WORDS = {
    name: re.compile(rf"(?<![A-Za-z])(?:{'|'.join(words)})(?![A-Za-z])", re.IGNORECASE)
    for name, words in read_table(Path(__file__).with_name("use_cases.toml")).items()
}
"""Use cases in the order of figure 2 of the paper, each with a pattern of words that indicate it."""

COMPLEX_WORDS = (
    "estimate",
    "compare",
    "distribution",
    "count",
    "area",
    "how many",
    "orientation",
    "proximity",
)
"""Words that make a question harder, according to the paper."""
EASY_OF, QUESTIONS = 281, 436
"""Number of easy questions, and of all optical ones; the paper does not publish its threshold."""


def use_case(query: str, names: Sequence[str], tools: Sequence[str]) -> str:
    """Return the use case that matches most words of a question."""
    text = " ".join([query, *(name.replace("_", " ").replace("-", " ") for name in names), *tools])
    counts = {
        name: len({match.casefold() for match in words.findall(text)})
        for name, words in _WORDS.items()
    }
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "other"


def difficulties(samples: Sequence[Sample]) -> list[str]:
    """Return ``easy`` or ``hard`` for each sample.

    Samples are ranked by the number of complex words in the question, then by steps, then by position; the first 281 of
    436 (or the same share) are easy. This reproduces the paper's totals, but probably not its exact sets.
    """
    ranks = sorted(range(len(samples)), key=lambda place: (*_complexity(samples[place]), place))
    easy = set(ranks[: round(len(samples) * EASY_OF / QUESTIONS)])
    return ["easy" if place in easy else "hard" for place in range(len(samples))]


def _complexity(sample: Sample) -> tuple[int, int]:
    query = sample.query.casefold()
    return sum(word in query for word in COMPLEX_WORDS), len(
        sample.reference.steps
    ) if sample.reference else 0
