"""Key facts of open answers, from the knowledge base.

A file of facts (``build/templates/facts/*.toml``) lists facts by entry and topic, each with short phrasings; ``not``
lists phrasings that contradict it. A phrasing is a group of terms (:mod:`agrotools.scoring.open_text`)::

    ["pest.soybean_aphid"]
    thresholds = [["250 aphids per plant"], { phrases = ["natural enemies"], not = ["spray weekly"] }]

Facts only repeat what the entry says on that topic, so anyone who reads the entry can state all of them. Facts shared
by many entries weigh less, and the floor of the score is what the advice of another entry would earn.

Harmful claims are those of withdrawn products, of products for another organism (``rules/harms.toml``), and the
opposite of a fact, or another number in it, with the source and date of the claim that states the fact.
"""

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import ExcludedBranch, Fact, HarmfulClaim
from agrotools.core.files import read_table
from agrotools.knowledge.entries import Claim, KnowledgeEntry, Section, load
from agrotools.scoring.open_text import read_fact

HIGHEST_FLOOR = 0.6
"""Highest floor of a slot that counts in headlines; above it the facts fit another entry almost as well."""

FEWEST_PEERS = 6
"""Minimum number of other entries of the same kind with facts on the topic; with fewer, guesses are right too often."""

_AGENTS = ("water mould", "fungus", "bacterium", "virus")
"""Kinds of causes of a disease; one that the entry does not name contradicts it (a water mould may be a fungus)."""

_ONE_ALONE = frozenset({("disease", "causes"), ("pest", "thresholds"), ("disease", "thresholds")})
"""Kinds and topics with a single right answer: naming that of another entry as well is a contradiction."""

ADVICE: tuple[Section, ...] = ("management", "thresholds")
"""Topics whose answers are advice."""
_HARMS = Path(__file__).with_name("rules") / "harms.toml"
_MITES = "Trombidiformes"
_VAGUE = re.compile(r"(?:where|check)\b|.*\bthem$")
"""Facts on where and how to look, and facts without an object."""
_NUMBER = re.compile(r"\d")


class OpenGold(NamedTuple):
    """Gold of an open answer: the fields of an :class:`~agrotools.core.OpenTextSlot` that are used in scoring."""

    facts: tuple[Fact, ...]
    others: tuple[tuple[str, ...], ...] = ()
    floor: float = 0.0
    headline: bool = True
    harmful: tuple[HarmfulClaim, ...] = ()
    excluded: tuple[ExcludedBranch, ...] = ()


@cache
def _facts() -> dict[str, dict[str, tuple[Fact, ...]]]:
    by_entry: dict[str, dict[str, tuple[Fact, ...]]] = {}
    for file in sorted(Path(__file__).with_name("facts").glob("*.toml")):
        for entry, topics in read_table(file).items():
            facts_of_entry = by_entry.setdefault(entry, {})
            for topic, facts in topics.items():
                if topic in facts_of_entry:
                    raise ValueError(f"{file.name}: {topic} of {entry} occurs in two files")
                facts_of_entry[topic] = tuple(map(_fact, facts))
    return by_entry


def facts_about(entry: str, topic: str) -> tuple[Fact, ...]:
    """Return the key facts of an entry on a topic; empty if none are recorded."""
    return _facts().get(entry, {}).get(topic, ())


def topics_with_facts() -> tuple[tuple[str, str], ...]:
    """Return every (entry, topic) that has key facts."""
    return tuple((entry, topic) for entry, topics in _facts().items() for topic in topics)


def _text_of(entry: str, section: str | None = None) -> str:
    """Return the text of an entry, or of one section of it; empty if there is no such entry."""
    claims = known.claims if (known := _entries().get(entry)) else ()
    return "\n".join(claim.text for claim in claims if section in (None, claim.section))


@lru_cache(maxsize=1024)
def open_gold(entry: str, topic: str, branches: tuple[str, ...] = ()) -> OpenGold | None:
    """Return the gold of an open answer on an entry's topic, or None if no facts are recorded.

    ``branches`` are all topics that the question may ask for, of which ``topic`` applies.

    The weight of a fact is the logarithm of the factor by which it narrows down the entries of its kind. The facts of
    the most similar entry set the floor. Facts of other entries on the same topic that no text of this entry states are
    listed in ``others``.
    """
    topic_facts = facts_about(entry, topic)
    if not topic_facts:
        return None
    same = [each for each, of in topics_with_facts() if of == topic and each != entry]
    peers = [each for each in same if each.partition(".")[0] == entry.partition(".")[0]]
    stated = {each: _stated(topic_facts, _sentences(facts_about(each, topic))) for each in peers}
    weights = [
        math.log((len(peers) + 2) / (sum(number in found for found in stated.values()) + 1))
        for number in range(len(topic_facts))
    ]
    facts = tuple(
        fact.model_copy(update={"weight": round(w, 3)})
        for fact, w in zip(topic_facts, weights, strict=True)
    )
    total = sum(fact.weight for fact in facts)
    shares = [sum(facts[number].weight for number in found) / total for found in stated.values()]
    floor = min(round(max(shares, default=0.0), 3), 0.95)
    text = f"{_text_of(entry)}\n{_sentences(topic_facts)}"
    foreign = {each: _unsaid(facts_about(each, topic), text) for each in same}
    if (entry.partition(".")[0], topic) in _ONE_ALONE:
        wrong = dict.fromkeys(fact.phrases[0] for each in peers for fact in foreign[each][:1])
        wrong |= dict.fromkeys(_other_agents(text) if topic == "causes" else ())
        facts = tuple(fact.model_copy(update={"not_": (*fact.not_, *wrong)}) for fact in facts)
    others = dict.fromkeys(
        fact.phrases
        for unsaid in foreign.values()
        for fact in unsaid
        if fact.phrases[0] not in facts[0].not_
    )
    headline = floor <= HIGHEST_FLOOR and len(peers) >= FEWEST_PEERS
    excluded = (_excluded(entry, branch, topic) for branch in branches if branch != topic)
    return OpenGold(
        facts,
        tuple(others),
        floor,
        headline,
        harmful_claims(entry, topic, facts),
        tuple(filter(None, excluded)),
    )


