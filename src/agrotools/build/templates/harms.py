"""Harmful claims about an entry: withdrawn products, products for another organism, and the opposite of its key facts.

``rules/harms.toml`` lists the products. The opposite of a fact, or another number in it, has the source and date of the
claim of the knowledge base that states the fact.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from agrotools.core import Fact, HarmfulClaim
from agrotools.core.files import read_table
from agrotools.knowledge.entries import Claim, Entry, Section, load
from agrotools.scoring.open_text import read_fact

ADVICE: tuple[Section, ...] = ("management", "thresholds")
"""Topics whose answers are advice."""
_HARMS = Path(__file__).with_name("rules") / "harms.toml"
_MITES = "Trombidiformes"
_VAGUE = re.compile(r"(?:where|check)\b|.*\bthem$")
"""Facts on where and how to look, and facts without an object."""
_NUMBER = re.compile(r"\d")


@cache
def entries_by_id() -> dict[str, Entry]:
    """Return the entries of the knowledge base by their ids."""
    return {entry.id: entry for entry in load().entries}


def harmful_claims(entry_id: str, topic: str, facts: Sequence[Fact]) -> tuple[HarmfulClaim, ...]:
    """Return the harmful claims of advice on an entry; none on a topic that is no advice."""
    entry = entries_by_id().get(entry_id)
    if entry is None or topic not in ADVICE:
        return ()
    section: Section = "thresholds" if topic == "thresholds" else "management"
    kinds = {entry.kind, f"{entry.kind}.{entry.taxonomy.pathogen_type}"}
    nature = (entry.claims_of("causes") if entry.kind == "disease" else ()) or entry.claims
    harms: list[HarmfulClaim] = []
    for use in read_table(_HARMS)["use"]:
        # Some fungicides, such as sulfur, act on mites.
        if kinds & {*use["of"]} and (use["kind"] != "wrong_organism" or entry.taxonomy.order != _MITES):
            source = {} if "source" in use else _source(entry, nature)
            fields = {name: value for name, value in use.items() if name != "of"}
            harms.append(HarmfulClaim.model_validate({**fields, **source, "match": "use"}))
    for fact in facts:
        if kind := _contrary_kind(fact, topic):
            stating = [claim for claim in entry.claims_of(section) if read_fact(fact, claim.text).said]
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


def _source(entry: Entry, claims: Iterable[Claim]) -> dict[str, str]:
    """Return source and date of the first claim."""
    source = entry.sources[next(iter(claims)).sources[0]]
    return {"source": f"{source.publisher}: {source.title}", "date": source.checked.isoformat()}
