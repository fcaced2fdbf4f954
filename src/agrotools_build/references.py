"""Reference trajectories: calls that refer to each other, run with the real tools and with true values.

One rule decides for all sources what happens to a chain in which a call fails. An error that is an answer about the
picture (nothing found, low confidence) may be wrong; the sample stays, with its truth. A tool that lacks a back-end on
this machine tells nothing about the sample either: it stays too and is counted, because a user with a trained pack or
a vision model can run it. If a tool breaks down, or a call fails on true values, the sample is useless: it is dropped,
and the reason is recorded.
"""

import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from pydantic import JsonValue

from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    Arguments,
    BenchmarkError,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    ToolCall,
    UnresolvedRef,
)
from agrotools.core.errors import ErrorInfo, ToolErrorKind
from agrotools.core.files import artifact_path
from agrotools.core.record import (
    REF_PATTERN,
    Results,
    iter_refs,
    literal_value,
    resolve_ref,
    resolved_value,
    update_literals,
)

MISSING_BACKEND: ToolErrorKind = "backend_unavailable"
_ANSWERS: tuple[ToolErrorKind, ...] = ("nothing_found", "low_confidence", "shape_mismatch")
"""Errors that are answers about the picture, possibly wrong ones: a tool may take two pictures for misaligned ones."""
_BREAKDOWNS: tuple[ToolErrorKind, ...] = ("tool_failed", "timeout", "limit")
_VLM = "ask a vision model (--backend {tool}=vlm)"
_PACK = (
    f"use a pack (agrotools tools packs train, then eval --backend {{tool}}=pack:NAME), or {_VLM}"
)
_BACKEND_HINTS = {
    "diagnose_pest_disease": _PACK, "identify_weed": _PACK, "count_objects": _VLM
}  # fmt: skip
"""Instructions for obtaining a missing back-end, by tool."""


