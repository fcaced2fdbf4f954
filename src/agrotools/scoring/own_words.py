"""Values in a model's own words, read by a simple rule: no negation and no context counts.

After the last final-answer marker, a number is the last one with a unit that fits; an option is the only one named; yes
or no is the first such word. The score by this rule (``fas_text``) stands beside FAS and is never a headline.
"""

import re
from functools import lru_cache
from math import isfinite

from agrotools.core.form_item import FormItem
from agrotools.text.normalise import WORD_END, WORD_START, late_pattern, normalise
from agrotools.text.quantities import NUMERAL, Quantity, numeral_value
from agrotools.text.submission import FormValue, option_names
from agrotools.text.units import fold_case, unit_at

_FINAL_ANSWER = late_pattern(r"(?:final answer|最终答案|最终回答)\W{0,6}[:：]", re.IGNORECASE)
_YES_OR_NO = late_pattern(rf"{WORD_START}(?:(?P<yes>yes|true)|no|false){WORD_END}|(?P<zh>是的|对的)|不是|没有|否")
_MOST_CHARACTERS = 100_000


def read_words(item: FormItem, text: str) -> FormValue:
    """Return the value that ``text`` gives for ``item``; without a value if the rule finds none."""
    plain = _plain(text)
    if item.is_number:
        return FormValue(number=_last_number(item, plain))
    if item.type == "boolean":
        return FormValue(yes=first_yes_or_no(plain))
    named = _named(item, plain)
    return FormValue(names=named if item.takes_several or len(named) == 1 else ())


def first_yes_or_no(text: str) -> bool | None:
    """Return True if the first such word of normalised ``text`` is a yes, False if it is a no; None without one."""
    word = _YES_OR_NO.search(text)
    return bool(word["yes"] or word["zh"]) if word else None


def after_final_answer(text: str) -> str:
    """Return the text after the last ``Final Answer:``; the whole text if there is none."""
    return text[max((marker.end() for marker in _FINAL_ANSWER.finditer(text)), default=0) :]


@lru_cache(maxsize=256)
def _plain(text: str) -> str:
    """Return the text after the last final-answer marker, normalised."""
    return after_final_answer(normalise(fold_case(text[-_MOST_CHARACTERS:])))


def _last_number(item: FormItem, text: str) -> tuple[float, float] | None:
    for numeral in reversed([*NUMERAL.finditer(text)]):
        value, end = numeral_value(text, numeral)
        unit = unit_at(text, end)
        ends = Quantity(value, value, unit[0] if unit else None).ends_in(item.unit)
        if ends and isfinite(value):
            return ends
    return None


def _named(item: FormItem, text: str) -> tuple[str, ...]:
    """Return the options that the text names; a name within a longer one does not count."""
    options = option_names(item)
    if not options:
        return ()
    return tuple(dict.fromkeys(options[each[0]] for each in _pattern(tuple(options)).finditer(text)))


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    return re.compile(rf"{WORD_START}(?:{'|'.join(map(re.escape, longest_first))}){WORD_END}")
