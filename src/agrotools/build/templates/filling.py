"""Filling in: words in braces, and references to what earlier steps return."""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from agrotools.build.references import ref

Words = Mapping[str, str]

_REF = re.compile(r"@(\d+)((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_GIVEN = re.compile(r"\{(\w+)\}")


def filled(text: str, words: Words) -> str:
    """``{limit}`` and the like replaced by what they stand for.

    Raises:
        ValueError: a word that is not there.
    """

    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise ValueError(f"{{{match[1]}}} is no word of this template; known: {', '.join(sorted(words))}")
        return words[match[1]]

    return _GIVEN.sub(word, text)


def references_written_out(text: str) -> str:
    """``@0.severity_pct`` as ``steps[0].observation.severity_pct``."""
    return _REF.sub(lambda match: f"steps[{match[1]}].observation{match[2]}", text)


def filled_arguments(value: JsonValue, words: Words) -> JsonValue:
    """Arguments of a step with words and references in place; a word alone that is a number becomes one."""
    if isinstance(value, dict):
        return {filled(key, words): filled_arguments(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_arguments(item, words) for item in value]
    if not isinstance(value, str):
        return value
    if found := _REF.fullmatch(value):
        return ref(int(found[1]), found[2].lstrip("."))
    if (lone := _GIVEN.fullmatch(value)) and lone[1] in words:
        return _number(words[lone[1]])
    return filled(value, words)


def _number(text: str) -> JsonValue:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