class ChainBroken(BenchmarkError):
    """A chain that gives no sample; ``reason`` is a short text that is the same for all chains that fail alike."""

    def __init__(self, reason: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


def check_observed(index: int, tool: str, error: ErrorInfo | None, *, follows: bool) -> None:
    """Raise ChainBroken if the tool broke down, or rejected arguments that come from the source itself.

    ``follows``: an argument comes from an earlier call. What follows from a wrong earlier answer (a region without
    pixels, an unknown name) is no error of the chain, and the sample stays.
    """
    marker_not_found = (
        error and error.kind == "missing_metadata" and error.argument == "scale_marker"
    )
    if error is None or marker_not_found or error.kind in (MISSING_BACKEND, *_ANSWERS):
        return
    if error.kind in _BREAKDOWNS:
        why = f"step {index + 1} ({tool}) could not be run: {error.message}"
        hint = (
            "a benchmark is built with working tools only; try again on a machine with less to do"
        )
        raise ChainBroken(f"{tool}: {error.kind}", why, hint=hint)
    if not follows:
        raise ChainBroken(
            f"{tool}: {error.kind}",
            f"step {index + 1} ({tool}) refuses its arguments: {error.message}",
        )


@dataclass
class Tally:
    """Outcomes of the chains of a build.

    ``run``: number of chains; ``dropped``: chains without a sample, by reason; ``lacking``: samples that need a
    back-end that this machine lacks, by tool; ``first``: the first error of a dropped chain.
    """

    run: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    first: BenchmarkError | None = None

    def keep(self, sample: Sample) -> None:
        """Count the tools of a sample that lack a back-end on this machine."""
        steps = sample.reference.steps if sample.reference else ()
        errors = {
            step.tool: step.observation.error
            for step in steps
            if step.observation and step.observation.error
        }
        self.lacking.update(tool for tool, error in errors.items() if error.kind == MISSING_BACKEND)

    def check(self) -> None:
        """Raise BenchmarkError if more than half of the chains broke, which points to a general fault."""
        broke = sum(self.dropped.values())
        if self.first is not None and 2 * broke > self.run:
            why = f"{broke} of {self.run} chains of calls broke, such as: {self.first.message}"
            raise BenchmarkError(
                why, hint=self.first.hint or "see agrotools doctor"
            ) from self.first

    def metadata(self) -> dict[str, JsonValue]:
        """Return the counts for the header of a benchmark; empty if nothing was dropped or lacks a back-end."""
        entries: dict[str, JsonValue] = {
            "dropped": {**self.dropped},
            "needs_backend": {**self.lacking},
        }
        return {name: counts for name, counts in entries.items() if counts}


def build_notes(metadata: Mapping[str, JsonValue]) -> list[str]:
    """Return a line for each kind of samples that are missing, dropped, or need a back-end that this machine lacks."""

    def table(key: str) -> Mapping[str, Any]:
        return (
            cast("Mapping[str, Any]", value) if isinstance(value := metadata.get(key), dict) else {}
        )

    shares = [(source, facts) for source, facts in table("shares").items() if "why" in facts]
    lines = [
        f"{source}: {facts['made']} of {facts['wanted']} samples ({facts['why']})"
        for source, facts in shares
    ]
    if composed := table("composition"):
        made = ", ".join(
            f"{name} {reached} ({total})" for name, (reached, total) in composed["reached"].items()
        )
        lines.append(f"composition, in brackets as published: {made}")
        lines.append(
            f"task types without a question: {', '.join(composed['absent_task_types']) or 'none'}"
        )
    left_out = {f"{source}, left out": reasons for source, reasons in table("left_out").items()}
    for what, reasons in {**left_out, "dropped": table("dropped")}.items():
        if reasons:
            lines.append(
                f"{what}: {', '.join(f'{count} {reason}' for reason, count in reasons.items())}"
            )
    for tool, count in table("needs_backend").items():
        many = "samples need" if count != 1 else "sample needs"
        hint = _BACKEND_HINTS.get(
            tool, "see its back-ends: agrotools tools describe {tool}"
        ).format(tool=tool)
        lines.append(f"{count} {many} a back-end of {tool} that this machine lacks: {hint}")
    return lines


MOST_KEPT_BYTES = 200_000
"""Maximum size of artifacts that are kept; overlays of whole photos would make a benchmark ten times as large."""


@dataclass(frozen=True)
class PlannedCall:
    """A call of a chain before it is run. ``arguments`` may hold :func:`ref` objects.

    ``truth`` is the result of a perfect tool. None means that the tool itself is exact (``calculate``, ``plot``): its
    truth is its result when the earlier steps returned their truth.
    """

    tool: str
    arguments: Arguments
    truth: dict[str, JsonValue] | None = None
    group: int | None = None
    thought: str = ""
    lacking: str = ""
    """Why no back-end of this machine can answer the call, which is then not run; empty if it is run."""


def steps_used(arguments: Arguments) -> set[int]:
    """Return the steps whose results are used in the arguments of a call."""
    return {used for _, target, _ in iter_refs(dict(arguments)) for used in steps_in(target)}


def steps_behind(numbers: Collection[int], steps: Sequence[ReferenceStep]) -> set[int]:
    """Return ``numbers`` with the steps whose results they use, directly or through others; unknown numbers stay."""
    reached = {*numbers}
    waiting = [*reached]
    while waiting:
        number = waiting.pop()
        if number < len(steps):
            more = steps_used(steps[number].arguments) - reached
            reached |= more
            waiting += more
    return reached


def steps_in(text: str) -> set[int]:
    """Return the steps that a reference or an expression names."""
    return {int(match["step"]) for match in REF_PATTERN.finditer(text)}


def ref(step: int, path: str) -> dict[str, JsonValue]:
    """Return a reference to a field of an earlier step's observation; its value is filled in when recorded."""
    return {"$ref": f"steps[{step}].observation.{path}"}


async def record_reference(
    calls: Sequence[PlannedCall],
    files: Sequence[SampleFile],
    root: Path,
    executor: ToolExecutor,
    toolset: Sequence[str],
    *,
    to_failure: bool = False,
) -> ReferenceTrajectory:
    """Run a chain and record the observations of the real tools together with the true results.

    Errors are handled as :mod:`agrotools_build.references` says. Files made by the real tools (masks, charts, small
    overlays) are kept in ``root/artifacts`` for reviewers; no sample lists them, so no policy or tool can reach them.
    ``to_failure``: the question has no answer; the chain ends after a failed call or before a call that lacks a value,
    and the truth is what the real tools return. ChainBroken: the chain gives no sample.
    """
    placed = tuple(file.model_copy(update={"path": str(root / file.path)}) for file in files)
    steps: list[ReferenceStep] = []
    observed: list[dict[str, JsonValue] | None] = []
    truths: list[dict[str, JsonValue]] = []
    with TemporaryDirectory(prefix="agrotools-") as scratch:
        real = Workspace(placed, Path(scratch) / "observed", root)
        perfect = Workspace(placed, Path(scratch) / "true", root)
        for index, call in enumerate(calls):
            if to_failure and (_lacks_value(call, observed) or (observed and observed[-1] is None)):
                break
            arguments = cast(Arguments, update_literals(dict(call.arguments), observed))
            plain = cast(Arguments, literal_value(dict(arguments)))
            if call.lacking:
                observation = Observation(
                    error=ErrorInfo(kind=MISSING_BACKEND, message=call.lacking)
                )
            else:
                observation = (
                    await executor.run(ToolCall(tool=call.tool, arguments=plain), real, toolset)
                ).observation
            follows = to_failure or any(True for _ in iter_refs(dict(call.arguments)))
            check_observed(index, call.tool, observation.error, follows=follows)
            if to_failure:
                truth = (
                    None
                    if observation.result is None
                    else without_artifacts(observation.result, observation)
                )
            else:
                truth = call.truth or await _true_result(
                    index, call, truths, perfect, executor, toolset
                )
                truths.append(truth)
            observed.append(observation.result)
            step = ReferenceStep(
                tool=call.tool, arguments=arguments, group=call.group, thought=call.thought
            )
            steps.append(step.model_copy(update={"observation": observation, "truth": truth}))
        for step in steps:
            keep_artifacts(step.observation, real.artifacts, root)
    return ReferenceTrajectory(steps=tuple(steps))


def keep_artifacts(observation: Observation | None, folder: Path, root: Path) -> None:
    """Copy the small files that a call made in ``folder`` to the artifacts of the benchmark in ``root``."""
    for artifact in observation.artifacts if observation else ():
        source = folder / artifact.name
        is_there = source.is_file() and not source.is_symlink()
        if artifact.sha256 is not None and is_there and source.stat().st_size <= MOST_KEPT_BYTES:
            stored = artifact_path(root, artifact.sha256, source.suffix)
            stored.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, stored)


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
        what = "cannot be had from the truth"
        raise ChainBroken(
            f"{call.tool}: {what}", f"step {index + 1} ({call.tool}) {what}: {error}"
        ) from error
    observation = (
        await executor.run(ToolCall(tool=call.tool, arguments=arguments), workspace, toolset)
    ).observation
    if observation.result is None:
        message = observation.error.message if observation.error else "no result"
        what = "fails on true values"
        raise ChainBroken(
            f"{call.tool}: {what}", f"step {index + 1} ({call.tool}) {what}: {message}"
        )
    return without_artifacts(observation.result, observation)


def without_artifacts(
    result: dict[str, JsonValue], observation: Observation
) -> dict[str, JsonValue]:
    """Return the result without the names of the files that the call created."""
    names = [artifact.name for artifact in observation.artifacts]
    return {name: value for name, value in result.items() if value not in names}


def _lacks_value(call: PlannedCall, observed: Results) -> bool:
    """Return True if an argument refers to a value that an earlier call did not give."""
    try:
        return any(
            resolve_ref(target, observed) is None
            for _, target, _ in iter_refs(dict(call.arguments))
        )
    except UnresolvedRef:
        return True
