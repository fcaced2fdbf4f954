"""Is the floor a floor? Policies that look at no picture, and that neither floor contains.

Table of docs/statistics.md, "Other policies that see no picture".

    python performance/floor_attacks.py --data DIR [--work FOLDER] [BENCHMARK...]

Asks the questions of `embedded`, of `field` (its pack holds them; no photograph is read) and of five benchmarks that
`agrotools build` makes of tables of the photos in DIR (the folder of AGROTOOLS_TEST_DATA): counts, severities, labels,
yes or no, and a mix. Printed for each: both floors, and what each attack gets above the printed floor. Attacks learn
on the other clusters only. Exits with 1 if one is more than 3 points and two standard errors above it: of forty
questions, every tenth guess that is right by chance is more.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from agrotools.agents.baselines.guess import guessed_values, shows_no_answer
from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    Sample,
    Slot,
    ToleranceSlot,
)
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.scoring.constants import ConstantTable, cluster_of
from agrotools.scoring.metrics import counts_in_fas, counts_in_guess
from agrotools.scoring.slots import guess_points, pair_points, score_slot
from agrotools.text.answer_form import format_answer

MOST_ABOVE = 0.03
FACTORS = (0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\.(?:jpg|png|tif))")
_FILE = re.compile(r"[\w-]+\.(?:jpe?g|png|tiff?)\b")
_DOUBT = re.compile(
    r"scale|missing|enough|can you tell|possible|reliabl|if not|cannot", re.IGNORECASE
)

Values = dict[str, JsonValue]
Policy = Callable[[Sample], Values | None]
"""Values of an answer by slot; None for a refusal."""


# --- own benchmarks -------------------------------------------------------------------------------------------------


def _truth(folder: Path) -> list[dict[str, object]]:
    return json.loads((folder / "truth.json").read_text("utf-8"))


def _mixed(
    lesions: Path, coffee: Path, percent: Callable[[object], str]
) -> tuple[Sequence[Path], list[str], list[list[object]], list[str]]:
    """Return the table of two sets of coffee leaves: the disease, whether there is one, and the severity of some."""
    rows: list[list[object]] = []
    for folder in (lesions, coffee):
        for each in _truth(folder):
            label, share = str(each["label"]).replace("_", " "), each.get("lesion_fraction_of_leaf")
            name = Path(str(each["image"])).name
            severity = "" if share is None else percent(share)
            rows.append([name, severity, label, "no" if label == "healthy" else "yes"])
    header = ["photo", "severity (%)", "disease", "diseased"]
    return (lesions / "images", coffee / "images"), header, rows, ["disease.crop=coffee"]


def own_tables(
    data: Path,
) -> Iterator[tuple[str, Sequence[Path], list[str], list[list[object]], list[str]]]:
    """Yield name, folders of photos, header, rows and settings of the plan of each own benchmark."""

    def percent(share: object) -> str:
        return f"{100 * float(str(share)):.1f}"

    apples = data / "orchard_apples"
    rows = [[Path(str(each["image"])).name, each["count"]] for each in _truth(apples)]
    yield (
        "counts",
        (apples / "images",),
        ["photo", "apple count"],
        rows,
        ["apple count.target=apple"],
    )
    lesions = data / "coffee_lesions"
    rows = [
        [Path(str(each["image"])).name, percent(each["lesion_fraction_of_leaf"])]
        for each in _truth(lesions)
    ]
    yield "severities", (lesions / "images",), ["photo", "severity (%)"], rows, []
    beans = data / "bean_leaf_class"
    rows = [
        [Path(str(each["image"])).name, str(each["label"]).replace("_", " ")]
        for each in _truth(beans)
    ]
    yield "labels", (beans / "images",), ["photo", "disease"], rows, ["disease.crop=bean"]
    coffee = data / "coffee_leaf_class"
    rows = [
        [Path(str(each["image"])).name, "no" if each["label"] == "healthy" else "yes"]
        for each in _truth(coffee)
    ]
    yield "yes_or_no", (coffee / "images",), ["photo", "diseased"], rows, []
    yield "mixed", *_mixed(lesions, coffee, percent)


def build_own(data: Path, work: Path) -> list[str]:
    """Build the benchmarks and return their folders."""
    built: list[str] = []
    for name, photos, header, rows, settings in own_tables(data):
        table, out, images = work / f"{name}.csv", work / name, work / f"{name}-photos"
        images.mkdir(exist_ok=True)
        for photo in (each for folder in photos for each in folder.iterdir()):
            shutil.copy(photo, images)
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        command = [sys.executable, "-m", "agrotools", "build", "--yes"]
        command += ["--images", str(images), "--answers", str(table), "--out", str(out)]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name} could not be built: {done.stderr}")
        built.append(str(out))
    return built


# --- attacks --------------------------------------------------------------------------------------------------------


def numbers_of(sample: Sample) -> list[float]:
    """Return the numbers of a question, without those in names of files."""
    return [float(digits) for digits in _NUMBER.findall(_FILE.sub("", sample.query))]


def shown_choices(slot: Slot) -> list[str]:
    """Return the options of a slot in the order of the form."""
    return sorted(slot.choices) if isinstance(slot, ExactSlot | FileSlot | ChoiceSetSlot) else []


def in_question(sample: Sample, slot: Slot) -> list[str]:
    """Return the options of a slot that the question names, in its order."""
    text = sample.query.casefold()
    named = [choice for choice in shown_choices(slot) if choice.casefold() in text]
    return sorted(named, key=lambda choice: text.index(choice.casefold()))


def option_at(place: int, *, named: bool) -> Callable[[Sample, Slot], JsonValue]:
    """Return a rule that takes the first or last option of the form, or of those that the question names."""

    def rule(sample: Sample, slot: Slot) -> JsonValue:
        options = in_question(sample, slot) if named else shown_choices(slot)
        if not options:
            return None
        return [options[place]] if isinstance(slot, ChoiceSetSlot) else options[place]

    return rule


def truth_of(slot: Slot) -> JsonValue:
    """Return the gold of a slot, for rules that learn from others."""
    value = getattr(slot, "value", None)
    return list(value) if isinstance(value, tuple) else value


class Learned:
    """Rules that learn on the other clusters: for each kind of slot, items of sample and slot."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._by_kind: dict[object, list[tuple[Sample, Slot]]] = defaultdict(list)
        for sample in samples:
            for slot in sample.answer:
                self._by_kind[self._kind(sample, slot)].append((sample, slot))
        self._points: dict[object, float] = {}

    @staticmethod
    def _kind(sample: Sample, slot: Slot) -> object:
        return sample.template, slot.name, slot.type

    def others(self, sample: Sample, slot: Slot) -> list[tuple[Sample, Slot]]:
        items = self._by_kind[self._kind(sample, slot)]
        own = cluster_of(sample)
        return [(other, its) for other, its in items if cluster_of(other) != own]

    def best(
        self, sample: Sample, slot: Slot, rules: Mapping[object, Callable[[Sample], JsonValue]]
    ) -> JsonValue:
        """Return the value of the rule that is right most often on the others; None without any."""
        others = self.others(sample, slot)
        if not others:
            return None
        kind = self._kind(sample, slot)

        def points(name: object) -> float:
            total = 0.0
            for other, its in others:
                key = (kind, name, other.id)
                if key not in self._points:
                    value = rules[name](other)
                    self._points[key] = 0.0 if value is None else points_of(its, value)
                total += self._points[key]
            return total

        return rules[max(rules, key=points)](sample)


