"""Finding the names of entries in a question, rightly spelt or not, alone or in a sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from agrotools.knowledge.crop_names import CROP_NAMES
from agrotools.knowledge.edits import edit_distance
from agrotools.knowledge.entry import Entry
from agrotools.knowledge.hosts import OTHER_HOSTS
from agrotools.knowledge.spelling import Lexicon
from agrotools.knowledge.words import ASKING, STOPWORDS, folded, has_cjk, ngrams, stem, tokens

_TRIED = 40
"""Names whose n-grams fit best are compared letter by letter."""
_LONGEST_QUERY_WORDS = 60
_LEAST_LETTERS = 4
"""A shorter word is found only as it is written: one letter makes another word of it."""


@dataclass(frozen=True)
class NameMatch:
    """A name found in a question: ``similarity`` 0 to 1, and which words of the question ([start, end)) are it."""

    name: str
    similarity: float
    start: int
    end: int


class NamesIndex:
    """Names of entries by their exact form and by n-grams of characters (TF-IDF)."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.names: list[str] = []
        self.owners: list[int] = []
        self._exact: dict[str, list[int]] = {}
        self._words: list[frozenset[str]] = []
        for number, entry in enumerate(entries):
            for name in dict.fromkeys(folded(given) for given in entry.names.all()):
                if not name:
                    continue
                at = len(self.names)
                self.names.append(name)
                self.owners.append(number)
                self._words.append(frozenset(map(stem, name.split())))
                for form in {name, _stemmed(name), name.replace(" ", "")}:
                    self._exact.setdefault(form, []).append(at)
        self._longest = max((len(name.split()) for name in self.names), default=1)
        self.lexicon = Lexicon(_known_words(entries))
        self._grams, self._idf, self._matrix = _tf_idf(self.names)
        self._owners = np.asarray(self.owners, np.intp)
        self._entries = len(entries)

    def exact(self, query: str) -> set[int]:
        """Entries of which the whole question is a name."""
        text = folded(query)
        found = (at for form in {text, _stemmed(text), text.replace(" ", "")} for at in self._exact.get(form, ()))
        return {self.owners[at] for at in found}

    def gram_scores(self, query: str) -> NDArray[np.float64]:
        """(entries,) which share of a name's n-grams (by weight) the question holds: the best name of each entry."""
        scores = np.zeros(self._entries)
        if len(self.names):
            values = np.maximum(self._name_scores(query), self._name_scores(self.corrected(query)))
            np.maximum.at(scores, self._owners, values)
        return scores

    def matches(self, query: str) -> dict[int, list[NameMatch]]:
        """Entry -> the ways in which names of it fit words of the question, the best ones first, at most four."""
        words = folded(query).split()[:_LONGEST_QUERY_WORDS]
        found: dict[int, dict[tuple[str, int, int], float]] = {}

        def keep(at: int, similarity: float, start: int, end: int) -> None:
            ways = found.setdefault(self.owners[at], {})
            way = self.names[at], start, end
            ways[way] = max(similarity, ways.get(way, 0.0))

        for at, start, end, similarity in self._contained(words):
            keep(at, similarity, start, end)
        for at in self._candidates(query):
            for similarity, start, end in self._windows(at, words):
                keep(at, similarity, start, end)
        return {owner: _best_ways(ways) for owner, ways in found.items()}

    def corrected(self, query: str) -> str:
        """The question, folded, with the nearest known word in place of each unknown one that is near to any."""
        return " ".join((self.lexicon.corrections(word) or (word,))[0] for word in folded(query).split())

    def _contained(self, words: Sequence[str]) -> Iterable[tuple[int, int, int, float]]:
        stems = [stem(word) for word in words]
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + self._longest + 1) + 1):
                for form in {" ".join(words[start:end]), " ".join(stems[start:end]), "".join(words[start:end])}:
                    for at in self._exact.get(form, ()):
                        if not _is_one_dull_word(form):
                            yield at, start, end, 1.0
        for number, word in enumerate(words):
            if not has_cjk(word):
                continue
            for at, name in enumerate(self.names):  # Chinese has no spaces: a name may stand anywhere in a run
                if len(name) > 1 and has_cjk(name) and name in word:
                    yield at, number, number + 1, chinese_share(name, word)

    def _candidates(self, query: str) -> list[int]:
        scores = np.maximum(self._name_scores(query), self._name_scores(self.corrected(query)))
        best = np.argsort(-scores, kind="stable")[:_TRIED]
        return [int(at) for at in best if scores[at] > 0.15]

    def _windows(self, at: int, words: Sequence[str]) -> Iterable[tuple[float, int, int]]:
        name = self.names[at]
        plain = name.replace(" ", "")
        if len(plain) < _LEAST_LETTERS:
            return
        size = name.count(" ") + 1
        for width in range(max(1, size - 1), size + 2):
            for start in range(len(words) - width + 1):
                window = words[start : start + width]
                joined = "".join(window)
                longest = max(len(joined), len(plain))
                if abs(len(joined) - len(plain)) > 0.4 * longest:
                    continue
                similarity = 1 - edit_distance(joined, plain) / longest
                if similarity < 0.5:
                    continue
                # A word that is one in its own right is no slip for another: beet rust is not bean rust.
                for word in window:
                    if word in self.lexicon and stem(word) not in self._words[at]:
                        similarity *= 1 - len(word) / max(1, len(joined))
                yield similarity, start, start + width

    def _name_scores(self, query: str) -> NDArray[np.float64]:
        held = {self._grams[gram] for gram in ngrams(folded(query)) if gram in self._grams}
        present = np.zeros(len(self._grams))
        present[list(held)] = self._idf[list(held)]
        return np.asarray(self._matrix @ present)


