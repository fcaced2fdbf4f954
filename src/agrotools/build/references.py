"""Reference trajectories: calls that refer to each other, run with the real tools and with the truth.

One rule for all sources says what becomes of a chain that does not run to its end. A tool that answers something about
the picture, be it that it finds nothing there or does not know what it sees, may be wrong; the sample stays, with its
truth. A tool that this machine lacks the means for says nothing about the sample either: it stays too, and is counted,
since somebody with a trained pack or a vision model can run it. A tool that breaks, or a call that fails on true
values, makes the sample useless: it is dropped, with the reason.
"""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import cast

from pydantic import JsonValue

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
from agrotools.core.base import ErrorInfo, ToolErrorKind
from agrotools.core.files import artifact_path
from agrotools.core.record import Results, iter_refs, literal_value, resolve_ref, resolved_value
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace

ANSWERS: tuple[ToolErrorKind, ...] = ("nothing_found", "low_confidence", "shape_mismatch")
"""Errors that are answers about the picture; the last where a tool takes two pictures of one place for shifted ones,
since sources see to it that sizes agree."""
UNFOUND: Mapping[ToolErrorKind, str] = MappingProxyType({"missing_metadata": "scale_marker"})
"""Errors that are answers about the picture if they concern this argument: the scale can be taken from a marker in
the picture, and the tool does not find it."""
LACKING: ToolErrorKind = "backend_unavailable"
BREAKDOWNS: tuple[ToolErrorKind, ...] = ("tool_failed", "timeout", "limit")
"""Errors that are the tool's own."""
_VLM = "or ask a vision model (--backend {tool}=vlm)"
BACKEND_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "diagnose_pest_disease": f"train a pack (agrotools packs train), {_VLM}",
        "identify_weed": f"train a pack (agrotools packs train), {_VLM}",
        "count_objects": f"install the extra learned, {_VLM}",
    }
)
"""Instructions for back-ends that a tool lacks."""
_OTHER_HINT = "see its back-ends: agrotools tools describe {tool}"


class ChainBroken(BenchmarkError):
    """A chain that gives no sample. ``reason`` says why in a few words, the same for all chains that break alike."""

    def __init__(self, reason: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


def check_observed(index: int, tool: str, error: ErrorInfo | None, *, follows: bool) -> None:
    """Refuse an error that says something about the chain rather than about the picture.

    Args:
        follows: whether an argument comes from an earlier call. What a wrong answer leads to (a region without pixels,
            a name that nobody knows) is that answer's fault, and stays.

    Raises:
        ChainBroken: the tool broke, or refused what the source itself gave it.
    """
    if error is None or error.kind == LACKING or is_answer(error):
        return
    if error.kind in BREAKDOWNS:
        raise ChainBroken(
            f"{tool}: {error.kind}",
            f"step {index} ({tool}) could not be run: {error.message}",
            hint="a benchmark is built with working tools only; try again on a machine with less to do",
        )
    if not follows:
        raise ChainBroken(f"{tool}: {error.kind}", f"step {index} ({tool}) refuses its arguments: {error.message}")


def is_answer(error: ErrorInfo) -> bool:
    """True if an error says something about the picture: then the tool may be wrong, and the sample stays."""
    if error.kind in ANSWERS:
        return True
    return error.argument is not None and UNFOUND.get(error.kind) == error.argument


@dataclass
class Tally:
    """Outcomes of the chains of a build: number run, number without a sample by reason, and number of samples
    need a back-end that this machine lacks, by tool."""

    run: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    first: BenchmarkError | None = None

    def broke(self, error: ChainBroken) -> None:
        """Count a chain that gives no sample."""
        self.dropped[error.reason] += 1
        self.first = self.first or error

    def keep(self, sample: Sample) -> None:
        """Count the tools for which a sample needs more than there is."""
        steps = sample.reference.steps if sample.reference else ()
        errors = {step.tool: step.observation.error for step in steps if step.observation and step.observation.error}
        self.lacking.update(tool for tool, error in errors.items() if error.kind == LACKING)

    def check(self) -> None:
        """Raises BenchmarkError: more than half of the chains broke, so something else is wrong than a few samples."""
        broke = sum(self.dropped.values())
        if self.first is not None and 2 * broke > self.run:
            raise BenchmarkError(
                f"{broke} of {self.run} chains of calls broke, such as: {self.first.message}",
                hint=self.first.hint or "see agrotools doctor",
            ) from self.first

    def metadata(self) -> dict[str, JsonValue]:
        """For the header of a benchmark; empty where nothing was dropped or lacking."""
        entries: dict[str, JsonValue] = {}
        if self.dropped:
            entries["dropped"] = {**self.dropped}
        if self.lacking:
            entries["needs_backend"] = {**self.lacking}
        return entries


def build_notes(metadata: Mapping[str, JsonValue]) -> list[str]:
    """Notes from a benchmark's metadata on samples that were dropped, that need more than this machine has, or that a
    source could not give: a line each."""
    lines: list[str] = []
    for source, share in _table(metadata, "shares").items():
        facts = share if isinstance(share, dict) else {}
        if "why" in facts:
            lines.append(f"{source}: {facts['made']} of {facts['wanted']} samples ({facts['why']})")
    for source, reasons in _table(metadata, "left_out").items():
        if isinstance(reasons, dict):
            lines.append(f"{source}, left out: {_listed_counts(reasons)}")
    if dropped := _table(metadata, "dropped"):
        lines.append(f"dropped: {_listed_counts(dropped)}")
    for tool, count in _table(metadata, "needs_backend").items():
        many = "samples need" if count != 1 else "sample needs"
        lines.append(f"{count} {many} a back-end of {tool} that this machine lacks: {backend_hint(tool)}")
    return lines


def _table(metadata: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    value = metadata.get(key)
    return value if isinstance(value, dict) else {}


def _listed_counts(reasons: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items())


def backend_hint(tool: str) -> str:
    """Instructions for the back-end that ``tool`` lacks."""
    return BACKEND_HINTS.get(tool, _OTHER_HINT).format(tool=tool)


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
    (:mod:`agrotools.build.references`). What the real tools made (masks, charts, small overlays) is kept in
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


def _keep_artifacts(observation: Observation | None, folder: Path, root: Path) -> None:
    for artifact in observation.artifacts if observation else ():
        source = folder / artifact.name
        if artifact.sha256 is None or source.is_symlink() or not source.is_file():
            continue
        if source.stat().st_size > MOST_KEPT_BYTES:
            continue
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
    artifact_names = {artifact.name for artifact in observation.artifacts}
    return {
        name: value
        for name, value in observation.result.items()
        if not (isinstance(value, str) and value in artifact_names)
    }


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
