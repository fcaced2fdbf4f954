"""Facts of a benchmark in ``benchmark.toml`` beside its plug-in: names, places, tools, metrics, counts of its paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from agrotools.core import Sample, Slot
from agrotools.core.files import read_table
from agrotools.plugin import BenchmarkPlugin, Download, ErrorSource, ExpectedCount, MetricInfo, deferred

Facts = Mapping[str, Any]


def read_facts(module_file: str, name: str = "benchmark.toml") -> Facts:
    """Return the facts beside a module."""
    return read_table(Path(module_file).with_name(name))


def plugin_of(
    facts: Facts, counted: Mapping[str, Callable[[Slot], bool]] | None = None, **parts: Any
) -> BenchmarkPlugin:
    """Return the plug-in with these facts.

    Args:
        counted: predicates for the slots that a metric counts, by their names in the facts.
        parts: fields that are no plain facts.
    """
    plain = {field.name: facts[field.name] for field in fields(BenchmarkPlugin) if field.name in facts}
    metrics = {
        name: MetricInfo(**{**metric, "slots": (counted or {})[metric["slots"]]})
        for name, metric in facts.get("metrics", {}).items()
    }
    read = {
        "download": Download(**facts["download"]),
        "expected": tuple(map(_expected_count, facts["expected"])),
        "tools": {name: f"agrotools.benchmarks.{room}.tools:{name}" for name, room in facts.get("tools", {}).items()},
        "metrics": metrics,
        "error_sources": tuple(ErrorSource(**source) for source in facts.get("error_sources", ())),
    }
    return BenchmarkPlugin(**{**plain, **read, **parts})


def loaders_of(name: str, module: str, **functions: str) -> dict[str, Any]:
    """Return fields of a plug-in that are functions of a module, imported when called; they get its name first."""
    return {part: partial(deferred(f"{module}:{function}"), name) for part, function in functions.items()}


def differences_of(facts: Facts, family: str) -> dict[str, str]:
    """Return short descriptions of how each corrected metric differs, in the order of tables, by metric id."""
    return {f"{family}.{name}": text for name, text in facts["differences"].items()}


def listed_tools(sample: Sample) -> Sequence[str]:
    """Return the tools that the entry of a sample lists, which are not always those that are offered (Agent-X)."""
    names = sample.metadata.get("tools")
    return [*map(str, names)] if isinstance(names, list) else sample.toolset


def _expected_count(row: Mapping[str, Any]) -> ExpectedCount:
    """Return a count of the paper; ``where``: groups of the samples that are counted."""

    def measure(samples: Sequence[Sample]) -> int:
        where = row.get("where", {}).items()
        chosen = [sample for sample in samples if all(sample.groups.get(group) == value for group, value in where)]
        if "answers" in row:
            return sum(sample.answer_type in row["answers"] for sample in chosen)
        if "with_tools" in row:
            return sum(len(listed_tools(sample)) == row["with_tools"] for sample in chosen)
        return _COUNTS[row["count"]](chosen)

    return ExpectedCount(row["name"], row["published"], row["decides"], measure)


_COUNTS: Mapping[str, Callable[[Sequence[Sample]], int]] = {
    "samples": len,
    "calls": lambda samples: sum(len(sample.reference.steps) for sample in samples if sample.reference),
    "files": lambda samples: len({file.path for sample in samples for file in sample.files}),
    "tools": lambda samples: len({tool for sample in samples for tool in listed_tools(sample)}),
}
"""Counts by their names in the facts; calls are those of all references, files and tools are distinct ones."""
