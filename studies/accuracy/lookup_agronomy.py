"""Accuracy of lookup_agronomy: the entries that it finds, and its answers to questions outside the knowledge base.

The questions are in ``questions/``: the method was chosen on ``development.toml``; the figures come from
``report.toml``, which was written afterwards. Misspelt names are generated from all names of the knowledge base by a
seed.
"""

import random
import string
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from accuracy.study import Bench, Columns, Figure, Study, mean_of
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.words import folded, has_cjk
from agrotools_tools.lookup.retrieval import knowledge_base

_LEAST_LETTERS = 5
_LONG = 8
"""Minimum length of names that may get two slips."""


def slipped(name: str, rng: random.Random, slips: int) -> str:
    """Return ``name`` with ``slips`` random typing errors: letters dropped, inserted, replaced or swapped."""
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


def misspelt(
    entries: Sequence[KnowledgeEntry], seed: int
) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield (misspelt name, name, ids of all entries with that name) for every name with at least five letters.

    Names under eight letters get one slip, longer ones one or two. Chinese names are left out. Slips that produce the
    name of another entry or change nothing are drawn again.
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


def names_and_owners(entries: Sequence[KnowledgeEntry]) -> dict[str, frozenset[str]]:
    """Return the ids of the entries with each name; names are folded."""
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
    """Load a set of questions: ``development``, ``report``, or ``blind`` (by a writer who saw only the names)."""
    text = (Path(__file__).with_name("questions") / f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def _recall(bench: Bench, query: str, ids: Iterable[str]) -> tuple[float, float]:
    """Return recall@1 and recall@3 of a query (0 or 1 each): one of ``ids`` is first, or among the first three."""
    hits = [hit.kb_id for hit in bench.call(query=query, top_k=3).hits]
    right = frozenset(ids)
    return float(hits[:1] != [] and hits[0] in right), float(any(hit in right for hit in hits))


def _names(bench: Bench) -> list[Figure]:
    entries = knowledge_base()[0].entries
    misspellings = [(wrong, ids) for wrong, _, ids in misspelt(entries, _SEED)]
    if len(misspellings) > _MOST_NAMES:
        misspellings = random.Random(_SEED).sample(misspellings, _MOST_NAMES)
    queries = {
        "misspelt names": misspellings,
        "names in sentences": _in_sentences(entries, slip=False),
        "misspelt names in sentences": _in_sentences(entries, slip=True),
        "Chinese names in questions": [
            (f"{name}怎么防治", ids)
            for name, ids in names_and_owners(entries).items()
            if has_cjk(name)
        ],
    }
    fields: dict[str, dict[str, Any]] = {
        "misspelt names": {"goal": 0.97, "note": "one slip, in long names one or two; all names"},
        "names in sentences": {"note": "right spelling"},
    }
    return [
        mean_of(
            f"{what}, recall@1",
            [_recall(bench, query, ids)[0] for query, ids in pairs],
            **fields.get(what, {}),
        )
        for what, pairs in queries.items()
        if pairs
    ]


def _in_sentences(
    entries: tuple[KnowledgeEntry, ...], *, slip: bool
) -> list[tuple[str, frozenset[str]]]:
    rng = random.Random(_SEED + slip)
    frames = questions("report")["sentences"]
    if slip:
        pairs = [(wrong, ids) for wrong, _, ids in misspelt(entries, _SEED + 1)]
    else:
        owners = names_and_owners(entries).items()
        pairs = [
            (name, ids) for name, ids in owners if not has_cjk(name) and len(name) >= _LEAST_LETTERS
        ]
    chosen = rng.sample(pairs, min(_SENTENCES, len(pairs)))
    return [(rng.choice(frames).format(name=name), ids) for name, ids in chosen]


def _question_figures(bench: Bench, name: str) -> list[Figure]:
    question_sets = questions(name)
    recall_goal, false_goal = (None, None) if name == "development" else (0.85, 4.0)
    columns = Columns()
    for part in ("symptoms", "added", "management"):
        for query, ids in question_sets[part].items():
            first, among = _recall(bench, query, ids)
            columns.add(**{f"{part} first": first, f"{part} among": among})
    parts: list[str] = []
    for part, queries in question_sets["outside"].items():
        answered = [100.0 * (not bench.call(query=query).not_found) for query in queries]
        parts.append(f"{part} {sum(answered) / 100:.0f} of {len(answered)}")
        for value in answered:
            columns.add(outside=value)
    outside = "questions outside the base, answered, %"
    return [
        columns.mean("symptom phrases, recall@1", "symptoms first", goal=recall_goal),
        columns.mean("symptom phrases, recall@3", "symptoms among"),
        columns.mean("management and method questions, recall@1", "management first"),
        columns.mean("questions on entries added later, recall@1", "added first"),
        columns.mean_error(outside, "outside", goal=false_goal, note=", ".join(parts)),
    ]


STUDIES = (
    Study("lookup_agronomy", "names of the base", _names, needs_folder=False),
    *(
        Study(
            "lookup_agronomy",
            f"questions {of}",
            partial(_question_figures, name=name),
            needs_folder=False,
        )
        for of, name in (
            ("for the report", "report"),
            ("of another writer", "blind"),
            ("for development", "development"),
        )
    ),
)
