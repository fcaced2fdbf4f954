"""Fit the stance model of :mod:`agrotools.text.claims`: right and denied replies, told by the words around the facts.

    python training/fit_stance.py measure tests/scoring/sealed/open_*.jsonl    # each writer by a model of the others
    python training/fit_stance.py fit tests/scoring/sealed/open_*.jsonl        # writes data/open_text/stance.json

Each file holds the replies of one writer, as lines with ``entry``, ``topic``, ``kind`` and ``reply``. Learnt from as
well are ``tests/scoring/open_text_replies.jsonl``, ``stance_frames.txt`` beside this file, and the knowledge base.
Both print how many denied replies of each writer a model of the others tells, and how many right ones it takes for
denials, and the same of replies within frames that the model does not know. Needs scikit-learn.
"""

import argparse
import hashlib
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
REGULARISATION = 60.0
FALSE_DENIALS = 0.025
"""Share of right replies, of writers it was not fitted on, that may be read as denials: it sets the threshold."""
FRAME_WEIGHT, KNOWLEDGE_WEIGHT, WRAPPED_WEIGHT = 0.5, 1.0, 0.2
WRAPPED = {False: 4, True: 2}
"""Number of replies that each frame around a whole reply is put around: right and denied ones, of short and of long."""
SHORT = {False: 100, True: 30}
"""Characters of the longest short reply, in English and in Chinese."""
LEAST_SUBJECTS = 2
"""A feature that fewer subjects have is one of a subject, not of a stance."""
LEAST_WEIGHT = 0.08
"""Smaller weights are left out."""


class Example(NamedTuple):
    """Features of a reply, whether it denies, on which subject, by whom, its weight, and its frame around a reply."""

    features: frozenset[str]
    denied: bool
    subject: str
    writer: str
    weight: float = 1.0
    frame: int | None = None


class Told(NamedTuple):
    """A reply, the phrases of the facts that it is on, whether it denies them, its subject and its writer."""

    reply: str
    phrases: tuple[str, ...]
    denied: bool
    subject: str
    writer: str

    @property
    def sentences(self) -> int:
        return len(re.findall(r"[.;!?。；！？](?:\s|$|(?<=[。；！？]))", self.reply))

    def example(self) -> Example:
        weight = 1.0 if self.writer else KNOWLEDGE_WEIGHT
        found = features(frame(reply_of(self.reply), self.phrases))
        return Example(frozenset(found), self.denied, self.subject, self.writer, weight)


def replies(path: Path) -> Iterable[Told]:
    """Right and denied replies of one writer."""
    for told in map(json.loads, path.read_text("utf-8").splitlines()):
        phrases = phrases_on(told["entry"], told["topic"])
        if told["kind"] in KINDS and phrases:
            yield Told(told["reply"], phrases, KINDS[told["kind"]], told["entry"], path.stem)


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


def knowledge() -> Iterable[Told]:
    """What the knowledge base says on subjects with key facts, and the facts alone: both are asserted."""
    for entry, topic in topics_with_facts():
        phrases = phrases_on(entry, topic)
        facts = ". ".join(fact.phrases[0] for fact in facts_about(entry, topic))
        for said in filter(None, (texts().get((entry, topic)), facts)):
            yield Told(said, phrases, False, "knowledge base", "")


def frames(told: Sequence[Told]) -> Iterable[Example]:
    """Frames of replies, without any subject; those around a whole reply are also put around some that are ``told``."""
    denied = False
    for number, line in enumerate(Path(__file__).with_name("stance_frames.txt").read_text("utf-8").splitlines()):
        if line.startswith("#"):
            denied = line == "# denied"
            continue
        around, plain = number if "{}" in line else None, line.replace("{}", "X")
        read = Statements(re.sub(r"(?<![A-Za-z])[XZO](?![A-Za-z])", lambda found: f" {found[0].lower() * 2}q ", plain))
        masks = {at: PLACES[stem] for at, stem in enumerate(read.stems) if stem in PLACES}
        masks |= {at: "<A>" for at, mask in masks.items() if mask == "<O>" and read.denied[at]}
        yield Example(frozenset(features(masked(read, masks))), denied, f"frame {number}", "", FRAME_WEIGHT, around)
        if around is not None:
            yield from wrapped(line, denied, told, number)


def wrapped(line: str, denied: bool, told: Sequence[Told], number: int) -> Iterable[Example]:
    """A frame around replies of its language. An affirmed frame ("I think {}") leaves a denial a denial."""
    chinese = is_chinese(line)
    one_sentence = re.search(r"\w ?\{\}", line)  # "I doubt that {}" denies no second sentence
    able: dict[tuple[bool, bool], list[Told]] = defaultdict(list)
    for each in told:
        meant = not denied or (not each.denied and not (one_sentence and each.sentences > 1))
        if meant and is_chinese(each.reply) == chinese:
            able[each.denied, len(each.reply) <= SHORT[chinese]].append(each)
    for (told_denied, _), some in able.items():
        some.sort(key=lambda each: hashlib.sha256((line + each.reply).encode()).digest())
        for each in some[: WRAPPED[told_denied]]:
            found = features(frame(reply_of(line.replace("{}", each.reply)), each.phrases))
            yield Example(frozenset(found), denied or each.denied, "", each.writer, WRAPPED_WEIGHT, number)


def is_chinese(text: str) -> bool:
    return bool(re.search("[一-鿿]", text))


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
        for feature in example.features if example.subject else ():
            subjects[feature].add(example.subject)
    known = sorted(feature for feature, of in subjects.items() if len(of) >= LEAST_SUBJECTS)
    places = {feature: column for column, feature in enumerate(known)}
    model = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=3000)
    weights = [example.weight for example in examples]
    return model.fit(matrix(examples, places), [each.denied for each in examples], sample_weight=weights), places


def measure(examples: Sequence[Example], writers: Sequence[str]) -> float:
    """Print what a model of the other writers, and of most frames, makes of each writer and of the other frames.

    Returns the threshold that this sets.
    """
    denied: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.array([]))
    right: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.array([]))
    for number, writer in enumerate(writers):
        unseen = [each for each in examples if each.frame is not None and each.frame % len(writers) == number]
        own = [each for each in examples if each.writer == writer and each.frame is None]
        left = {*map(id, own), *map(id, unseen)}
        model, places = fitted([each for each in examples if id(each) not in left and each.writer != writer])
        around = [each for each in unseen if not each.subject and each.writer in ("", writer)]
        for name, some in ((writer, own), ("frames", around)):
            for found, kind in ((denied, True), (right, False)):
                values = model.decision_function(matrix([each for each in some if each.denied == kind], places))
                found[name] = np.append(found[name], values)
    of_frames = right["frames"]
    of_writers = np.concatenate([right[writer] for writer in writers])
    threshold = float(max(np.quantile(values, 1 - FALSE_DENIALS) for values in (of_writers, of_frames)))
    for name in right:
        told, lost = (denied[name] > threshold).mean(), (right[name] > threshold).mean()
        print(f"{name}: {told:.1%} of {len(denied[name])} denials told, {lost:.1%} of {len(right[name])} right lost")
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
    told = [each for path in (*chosen.replies, OWN) for each in replies(path)] + [*knowledge()]
    known = [*(each.example() for each in told), *frames(told)]
    found = measure(known, [path.stem for path in chosen.replies])
    if chosen.task == "fit":
        write(known, found)
