"""What a tool asks a vision model, and how the question comes from a worker to where it can be asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

MOST_QUESTIONS = 2
"""The question, and one that tells what was wrong with the reply."""


@dataclass(frozen=True)
class Question:
    """A picture and what is to be said of it.

    ``jpeg``: the picture, as it is to be shown. ``schema``: JSON Schema of the reply. ``earlier``: a reply to the same
    question, and what was wrong with it. ``more``: further pictures, shown after the first.
    """

    text: str
    jpeg: bytes
    schema: dict[str, Any]
    max_output_tokens: int = 1024
    earlier: tuple[str, str] | None = None
    more: tuple[bytes, ...] = ()

    @property
    def pictures(self) -> tuple[bytes, ...]:
        """All pictures, in the order in which they are shown."""
        return (self.jpeg, *self.more)

    def message(self) -> dict[str, Any]:
        """All but the pictures, as JSON."""
        return {
            "text": self.text,
            "schema": self.schema,
            "max_output_tokens": self.max_output_tokens,
            "earlier": self.earlier,
        }

    @classmethod
    def of(cls, message: dict[str, Any], pictures: Sequence[bytes]) -> "Question":
        """The question that :meth:`message` made the message of."""
        earlier = message["earlier"]
        return cls(
            message["text"],
            pictures[0],
            message["schema"],
            message["max_output_tokens"],
            (earlier[0], earlier[1]) if earlier else None,
            tuple(pictures[1:]),
        )


class VisionModel(Protocol):
    """What answers questions where a tool runs."""

    @property
    def name(self) -> str:
        """The model's name, as notes say it."""
        ...

    def ask(self, question: Question) -> str:
        """The model's reply, as it stands."""
        ...


class Asked(Protocol):
    """What a worker may ask for: a question to a vision model, or a request to a service on the network."""

    @property
    def pictures(self) -> tuple[bytes, ...]:
        """Pictures that go with it."""
        ...

    def message(self) -> dict[str, Any]:
        """All but the pictures, as JSON."""
        ...


class AnswerNeeded(BaseException):
    """The tool cannot go on without the answer. Not an error: no tool may catch it."""

    def __init__(self, question: Asked) -> None:
        super().__init__("an answer is needed")
        self.question = question


@dataclass
class Replies:
    """The vision model of a worker: it knows the replies that came so far, and stops the call for the next one."""

    name: str
    replies: list[str]

    def ask(self, question: Question) -> str:
        """The next reply.

        Raises:
            AnswerNeeded: it is not there yet.
        """
        if self.replies:
            return self.replies.pop(0)
        raise AnswerNeeded(question)
