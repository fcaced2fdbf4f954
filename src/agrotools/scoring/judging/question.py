"""A question to a judge."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from agrotools.core import Artifact
from agrotools.scoring.judging.replies import read_grade

_TEXT_SUFFIXES = frozenset({".txt", ".md", ".html", ".htm", ".json", ".csv", ".tsv", ".xml", ".svg", ".py", ".yaml"})
_TEXT_TYPES = ("text/", "application/json", "application/xml")


@cache
def prompt_hash(words: str) -> str:
    """What tells the words of one kind of question from those of another."""
    return _hash(words)[:16]


def mark_of(texts: Iterable[str]) -> str:
    """The line between which ``texts`` stand; it follows from them, so that nobody can have written it into one."""
    return f"=== {_hash(chr(0).join(texts))[:12]} ==="


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True)
class JudgeQuestion:
    """A question to a judge. ``read`` finds the grade in a reply, 0 to ``most``; None where there is none.

    ``prompt`` is a hash of the words that are the same for all questions of the kind, ``asked`` one of this question.
    """

    metric: str
    slot: str
    system: str
    user: str
    prompt: str
    most: int = 2
    read: Callable[[str], float | None] = read_grade
    longest_reply: int = 2048
    """Tokens that a reply may have."""
    attachments: tuple[Artifact, ...] = ()
    """Files of the run that are shown with ``user``, which names them."""
    mark: str = ""
    """The line between which texts of attachments stand. It follows from their content, and so does ``asked``."""

    @property
    def asked(self) -> str:
        return _hash(f"{self.system}\0{self.user}")[:24]


def is_text(artifact: Artifact) -> bool:
    """Whether its content is told to a judge as text."""
    return artifact.media_type.startswith(_TEXT_TYPES) or PurePosixPath(artifact.name).suffix.lower() in _TEXT_SUFFIXES


def is_image(artifact: Artifact) -> bool:
    """Whether it is shown to a judge as an image."""
    return artifact.media_type.startswith("image/") and not is_text(artifact)
