"""Finding labels in an answer, and whether each is asserted."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from agrotools.text.negation import LOOK_BACK, denied, joined
from agrotools.text.normalise import CJK, WORD, normalise

_REACH = 4
"""A negation reaches at most this many tokens to its label."""


class LabelMatch(NamedTuple):
    """One occurrence of a label: which one, where (in normalised text), and whether the text asserts it."""

    label: str
    text: str
    start: int
    end: int
    asserted: bool


@lru_cache(maxsize=20_000)
def label_pattern(alias: str) -> re.Pattern[str]:
    """The pattern that finds ``alias`` as a whole: not inside a word, a longer number or a range."""
    plain = normalise(alias).strip()
    # Behind a letter a space, an underscore and a hyphen are the same: "siam weed", "siam-weed", "image 2".
    body = re.sub(r"(?<=[^\W\d_])(?:\\?[ _-])+(?=[^\W_])", r"[\\s_-]+", re.escape(plain))
    body = re.sub(r"(?:\\ )+", r"\\s+", body)
    third = "" if plain[:1] in "+-" else r"(?<![-+](?=\d))"
    return re.compile(rf"(?<!{WORD})(?<!\d[.,]){third}{body}(?!{WORD})(?![.,]\d)")


def find_labels(text: str, labels: Mapping[str, Iterable[str]]) -> list[LabelMatch]:
    """All occurrences in normalised ``text`` of the labels (each with its names), in order.

    A match inside a longer match of another label does not count ("rust" in "bean rust"). An occurrence is asserted
    unless a negation or contrast word denies it, or it is joined by comma, or, nor to a denied one.
    """
    found = [
        (match.start(), match.end(), label)
        for label, names in labels.items()
        for name in dict.fromkeys(names)
        if name.strip()
        for match in label_pattern(name).finditer(text)
    ]
    outermost = _outermost(found)
    spans = [(start, end) for start, end, _ in outermost]
    matches: list[LabelMatch] = []
    for index, (start, end, label) in enumerate(outermost):
        is_denied = denied(text, start, _REACH, spans[max(0, index - LOOK_BACK) : index])
        if not is_denied and matches and not matches[-1].asserted:
            is_denied = joined(text, matches[-1].end, start)
        matches.append(LabelMatch(label, text[start:end], start, end, not is_denied))
    return matches


def _outermost(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Occurrences that lie inside no longer one (of whichever label: a label's own shorter names go as well)."""
    kept: list[tuple[int, int, str]] = []
    furthest = -1
    for start, end, label in sorted(found, key=lambda item: (item[0], -item[1])):
        if end > furthest:
            kept.append((start, end, label))
            furthest = end
    return kept


_YES = ("yes", "true", "是", "有")
_NO = ("no", "false", "否", "没有", "不是")
# "whether", and the copula before the answer itself (答案是否, 答案是:没有): neither of them answers.
_NO_ANSWER = re.compile(rf"是否(?!定)(?=[{CJK}])|有没有|有无|是(?=[ :\"']{{0,3}}(?:否|没有|不是|是|yes|no|true|false))")


def find_boolean(text: str) -> tuple[bool, str] | None:
    """The first asserted yes or no of normalised ``text``, and the word that says it."""
    text = _NO_ANSWER.sub(lambda said: " " * len(said[0]), text)
    words = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}
    found = _outermost(
        [(match.start(), match.end(), word) for word in words for match in label_pattern(word).finditer(text)]
    )
    spans = [(start, end) for start, end, _ in found]
    for index, (start, _, word) in enumerate(found):
        if not denied(text, start, _REACH, spans[max(0, index - LOOK_BACK) : index]):
            return words[word], word
    return None
