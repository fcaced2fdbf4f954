"""Outcomes of chains of calls that do not run to their end: one rule for all sources.

A tool that answers something about the picture, be it that it finds nothing there or that it does not know what it
sees, may be wrong; the sample stays, with its truth. A tool that this machine lacks the means for says nothing about
the sample either: it stays too, and is counted, since somebody with a trained pack or a vision model can run it. A tool
that breaks, or a call that fails on true values, makes the sample useless: it is dropped, with the reason.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from agrotools.core import BenchmarkError, Sample
from agrotools.core.errors import ErrorInfo, ToolErrorKind

ANSWERS: tuple[ToolErrorKind, ...] = ("nothing_found", "low_confidence", "shape_mismatch")
"""Errors that are answers about the picture; the last where a tool takes two pictures of one place for shifted ones,
since sources see to it that sizes agree."""
UNFOUND: Mapping[ToolErrorKind, str] = MappingProxyType({"missing_metadata": "scale_marker"})
"""Errors that are answers about the picture where they lie with this argument: the scale is to be had from a marker in
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
        told: dict[str, JsonValue] = {}
        if self.dropped:
            told["dropped"] = {**self.dropped}
        if self.lacking:
            told["needs_backend"] = {**self.lacking}
        return told


def build_notes(metadata: Mapping[str, JsonValue]) -> list[str]:
    """Notes from a benchmark's metadata on samples that were dropped, that need more than this machine has, or that a
    source could not give: a line each."""
    lines: list[str] = []
    for source, share in _table(metadata, "shares").items():
        told = share if isinstance(share, dict) else {}
        if "why" in told:
            lines.append(f"{source}: {told['made']} of {told['wanted']} samples ({told['why']})")
    for source, reasons in _table(metadata, "left_out").items():
        if isinstance(reasons, dict):
            lines.append(f"{source}, left out: {_counted(reasons)}")
    if dropped := _table(metadata, "dropped"):
        lines.append(f"dropped: {_counted(dropped)}")
    for tool, count in _table(metadata, "needs_backend").items():
        many = "samples need" if count != 1 else "sample needs"
        lines.append(f"{count} {many} a back-end of {tool} that this machine lacks: {backend_hint(tool)}")
    return lines


def _table(metadata: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    found = metadata.get(key)
    return found if isinstance(found, dict) else {}


def _counted(reasons: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items())


def backend_hint(tool: str) -> str:
    """Instructions for the back-end that ``tool`` lacks."""
    return BACKEND_HINTS.get(tool, _OTHER_HINT).format(tool=tool)
