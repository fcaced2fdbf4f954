"""Messages and hints of tools in the words of the command line.

Tools speak of their arguments as Python and models write them: ``bands={'R': 3}``, ``gsd_m``, "with region". A user of
the command line types ``--bands '{"R": 3}'``, ``--gsd-m``, ``--region``.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_OBJECT = r"\{'[^{}]*\}"
"""An object as Python writes it; arguments have none within others."""
_VALUE = rf"{_OBJECT}|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|[\w.+-]*\w"
_VERBS = "with|pass|give|giving|use|as|either|leave out|leave|takes|arguments:"
"""Words before an argument. Only behind these is the name of one a name: most are words of any sentence, like image."""

Written = Callable[[str, Any], str]
"""Returns an option with its value, as it is typed."""


def with_json(option: str, value: Any) -> str:
    """Return an option with its value; lists and objects are JSON."""
    return f"{option} {_as_json(value)}"


def with_pairs(option: str, value: Any) -> str:
    """Return an option for each pair of an object: ``--band R=3 --band NIR=4``."""
    if not isinstance(value, dict):
        return f"{option} {value}"
    pairs: dict[str, Any] = value
    return " ".join(f"{option} {name}={item}" for name, item in pairs.items())


def in_options(text: str, options: Mapping[str, str], written: Written = with_json) -> str:
    """Return a message or hint with options instead of arguments. ``options``: by the name of the argument."""
    if not options:
        return text
    any_name = "|".join(re.escape(name) for name in sorted(options, key=len, reverse=True))

    def with_value(found: re.Match[str]) -> str:
        return written(options[found[1]], _value_of(found[2]))

    text = re.sub(rf"(?<![\w-])({any_name})\s?=\s?({_VALUE})", with_value, text)
    # An object that stands alone is the value of the option before it: bands={'R': 3} or {'NDVI': 1}.
    objects = next((name for name in options if name in ("bands", "label_map")), None)
    if objects is not None:
        option = options[objects]
        text = re.sub(
            rf"(?<!')({_OBJECT})", lambda found: written(option, _value_of(found[1])), text
        )
    long = [name for name in options if "_" in name]
    if long:
        text = re.sub(rf"(?<![\w-])({'|'.join(long)})(?!\w)", lambda found: options[found[1]], text)
    text = re.sub(rf"^({any_name})(?=: )", lambda found: options[found[1]], text)
    words = rf"({any_name})(?![\w-])"
    text = re.sub(rf"\b({_VERBS}) {words}", lambda found: f"{found[1]} {options[found[2]]}", text)
    # The others of a list: pass chm, or dsm and dtm.
    listed = rf"(--[\w-]+)( \(optional\))?(, or|, and| or| and|,) {words}"
    while True:
        longer = re.sub(listed, lambda m: f"{m[1]}{m[2] or ''}{m[3]} {options[m[4]]}", text)
        if longer == text:
            return text
        text = longer


def options_of(names: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of ``tools run`` by the name of the argument."""
    return {name: f"--{name.replace('_', '-')}" for name in names}


def _value_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _as_json(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{json.dumps(value)}'" if isinstance(value, dict | list) else str(value)
