"""``agrotools validate --rerun``: run every reference call again with the tools of this machine.

A benchmark records the observations that the tools returned when it was built. Another machine, another version of
Python or of a numeric library, or more threads may give different values; scores that depend on the recorded values are
then not valid on that machine.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from pydantic import JsonValue

from agrotools.benchmarks.sample_checks import differing
from agrotools.core import Arguments, FrozenModel, Observation, Sample, ToolCall
from agrotools.core.base import Progress, no_progress
from agrotools.core.record import literal_value
from agrotools.formats.benchmark import Benchmark
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace

_TIMEOUT_S = 300.0
"""Time limit of a call in seconds, the same as when a benchmark is built."""
_ARTIFACT = ("name", "kind", "media_type")
"""Artifact properties that must be equal. Hashes are not compared because image compression depends on the library
version."""


class Difference(FrozenModel):
    """Value that differs from the recorded one. ``where`` is its place in the observation; a missing value is None."""

    sample: str
    step: int
    tool: str
    where: str
    recorded: JsonValue
    now: JsonValue


@dataclass
class Rerun:
    """Result of a rerun.

    ``calls`` is the number of calls that were run again, ``same_bytes`` the number of their artifacts with the recorded
    content.
    """

    samples: int
    calls: int = 0
    not_recorded: int = 0
    """Number of steps without a recorded observation, which are not run."""
    artifacts: int = 0
    same_bytes: int = 0
    differences: list[Difference] = field(default_factory=list)


async def rerun_references(
    benchmark: Benchmark, *, workers: int = 2, threads: int = 1, progress: Progress = no_progress
) -> Rerun:
    """Run every reference call of ``benchmark`` again, without the result cache, and compare the observations.

    Each call receives its recorded literal arguments, so that a difference in one call does not affect later ones.
    Files that are passed on to later calls are the newly created ones. Tools use the back-ends that the header names.

    Args:
        threads: number of threads that numeric libraries may use in each of the ``workers`` processes. Builds and
            evaluations use one.

    Raises:
        UsageError: the benchmark names a tool or back-end that is not available.
        InfrastructureError: no tool worker can be started.
    """
    rerun = Rerun(len(benchmark.samples))
    total = sum(len(_recorded(sample)) for sample in benchmark.samples)
    waiting = iter(benchmark.samples)
    progress("calls run again", 0, total)
    backends = benchmark.header.backends
    async with ToolExecutor(workers, _TIMEOUT_S, backends=backends, threads=threads) as executor:

        async def take() -> None:
            for sample in waiting:
                await _rerun_sample(sample, benchmark.root, executor, rerun)
                progress("calls run again", rerun.calls, total)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(take())
    order = {sample_id: place for place, sample_id in enumerate(sample.id for sample in benchmark.samples)}
    rerun.differences.sort(key=lambda difference: (order[difference.sample], difference.step))
    return rerun


async def _rerun_sample(sample: Sample, root: Path, executor: ToolExecutor, rerun: Rerun) -> None:
    placed = tuple(file.model_copy(update={"path": str(root / file.path)}) for file in sample.files)
    steps = sample.reference.steps if sample.reference else ()
    recorded = _recorded(sample)
    rerun.not_recorded += len(steps) - len(recorded)
    with TemporaryDirectory(prefix="agrotools-") as scratch:
        workspace = Workspace(placed, Path(scratch), root)
        for index, before in recorded:
            step = steps[index]
            arguments = cast(Arguments, literal_value(dict(step.arguments)))
            call = ToolCall(tool=step.tool, arguments=arguments)
            now = (await executor.run(call, workspace, sample.toolset)).observation
            rerun.calls += 1
            rerun.artifacts += len(now.artifacts)
            known = {artifact.sha256 for artifact in before.artifacts}
            rerun.same_bytes += sum(artifact.sha256 in known for artifact in now.artifacts)
            for where, old, new in differing(_comparable(before), _comparable(now)):
                rerun.differences.append(
                    Difference(sample=sample.id, step=index, tool=step.tool, where=where, recorded=old, now=new)
                )


def _recorded(sample: Sample) -> Sequence[tuple[int, Observation]]:
    steps = sample.reference.steps if sample.reference else ()
    return [(index, step.observation) for index, step in enumerate(steps) if step.observation is not None]


def _comparable(observation: Observation) -> JsonValue:
    error = observation.error.model_dump(mode="json") if observation.error else None
    artifacts: list[JsonValue] = [
        {key: getattr(artifact, key) for key in _ARTIFACT} for artifact in observation.artifacts
    ]
    return {"result": observation.result, "error": error, "artifacts": artifacts}


_NUMBERED = re.compile(r"\[\d+\]")


def kind_of_place(where: str) -> str:
    """Remove list indices from a place: ``result.regions[3].area_pct`` becomes ``result.regions[].area_pct``."""
    return _NUMBERED.sub("[]", where)
