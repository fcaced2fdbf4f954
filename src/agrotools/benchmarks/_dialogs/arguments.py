"""Comparison of the arguments of two calls: when they are the same, and when they agree.

The published rule is Python's equality of the two objects: a default that is written out differs from one that is left
out, ``true`` is 1, a path depends on where the data lie, and ``(1,2,3,4)`` is another box than ``(1, 2, 3, 4)``.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import JsonValue

from agrotools.core import AgreementKind, ToolSpec
from agrotools.text.agreement import compare_arguments
from agrotools.text.agreement_values import same_json
from agrotools.text.loose_json import is_list, is_object, is_text

Specs = Mapping[str, ToolSpec]

_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d++)?|\.\d++)")
_EDGE = r"\s*+-?(?:\d++(?:\.\d++)?|\.\d++)\s*+"
_BOX = re.compile(rf"\s*+[(\[]?{_EDGE}(?:,{_EDGE}){{3}}[)\]]?\s*+")
_FILE = re.compile(r"\.(?:jpe?g|png|tiff?|bmp|webp|gif|mp4)$", re.IGNORECASE)
_DEEPEST = 50


def canonical(name: str, arguments: Any, specs: Specs) -> dict[str, JsonValue] | None:
    """The arguments with defaults filled in, files by their base name and boxes as numbers; None for no object."""
    if not is_object(arguments) or not _is_flat_enough(arguments):
        return None
    spec = specs.get(name)
    defaults: dict[str, JsonValue] = dict(spec.defaults) if spec else {}
    kinds: Mapping[str, str] = spec.agreement if spec else {}
    given = {key: value for key, value in arguments.items() if value is not None or key not in defaults}
    return {key: _plain(value, kinds.get(key)) for key, value in {**defaults, **given}.items()}


def _plain(value: Any, kind: str | None) -> JsonValue:
    if is_text(value):
        if kind == "file" or (kind is None and ("/" in value or "\\" in value) and _FILE.search(value)):
            return value.strip().replace("\\", "/").rstrip("/").rpartition("/")[2]
        if kind == "box" and _BOX.fullmatch(value):
            return [float(number) for number in _NUMBER.findall(value)]
    return value


def _is_flat_enough(value: Any, left: int = _DEEPEST) -> bool:
    if is_object(value):
        return left > 0 and all(_is_flat_enough(item, left - 1) for item in value.values())
    return left > 0 and all(_is_flat_enough(item, left - 1) for item in value) if is_list(value) else True


class Same(NamedTuple):
    """``equal``: both calls ask for the same, spelt differently at most in defaults, folders and blanks of boxes.
    ``agree``: they agree as AgroTools compares calls: sums by value, boxes by overlap, texts by their words."""

    equal: bool
    agree: bool


def compare(name: str, predicted: Any, reference: Any, specs: Specs) -> Same:
    """How alike the arguments of two calls of the tool ``name`` are; arguments that are no object are like nothing."""
    first, second = canonical(name, predicted, specs), canonical(name, reference, specs)
    if first is None or second is None:
        return Same(equal=False, agree=False)
    if same_json(first, second):
        return Same(equal=True, agree=True)
    spec = specs.get(name)
    agrees = spec is not None and all(row.agrees for row in compare_arguments(spec, first, second))
    return Same(equal=False, agree=agrees)


def as_text(name: str, arguments: Any, specs: Specs) -> str:
    """The arguments in one spelling, to be embedded."""
    found = canonical(name, arguments, specs)
    return json.dumps(found if found is not None else str(arguments), sort_keys=True, ensure_ascii=False)


# Names and defaults are those of GTA's toolmeta.json and ThinkGeo's tools (both Apache-2.0).
_PARAMETERS: Mapping[str, Mapping[str, AgreementKind]] = {
    "Calculator": {"expression": "expression"},
    "OCR": {"image": "file"},
    "CountGivenObject": {"image": "file", "text": "text", "bbox": "box"},
    "ImageDescription": {"image": "file"},
    "GoogleSearch": {"query": "text", "k": "number"},
    "RegionAttributeDescription": {"image": "file", "bbox": "box", "attribute": "text"},
    "TextToBbox": {"image": "file", "text": "text", "top1": "choice"},
    "Plot": {"command": "text"},
    "MathOCR": {"image": "file"},
    "Solver": {"command": "text"},
    "DrawBox": {"image": "file", "bbox": "box", "annotation": "text"},
    "AddText": {"image": "file", "text": "text", "position": "choice", "color": "choice"},
    "TextToImage": {"keywords": "text"},
    "ImageStylization": {"image": "file", "instruction": "text"},
    "ObjectDetection": {"image": "file"},
    "ChangeDetection": {"text": "text", "pre_image": "file", "post_image": "file"},
    "SegmentObjectPixels": {"image": "file", "text": "text", "flag": "choice"},
}
_DEFAULTS: Mapping[str, dict[str, JsonValue]] = {
    "GoogleSearch": {"k": 10},
    "TextToBbox": {"top1": True},
    "DrawBox": {"annotation": None},
    "AddText": {"color": "red"},
    "CountGivenObject": {"bbox": None},
    "SegmentObjectPixels": {"flag": True},
}


@cache
def published_specs() -> Mapping[str, ToolSpec]:
    """The tools by name, with no more than the comparison of arguments needs."""
    return {
        name: ToolSpec(
            name=name,
            category="published",
            version="1",
            description="",
            parameters={},
            agreement=dict(kinds),
            defaults=_DEFAULTS.get(name, {}),
        )
        for name, kinds in _PARAMETERS.items()
    }
