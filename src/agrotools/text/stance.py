"""Stance of a reply: whether it recommends and asserts what it says on a subject, or rejects it.

Grammar cannot tell every denial: "work for idle hands", "one could just as well do none of it". So a linear model
reads the frame of a reply, its words with those of the subject's own facts masked, and thus what is said *of* the
facts, whichever they are. ``training/fit_stance.py`` fits it on replies of several writers, and chooses the threshold
by replies of writers that it was not fitted on.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from agrotools.text.claims import Reply, claim_of
from agrotools.text.statement_words import COMMA, SENTENCE
from agrotools.text.statements import Statements

MASK = "<F>"
"""Stands for words of the subject's facts; ``<A>`` for those of what is to be avoided, ``<O>`` for opposites (those
that are denied are to be avoided)."""

_PLAIN = -1.75
"""Below it a reply plainly asserts what it says."""

_FEWEST = 20
"""Added to the number of features, so that the few words of a short reply do not decide alone."""

_SHOWN = 3
"""Phrases that say why a reply is read as a denial."""


class Stance(NamedTuple):
    """Strength of a reply's rejection of what it says (denied: above 0), and the phrases that speak for it the most."""

    value: float
    phrases: tuple[str, ...] = ()

    @property
    def denies(self) -> bool:
        """True if the reply as a whole is read as a denial."""
        return self.value > 0

    @property
    def plain(self) -> bool:
        """True if nothing in the reply speaks for a denial."""
        return self.value < _PLAIN


class _Model(NamedTuple):
    weights: dict[str, float]
    bias: float


def frame(reply: Reply, phrases: Iterable[str]) -> list[list[str]]:
    """The sentences of a reply as stems and commas; words that stand for ideas of the facts' ``phrases`` are masked.

    Where nothing denies a fact, clauses that deny something else ("it is not drought") are left out.
    """
    own, avoided = set[str](), set[str]()
    for claim in map(claim_of, phrases):
        for names in claim.ideas:
            (avoided if claim.denied else own).update(names)
    masks: dict[int, str] = {}
    # The last mask counts, and what is to be done before what is to be avoided.
    for mask, names in (("<O>", {f"not {name}" for name in own | avoided}), ("<A>", avoided), (MASK, own)):
        for span in reply.places(names):
            shown = "<A>" if mask == "<O>" and reply.read.is_denied([span]) else mask
            masks.update(dict.fromkeys(range(span.start, span.end), shown))
    if any(reply.read.denied[at] for at in masks):
        return masked(reply.read, masks)
    return masked(reply.read, masks, {at for span in reply.read.other_denials(masks) for at in range(*span)})


def masked(read: Statements, masks: Mapping[int, str], left_out: Collection[int] = ()) -> list[list[str]]:
    """The sentences of a text, words replaced by their ``masks``; several of one kind in a row or a list are one."""
    sentences: list[list[str]] = [[]]
    for at, stem in enumerate(read.stems):
        if read.before[at] >= SENTENCE:
            sentences.append([])
        if at in left_out:
            continue
        if COMMA <= read.before[at] < SENTENCE:
            sentences[-1].append(",")
        if read.asked[at] and not (at and read.asked[at - 1]):
            sentences[-1].append("??")
        sentences[-1].append(masks.get(at) or ("0" if stem[0].isdigit() else stem))
    return [_without_lists(sentence) for sentence in sentences if sentence]


def _without_lists(sentence: Sequence[str]) -> list[str]:
    """A sentence in which several masks in a row, or in a list, are one: how many facts there are says nothing."""
    kept: list[str] = []
    for token in sentence:
        listed = token[0] == "<" and token in kept[-2:] and kept[-1] in (token, ",")
        if listed and kept[-1] == ",":
            kept.pop()
        if not listed:
            kept.append(token)
    return kept


def features(sentences: Sequence[Sequence[str]]) -> set[str]:
    """Features of the model: tokens, runs of two and three of them, pairs with one between, and beginnings of words."""
    found = set[str]()
    for sentence in sentences:
        tokens = ["^", *sentence, "$"]
        found.update(token for token in sentence if token != MASK)
        found.update(f"{token[:4]}-" for token in tokens if len(token) > 4 and token.isascii() and token.isalpha())
        found.update(map(" ".join, pairwise(tokens)))
        for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
            found.update((f"{first} {second} {third}", f"{first} * {third}"))
    return found


def weight_of(count: int) -> float:
    """Weight of each feature of a reply that has so many: a long one says its stance no louder than a short one."""
    return 1 / math.sqrt(count + _FEWEST)


@cache
def _model() -> _Model:
    held = json.loads((files("agrotools.data") / "open_text" / "stance.json").read_text("utf-8"))
    weights = {feature: weight / held["scale"] for feature, weight in held["weights"].items()}
    return _Model(weights, held["bias"] - held["threshold"])


def stance_of(reply: Reply, phrases: Iterable[str]) -> Stance:
    """The stance of a reply towards the facts that have these ``phrases``."""
    model, found = _model(), features(frame(reply, phrases))
    said = {feature: model.weights[feature] for feature in found if feature in model.weights}
    value = sum(said.values()) * weight_of(len(found)) + model.bias
    first = sorted((feature for feature in said if said[feature] > 0), key=lambda each: (-said[each], each))
    return Stance(round(value, 3), tuple(first[:_SHOWN]))
