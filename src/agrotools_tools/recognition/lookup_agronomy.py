"""Look-up of knowledge about pests, diseases, weeds, crops and methods, with sources."""

from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

from pydantic import Field

from agrotools.calling.arguments import ReferenceCall, drop_arguments
from agrotools.calling.contract import Agree, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.core import Arguments, ToolError
from agrotools.core.texts import counted_names
from agrotools.knowledge.entries import Claim, Coverage, Kind, KnowledgeEntry, Passage, kb_files

if TYPE_CHECKING:
    from agrotools_tools.lookup.retrieval import Hit

LABEL_NOTE = (
    "chemical control: check the local label and registration; which products may be used, and how much, "
    "differs by country and crop"
)


_TOPICS_BY_WORDS = ("thresholds", "management", "life_cycle")
"""Topics that words of a query ask for; the others are also answered by names, or by how a thing looks."""


_MOST_NAMED = 12
"""Most entries that a note names: as many rusts as the shipped base has."""


class CitedSource(ResultPart):
    title: str
    publisher: str
    year: int | None
    url: str | None
    licence: str
    how: str
    """page read, cited in data set paper, or general knowledge, not verified"""


class StatedValue(ResultPart):
    """A figure that a claim states, with what it holds for."""

    value: float | None
    unit: str | None
    condition: str | None
    region: str | None
    formula: str | None


class KnowledgeHit(ResultPart):
    kb_id: str
    """id of the entry"""
    title: str
    """English name, scientific name behind it"""
    kind: Kind
    section: Passage
    """which part of the entry the text is; names: its names, crops and place in the system"""
    text: str
    values: tuple[StatedValue, ...]
    """figures in the text: thresholds, reference values, formulas"""
    score: float
    """how well the entry accounts for the query, 0 to 1"""
    sources: tuple[CitedSource, ...]
    coverage: Coverage
    """verified: every claim was read on a page; partial: some or all are general knowledge; stub: names only"""
    last_reviewed: str
    """date, year-month-day"""
    note: str | None
    """what to heed; with chemical control, to check the local label"""


class KnowledgeHits(ToolResult):
    hits: tuple[KnowledgeHit, ...]
    """passages that answer the query, best first"""
    not_found: bool
    """true: the knowledge base does not hold what was asked for"""


def _resolve(call: Arguments, _known: ReferenceCall) -> Arguments:
    """Resolve a query to the entry it names; if an id is given, resolve it to the section that it asks for."""
    from agrotools.knowledge.kb_names import shipped_names
    from agrotools.knowledge.words import section_asked

    names, query, crop = shipped_names(), str(call["query"]), call["crop"]
    if call["kb_id"] is not None:
        # The number and order of the entry's passages is presentation, but the section is not.
        section = section_asked(query) if call["topic"] == "any" else None
        return drop_arguments({**call, "query": section or ""}, "kind", "crop")
    kinds = get_args(Kind) if call["kind"] == "any" else (cast(Kind, call["kind"]),)
    if isinstance(crop, str):
        call = {**call, "crop": names.key_of_crop(crop)}
    entry = names.of_name(query, kinds)
    return {**call, "query": entry.id} if entry else call