def points_of(slot: Slot, value: JsonValue) -> float:
    """Return the score of a value of a slot."""
    return score_slot(slot, (slot,), format_answer((slot,), {slot.name: value})).value


def attacks(samples: Sequence[Sample]) -> dict[str, Callable[[Sample, Slot], JsonValue]]:
    """Return the rules by name: each gives the value of a slot, or None for that of the floor."""
    learned = Learned(samples)

    def number_times_factor(sample: Sample, slot: Slot) -> JsonValue:
        if not isinstance(slot, ToleranceSlot):
            return None
        rules: dict[object, Callable[[Sample], JsonValue]] = {}
        for place in range(3):
            for factor in FACTORS:

                def rule(other: Sample, place: int = place, factor: float = factor) -> JsonValue:
                    numbers = numbers_of(other)
                    return numbers[place] * factor if place < len(numbers) else None

                rules[place, factor] = rule
        return learned.best(sample, slot, rules)

    def yes_below_limit(sample: Sample, slot: Slot) -> JsonValue:
        if not isinstance(slot, BooleanSlot):
            return None
        limits = sorted(
            {
                number
                for other, _ in learned.others(sample, slot)
                for number in numbers_of(other)[:1]
            }
        )
        rules: dict[object, Callable[[Sample], JsonValue]] = {}
        for limit in limits:
            for is_below in (True, False):

                def rule(
                    other: Sample, limit: float = limit, is_below: bool = is_below
                ) -> JsonValue:
                    numbers = numbers_of(other)
                    return (numbers[0] <= limit) is is_below if numbers else None

                rules[limit, is_below] = rule
        return learned.best(sample, slot, rules) if rules else None

    def by(trait: Callable[[Sample], object]) -> Callable[[Sample, Slot], JsonValue]:
        def rule(sample: Sample, slot: Slot) -> JsonValue:
            alike = [
                truth_of(its)
                for other, its in learned.others(sample, slot)
                if trait(other) == trait(sample)
            ]
            known = [value for value in alike if value is not None]
            if not known:
                return None
            if isinstance(slot, ToleranceSlot):
                return median(float(str(value)) for value in known)
            if isinstance(slot, FileSlot):
                return None
            text, _ = Counter(map(json.dumps, known)).most_common(1)[0]
            value = json.loads(text)
            offered = shown_choices(slot)
            labels = value if isinstance(value, list) else [value]
            return value if not offered or {*labels} <= {*offered} else None

        return rule

    def nearest_file(sample: Sample, slot: Slot) -> JsonValue:
        """Return the answer of the sample whose first picture is most alike in width, height and file name."""
        others = learned.others(sample, slot)
        if not others or isinstance(slot, FileSlot) or not sample.files:
            return None

        def distance(item: tuple[Sample, Slot]) -> float:
            return abs(size_of(item[0]) - size_of(sample))

        value = truth_of(min(others, key=distance)[1])
        offered = shown_choices(slot)
        return value if not offered or value in offered else None

    return {
        "number of the question x factor": number_times_factor,
        "yes by the limit in the question": yes_below_limit,
        "first option of the form": option_at(0, named=False),
        "last option of the form": option_at(-1, named=False),
        "first option in the question": option_at(0, named=True),
        "last option in the question": option_at(-1, named=True),
        "always yes": lambda _, slot: True if isinstance(slot, BooleanSlot) else None,
        "always no": lambda _, slot: False if isinstance(slot, BooleanSlot) else None,
        "usual of the template": by(lambda _: None),
        "usual of the source": by(lambda sample: sample.source),
        "usual of the groups": by(lambda sample: sorted(sample.groups.items())),
        "usual of the number of files": by(lambda sample: len(sample.files)),
        "usual of the first word": by(lambda sample: sample.query.split()[0]),
        "answer of the nearest picture size": nearest_file,
        "number of files": lambda sample, slot: (
            float(len(sample.files)) if isinstance(slot, ToleranceSlot) else None
        ),
    }