def _excluded(entry: str, branch: str, topic: str) -> ExcludedBranch | None:
    """Return a branch that does not apply, without the facts that the entry's own text on ``topic`` states."""
    if (gold := open_gold(entry, branch)) is None:
        return None
    facts = tuple(_unsaid(gold.facts, _text_of(entry, topic)))
    return ExcludedBranch(facts=facts, floor=gold.floor) if facts else None


def _other_agents(text: str) -> list[str]:
    """Return the kinds of causes that contradict a text because it names others; empty if it names none."""
    agents = [agent for agent in _AGENTS if _names(text, Fact(phrases=(agent,)))]
    if not agents:
        return []
    return [
        agent
        for agent in _AGENTS
        if agent not in agents and (agent, agents) != ("fungus", ["water mould"])
    ]


def _unsaid(facts: Sequence[Fact], text: str) -> list[Fact]:
    return [fact for fact in facts if not _names(text, fact)]


def _names(text: str, fact: Fact) -> bool:
    read = read_fact(fact, text)
    return bool(read.said or read.denied)


def _sentences(facts: Sequence[Fact]) -> str:
    """Return a full answer: the facts in each phrasing, one sentence each."""
    return "\n".join(f"{phrase}." for fact in facts for phrase in fact.phrases)


def _stated(facts: Sequence[Fact], text: str) -> set[int]:
    return {number for number, fact in enumerate(facts) if read_fact(fact, text).said}


def _fact(written: Any) -> Fact:
    if isinstance(written, tuple):
        return Fact(phrases=written)
    return Fact.model_validate(
        {"phrases": tuple(written["phrases"]), "not": tuple(written.get("not", ()))}
    )


@cache
def _entries() -> dict[str, KnowledgeEntry]:
    return {entry.id: entry for entry in load().entries}


def harmful_claims(entry_id: str, topic: str, facts: Sequence[Fact]) -> tuple[HarmfulClaim, ...]:
    """Return the harmful claims of advice on an entry; none on a topic that is no advice."""
    entry = _entries().get(entry_id)
    if entry is None or topic not in ADVICE:
        return ()
    section: Section = "thresholds" if topic == "thresholds" else "management"
    kinds = {entry.kind, f"{entry.kind}.{entry.taxonomy.pathogen_type}"}
    nature = (entry.claims_of("causes") if entry.kind == "disease" else ()) or entry.claims
    harms: list[HarmfulClaim] = []
    for use in read_table(_HARMS)["use"]:
        # Some fungicides, such as sulfur, act on mites.
        if kinds & {*use["of"]} and (
            use["kind"] != "wrong_organism" or entry.taxonomy.order != _MITES
        ):
            source = {} if "source" in use else _source(entry, nature)
            fields = {name: value for name, value in use.items() if name != "of"}
            harms.append(HarmfulClaim.model_validate({**fields, **source, "match": "use"}))
    for fact in facts:
        if kind := _contrary_kind(fact, topic):
            stating = [
                claim for claim in entry.claims_of(section) if read_fact(fact, claim.text).said
            ]
            what = "another number than in" if kind == "wrong_dose" else "the opposite of"
            claim = f"{what}: {fact.phrases[0]}"
            source = _source(entry, stating or entry.claims_of(section))
            fields = {"kind": kind, "claim": claim, "phrases": fact.phrases, "match": "contrary"}
            harms.append(HarmfulClaim.model_validate({**fields, **source}))
    return tuple(harms)


def _contrary_kind(fact: Fact, topic: str) -> str | None:
    """Return the kind of harm of contradicting a fact; None if the fact has neither a number nor an action."""
    first = fact.phrases[0]
    if _VAGUE.match(first):
        return None
    if _NUMBER.search(first):
        return "wrong_dose"
    acts = not {*re.findall(r"\w+", first)}.isdisjoint(read_table(_HARMS)["actions"].split())
    return "opposite_action" if topic != "thresholds" and (fact.not_ or acts) else None


def _source(entry: KnowledgeEntry, claims: Iterable[Claim]) -> dict[str, str]:
    source = entry.sources[next(iter(claims)).sources[0]]
    return {"source": f"{source.publisher}: {source.title}", "date": source.checked.isoformat()}
