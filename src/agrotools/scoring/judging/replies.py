"""Questions to a judge, and the grade in its reply, which has none where it names none or two."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from agrotools.core import Artifact
from agrotools.text.loose_json import NotJson, loads, values_in

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_KEYS = ("grade", "score", "rating", "points", "评分", "分数", "得分", "等级")
_SAID = re.compile(
    r"(?:grade|score|rating|points|评分|分数|得分|等级)[\"'*_ ]*+(?:(?:(?<=\s)|\s)(?:is|of)\s|[:=为是])?+[\"'*_ ]*+"
    r"(?P<grade>-?\d++(?:\.\d++)?+)(?![a-zA-Z\d_]|\.\d)(?:\s*(?:/|out of)\s*(?P<of>\d+))?"
    r"(?!\s*(?:[,、]\s*\d\s*)?(?:[-~–]|or\b|to\b|或者?|还是|[到至])\s*\d)",
    re.IGNORECASE,
)
_ALONE = re.compile(r"[\s*_\"'(]*+(?P<grade>-?\d++(?:\.\d++)?+)\s*+(?:/\s*+(?P<of>\d++))?\s*+分?[\s*_\"'.。)]*+")


def read_grade(reply: str, most: int = 2) -> int | None:
    """The grade in ``reply``, a whole number from 0 to ``most``; as :func:`read_score` where that is one."""
    score = read_score(reply, most)
    return int(score) if score is not None and score.is_integer() else None


def read_score(reply: str, most: int = 1) -> float | None:
    """The score in ``reply``, a number from 0 to ``most``.

    Read from JSON (in a fence, with Python's quotes, amid prose; the last object with a grade counts), else from words
    (``Grade: 1``, ``评分：2``), else from a reply that is a number. None where nothing of that is there, where words
    name several grades, and where a grade is not on the scale: a guess would be ours, not the judge's.
    """
    text = unicodedata.normalize("NFKC", _THOUGHT.sub("", reply)).strip()
    for start, end in reversed(values_in(text)):
        try:
            value = loads(text[start:end])
        except NotJson:
            continue
        if isinstance(value, dict):
            keyed = {key.strip().lower(): content for key, content in value.items()}
            found = [keyed[key] for key in _KEYS if key in keyed]
            if found:
                return _on_scale(found[0], most)
    said = {_of_match(match, most) for match in _SAID.finditer(text)}
    if said:
        return said.pop() if len(said) == 1 else None
    alone = _ALONE.fullmatch(text)
    return _of_match(alone, most) if alone else None


_YES_NO = re.compile(r"\W*(?:(?P<yes>yes|是|对)|(?P<no>no|否|不是|不对))\b", re.IGNORECASE)


def read_yes_no(reply: str) -> float | None:
    """1 where ``reply`` begins with yes, 0 where it begins with no, else None."""
    found = _YES_NO.match(_THOUGHT.sub("", reply))
    return float(found["yes"] is not None) if found else None


def read_published_yes(reply: str) -> float:
    """1 where ``reply`` is ``yes`` and nothing else, as ThinkGeo's evaluation has it (``Yes.`` is not)."""
    return float(reply.strip().lower() == "yes")


def _of_match(match: re.Match[str], most: int) -> float | None:
    if match["of"] is not None and match["of"] != str(most):
        return None
    return _on_scale(match["grade"], most)


def _on_scale(value: object, most: int) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        alone = _ALONE.fullmatch(value)
        if alone is None or alone["of"] not in (None, str(most)):
            return None
        value = alone["grade"]
    try:
        number = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= most else None


@cache
def prompt_hash(words: str) -> str:
    """Hash that tells the words of one kind of question from those of another."""
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


_TEXT_SUFFIXES = frozenset({".txt", ".md", ".html", ".htm", ".json", ".csv", ".tsv", ".xml", ".svg", ".py", ".yaml"})
_TEXT_TYPES = ("text/", "application/json", "application/xml")


def is_text(artifact: Artifact) -> bool:
    """Whether its content is told to a judge as text."""
    return artifact.media_type.startswith(_TEXT_TYPES) or PurePosixPath(artifact.name).suffix.lower() in _TEXT_SUFFIXES


def is_image(artifact: Artifact) -> bool:
    """Whether it is shown to a judge as an image."""
    return artifact.media_type.startswith("image/") and not is_text(artifact)
