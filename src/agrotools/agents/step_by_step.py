"""Step-by-step (teacher-forced): each step is predicted after the reference history before it; nothing is executed."""

from agrotools.agents.keeping import kept_action
from agrotools.agents.policy import Policy
from agrotools.core import Action, BenchmarkError, ReferenceTrajectory, SampleView, Step, ToolCall
from agrotools.core.refs import literal_value


async def run_step_by_step(policy: Policy, view: SampleView, reference: ReferenceTrajectory) -> tuple[Action, ...]:
    """The predicted actions: one for each reference step, and a last one for the answer.

    At step k the policy sees the calls 1 to k-1 with their recorded observations and nothing of what comes later.

    Raises:
        BenchmarkError: a reference step has no recorded observation to show.
        InfrastructureError: from the policy.
    """
    history = reference_history(reference)
    called = [kept_action(await policy.act(view, history[:shown])) for shown in range(len(history))]
    return (*called, kept_action(await policy.act(view.model_copy(update={"closing": True}), history)))


def reference_history(reference: ReferenceTrajectory) -> tuple[Step, ...]:
    """The whole reference trajectory as steps that were taken, one a turn.

    Raises:
        BenchmarkError: a reference step has no recorded observation to show.
    """
    steps: list[Step] = []
    for index, step in enumerate(reference.steps):
        if step.observation is None:
            raise BenchmarkError(
                f"reference step {index} ({step.tool}) has no recorded observation",
                hint="step-by-step needs one for every step; run the mode end-to-end, or record them when building",
            )
        arguments = {name: literal_value(value) for name, value in step.arguments.items()}
        call = ToolCall(tool=step.tool, arguments=arguments)
        steps.append(Step(turn=index, kind="call", call=call, observation=step.observation, thought=step.thought))
    return tuple(steps)
