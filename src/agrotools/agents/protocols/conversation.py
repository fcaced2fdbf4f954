"""What the protocols share: a history is a sequence of turns, each a message of the model and what came of it."""

from collections.abc import Callable, Iterator, Sequence
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

    def history(self, steps: Sequence[Step]) -> list[Message]:
        """The messages that tell what was done so far."""
        return list(self._history(steps))

    def _history(self, steps: Sequence[Step]) -> Iterator[Message]:
        numbered = list(enumerate(steps))
        for _, group in groupby(numbered, key=lambda entry: entry[1].turn):
            turn = list(group)
            first = turn[0][1]
            if first.kind == "call":
                yield from self.turn(excerpt(first.thought, _LONGEST_THOUGHT), turn)
            else:
                yield Message.of("assistant", first.text.strip() or "(nothing)")
                if first.kind == "unparseable":
                    yield Message.of("user", fill("repair", reason=first.reason))
