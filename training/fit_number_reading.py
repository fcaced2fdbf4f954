"""Fit the weights by which a number is read out of an answer, and measure them on writers left out.

    python training/fit_number_reading.py measure    # each writer's replies by weights fitted on all others
    python training/fit_number_reading.py fit        # writes src/agrotools/data/number_reading.json

The replies are those of ``training/replies``, of ``tests/scoring/sealed`` and of ``tests/scoring/replies.jsonl``, and
the golden vectors of the specification: each is a file of one writer, with the value that a careful reader finds. The
model is a linear one: a softmax over the numbers of a reply, of which those of the right value share the probability
(numbers of equal value speak for each other). Replies that state another value than the slot's, without saying which,
only say that the slot's value is not chosen. Needs SciPy.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy.optimize import minimize

from agrotools.core import ExactSlot, Slot, ToleranceSlot
from agrotools.core.form_item import form_item, form_items
from agrotools.scoring.answer_text import read_answer
from agrotools.scoring.keyed_values import keyed_scopes, without_other_values
from agrotools.scoring.number_candidates import Candidate, find_candidates
from agrotools.scoring.number_reading import emphasised, within
from agrotools.text.numbers import find_quantities
from agrotools.text.units import canonical_unit

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = ROOT / "src" / "agrotools" / "data" / "number_reading.json"
FILES = (
    *sorted((ROOT / "training" / "replies").glob("reading_*.jsonl")),
    *sorted((ROOT / "tests/scoring/sealed").glob("reading_*.jsonl")),
)
SLOTS = TypeAdapter(tuple[Slot, ...])
RIDGE = 0.3
NOT_CHOSEN, GOLDEN = 0.5, 5.0
"""Weights of replies that only say what is not chosen, and of the vectors of the specification."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Reply(NamedTuple):
    """A labelled reply: who wrote it, for which slot, whether it gives the slot's value, and the value it gives."""

    writer: str
    slot: ToleranceSlot | ExactSlot
    slots: tuple[Slot, ...]
    text: str
    right: bool
    said: float | None
    weight: float = 1.0


class Case(NamedTuple):
    """The numbers of a reply as rows of features, which of them are right, and its weight in the fit."""

    writer: str
    rows: Floats
    right: Bools
    values: tuple[float, ...]
    weight: float
    known: bool


def replies() -> Iterator[Reply]:
    """All labelled replies about numbers."""
    for path in FILES:
        for line in path.read_text("utf-8").splitlines():
            told = json.loads(line)
            slots = SLOTS.validate_json(json.dumps(told["slots"]))
            slot = next(each for each in slots if each.name == told["slot"])
            said = told.get("said")
            if isinstance(slot, ToleranceSlot | ExactSlot) and form_item(slot).is_number:
                value = float(said) if isinstance(said, int | float) and not isinstance(said, bool) else None
                yield Reply(path.stem, slot, slots, told["reply"], told["expected"] == 1, value)
    sys.path.insert(0, str(ROOT / "tests" / "scoring"))
    slot_of = importlib.import_module("test_replies").slot_of
    for line in (ROOT / "tests" / "scoring" / "replies.jsonl").read_text("utf-8").splitlines():
        told = json.loads(line)
        slots = tuple(map(slot_of, (told["slot"], *told.get("beside", ()))))
        first = slots[0]
        if isinstance(first, ToleranceSlot | ExactSlot) and form_item(first).is_number:
            golden = bool(told.get("golden"))
            source, weight = ("golden", GOLDEN) if golden else ("replies", 1.0)
            yield Reply(source, first, slots, told["reply"], told["score"] == 1, None, weight)


def candidates_of(reply: Reply) -> list[Candidate]:
    """The numbers among which the reader has to choose; none where the reply gives the value by its key."""
    answer = read_answer(reply.text)
    item, items = form_item(reply.slot), form_items(reply.slots)
    if keyed_scopes(item, items, answer, lambda text: bool(find_quantities(text))):
        return []
    text = without_other_values(item, items, answer.plain)
    return find_candidates(item, items, text, canonical_unit(item.unit), emphasised(answer.text))


