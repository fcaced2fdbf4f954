"""Recognition of claims in a text, whatever their wording, and whether the text affirms or denies them.

A claim is given as a short phrase ("remove fallen leaves") and represented by the ideas that its words express. The
English and Chinese words for each idea are listed in ``data/open_text/lexicon.toml``; a word not listed there is its
own idea. A text makes a claim if all its ideas occur close together in one sentence. It denies the claim if one of them
is denied or replaced by its opposite ("leave the fallen leaves"), or if a number of the claim differs.
"""

import json
import math
import re
import tomllib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from agrotools.text.statement_words import COMMA, SENTENCE, Span, Trie, add_to, bare_words, stems_of
from agrotools.text.statements import Statements

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:-\d+(?:\.\d+)?)?")
_NEAR = 7
"""Maximum distance in words between two ideas of a claim."""

_CORE = 3
"""This many phrases listed first for an idea, in each language, are unambiguous."""


class Lexicon(NamedTuple):
    """Ideas and the phrases that express them.

    ``trie``: ideas by phrase. ``opposites``: opposite ideas. ``names``: ideas by the stems of their names. ``core``:
    the unambiguous phrases of each idea, that is its name and the phrases listed first in each language.
    """

    trie: Trie
    opposites: dict[str, str]
    names: dict[tuple[str, ...], str]
    core: dict[str, frozenset[tuple[str, ...]]]


class Claim(NamedTuple):
    """A phrase as its ideas; each idea is a set of equivalent names.

    ``denied``: the phrase is negative: it states that something is not so or should not be done ("avoid ...").
    """

    phrase: str
    ideas: tuple[frozenset[str], ...]
    denied: bool


class Finding(NamedTuple):
    """Place where a text makes a claim, and whether it affirms it.

    ``spans`` are the words of its ideas; ``opposite``: the text has the opposite of an idea, or another number.
    """

    claim: Claim
    affirmed: bool
    spans: tuple[Span, ...]
    opposite: bool = False


@cache
def _written_lexicon() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("agrotools.data") / "open_text" / "lexicon.toml").read_text("utf-8"))


@cache
def lexicon() -> Lexicon:
    """Return the known ideas, from ``data/open_text/lexicon.toml``."""
    entries = Lexicon({}, {}, {}, {})
    for group in _written_lexicon().values():
        for name, written in group.items():
            words, _, contrary = written.partition("<>")
            idea, name = name.replace("_", " "), f"@{name}"  # distinguishes ideas from stems
            entries.names[tuple(stems_of(idea))] = name
            listed_words = words.split(",")
            _add(entries.trie, (idea, *listed_words), name)
            chinese = [word for word in listed_words if word.strip()[:1] > "ÿ"]
            first = (idea, *listed_words[:_CORE], *chinese[:_CORE])
            # One word of a two-word idea is not enough: "cluster" is not "feed in a cluster".
            least = 2 if " " in idea else 1
            core = (tuple(stems_of(word)) for word in first)
            entries.core[name] = frozenset(stems for stems in core if len(stems) >= least)
            if contrary:
                entries.opposites[name] = f"not {name}"
                _add(entries.trie, contrary.split(","), f"not {name}")
    return entries


@cache
def lexicon_words(name: str) -> tuple[str, ...]:
    """Return the words and phrases, as written, for an idea (``@name``); empty if it is unknown."""
    written = next((group[name[1:]] for group in _written_lexicon().values() if name[1:] in group), "")
    return tuple(word for part in written.partition("<>")[0].split(",") if (word := part.strip()))


def _add(trie: Trie, phrases: Iterable[str], name: str) -> None:
    for stems in dict.fromkeys(tuple(stems_of(phrase)) for phrase in phrases):
        if stems:
            add_to(trie, stems, name)


@lru_cache(maxsize=20_000)
def claim_of(phrase: str) -> Claim:
    """Return the claim that a phrase makes."""
    read = Statements(phrase, lexicon().trie)
    denying = {at for span in read.denials for at in range(span.start, span.end)}
    mentions = [names for span, names in _occurrences(read) if span.start not in denying]
    if not mentions:  # the phrase consists of denying words only ("leave out")
        return Claim(phrase, tuple(dict.fromkeys(frozenset(names) for _, names in _occurrences(read))), False)
    telling = [names for names in mentions if not all(name in bare_words() for name in names)]
    ideas = dict.fromkeys(map(frozenset, telling or mentions))
    return Claim(phrase, tuple(ideas), any(read.denied))


