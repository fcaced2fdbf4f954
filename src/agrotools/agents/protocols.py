"""Protocols of our own, ``react`` and ``tool-calling``: how calls and observations are written in a conversation.

An observation is compact JSON between tags, of bounded length.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from agrotools.agents.parsing import excerpt
from agrotools.agents.prompts import fill, render
from agrotools.core import Protocol, Step, ToolSpec
from agrotools.models import Message, RequestedCall, TextPart
from agrotools.text.loose_json import dumps

OBSERVATION_LIMIT = 12_000
"""Characters of one observation at most; long lists and texts in it are shortened first, and say so."""

_ITEMS_KEPT = (400, 200, 100, 50, 20, 10, 5)


def observation_data(step: Step) -> str:
    """Result or error of the step's call, as JSON that cannot close the tags around it."""
    content: dict[str, Any] = {"tool": step.call.tool if step.call else ""}
    observation = step.observation
    if observation is None:
        content["error"] = {"kind": "backend_unavailable", "message": "the tool returned nothing"}
    elif observation.error is not None:
        error = observation.error.model_dump(mode="json", exclude_none=True)
        content["error"] = {key: value for key, value in error.items() if value not in ([], "")}
    else:
        content["result"] = observation.result
    if observation is not None and observation.artifacts:
        content["artifacts"] = [{"name": item.name, "kind": item.kind} for item in observation.artifacts]
    return _bounded(content).replace("</", "<\\/")


def observation_text(step: Step) -> str:
    """The observation of a call, marked as data."""
    return fill("observation", data=observation_data(step))


def _bounded(content: Any) -> str:
    text = dumps(content)
    for n_items in _ITEMS_KEPT:
        if len(text) <= OBSERVATION_LIMIT:
            return text
        text = dumps(_shortened(content, n_items))
    if len(text) > OBSERVATION_LIMIT:
        text = f"{text[:OBSERVATION_LIMIT]} [cut: {len(text) - OBSERVATION_LIMIT} more characters]"
    return text


def _shortened(value: Any, n_items: int) -> Any:
    """``value`` with at most ``n_items`` items of each list and ``20 * kept`` characters of each text."""
    if isinstance(value, str) and len(value) > 20 * n_items:
        return f"{value[: 20 * n_items]} [cut: {len(value) - 20 * n_items} more characters]"
    if isinstance(value, list):
        items = [_shortened(item, n_items) for item in value[:n_items]]
        return [*items, f"[cut: {len(value) - n_items} more items]"] if len(value) > n_items else items
    if isinstance(value, dict):
        return {key: _shortened(item, n_items) for key, item in value.items()}
    return value


_LONGEST_THOUGHT = 4000


@dataclass(frozen=True)
class Conversation:
    """One protocol. ``system`` writes the instructions, ``turn`` the messages of one turn of calls."""

    native: bool
    """True if tools are offered to the endpoint as functions, not described in the instructions."""
    system: Callable[[Sequence[ToolSpec]], str]
    turn: Callable[[str, Sequence[tuple[int, Step]]], list[Message]]
    """From the thought and the numbered call steps of a turn (numbered over the whole history) to its messages."""

    def history(self, steps: Sequence[Step], start: int = 0) -> list[Message]:
        """The messages that tell what was done so far; with ``start``, from the turn that begins with that step."""
        messages: list[Message] = []
        for _, group in groupby(enumerate(steps[start:], start), key=lambda entry: entry[1].turn):
            messages += self._messages(list(group))
        return messages

    def _messages(self, turn: list[tuple[int, Step]]) -> list[Message]:
        first = turn[0][1]
        if first.kind == "call":
            return self.turn(excerpt(first.thought, _LONGEST_THOUGHT), turn)
        message = Message.of("assistant", first.text.strip() or "(nothing)")
        if first.kind == "unparseable":
            return [message, Message.of("user", fill("repair", reason=first.reason))]
        return [message]


def _react_system(specs: Sequence[ToolSpec]) -> str:
    tools = [
        {
            "name": spec.name,
            "description": spec.description.strip(),
            "parameters": dumps(spec.parameters),
        }
        for spec in specs
    ]
    return render("react_system", tools=tools)


def _react_turn(thought: str, steps: Sequence[tuple[int, Step]]) -> list[Message]:
    calls = [
        {"tool": step.call.tool, "arguments": dumps(step.call.arguments)} for _, step in steps if step.call is not None
    ]
    observations = [observation_data(step) for _, step in steps]
    return [
        Message.of("assistant", render("react_calls", thought=thought, calls=calls)),
        Message.of("user", render("react_observations", observations=observations)),
    ]


REACT = Conversation(native=False, system=_react_system, turn=_react_turn)
"""Thought, action and action input as text in one message, the observation in the next (Yao et al., 2023)."""


def _native_system(_specs: Sequence[ToolSpec]) -> str:
    return render("tool_calling_system")


def _native_turn(thought: str, steps: Sequence[tuple[int, Step]]) -> list[Message]:
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


TOOL_CALLING = Conversation(native=True, system=_native_system, turn=_native_turn)
"""Native tool calls: the endpoint knows the tools, calls are part of the message, observations are tool messages."""

PROTOCOLS: dict[Protocol, Conversation] = {"react": REACT, "tool-calling": TOOL_CALLING}
