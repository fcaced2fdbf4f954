"""A question to a judge."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from agrotools.core import Artifact
from agrotools.scoring.judging.replies import read_grade


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
        text = f"{self.system}\0{self.user}".encode(errors="surrogatepass")
        return hashlib.sha256(text).hexdigest()[:24]
