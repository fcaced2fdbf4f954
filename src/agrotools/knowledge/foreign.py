"""English names for names in Portuguese, Spanish, French, German and Italian, as ``foreign.toml`` lists them."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from agrotools.knowledge.words import folded


def english_names(name: str) -> tuple[str, ...]:
    """Return the English names that a foreign name may stand for; empty if it is not listed.

    A name may come with its crop: "ferrugem do café" is "coffee rust", "Kaffee Rost" too.
    """
    plain = folded(name)
    if plain in _listed("names"):
        return _listed("names")[plain]
    before_crop, after_crop = _crop_patterns()
    if match := before_crop.fullmatch(plain) or after_crop.fullmatch(plain):
        crop = _listed("crops")[match["crop"]][0]
        return tuple(
            english if english.startswith(f"{crop} ") else f"{crop} {english}"
            for english in _listed("names").get(match["name"], ())
        )
    return ()


def foreign_names() -> tuple[str, ...]:
    """Return all names of diseases and pests that are listed, folded."""
    return tuple(_listed("names"))


def english_crop(name: str) -> str | None:
    """Return the English name of a crop that is written in another language, or None."""
    return next(iter(_listed("crops").get(folded(name), ())), None)


@cache
def foreign_words(of: str) -> frozenset[str]:
    """Return the folded words of a list: "healthy", "leaf" or "joining"."""
    return frozenset(map(folded, _data()["words"][of]))


@cache
def _data() -> dict[str, Any]:
    text = files("agrotools.knowledge").joinpath("foreign.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def _listed(part: str) -> dict[str, tuple[str, ...]]:
    """Return the English names of each folded foreign name of a part of the list."""
    english_of: dict[str, dict[str, None]] = {}
    for english, by_language in _data()[part].items():
        for names in by_language.values():
            for name in names:
                english_of.setdefault(folded(name), {})[english] = None
    return {name: tuple(english) for name, english in english_of.items()}


@cache
def _crop_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a name before and behind its crop, longer crops and joining words first."""
    crops, joining = (
        "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))
        for words in (_listed("crops"), foreign_words("joining"))
    )
    return (
        re.compile(rf"(?P<name>.+?) (?:(?:{joining}) )?(?P<crop>{crops})"),
        re.compile(rf"(?P<crop>{crops}) (?P<name>.+)"),
    )
