"""The options of one question, as replies may name them: by letter, by text, by a word for true or false."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from agrotools.scoring.choices.prepare import lowered, plain
from agrotools.scoring.choices.words import END, any_of, lexicon

Kind = Literal["single", "multiple", "true_false"]
_LETTERS_ONLY = re.compile(r"[a-z]+")


class Item(NamedTuple):
    """``letters``: capital letter to key. ``texts``: lower-cased option text and key, the longest first; a text that is
    itself a run of option letters, or that two options share, names no option. ``truth``: the keys of true and false
    where the options are these two. ``begins``: the first characters of ``texts``; ``names``: all texts, in order."""

    kind: Kind
    keys: tuple[str, ...]
    letters: dict[str, str]
    texts: tuple[tuple[str, str], ...]
    begins: frozenset[str]
    names: tuple[str, ...]
    truth: dict[bool, str] | None

    def ordered(self, chosen: frozenset[str]) -> tuple[str, ...]:
        return tuple(key for key in self.keys if key in chosen)

    def text_at(self, low: str, position: int) -> tuple[str, int] | None:
        """The option whose text stands at ``position`` of a lower-cased text, and where it ends."""
        if low[position : position + 1] not in self.begins:
            return None
        for text, key in self.texts:
            if low.startswith(text, position) and _whole(low, position, position + len(text)):
                return key, position + len(text)
        return None


def _whole(low: str, start: int, end: int) -> bool:
    """Whether a text is no part of a longer word or number."""
    before, after = low[start - 1 : start] if start else "", low[end : end + 1]
    first, last = low[start], low[end - 1]
    if first.isascii() and first.isalnum() and before.isascii() and before.isalnum():
        return False
    if last.isascii() and last.isalnum() and after.isascii() and after.isalnum():
        return False
    if first.isdigit() and before in (".", ",") and low[start - 2 : start - 1].isdigit():
        return False
    return not (last.isdigit() and (after in ("%", "‰") or (after in (".", ",") and low[end + 1 : end + 2].isdigit())))


def read_item(options: Mapping[str, str], kind: Kind) -> Item:
    return _item(tuple(options.items()), kind)


@lru_cache(maxsize=512)
def _item(options: tuple[tuple[str, str], ...], kind: Kind) -> Item:
    keys = tuple(key for key, _ in options)
    letters = {key.upper(): key for key in keys if len(key) == 1 and key.isascii() and key.isalpha()}
    owners: dict[str, list[str]] = {}
    names: list[str] = []
    for key, text in options:
        name = lowered(plain(text)).strip().strip("。.;, ")
        names.append(name)
        for written in dict.fromkeys((name, name.replace(" ", ""))):
            if written:
                owners.setdefault(written, []).append(key)
    own = {name: keys[0] for name, keys in owners.items() if len(keys) == 1}
    texts = [(name, key) for name, key in own.items() if not _is_letters(name, letters)]
    texts.sort(key=lambda entry: -len(entry[0]))
    said = {truth_word(name): key for name, key in own.items()} if len(keys) == 2 else {}
    truth = {True: said[True], False: said[False]} if True in said and False in said else None
    return Item(kind, keys, letters, tuple(texts), frozenset(text[0] for text, _ in texts), tuple(names), truth)


def _is_letters(name: str, letters: dict[str, str]) -> bool:
    return _LETTERS_ONLY.fullmatch(name) is not None and all(letter.upper() in letters for letter in name)


@cache
def _alone() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?P<false>{any_of('false_alone')})|{any_of('true_alone')})(?:的|了|哦|吧|呢)?{END}",
    )


def truth_word(text: str) -> bool | None:
    """What ``text``, lower-cased, says as a whole: true, false, or neither."""
    found = truth_at(text, 0)
    return found[0] if found and found[1] == len(text) else None


def truth_at(low: str, position: int) -> tuple[bool, int] | None:
    """The word for true or false at ``position``, and where it ends."""
    said = lexicon("true", "false")
    if match := said.pattern.match(low, position):
        return said.role(match) == "true", match.end()
    match = _alone().match(low, position)
    return (match["false"] is None, match.end()) if match else None


def truths_said(low: str) -> list[tuple[bool, int, int]]:
    """Words for true and false in prose, with their spans."""
    said = lexicon("true", "false")
    return [(said.role(match) == "true", match.start(), match.end()) for match in said.pattern.finditer(low)]
