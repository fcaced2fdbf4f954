"""Answers against lists of keywords, and against texts that are all right: our own scores of GTA's gold forms.

The published scores of these forms are those of the plug-ins. Ours differ where those count what was not said: a
keyword is found as a whole (``-3``, ``$5`` and ``50%`` as well, beside Chinese characters too, and not inside a longer
number), with or without thousands separators, only where the text does not deny it, and not in a heap of words or
numbers that would hit any keyword (:mod:`agrotools.scoring.keywords`).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from pydantic import JsonValue

from agrotools.core import KeywordsSlot, ReferenceTextsSlot
from agrotools.scoring.answer_text import AnswerText
from agrotools.scoring.yes_no_reading import plain_answers
from agrotools.text.labels import find_labels
from agrotools.text.listing import Beside, beside, concluding_numbers, further_claims, numbers_beside
from agrotools.text.normalise import normalise
from agrotools.text.rouge import rouge_l_words

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")

_ZEROS = re.compile(r"(?<=\d)\.0+(?![\d.])")


_MOST_BESIDE = 4


_MOST_CLAIMS = 3
"""Other names that may be listed with a keyword, and that sentences of the form "it is X" may name."""


_MOST_NUMBERS_BESIDE = 2


MOST_PLACES = 60
"""Places of one keyword that are looked at."""


class Stacks:
    """One normalised text and the keywords that are right in it (``keywords``), asked for any number of places."""

    def __init__(self, text: str, keywords: Collection[str]) -> None:
        self._text = text
        self._keywords = [word for each in keywords if (word := normalise(each).strip())]
        self._numbers = {_bare(word) for word in self._keywords}
        self._result = concluding_numbers(text)
        self._claims = len(further_claims(text, self._is_keyword)) > _MOST_CLAIMS

    def _is_keyword(self, item: str) -> bool:
        return any(word in item for word in self._keywords)

    def holds(self, start: int, end: int) -> bool:
        """True if ``text[start:end]`` is part of a heap of keywords rather than of an answer."""
        text = self._text
        if any(letter.isdigit() for letter in text[start:end]):
            if self._result is not None and start < self._result[0]:
                return True
            numbers = numbers_beside(text, start, end)
            others = tuple(number for number in numbers.items if _bare(number) not in self._numbers)
            if _is_heap(Beside(others, numbers.alternatives), _MOST_NUMBERS_BESIDE):
                return True
        return self._claims or _is_heap(beside(text, start, end, self._is_keyword), _MOST_BESIDE)


def _is_heap(neighbours: Beside, most: int) -> bool:
    return len(neighbours.items) > most or (neighbours.alternatives and bool(neighbours.items))


@lru_cache(maxsize=20_000)
def _bare(number: str) -> str:
    return re.sub(r"[^\d.]", "", number).rstrip(".")


_YES_WORDS = frozenset("yes true 是 有 对 是的".split())


_NO_WORDS = frozenset("no false 否 没有 不是 不".split())


def asks_yes_or_no(aliases: Collection[str]) -> bool | None:
    """True if a group of keywords is a yes (True) or a no (False); None where it is neither."""
    words = {normalise(alias).strip() for alias in aliases}
    yes, no = bool(words & _YES_WORDS), bool(words & _NO_WORDS)
    return None if yes == no else yes


def score_keywords(slot: KeywordsSlot, answer: AnswerText) -> tuple[float, dict[str, JsonValue]]:
    """1 where the answer states an alias of every group of the whitelist and none of the blacklist, else 0.

    The whole text behind the last ``Final Answer:`` counts. A blacklisted word inside a right one ("pork" in "pork
    chop") is not stated. Groups without an alias ask for nothing.
    """
    texts = list(dict.fromkeys(_joined(text) for text in (answer.text, answer.plain)))
    texts += [text for text in (answer.text, answer.plain) if text not in texts]
    groups = [group for group in slot.whitelist if any(alias.strip() for alias in group)]
    right = [alias for group in groups for alias in group]
    replies = {answered for answered, _ in plain_answers(answer.plain)}
    heaps = {text: Stacks(text, right) for text in texts}
    stated = [None if _undecided(group, groups, replies) else _stated(texts, group, heaps=heaps) for group in groups]
    wrong = _stated(texts, [alias for group in slot.blacklist for alias in group], beside=right)
    reading: dict[str, JsonValue] = {
        "value": [alias for alias in stated if alias],
        "missing": [group[0] for group, alias in zip(groups, stated, strict=True) if alias is None],
        "rule": "every group of the whitelist, nothing of the blacklist",
    }
    if wrong is not None:
        reading["wrong"] = wrong
    return float(None not in stated and wrong is None), reading


def _undecided(group: Iterable[str], groups: Iterable[Iterable[str]], answers: set[bool]) -> bool:
    """True if ``group`` asks for a yes or a no, the answer says both, and not both are asked for."""
    yes_no = asks_yes_or_no(tuple(group))
    return (
        yes_no is not None
        and len(answers) > 1
        and {asks_yes_or_no(tuple(each)) for each in groups} < {True, False, None}
    )


def _stated(
    texts: Iterable[str],
    aliases: Iterable[str],
    beside: Iterable[str] = (),
    heaps: Mapping[str, Stacks] | None = None,
) -> str | None:
    """The first of ``aliases`` that one of ``texts`` asserts, not as a part of one of ``beside`` or in a heap."""
    names_by_alias = {alias: {alias, _joined(normalise(alias))} for alias in aliases if alias.strip()}
    others = {f"beside {alias}": {alias, _joined(normalise(alias))} for alias in beside if alias not in names_by_alias}
    for text in texts:
        for alias, names in names_by_alias.items():
            # One alias at a time: a group may hold "burger" and "beef burger", and either will do.
            matches = [match for match in find_labels(text, {alias: names, **others}) if match.label == alias]
            asserted = [match for match in matches if match.asserted]
            places = asserted[:MOST_PLACES] + asserted[MOST_PLACES:][-MOST_PLACES:]
            if heaps is None and asserted:
                return alias
            if heaps is not None and any(not heaps[text].holds(match.start, match.end) for match in places):
                return alias
    return None


def _joined(text: str) -> str:
    """``text`` without separators of thousands, and without decimals that are zero."""
    return _ZEROS.sub("", _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text))


def score_texts(slot: ReferenceTextsSlot, text: str) -> tuple[float, dict[str, JsonValue]]:
    """The overlap with the nearest of the right texts: ROUGE-L by words (Chinese: by characters).

    An overlap of words, not of meaning: another wording of the same scores low, the opposite in the same words high.
    """
    overlaps = [rouge_l_words(text, value) for value in slot.values]
    best = max(range(len(overlaps)), key=lambda place: overlaps[place])
    return overlaps[best], {
        "nearest": best + 1,
        "overlaps": [round(each, 4) for each in overlaps],
        "rule": "overlap: longest common subsequence of words, with the nearest text",
    }
