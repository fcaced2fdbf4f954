"""Words on figures: fonts that have the letters, units as people write them, numbers in short."""

import math
import re
from collections.abc import Callable, Iterable, Sequence

CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "SimHei",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Arial Unicode MS",
)
"""Fonts with Chinese letters that systems commonly have."""

MINUS = "−"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def font_families(texts: Iterable[str]) -> tuple[list[str], bool]:
    """Font families for these texts, in the order in which to look for a letter, and whether all letters are there."""
    from matplotlib import font_manager

    letters = {letter for text in texts for letter in text if not letter.isspace()}
    families = ["DejaVu Sans"]
    missing = _missing(font_manager.findfont("DejaVu Sans"), letters)
    installed = {font.name: font.fname for font in font_manager.fontManager.ttflist}
    for family in CJK_FAMILIES:
        if missing and family in installed:
            left = _missing(installed[family], missing)
            if left != missing:
                families.append(family)
                missing = left
    return families, not missing


def _missing(path: str, letters: set[str]) -> set[str]:
    from matplotlib.font_manager import get_font

    font = get_font(path)
    return {letter for letter in letters if not font.get_char_index(ord(letter))}


def label_with_unit(label: str, unit: str | None) -> str:
    """``Weed cover (%)``; a unit that the label already names is not said twice."""
    if not unit or f"({unit})" in label or f"[{unit}]" in label:
        return superscript(label)
    return superscript(f"{label} ({unit})" if label else f"({unit})")


def superscript(text: str) -> str:
    """``m^2`` as ``m²``, ``ha^-1`` as ``ha⁻¹``."""
    before, *rest = text.split("^")
    out = before
    for part in rest:
        length = 1 if part[:1] == "-" else 0
        while part[length : length + 1].isdigit():
            length += 1
        number = part[:length]
        out += number.translate(_RAISED) + part[length:] if number.strip("-") else "^" + part
    return out


def number_format(values: Iterable[float]) -> Callable[[float], str]:
    """Formatter of these values: the same decimals, enough to tell three digits of the largest."""
    listed = list(values)
    largest = max(map(abs, listed), default=0.0)
    if largest >= 1e9 or 0 < largest < 1e-4:
        return lambda value: f"{value:.3g}".replace("-", MINUS)
    most = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
    needed = (places for places in range(most) if all(abs(value - round(value, places)) < 1e-12 for value in listed))
    decimals = next(needed, most)
    separator = "," if largest >= 1e4 else ""
    return lambda value: f"{value:{separator}.{decimals}f}".replace("-", MINUS)


def tick_format(ticks: Sequence[float], *, separators: bool) -> Callable[[float], str]:
    """Formatter of the numbers of an axis: the same decimals, as few as tell them apart."""
    largest = max(map(abs, ticks), default=0.0)
    if largest >= 1e9 or 0 < largest < 1e-4:
        return lambda value: f"{value:.6g}".replace("-", MINUS)
    decimals = next((places for places in range(9) if all(_is_round(tick, places, largest) for tick in ticks)), 9)
    separator = "," if separators and largest >= 1e4 else ""
    return lambda value: f"{value:{separator}.{decimals}f}".replace("-", MINUS)


def _is_round(value: float, places: int, largest: float) -> bool:
    return abs(value - round(value, places)) <= 1e-9 * largest


def short_text(text: str, longest: int) -> str:
    """``text``, cut with an ellipsis where it is longer."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def width(text: str) -> int:
    """Width in Latin letters: a Chinese letter is as wide as two."""
    return sum(2 if ord(letter) > 0x2E7F else 1 for letter in text)


def wrap_text(text: str, longest: int) -> str:
    """``text`` in lines of at most ``longest`` Latin letters, broken at spaces and between Chinese letters."""
    lines: list[str] = []
    line = ""
    for word in re.findall(r"[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+", text):
        if line.strip() and width(line) + width(word) > longest:
            lines.append(line.strip())
            line = ""
        line += word
    return "\n".join([*lines, line.strip()])
