"""Messages and hints of tools in the words of the command line.

Tools speak of their arguments as Python and models write them: ``bands={'R': 3}``, ``gsd_m``, "with region". A user of
the command line types ``--bands '{"R": 3}'``, ``--gsd-m``, ``--region``. Models and records keep the messages as they
are; the command line rewrites them by a rule for each way of naming an argument.

Most names of arguments are words of any sentence, like image. A rule therefore takes a name only where it can hardly be
a plain word. ``tests/engine/cli/test_option_words.py`` reads the messages of all tools, and fails at one that names an
argument in a way that no rule knows.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_OBJECT = r"\{'[^{}]*\}"
"""An object as Python writes it; arguments have none within others."""
_VALUE = rf"{_OBJECT}|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[\w.+-]*\w"
_OBJECT_ARGUMENTS = ("bands", "label_map")
"""Arguments of which messages show objects without their names, as further examples."""
_WORDS_BEFORE_A_NAME = (
    "with",
    "pass",
    "give",
    "giving",
    "use",
    "as",
    "either",
    "leave out",
    "leave",
    "takes",
    "arguments:",
)
"""Words directly behind which the name of an argument is a name: "pass depth", but "pass the depth"."""
_BETWEEN_NAMES = ", or|, and| or| and|,"

Written = Callable[[str, Any], str]
"""Returns an option with its value, as it is typed."""
Options = Mapping[str, str]
"""Options by the name of the argument."""


def with_json(option: str, value: Any) -> str:
    """Return an option with its value; lists and objects are JSON."""
    return f"{option} {_as_json(value)}"


def with_pairs(option: str, value: Any) -> str:
    """Return an option for each pair of an object: ``--band R=3 --band NIR=4``."""
    if not isinstance(value, dict):
        return f"{option} {value}"
    pairs: dict[str, Any] = value
    return " ".join(f"{option} {name}={item}" for name, item in pairs.items())


def in_options(
    text: str, options: Options, written: Written = with_json, argument: str | None = None
) -> str:
    """Return a message or hint with options instead of arguments. ``argument``: the one that the error is about."""
    if not options:
        return text
    text = _objects_alone(text, options, written, argument)
    text = _names_with_values(text, options, written)
    text = _names_with_underscores(text, options)
    text = _name_at_the_beginning(text, options)
    text = _names_behind_words(text, options)
    return _names_in_lists(text, options)


def options_of(names: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of ``tools run`` by the name of the argument."""
    return {name: f"--{name.replace('_', '-')}" for name in names}


def _objects_alone(text: str, options: Options, written: Written, argument: str | None) -> str:
    """Write an object that stands alone as a value of the last argument before it that takes objects.

    ``bands={'R': 3} or {'NDVI': 1}`` becomes ``bands={'R': 3} or --bands '{"NDVI": 1}'``. Where the text names no such
    argument it is the one of the error, and else the first that the tool has.
    """
    takes_objects = [name for name in options if name in _OBJECT_ARGUMENTS]
    if not takes_objects:
        return text
    usual = argument if argument in takes_objects else takes_objects[0]

    def option_with_object(found: re.Match[str]) -> str:
        named = re.findall(_any_of(takes_objects), text[: found.start()])
        return written(options[named[-1] if named else usual], _value_of(found[1]))

    return re.sub(rf"(?<!')(?<!=)(?<!= )({_OBJECT})", option_with_object, text)


def _names_with_values(text: str, options: Options, written: Written) -> str:
    """Write names with their values: ``min_px = 3 is too small`` becomes ``--min-px 3 is too small``."""
    return re.sub(
        rf"(?<![\w-])({_any_of(options)})\s?=\s?({_VALUE})",
        lambda found: written(options[found[1]], _value_of(found[2])),
        text,
    )


def _names_with_underscores(text: str, options: Options) -> str:
    """Write names that are no words of English anywhere: ``gsd_m is not known`` becomes ``--gsd-m is not known``."""
    long = [name for name in options if "_" in name]
    if not long:
        return text
    return re.sub(rf"(?<![\w-])({_any_of(long)})(?!\w)", lambda found: options[found[1]], text)


def _name_at_the_beginning(text: str, options: Options) -> str:
    """Write the name before a colon that a message begins with: ``bands: no 'x'`` becomes ``--bands: no 'x'``."""
    return re.sub(rf"^({_any_of(options)})(?=: )", lambda found: options[found[1]], text)


def _names_behind_words(text: str, options: Options) -> str:
    """Write names behind certain words: ``take a part with region`` becomes ``take a part with --region``."""
    return re.sub(
        rf"\b({'|'.join(_WORDS_BEFORE_A_NAME)}) ({_any_of(options)})(?![\w-])",
        lambda found: f"{found[1]} {options[found[2]]}",
        text,
    )


def _names_in_lists(text: str, options: Options) -> str:
    """Write the names that follow an option: ``pass --chm, or dsm and dtm`` ends in ``, or --dsm and --dtm``."""
    name = rf"({_any_of(options)})(?![\w-])"
    is_optional = r"(?: \(optional\))?"
    others = rf"(?:{is_optional}(?:{_BETWEEN_NAMES}) {name})+"

    def with_options(found: re.Match[str]) -> str:
        listed = re.sub(rf"(?<= ){name}", lambda other: options[other[1]], found["others"])
        return found["first"] + listed

    return re.sub(rf"(?P<first>--[\w-]+)(?P<others>{others})", with_options, text)


def _any_of(names: Mapping[str, Any] | list[str]) -> str:
    """Return a pattern of names, the longer ones first, because one may begin with another."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _as_json(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{json.dumps(value)}'" if isinstance(value, dict | list) else str(value)
