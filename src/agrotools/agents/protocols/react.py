"""ReAct as text: thought, action and action input in one message, the observation in the next (Yao et al., 2023)."""

from collections.abc import Sequence

from agrotools.agents.observations import observation_data
from agrotools.agents.prompts import render
from agrotools.agents.protocols.conversation import Conversation
from agrotools.core import Step, ToolSpec
from agrotools.models import Message
from agrotools.text.loose_json import dumps


def _system(specs: Sequence[ToolSpec]) -> str:
    tools = [
        {
            "name": spec.name,
            "description": spec.description.strip(),
            "parameters": dumps(spec.parameters),
        }
        for spec in specs
    ]
    return render("react_system", tools=tools)


def _turn(thought: str, steps: Sequence[tuple[int, Step]]) -> list[Message]:
    calls = [
        {"tool": step.call.tool, "arguments": dumps(step.call.arguments)} for _, step in steps if step.call is not None
    ]
    observations = [observation_data(step) for _, step in steps]
    return [
        Message.of("assistant", render("react_calls", thought=thought, calls=calls)),
        Message.of("user", render("react_observations", observations=observations)),
    ]


CONVERSATION = Conversation(native=False, system=_system, turn=_turn)
