"""Search for names of entries in a question, correctly spelt or not, alone or in a sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.other_names import is_group, is_other_name
from agrotools.knowledge.words import (
    ASKING,
    CROP_NAMES,
    OTHER_HOSTS,
    STOPWORDS,
    Lexicon,
    edit_distance,
    folded,
    has_cjk,
    hosts_named,
    hosts_of,
    ngrams,
    stem,
    tokens,
    word_list,
)

_TRIED = 40
"""Number of names with the best-matching n-grams that are compared letter by letter."""
_LONGEST_QUERY_WORDS = 60
_LEAST_LETTERS = 4
"""Minimum length of names that are found despite misspellings: a letter changes the meaning of a short word."""

_LEAST_SCORE = 0.15
"""Least weighted share of n-grams of a name in a question with which it is compared letter by letter."""
_MOST_LETTERS_MORE = 0.4
"""Largest difference of the lengths of a name and words that are compared with it, as a share of the longer one."""
_LEAST_SIMILARITY = 0.5
"""Least similarity of words that may be a name."""
_MOST_WAYS = 4
"""Matches that are kept of each entry."""

_Found = tuple[str, int, int, int, float]
"""A name found in a question: the name, the number of its entry, its first word, its end, and its similarity."""


@dataclass(frozen=True)
class NameMatch:
    """Name found in a question. ``similarity``: 0 to 1; the name is the words [start, end) of the question."""

    name: str
    similarity: float
    start: int
    end: int
    other: bool = False
    """True if adjacent words make it the name of another thing"""


class NamesIndex:
    """Names of entries by their exact form and by character n-grams (TF-IDF)."""

    def __init__(self, entries: Sequence[KnowledgeEntry]) -> None:
        self.names: list[str] = []
        self.owners: list[int] = []
        self._exact: dict[str, list[int]] = {}
        self._words: list[frozenset[str]] = []
        for number, entry in enumerate(entries):
            for name in dict.fromkeys(map(folded, entry.names.all())):
                if name:
                    self._add_name(name, number)
        self._longest = max((len(name.split()) for name in self.names), default=1)
        self._codes = {
            code.lower(): at for at, entry in enumerate(entries) if (code := entry.taxonomy.eppo)
        }
        self._parts = _parts(entries)
        self._rests = _rests(entries)
        diseases = (entry if entry.kind == "disease" else None for entry in entries)
        self._endings = _endings(_rests(diseases))
        self._chinese_crops = _chinese_crops(entries)
        self._groups = [is_group(entry) for entry in entries]
        in_names = [_hosts_in_names(entry) for entry in entries]
        self._hosts = [
            hosts.union(*map(hosts_of, entry.crops))
            for entry, hosts in zip(entries, in_names, strict=True)
        ]
        """Hosts of each entry, from its names and from its list of crops."""
        self._named_hosts = [
            hosts or every for hosts, every in zip(in_names, self._hosts, strict=True)
        ]
        """Hosts of each entry from its names, or all of them if the names have none."""
        self.lexicon = Lexicon(_known_words(entries))
        self._grams, self._idf, self._matrix = _tf_idf(self.names)
        self._owners = np.asarray(self.owners, np.intp)
        self._entries = len(entries)

    def _add_name(self, name: str, owner: int) -> None:
        """Add a folded name of the entry with the number ``owner``."""
        at = len(self.names)
        self.names.append(name)
        self.owners.append(owner)
        self._words.append(frozenset(map(stem, name.split())))
        for form in {name, _stemmed(name), name.replace(" ", "")}:
            self._exact.setdefault(form, []).append(at)

    def exact(self, query: str) -> set[int]:
        """Return the entries of which the whole question is a name or the EPPO code."""
        text = folded(query)
        found: set[int] = set()
        if text in self._codes:
            found.add(self._codes[text])
        for form in (text, _stemmed(text), text.replace(" ", "")):
            found.update(self.owners[at] for at in self._exact.get(form, ()))
        return found

    def parts(self, query: str) -> dict[int, float]:
        """Return the entries that the whole question names in part, with a confidence.

        A name may come without its crop or with the crop elsewhere ("leaf rust", "leaf rust in wheat"), a scientific
        name without the part after the species or as the genus alone, and a plant or animal by the last word of its
        name. Parts that more than :data:`_MOST_OF_A_PART` entries share identify none of them.
        """
        words = [word for word in folded(query).split() if word not in _DROPPED]
        text = " ".join(words)
        scores: dict[int, float] = {}
        for form in (_stemmed(text), stem(text.replace(" ", "")), _stemmed(folded(query))):
            scores |= dict.fromkeys(self._parts.get(form, ()), _PART)
        hosts, rest = _host_and_rest(text)
        is_specific = bool(hosts) or rest not in _TOO_COMMON
        # A single word names something on many crops: an aphid on lettuce is not the peach aphid.
        on = self._hosts if " " in rest else self._named_hosts
        owners = [
            owner for owner in self._rests.get(rest, ()) if is_specific and hosts <= on[owner]
        ]
        if hosts and not owners:
            owners = [owner for owner in self._endings.get(rest, ()) if hosts <= self._hosts[owner]]
        for owner in owners:
            scores[owner] = _WITH_CROP if hosts and not self._groups[owner] else _PART
        return scores if len(scores) <= _MOST_OF_A_PART else {}

    def on_other_hosts(self, owner: int, words: Sequence[str]) -> bool:
        """True if a question names crops or hosts, and the entry is on none of them."""
        hosts = hosts_named(" ".join(words))[0]
        return bool(hosts and self._hosts[owner]) and not hosts & self._hosts[owner]

    def gram_scores(self, query: str) -> NDArray[np.float64]:
        """Return the weighted share of n-grams of each entry's best name that the question contains, (entries,)."""
        scores = np.zeros(self._entries)
        if len(self.names):
            np.maximum.at(scores, self._owners, self._name_scores(query))
        return scores

    def matches(self, query: str) -> dict[int, list[NameMatch]]:
        """Return, for each entry, at most four matches of its names with words of the question, best first."""
        words = folded(query).split()[:_LONGEST_QUERY_WORDS]
        found = [*self._contained(words)]
        scores = self._name_scores(query)
        n_tried = min(_TRIED, np.count_nonzero(scores > _LEAST_SCORE))
        for at in np.argsort(-scores, kind="stable")[:n_tried].tolist():
            for start, end, similarity in self._windows(at, words):
                found.append((self.names[at], self.owners[at], start, end, similarity))
        matches: dict[int, dict[tuple[str, int, int], float]] = {}
        for name, owner, start, end, similarity in found:
            ways = matches.setdefault(owner, {})
            ways[name, start, end] = max(similarity, ways.get((name, start, end), 0.0))
        return {owner: _best_ways(ways) for owner, ways in matches.items()}

    def corrected(self, query: str) -> str:
        """Return the folded question with unknown words replaced by the nearest known word, if there is one."""
        words: list[str] = []
        for word in folded(query).split():
            nearest = self.lexicon.corrections(word)
            words.append(nearest[0] if nearest else word)
        return " ".join(words)

    def _contained(self, words: Sequence[str]) -> Iterator[_Found]:
        """Yield the names that words of the question are, correctly spelt."""
        stems = [stem(word) for word in words]
        yield from self._whole_names(words, stems)
        yield from self._names_without_hosts(words, stems)
        yield from self._chinese_names(words)

    def _whole_names(self, words: Sequence[str], stems: Sequence[str]) -> Iterator[_Found]:
        for start in range(len(words)):
            # A name may be written with one space more than it has.
            for end in range(start + 1, min(len(words), start + self._longest + 1) + 1):
                written = words[start:end]
                for form in {" ".join(written), " ".join(stems[start:end]), "".join(written)}:
                    if form in STOPWORDS or form in ASKING:
                        continue
                    for at in self._exact.get(form, ()):
                        yield self.names[at], self.owners[at], start, end, 1.0

    def _names_without_hosts(self, words: Sequence[str], stems: Sequence[str]) -> Iterator[_Found]:
        """Yield names of two or more words without their hosts, which may be elsewhere in the question."""
        hosts = hosts_named(" ".join(words))[0]
        similarity = _WITH_CROP if hosts else _IN_PART
        for start in range(len(words)):
            for end in range(start + 2, min(len(words), start + self._longest) + 1):
                rest = " ".join(stems[start:end])
                owners = [
                    owner
                    for owner in self._rests.get(rest, ())
                    if not hosts or hosts & self._hosts[owner]
                ]
                if len(owners) > _MOST_OF_A_PART:
                    continue
                for owner in owners:
                    yield rest, owner, start, end, similarity

    def _chinese_names(self, words: Sequence[str]) -> Iterator[_Found]:
        """Yield names within runs of Chinese characters: Chinese has no spaces, so a name may be anywhere in a run."""
        for number, word in enumerate(words):
            if not has_cjk(word):
                continue
            for at, name in enumerate(self.names):
                if len(name) > 1 and has_cjk(name) and name in word:
                    share = chinese_share(name, self._without_crops(name, word))
                    yield name, self.owners[at], number, number + 1, share

    def _without_crops(self, name: str, run: str) -> str:
        """Return a run of Chinese characters without names of crops before a name in it."""
        before, separator, behind = run.partition(name)
        for crop in self._chinese_crops:
            before = before.replace(crop, "")
        return before + separator + behind

    def _windows(self, at: int, words: Sequence[str]) -> Iterator[tuple[int, int, float]]:
        """Yield first word, end and similarity of the parts of a question that are much like a name."""
        name = self.names[at]
        plain = name.replace(" ", "")
        if len(plain) < _LEAST_LETTERS:
            return
        parts = name.split()
        # A name may be written with one space more or less than it has.
        for width in range(max(1, len(parts) - 1), len(parts) + 2):
            for start in range(len(words) - width + 1):
                window = words[start : start + width]
                joined = "".join(window)
                longest = max(len(joined), len(plain))
                if abs(len(joined) - len(plain)) > _MOST_LETTERS_MORE * longest:
                    continue
                similarity = 1 - edit_distance(joined, plain) / longest
                if similarity < _LEAST_SIMILARITY or is_other_name(window, parts):
                    continue
                # A correctly spelt word is not a slip for another: beet rust is not bean rust.
                for word in window:
                    is_of_name = stem(word) in self._words[at]
                    if len(word) > 2 and word in self.lexicon and not is_of_name:
                        similarity *= 1 - len(word) / max(1, len(joined))
                yield start, start + width, similarity

    def _name_scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of each name with the question or with the corrected question, whichever is higher."""
        scores: list[NDArray[np.float64]] = []
        for text in (folded(query), folded(self.corrected(query))):
            numbers = list({self._grams[gram] for gram in ngrams(text) if gram in self._grams})
            present = np.zeros(len(self._grams))
            present[numbers] = self._idf[numbers]
            scores.append(np.asarray(self._matrix @ present))
        return np.maximum(*scores)


_ASKING_CHINESE = re.compile(
    "怎么办|怎么除|怎么|怎样|如何|什么|哪些|哪里|为什么|是否|请问|介绍|一下|有没有|防治|防控|控制|治疗|预防|管理|识别|鉴别|诊断|"
    "除掉|清除|杀灭|症状|危害|发生|原因|病因|方法|措施|阈值|指标|生活史|特征|特点|我家|我的|田里|地里|出现|发现|很多|严重|的|了|吗|呢|是|有|在"
)


def chinese_share(name: str, run: str) -> float:
    """Return the share of a run of Chinese characters that a name makes up, ignoring words that only ask.

    Without spaces the end of a name is not marked, and the name of a crop is part of the names of its diseases.
    """
    rest = _ASKING_CHINESE.sub("", run.replace(name, "", 1))
    return len(name) / (len(name) + len(rest))


def _best_ways(ways: dict[tuple[str, int, int], float]) -> list[NameMatch]:
    """Return the matches of one entry, first those that are similar and long."""
    matches = [
        NameMatch(name, similarity, start, end) for (name, start, end), similarity in ways.items()
    ]

    def rank(way: NameMatch) -> tuple[float, int, str]:
        return -way.similarity * (way.end - way.start + 1), way.start, way.name

    return sorted(matches, key=rank)[:_MOST_WAYS]


_DROPPED = (STOPWORDS | ASKING) - frozenset(
    "of on in pest weed bug bugs plant common early crop late".split()
)
_HOST_BEHIND = re.compile(r"(.+?) (?:of|on|in) (.+)")
_BINOMIAL = re.compile(r"(?:Candidatus )?([A-Z][a-z]{3,}) ([a-z]{4,}|[a-z]+-[a-z]+)\b")
_LATIN = re.compile(r"[A-Z][a-z]+(?<!an)(?<!ese)(?<!ish) [a-z]+(a|e|i|is|us|um|or|ns)")
_MOST_OF_A_PART = 4
"""Entries that may share a part of a name; what more of them share identifies none."""
_PART = 0.8
"""Confidence of a question that is a part of a name."""
_IN_PART = 0.9
"""Similarity of words of a question that are a name without its hosts, if the question names no host."""
_WITH_CROP = 0.95
"""The same, and the confidence of a part of a name, if the question names a host of the entry."""
_TOO_COMMON = frozenset(map(stem, word_list("too_common")))
"""Words that give the kind of damage or creature, but do not identify it."""


def _host_and_rest(text: str) -> tuple[frozenset[str], str]:
    """Return the crops before or after ("of wheat") a folded name, and the stems of the rest."""
    hosts = frozenset[str]()
    words = text.split()
    if (behind := _HOST_BEHIND.fullmatch(text)) is not None:
        named_hosts, places = hosts_named(behind[2])
        others = [word for at, word in enumerate(behind[2].split()) if at not in places]
        if named_hosts and STOPWORDS.issuperset(others):
            hosts = named_hosts
            words = behind[1].split()
    places = hosts_named(" ".join(words))[1]
    ahead = 0
    while ahead in places:
        ahead += 1
    if ahead < len(words) and ahead:
        hosts |= hosts_named(" ".join(words[:ahead]))[0]
        words = words[ahead:]
    if len(words) > 1 and words[-1] in ("disease", "virus"):
        words = words[:-1]
    return hosts, _stemmed(" ".join(words))


def _rests(entries: Iterable[KnowledgeEntry | None]) -> dict[str, list[int]]:
    """Map the stems of names without their crops to entries."""
    owners_of_rest: dict[str, dict[int, None]] = {}
    for number, entry in enumerate(entries):
        if entry is None or entry.kind in ("crop", "method"):
            continue
        for name in entry.names.all():
            if rest := _host_and_rest(folded(name))[1]:
                owners_of_rest.setdefault(rest, {})[number] = None
    return {rest: list(owners) for rest, owners in owners_of_rest.items()}


def _endings(rests: dict[str, list[int]]) -> dict[str, list[int]]:
    """Map the last two or more words of the keys of :func:`_rests` to entries: head blight of fusarium head blight."""
    owners_of_ending: dict[str, dict[int, None]] = {}
    for rest, owners in rests.items():
        words = rest.split()
        for start in range(1, len(words) - 1):
            owners_of_ending.setdefault(" ".join(words[start:]), {}).update(dict.fromkeys(owners))
    return {ending: list(owners) for ending, owners in owners_of_ending.items()}


def _parts(entries: Sequence[KnowledgeEntry]) -> dict[str, list[int]]:
    """Map stems of parts of names that identify the thing to entries; see :meth:`NamesIndex.parts`."""
    owners_of_part: dict[str, dict[int, None]] = {}
    for number, entry in enumerate(entries):
        if entry.kind in ("crop", "method"):
            continue
        for name in (entry.names.sci or "", *filter(_LATIN.fullmatch, entry.names.aliases)):
            if "virus" not in name and (binomial := _BINOMIAL.match(name)) is not None:
                genus, species = binomial[1].lower(), binomial[2]
                for part in (genus, f"{genus} {species}", f"{genus[0]} {species}"):
                    owners_of_part.setdefault(_stemmed(folded(part)), {})[number] = None
        for last in _host_and_rest(folded(entry.names.en))[1].split()[-1:]:
            owners_of_part.setdefault(last, {})[number] = None
    return {
        part: list(owners) for part, owners in owners_of_part.items() if part not in _TOO_COMMON
    }


def _stemmed(text: str) -> str:
    return " ".join(map(stem, text.split()))


def _hosts_in_names(entry: KnowledgeEntry) -> frozenset[str]:
    """Return the hosts that the names of an entry contain."""
    hosts = frozenset[str]()
    for name in entry.names.all():
        hosts |= _host_and_rest(folded(name))[0]
    return hosts


def _chinese_crops(entries: Iterable[KnowledgeEntry]) -> list[str]:
    """Return the Chinese names of crops, the longest first, because they may contain others."""
    crops = {name for entry in entries if entry.kind == "crop" for name in entry.names.zh}
    return sorted(crops, key=lambda name: (-len(name), name))


def _known_words(entries: Sequence[KnowledgeEntry]) -> frozenset[str]:
    """Return correctly spelt words: those of names, crops, descriptions and claims."""
    words: set[str] = set()
    for entry in entries:
        claims = [claim.text for claim in entry.claims]
        for text in (*entry.names.all(), *entry.crops, *entry.described_as, *claims):
            words.update(tokens(text))
    for crop in CROP_NAMES:
        words.update(tokens(crop))
    return frozenset(words | STOPWORDS | ASKING | OTHER_HOSTS)


def _tf_idf(names: Sequence[str]):
    """Return columns and weights of n-grams, and rows (names, n-grams) such that a name's own n-grams sum to 1."""
    from scipy.sparse import csr_matrix

    counted = [Counter(ngrams(name)) for name in names]
    grams: dict[str, int] = {}
    spread: Counter[str] = Counter()
    for counts in counted:
        spread.update(counts.keys())
        for gram in counts:
            grams.setdefault(gram, len(grams))
    idf = np.array([log((1 + len(names)) / (1 + spread[gram])) + 1 for gram in grams], np.float64)
    rows = np.repeat(np.arange(len(names)), [len(counts) for counts in counted])
    columns = np.array([grams[gram] for counts in counted for gram in counts], np.intp)
    weights = idf[columns] if len(columns) else np.zeros(0)
    whole = (
        np.bincount(rows, weights * weights, minlength=len(names))
        if len(rows)
        else np.ones(len(names))
    )
    # The weight of the row times that of the question, divided by the name's score with itself.
    values = weights / whole[rows] if len(rows) else weights
    return grams, idf, csr_matrix((values, (rows, columns)), shape=(len(names), len(grams)))
