"""Values and keywords in a model's own words, read by simple rules: no negation and no context counts.

After the last final-answer marker, a number is the last one with a unit that fits; an option is the only one named; yes
or no is the first such word. The score by this rule (``fas_text``) stands beside FAS and is never a headline.

Lists of keywords and several right texts are the gold of GTA and ThinkGeo, with scores of agrotools.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from math import isfinite

from pydantic import JsonValue

from agrotools.core import KeywordsSlot, ReferenceTextsSlot
from agrotools.core.form_item import FormItem
from agrotools.text.answer_reader import FormValue
from agrotools.text.labels import option_names
from agrotools.text.normalise import WORD, WORD_END, WORD_START, late_pattern, normalise
from agrotools.text.quantities import NUMERAL, Quantity, numeral_value
from agrotools.text.rouge import rouge_l_words
from agrotools.text.units import fold_case, unit_at

_FINAL_ANSWER = late_pattern(r"(?:final answer|最终答案|最终回答)\W{0,6}[:：]", re.IGNORECASE)
_YES_OR_NO = late_pattern(
    rf"{WORD_START}(?:(?P<yes>yes|true)|no|false){WORD_END}|(?P<zh>是的|对的)|不是|没有|否"
)
_MOST_OWN_WORDS = 100_000
"""Number of characters at the end of a reply that are read."""


def read_words(item: FormItem, text: str) -> FormValue:
    """Return the value that ``text`` gives for ``item``; without a value if the rule finds none."""
    plain = _last_words(text)
    if item.is_number:
        return FormValue(number=_last_number(item, plain))
    if item.type == "boolean":
        return FormValue(yes=_first_yes_or_no(plain))
    options = option_names(item)
    found = _any_of(tuple(options)).finditer(plain) if options else ()
    named = tuple(dict.fromkeys(options[each[0]] for each in found))
    return FormValue(names=named if item.takes_several or len(named) == 1 else ())


def _first_yes_or_no(text: str) -> bool | None:
    """Return True if the first such word of normalised ``text`` is a yes, False if it is a no; None without one."""
    word = _YES_OR_NO.search(text)
    return bool(word["yes"] or word["zh"]) if word else None


def after_final_answer(text: str) -> str:
    """Return the text after the last ``Final Answer:``; the whole text if there is none."""
    return text[max((marker.end() for marker in _FINAL_ANSWER.finditer(text)), default=0) :]


@lru_cache(maxsize=256)
def _last_words(text: str) -> str:
    return after_final_answer(normalise(fold_case(text[-_MOST_OWN_WORDS:])))


def _last_number(item: FormItem, text: str) -> float | None:
    for numeral in reversed([*NUMERAL.finditer(text)]):
        value, end = numeral_value(text, numeral)
        unit = unit_at(text, end)
        ends = Quantity(value, value, unit[0] if unit else None).ends_in(item.unit)
        if ends and isfinite(value):
            return ends[0]
    return None


@lru_cache(maxsize=256)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of one of several names; a name within a longer one does not count."""
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    return re.compile(rf"{WORD_START}(?:{'|'.join(map(re.escape, longest_first))}){WORD_END}")


# --- keywords and right texts -----------------------------------------------------------------------------------------

