"""What the protocols share: a history is a sequence of turns, each a message of the model and what came of it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from agrotools.agents.parsing import excerpt
from agrotools.agents.prompts import fill
from agrotools.core import Step, ToolSpec
from agrotools.models import Message

_LONGEST_THOUGHT = 4000
_TURNS_KEPT = 1024


@dataclass(frozen=True)
class Conversation:
    """One protocol. ``system`` writes the instructions, ``turn`` the messages of one turn of calls."""

    native: bool
    """Whether tools are offered to the endpoint as functions, not described in the instructions."""
    system: Callable[[Sequence[ToolSpec]], str]
    turn: Callable[[str, Sequence[tuple[int, Step]]], list[Message]]
    """From the thought and the numbered call steps of a turn (numbered over the whole history) to its messages."""
    _turns: OrderedDict[tuple[int, int, int], tuple[Step, list[Message]]] = field(default_factory=OrderedDict)
    """By the number of the first step, how many there are, and which: ids are safe while the step is held."""

    def history(self, steps: Sequence[Step]) -> list[Message]:
        """The messages that tell what was done so far."""
        messages: list[Message] = []
        for _, group in groupby(enumerate(steps), key=lambda entry: entry[1].turn):
            turn = list(group)
            messages += self._written(turn)
        return messages

    def _written(self, turn: list[tuple[int, Step]]) -> list[Message]:
        """The messages of a turn, written once: it comes again with every later turn of its sample."""
        number, first = turn[0]
        key = (number, len(turn), id(first))
        found = self._turns.get(key)
        if found is not None and found[0] is first:
            return found[1]
        messages = self._messages(turn)
        self._turns[key] = (first, messages)
        if len(self._turns) > _TURNS_KEPT:
            self._turns.popitem(last=False)
        return messages

    def _messages(self, turn: list[tuple[int, Step]]) -> list[Message]:
        first = turn[0][1]
        if first.kind == "call":
            return self.turn(excerpt(first.thought, _LONGEST_THOUGHT), turn)
        said = Message.of("assistant", first.text.strip() or "(nothing)")
        if first.kind == "unparseable":
            return [said, Message.of("user", fill("repair", reason=first.reason))]
        return [said]
