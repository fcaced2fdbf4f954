"""What a tool asks a vision model, and how the question comes from a worker to where it can be asked."""

from dataclasses import dataclass
from typing import Any, Protocol

MOST_QUESTIONS = 2
"""The question, and one that tells what was wrong with the reply."""


@dataclass(frozen=True)
class Question:
    """A picture and what is to be said of it.

    ``jpeg``: the picture, as it is to be shown. ``schema``: JSON Schema of the reply. ``earlier``: a reply to the same
    question, and what was wrong with it.
    """

    text: str
    jpeg: bytes
    schema: dict[str, Any]
    max_output_tokens: int = 1024
    earlier: tuple[str, str] | None = None

    def message(self) -> dict[str, Any]:
        """All but the picture, as JSON."""
        return {
            "text": self.text,
            "schema": self.schema,
            "max_output_tokens": self.max_output_tokens,
            "earlier": self.earlier,
        }

    @classmethod
    def of(cls, message: dict[str, Any], jpeg: bytes) -> "Question":
        """The question that :meth:`message` made the message of."""
        earlier = message["earlier"]
        return cls(
            message["text"],
            jpeg,
            message["schema"],
            message["max_output_tokens"],
            (earlier[0], earlier[1]) if earlier else None,
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


class AnswerNeeded(BaseException):
    """The tool cannot go on without the answer. Not an error: no tool may catch it."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.text)
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
