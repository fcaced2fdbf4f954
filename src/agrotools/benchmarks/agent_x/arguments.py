"""Inputs of Agent-X's reference steps as arguments: they are published as one text, ``VCA_1.jpg, cup``."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from agrotools.core import Arguments

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Calculator": ("expression",),
    "OCR": ("image",),
    "ObjectCounter": ("image", "text"),
    "SceneDescriber": ("image",),
    "WebSearch": ("query",),
    "RegionDescriber": ("image", "bbox", "attribute"),
    "LocateObjectByText": ("image", "text"),
    "CodePlotter": ("command",),
    "MathOCR": ("image",),
    "Solver": ("command",),
    "DrawBoundingBox": ("image", "bbox", "annotation"),
    "OverlayText": ("image", "text", "position"),
    "ImageGenerator": ("keywords",),
    "ImageStylization": ("image", "instruction"),
}
"""Parameters of the tools of Agent-X in order, from toolmeta.json of mbzuai-oryx/Agent-X."""

_BOX = re.compile(r"[(\[]\s*-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?){3}\s*[)\]]")
_NAMED = re.compile(r"^\s*([a-z_0-9]+)\s*[=:]\s*", re.IGNORECASE)
_QUOTES = "\"'` "


def arguments_of(tool: str, given: Any, files: Mapping[str, str], parameters: Sequence[str] = ()) -> Arguments | None:
    """The arguments that an input stands for; None where it cannot be told.

    Args:
        tool: the published name.
        given: an object (names and values), a list (values in order) or a text. Of a text, the first part that names a
            file is the image, what stands in brackets as four numbers the box, and the rest the first text that the
            tool takes; a tool that takes one value gets all of it.
        files: names in the sample by every name that an input may call a file.
        parameters: what the tool takes, where it is not one of Agent-X's.
    """
    names = tuple(PARAMETERS.get(tool, parameters))
    if isinstance(given, dict):
        return {str(name): _named(value, files) for name, value in cast("dict[str, JsonValue]", given).items()}
    if not names:
        return None
    if isinstance(given, list):
        values = cast("list[JsonValue]", given)
        if len(values) > len(names):
            return None
        return {name: _named(value, files) for name, value in zip(names, values, strict=False)}
    if given is None or given == "":
        return {"image": _first(files)} if names[0] == "image" and files else None
    if not isinstance(given, str):
        return {names[0]: given} if isinstance(given, int | float) else None
    return _of_text(names, given, files)


def _of_text(names: Sequence[str], text: str, files: Mapping[str, str]) -> Arguments | None:
    arguments: Arguments = {}
    rest = text.strip()
    if names[0] == "image":
        found, rest = _without_file(rest, files)
        image = found or (_first(files) if files else None)
        if image is None:
            return None
        arguments["image"] = image
    left = [name for name in names if name != "image"]
    if "bbox" in left:
        left.remove("bbox")
        if box := _BOX.search(rest):
            arguments["bbox"] = box[0]
            rest = rest[: box.start()] + rest[box.end() :]
    rest = _unnamed(rest.strip(" ,;"))
    if rest and left:
        arguments[left[0]] = rest
    return arguments


def _without_file(text: str, files: Mapping[str, str]) -> tuple[str | None, str]:
    """The name of the file that a text begins with (or holds), and the text without it."""
    for published in sorted(files, key=len, reverse=True):
        place = text.find(published)
        if place >= 0:
            before, after = text[:place], text[place + len(published) :]
            before = _NAMED.sub("", before).strip(_QUOTES + ",;")
            after = after.lstrip(_QUOTES).lstrip(",;")
            return files[published], f"{before} {after}".strip()
    return None, text


def _unnamed(text: str) -> str:
    """``text: cup`` as ``cup``, quotes taken off."""
    named = _NAMED.match(text)
    if named and named[1].casefold() in {name for names in PARAMETERS.values() for name in names}:
        text = text[named.end() :]
    return text.strip(_QUOTES)


def _first(files: Mapping[str, str]) -> str:
    return next(iter(files.values()))


def _named(value: JsonValue, files: Mapping[str, str]) -> JsonValue:
    return files.get(value, value) if isinstance(value, str) else value
