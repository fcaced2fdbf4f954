"""Native tool calls: the endpoint knows the tools, calls are part of the message, observations are tool messages."""

from collections.abc import Sequence

from agrotools.agents.observations import observation_text
from agrotools.agents.prompts import render
from agrotools.agents.protocols.conversation import Conversation
from agrotools.core import Step, ToolSpec
from agrotools.models import Message, RequestedCall, TextPart
from agrotools.text.loose_json import dumps


def _system(_specs: Sequence[ToolSpec]) -> str:
    return render("tool_calling_system")


def _turn(thought: str, steps: Sequence[tuple[int, Step]]) -> list[Message]:
    calls = [
        RequestedCall(
            name=step.call.tool,
            arguments=dumps(step.call.arguments),
            id=_call_id(number),
        )
        for number, step in steps
        if step.call is not None
    ]
    content = (TextPart(text=thought),) if thought else ()
    answers = [
        Message(role="tool", content=(TextPart(text=observation_text(step)),), tool_call_id=_call_id(number))
        for number, step in steps
    ]
    return [Message(role="assistant", content=content, tool_calls=tuple(calls)), *answers]


def _call_id(number: int) -> str:
    # Our own ids: servers may leave them out or repeat them, and some accept only nine letters and digits.
    return f"call{number:05d}"


CONVERSATION = Conversation(native=True, system=_system, turn=_turn)