_ASKING_CHINESE = re.compile(
    "怎么办|怎么|怎样|如何|什么|哪些|哪里|为什么|是否|请问|介绍|一下|有没有|防治|防控|控制|治疗|预防|管理|识别|鉴别|诊断|"
    "症状|危害|发生|原因|病因|方法|措施|阈值|指标|生活史|特征|特点|我家|我的|田里|地里|出现|发现|很多|严重|的|了|吗|呢|是|有|在"
)


def chinese_share(name: str, run: str) -> float:
    """Which share of a run of Chinese characters a name in it is, words that only ask left out.

    Without spaces nobody can tell where a name ends: the name of a crop stands in those of its diseases.
    """
    rest = _ASKING_CHINESE.sub("", run.replace(name, "", 1))
    return len(name) / (len(name) + len(rest))


def _best_ways(ways: dict[tuple[str, int, int], float]) -> list[NameMatch]:
    matches = [NameMatch(name, similarity, start, end) for (name, start, end), similarity in ways.items()]
    return sorted(matches, key=lambda way: (-way.similarity * (way.end - way.start + 1), way.start, way.name))[:4]


def _stemmed(text: str) -> str:
    return " ".join(map(stem, text.split()))


def _is_one_dull_word(form: str) -> bool:
    return form in STOPWORDS or form in ASKING


def _known_words(entries: Sequence[Entry]) -> frozenset[str]:
    """Words that are rightly spelt: of names, crops, descriptions and claims."""
    words: set[str] = set()
    for entry in entries:
        for text in (*entry.names.all(), *entry.crops, *entry.described_as, *(claim.text for claim in entry.claims)):
            words.update(tokens(text))
    for crop in CROP_NAMES:
        words.update(tokens(crop))
    return frozenset(words | STOPWORDS | ASKING | OTHER_HOSTS)


def _tf_idf(names: Sequence[str]):
    """n-gram -> column; its weight; (names, n-grams) rows such that a name's own n-grams sum to 1."""
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
    whole = np.bincount(rows, weights * weights, minlength=len(names)) if len(rows) else np.ones(len(names))
    # idf of a row times idf of the question, over what the name would score with itself
    values = weights / whole[rows] if len(rows) else weights
    return grams, idf, csr_matrix((values, (rows, columns)), shape=(len(names), len(grams)))