def _occurrences(read: Statements) -> list[tuple[Span, list[str]]]:
    """Return ideas in the order of the text; the longest phrase wins, and a word in no phrase is its own idea."""
    occurrences: list[tuple[Span, list[str]]] = []
    trie, at = lexicon().trie, 0
    while at < len(read.stems):
        end, names = read.longest(trie, at)
        exact_name = lexicon().names.get(tuple(read.stems[at:end]))
        # The name of an idea means only that idea, not others that list the same word.
        names = [exact_name] if exact_name else names
        occurrences.append((Span(at, end), names) if names else (Span(at, at + 1), [read.stems[at]]))
        at = max(end, at + 1)
    return occurrences


class Reply:
    """A text to search for claims."""

    def __init__(self, text: str) -> None:
        self.read = Statements(text, lexicon().trie)
        self._at: dict[str, list[Span]] = {}
        self._numbers: list[Span] = []
        self._findings: dict[str, list[Finding]] = {}
        self._ends_of_words: dict[int, int] | None = None
        for at, stem in enumerate(self.read.stems):
            # A single word also counts within a phrase: "leaf" in "young leaf".
            self._at.setdefault(stem, []).append(Span(at, at + 1))
            if _NUMBER.fullmatch(stem):
                self._numbers.append(Span(at, at + 1))
        trie = lexicon().trie
        for at in range(len(self.read.stems)):
            end, names = self.read.longest(trie, at)
            for name in names:
                self._at.setdefault(name, []).append(Span(at, end))

    def find(self, phrase: str) -> list[Finding]:
        """Return all places where the text makes or denies the claim of a phrase."""
        if phrase not in self._findings:
            self._findings[phrase] = self._find(claim_of(phrase))
        return self._findings[phrase]

    def _find(self, claim: Claim) -> list[Finding]:
        findings = [
            Finding(claim, self._is_denied(spans, claim.denied) == claim.denied, spans)
            for spans in self._together(claim.ideas)
        ]
        if not claim.denied:
            findings += self._opposites(claim)
            findings += self._other_numbers(claim, findings)
        return findings

    def is_whole(self, finding: Finding) -> bool:
        """True if a claim lies within one clause and splits no Chinese word (as "种之前" would in "结种之前")."""
        if self._ends_of_words is None:
            self._ends_of_words = {span.start: span.end for span, _ in _occurrences(self.read)}
        cut = any(
            self.read.stems[span.start][0] > "ÿ"
            and (span.start not in self._ends_of_words or self._ends_of_words[span.start] > span.end)
            for span in finding.spans
        )
        low, high = min(span.start for span in finding.spans), max(span.end for span in finding.spans)
        return not cut and not any(self.read.before[at] >= COMMA for at in range(low + 1, high))

    def is_plain(self, finding: Finding) -> bool:
        """True if a claim is made explicitly: by several words, or by one unambiguous word."""
        if len(finding.spans) > 1:
            return True
        stems = tuple(self.read.stems[at] for span in finding.spans for at in range(span.start, span.end))
        # Two Chinese characters count as one word.
        words = len("".join(stems)) / 2 if stems[0][0] > "ÿ" else len(stems)
        return words > 1 or any(stems in lexicon().core.get(name, {stems}) for name in finding.claim.ideas[0])

    def _is_denied(self, spans: Sequence[Span], to_avoid: bool) -> bool:
        denied = self.read.is_denied(spans)
        if to_avoid and any(self.read.allowed[at] for span in spans for at in range(span.start, span.end)):
            return False
        if to_avoid and not denied:
            return any(self.read.worsened[at] for span in spans for at in range(span.start, span.end))
        return denied

    def _opposites(self, claim: Claim) -> list[Finding]:
        """Return places with the opposite of one idea; a denied opposite ("avoid susceptible varieties") affirms."""
        findings: list[Finding] = []
        for number, names in enumerate(claim.ideas):
            contrary = frozenset(lexicon().opposites[name] for name in names if name in lexicon().opposites)
            if contrary:
                ideas = (*claim.ideas[:number], contrary, *claim.ideas[number + 1 :])
                findings += [
                    Finding(claim, self._is_denied(spans, True), spans, True) for spans in self._together(ideas)
                ]
        return findings

    def _other_numbers(self, claim: Claim, findings: Sequence[Finding]) -> list[Finding]:
        """Return places with all ideas of the claim but a different number."""
        numbers = {name for names in claim.ideas for name in names if _NUMBER.fullmatch(name)}
        rest = tuple(names for names in claim.ideas if not names & numbers)
        if not numbers or not rest:
            return []
        right = {self.read.sentence_of(spans[0].start) for _, _, spans, _ in findings}
        wrong: list[Finding] = []
        for spans in self._together(rest):
            low, high = min(span.start for span in spans), max(span.end for span in spans)
            if self.read.sentence_of(low) in right:
                continue
            # With a unit only, the number must be directly before it ("3 per head") or after it ("每穗3头").
            before, behind = (_NEAR, _NEAR) if len(rest) > 1 else (4, 1)
            near = self._numbers[bisect_left(self._numbers, (low - before, 0)) :][:20]
            others = [
                number
                for number in near
                if number.start < high + behind and self.read.sentence_of(number.start) == self.read.sentence_of(low)
            ]
            if others:
                wrong.append(Finding(claim, False, (*spans, others[0]), True))
        return wrong

    def _together(self, ideas: Sequence[frozenset[str]]) -> list[tuple[Span, ...]]:
        """Return places where all ideas occur near each other in one sentence."""
        places = [self.places(names) for names in ideas]
        if not places or not all(places):
            return []
        rarest = min(range(len(places)), key=lambda number: len(places[number]))
        width = _NEAR * len(ideas)
        groups: list[tuple[Span, ...]] = []
        for anchor in places[rarest]:
            if self.read.in_question[anchor.start]:
                continue
            spans: list[Span] = []
            for number, spans_of_idea in enumerate(places):
                span = anchor if number == rarest else self._nearest(spans_of_idea, anchor, width)
                if span is None:
                    break
                spans.append(span)
            else:
                if max(span.end for span in spans) - min(span.start for span in spans) <= width + 3:
                    groups.append(tuple(spans))
        return groups

    def places(self, names: Collection[str]) -> list[Span]:
        """Return the places of these ideas, in order."""
        lists = [self._at[name] for name in names if name in self._at]
        return lists[0] if len(lists) == 1 else sorted(span for each in lists for span in each)

    def _nearest(self, places: Sequence[Span], anchor: Span, width: int) -> Span | None:
        at = bisect_left(places, anchor)
        near = [
            place
            for place in places[max(0, at - 2) : at + 2]
            if self.read.sentence_of(place.start) == self.read.sentence_of(anchor.start)
            and abs(place.start - anchor.start) <= width
            and (place.start >= anchor.end or place.end <= anchor.start)
        ]
        return min(near, key=lambda place: abs(place.start - anchor.start), default=None)


