"""Words that a model is asked with: the prompts of the folder ``prompts``, filled with facts about files and tools."""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agrotools.calling import get_tool
from agrotools_build.composing.tolerance import askable_fields
from agrotools_build.drafting.material import Noted

_FOLDER = Path(__file__).with_name("prompts")
_PROMPTS = Environment(
    loader=FileSystemLoader(_FOLDER),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
    auto_reload=False,
)
_LONGEST_DATA = 300
"""Characters of a text from a label that a prompt holds: a quantity or a name is far shorter."""


def prompt(name: str, **values: Any) -> str:
    """Return a prompt filled with values."""
    return _PROMPTS.get_template(f"{name}.j2").render(**values)


@cache
def prompt_hash(name: str) -> str:
    """Return the first 16 digits of the SHA-256 of a prompt before it is filled."""
    return sha256((_FOLDER / f"{name}.j2").read_bytes()).hexdigest()[:16]


def as_data(text: str) -> str:
    """Return a text of a label on one line, without the marks that end data in a prompt."""
    return " ".join(text.split()).replace("<", "(").replace(">", ")")[:_LONGEST_DATA]


_WORDED = ("choice", "text", "expression", "variables", "series", "chart")
"""Kinds of optional arguments that a question can give in words. Of files, boxes and numbers nobody has said anything,
and small models fill in whatever is named: a 1.5B model gave a mask, a region and a scale that did not exist."""


def tool_lines(tools: Sequence[str], noted: Sequence[Noted]) -> list[str]:
    """Return a line for each tool: its call, what it does, and the values of its result that can be asked for.

    Optional arguments that a question cannot give in words are left out.
    """
    lines: list[str] = []
    for name in tools:
        spec = get_tool(name).spec
        shown = spec.shown_parameters
        required = set(shown.get("required", ()))
        arguments = [
            _argument(each, schema, is_required=each in required)
            for each, schema in shown["properties"].items()
            if each in required or spec.agreement.get(each) in _WORDED
        ]
        of_tool = [each.path for each in noted if each.tool == name]
        exact = ["value"] if name == "calculate" else []
        paths = list(dict.fromkeys((*of_tool, *askable_fields(name), *exact)))
        # What follows a colon lists all fields of the result, of which few can be asked for.
        does = " ".join(spec.description.split()).partition(". ")[0].partition(":")[0].rstrip(".")
        results = f" Results to ask for: {', '.join(paths)}" if paths else ""
        lines.append(f"{name}({', '.join(arguments)}): {does}.{results}")
    return lines


def _argument(name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    options = schema.get("enum")
    text = f"{name}={'|'.join(map(str, options))}" if options else name
    return text if is_required else f"[{text}]"