def size_of(sample: Sample) -> float:
    """Return width times height of the first picture; 0 if unknown."""
    first = sample.files[0]
    return float((first.width_px or 0) * (first.height_px or 0))


# --- scores ---------------------------------------------------------------------------------------------------------


def score_of(sample: Sample, values: Values | None) -> float:
    """Return the score of an answer to an answerable sample; charts are those of the floor."""
    of_guess = guess_points(sample).points
    text = "unknown" if values is None else format_answer(sample.answer, values)
    total = 0.0
    for slot in filter(counts_in_guess, sample.answer):
        if slot.made_by_tools:
            total += 0.0 if values is None else slot.weight * of_guess[slot.name]
        else:
            total += slot.weight * score_slot(slot, sample.answer, text).value
    return total / sum(slot.weight for slot in sample.answer if counts_in_fas(slot))


def mean_score(samples: Sequence[Sample], scores: Mapping[str, float]) -> float:
    """Return the mean over samples by their weights."""
    return sum(s.weight * scores[s.id] for s in samples) / sum(s.weight for s in samples)


def scores_with_refusals(
    samples: Sequence[Sample], answers: Mapping[str, Values | None]
) -> dict[str, float]:
    """Return the scores of all samples; an unanswerable one scores by its twin."""
    scores: dict[str, float] = {}
    for sample in samples:
        if sample.answerable:
            scores[sample.id] = score_of(sample, answers[sample.id])
        else:
            refused, twin = answers[sample.id] is None, answers[str(sample.twin)] is None
            scores[sample.id] = pair_points(refused=refused, twin_refused=twin)
    return scores