@lru_cache(maxsize=16)
def reply_of(text: str) -> Reply:
    """Return a text to search for claims; cached."""
    return Reply(text)


def affirms(text: str, phrases: Sequence[str]) -> bool:
    """True if a text affirms the claim of at least one of several phrases."""
    return any(finding.affirmed for phrase in phrases for finding in reply_of(text).find(phrase))


# --- stance: whether a reply as a whole asserts or rejects the statements it makes ------------------------------------
#
# Grammar does not reveal every denial: "work for idle hands", "one could just as well do none of it". So a linear model
# classifies the frame of a reply: its words, with those of the expected facts masked, so that only what is said *about*
# the facts counts. ``training/fit_stance.py`` fits it on replies of several writers and chooses the threshold on
# replies of other writers.

MASK = "<F>"
"""Mask for words of the expected facts; ``<A>`` masks things to avoid (and denied opposites), ``<O>`` opposites."""

_DENIALS = ("(not denied)", "(partly denied)", "(denied)")
"""Whether grammar shows that no, some or most words of the facts are denied."""

_PLAIN = -1.75
"""A reply with a value below this clearly asserts its statements."""

_FEWEST = 20
"""Added to the number of features, so that a few words of a short reply are not decisive."""

_MAX_PHRASES = 3
"""Maximum number of phrases reported as indications of a denial."""


class Stance(NamedTuple):
    """Degree to which a reply rejects its own statements (above 0: denied), and the phrases that indicate it."""

    value: float
    phrases: tuple[str, ...] = ()

    @property
    def denies(self) -> bool:
        """True if the reply as a whole is read as a denial."""
        return self.value > 0

    @property
    def plain(self) -> bool:
        """True if nothing in the reply indicates a denial."""
        return self.value < _PLAIN