def cases(told: Sequence[Reply]) -> tuple[list[Case], list[str]]:
    """Replies with a choice, as rows over the features that occur, and the names of these features."""
    found = [(reply, candidates_of(reply)) for reply in told]
    names = sorted({name for _, candidates in found for each in candidates for name in each.features})
    place = {name: index for index, name in enumerate(names)}
    kept: list[Case] = []
    for reply, candidates in found:
        value = float(reply.slot.value)
        margin = reply.slot.margin if isinstance(reply.slot, ToleranceSlot) else 0.0
        if not reply.right and reply.said is not None:
            value, margin = reply.said, 1e-3 * abs(reply.said)
        signs = (value, -value)
        right = np.array(
            [any(within(sign, margin, each.low, each.high) for sign in signs) for each in candidates], dtype=bool
        )
        known = reply.right or reply.said is not None
        right = right if known else ~right
        if not right.any() or right.all():
            continue
        rows = np.zeros((len(candidates), len(names)))
        for row, each in zip(rows, candidates, strict=True):
            for name, given in each.features.items():
                row[place[name]] = float(given)
        values = tuple(each.low for each in candidates)
        kept.append(Case(reply.writer, rows, right, values, reply.weight * (1.0 if known else NOT_CHOSEN), known))
    return kept, names


def fitted(told: Sequence[Case]) -> Floats:
    """The weights under which the right numbers are most probable, with a ridge."""
    rows = np.concatenate([case.rows for case in told])
    right = np.concatenate([case.right for case in told])
    group = np.repeat(np.arange(len(told)), [len(case.rows) for case in told])
    weight = np.array([case.weight for case in told])

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        top = np.full(len(told), -np.inf)
        np.maximum.at(top, group, scores)
        odds = np.exp(scores - top[group])
        total = np.bincount(group, odds, len(told))
        good = np.bincount(group, odds * right, len(told)) + 1e-300
        value = -(weight * (np.log(good) - np.log(total))).sum() + RIDGE * (weights @ weights) / 2
        slope = rows.T @ (weight[group] * (odds / total[group] - odds * right / good[group])) + RIDGE * weights
        return float(value), slope

    return minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x


def chooses_right(case: Case, weights: Floats) -> bool:
    """Whether the value with the highest summed odds is a right one."""
    scores = case.rows @ weights
    odds: dict[float, float] = {}
    for value, score in zip(case.values, np.exp(scores - scores.max()), strict=True):
        odds[value] = odds.get(value, 0.0) + float(score)
    best = max(odds, key=odds.__getitem__)
    return bool(case.right[case.values.index(best)])


def measure(told: Sequence[Case]) -> None:
    """Print how often the right number is chosen, each writer's replies by weights fitted on all others."""
    total: list[bool] = []
    for writer in sorted({case.writer for case in told}):
        weights = fitted([case for case in told if case.writer != writer])
        right = [chooses_right(case, weights) for case in told if case.writer == writer and case.known]
        total += right
        print(f"{writer:20} {sum(right):4} of {len(right):4} = {100 * sum(right) / max(1, len(right)):5.1f} %")
    print(f"{'all':20} {sum(total):4} of {len(total):4} = {100 * sum(total) / len(total):5.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("fit", "measure"))
    arguments = parser.parse_args()
    told, names = cases(list(replies()))
    print(f"{len(told)} replies with a choice, {len(names)} features")
    if arguments.action == "measure":
        measure(told)
        return
    weights = fitted(told)
    kept = {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True) if abs(weight) >= 0.005}
    WEIGHTS.write_text(json.dumps({"weights": kept}, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
    print(f"{len(kept)} weights written to {WEIGHTS}")


if __name__ == "__main__":
    main()
