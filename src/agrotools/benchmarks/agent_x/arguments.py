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


def arguments_of(
    tool: str, raw_arguments: Any, files: Mapping[str, str], parameters: Sequence[str] = ()
) -> Arguments | None:
    """The arguments that an input stands for; None where it cannot be told.

    Args:
        tool: the published name.
        raw_arguments: an object (names and values), a list (values in order) or a text. Of a text, the first part that
            names a file is the image, four numbers in brackets are the box, and the rest is the first text that the
            tool takes; a tool that takes one value gets all of it.
        files: names in the sample by every name that an input may call a file.
        parameters: what the tool takes, where it is not one of Agent-X's.
    """
    names = tuple(PARAMETERS.get(tool, parameters))
    if isinstance(raw_arguments, dict):
        return {
            str(name): _replace_paths(value, files)
            for name, value in cast("dict[str, JsonValue]", raw_arguments).items()
        }
    if not names:
        return None
    if isinstance(raw_arguments, list):
        values = cast("list[JsonValue]", raw_arguments)
        if len(values) > len(names):
            return None
        return {name: _replace_paths(value, files) for name, value in zip(names, values, strict=False)}
    if raw_arguments is None or raw_arguments == "":
        return {"image": _first(files)} if names[0] == "image" and files else None
    if not isinstance(raw_arguments, str):
        return {names[0]: raw_arguments} if isinstance(raw_arguments, int | float) else None
    return _read_text(names, raw_arguments, files)


def _read_text(names: Sequence[str], text: str, files: Mapping[str, str]) -> Arguments | None:
    arguments: Arguments = {}
    rest = text.strip()
    if names[0] == "image":
        file_name, rest = _without_file(rest, files)
        image = file_name or (_first(files) if files else None)
        if image is None:
            return None
        arguments["image"] = image
    text_names = [name for name in names if name != "image"]
    if "bbox" in text_names:
        text_names.remove("bbox")
        if box := _BOX.search(rest):
            arguments["bbox"] = box[0]
            rest = rest[: box.start()] + rest[box.end() :]
    rest = _without_label(rest.strip(" ,;"))
    if rest and text_names:
        arguments[text_names[0]] = rest
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


def _without_label(text: str) -> str:
    """``text: cup`` as ``cup``, quotes taken off."""
    match = _NAMED.match(text)
    if match and match[1].casefold() in {name for names in PARAMETERS.values() for name in names}:
        text = text[match.end() :]
    return text.strip(_QUOTES)


def _first(files: Mapping[str, str]) -> str:
    return next(iter(files.values()))


def _replace_paths(value: JsonValue, files: Mapping[str, str]) -> JsonValue:
    return files.get(value, value) if isinstance(value, str) else value
