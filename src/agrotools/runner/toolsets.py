"""Tools of a run: those that each sample offers (``--tools``, to measure what long lists cost), and their back-ends.

``needed`` offers the tools of the reference calls, which is *privileged* information: the list hints at the solution.
``+N`` adds N of the sample's other tools. They depend only on the sample's id, so that every model is offered the same
ones, and those of ``+2`` are among those of ``+4``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from agrotools.agents.llm import PROTOCOLS
from agrotools.benchmarks import Benchmark
from agrotools.core import Protocol, Sample, UsageError
from agrotools.core.base import suggestion
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import LazySamples, facts_of
from agrotools.tools import get_tool

RECORDED = "recorded"
"""Back-end of a tool that is not executed: its calls return the recorded observations of the reference."""
EVERY_TOOL = "*"
"""Name that stands for all tools of a benchmark in a table of back-ends."""
ALL_TOOLS, NEEDED_TOOLS = "all", "needed"
_SELECTION = re.compile(rf"{ALL_TOOLS}|{NEEDED_TOOLS}|\+(?:0|[1-9]\d{{0,3}})")


def checked_selection(selection: str) -> str:
    """Return ``selection`` if it is ``all``, ``needed`` or ``+N``; ValueError if it is something else."""
    if not _SELECTION.fullmatch(selection):
        raise ValueError(f"should be {ALL_TOOLS}, {NEEDED_TOOLS} or +N, e.g. +4")
    return NEEDED_TOOLS if selection == "+0" else selection


def offered_tools(sample: Sample, selection: str) -> tuple[str, ...]:
    """Return the tools of ``sample`` that a run with this selection offers, in the order of its toolset."""
    if selection == ALL_TOOLS or sample.reference is None:
        return sample.toolset
    needed = set(sample.reference.tools)
    others = [tool for tool in sample.toolset if tool not in needed]
    name = min(sample.id, sample.twin or sample.id)  # the same for twins, so that the list does not tell them apart
    others.sort(key=lambda tool: sha256(f"{name}/{tool}".encode()).digest())
    n_others = 0 if selection == NEEDED_TOOLS else int(selection)
    offered = needed.union(others[:n_others])
    return tuple(tool for tool in sample.toolset if tool in offered)


def with_offered_tools(benchmark: Benchmark, selection: str, protocol: Protocol) -> Benchmark:
    """Return ``benchmark`` with the selected tools in each of its samples.

    Raises:
        UsageError: not all samples have reference calls, or the protocol is a published one.
    """
    if selection == ALL_TOOLS:
        return benchmark
    if protocol not in PROTOCOLS:
        raise UsageError(
            f"--tools {selection} would change the published protocol {protocol}",
            hint=f"add --protocol {next(iter(PROTOCOLS))}, whose scores are not compared with published ones",
        )
    samples: Sequence[Sample] = benchmark.samples
    facts = facts_of(samples)
    without = next((name for name, has in zip(facts.ids, facts.reference, strict=True) if not has), None)
    if without:
        raise UsageError(
            f"--tools {selection} needs reference calls, and not all samples of {benchmark.name} have any, "
            f"e.g. {without}",
            hint="run it without --tools, or choose another benchmark",
        )

    def offered(at: int) -> Sample:
        sample = samples[at]
        return sample.model_copy(update={"toolset": offered_tools(sample, selection)})

    return replace(benchmark, samples=LazySamples(facts, offered))


def backend_by_tool(backends: Mapping[str, str], toolset: Sequence[str]) -> dict[str, str]:
    """Return ``backends`` with the entry for all tools expanded to each tool of ``toolset`` without an entry.

    Raises:
        UsageError: a tool outside ``toolset`` has the back-end ``recorded``.
    """
    by_tool = {tool: backend for tool, backend in backends.items() if tool != EVERY_TOOL}
    for tool, backend in by_tool.items():
        if backend == RECORDED and tool not in toolset:
            fault = f"the benchmark has no tool {tool!r} whose calls could be recorded"
            raise UsageError(fault, hint=suggestion(tool, toolset))
    if EVERY_TOOL in backends:
        return {**dict.fromkeys(toolset, backends[EVERY_TOOL]), **by_tool}
    return by_tool


def tool_data(tools: Sequence[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of the data files on this machine for each tool that is executed; empty if it has none."""
    hashes: dict[str, str] = {}
    for name in tools:
        if (backend := backends.get(name)) != RECORDED:
            files = sorted(path for path in get_tool(name).files_for(backend) if path.is_file())
            content = b"".join(path.name.encode() + b"\0" + sha256_of_file(path).encode() for path in files)
            hashes[name] = sha256(content).hexdigest() if files else ""
    return hashes
