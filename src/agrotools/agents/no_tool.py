"""No-tool: the query and its images, one direct answer."""

from agrotools.agents.end_to_end import UNPARSEABLE_LIMIT, Refusal, run_end_to_end
from agrotools.agents.policy import Policy
from agrotools.core import ErrorInfo, Observation, SampleView, ToolCall, Trajectory


async def run_no_tool(policy: Policy, view: SampleView) -> Trajectory:
    """Ask ``policy`` for the answer. A reply that holds none (empty, or a call) is told so, and asked for again.

    Raises:
        InfrastructureError: from the policy.
    """
    if view.toolset:
        view = view.model_copy(update={"toolset": ()})
    return await run_end_to_end(policy, view, _refuse, max_steps=UNPARSEABLE_LIMIT)


async def _refuse(call: ToolCall) -> Refusal:
    error = ErrorInfo(
        kind="unknown_tool", message=f"there is no tool {call.tool!r}: this mode has none", hint="answer directly"
    )
    return Refusal(Observation(error=error))
