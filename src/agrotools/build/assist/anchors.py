"""Words that decide the meaning of a question, by kind; ``meaning.toml`` lists them in English and Chinese."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from pydantic import JsonValue

from agrotools.benchmarks.leaks import has_word
from agrotools.core import ChoiceSetSlot, ExactSlot, FileSlot, Sample
from agrotools.core.record import literal_value
from agrotools.text.normalise import CJK, WORD_END, WORD_START, normalise
from agrotools.text.units import unit_at


class Meaning(NamedTuple):
    """Kinds of deciding words in a text. ``order``: kinds whose order matters, in the order of the text."""

    kinds: frozenset[str]
    order: tuple[str, ...]


class _Scanner(NamedTuple):
    pattern: re.Pattern[str]
    kind_of: dict[str, tuple[str, bool]]
    """Kind of each phrase, and True if its order matters."""


_GOES_ON = r"(?=\s+(?:[\d{]|an?\b|the\b|half\b|that\b|this\b))"


@cache
def word_tables() -> dict[str, Any]:
    """Load the tables of ``meaning.toml``."""
    return tomllib.loads(files("agrotools.build.assist").joinpath("meaning.toml").read_text("utf-8"))


@cache
def _scanner() -> _Scanner:
    table = word_tables()
    entries = [("", False, table["ignored"])]
    entries += [(name, False, words) for name, words in table["set"].items()]
    entries += [(name, True, words) for name, words in table["order"].items()]
    kind_of: dict[str, tuple[str, bool]] = {}
    patterns: dict[str, str] = {}
    for name, ordered, words in entries:
        for phrase in words["en"]:
            plain = phrase.removeprefix("~")
            goes_on = _GOES_ON if phrase != plain else ""
            patterns[plain] = rf"{WORD_START}{re.escape(plain)}{WORD_END}{goes_on}"
            kind_of[plain] = name, ordered
        for phrase in words["zh"]:
            patterns[phrase] = re.escape(phrase)
            kind_of[phrase] = name, ordered
    longest_first = sorted(patterns, key=len, reverse=True)
    return _Scanner(re.compile("|".join(patterns[phrase] for phrase in longest_first)), kind_of)


def meaning_of(text: str) -> Meaning:
    """Return the kinds of deciding words in ``text``."""
    scanner = _scanner()
    # "isn't" and "can't" contain a "not" that word patterns do not match.
    plain = re.sub(r"n't\b", " not", normalise(text)).replace("\n", " ")
    plain = re.sub(r",? or not(?=\s*(?:[?.!;:]|$))", "", plain)
    kinds: set[str] = set()
    order: list[str] = []
    for match in scanner.pattern.finditer(plain):
        kind, ordered = scanner.kind_of[match[0]]
        if not kind:
            continue
        kinds.add(kind)
        if ordered and (not order or order[-1] != kind):
            order.append(kind)
    return Meaning(frozenset(kinds), tuple(order))


_NEGATING = ("un", "non", "in", "im", "dis", "ab", "ir")


def negated_word(variant: str, original: str) -> str | None:
    """Return a word of one text that negates a word of the other with a prefix (``ripe``, ``unripe``), or None."""
    first, second = (
        set(re.findall(r"[a-z]{3,}", normalise(text).replace("non-", "non"))) for text in (variant, original)
    )
    for one, other in ((first, second), (second, first)):
        for word in sorted(one - other):
            stem = next((word.removeprefix(syllable) for syllable in _NEGATING if word.startswith(syllable)), "")
            if len(stem) > 3 and stem in other - one:
                return word
    return None


_IN_NAME = "[A-Za-z0-9_-]"
_FILE = re.compile(
    rf"(?<!{_IN_NAME})(?:{_IN_NAME}+\.)+(?:jpe?g|png|tiff?|csv|npy|bmp|json|xlsx|txt)(?!{_IN_NAME})", re.IGNORECASE
)
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
_LIST = re.compile(r"[-+]?\d+(?:\.\d+)?(?:\s*[,，]\s*[-+]?\d+(?:\.\d+)?)+")
_NUMBER_WORDS = {word: digits for digits, words in word_tables()["numbers"].items() for word in words.split()}
_NUMBER_WORD = re.compile(
    "|".join(
        re.escape(word) if re.match(f"[{CJK}]", word) else rf"{WORD_START}{word}{WORD_END}"
        for word in sorted(_NUMBER_WORDS, key=len, reverse=True)
    )
)
_NOT_NUMBERS = re.compile(
    r"十分|千克|千米|百分|万一|三角|四周|第[一二三四五六七八九十]|[一二三四五六七八九十]分之[一二三四五六七八九十]"
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|「([^」\n]+)」|『([^』\n]+)』|《([^》\n]+)》|«([^»\n]+)»|`([^`\n]+)`")
_WORD_EN = re.compile(r"[a-z]{4,}")
_COMMON = frozenset(word_tables()["words"]["common_en"].split())
_COMMON_ZH = frozenset(word_tables()["words"]["common_zh"])


class Numbers(NamedTuple):
    """Numbers of a text.

    ``values``: count of each (digits, unit). ``by_unit``: digits of each unit in order. ``lists``: boxes and other
    lists of numbers. ``words``: digits of spelled-out numbers.
    """

    values: Counter[tuple[str, str]]
    by_unit: dict[str, tuple[str, ...]]
    lists: Counter[str]
    words: Counter[str]


_WORD_START = re.compile(r"(?<![\w/^])(?=[^\W\d_])")


def numbers_in(text: str) -> Numbers:
    """Return the numbers of ``text`` outside file names, each with the unit that follows it (empty if none does)."""
    plain = normalise(_FILE.sub(" ; ", text))
    numbers: list[tuple[str, str]] = []
    for match in _NUMBER.finditer(plain):
        behind = unit_at(plain, match.end())
        numbers.append((match[0].lstrip("+"), behind[0].symbol if behind else ""))
    by_unit: defaultdict[str, list[str]] = defaultdict(list)
    for digits, unit in numbers:
        by_unit[unit].append(digits)
    lists = Counter(re.sub(r"\s+", "", match[0].replace("，", ",")) for match in _LIST.finditer(plain))
    words = Counter(_NUMBER_WORDS[match[0]] for match in _NUMBER_WORD.finditer(_NOT_NUMBERS.sub(" ; ", plain)))
    return Numbers(Counter(numbers), {unit: tuple(digits) for unit, digits in by_unit.items()}, lists, words)


def units_in(text: str) -> frozenset[str]:
    """Return the units of the unit table in ``text``; those of one letter count only after a number."""
    plain = normalise(_FILE.sub(" ; ", text))
    words = ((word.start(), unit_at(plain, word.start())) for word in _WORD_START.finditer(plain))
    units = {found[0].symbol for start, found in words if found and found[1] - start > 1}
    units |= {unit for _, unit in numbers_in(text).values}
    return frozenset(units | ({"%"} if "%" in plain else set())) - {"", "fraction", "degC", "day", "week", "mu"}


def file_names(text: str, sample: Sample) -> tuple[str, ...]:
    """Return the file names in ``text`` in order: files of the sample and anything that looks like a file name."""
    names = [re.escape(file.name) for file in sorted(sample.files, key=lambda file: -len(file.name))]
    pattern = re.compile(
        "|".join([*(rf"(?<!{_IN_NAME}){name}(?!{_IN_NAME})" for name in names), _FILE.pattern]), _FILE.flags
    )
    return tuple(match[0] for match in pattern.finditer(text))


def quotations(text: str) -> Counter[str]:
    """Count the texts between quotation marks."""
    return Counter(next(filter(None, match.groups())) for match in _QUOTED.finditer(text))


def options_of(sample: Sample) -> tuple[str, ...]:
    """Return every label that the answer may have, right or wrong, with its aliases."""
    options: list[str] = []
    for slot in sample.answer:
        if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
            options += [*slot.names, *slot.choices, *(alias for names in slot.aliases.values() for alias in names)]
        elif isinstance(slot, ChoiceSetSlot):
            options += [*slot.choices, *(alias for names in slot.aliases.values() for alias in names)]
        elif isinstance(slot, FileSlot):
            options += slot.choices
    return tuple(dict.fromkeys(options))


def options_in(text: str, sample: Sample) -> tuple[str, ...]:
    """Return the options that occur in ``text``, in order; of two that overlap, the longer one."""
    names = sorted((name for name in options_of(sample) if has_word(text, name)), key=len, reverse=True)
    if not names:
        return ()
    pattern = "|".join(rf"{WORD_START}{re.escape(name.casefold())}{WORD_END}" for name in names)
    return tuple(match[0] for match in re.finditer(pattern, text.casefold()))


def argument_words(text: str, sample: Sample) -> tuple[str, ...]:
    """Return the words of ``text`` that are arguments of the reference calls (``crop="rice"``)."""
    steps = sample.reference.steps if sample.reference else ()
    names = {file.name for file in sample.files}
    words = (word for step in steps for word in _texts(literal_value(dict(step.arguments))))
    return tuple(
        dict.fromkeys(word for word in words if 1 < len(word) < 40 and word not in names and has_word(text, word))
    )


def label_words(text: str, sample: Sample) -> frozenset[str]:
    """Return the words that ``text`` shares with its answer's labels: English words in the singular, Chinese pairs."""
    labels = " ; ".join(slot.label for slot in sample.answer)
    english = (_stems(text) & _stems(labels)) - _COMMON
    return frozenset(english | (_pairs(text) & _pairs(labels)))


def has_label_word(text: str, word: str) -> bool:
    """Return True if ``text`` contains ``word``, a word from :func:`label_words`."""
    return word in _stems(text) or word in _pairs(text)


def fixed_parts(text: str, sample: Sample) -> tuple[str, ...]:
    """Return everything that any wording of ``text`` must contain, as readable lines."""
    numbers = numbers_in(text)
    bare = [digits if not unit else f"{digits} {unit}" for digits, unit in numbers.values]
    parts = [*file_names(text, sample), *numbers.lists, *bare, *units_in(text), *quotations(text)]
    parts += [*options_in(text, sample), *argument_words(text, sample), *sorted(label_words(text, sample))]
    return tuple(dict.fromkeys(parts))


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD_EN.findall(normalise(text))}


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _pairs(text: str) -> set[str]:
    runs = re.findall(rf"[{CJK}]{{2,}}", text)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return {pair for pair in pairs if not set(pair) & _COMMON_ZH}
