"""What the header of a column says: measures whose words it has, things that are counted, and further words."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import combining, normalize

from agrotools.knowledge.countables import Countable, countables
from agrotools.knowledge.foreign import english_crop
from agrotools.knowledge.kb_names import kb_names
from agrotools.text.normalise import CJK
from agrotools.text.units import canonical_unit
from agrotools_build.own_photos.plan import Kind, Measure, measures

_UNIT = re.compile(
    r"[\[(（【]\s*([^\])）】]+)\s*[\])）】]|[_ ](mm|cm|m|pct|percent|%)$|(%)", re.IGNORECASE
)

_FRACTION = re.compile(r"[\[(]\s*0\s*(?:-|–|to|a|bis|à|\.\.)\s*1(?:[.,]0+)?\s*[\])]")
"""The range of a fraction in a header; ``0-10`` is a scale."""


class Header(NamedTuple):
    """A header. ``measures``: those whose words it has, the longest word first; ``unit``: the unit that it gives."""

    measures: tuple[Measure, ...]
    unit: str | None
    target: str | None = None
    """What is counted or measured, one of :func:`countables`."""
    is_plural: bool = False
    """Its word for that is a plural, so that numbers below it are no numbers of one thing."""
    further: tuple[str, ...] = ()
    """Words that are none of the first measure, of a thing, or plain ones."""


@cache
def words_of(kind: str) -> tuple[str, ...]:
    """Return the words of one kind of ``header_words.toml``."""
    text = Path(__file__).with_name("header_words.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)[kind])


def read_header(header: str, kind: Kind | None) -> Header:
    """Return what a header says of a column whose cells are of one kind."""
    unit, rest = unit_in(header)
    fitting = measures_for(rest, kind)
    things = _things_in(rest) if kind == "number" else []
    measure = fitting[0] if fitting else None
    if measure is None and things:
        measure = measures()["count"]
    # An apple tree is a tree: the last noun counts.
    target = things[-1].name if things else None
    if measure is not None and measure.name == "diameter" and not _is_fruit(target):
        target = None
    known = [*words_of("plain"), *words_of("percent")]
    if measure is not None:
        known += [*measure.words, *measure.also]
    if target is not None and measure is not None and measure.name in ("count", "diameter"):
        # "苹果数" is a number of apples, although "果数" is a word, too.
        rest = _without(rest, [each.word for each in _of_one_thing(things)])
    further = _without(rest, known).split()
    if measure is not None and measure.name != "count":
        further = _without_names(further)
    if kind == "number" and unit is None and words_in(header, words_of("percent")):
        unit = "%"
    return Header(
        tuple(fitting), unit, target, bool(things) and things[-1].is_plural, tuple(further)
    )


def _is_fruit(target: str | None) -> bool:
    return target is not None and countables()[target].is_fruit


class _Noun(NamedTuple):
    """A thing that a header names, with its place in the header and the word for it."""

    start: int
    end: int
    name: str
    word: str
    is_plural: bool


def _things_in(text: str) -> list[_Noun]:
    """Return the things that a header names, in its order; of words that overlap the first and longest."""
    found: list[_Noun] = []
    for name, thing in countables().items():
        for word, is_plural in _words_of_thing(thing):
            if match := _found(text, word):
                # Chinese has no plural.
                ends_so = is_plural or match[0] != plain(word) or _is_cjk(word)
                found.append(_Noun(*match.span(), name, word, ends_so))
    things: list[_Noun] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if not things or each.start >= things[-1].end:
            things.append(each)
    return things


def thing_named(text: str) -> str | None:
    """Return the English name of a thing whose name in any known language a text is: "apple" for "Äpfel"."""
    things = _things_in(text)
    is_all = len(things) == 1 and things[0].start == 0 and things[0].end == len(plain(text))
    return things[0].name if is_all else None


def _of_one_thing(things: list[_Noun]) -> list[_Noun]:
    """Return the last noun and those that stand before it in the singular: "apple trees", not "apples and pears"."""
    own = things[-1:]
    for each in reversed(things[:-1]):
        is_before = own[0].start - each.end <= 1
        if not is_before or (each.is_plural and not _is_cjk(each.word)):
            break
        own = [each, *own]
    return own


def _words_of_thing(thing: Countable) -> Iterable[tuple[str, bool]]:
    yield from ((word, False) for word in thing.words)
    yield from ((word, True) for word in thing.plurals)


def _without_names(words: list[str]) -> list[str]:
    """Return words without the name of a crop, a disease or a pest: "bean rust severity" is a severity."""
    named = " ".join(words)
    has_letters = re.search(r"[^\W\d_]", named) is not None
    is_name = has_letters and (kb_names().meant_by(named) or english_crop(named))
    return [] if is_name else words


def measures_for(header: str, kind: Kind | None) -> list[Measure]:
    """Return the measures of that kind whose words occur in the header, the longest matching word first."""
    longest = [
        (max((len(word) for word in each.words if holds(header, word)), default=0), each)
        for each in measures().values()
        if each.kind == kind
    ]
    return [measure for length, measure in sorted(longest, key=lambda item: -item[0]) if length]


def is_loose(header: str, measure: Measure) -> bool:
    """Return True if a header is known as that of a measure by words alone that may stand above something else, too."""
    said = read_header(header, measure.kind)
    _, rest = unit_in(header)
    words = words_in(rest, measure.words)
    if measure.name == "count" and not words:
        return said.target is not None  # "Spots": nothing says that they are counted, or where
    if measure.name == "diameter" and said.target is None:
        return True  # of fruits, or of a trunk
    return bool(words) and {*words} <= {*measure.loose}


def words_in(header: str, words: Iterable[str]) -> list[str]:
    """Return those of ``words`` that a header has."""
    return [word for word in words if holds(header, word)]


def holds(header: str, word: str) -> bool:
    """Return True if a header has a word, in the singular or plural, with or without its accents."""
    return _found(header, word) is not None


def _found(header: str, word: str) -> re.Match[str] | None:
    return _pattern(word).search(plain(header))


@cache
def _pattern(word: str) -> re.Pattern[str]:
    written = plain(word)
    if _is_cjk(word):
        return re.compile(re.escape(written))
    forms = dict.fromkeys((written, _without_accents(written)))
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, forms))})(?:s|es)?(?!\S)")


def _without(text: str, words: Iterable[str]) -> str:
    """Return a header in plain form without some words, the longest first."""
    rest = plain(text)
    for word in sorted(set(words), key=lambda word: (-len(word), word)):
        rest = _pattern(word).sub(" ", rest)
    return rest


@cache
def plain(text: str) -> str:
    """Return a header in lower case, with a space between words, between CJK and other letters, and around #."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", normalize("NFKC", text).replace("№", "no"))
    apart = re.sub(rf"([{CJK}]+|#)", r" \1 ", apart.casefold())
    words = re.sub(r"[^\w#]|_", " ", apart)
    # "# trees" is a number of trees, "tree #" is its number.
    return re.sub(r"^# (?:of )?", "number of ", " ".join(words.split()))


def _without_accents(text: str) -> str:
    return "".join(letter for letter in normalize("NFD", text) if not combining(letter))


def _is_cjk(text: str) -> bool:
    return re.search(f"[{CJK}]", text) is not None


def own_words(header: str) -> str:
    """Return the words of a header that say what is counted: "ripe apples" of "number of ripe apples (total)"."""
    count = measures()["count"]
    return " ".join(_without(header, [*words_of("plain"), *count.words, *count.also]).split())


def unit_in(header: str) -> tuple[str | None, str]:
    """Return the unit in a header, as in "size (mm)", and the header without it. ``(0-1)`` is a fraction."""
    if match := _FRACTION.search(header):
        return "fraction", f"{header[: match.start()]} {header[match.end() :]}"
    for match in _UNIT.finditer(header):
        if unit := canonical_unit(next(filter(None, match.groups()))):
            return unit, f"{header[: match.start()]} {header[match.end() :]}"
    return None, header
