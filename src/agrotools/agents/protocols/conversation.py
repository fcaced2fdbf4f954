"""What the protocols share: a history is a sequence of turns, each a message of the model and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from agrotools.agents.parsing import excerpt
from agrotools.agents.prompts import fill
from agrotools.core import Step, ToolSpec
from agrotools.models import Message

_LONGEST_THOUGHT = 4000


@dataclass(frozen=True)
class Conversation:
    """One protocol. ``system`` writes the instructions, ``turn`` the messages of one turn of calls."""

    native: bool
    """Whether tools are offered to the endpoint as functions, not described in the instructions."""
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
        said = Message.of("assistant", first.text.strip() or "(nothing)")
        if first.kind == "unparseable":
            return [said, Message.of("user", fill("repair", reason=first.reason))]
        return [said]
