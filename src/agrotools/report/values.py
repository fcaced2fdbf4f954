"""Values of others (models, tools, servers) as short, harmless text."""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    ImageCallsSlot,
    KeywordsSlot,
    OpenTextSlot,
    PlotSlot,
    ReferenceTextsSlot,
    Slot,
    ToleranceSlot,
)
from agrotools.core.refs import is_ref, literal_value

LONGEST = 300
"""Characters of one value; the rest is cut and said to be."""
_MANY = 12


def harmless(text: str) -> str:
    """``text`` without control characters: what a model wrote must not steer a terminal."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        letter if letter == "\n" or letter.isprintable() else " " if letter == "\t" else "\N{REPLACEMENT CHARACTER}"
        for letter in text.replace("\r\n", "\n")
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """``text`` of at most about ``longest`` characters."""
    if len(text) <= longest:
        return text
    return f"{text[:longest].rstrip()}… ({len(text) - longest} more characters)"


def value_text(value: JsonValue) -> str:
    """One value on one line: ``8.93``, ``image_1.jpg``, ``[1, 2, 3]``, ``{a: 1}``; a reference with its value."""
    return shortened(harmless(_text(value)).replace("\n", " "))


def _text(value: JsonValue) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return value if value and value == value.strip() else repr(value)
    if isinstance(value, list):
        return f"[{_some([_text(item) for item in value])}]"
    if isinstance(value, dict):
        if is_ref(value):
            return f"{_text(literal_value(value))} (from {value['$ref']})"
        return f"{{{_some([f'{key}: {_text(item)}' for key, item in value.items()])}}}"
    return str(value)


def _some(items: list[str]) -> str:
    left_out = f", … {len(items) - _MANY} more" if len(items) > _MANY else ""
    return ", ".join(items[:_MANY]) + left_out


def fields_text(fields: Mapping[str, JsonValue]) -> str:
    """Fields in one line: ``weed_pct: 8.9, crop_pct: 12.1``."""
    return ", ".join(f"{name}: {value_text(value)}" for name, value in fields.items())


def wanted_text(slot: Slot) -> str:
    """What a slot holds to be right, for a person: ``8.9 % ± 0.5``, ``Lantana (or: Lantana camara)``."""
    if isinstance(slot, ToleranceSlot):
        unit = f" {slot.unit}" if slot.unit else ""
        return f"{slot.value:.6g}{unit} ± {slot.margin:.3g}"
    if isinstance(slot, ExactSlot):
        unit = f" {slot.unit}" if slot.unit else ""
        others = f" (or: {', '.join(slot.aliases)})" if slot.aliases else ""
        return f"{_text(slot.value)}{unit}{others}"
    if isinstance(slot, BooleanSlot):
        return _text(slot.value)
    if isinstance(slot, ChoiceSetSlot):
        return f"{', '.join(slot.value) or 'none'} (of {', '.join(slot.choices)})"
    if isinstance(slot, OpenTextSlot):
        return "; ".join(fact.phrases[0] for fact in slot.facts)
    if isinstance(slot, KeywordsSlot):
        groups = " and ".join("/".join(group) for group in slot.whitelist if group)
        wrong = "/".join(alias for group in slot.blacklist for alias in group)
        return f"{groups or 'anything'}{f', not {wrong}' if wrong else ''}"
    if isinstance(slot, ReferenceTextsSlot):
        return " or: ".join(slot.values)
    if isinstance(slot, ImageCallsSlot):
        return f"an image made by the calls of the reference to {', '.join(slot.tools)}"
    if isinstance(slot, PlotSlot):
        source = "values of the reference tools" if slot.value_from == "tool" else "ground truth"
        shown = f"{value_text(slot.value.get('kind'))} of {_series_text(slot.value.get('series'))}"
        return shortened(f"{shown} ({source})")
    return shortened(slot.expected_text) if slot.made else slot.expected_text


def _series_text(series: JsonValue) -> str:
    """The points of a figure: ``weeds: a 1, b 2; crop: a 3, b 4``."""
    texts: list[str] = []
    for one in series if isinstance(series, list) else []:
        if isinstance(one, dict) and isinstance(one.get("x"), list) and isinstance(one.get("y"), list):
            points = zip(cast(list[JsonValue], one["x"]), cast(list[JsonValue], one["y"]), strict=False)
            drawn = _some([f"{value_text(x)} {value_text(y)}" for x, y in points])
            texts.append(f"{value_text(one.get('name'))}: {drawn}")
    return "; ".join(texts)
