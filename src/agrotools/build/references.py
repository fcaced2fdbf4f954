"""Reference trajectories: calls that refer to each other, run with the real tools and with the truth."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from pydantic import JsonValue

from agrotools.build.outcomes import ChainBroken, check_observed
from agrotools.core import (
    Arguments,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    ToolCall,
    UnresolvedRef,
)
from agrotools.core.files import artifact_path
from agrotools.core.refs import Results, iter_refs, literal_value, resolve_ref, resolved_value
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace

MOST_KEPT_BYTES = 200_000
"""Larger artifacts of the reference calls are not kept beside a benchmark: overlays of whole photos would make it ten
times as large."""


@dataclass(frozen=True)
class PlannedCall:
    """A call of a chain before it was run. ``arguments`` may hold :func:`ref` objects.

    ``truth`` is what a perfect tool returns. None means that the tool is exact itself (``calculate``, ``plot``): its
    truth is what it returns when the steps before it returned the truth.
    """

    tool: str
    arguments: Arguments
    truth: dict[str, JsonValue] | None = None
    group: int | None = None
    thought: str = ""


def ref(step: int, path: str) -> dict[str, JsonValue]:
    """A reference to a field of an earlier step's observation; the value beside it is filled in when recorded."""
    return {"$ref": f"steps[{step}].observation.{path}"}


async def record_reference(
    calls: Sequence[PlannedCall],
    files: Sequence[SampleFile],
    root: Path,
    executor: ToolExecutor,
    toolset: Sequence[str],
) -> ReferenceTrajectory:
    """Run a chain: what the real tools observed beside what is true.

    A real tool may find nothing, or leave a field empty that a later call needs; then that error is recorded. A tool
    that breaks or does not end says nothing about the question, and with the truth no call may fail at all
    (:mod:`agrotools.build.outcomes`). What the real tools made (masks, charts, small overlays) is kept in
    ``root/artifacts`` for who reviews the sample; no sample names it among its files, so no policy or tool gets to it.

    Args:
        files: the sample's files, ``path`` relative to ``root``.

    Raises:
        ChainBroken: a tool broke, was stopped, or refuses what the source gave it; a call fails on true values, or
            refers to a field that the truth does not have.
    """
    placed = tuple(file.model_copy(update={"path": str(root / file.path)}) for file in files)
    steps: list[ReferenceStep] = []
    observed: list[dict[str, JsonValue] | None] = []
    truths: list[dict[str, JsonValue]] = []
    with TemporaryDirectory(prefix="agrotools-") as scratch:
        real = Workspace(placed, Path(scratch) / "observed", root)
        perfect = Workspace(placed, Path(scratch) / "true", root)
        for index, call in enumerate(calls):
            arguments = cast(Arguments, _with_literals(dict(call.arguments), observed))
            plain = cast(Arguments, literal_value(dict(arguments)))
            observation = (await executor.run(ToolCall(tool=call.tool, arguments=plain), real, toolset)).observation
            follows = any(True for _ in iter_refs(dict(call.arguments)))
            check_observed(index, call.tool, observation.error, follows=follows)
            truth = call.truth or await _true_result(index, call, truths, perfect, executor, toolset)
            observed.append(observation.result)
            truths.append(truth)
            step = ReferenceStep(tool=call.tool, arguments=arguments, group=call.group, thought=call.thought)
            steps.append(step.model_copy(update={"observation": observation, "truth": truth}))
        for step in steps:
            _keep_artifacts(step.observation, real.artifacts, root)
    return ReferenceTrajectory(steps=tuple(steps))


def _keep_artifacts(observation: Observation | None, made_in: Path, root: Path) -> None:
    for artifact in observation.artifacts if observation else ():
        made = made_in / artifact.name
        if artifact.sha256 is None or made.is_symlink() or not made.is_file():
            continue
        if made.stat().st_size > MOST_KEPT_BYTES:
            continue
        kept = artifact_path(root, artifact.sha256, made.suffix)
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(made, kept)


async def _true_result(
    index: int,
    call: PlannedCall,
    truths: Sequence[dict[str, JsonValue]],
    workspace: Workspace,
    executor: ToolExecutor,
    toolset: Sequence[str],
) -> dict[str, JsonValue]:
    try:
        arguments = cast(Arguments, resolved_value(dict(call.arguments), truths))
    except UnresolvedRef as error:
        raise ChainBroken(
            f"{call.tool}: cannot be had from the truth",
            f"step {index} ({call.tool}) cannot be had from the truth: {error}",
        ) from error
    outcome = await executor.run(ToolCall(tool=call.tool, arguments=arguments), workspace, toolset)
    return _without_artifacts(index, call.tool, outcome.observation)


def _without_artifacts(index: int, tool: str, observation: Observation) -> dict[str, JsonValue]:
    if observation.result is None:
        message = observation.error.message if observation.error else "no result"
        raise ChainBroken(f"{tool}: fails on true values", f"step {index} ({tool}) fails on true values: {message}")
    made = {artifact.name for artifact in observation.artifacts}
    return {name: value for name, value in observation.result.items() if not (isinstance(value, str) and value in made)}


def _with_literals(value: JsonValue, observed: Results) -> JsonValue:
    """``value`` with the observed literal beside each reference; null where nothing was observed."""
    if isinstance(value, dict):
        if "$ref" in value:
            target = cast(str, value["$ref"])
            try:
                return {"$ref": target, "value": resolve_ref(target, observed)}
            except UnresolvedRef:
                return {"$ref": target, "value": None}
        return {key: _with_literals(item, observed) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_literals(item, observed) for item in value]
    return value
