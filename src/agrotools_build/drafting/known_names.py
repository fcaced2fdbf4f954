"""Names of things that a question says, in any spelling that the knowledge base knows."""

from collections.abc import Iterable, Sequence

from agrotools.core import ExactSlot, Sample
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.kb_names import shipped_names
from agrotools.knowledge.words import folded
from agrotools.loading.leaks import has_word
from agrotools_build.drafting.reasons import Dropped
from agrotools_build.templates.slot_draft import with_known_names

_LONGEST = 5
"""Words of a name: nearly all of the knowledge base have no more."""


def entries_said(text: str) -> list[Sequence[KnowledgeEntry]]:
    """Return what each run of words in a text names: the entries with that name, one or several."""
    words = folded(text).split()
    runs = {
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(len(words), start + _LONGEST) + 1)
    }
    found = (shipped_names().all_of_name(run) for run in sorted(runs))
    return [entries for entries in found if entries]


def says_one_of(text: str, names: Iterable[str]) -> bool:
    """Return True if a text has one of the names of a thing, or another name of the same entry."""
    names = list(names)
    if any(has_word(text, name) for name in names):
        return True
    meant = {entry.id for name in names for entry in shipped_names().all_of_name(name)}
    return any({entry.id for entry in entries} <= meant for entries in entries_said(text))


def check_answer_unsaid(sample: Sample) -> None:
    """Raise Dropped if a question names the right choice alone, or all choices but the right one."""
    for slot in sample.answer:
        if not isinstance(slot, ExactSlot) or not isinstance(slot.value, str):
            continue
        known = with_known_names(slot, of_all=True)
        others = [
            says_one_of(sample.query, (other, *known.aliases.get(other, ())))
            for other in known.distractors
        ]
        is_said = says_one_of(sample.query, known.names)
        if is_said and not any(others):
            raise Dropped("answer_in_question", f"the question has a name of {slot.value}")
        if others and all(others) and not is_said:
            why = f"the question names all choices but {slot.value}"
            raise Dropped("answer_in_question", why)


def says_a_choice(sample: Sample, slot: ExactSlot) -> bool:
    """Return True if a question, or the label of its answer, names one of the choices."""
    shown = f"{sample.query} | {slot.label}"
    known = with_known_names(slot, of_all=True)
    return any(
        says_one_of(shown, (choice, *known.aliases.get(choice, ())))
        for choice in dict.fromkeys((str(slot.value), *slot.choices))
    )
