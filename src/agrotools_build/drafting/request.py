"""A request for one draft, whatever its kind, and what a check needs of the folder that is drafted from."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from agrotools.core import Sample
from agrotools.models import Message
from agrotools_build.drafting.checking import Checked
from agrotools_build.drafting.near_copies import Questions
from agrotools_build.drafting.reasons import Dropped

Kind = Literal["question", "wording", "distractors"]
"""Kinds of drafts: questions with calls, questions in other words, wrong options."""
KINDS: tuple[Kind, ...] = ("question", "wording", "distractors")


@dataclass
class Progressed:
    """How far a draft came. ``ran``: all its calls ran; of drafts without calls, the reply was read."""

    ran: bool = False


@dataclass(frozen=True)
class DraftRequest:
    """A draft to ask for: its number from 1, what it is about, and how its reply is checked.

    ``check`` returns the sample, or raises :class:`~agrotools_build.drafting.reasons.Dropped`. ``refused``: why no
    model is asked at all.
    """

    number: int
    kind: Kind
    subject: str
    family: str
    messages: Callable[[], list[Message]]
    check: Callable[[str, Progressed], Awaitable[Checked]]
    refused: Dropped | None = None


def requests_on(
    samples: Sequence[Sample],
    kind: Kind,
    messages: Callable[[Sample], list[Message]],
    check: Callable[[Sample, str, Progressed], Awaitable[Checked]],
    refused: Callable[[Sample], Dropped | None] = lambda _sample: None,
) -> list[DraftRequest]:
    """Return a request about each sample of a folder, in order; the functions get the sample first."""
    return [
        DraftRequest(
            number=number,
            kind=kind,
            subject=f"{sample.id} {sample.query}",
            family=sample.family,
            messages=partial(messages, sample),
            check=partial(check, sample),
            refused=refused(sample),
        )
        for number, sample in enumerate(samples, start=1)
    ]


@dataclass
class Earlier:
    """Drafts so far that passed all checks: later ones must not copy them."""

    questions: Questions = field(default_factory=Questions)
    wordings: list[str] = field(default_factory=list[str])

    def add(self, sample: Sample) -> None:
        """Take a draft as passed."""
        self.questions.add(sample)
        self.wordings.append(sample.query)
