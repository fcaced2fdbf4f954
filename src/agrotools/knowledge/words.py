"""Words as compared by the retrieval.

Words are folded, split, stemmed, mapped to concepts and cut into n-grams; this module also corrects spelling and finds
crops and other hosts. Lists of words are in ``words.toml``.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.text.normalise import CJK, normalise

_TOKEN = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_CJK = re.compile(f"[{CJK}]")


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("agrotools.knowledge").joinpath(f"{name}.toml").read_text("utf-8"))


def word_list(name: str) -> frozenset[str]:
    """Return the words of a list in ``words.toml``."""
    return frozenset(_table("words")[name].split())


STOPWORDS = word_list("stop")
"""Uninformative words."""

ASKING = word_list("asking")
"""Words that ask for something without naming the thing. They rank sections, but do not count for entries."""
SECTION_WORDS = {
    section: frozenset(words.split()) for section, words in _table("words")["sections"].items()
}
"""Words of a question that indicate the requested section."""


def section_asked(query: str) -> str | None:
    """Return the section that most words of a question indicate, or None."""
    text = folded(query)
    counts = {
        section: sum(word in words for word in text.split())
        + sum(word in text for word in words if has_cjk(word))
        for section, words in SECTION_WORDS.items()
    }
    best = max(counts, key=lambda section: counts[section])
    return best if counts[best] else None


@lru_cache(100_000)
def folded(text: str) -> str:
    """Return ``text`` in the form in which names are compared: normalised, without accents and punctuation.

    Words are separated by one space. The function is idempotent. Chinese, Japanese and Korean characters are kept.
    """
    plain = unicodedata.normalize("NFKD", normalise(text))
    plain = "".join(char for char in plain if not unicodedata.combining(char)).replace("'", "")
    # Decomposition splits Hangul and may restore upper case; recomposition keeps the folding idempotent.
    plain = normalise(unicodedata.normalize("NFKC", plain)).replace("'", "")
    return " ".join(_TOKEN.findall(plain))


def has_cjk(text: str) -> bool:
    return _CJK.search(text) is not None


def tokens(text: str) -> tuple[str, ...]:
    """Return the folded words of ``text``; a run of Chinese characters gives its pairs (or the single character)."""
    out: list[str] = []
    for word in folded(text).split():
        if _CJK.match(word):
            out += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        else:
            out.append(word)
    return tuple(out)


@lru_cache(100_000)
def stem(word: str) -> str:
    """Return an English word without its ending: plural, -ing, -ed, -ish, -y. Crude, but applied to both sides."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ves", "f"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("xes", "x"),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            word = word[: -len(ending)] + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ening", "ened", "ing", "edly", "ed", "ish", "like"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
                word = word[:-1]
            break
    if len(word) > 4 and word.endswith("y") and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@cache
def concepts() -> dict[str, str]:
    """Return the concept of each stem, from ``concepts.toml``, because growers and textbooks use different words."""
    concept_of_term: dict[str, str] = {}
    for concept, words in _table("concepts").items():
        for word in (concept, *words):
            concept_of_term.setdefault(stem(folded(word)), f"={concept}")
    return concept_of_term


def terms(text: str) -> tuple[str, ...]:
    """Return terms of ``text`` for matching: stems without stop words, with synonyms mapped to one concept."""
    same = concepts()
    stems = (stem(word) for word in tokens(text) if word not in STOPWORDS)
    return tuple(same.get(stem_form, stem_form) for stem_form in stems)


@cache
def asking_terms() -> frozenset[str]:
    return frozenset(term for word in ASKING for term in terms(word))


def ngrams(text: str) -> Iterator[str]:
    """Yield n-grams of 3 to 5 characters of a folded text padded with spaces; 1 to 3 of each Chinese run."""
    latin: list[str] = []
    for word in text.split():
        if _CJK.match(word):
            for size in (1, 2, 3):
                yield from (word[at : at + size] for at in range(len(word) - size + 1))
        else:
            latin.append(word)
    if latin:
        padded = f" {' '.join(latin)} "
        for size in (3, 4, 5):
            yield from (padded[at : at + size] for at in range(len(padded) - size + 1))


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MOST_CORRECTIONS = 4


FAR = 1.0
"""Distance of names that are other words."""
_MOST_EDITS = 0.3
"""Largest share of letters that may differ: one of four to six, two of seven to nine. Farther names are other words."""
_LEAST_STEM = 4
"""Fewest letters of an abbreviation: "miner" is the last word of "leaf miner", "ant" of too many names."""


def name_distance(written: str, known: str) -> float:
    """Return the share of letters that differ between two names, the largest for a whole word of ``known``, or
    :data:`FAR`."""
    written, known = folded(written), folded(known)
    longest = max(len(written), len(known))
    if written and abs(len(written) - len(known)) <= _MOST_EDITS * longest:
        distance = edit_distance(written, known) / longest
        if distance <= _MOST_EDITS:
            return distance
    is_word = len(written) >= _LEAST_STEM and written in known.split()
    return _MOST_EDITS if is_word else FAR


