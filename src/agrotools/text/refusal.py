"""Replies that the files do not allow an answer, and tool results that show it."""

import re

from agrotools.core import AbstainSlot, UnresolvedRef
from agrotools.core.record import Results
from agrotools.text.answer_form import REFUSAL
from agrotools.text.expressions import ExpressionError, evaluate_from

_UNABLE = (
    r"(?:cannot|can not|can't|could not|couldn't|not able to|unable to|no way to|not possible to|impossible to) "
    r"(?:be )?(?:\w+ly )?"
)
_FIND = (
    r"(?:determin|tell|say|told|measur|estimat|answer|decid|judg|assess|comput|calculat|quantif|establish|identif|"
    r"deriv|infer|know|state|count|(?:give|provide|report|offer)n? (?:you )?(?:a|an|any|the)\b"
    r"(?! (?:more|exact|precise|better)))\w*"
)
_PHRASE = (
    rf"(?:{_UNABLE}{_FIND}|\b(?:in|un)determina(?:ble|te)\b|\bundetermined\b|\bunanswerable\b|"
    r"\bno (?:reliable )?(?:answer|value|estimate) (?:is possible|can be)|"
    r"\b(?:insufficient|not enough) (?:information|data|evidence)|\b(?:do not|don't) allow (?:an|any) answer|"
    r"(?:无法|不能|没法|难以|不可能)[^,.;。\d]{0,14}?(?:确定|判断|判定|得出|测量|测出|测定|回答|估计|估算|计算|算出|"
    r"给出|知道|得知|推断|识别|数清)|(?:信息|数据|资料)不足|不可判定)"
)
_BUT = r", ?(?:but|however|though|yet|但)"
_AT_LINE = re.compile(
    rf"[\s>*#•`_-]*+(?:(?:[\w ]{{1,40}}|(?<=[\s_]))[*`_]*[:：]\s*[*`_]*)?(?:it )?{_PHRASE}"
    rf"(?:[*`_\s]*[:：.。]|(?!.*{_BUT}))",
    re.IGNORECASE,
)
_REFUSAL = re.compile(_PHRASE)
_END = re.compile(rf"[!?。;\n]|\.(?!\d)|{_BUT}|\Z")
_KEYED = re.compile(r"[:：]\s*\w")
_ESTIMATE = re.compile(
    r"\b(?:best|rough|own|my) (?:estimate|guess)|\bi(?: would|'d) (?:say|guess|estimate|go)|\bestimated (?:at|to)|"
    r"\b(?:probably|most likely|presumably|i assume|approximately|roughly)\b|大约|大概|约为|估计为|可能是"
)


def ends_in_refusal(text: str) -> bool:
    """True if the last line that is not empty begins with a refusal, after the name of a value at most."""
    return any(_AT_LINE.match(line) for line in text.strip().splitlines()[-1:])


def without_refusals(text: str) -> str | None:
    """Return normalised ``text`` without its clauses that refuse an answer; None if there are none."""
    rest, position = "", 0
    # Searched from the phrase outwards: a pattern of the whole clause takes quadratic time in a long line.
    while phrase := _REFUSAL.search(text, position):
        begin = 1 + max(position - 1, *(text.rfind(mark, position, phrase.start()) for mark in "!?。\n;,("))
        before = text[begin : phrase.start()]
        # A value after a key stands before the doubt: "size: 70 mm, which cannot be determined exactly".
        rest += text[position:begin] + (before if _KEYED.search(before) else "")
        end = _END.search(text, phrase.end())
        position = end.start() if end else len(text)
    return rest + text[position:] if position else None


def estimates_in(text: str) -> str:
    """Return the sentences of ``text`` that announce an estimate."""
    return "\n".join(part for part in re.split(r"(?<=[.!?。])\s+|\n", text) if _ESTIMATE.search(part))


def shows_no_answer(slot: AbstainSlot, results: Results) -> bool:
    """True if ``results`` show that there is no answer.

    That is if ``from`` of the slot is true or, without one, if no ``from`` of the slots that are asked for has a value.
    """
    if slot.from_ is not None:
        return _value(slot.from_, results) is True
    return all(each.from_ is None or _value(each.from_, results) is None for each in slot.asks)


def _value(expression: str, results: Results) -> object:
    try:
        return evaluate_from(expression, results)
    except (UnresolvedRef, ExpressionError):
        return None


REASONS = {
    "no_scale": "the files do not give the scale",
    "missing_file": "a file that the question names, or that it needs, is not there",
    "no_data": "a file that is needed holds no data",
    "wrong_subject": "what is asked about is not in the files",
    "unfit_image": "the picture is not good enough",
    "within_error": "the values differ by less than the error of their measurement",
}


def refusal_of(slot: AbstainSlot) -> str:
    """Return the right reply, in the answer form."""
    return f"{REFUSAL}: {REASONS[slot.reason]}"
