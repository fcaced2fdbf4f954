"""A short valid call of a tool on the files of a question, for the error that an invalid call gets."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from agrotools.calling.contract import Tool
from agrotools.core import Arguments, SampleFile, ToolError

_INSTEAD = {"image": ("image", "raster"), "raster": ("raster", "image")}
"""Kinds of files that an argument takes, the best first; other arguments take their own kind only."""


def example_call(
    tool: Tool[..., Any], given: Arguments, files: Sequence[SampleFile]
) -> Arguments | None:
    """Return a valid call after the tool's example, on files of the question; None if they do not suffice.

    A file that the call ``given`` names stays where it is.
    """
    call: Arguments = {}
    for name, value in tool.example.items():
        if tool.spec.agreement[name] != "file":
            call[name] = value
            continue
        file = _file(str(value), given.get(name), files, taken={*map(str, call.values())})
        if file is None:
            return None
        call[name] = file
    try:
        tool.validate(call)
    except ToolError:
        return None
    return call


def example_hint(tool: Tool[..., Any], given: Arguments, files: Sequence[SampleFile]) -> str | None:
    """Return the example in words, as a hint; None without one."""
    call = example_call(tool, given, files) if tool.example else None
    if not call:
        return None
    return f"a valid call: {tool.name} {json.dumps(call, ensure_ascii=False)}"


def _file(kind: str, given: JsonValue, files: Sequence[SampleFile], taken: set[str]) -> str | None:
    """Return the name of a file of this kind: the given one if it is listed, else the first that is not taken."""
    for each in _INSTEAD.get(kind, (kind,)):
        names = [file.name for file in files if file.kind == each]
        if isinstance(given, str) and given in names:
            return given
        for name in names:
            if name not in taken:
                return name
    return None