class _Model(NamedTuple):
    weights: dict[str, float]
    bias: float


def frame(reply: Reply, phrases: Iterable[str]) -> list[list[str]]:
    """Return the sentences of a reply as stems and commas, with words for ideas of the facts' ``phrases`` masked.

    If no fact is denied, clauses that deny something else ("it is not drought") are left out.
    """
    positive, avoided = set[str](), set[str]()
    for claim in map(claim_of, phrases):
        for names in claim.ideas:
            (avoided if claim.denied else positive).update(names)
    masks: dict[int, str] = {}
    # Later masks override earlier ones, so that facts override things to avoid.
    for mask, names in (("<O>", {f"not {name}" for name in positive | avoided}), ("<A>", avoided), (MASK, positive)):
        for span in reply.places(names):
            token = "<A>" if mask == "<O>" and reply.read.is_denied([span]) else mask
            masks.update(dict.fromkeys(range(span.start, span.end), token))
    if any(reply.read.denied[at] for at in masks):
        return masked(reply.read, masks)
    return masked(reply.read, masks, {at for span in reply.read.other_denials(masks) for at in range(*span)})


def masked(read: Statements, masks: Mapping[int, str], left_out: Collection[int] = ()) -> list[list[str]]:
    """Return the sentences of a text with words replaced by their ``masks``; repeated masks are merged.

    A last one of one word says whether grammar shows that the masked words are denied.
    """
    sentences: list[list[str]] = [[]]
    for at, stem in enumerate(read.stems):
        if read.before[at] >= SENTENCE:
            sentences.append([])
        if at in left_out:
            continue
        if COMMA <= read.before[at] < SENTENCE:
            sentences[-1].append(",")
        if read.in_question[at] and not (at and read.in_question[at - 1]):
            sentences[-1].append("??")
        sentences[-1].append(masks.get(at) or ("0" if stem[0].isdigit() else stem))
    denied = sum(read.denied[at] for at in masks)
    if masks:
        sentences.append([_DENIALS[2 if denied >= 0.8 * len(masks) else denied > 0]])
    return [_without_lists(sentence) for sentence in sentences if sentence]


def _without_lists(sentence: Sequence[str]) -> list[str]:
    """Merge equal masks in a row or a list into one, because the number of facts must not matter."""
    tokens_left: list[str] = []
    for token in sentence:
        listed = token[0] == "<" and token in tokens_left[-2:] and tokens_left[-1] in (token, ",")
        if listed and tokens_left[-1] == ",":
            tokens_left.pop()
        if not listed:
            tokens_left.append(token)
    return tokens_left


def features(sentences: Sequence[Sequence[str]]) -> set[str]:
    """Return the model's features: tokens, bigrams, trigrams, pairs with a gap of one, and word prefixes."""
    texts = set[str]()
    for sentence in sentences:
        if sentence[0] in _DENIALS:
            texts.add(sentence[0])
            continue
        tokens = ["^", *sentence, "$"]
        texts.update(token for token in sentence if token != MASK)
        texts.update(f"{token[:4]}-" for token in tokens if len(token) > 4 and token.isascii() and token.isalpha())
        texts.update(map(" ".join, pairwise(tokens)))
        for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
            texts.update((f"{first} {second} {third}", f"{first} * {third}"))
    return texts


def weight_of(count: int) -> float:
    """Return the weight of each feature of a reply with ``count`` features, which normalises for length."""
    return 1 / math.sqrt(count + _FEWEST)


@cache
def _model() -> _Model:
    model = json.loads((files("agrotools.data") / "open_text" / "stance.json").read_text("utf-8"))
    weights = {feature: weight / model["scale"] for feature, weight in model["weights"].items()}
    return _Model(weights, model["bias"] - model["threshold"])


def stance_of(reply: Reply, phrases: Iterable[str]) -> Stance:
    """Return the stance of a reply towards the facts expressed by ``phrases``."""
    model, reply_features = _model(), features(frame(reply, phrases))
    terms = {feature: model.weights[feature] for feature in reply_features if feature in model.weights}
    value = sum(terms.values()) * weight_of(len(reply_features)) + model.bias
    first = sorted(
        (feature for feature in terms if terms[feature] > 0),
        key=lambda each: (-terms[each], each),
    )
    return Stance(round(value, 3), tuple(first[:_MAX_PHRASES]))
