"""Running of steps on the files of a sample, with the limits that calls have in ``agrotools eval``."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, cast

from pydantic import JsonValue

from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    Arguments,
    FrozenModel,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    ToolCall,
)
from agrotools.core.record import iter_refs, literal_value, reference_words, update_literals
from agrotools_build.composing.reasons import CannotCompose
from agrotools_build.references import keep_artifacts, steps_in, steps_used
from agrotools_tools import AGROTOOLS


class TraceStep(FrozenModel):
    """A call as somebody wrote it. ``arguments`` may hold ``{"$ref": "steps[0].observation.FIELD"}``."""

    tool: str
    arguments: Arguments = {}
    thought: str = ""


class StepRunner:
    """Runs steps in tool workers; an async context manager.

    ``root``: folder of the benchmark, to which the paths of files are relative. ``kept_in``: folder in whose
    ``artifacts`` small files that calls make are kept; ``root`` by default. ``toolset``: tools that may be called.
    ``backends``: by tool, where not the default.
    """

    def __init__(
        self,
        root: Path,
        *,
        kept_in: Path | None = None,
        toolset: Sequence[str] = AGROTOOLS,
        backends: Mapping[str, str] | None = None,
    ) -> None:
        self.root, self.kept_in, self.toolset = root, kept_in or root, tuple(toolset)
        # The default limits of time and memory are those of a run.
        self._executor = ToolExecutor(cache=ResultCache(), backends=backends)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._executor)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def run_trace(
        self, files: Sequence[SampleFile], steps: Sequence[TraceStep]
    ) -> ReferenceTrajectory:
        """Run all steps in order. A step after a failed one runs, too, with what it refers to left empty.

        Small files that calls made are kept, as in a build.
        """
        placed = tuple(
            file.model_copy(update={"path": str(self.root / file.path)}) for file in files
        )
        done: list[ReferenceStep] = []
        results: list[dict[str, JsonValue] | None] = []
        with TemporaryDirectory(prefix="agrotools-") as scratch:
            workspace = Workspace(placed, Path(scratch), self.root)
            for number, step in enumerate(steps):
                _check_references(number, step)
                arguments = cast(Arguments, update_literals(dict(step.arguments), results))
                plain = cast(Arguments, literal_value(dict(arguments)))
                call = ToolCall(tool=step.tool, arguments=plain)
                outcome = await self._executor.run(call, workspace, self.toolset)
                observation = outcome.observation
                results.append(observation.result)
                made = ReferenceStep(tool=step.tool, arguments=arguments, thought=step.thought)
                done.append(made.model_copy(update={"observation": observation}))
                keep_artifacts(observation, workspace.artifacts, self.kept_in)
        return ReferenceTrajectory(steps=grouped(done))


def _check_references(number: int, step: TraceStep) -> None:
    """Raise CannotCompose if a step refers to itself or a later one."""
    for _, target, _ in iter_refs(dict(step.arguments)):
        used = steps_in(target)
        if not used or max(used) >= number:
            wanted = reference_words(target)
            raise CannotCompose(
                "call_fails",
                f"step {number + 1} ({step.tool}) refers to {wanted}, which is no result of an earlier step",
                hint="refer to a result of an earlier step",
            )


def grouped(steps: Sequence[ReferenceStep]) -> tuple[ReferenceStep, ...]:
    """Return the steps; those in a row that use no result of each other are one group, because they may swap."""
    runs: list[list[int]] = []
    for number, step in enumerate(steps):
        if runs and not steps_used(step.arguments) & {*runs[-1]}:
            runs[-1].append(number)
        else:
            runs.append([number])
    group_of: dict[int, int] = {}
    for group, members in enumerate(run for run in runs if len(run) > 1):
        group_of.update(dict.fromkeys(members, group))
    return tuple(
        step.model_copy(update={"group": group_of.get(number)}) for number, step in enumerate(steps)
    )


def results_of(steps: Sequence[ReferenceStep]) -> list[dict[str, JsonValue] | None]:
    """Return the true result of each step; what its tool returned where no source knows better, None if it failed."""
    return [
        step.truth if step.truth is not None else step.observation and step.observation.result
        for step in steps
    ]