def above_floor(
    samples: Sequence[Sample], answers: Mapping[str, Values | None], floor: Mapping[str, float]
) -> tuple[float, float]:
    """Return by how much answers score above a floor, and the standard error of that, by cluster."""
    scores = scores_with_refusals(samples, answers)
    weight = sum(sample.weight for sample in samples)
    more = sum(each.weight * (scores[each.id] - floor[each.id]) for each in samples) / weight
    by_cluster: dict[str, float] = defaultdict(float)
    for each in samples:
        by_cluster[cluster_of(each)] += each.weight * (scores[each.id] - floor[each.id] - more)
    return more, sum(value**2 for value in by_cluster.values()) ** 0.5 / weight


def attack(name: str) -> float:
    """Print the floors of a benchmark and every attack; return the largest difference that is no chance."""
    benchmark = load_as(name, Loading(files_later=True, questions_only=True))
    every = [*benchmark.samples]
    ids = {sample.id for sample in every}
    samples = [
        sample
        for sample in every
        if (any(map(counts_in_guess, sample.answer)) and sample.answerable)
        or (not sample.answerable and sample.twin in ids)
    ]
    table = ConstantTable.of(samples)
    guesses: dict[str, Values | None] = {}
    constants: dict[str, Values | None] = {}
    for sample in samples:
        refuses = shows_no_answer(sample, sample.answer)
        guess = guessed_values(sample, sample.answer)
        guesses[sample.id] = None if refuses else guess
        texts = {slot.name: slot.label for slot in sample.answer if slot.free_text}
        best = table.values(sample)
        constants[sample.id] = None if refuses else {**(texts if best else {}), **guess, **best}
    floors = {
        "guess": mean_score(samples, scores_with_refusals(samples, guesses)),
        "constant": mean_score(samples, scores_with_refusals(samples, constants)),
    }
    printed = max(floors, key=lambda floor: floors[floor])
    shown = ", ".join(f"{floor} {100 * value:.1f}" for floor, value in floors.items())
    print(f"\n{Path(name).name}: {len(samples)} questions; floors: {shown}")
    basis = constants if printed == "constant" else guesses

    scores_of_floor = scores_with_refusals(samples, basis)
    earned: dict[str, tuple[float, float]] = {}
    answerable = [sample for sample in samples if sample.answerable]
    for rule_name, rule in attacks(answerable).items():
        answers: dict[str, Values | None] = {}
        for sample in samples:
            values = basis[sample.id]
            if values is not None and sample.answerable:
                given = {slot.name: rule(sample, slot) for slot in sample.answer}
                values = {
                    **values,
                    **{key: value for key, value in given.items() if value is not None},
                }
            answers[sample.id] = values
        earned[rule_name] = above_floor(samples, answers, scores_of_floor)
    doubting = {
        sample.id: None if sample.may_abstain and _DOUBT.search(sample.query) else basis[sample.id]
        for sample in samples
    }
    earned["unknown where words suggest it"] = above_floor(samples, doubting, scores_of_floor)

    for rule_name, (more, error) in sorted(earned.items(), key=lambda item: -item[1][0]):
        print(f"  {100 * more:+6.1f} (two standard errors {200 * error:4.1f})  {rule_name}")
    return max((more for more, error in earned.values() if more > 2 * error), default=0.0)


def main() -> None:
    """Attack the benchmarks of the command line, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("benchmarks", nargs="*")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="folder of the built benchmarks")
    args = parser.parse_args()
    with TemporaryDirectory() as temporary:
        work = args.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        names = args.benchmarks or ["embedded", "field", *build_own(args.data, work)]
        above = {name: attack(name) for name in names}
    worst = max(above, key=lambda name: above[name])
    print(
        f"\nmost above the floor, beyond chance: {100 * above[worst]:.1f} points on {Path(worst).name}"
    )
    sys.exit(1 if above[worst] > MOST_ABOVE else 0)


if __name__ == "__main__":
    main()
