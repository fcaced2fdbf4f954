"""``replay:RUN``: takes again the actions that a finished run took, with the tools of today.

A call that the protocol of the run did not let reach a tool reaches none here either.
"""

from collections.abc import Sequence
from itertools import groupby

from agrotools.core import Action, Answer, CallTools, Halt, Record, SampleView, Step, Unparseable


class ReplayPolicy:
    """Replays one record: its predicted actions in step-by-step, its turns elsewhere."""

    def __init__(self, record: Record) -> None:
        self._actions: tuple[Action, ...] = record.actions if record.actions is not None else _turns(record)
        self._step_by_step = record.actions is not None

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        taken = len(history) if self._step_by_step else len({step.turn for step in history})
        if taken < len(self._actions):
            return self._actions[taken]
        return Halt(termination="max_steps", reason="the replayed run ended here")


def _turns(record: Record) -> tuple[Action, ...]:
    if record.trajectory is None:
        return ()
    actions: list[Action] = []
    for _, group in groupby(record.trajectory.steps, key=lambda step: step.turn):
        steps = list(group)
        first = steps[0]
        if first.kind == "answer":
            answer = Answer(text=first.text, thought=first.thought, reply=first.reply, form_reply=first.form_reply)
            actions.append(answer)
        elif first.kind == "unparseable":
            actions.append(Unparseable(text=first.text, reason=first.reason, reply=first.reply))
        else:
            calls = tuple(step.call for step in steps if step.call is not None)
            refused = first.observation.error if first.refused and first.observation else None
            actions.append(CallTools(calls=calls, thought=first.thought, reply=first.reply, refused=refused))
    if record.trajectory.termination not in ("answered", "max_steps", "unparseable"):
        halt = record.trajectory
        actions.append(Halt(termination=halt.termination, reason=halt.reason, reply=halt.halted_by))
    return tuple(actions)
