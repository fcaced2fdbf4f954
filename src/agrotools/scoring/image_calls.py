"""Images that the reference makes by calls of tools: whether the same calls were made.

What was drawn is not looked at: GTA, ThinkGeo and Agent-X publish the calls, not the images.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from agrotools.core import ImageCallsSlot, ReferenceStep, Sample, Step, ToolCall, ToolSpec, Trajectory, UsageError
from agrotools.scoring.steps import compare_calls
from agrotools.tools import get_tool


def score_image_calls(
    slot: ImageCallsSlot, sample: Sample, trajectory: Trajectory
) -> tuple[float, dict[str, JsonValue]]:
    """The share of the reference's calls to ``slot.tools`` that were made, without an error, with agreeing arguments.

    Each call stands for one of the reference at most. Order does not count, nor do further calls. Arguments agree as
    in ``agrotools.arg_acc``; those of a tool that is not installed where they are equal.
    """
    wanted = [step for step in (sample.reference.steps if sample.reference else ()) if step.tool in slot.tools]
    if not wanted:
        return 0.0, {"rule": "the reference makes no image: there is nothing to compare with"}
    left = [step for step in trajectory.calls if _succeeded(step)]
    missing: list[JsonValue] = []
    for step in wanted:
        made = next((each for each in left if each.call and agrees(sample, each.call, step)), None)
        if made is None:
            missing.append(step.tool)
        else:
            left.remove(made)
    share = (len(wanted) - len(missing)) / len(wanted)
    reading: dict[str, JsonValue] = {"wanted": [step.tool for step in wanted], "missing": missing}
    return share, {**reading, "rule": "calls of the reference that make images, with agreeing arguments"}


def agrees(sample: Sample, call: ToolCall, step: ReferenceStep) -> bool:
    """Whether a call is that of the reference step: the same tool, and every argument agrees."""
    if call.tool != step.tool:
        return False
    try:
        tool = get_tool(step.tool)
    except UsageError:
        tool = _without_schema(step, [*step.arguments, *call.arguments])
    return all(row.agrees for row in compare_calls(sample, tool, call, step))


def _succeeded(step: Step) -> bool:
    return step.call is not None and (step.observation is None or step.observation.ok)


def _without_schema(step: ReferenceStep, arguments: Sequence[str]) -> ToolSpec:
    """A tool of which nothing is known but its name: all arguments are compared as they stand."""
    return ToolSpec(
        name=step.tool,
        category="unknown",
        version="",
        description="",
        parameters={},
        agreement=dict.fromkeys(arguments, "choice"),
        defaults={},
    )
