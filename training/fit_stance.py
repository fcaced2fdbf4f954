"""Fit the stance model of :mod:`agrotools.text.claims`: right and denied replies, told by the words around the facts.

    python training/fit_stance.py measure tests/scoring/sealed/open_*.jsonl    # each writer by a model of the others
    python training/fit_stance.py fit tests/scoring/sealed/open_*.jsonl        # writes data/open_text/stance.json

Each file holds the replies of one writer, as lines with ``entry``, ``topic``, ``kind`` and ``reply``. Learnt from as
well are ``tests/scoring/open_text_replies.jsonl``, ``stance_frames.txt`` beside this file, and the knowledge base.
Both print how many denied replies of each writer a model of the others tells, and how many right ones it takes for
denials. Needs scikit-learn.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from agrotools.build.templates.key_facts import facts_about, topics_with_facts
from agrotools.knowledge.entries import load
from agrotools.text.claims import features, frame, masked, reply_of, weight_of
from agrotools.text.statements import Statements

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "agrotools" / "data" / "open_text" / "stance.json"
OWN = ROOT / "tests" / "scoring" / "open_text_replies.jsonl"
KINDS = {"paraphrase": False, "right": False, "negated": True}
PLACES = {"xxq": "<F>", "zzq": "<A>", "ooq": "<O>"}
"""Words that no text has, for the X, Z and O of a frame."""

SCALE = 100
REGULARISATION = 20.0
FALSE_DENIALS = 0.03
"""Share of right replies, of writers it was not fitted on, that may be read as denials: it sets the threshold."""
FRAME_WEIGHT, KNOWLEDGE_WEIGHT = 0.5, 0.3
LEAST_SUBJECTS = 2
"""A feature that fewer subjects have is one of a subject, not of a stance."""
LEAST_WEIGHT = 0.08
"""Smaller weights are left out."""


class Example(NamedTuple):
    """Features of a reply, whether it denies, on which subject, by whom, and its weight."""

    features: frozenset[str]
    denied: bool
    subject: str
    writer: str
    weight: float = 1.0


def replies(path: Path) -> Iterable[Example]:
    """Right and denied replies of one writer."""
    for told in map(json.loads, path.read_text("utf-8").splitlines()):
        phrases = phrases_on(told["entry"], told["topic"])
        if told["kind"] in KINDS and phrases:
            found = features(frame(reply_of(told["reply"]), phrases))
            yield Example(frozenset(found), KINDS[told["kind"]], told["entry"], path.stem)


def phrases_on(entry: str, topic: str) -> tuple[str, ...]:
    """Phrases of the key facts on a topic; where there are none, the clauses of what the entry says on it."""
    facts = facts_about(entry, topic)
    said = re.split(r"[,;:.]| and ", texts().get((entry, topic), ""))
    return tuple(phrase for fact in facts for phrase in fact.phrases) or tuple(filter(str.strip, said))


@cache
def texts() -> dict[tuple[str, str], str]:
    """What each entry of the knowledge base says, by topic."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in load().entries:
        for claim in entry.claims:
            found[entry.id, claim.section].append(claim.text)
    return {subject: " ".join(said) for subject, said in found.items()}


def knowledge() -> Iterable[Example]:
    """What the knowledge base says on subjects with key facts, and the facts alone: both are asserted."""
    for entry, topic in topics_with_facts():
        phrases = phrases_on(entry, topic)
        facts = ". ".join(fact.phrases[0] for fact in facts_about(entry, topic))
        for said in filter(None, (texts().get((entry, topic)), facts)):
            found = features(frame(reply_of(said), phrases))
            yield Example(frozenset(found), False, "knowledge base", "", KNOWLEDGE_WEIGHT)


def frames() -> Iterable[Example]:
    """Frames of replies, written without any subject."""
    denied = False
    for number, line in enumerate(Path(__file__).with_name("stance_frames.txt").read_text("utf-8").splitlines()):
        if line.startswith("#"):
            denied = line == "# denied"
            continue
        read = Statements(re.sub(r"(?<![A-Za-z])[XZO](?![A-Za-z])", lambda found: f" {found[0].lower() * 2}q ", line))
        masks = {at: PLACES[stem] for at, stem in enumerate(read.stems) if stem in PLACES}
        masks |= {at: "<A>" for at, mask in masks.items() if mask == "<O>" and read.denied[at]}
        yield Example(frozenset(features(masked(read, masks))), denied, f"frame {number}", "", FRAME_WEIGHT)


def matrix(examples: Sequence[Example], places: dict[str, int]) -> csr_matrix:
    """Examples as rows; each feature counts the less, the more its reply has."""
    rows, columns, values = [], [], []
    for row, example in enumerate(examples):
        known = [places[feature] for feature in example.features if feature in places]
        rows += [row] * len(known)
        columns += known
        values += [weight_of(len(example.features))] * len(known)
    return csr_matrix((values, (rows, columns)), shape=(len(examples), len(places)))


def fitted(examples: Sequence[Example]) -> tuple[LogisticRegression, dict[str, int]]:
    """A model of these examples, and the column of each feature."""
    subjects: dict[str, set[str]] = defaultdict(set)
    for example in examples:
        for feature in example.features:
            subjects[feature].add(example.subject)
    known = sorted(feature for feature, of in subjects.items() if len(of) >= LEAST_SUBJECTS)
    places = {feature: column for column, feature in enumerate(known)}
    model = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=3000)
    weights = [example.weight for example in examples]
    return model.fit(matrix(examples, places), [each.denied for each in examples], sample_weight=weights), places


def measure(examples: Sequence[Example], writers: Sequence[str]) -> float:
    """Print what a model of the other writers makes of each; returns the threshold that this sets."""
    denied: dict[str, NDArray[np.float64]] = {}
    right: dict[str, NDArray[np.float64]] = {}
    for writer in writers:
        model, places = fitted([each for each in examples if each.writer != writer])
        for found, kind in ((denied, True), (right, False)):
            own = [each for each in examples if each.writer == writer and each.denied == kind]
            found[writer] = model.decision_function(matrix(own, places))
    threshold = float(np.quantile(np.concatenate(list(right.values())), 1 - FALSE_DENIALS))
    for writer in writers:
        told, lost = (denied[writer] > threshold).mean(), (right[writer] > threshold).mean()
        print(
            f"{writer}: {told:.1%} of {len(denied[writer])} denials told, {lost:.1%} of {len(right[writer])} right lost"
        )
    print(f"threshold {threshold:.2f}")
    return threshold


def write(examples: Sequence[Example], threshold: float) -> None:
    """Fit on all examples and write the model."""
    model, places = fitted(examples)
    rounded = {feature: round(SCALE * float(model.coef_[0, column])) for feature, column in places.items()}
    held = {
        "bias": round(float(model.intercept_[0]), 3),
        "threshold": round(threshold, 3),
        "scale": SCALE,
        "weights": {feature: weight for feature, weight in rounded.items() if abs(weight) >= SCALE * LEAST_WEIGHT},
    }
    OUT.write_text(json.dumps(held, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
    print(f"{OUT}: {len(held['weights'])} weights, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("measure", "fit"))
    parser.add_argument("replies", type=Path, nargs="+")
    chosen = parser.parse_args()
    known = [example for path in (*chosen.replies, OWN) for example in replies(path)]
    known += [*frames(), *knowledge()]
    found = measure(known, [path.stem for path in chosen.replies])
    if chosen.task == "fit":
        write(known, found)
