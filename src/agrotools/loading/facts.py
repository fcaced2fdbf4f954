"""Facts of a benchmark in ``benchmark.toml`` beside its plug-in: names, places, tools, metrics, counts of its paper."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.agents.protocols import RunProtocol
from agrotools.core import Sample, Slot
from agrotools.core.files import read_table
from agrotools.loading.contract import (
    BenchmarkFiles,
    BenchmarkPlugin,
    Download,
    ExpectedCount,
    Paper,
    PublishedFiles,
    Targets,
)
from agrotools.scoring.contracts import ErrorSource, MetricInfo

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark
    from agrotools.loading.benchmarks import Loading

Facts = Mapping[str, Any]


def read_facts(module_file: str, name: str = "benchmark.toml") -> Facts:
    """Return the facts beside a module."""
    return read_table(Path(module_file).with_name(name))


def plugin_of(
    facts: Facts,
    counted: Mapping[str, Callable[[Slot], bool]] | None = None,
    *,
    load: "Callable[[Loading], Benchmark]",
    slots: tuple[type[Slot], ...] = (),
    metrics: Mapping[str, MetricInfo] | None = None,
    protocols: Mapping[str, RunProtocol] | None = None,
    figures: PublishedFiles | None = None,
    **files: Callable[..., Any],
) -> BenchmarkPlugin:
    """Return the plug-in with these facts.

    Args:
        counted: predicates for the slots that a metric counts, by their names in the facts.
        files: functions of :class:`~agrotools.plugin.BenchmarkFiles`.
    """
    plain = {
        name: facts[name]
        for name in ("name", "about", "scope", "takes_options", "without_tools")
        if name in facts
    }
    described = facts.get("metrics", {}).items()
    download = Download(**facts["download"]) if "download" in facts else None
    return BenchmarkPlugin(
        **plain,
        load=load,
        files=BenchmarkFiles(
            facts.get("needs", "nothing"),
            download,
            takes_readings=facts.get("takes_readings", False),
            **files,
        ),
        slots=slots,
        metrics=metrics
        or {
            name: MetricInfo(**{**each, "slots": (counted or {})[each["slots"]]})
            for name, each in described
        },
        tools={name: f"{module}:{name}" for name, module in facts.get("tools", {}).items()},
        protocols=protocols or {},
        paper=Paper(
            figures,
            tuple(map(_expected_count, facts.get("expected", ()))),
            facts.get("tool_categories", {}),
            tuple(ErrorSource(**source) for source in facts.get("error_sources", ())),
        ),
        targets=Targets(**facts.get("targets", {})),
    )


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
        chosen = [
            sample
            for sample in samples
            if all(sample.groups.get(group) == value for group, value in where)
        ]
        if "answers" in row:
            return sum(sample.answer_type in row["answers"] for sample in chosen)
        if "with_tools" in row:
            return sum(len(listed_tools(sample)) == row["with_tools"] for sample in chosen)
        return _COUNTS[row["count"]](chosen)

    return ExpectedCount(row["name"], row["published"], row["decides"], measure)


_COUNTS: Mapping[str, Callable[[Sequence[Sample]], int]] = {
    "samples": len,
    "calls": lambda samples: sum(
        len(sample.reference.steps) for sample in samples if sample.reference
    ),
    "files": lambda samples: len({file.path for sample in samples for file in sample.files}),
    "tools": lambda samples: len({tool for sample in samples for tool in listed_tools(sample)}),
}
"""Counts by their names in the facts; calls are those of all references, files and tools are distinct ones."""