@tool(
    category="recognition",
    version="4",
    resolves=_resolve,
    data_files=kb_files,
    expert=("top_k",),
    example={"query": "leaf rust of coffee", "topic": "symptoms"},
)
def lookup_agronomy(
    query: Annotated[str, Agree("text"), Field(min_length=2, max_length=300)],
    topic: Literal[
        "any",
        "identification",
        "symptoms",
        "causes",
        "life_cycle",
        "thresholds",
        "management",
        "reference_values",
    ] = "any",
    kind: Literal["any", "pest", "disease", "weed", "crop", "method"] = "any",
    crop: Annotated[str | None, Agree("text"), Field(min_length=2, max_length=60)] = None,
    kb_id: Annotated[
        str | None,
        Agree("choice"),
        Field(max_length=120, description="from another tool, e.g. pest.soybean_aphid"),
    ] = None,
    top_k: Annotated[int, Agree("presentation"), Field(ge=1, le=5)] = 3,
) -> KnowledgeHits:
    """Look up pests, diseases, weeds, crops and methods in a knowledge base.

    Returns hits with sources and coverage. If not_found is true, say so instead of guessing.
    It gives no doses and no products.

    Raises:
        ToolError: ``invalid_argument``: no word in the query, or an unknown kb_id (with the closest ids).

    Sources: BM25 (Robertson and Zaragoza 2009), n-grams of characters (Cavnar and Trenkle 1994), reciprocal rank
        fusion (Cormack, Clarke and Buettcher 2009), see :mod:`agrotools_tools.lookup.retrieval`.
    """
    from agrotools.knowledge.other_names import is_group
    from agrotools.knowledge.words import section_asked, tokens
    from agrotools_tools.lookup.retrieval import closest_ids, knowledge_base

    if not tokens(query):
        raise ToolError(
            "invalid_argument",
            "the query has no words",
            argument="query",
            hint="give a name, symptoms or a question",
        )
    index, loaded = knowledge_base()
    faults = f"{len(loaded.faults)} faults in files of the knowledge base"
    notes, flags = ([faults], ["broken_entries"]) if loaded.faults else ([], [])
    if kb_id is not None and index.get(kb_id) is None:
        close = closest_ids(kb_id, (entry.id for entry in loaded.entries))
        why = f"there is no entry {kb_id!r}"
        hint = f"closest: {', '.join(close)}; or leave kb_id out and give a name as query"
        raise ToolError("invalid_argument", why, argument="kb_id", hint=hint, candidates=close)
    section = None if topic == "any" else topic
    hits = index.search(
        query,
        topic=section,
        kind=_kind(kind),
        crop=crop,
        kb_id=kb_id,
        top_k=top_k,
    )
    asked = section or (words if (words := section_asked(query)) in _TOPICS_BY_WORDS else None)
    if asked is not None and hits and not any(hit.document.section == asked for hit in hits):
        flags.append("topic_not_covered")
        notes.append(f"the base holds the entry but nothing on {asked.replace('_', ' ')}")
    if not hits and (similar := index.similarly_named(query, kind=_kind(kind), crop=crop)):
        others = ", ".join(f"{entry.title}, {entry.id}" for entry in similar)
        notes.append(f"the base does not hold {query!r}; of like name, but other things: {others}")
        flags.append("others_of_like_name")
    elif not hits and (several := index.with_words_in_name(query, kind=_kind(kind), crop=crop)):
        named = counted_names([f"{entry.title}, {entry.id}" for entry in several], _MOST_NAMED)
        notes.append(f"{query!r} names no single entry; with these words in the name: {named}")
        flags.append("several_entries")
    if hits and hits[0].score < 1 and is_group(hits[0].entry):
        notes.append(
            f"{hits[0].entry.id} is about {hits[0].entry.names.en} in general, of whatever species"
        )
    if any(hit.entry.coverage != "verified" for hit in hits):
        flags.append("not_verified")
    return KnowledgeHits(
        hits=tuple(_as_hit(hit) for hit in hits),
        not_found=not hits,
        notes=tuple(notes),
        flags=tuple(flags),
    )


def _kind(asked: Kind | Literal["any"]) -> Kind | None:
    return None if asked == "any" else asked


def _as_hit(hit: "Hit") -> KnowledgeHit:
    entry, claims = hit.entry, hit.document.claims
    keys = dict.fromkeys(key for claim in claims for key in claim.sources)
    sources = [entry.sources[key] for key in keys if key in entry.sources]
    stated = [claim for claim in claims if claim.value is not None or claim.formula is not None]
    chemical = any(claim.type == "chemical" for claim in claims)
    return KnowledgeHit(
        kb_id=entry.id,
        title=entry.title,
        kind=entry.kind,
        section=hit.document.section,
        text=" ".join(map(claim_text, claims)) if claims else names_text(entry),
        values=tuple(StatedValue.model_validate(claim, from_attributes=True) for claim in stated),
        score=round(hit.score, 3),
        sources=tuple(
            CitedSource.model_validate(source, from_attributes=True) for source in sources
        ),
        coverage=entry.coverage,
        last_reviewed=entry.last_reviewed.isoformat(),
        note=LABEL_NOTE if chemical else None,
    )


def claim_text(claim: Claim) -> str:
    if claim.section == "thresholds" and claim.value is not None:
        return f"{claim.text} [{claim.value:g} {claim.unit}; {claim.condition}; {claim.region}]"
    if claim.section == "management" and claim.type is not None:
        return f"({claim.type}) {claim.text}"
    return f"{claim.text} [{claim.formula}]" if claim.formula else claim.text


def names_text(entry: KnowledgeEntry) -> str:
    """Return one sentence with the basic facts of an entry: names, taxonomy and crops."""
    names, place = entry.names, entry.taxonomy
    also = [*names.aliases[:8], *names.zh]
    parts = [
        f"{entry.title}: {entry.kind}",
        place.pathogen_type,
        place.growth_form,
        f"family {place.family}" if place.family else None,
        f"order {place.order}" if place.order else None,
        f"EPPO code {place.eppo}" if place.eppo else None,
        f"crops: {', '.join(entry.crops)}" if entry.crops else None,
        f"also called {', '.join(also)}" if also else None,
    ]
    return "; ".join(part for part in parts if part) + "."
