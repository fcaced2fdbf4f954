"""Words that a model is asked with: the prompts of the folder ``prompts``, filled with facts about files and tools."""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agrotools.calling import get_tool
from agrotools_build.composing.tolerance import known_paths
from agrotools_build.drafting.material import Noted

_FOLDER = Path(__file__).with_name("prompts")
_PROMPTS = Environment(
    loader=FileSystemLoader(_FOLDER),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
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


def tool_lines(tools: Sequence[str], noted: Sequence[Noted]) -> list[str]:
    """Return a line for each tool: its call, what it does, and the values of its result that can be asked for."""
    lines: list[str] = []
    for name in tools:
        spec = get_tool(name).spec
        shown = spec.shown_parameters
        required = set(shown.get("required", ()))
        arguments = [
            _argument(each, schema, is_required=each in required)
            for each, schema in shown["properties"].items()
        ]
        of_tool = [each.path for each in noted if each.tool == name]
        paths = list(dict.fromkeys((*of_tool, *known_paths(name)))) or ["value"]
        does = " ".join(spec.description.split()).partition(". ")[0].rstrip(".")
        lines.append(f"{name}({', '.join(arguments)}): {does}. Results: {', '.join(paths)}")
    return lines


def _argument(name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    options = schema.get("enum")
    text = f"{name}={'|'.join(map(str, options))}" if options else name
    return text if is_required else f"[{text}]"
