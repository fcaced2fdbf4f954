"""Known names that are spelt like a name in a table, to be offered where the knowledge base does not have it."""

from difflib import get_close_matches
from functools import cache

from agrotools.knowledge.entries import Entry, Kind
from agrotools.knowledge.kb_names import kb_names
from agrotools.knowledge.words import folded

_OFFERED = 3
"""Number of names that are offered: one line on the screen holds about three."""
_COMPARED = 30
"""Spellings that are kept for the choice: an entry has about ten."""
_LEAST_LIKE = 0.3
"""Lowest ratio of difflib for a name to be offered. Names of one crop are few, so that all of them may be."""
_HEALTHY = "healthy"

_KINDS: dict[str, tuple[Kind, ...]] = {
    "disease": ("disease", "pest"),
    "pest": ("pest", "disease"),
    "weed": ("weed", "crop"),
}
"""Kinds of entries that a column may name, by its measure."""


def nearest_names(name: str, ask: str, crop: str | None) -> list[str]:
    """Return up to three known names that are spelt most like ``name``, the best first.

    ``ask`` is the measure of the column. With ``crop``, only names on that crop are offered, if there are any.
    """
    is_of_crop = ask != "weed" and crop is not None and bool(kb_names().of_kinds(_KINDS[ask], crop))
    spelt = _spellings(ask, crop if is_of_crop else None)
    least = 0.0 if is_of_crop else _LEAST_LIKE
    close = get_close_matches(folded(name), spelt, _COMPARED, least)
    return list(dict.fromkeys(shown for form in close for shown in spelt[form]))[:_OFFERED]


@cache
def _spellings(ask: str, crop: str | None) -> dict[str, list[str]]:
    """Return all spellings that stand for known names, each with the names that it stands for."""
    spelt: dict[str, list[str]] = {}
    if ask != "weed":
        spelt[_HEALTHY] = [_HEALTHY]
    for entry in kb_names().of_kinds(_KINDS[ask], crop):
        for form in _forms(entry):
            spelt.setdefault(form, []).append(entry.names.en)
    return spelt


def _forms(entry: Entry) -> set[str]:
    """Return the folded names of an entry, also without its crop, and the initials of its English name."""
    names = {folded(name) for name in entry.names.all()}
    for crop in map(folded, entry.crops):
        names |= {name.removeprefix(f"{crop} ") for name in names}
    english = folded(entry.names.en)
    short = {english, *(english.removeprefix(f"{folded(crop)} ") for crop in entry.crops)}
    initials = {"".join(word[0] for word in each.split()) for each in short if " " in each}
    return names | initials
