"""``agrotools validate --rerun``: every reference call once more with the real tools of this machine.

A benchmark records what the tools observed when it was built. Another machine, another version of Python or of a
numeric library, or more threads may give other values; then scores that rest on the recorded ones do not hold there.
"""

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from pydantic import JsonValue

from agrotools.core import Arguments, FrozenModel, Observation, Sample, ToolCall
from agrotools.core.base import Progress, no_progress
from agrotools.core.record import literal_value
from agrotools.formats.benchmark import Benchmark
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace

_TIMEOUT_S = 300.0
"""As long as a build gives a call."""
_ARTIFACT = ("name", "kind", "media_type")
"""Properties of an artifact that must be equal; the compression of an image depends on the library that writes it."""


class Difference(FrozenModel):
    """A value that came out otherwise. ``where`` is its place in the observation; None is a value that is not there."""

    sample: str
    step: int
    tool: str
    where: str
    recorded: JsonValue
    now: JsonValue


@dataclass
class Rerun:
    """Result of a rerun: ``calls`` that were run again, and the number of their artifacts with the recorded bytes."""

    samples: int
    calls: int = 0
    not_recorded: int = 0
    """Steps without a recorded observation; they are not run."""
    artifacts: int = 0
    same_bytes: int = 0
    differences: list[Difference] = field(default_factory=list)


async def rerun_references(
    benchmark: Benchmark, *, workers: int = 2, threads: int = 1, progress: Progress = no_progress
) -> Rerun:
    """Run every reference call of ``benchmark`` again, without the result cache, and compare what is observed.

    Calls take the literal arguments that are recorded, so that one that differs does not make those after it differ;
    files that calls hand on are those made now. Tools use the back-ends that the header names.

    Args:
        threads: that numeric libraries may use in each of the ``workers`` processes. Builds and evaluations use one.

    Raises:
        UsageError: the benchmark names a tool or back-end that is not there.
        BenchmarkError: its samples can no longer be read.
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


REL_TOL = 1e-4
ABS_TOL = 1e-6
"""So much may a number differ, of the larger one or in all: libraries add up in another order."""
_NUMBERED = re.compile(r"\[\d+\]")


def differing(before: JsonValue, now: JsonValue, where: str = "") -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Each place at which two values differ, with both values; a missing one is None.

    Numbers are equal within :data:`REL_TOL` or :data:`ABS_TOL`; all else must be the same. Lists of other lengths
    differ as a whole.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in (*before, *(key for key in now if key not in before)):
            yield from differing(before.get(key), now.get(key), f"{where}.{key}" if where else key)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from differing(old, new, f"{where}[{index}]")
    elif not _same(before, now):
        yield where, before, now


def kind_of_place(where: str) -> str:
    """A place without the numbers of list elements: ``result.regions[3].area_pct`` as ``result.regions[].area_pct``."""
    return _NUMBERED.sub("[]", where)


def _same(before: JsonValue, now: JsonValue) -> bool:
    if isinstance(before, bool) or isinstance(now, bool):
        return before is now
    if isinstance(before, int | float) and isinstance(now, int | float):
        return math.isclose(before, now, rel_tol=REL_TOL, abs_tol=ABS_TOL)
    return before == now
