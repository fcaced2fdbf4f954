"""Gold that shows: answers, tools or steps in what a policy reads (query, file names, notes, slot names)."""

import math
import re
from collections.abc import Iterable

from agrotools.benchmarks.checks.fault import Checked
from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, ToleranceSlot

_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w.])|(?<![\w.])\d+(?:\.\d+)?(?!\.?\d)")
_STEP_WORDS = (
    re.compile(r"\bsteps?\s*(?:\d|one|two|three|by[ -]step)", re.IGNORECASE),
    re.compile(r"\bstep-by-step\b", re.IGNORECASE),
    re.compile(r"\bfirst(?:ly)?\b[^.?!;]{0,80}\b(?:and|,|;)\s*then\b", re.IGNORECASE),
    re.compile(r"\b(?:function|tool|api)\s+calls?\b|\bcall(?:ing)? (?:the|a) (?:function|tool)\b", re.IGNORECASE),
    re.compile(r"\b(?:the|a|your|any|which) tools?\b", re.IGNORECASE),
)
_OBJECT = r"(?:the|a|an|it|its|how|this|that|these|those|both|all|each|every|my|our|them|me)"


def check_leaks(at: Checked) -> None:
    """Codes: tool_in_query, argument_in_query, steps_in_query, gold_in_query, gold_in_note, gold_in_label,
    gold_in_file_name, tool_in_file_name.
    """
    query = at.sample.query
    known = sorted({*at.sample.toolset, *(at.header.toolset if at.header else ())})
    for name in known:
        if names_tool(query, name):
            at.fault(
                "tool_in_query", "query", f"the query names the tool {name}", "ask for the result, not for the tool"
            )
    for name in sorted(_argument_names(at, known)):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query):
            hint = "say it in the words of the person who asks"
            at.fault("argument_in_query", "query", f"the query names the argument {name}", hint)
    for pattern in _STEP_WORDS:
        if match := pattern.search(query):
            hint = "ask for the result, not for the way to it"
            at.fault("steps_in_query", "query", f"the query names steps or tools: {match[0]!r}", hint)
            break
    _check_gold(at)
    for index, file in enumerate(at.sample.files):
        for name in known:
            if _has_word(_spaced(file.name), _spaced(name)):
                hint = "use neutral names such as image_1.jpg"
                at.fault("tool_in_file_name", f"files[{index}].name", f"{file.name} names the tool {name}", hint)


def names_tool(query: str, tool: str) -> bool:
    """Whether ``query`` names ``tool``.

    A name of several words counts wherever it stands, with underscores or spaces. A name that is also an everyday
    word (``plot``, ``calculate``) counts as an order (``plot the``, ``calculate how``) or beside ``use``, ``call``,
    ``tool``; a plot of land does not.
    """
    words = _spaced(tool)
    if " " in words:
        return _has_word(_spaced(query), words)
    order = rf"(?:^|[.?!:;,]\s*|\b(?:to|and|then|please|you|just|now)\s+){words}\s+{_OBJECT}\b"
    used = rf"\b(?:use|using|call|calling|run|invoke|with)\s+(?:the\s+)?`?{words}\b"
    beside = rf"\b{words}`?\s+(?:tool|function)\b|`{words}`"
    return re.search(f"{order}|{used}|{beside}", query, re.IGNORECASE) is not None


def _argument_names(at: Checked, tools: Iterable[str]) -> set[str]:
    """Argument names that nobody uses by chance: those with an underscore."""
    found = (at.tools.get(name) for name in tools)
    return {argument for tool in found if tool is not None for argument in tool.spec.agreement if "_" in argument}


def _check_gold(at: Checked) -> None:
    texts = [("query", at.sample.query, "gold_in_query")]
    texts += [(f"files[{i}].note", file.note, "gold_in_note") for i, file in enumerate(at.sample.files) if file.note]
    labels = " | ".join(f"{slot.label} {_spaced(slot.name)}" for slot in at.sample.answer)
    texts.append(("answer", labels, "gold_in_label"))
    for slot in at.sample.answer:
        for where, text, code in texts:
            if told := _told(slot, text):
                hint = "leave it out, or name the other choices too"
                at.fault(code, where, f"{told!r} is (part of) the answer {slot.name!r}", hint)
        if isinstance(slot, (ExactSlot, ChoiceSetSlot)):
            for index, file in enumerate(at.sample.files):
                for label in _labels(slot):
                    if _has_word(_spaced(file.name), _spaced(label)):
                        message = f"{file.name} tells the answer {label!r}"
                        at.fault(
                            "gold_in_file_name",
                            f"files[{index}].name",
                            message,
                            "use neutral names such as image_1.jpg",
                        )


def _told(slot: object, text: str) -> str | None:
    """The part of ``text`` that gives the slot's value away, or None.

    A label is no leak where the text names another choice as well; a number only with two significant digits or more.
    """
    if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
        said = next((label for label in _labels(slot) if _has_word(text, label)), None)
        return None if said is None or any(_has_word(text, other) for other in slot.distractors) else said
    if isinstance(slot, ChoiceSetSlot):
        named = [choice for choice in slot.choices if _has_word(text, choice)]
        return ", ".join(named) if named and set(named) == set(slot.value) != set(slot.choices) else None
    if isinstance(slot, FileSlot):
        named = [choice for choice in slot.choices if choice in text]
        return slot.value if named == [slot.value] and len(slot.choices) > 1 else None
    if isinstance(slot, BooleanSlot):
        return None
    value = slot.value if isinstance(slot, (ToleranceSlot, ExactSlot)) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    for match in _NUMBER.finditer(text):
        if _is_value(match[0].replace(",", ""), float(value)):
            return match[0]
    return None


def _labels(slot: ExactSlot | ChoiceSetSlot) -> tuple[str, ...]:
    if isinstance(slot, ChoiceSetSlot):
        return slot.value
    return (str(slot.value), *slot.aliases) if isinstance(slot.value, str) else ()


def _is_value(digits: str, value: float) -> bool:
    """Whether ``digits`` is ``value`` rounded to as many significant digits, at least two."""
    significant = len(digits.replace(".", "").lstrip("0"))
    if significant < 2 or value == 0 or not math.isfinite(value):
        return False
    return math.isclose(float(digits), float(f"{abs(value):.{significant - 1}e}"), rel_tol=1e-9)


def _spaced(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _has_word(text: str, words: str) -> bool:
    return bool(words) and re.search(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", text.casefold()) is not None
