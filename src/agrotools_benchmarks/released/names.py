"""Names of fields, arguments and tools in one spelling, and in English where the files have them in Chinese."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agrotools.core.files import read_text


@cache
def words(table: str) -> dict[str, str]:
    """Return a table of ``words.toml``: names in the files, and the same in our words."""
    return tomllib.loads(read_text(Path(__file__).with_name("words.toml")))[table]


def in_english(name: str, table: str) -> str:
    """Return the word of a table of ``words.toml`` for a name, which may have a remark in brackets; else the name."""
    if name.isascii():
        return name
    return words(table).get(_REMARK.sub("", name).strip(), name)


_REMARK = re.compile(r"[(（][^)）]*[)）]\s*$")


def snake(name: str) -> str:
    """Return a name in small letters with underscores: ``answerType`` as ``answer_type``, ``Image(s)`` too."""
    if not name.isascii():
        name = ".".join(in_english(part, "fields") for part in name.split("."))
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])", "_", name.replace("(s)", "s"))
    return re.sub(r"[^a-z0-9.*]+", "_", parted.lower()).strip("_")


def with_plain_keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in small letters with underscores where they have capitals: ``toolName``.

    Keys in Chinese that ``words.toml`` has are translated; others, which may be names of parts of an answer, stay.
    """
    return {_plain_key(key): value for key, value in given.items()}


def _plain_key(key: Any) -> Any:
    if not isinstance(key, str):
        return key
    if not key.isascii():
        return in_english(key, "fields")
    return snake(key) if _CAPITAL.search(key) else key


_CAPITAL = re.compile(r"[A-Z]")


def argument_name(name: str) -> str:
    """Return the name of an argument in small letters with underscores, in English where ``words.toml`` has it."""
    english = in_english(name.strip(), "arguments")
    return snake(english) if english.isascii() else english


def known_arguments() -> set[str]:
    """Return the names of arguments that a text such as ``expression = 2 + 3`` may begin with."""
    return {*words("arguments").values()}
