"""Measure which numbers of a prompt tell the answer: rank correlations by template, adjusted by Holm.

    python training/fit_guess.py packed WORK --seeds 20261121 --choices 0 --out DIR     # all questions of fresh scenes
    python training/measure_number_leaks.py DIR/*-offered.jsonl [--most 300]

Numbers are those of the question in their order (of a box also width and height), and of the files: number, size,
ground sampling distance, focal length, and the numbers in their notes (mean, and that of each file). Answers are
numbers, yes or no, and the place of the right option in its list. Up to ``--most`` questions of a template count, of
as many scenes as possible. A number that follows from another one of the same template is listed, too.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from fit_guess import Question, read_questions
from scipy.stats import spearmanr

from agrotools.agents.baselines.guess import shown_choices
from agrotools.core import BooleanSlot, ExactSlot, FileSlot, Slot, ToleranceSlot

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\w)")
BOX = re.compile(r"\((\d+), (\d+), (\d+), (\d+)\)")


def numbers_of(question: Question) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a prompt, each with the name of its place."""
    for k, box in enumerate(BOX.findall(question.query)):
        x0, y0, x1, y1 = map(float, box)
        yield from (
            (f"box {k} width", x1 - x0),
            (f"box {k} height", y1 - y0),
            (f"box {k} x", x0),
            (f"box {k} y", y0),
        )
    for k, digits in enumerate(NUMBER.findall(BOX.sub(" ", question.query))):
        yield f"number {k}", float(digits)
    yield "files", float(len(question.files))
    noted: list[float] = []
    for k, file in enumerate(question.files):
        facts = {"width": file.width_px, "height": file.height_px, "gsd": file.gsd_m}
        facts["focal length"] = file.intrinsics.fx_px if file.intrinsics else None
        yield from (
            (f"file {k} {name}", float(value)) for name, value in facts.items() if value is not None
        )
        for m, digits in enumerate(NUMBER.findall(file.note or "")):
            noted.append(float(digits))
            yield f"file {k} note {m}", noted[-1]
    if len(noted) > 1:
        yield "mean of notes", sum(noted) / len(noted)


def answer_of(slot: Slot) -> float | None:
    """Return the answer as a number; None if it is none."""
    if isinstance(slot, ToleranceSlot | BooleanSlot):
        return float(slot.value)
    if isinstance(slot, ExactSlot | FileSlot):
        places = shown_choices(slot)
        return float(places.index(str(slot.value))) if str(slot.value) in places else None
    return None


def spread(questions: Sequence[Question], most: int) -> list[Question]:
    """Return up to ``most`` questions, one of each cluster before the second of any."""
    turns: dict[str, int] = defaultdict(int)
    ranked: list[tuple[int, int]] = []
    for place, question in enumerate(questions):
        ranked.append((turns[question.cluster], place))
        turns[question.cluster] += 1
    return [questions[place] for _, place in sorted(ranked)[:most]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("--fewest", type=int, default=30)
    given = parser.parse_args()
    by_template: dict[str, list[Question]] = defaultdict(list)
    for question in read_questions(given.files):
        by_template[question.template].append(question)
    tests: list[tuple[float, float, int, str]] = []
    for template, found in sorted(by_template.items()):
        pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for question in spread(found, given.most):
            answers = [
                (slot.name, value)
                for slot in question.slots
                if (value := answer_of(slot)) is not None
            ]
            for place, number in numbers_of(question):
                for name, value in answers:
                    pairs[place, name].append((number, value))
        for (place, name), values in pairs.items():
            first, second = zip(*values, strict=True)
            if len(values) >= given.fewest and len(set(first)) > 1 and len(set(second)) > 1:
                rho, p = spearmanr(first, second)
                tests.append((float(p), float(rho), len(values), f"{template}: {place} and {name}"))
    print(
        f"{sum(map(len, by_template.values()))} questions, {len(by_template)} templates, {len(tests)} correlations"
    )
    largest = 0.0
    for rank, (p, rho, n, what) in enumerate(sorted(tests)):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        if largest < 0.05:
            print(f"{rho:+.2f}  n {n:4d}  adjusted p {largest:.1e}  {what}")


if __name__ == "__main__":
    main()
