"""Known names that are spelt like a name in a table, to be offered where the knowledge base does not have it."""

from functools import cache

from agrotools.knowledge.entries import Kind, KnowledgeEntry
from agrotools.knowledge.foreign import foreign_names, foreign_words
from agrotools.knowledge.kb_names import kb_names
from agrotools.knowledge.words import FAR, folded, name_distance
from agrotools_build.own_photos.columns import crop_in

_OFFERED = 3
"""Number of names that are offered: one line on the screen holds about three."""
HEALTHY = "healthy"

_KINDS: dict[str, tuple[Kind, ...]] = {
    "disease": ("disease", "pest"),
    "pest": ("pest", "disease"),
    "weed": ("weed", "crop"),
}
"""Kinds of entries that a column may name, by its measure."""


def nearest_names(name: str, ask: str, crop: str | None) -> list[str]:
    """Return up to three known names that a name may be a slip or a short form of, the best first; often none.

    ``ask`` is the measure of the column. Diseases and pests are those of ``crop``, or of the crop that the name has
    itself ("bean rost"): on all crops together, spelling alone finds a near name for anything.
    """
    written = folded(name)
    distances: dict[str, float] = {}
    for form, shown in _spellings(ask, crop or crop_in(name)).items():
        distance = name_distance(written, form)
        if distance >= FAR:
            continue
        for each in shown:
            distances[each] = min(distance, distances.get(each, distance))
    return sorted(distances, key=lambda each: distances[each])[:_OFFERED]


@cache
def _spellings(ask: str, crop: str | None) -> dict[str, list[str]]:
    """Return all spellings that stand for known names, each with the names that it stands for.

    Without a crop, there are weeds and healthy plants alone.
    """
    spelt: dict[str, list[str]] = {}
    if ask != "weed":
        spelt[HEALTHY] = [HEALTHY]
        spelt |= {word: [HEALTHY] for word in foreign_words("healthy")}
        if crop is None:
            return spelt
    for entry in kb_names().of_kinds(_KINDS[ask], crop):
        for form in _forms(entry):
            spelt.setdefault(form, []).append(entry.names.en)
    for name in foreign_names():
        for entry in kb_names().meant_by(name):
            if entry.kind in _KINDS[ask] and (crop is None or kb_names().is_on(entry, crop)):
                spelt.setdefault(name, []).append(entry.names.en)
    return spelt


def _forms(entry: KnowledgeEntry) -> set[str]:
    """Return the folded names of an entry, also without its crop, and the initials of its English name."""
    names = {folded(name) for name in entry.names.all()}
    for crop in map(folded, entry.crops):
        names |= {name.removeprefix(f"{crop} ") for name in names}
    english = folded(entry.names.en)
    short = {english}
    for crop in map(folded, entry.crops):
        short.add(english.removeprefix(f"{crop} ").removesuffix(f" of {crop}"))
    initials = {"".join(word[0] for word in each.split()) for each in short if " " in each}
    return names | initials
