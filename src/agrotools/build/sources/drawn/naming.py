"""What a perfect recogniser says of a drawn species, and the words that questions need of it."""

from pydantic import JsonValue

from agrotools.core import BenchmarkError
from agrotools.knowledge.entry import Entry, Kind
from agrotools.tools.lookup.kb_names import kb_names

_ALIASES = 4


def entry_of(slug: str, kind: Kind) -> Entry:
    """Raises BenchmarkError: the knowledge base of this machine has no such entry."""
    entry = kb_names().of_name(slug, (kind,))
    if entry is None:
        raise BenchmarkError(f"the knowledge base has no {kind} {slug!r}", hint=f"agrotools kb list --kind {kind}")
    return entry


def candidate_of_truth(slug: str, kind: Kind) -> dict[str, JsonValue]:
    """As :class:`agrotools.tools.recognition.candidates.Candidate`, without a score."""
    entry = entry_of(slug, kind)
    return {
        "label": slug,
        "common_name": entry.names.en,
        "scientific_name": entry.names.sci,
        "kind": kind,
        "kb_id": entry.id,
    }


def words_of_entry(slug: str, kind: Kind) -> dict[str, str]:
    """``kb_id``, ``common``, ``order``, ``family`` (empty where there is none), and names that count as well: ``sci``,
    ``zh``, ``alias_1`` to ``alias_4``, the common name where there are fewer."""
    entry = entry_of(slug, kind)
    common = entry.names.en
    words = {"kb_id": entry.id, "common": common, "sci": entry.names.sci or common}
    words |= {"order": entry.taxonomy.order or "", "family": entry.taxonomy.family or ""}
    words["zh"] = next(iter(entry.names.zh), common)
    aliases = [*entry.names.aliases[:_ALIASES], *[common] * _ALIASES]
    return words | {f"alias_{place}": aliases[place - 1] for place in range(1, _ALIASES + 1)}
