"""The back-end ``recorded``: a call that agrees with one of the reference gets what was recorded of that one.

So a benchmark runs end to end where its tools cannot: without weights, keys or a network. A model that goes another way
than the reference is told so, and no tool is run.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from agrotools.core import ErrorInfo, Observation, Sample, ToolCall, UsageError
from agrotools.scoring.image_calls import agrees
from agrotools.tools.execution import ToolOutcome

RECORDED = "recorded"
EVERY_TOOL = "*"
"""Stands for all tools of a benchmark where back-ends are given by tool."""


def spelled_out(backends: Mapping[str, str], toolset: Sequence[str]) -> dict[str, str]:
    """``backends`` with what is said of every tool said of each one of ``toolset`` that nothing else is said of.

    Raises:
        UsageError: a tool is to be recorded that is none of ``toolset``.
    """
    found = {tool: backend for tool, backend in backends.items() if tool != EVERY_TOOL}
    for tool, backend in found.items():
        if backend == RECORDED and tool not in toolset:
            close = get_close_matches(tool, toolset, n=2)
            hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(toolset)}"
            raise UsageError(f"the benchmark has no tool {tool!r} whose calls could be recorded", hint=hint)
    if EVERY_TOOL in backends:
        return {**dict.fromkeys(toolset, backends[EVERY_TOOL]), **found}
    return found


def real_backends(backends: Mapping[str, str]) -> dict[str, str]:
    """Those of tools that are really run."""
    return {tool: backend for tool, backend in backends.items() if backend != RECORDED}


class RecordedTools:
    """Answers calls of one sample. Where the reference makes a call several times, its observations come in turn."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._given: set[int] = set()

    def run(self, call: ToolCall) -> ToolOutcome:
        """What was recorded of the reference call that ``call`` agrees with; an error where it agrees with none."""
        steps = self._sample.reference.steps if self._sample.reference else ()
        found = [place for place, step in enumerate(steps) if agrees(self._sample, call, step)]
        if not found:
            return _failed(
                f"no call of the reference is {call.tool} with these arguments, and nothing else was recorded",
                f"the tool is not run here; for results of its own: --backend {call.tool}=offline",
            )
        place = next((place for place in found if place not in self._given), found[-1])
        self._given.add(place)
        observation = steps[place].observation
        if observation is None or observation.empty:
            return _failed("nothing was recorded of this call", "run the tool itself: choose another --backend")
        # Artifacts of a recorded observation lie in no workspace: a later call can name them, not open them.
        return ToolOutcome(observation.model_copy(update={"artifacts": ()}), 0.0, recorded=True)


def _failed(message: str, hint: str) -> ToolOutcome:
    return ToolOutcome(Observation(error=ErrorInfo(kind="backend_unavailable", message=message, hint=hint)), 0.0)
