"""Accuracy of lookup_agronomy: entries found, and answers to questions that it cannot know.

The questions lie in ``questions/``: ``development.toml``, on which the method was chosen, and ``report.toml``, which
was written afterwards and gives the figures. Misspelt names are made up from all names of the base by a seed.
"""

import random
import string
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench, Study
from agrotools.knowledge.embedding import model_folder
from agrotools.knowledge.entries import Entry
from agrotools.knowledge.retrieval import knowledge_base
from agrotools.knowledge.words import folded, has_cjk
from agrotools.tools.recognition.lookup_agronomy import EMBED

_LEAST_LETTERS = 5
_LONG = 8
"""Letters from which on a name may carry two slips."""


def slipped(name: str, rng: random.Random, slips: int) -> str:
    """``name`` with that many letters dropped, doubled wrongly, replaced or swapped with a neighbour."""
    letters = list(name)
    for _ in range(slips):
        places = [at for at, letter in enumerate(letters) if letter.isalpha()]
        at = rng.choice(places)
        kind = rng.choice(("drop", "insert", "replace", "swap"))
        if kind == "drop":
            del letters[at]
        elif kind == "insert":
            letters.insert(at, rng.choice(string.ascii_lowercase))
        elif kind == "replace":
            others = [letter for letter in string.ascii_lowercase if letter != letters[at].lower()]
            letters[at] = rng.choice(others)
        elif at + 1 < len(letters):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def misspelt(entries: Sequence[Entry], seed: int) -> Iterator[tuple[str, str, frozenset[str]]]:
    """(misspelt name, name, ids of all entries of that name) for every name with five letters or more.

    One slip in names under eight letters, one or two in longer ones. Chinese names are left out, and slips that give
    a name of another entry or change nothing are drawn again.
    """
    rng = random.Random(seed)
    owners = names_and_owners(entries)
    for name, ids in owners.items():
        if has_cjk(name) or sum(letter.isalpha() for letter in name) < _LEAST_LETTERS:
            continue
        for _ in range(20):
            wrong = slipped(name, rng, 1 if len(name) < _LONG else rng.choice((1, 2)))
            if folded(wrong) != name and folded(wrong) not in owners and folded(wrong):
                yield wrong, name, ids
                break


def names_and_owners(entries: Sequence[Entry]) -> dict[str, frozenset[str]]:
    """Each name, folded -> the ids of the entries that bear it."""
    owners: dict[str, set[str]] = {}
    for entry in entries:
        for name in entry.names.all():
            if form := folded(name):
                owners.setdefault(form, set()).add(entry.id)
    return {name: frozenset(ids) for name, ids in owners.items()}


_SEED = 20
_SENTENCES = 300
_MOST_NAMES = 1500


def questions(name: str) -> dict[str, Any]:
    """A set of questions: ``development``, ``report``, or ``blind``, by a writer who knew names alone."""
    text = files("agrotools.build.accuracy").joinpath("questions", f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def _found(bench: Bench, query: str, ids: Iterable[str], backend: str | None = None) -> tuple[float, float]:
    """True if an entry that is right comes first, and whether one is among the first three."""
    hits = [hit.kb_id for hit in bench.call(backend=backend, query=query, top_k=3).hits]
    right = frozenset(ids)
    return float(hits[:1] != [] and hits[0] in right), float(any(hit in right for hit in hits))


def _names(bench: Bench) -> list[Figure]:
    entries = _entries()
    asked = list(misspelt(entries, _SEED))
    if len(asked) > _MOST_NAMES:
        asked = random.Random(_SEED).sample(asked, _MOST_NAMES)
    slips = [_found(bench, wrong, ids)[0] for wrong, _, ids in asked]
    said = [_found(bench, query, ids)[0] for query, ids in _in_sentences(entries, slip=False)]
    said_wrongly = [_found(bench, query, ids)[0] for query, ids in _in_sentences(entries, slip=True)]
    chinese = [(name, ids) for name, ids in names_and_owners(entries).items() if has_cjk(name)]
    zh = [_found(bench, f"{name}怎么防治", ids)[0] for name, ids in chinese]
    figures = [
        mean_of("misspelt names, recall@1", slips, goal=0.97, note="one slip, in long names one or two; all names"),
        mean_of("names in sentences, recall@1", said, note="right spelling"),
        mean_of("misspelt names in sentences, recall@1", said_wrongly),
    ]
    return [*figures, mean_of("Chinese names in questions, recall@1", zh)] if zh else figures


def _in_sentences(entries: tuple[Entry, ...], *, slip: bool) -> list[tuple[str, frozenset[str]]]:
    rng = random.Random(_SEED + slip)
    frames = questions("report")["sentences"]
    if slip:
        pairs = [(wrong, ids) for wrong, _, ids in misspelt(entries, _SEED + 1)]
    else:
        named = names_and_owners(entries).items()
        pairs = [(name, ids) for name, ids in named if not has_cjk(name) and len(name) >= _LEAST_LETTERS]
    chosen = rng.sample(pairs, min(_SENTENCES, len(pairs)))
    return [(rng.choice(frames).format(name=name), ids) for name, ids in chosen]


def _asked(bench: Bench, name: str) -> list[Figure]:
    asked = questions(name)
    reported = name != "development"
    backends: list[tuple[str | None, str]] = [(None, "")]
    if name == "report" and model_folder() is not None:
        backends.append((EMBED, " (embed)"))
    figures: list[Figure] = []
    for backend, suffix in backends:
        goals = (0.85, 4.0) if reported else (None, None)
        symptoms = [_found(bench, query, ids, backend) for query, ids in asked["symptoms"].items()]
        added = [_found(bench, query, ids, backend) for query, ids in asked["added"].items()]
        managing = [_found(bench, query, ids, backend) for query, ids in asked["management"].items()]
        figures += [
            mean_of(f"symptom phrases, recall@1{suffix}", [first for first, _ in symptoms], goal=goals[0]),
            mean_of(f"symptom phrases, recall@3{suffix}", [among for _, among in symptoms]),
            mean_of(f"management and method questions, recall@1{suffix}", [first for first, _ in managing]),
            mean_of(f"questions on entries added later, recall@1{suffix}", [first for first, _ in added]),
        ]
        false: dict[str, list[float]] = {
            part: [100.0 * (not bench.call(backend=backend, query=query).not_found) for query in queries]
            for part, queries in asked["outside"].items()
        }
        every = [value for values in false.values() for value in values]
        parts = ", ".join(f"{part} {sum(values) / 100:.0f} of {len(values)}" for part, values in false.items())
        figures.append(
            mean_of(f"questions outside the base, answered, %{suffix}", every, goal=goals[1], higher_is_better=False,
                    note=parts)
        )  # fmt: skip
    return figures


def _entries() -> tuple[Entry, ...]:
    return knowledge_base()[0].entries


STUDIES = (
    Study("lookup_agronomy", "names of the base", _names, needs_folder=False),
    Study("lookup_agronomy", "questions for the report", partial(_asked, name="report"), needs_folder=False),
    Study("lookup_agronomy", "questions of another writer", partial(_asked, name="blind"), needs_folder=False),
    Study("lookup_agronomy", "questions for development", partial(_asked, name="development"), needs_folder=False),
)
