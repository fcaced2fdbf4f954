"""Checks for leaks: answers, tools or steps named in what a policy reads (query, file names, notes, labels)."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from agrotools.core import ChoiceSetSlot, ExactSlot, FileSlot, Sample, ToleranceSlot
from agrotools.core.files import read_table
from agrotools.loading.sample_checks import Remark, SampleUnderCheck, tool_or_none
from agrotools.text.normalise import WORD_END, WORD_START


def check_leaks(at: SampleUnderCheck) -> Iterator[Remark]:
    """Check the query, notes, labels and file names of a sample for leaks.

    Codes: tool_in_query, argument_in_query, steps_in_query, gold_in_query, gold_in_note, gold_in_label,
    gold_in_file_name, tool_in_file_name.
    """
    of_benchmark = at.header.toolset if at.header else ()
    tools = sorted({*at.sample.toolset, *of_benchmark})
    query = at.sample.query
    for kind, named in named_means(query, tools):
        message, hint = _MEANS[kind]
        yield f"{kind}_in_query", "query", f"the query names {message.format(named)}", hint
    texts = _shown_texts(at.sample)
    for slot in at.sample.answer:
        for where, text, code in texts:
            revealed = revealed_answer(slot, text)
            if revealed:
                message = f"{revealed!r} is (part of) the answer {slot.name!r}"
                yield code, where, message, "leave it out, or name the other choices too"
    yield from _check_file_names(at.sample, tools)


def _shown_texts(sample: Sample) -> list[tuple[str, str, str]]:
    """Return the texts beside the file names that a policy reads: place, text, and the code of a leak in it."""
    texts = [("query", sample.query, "gold_in_query")]
    for index, file in enumerate(sample.files):
        if file.note:
            texts.append((f"files[{index}].note", file.note, "gold_in_note"))
    labels = [f"{slot.label} {normalise_words(slot.name)}" for slot in sample.answer]
    texts.append(("answer", " | ".join(labels), "gold_in_label"))
    return texts


def _check_file_names(sample: Sample, tools: Sequence[str]) -> Iterator[Remark]:
    """Check the file names of a sample for right labels and tools; a label may be the name of a file itself."""
    names = {file.name for file in sample.files}
    labels = [label for slot in sample.answer for label in labels_of(slot) if label not in names]
    hint = "use neutral names such as image_1.jpg"
    for index, file in enumerate(sample.files):
        where, words = f"files[{index}].name", normalise_words(file.name)
        for label in labels:
            if has_word(words, normalise_words(label)):
                yield "gold_in_file_name", where, f"{file.name} tells the answer {label!r}", hint
        for tool in tools:
            if has_word(words, normalise_words(tool)):
                yield "tool_in_file_name", where, f"{file.name} names the tool {tool}", hint


_NUMBER = re.compile(
    r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w.])|(?<![\w.])\d+(?:\.\d+)?(?!\.?\d)"
)


_BOX = re.compile(r"\d+(?:,\s+\d+){3}(?!\d)")
"""Four whole numbers in a row: a box in pixels, whose sides tell nothing of a measured value."""


def revealed_answer(slot: object, text: str) -> str | None:
    """Return the part of ``text`` that reveals the slot's value, or None.

    A label is not a leak if the text names another choice as well; a number is one only if it has at least two
    significant digits and is not a side of a box.
    """
    if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
        for other in slot.distractors:
            if any(has_word(text, name) for name in (other, *slot.aliases.get(other, ()))):
                return None
        return next((label for label in labels_of(slot) if has_word(text, label)), None)
    if isinstance(slot, ChoiceSetSlot):
        named = [choice for choice in slot.choices if has_word(text, choice)]
        right = set(slot.value)
        is_leak = named and set(named) == right and right != set(slot.choices)
        return ", ".join(named) if is_leak else None
    if isinstance(slot, FileSlot):
        files = [choice for choice in slot.choices if choice in text]
        return slot.value if files == [slot.value] and len(slot.choices) > 1 else None
    value = slot.value if isinstance(slot, (ToleranceSlot, ExactSlot)) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    for match in _NUMBER.finditer(_BOX.sub(" ", text)):
        digits = match[0]
        if _is_value(digits.replace(",", ""), float(value)):
            return digits
    return None


def labels_of(slot: object) -> tuple[str, ...]:
    """Return all names of the correct label; empty if the answer is not a label."""
    if isinstance(slot, ChoiceSetSlot):
        return slot.value
    return slot.names if isinstance(slot, ExactSlot) and isinstance(slot.value, str) else ()


def has_word(text: str, words: str) -> bool:
    """Return True if ``text`` contains ``words`` as whole words. Chinese has no spaces, so any match counts there."""
    pattern = rf"{WORD_START}{re.escape(words.casefold())}{WORD_END}"
    return bool(words) and re.search(pattern, text.casefold()) is not None


def normalise_words(text: str) -> str:
    """Return ``text`` in lower case with single spaces in place of punctuation: ``image_1.jpg`` becomes ``image 1
    jpg``."""
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _is_value(digits: str, value: float) -> bool:
    """Return True if ``digits`` is ``value`` rounded to the same number of significant digits, at least two."""
    significant = len(digits.replace(".", "").lstrip("0"))
    if significant < 2 or value == 0 or not math.isfinite(value):
        return False
    return math.isclose(float(digits), float(f"{abs(value):.{significant - 1}e}"), rel_tol=1e-9)


_OBJECT = r"(?:the|a|an|it|its|how|this|that|these|those|both|all|each|every|my|our|them|me)"
_AS_ORDER = r"(?:^|[.?!:;,]\s*|\b(?:to|and|then|please|you|just|now)\s+)"
_STEP_WORDS = [
    re.compile(pattern.replace("OBJECT", _OBJECT).replace("AS_ORDER", _AS_ORDER), re.IGNORECASE)
    for pattern in read_table(Path(__file__).with_name("leaks.toml"))["steps"]
]


_MEANS = {
    "tool": ("the tool {}", "ask for the result, not for the tool"),
    "argument": ("the argument {}", "say it in the words of the person who asks"),
    "steps": ("steps or tools: {!r}", "ask for the result, not for the way to it"),
}


def named_means(query: str, toolset: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the tools of ``toolset`` that a query names, an argument of them, and the first words for steps."""
    yield from (("tool", name) for name in toolset if names_tool(query, name))
    schemas = (tool_or_none(name) for name in toolset)
    arguments = sorted(
        {
            name
            for tool in schemas
            if tool is not None
            for name in tool.spec.agreement
            if "_" in name
        }
    )
    named = (
        name for name in arguments if re.search(rf"{WORD_START}{re.escape(name)}{WORD_END}", query)
    )
    yield from (("argument", name) for name in islice(named, 1))
    if words := step_words(query):
        yield "steps", words


