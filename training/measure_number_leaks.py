"""Measure which numbers of a prompt tell the answer: alone, two together, or as the largest or smallest of several.

    python training/fit_guess.py packed WORK --seeds 20261121 --choices 0 --out DIR     # all questions of fresh scenes
    python training/measure_number_leaks.py DIR/*-offered.jsonl [--most 300]
    python training/fit_colours.py benchmark field --out DIR/field.jsonl                # questions of a benchmark
    python training/measure_number_leaks.py DIR/field.jsonl --fewest 12

Numbers are those of the question in their order (of a box also width, height and area, of a point its place), and of
the files: number, size, ground sampling distance, focal length, and the numbers in their notes (mean, and that of each
file). Two together are their product, ratio, sum and difference. Answers are numbers, yes or no, and the place of the
right option in its list; these are compared by rank correlations.

Where options are named in the question, each has the numbers that follow its name, and the file of its name has those
of the file. The rule "the option with the largest (smallest) such number", and "the option named first (last)", is
compared with chance. All tests are adjusted by Holm. Up to ``--most`` questions of a template count, of as many scenes
as possible. A number that follows from another one of the same template is listed, too; two together are listed if
they tell more than each of them.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from fit_guess import Question, read_questions
from scipy.stats import binomtest, spearmanr

from agrotools.agents.baselines.guess import shown_choices
from agrotools.core import BooleanSlot, ExactSlot, FileSlot, Slot, ToleranceSlot

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\w)")
BOX = re.compile(r"\((\d+), (\d+), (\d+), (\d+)\)")
POINT = re.compile(r"\((\d+), (\d+)\)")
MOST_PAIRED = 12
"""Numbers of a prompt that are also taken in pairs; questions have fewer of their own."""
TELLS_MORE = 0.05
"""Least gain in the correlation with which two numbers tell more than each of them."""


def numbers_of(question: Question) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a prompt, each with the name of its place."""
    for k, box in enumerate(BOX.findall(question.query)):
        x0, y0, x1, y1 = map(float, box)
        yield from (
            (f"box {k} width", x1 - x0),
            (f"box {k} height", y1 - y0),
            (f"box {k} area", (x1 - x0) * (y1 - y0)),
            (f"box {k} x", x0),
            (f"box {k} y", y0),
        )
    text = BOX.sub(" ", question.query)
    for k, (x, y) in enumerate(POINT.findall(text)):
        yield from ((f"point {k} x", float(x)), (f"point {k} y", float(y)))
    for k, digits in enumerate(NUMBER.findall(POINT.sub(" ", text))):
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


Place = tuple[str, ...]
"""Names of one number, or of two and how they are put together."""


def paired_numbers(numbers: Sequence[tuple[str, float]]) -> Iterator[tuple[Place, float]]:
    """Yield product, ratio, sum and difference of two numbers of a prompt."""
    for (one, a), (other, b) in combinations(numbers[:MOST_PAIRED], 2):
        yield (one, "*", other), a * b
        yield (one, "+", other), a + b
        yield (one, "-", other), a - b
        if b:
            yield (one, "/", other), a / b


def listed_numbers(question: Question, names: Sequence[str]) -> list[dict[str, float]]:
    """Return the numbers of each option that the question names: those behind its name, and of the file of its name."""
    places = [question.query.find(name) for name in names]
    found: list[dict[str, float]] = []
    for name, place in zip(names, places, strict=True):
        if place < 0:
            return []
        later = [other for other in places if other > place]
        part = question.query[place + len(name) : min(later, default=len(question.query))]
        own: dict[str, float] = {"place": float(place)}
        if box := BOX.search(part):
            x0, y0, x1, y1 = map(float, box.groups())
            own |= {"box width": x1 - x0, "box height": y1 - y0, "box x": x0, "box y": y0}
            own["box area"] = own["box width"] * own["box height"]
        elif point := POINT.search(part):
            own |= {"x": float(point[1]), "y": float(point[2])}
        elif digits := NUMBER.search(part):
            own["number"] = float(digits[0])
        for file in question.files:
            if file.name == name:
                own |= {
                    key: float(value)
                    for key, value in (("width", file.width_px), ("height", file.height_px))
                    if value
                }
                if file.intrinsics and file.intrinsics.fx_px:
                    own["focal length"] = float(file.intrinsics.fx_px)
                if noted := NUMBER.findall(file.note or ""):
                    own["note"] = float(noted[0])
        found.append(own)
    return found


def largest_and_smallest(question: Question, slot: Slot) -> Iterator[tuple[str, bool, float]]:
    """Yield for each rule whether it names the right option, and the chance of that."""
    if not isinstance(slot, ExactSlot | FileSlot):
        return
    names = shown_choices(slot)
    if str(slot.value) not in names or len(names) < 2:
        return
    listed = listed_numbers(question, names)
    for key in listed[0] if listed else ():
        values = [own.get(key) for own in listed]
        if None in values or len(set(values)) < len(values):
            continue
        for rule, best in (("largest", max(values)), ("smallest", min(values))):  # type: ignore[type-var]
            yield f"{rule} {key}", names[values.index(best)] == str(slot.value), 1 / len(names)


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
        pairs: dict[tuple[Place, str], list[tuple[float, float]]] = defaultdict(list)
        rules: dict[tuple[str, str], list[tuple[bool, float]]] = defaultdict(list)
        for question in spread(found, given.most):
            answers = [
                (slot.name, value)
                for slot in question.slots
                if (value := answer_of(slot)) is not None
            ]
            numbers = [*numbers_of(question)]
            alone = [((place,), number) for place, number in numbers]
            for place, number in (*alone, *paired_numbers(numbers)):
                for name, value in answers:
                    pairs[place, name].append((number, value))
            for slot in question.slots:
                for rule, is_right, chance in largest_and_smallest(question, slot):
                    rules[rule, slot.name].append((is_right, chance))
        found_alone: dict[tuple[str, str], float] = {}
        for (place, name), values in sorted(pairs.items(), key=lambda item: len(item[0][0])):
            first, second = zip(*values, strict=True)
            if len(values) < given.fewest or len(set(first)) < 2 or len(set(second)) < 2:
                continue
            rho, p = map(float, spearmanr(first, second))
            if len(place) == 1:
                found_alone[place[0], name] = abs(rho)
            else:
                # Counted as a test all the same, so that the adjustment is not too lenient.
                parts = [found_alone.get((part, name), 0.0) for part in (place[0], place[2])]
                p = p if abs(rho) > max(parts) + TELLS_MORE else 1.0
            tests.append((p, rho, len(values), f"{template}: {' '.join(place)} and {name}"))
        for (rule, name), tried in rules.items():
            if len(tried) >= given.fewest:
                right, chance = sum(hit for hit, _ in tried), sum(c for _, c in tried) / len(tried)
                p = binomtest(right, len(tried), chance, alternative="greater").pvalue
                tests.append(
                    (float(p), right / len(tried), len(tried), f"{template}: {rule} is {name}")
                )
    print(
        f"{sum(map(len, by_template.values()))} questions, {len(by_template)} templates, {len(tests)} tests"
    )
    largest = 0.0
    for rank, (p, rho, n, what) in enumerate(sorted(tests)):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        if largest < 0.05:
            print(f"{rho:+.2f}  n {n:4d}  adjusted p {largest:.1e}  {what}")


if __name__ == "__main__":
    main()
