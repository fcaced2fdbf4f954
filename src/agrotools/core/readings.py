"""How a user's file was read: what was taken, what it may mean instead, and what was not read.

A reader that finds two readings with other values calls :meth:`Readings.choose`; it never picks one itself. On a
terminal the user is asked at once. In a script the reader goes on with the proposed reading, so that it finds all its
questions, and :meth:`Readings.settle` then stops the command before it writes anything.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from agrotools.core.errors import UndecidedError, UsageError

_CHOICES_NAMED = 12
"""Choices that an error lists; a workbook may have hundreds of columns."""


class Choice(NamedTuple):
    """One reading: ``value`` as it is typed, and what it gives, to tell it from the others: ``4 polygons, 120 m²``."""

    value: str
    gives: str = ""

    def __str__(self) -> str:
        return f"{self.value} ({self.gives})" if self.gives else self.value


class ReadingQuestion(NamedTuple):
    """A question on a file. ``choices``: all readings, the proposed one first.

    ``option``: the option that answers it, as in ``--layer`` or ``--set=sheet``; the answer is ``--layer=plots``.
    ``is_open``: a value that is none of the choices is an answer, too. ``placeholder``: stands for the answer where
    only the user knows it, so that no choice is proposed.
    """

    text: str
    option: str
    choices: tuple[Choice, ...]
    is_open: bool = False
    placeholder: str = ""

    @property
    def proposed(self) -> str:
        """The answer that a printed command has, and that ``--yes`` takes; a placeholder is none that can be taken."""
        return self.placeholder or self.choices[0].value

    def answered(self, value: str) -> str:
        """Return the word of a command line that answers the question with ``value``."""
        return f"{self.option}={value}"

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.choices[:_CHOICES_NAMED]))
        more = ", ..." if len(self.choices) > _CHOICES_NAMED else ""
        return f"{self.text} {listed}{more}"


class Readings:
    """What was read of the files of one command.

    ``ask``: puts a question to the user, and returns one of its values; None where nobody can answer. ``accept``: the
    proposed readings are taken (``--yes``); what only the user knows stays a question.
    """

    def __init__(
        self, ask: Callable[[ReadingQuestion], str] | None = None, *, accept: bool = False
    ) -> None:
        self._ask = ask
        self._accept = accept
        self.taken: list[str] = []
        """What was read as what: ``sheet "2026"``, ``apples from column Count``."""
        self.left: list[str] = []
        """What was not read: ``sheet "Notes"``."""
        self.questions: list[ReadingQuestion] = []
        """Questions that nobody has answered yet."""
        self.answers: list[str] = []
        """Answers to questions that no option gave, of the user or of ``--yes``, as words of a command line."""
        self.chosen: dict[str, str] = {}
        """The reading that was taken of each question, by its option."""

    @property
    def can_ask(self) -> bool:
        """True if the user answers questions now."""
        return self._ask is not None and not self._accept

    def take(self, what: str) -> None:
        """Say what was read, once."""
        if what not in self.taken:
            self.taken.append(what)

    def leave(self, what: str) -> None:
        """Say what was not read, once."""
        if what not in self.left:
            self.left.append(what)

    def choose(self, question: ReadingQuestion, given: str | None = None) -> str:
        """Return the reading to go on with: the ``given`` one, the only one, the user's answer, or the proposed one.

        Raises:
            UsageError: ``given`` is none of the choices.
        """
        self.chosen[question.option] = value = self._chosen(question, given)
        return value

    def _chosen(self, question: ReadingQuestion, given: str | None) -> str:
        values = [choice.value for choice in question.choices]
        if given is not None:
            if given in values or question.is_open:
                return given
            # Quoted where one is a list itself, so that it is seen where each ends.
            quoted = any(", " in value for value in values)
            named = [f"'{value}'" if quoted else value for value in values[:_CHOICES_NAMED]]
            raise UsageError(
                f"{question.answered(given)}: there is no {given}",
                hint=f"one of {', '.join(named)}",
            )
        if len(values) == 1 and not question.is_open:
            return values[0]
        if self._ask is not None and self.can_ask:
            chosen = self._ask(question)
        elif self._accept and not question.placeholder:
            chosen = question.proposed
        else:
            if question not in self.questions:
                self.questions.append(question)
            return values[0]
        self.answers.append(question.answered(chosen))
        return chosen

    def settle(self) -> None:
        """Raise an error with all questions that nobody has answered.

        Raises:
            UndecidedError: there are such questions.
        """
        if not self.questions:
            return
        listed = [f"{at}. {question}" for at, question in enumerate(self.questions, start=1)]
        number = len(listed)
        head = "1 question, with its" if number == 1 else f"{number} questions, each with its"
        raise UndecidedError(
            "\n  ".join([f"{head} possible answers:", *listed]),
            answers=(*self.answers, *(each.answered(each.proposed) for each in self.questions)),
            placeholders=tuple(filter(None, (each.placeholder for each in self.questions))),
        )

    def as_data(self) -> dict[str, Any]:
        """Return what was read and what was not, for ``--json``."""
        return {"read": self.taken, "not_read": self.left}