def names_tool(query: str, tool: str) -> bool:
    """Return True if ``query`` names ``tool``.

    A name with underscores counts anywhere. Its words with spaces between them (``fruit weight``) may be words of the
    matter, as may a name of one word (``plot``, ``weight``): they count only as an order (``plot the``, ``calculate
    how``) or next to ``use``, ``call`` or ``tool``, so that a plot of land and ``use the weight`` are no match.
    """
    words = normalise_words(tool)
    if " " in words and has_word(query, tool):
        return True
    order = rf"{_AS_ORDER}{words}\s+{_OBJECT}\b"
    used = rf"\b(?:use|using|call|calling|run|invoke)\s+`?{words}\b"
    beside = rf"\b{words}`?\s+(?:tool|function)\b|`{words}`|{WORD_START}{words}(?:工具|函数)|用{words}{WORD_END}"
    return re.search(f"{order}|{used}|{beside}", query, re.IGNORECASE) is not None


def has_tool_words(query: str, tool: str) -> bool:
    """Return True if ``query`` has all words of a name of several words in their order, but does not name the tool.

    A name of one word is left out: it is a word like others.
    """
    words = normalise_words(tool)
    return " " in words and has_word(normalise_words(query), words) and not names_tool(query, tool)


def step_words(query: str) -> str | None:
    """Return the first words of ``query`` that name steps, tools or methods, in English or Chinese."""
    matches = (pattern.search(query) for pattern in _STEP_WORDS)
    return next((match[0].strip() for match in matches if match), None)