_MOST_CHARACTERS = 65_536
_THOUSANDS = late_pattern(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_ZEROS = late_pattern(r"(?<=\d)\.0+(?![\d.])")
_UNIT = "(?:[mk]?g|[mck]?m|ha|m?l|t)"
"""Units that may follow a number without a space."""
_YES_WORDS = frozenset("yes true 是 有 对 是的".split())
_NO_WORDS = frozenset("no false 否 没有 不是 不".split())


def held_keywords(text: str, groups: Sequence[Sequence[str]]) -> list[str]:
    """Return a keyword of each group that ``text`` holds as whole words, empty for a group without one.

    If only one answer is asked for, yes or no, the first yes or no of the text counts.
    """
    plain = _plain(text)
    asked = [_asks_yes_or_no(group) for group in groups]
    first = _first_yes_or_no(plain) if len({*asked} - {None}) == 1 else None
    denied = [first is not None and yes is not None and yes is not first for yes in asked]
    return ["" if no else _first(group, plain) for group, no in zip(groups, denied, strict=True)]


def unwanted_keyword(
    text: str, blacklist: Sequence[Sequence[str]], whitelist: Sequence[Sequence[str]]
) -> str:
    """Return a keyword of ``blacklist`` that ``text`` holds outside those of ``whitelist``; empty if there is none."""
    plain = _plain(text)
    unwanted = [each for group in blacklist for each in group if each.strip()]
    for right in sorted(
        (each for group in whitelist for each in group if each.strip()), key=len, reverse=True
    ):
        if right not in unwanted:
            plain = _pattern(right).sub(" ", plain)
    return _first(unwanted, plain)


def _plain(text: str) -> str:
    return _joined(normalise(text[-_MOST_CHARACTERS:]))


def _joined(text: str) -> str:
    """Remove thousands separators and zero decimals from the numbers in ``text``."""
    return _ZEROS.sub("", _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text))


def _first(keywords: Collection[str], text: str) -> str:
    return next((each for each in keywords if each.strip() and _pattern(each).search(text)), "")


def _asks_yes_or_no(group: Collection[str]) -> bool | None:
    """Return True if a group of keywords is a yes, False if it is a no, and None if it is neither or both."""
    words = {normalise(each).strip() for each in group}
    yes, no = bool(words & _YES_WORDS), bool(words & _NO_WORDS)
    return None if yes == no else yes


@lru_cache(maxsize=20_000)
def _pattern(keyword: str) -> re.Pattern[str]:
    """Return the pattern that finds a keyword as whole words, and a number not within another or a negative one."""
    plain = _joined(normalise(keyword).strip())
    first, last = plain[0], plain[-1]
    before = (
        WORD_START if re.match(WORD, first) else rf"{WORD_START}(?<![)\]])" if first in "-+" else ""
    )
    before += r"(?<!\d[.,])(?<![^\w)\]][-+])(?<!^[-+])" if first.isdecimal() else ""
    after = WORD_END if re.match(WORD, last) else ""
    after = rf"(?:{after}|(?={_UNIT}{WORD_END}))(?![.,]\d)" if last.isdecimal() else after
    return re.compile(before + r"\s+".join(map(re.escape, plain.split())) + after)


def score_keywords(slot: KeywordsSlot, answer: str) -> tuple[float, dict[str, JsonValue]]:
    """Return 1 if the answer holds a keyword of every whitelist group and none of the blacklist, else 0."""
    text = after_final_answer(answer)
    groups = [
        named for group in slot.whitelist if (named := [each for each in group if each.strip()])
    ]
    held, wrong = held_keywords(text, groups), unwanted_keyword(text, slot.blacklist, groups)
    reading: dict[str, JsonValue] = {
        "value": [each for each in held if each],
        "missing": [group[0] for group, each in zip(groups, held, strict=True) if not each],
        "rule": "every group of the whitelist, nothing of the blacklist",
        **({"wrong": wrong} if wrong else {}),
    }
    return float(all(held) and not wrong), reading


def score_texts(slot: ReferenceTextsSlot, answer: str) -> tuple[float, dict[str, JsonValue]]:
    """Return the overlap with the nearest right text: ROUGE-L by words (Chinese: by characters).

    Words are compared, not meanings: a paraphrase scores low, and the opposite in the same words scores high.
    """
    text = normalise(after_final_answer(answer)[-_MOST_CHARACTERS:])
    overlaps = [rouge_l_words(text, value) for value in slot.values]
    best = max(range(len(overlaps)), key=lambda place: overlaps[place])
    return overlaps[best], {
        "nearest": best + 1,
        "overlaps": [round(each, 4) for each in overlaps],
        "rule": "overlap: longest common subsequence of words, with the nearest text",
    }