def edit_distance(a: str, b: str) -> int:
    """Return the number of insertions, deletions, substitutions and swaps of neighbours (optimal string alignment)."""
    before, last = [0] * (len(b) + 1), [*range(len(b) + 1)]
    for row, char in enumerate(a):
        line = [row + 1]
        for at, other in enumerate(b):
            line.append(min(last[at] + (char != other), last[at + 1] + 1, line[at] + 1))
            if row and at and char == b[at - 1] and other == a[row - 1]:
                line[-1] = min(line[-1], before[at - 1] + 1)
        before, last = last, line
    return last[-1]


def similarity(a: str, b: str) -> float:
    """Return 1 - distance / length of the longer text: 1 for equal texts, 0 for entirely different ones."""
    longest = max(len(a), len(b))
    return 1.0 if not longest else 1.0 - edit_distance(a, b) / longest


class Lexicon:
    """Correctly spelt words, searched for words within one slip of a misspelt one (two for seven letters or more)."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words)))
        self._word_set = frozenset(self.words)
        counts = [[word.count(letter) for letter in _LETTERS] for word in self.words]
        self._counts = np.array(counts, np.int16).reshape(-1, len(_LETTERS))
        self._found: dict[str, tuple[str, ...]] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._word_set

    def corrections(self, word: str) -> tuple[str, ...]:
        """Return the nearest known words, at most four; none for a known word, a short one, or one with digits."""
        if (
            word in self._word_set
            or not 4 <= len(word) <= 40
            or not (word.isascii() and word.isalpha())
        ):
            return ()
        if word not in self._found:
            if len(self._found) > 10_000:
                self._found.clear()
            self._found[word] = self._nearest(word)
        return self._found[word]

    def _nearest(self, word: str) -> tuple[str, ...]:
        most = 1 if len(word) < 7 else 2
        # A slip changes at most two letter counts, so few words remain to be compared letter by letter.
        letter_counts = np.array([word.count(letter) for letter in _LETTERS], np.int16)
        apart = np.abs(self._counts - letter_counts).sum(axis=1)
        tried = (
            self.words[at] for at in np.flatnonzero(apart <= 2 * most) if len(self.words[at]) >= 4
        )
        near = sorted(
            (distance, known) for known in tried if (distance := edit_distance(known, word)) <= most
        )
        return tuple(known for distance, known in near if distance == near[0][0])[
            :_MOST_CORRECTIONS
        ]


CROP_NAMES = frozenset(" ".join(name.split()) for name in _table("words")["crops"].split(","))
"""Names of crops that entries may use: plain English, lower case, singular except for groups."""
_AMBIGUOUS_CROPS = word_list("ambiguous_crops")
"""Names of crops that may also mean a place, a part, a colour, a weed or a thing in a question."""
OTHER_HOSTS = word_list("other_hosts")
"""Hosts that a question may name but that no entry covers."""
_SAME = {
    name: host for host, names in _table("words")["hosts"].items() for name in names.split(", ")
}
"""Canonical host of each name. "vine" in the singular is excluded, because it may be any climber."""
_HOST_GROUPS = {group: names.split(", ") for group, names in _table("words")["host_groups"].items()}


def known_crops(entries: tuple[KnowledgeEntry, ...] = ()) -> frozenset[str]:
    """Return :data:`CROP_NAMES` and the English names of the crops among ``entries``, in lower case."""
    names = {
        name.lower()
        for entry in entries
        if entry.kind == "crop"
        for name in (entry.names.en, *entry.names.aliases)
    }
    return CROP_NAMES | names


@cache
def _host_of_name() -> dict[str, str]:
    names = {
        name: name for name in (*CROP_NAMES, *OTHER_HOSTS) if name not in _AMBIGUOUS_CROPS
    } | _SAME
    return {
        " ".join(map(stem, name.split())): host for name, host in names.items() if name != "oranges"
    }


def hosts_named(query: str) -> tuple[frozenset[str], frozenset[int]]:
    """Return the hosts that a question names, and the indices of the words that name them."""
    words = folded(query).split()
    stems = [stem(word) for word in words]
    host_of_name = _host_of_name()
    hosts: set[str] = set()
    positions: set[int] = set()
    for at in range(len(words)):
        if at in positions:
            continue
        pair = " ".join(stems[at : at + 2])
        if at + 1 < len(words) and pair in host_of_name:
            hosts.add(host_of_name[pair])
            positions |= {at, at + 1}
        elif words[at] in ("oranges", "vines"):
            hosts.add(_SAME[words[at]])
            positions.add(at)
        elif stems[at] in host_of_name and words[at] != "vine":
            hosts.add(host_of_name[stems[at]])
            positions.add(at)
    return frozenset(hosts), frozenset(positions)


@lru_cache(2_000)
def hosts_of(crop: str) -> frozenset[str]:
    """Return the hosts, as named in questions, for a crop name of an entry."""
    members = _HOST_GROUPS.get(crop)
    return frozenset(members) if members else hosts_named(crop)[0] or frozenset({crop})
