"""Fit and measure ``guess``: what can be scored from the prompts of drawn benchmarks alone.

Makes src/agrotools/data/guess*; figures of docs/scenes.md, "What can be guessed".

    python training/fit_guess.py questions --field DATA --seeds 1,2 --out DIR   # of the pictures of ``field``
    python training/fit_guess.py packed WORK --seeds 20261120 --choices 8 --out DIR   # as the packs are chosen
    python training/fit_guess.py charts DIR/101.jsonl DIR/102.jsonl     # writes src/agrotools/data/guess_charts.json
    python training/fit_guess.py fit DIR/101.jsonl DIR/102.jsonl        # writes guess.{npz,json} and guess_plans.json
    python training/fit_guess.py measure --fitted DIR/101.jsonl,DIR/102.jsonl DIR/201.jsonl DIR/202.jsonl

``questions`` writes every question that can be asked of the pictures in DATA, no picture for two seeds. ``packed``
draws other scenes than those of the packs into WORK and chooses their questions as for the packs, ``--choices`` times:
that is what to fit on, since answers are spread there. ``measure`` scores questions that nothing was fitted on: the
best constant of each template, fitted on these very questions and on the others; the shipped kind of model, fitted on
the others; gradient boosting on these features, the template and all numbers of files and notes, which does not ship.
Plans name the charts that are there, so ``charts`` comes first.
It prints upper 95 % bounds, by clusters, of what the last two score beyond constants. The name of a packed benchmark
stands for its answerable questions. Needs scikit-learn.
"""

import argparse
import json
import re
import sys
import tempfile
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from field_parts import PARTS
from numpy.typing import NDArray
from pydantic import JsonValue, TypeAdapter

from agrotools.agents.baselines.guess import (
    Guesser,
    GuessModel,
    form_key,
    kind_key,
    prompt_features,
    shipped_model,
    shown_choices,
    slot_key,
    words_of,
)
from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    OpenTextSlot,
    PlotSeries,
    PlotSlot,
    PlotSpec,
    SampleFile,
    Slot,
    ToleranceSlot,
)
from agrotools.loading.pack import read_pack
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import format_answer
from agrotools_build import templates
from agrotools_build.building import with_plot_weights
from agrotools_build.choosing import Chosen, ask_subject
from agrotools_build.sources.drawn.drawing import SCENE_KINDS
from agrotools_build.sources.part import Originals
from agrotools_build.templates import load_templates

DATA = Path(__file__).resolve().parent.parent / "src" / "agrotools" / "data"
SLOTS, FILES = TypeAdapter(tuple[Slot, ...]), TypeAdapter(tuple[SampleFile, ...])
PLACEHOLDER = re.compile(r"\{[^}]*\}")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
FOLDS, LEAST, FEWEST_POINTS, MOST_NOTES = 5, 30, 6, 5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A question as a policy sees it, with its gold; questions of one ``cluster`` share pictures."""

    template: str
    cluster: str
    query: str
    files: tuple[SampleFile, ...]
    slots: tuple[Slot, ...]
    calls: Sequence[tuple[str, Any]] = ()

    @property
    def features(self) -> Floats:
        return prompt_features(self.query, self.files)

    @property
    def all_numbers(self) -> Floats:
        """Features, template, and the numbers of the files and their notes, for a policy that does not ship."""
        notes = [float(digits) for file in self.files for digits in NUMBER.findall(file.note or "")]
        focal = [file.intrinsics.fx_px for file in self.files if file.intrinsics]
        scales = [file.gsd_m for file in self.files if file.gsd_m]
        found = [
            float(zlib.crc32(self.template.encode()) % 997),
            *(float(sum(x) / max(1, len(x))) for x in (notes, focal, scales)),
        ]
        return np.concatenate([self.features, found, (notes + [0.0] * MOST_NOTES)[:MOST_NOTES]])


# -- Questions ---------------------------------------------------------------------------------------------------------


def write_field_questions(data: Path, seeds: Sequence[int], out: Path) -> None:
    """Write every question that can be asked of the pictures in ``data``, each subject's for one seed alone."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        parts = [
            make(data / name, Path(scratch))
            for name, make in PARTS.items()
            if (data / name).is_dir()
        ]
    for place, seed in enumerate(seeds):
        asked = (
            ask_subject(subject, question, seed)
            for part in parts
            for subject in part.subjects[place :: len(seeds)]
            for question in part.questions
        )
        _write(out / f"{seed}.jsonl", [_worded(item) for item in asked if item is not None])


def write_packed_questions(
    work: Path, seeds: Sequence[int], choices: int, out: Path, names: Sequence[str]
) -> None:
    """Write the questions of benchmarks from scenes of these seeds: all, and as packed, chosen several times."""
    import pack_benchmarks

    out.mkdir(parents=True, exist_ok=True)
    originals = Originals(work)
    for seed in seeds:
        if seed == pack_benchmarks.SEED:
            raise SystemExit("these are the scenes of the packs; give another seed")
        for name in names:
            offered = pack_benchmarks.offered_questions(name, work, originals, _progress, seed=seed)
            _write(
                out / f"{name}-{seed}-offered.jsonl",
                [_worded(item) for _, item in offered],
                f"{name}-{seed}",
            )
            for number in range(choices):
                chosen = pack_benchmarks.choose(name, offered, seed + number)
                _write(
                    out / f"{name}-{seed}-{number}.jsonl",
                    [item for _, item in chosen],
                    f"{name}-{seed}",
                )


def _write(target: Path, chosen: Iterable[Chosen], scenes: str = "") -> None:
    lines = [
        {
            "template": item.question.template,
            "cluster": f"{scenes or target.stem}-{item.subject.name}",
            "query": item.query,
            "files": [
                file.model_dump(mode="json", exclude_none=True) for file in item.instance.files
            ],
            "slots": SLOTS.dump_python(
                with_plot_weights(item.instance.slots), mode="json", by_alias=True
            ),
            "calls": [[call.tool, dict(call.arguments)] for call in item.instance.calls],
        }
        for item in chosen
    ]
    with tempfile.NamedTemporaryFile(
        "w", dir=target.parent, delete=False, encoding="utf-8"
    ) as file:
        file.writelines(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    Path(file.name).replace(target)
    print(f"{target}: {len(lines)} questions", flush=True)


def _worded(item: Chosen) -> Chosen:
    """The question in one of its wordings, by chance."""
    ways = item.question.wordings
    return replace(
        item,
        wording=ways[
            zlib.crc32(f"{item.subject.name} {item.question.template}".encode()) % len(ways)
        ],
    )


def _progress(stage: str, done: int, of: int) -> None:
    print(f"\r{stage} {done}/{of}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def read_questions(paths: Iterable[Path]) -> list[Question]:
    found = []
    for path in paths:
        if str(path) in ("embedded", "frontier"):
            asked = (
                each for each in read_pack(str(path)).samples if each.answerable and each.reference
            )
            found += [
                Question(each.template, each.id, each.query, each.files, each.answer)
                for each in asked
            ]
            continue
        for line in path.read_text("utf-8").splitlines():
            told = json.loads(line)
            files, slots = (
                FILES.validate_python(told["files"]),
                SLOTS.validate_json(json.dumps(told["slots"])),
            )
            found.append(
                Question(
                    told["template"],
                    told["cluster"],
                    told["query"],
                    files,
                    slots,
                    told.get("calls", ()),
                )
            )
    return found


# -- Fitting -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One slot of one question: its features and gold."""

    question: Question
    slot: Slot
    features: Floats


def cases_of(questions: Sequence[Question]) -> dict[str, list[Case]]:
    """By key of the slot; figures are fitted apart (:func:`ship_charts`)."""
    cases: dict[str, list[Case]] = defaultdict(list)
    for question in questions:
        features = question.features
        for slot in question.slots:
            if not isinstance(slot, PlotSlot):
                cases[slot_key(slot)].append(Case(question, slot, features))
    return cases


def hit(slot: Slot, value: JsonValue) -> float:
    """The score of ``value`` as an answer, by comparison: what scoring would give to a line of the answer form."""
    if value is None:
        return 0.0
    if isinstance(slot, ToleranceSlot):
        return float(isinstance(value, int | float) and abs(value - slot.value) <= slot.margin)
    if isinstance(slot, ChoiceSetSlot):
        return float(isinstance(value, list) and set(value) == set(slot.value))
    if isinstance(slot, OpenTextSlot):
        return score_slot(slot, (slot,), format_answer((slot,), {slot.name: value})).value
    return float(value == slot.value)


def best_constant(cases: Sequence[Case]) -> Guesser:
    """The constant answer that scores most on ``cases``."""
    slot = cases[0].slot
    if isinstance(slot, ToleranceSlot):
        return Guesser(best_number([case.slot for case in cases]))  # type: ignore[arg-type]
    if isinstance(slot, OpenTextSlot):
        texts = list(dict.fromkeys(_told(case.slot) for case in cases))[:40]
        return Guesser(max(texts, key=lambda text: sum(hit(case.slot, text) for case in cases)))
    plain = _most_frequent(_outcome(case.slot) for case in cases)
    options = [Guesser(plain)]
    if isinstance(slot, ExactSlot | FileSlot) and shown_choices(slot):
        options.append(Guesser(_most_frequent(_place(case.slot) for case in cases), by_place=True))
    return max(options, key=lambda guesser: hits(guesser, cases).mean())


def best_number(slots: Sequence[ToleranceSlot]) -> float:
    """The number within the tolerance of most slots, in the middle of the stretch where it is."""
    ends = sorted(
        [(slot.value - slot.margin, 0, 1) for slot in slots]
        + [(slot.value + slot.margin, 1, -1) for slot in slots]
    )
    best, inside, found = -1, 0, (slots[0].value, slots[0].value)
    for place, (at, _, change) in enumerate(ends):
        inside += change
        if inside > best:
            best, found = inside, (at, ends[min(place + 1, len(ends) - 1)][0])
    return (found[0] + found[1]) / 2


def _most_frequent(values: Iterable[JsonValue]) -> JsonValue:
    counts = Counter(json.dumps(value, ensure_ascii=False) for value in values)
    return json.loads(min(counts, key=lambda text: (-counts[text], text)))


def _outcome(slot: Slot) -> JsonValue:
    return list(slot.value) if isinstance(slot, ChoiceSetSlot) else slot.value  # type: ignore[union-attr]


def _place(slot: Slot) -> JsonValue:
    choices = shown_choices(slot)
    return choices.index(str(slot.value)) if str(slot.value) in choices else 0  # type: ignore[union-attr]


def _told(slot: Slot) -> str:
    """An answer that states all facts of an open slot."""
    assert isinstance(slot, OpenTextSlot)
    return "; ".join(str(fact.phrases[0]) for fact in slot.facts)


def hits(guesser: Guesser, cases: Sequence[Case]) -> Floats:
    """The score of each case."""
    model = GuessModel({slot_key(cases[0].slot): guesser})
    return np.array([hit(case.slot, model.value_of(case.slot, case.features)) for case in cases])


def fitted(cases: Sequence[Case]) -> Guesser:
    """The best constant, or a linear model where folds of clusters show that it is better."""
    constant = best_constant(cases)
    if len(cases) < LEAST or isinstance(cases[0].slot, OpenTextSlot):
        return constant
    folds = _folds(cases)
    scores: dict[str, list[Floats]] = defaultdict(list)
    for held_out in range(FOLDS):
        inside = [case for case, fold in zip(cases, folds, strict=True) if fold != held_out]
        outside = [case for case, fold in zip(cases, folds, strict=True) if fold == held_out]
        if not inside or not outside:
            continue
        scores["constant"].append(hits(best_constant(inside), outside))
        for name, fit in LINEAR.items():
            if (guesser := fit(inside)) is not None:
                scores[name].append(hits(guesser, outside))
    means = {name: np.concatenate(parts).mean() for name, parts in scores.items() if parts}
    best = max(means, key=lambda name: means[name])
    if best == "constant" or means[best] <= means["constant"]:
        return constant
    return LINEAR[best](cases) or constant


def _folds(cases: Sequence[Case]) -> list[int]:
    order = {
        cluster: place
        for place, cluster in enumerate(sorted({case.question.cluster for case in cases}))
    }
    return [order[case.question.cluster] * 7919 % 101 % FOLDS for case in cases]


def _classifier(strength: float) -> Callable[[Sequence[Case]], Guesser | None]:
    def fit(cases: Sequence[Case]) -> Guesser | None:
        slot = cases[0].slot
        if isinstance(slot, ToleranceSlot) or (
            isinstance(slot, ExactSlot) and not isinstance(slot.value, str)
        ):
            return None
        by_place = isinstance(slot, FileSlot) or (
            isinstance(slot, ExactSlot) and _sets_differ(cases)
        )
        targets = [
            json.dumps(_place(case.slot) if by_place else _outcome(case.slot)) for case in cases
        ]
        names = sorted(set(targets))
        if len(names) < 2:
            return None
        from sklearn.linear_model import LogisticRegression

        matrix, mean, scale = _standardised(cases)
        found = LogisticRegression(C=strength, max_iter=300).fit(
            matrix, [names.index(target) for target in targets]
        )
        coefficients, intercepts = found.coef_, found.intercept_
        if len(names) == 2:
            coefficients, intercepts = (
                np.vstack([-coefficients, coefficients]) / 2,
                np.r_[-intercepts, intercepts] / 2,
            )
        weights = _folded(coefficients.T, intercepts, mean, scale)
        outcomes = tuple(json.loads(name) for name in names)
        return replace(best_constant(cases), by_place=by_place, outcomes=outcomes, weights=weights)

    return fit


def _regression(strength: float) -> Callable[[Sequence[Case]], Guesser | None]:
    def fit(cases: Sequence[Case]) -> Guesser | None:
        if not isinstance(cases[0].slot, ToleranceSlot):
            return None
        from sklearn.linear_model import Ridge

        values = np.array([case.slot.value for case in cases])  # type: ignore[union-attr]
        logarithm = bool((values > 0).all())
        targets = np.log(values) if logarithm else values
        matrix, mean, scale = _standardised(cases)
        found = Ridge(alpha=strength).fit(matrix, targets)
        weights = _folded(found.coef_[:, None], np.array([found.intercept_]), mean, scale)
        return Guesser(
            best_constant(cases).constant, weights=weights, logarithm=logarithm,
            low=float(targets.min()), high=float(targets.max()),
        )  # fmt: skip

    return fit


LINEAR: dict[str, Callable[[Sequence[Case]], Guesser | None]] = {
    **{f"classifier {strength:g}": _classifier(strength) for strength in (0.003, 0.03, 0.3)},
    **{f"regression {strength:g}": _regression(strength) for strength in (3.0, 30.0, 300.0)},
}


def _sets_differ(cases: Sequence[Case]) -> bool:
    return len({shown_choices(case.slot) for case in cases}) > 1


def _standardised(cases: Sequence[Case]) -> tuple[Floats, Floats, Floats]:
    matrix = np.array([case.features for case in cases])
    mean, scale = matrix.mean(0), matrix.std(0)
    scale[scale < 1e-6] = 1.0  # The same for all, but for rounding.
    return (matrix - mean) / scale, mean, scale


def _folded(
    coefficients: Floats, intercepts: Floats, mean: Floats, scale: Floats
) -> NDArray[np.float32]:
    """Weights over plain features, the constant term last."""
    plain = coefficients / scale[:, None]
    return np.vstack([plain, intercepts - mean @ plain]).astype(np.float32)


def fit_all(questions: Sequence[Question]) -> dict[str, Guesser]:
    """A guesser for every slot, and for slots of each type and unit that are not known by name."""
    cases = cases_of(questions)
    guessers = {}
    for number, (key, own) in enumerate(sorted(cases.items()), start=1):
        guessers[key] = fitted(own)
        _progress("slots", number, len(cases))
    wider: dict[str, list[Case]] = defaultdict(list)
    for own in cases.values():
        for case in own:
            slot = case.slot
            if isinstance(slot, ToleranceSlot | BooleanSlot):
                wider[kind_key(slot)].append(case)
            elif isinstance(slot, FileSlot) or shown_choices(slot):
                wider[f"|{slot.type}|"].append(case)
    for key, own in wider.items():
        numbers = isinstance(own[0].slot, ToleranceSlot | BooleanSlot)
        place = _most_frequent(_place(case.slot) for case in own)
        guessers[key] = best_constant(own) if numbers else Guesser(place, by_place=True)
    return guessers


def ship(guessers: dict[str, Guesser], questions: Sequence[Question], seeds: Sequence[str]) -> None:
    """Write the model into the package. What it knew of other slots of drawn scenes stays."""
    kinds = {file for kind in SCENE_KINDS.values() for file in kind.templates}
    names = {
        slot.name for file in kinds for template in load_templates(file) for slot in template.slots
    }
    before = {
        key: guesser
        for key, guesser in shipped_model().guessers.items()
        if key.split("|")[0] in names
    }
    guessers = before | guessers
    arrays: dict[str, NDArray[np.float32]] = {}
    entries: dict[str, dict[str, Any]] = {}
    for key, guesser in sorted(guessers.items()):
        entry: dict[str, Any] = {"constant": guesser.constant}
        if guesser.by_place:
            entry["by_place"] = True
        if guesser.weights is not None:
            entry["weights"] = f"w{len(arrays)}"
            arrays[entry["weights"]] = guesser.weights.astype(np.float32)
            if guesser.outcomes:
                entry["outcomes"] = list(guesser.outcomes)
            else:
                entry |= {"logarithm": guesser.logarithm, "low": guesser.low, "high": guesser.high}
        entries[key] = entry
    told = {"fitted_on": {"questions": len(questions), "seeds": list(seeds)}, "slots": entries}
    (DATA / "guess.json").write_text(
        json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8"
    )
    np.savez_compressed(DATA / "guess.npz", **arrays)
    ship_plans(questions)
    print(f"{len(entries)} slots, {len(arrays)} with a linear model")


def ship_plans(questions: Sequence[Question]) -> None:
    """Write the words of the templates, and the most common call at each step of an answer form, into the package."""
    plans: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    wordings: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(Path(templates.__file__).parent.glob("*.toml")):
        for language in ("en", "zh"):
            for template in load_templates(path.stem, language):
                figure = next((slot.label for slot in template.slots if slot.type == "plot"), "")
                key = form_key(template.slots)  # pyright: ignore[reportArgumentType]
                wordings[key][figure, language] += template.wordings
    charts: list[str] = [*json.loads((DATA / "guess_charts.json").read_text("utf-8"))]
    for key, entry in json.loads((DATA / "guess_plans.json").read_text("utf-8")).items():
        for n_files, calls in entry["plans"].items():
            plans[key][n_files].append(calls)
    for question in questions:
        n_files = str(len(question.files))
        plans[form_key(question.slots)][n_files].append(question.calls)
    lines: list[str] = []
    for key in sorted(plans.keys() & wordings.keys()):
        usual = {n: usual_calls(found) for n, found in sorted(plans[key].items())}
        asked: list[dict[str, Any]] = []
        for (figure, _), texts in wordings[key].items():
            label = re.compile(".+".join(map(re.escape, PLACEHOLDER.split(figure))))
            figures = [chart for chart in charts if label.fullmatch(chart)]
            asked.append({"figures": figures, "words": shares_of_words(texts)})
        entry = {"plans": usual, "questions": asked}
        lines.append(f"{json.dumps(key)}:{json.dumps(entry, ensure_ascii=False)}")
    (DATA / "guess_plans.json").write_text("{" + ",\n".join(lines) + "}\n", "utf-8")


def usual_calls(plans: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the most common call of the most common tool at each step."""
    steps = [[plan[at] for plan in plans if len(plan) > at] for at in range(max(map(len, plans)))]
    tools = [_most_frequent(call[0] for call in calls) for calls in steps]
    return [
        _most_frequent(c for c in calls if c[0] == tool)
        for calls, tool in zip(steps, tools, strict=True)
    ]


def shares_of_words(wordings: Sequence[str]) -> dict[str, float]:
    """Return the share of wordings in which each word occurs."""
    counts = Counter(
        word for wording in wordings for word in words_of(PLACEHOLDER.sub(" ", wording))
    )
    return {word: round(n / len(wordings), 2) for word, n in sorted(counts.items())}


def ship_charts(questions: Sequence[Question]) -> None:
    """Write the usual chart of each figure into the package, its values the best constants. Other figures stay."""
    charts: dict[str, list[PlotSpec]] = defaultdict(list)
    for question in questions:
        for slot in question.slots:
            if isinstance(slot, PlotSlot):
                charts[slot.label].append(PlotSpec.model_validate(slot.value))
    usual = {
        label: usual_chart(specs).model_dump(mode="json", exclude_none=True)
        for label, specs in charts.items()
    }
    every = json.loads((DATA / "guess_charts.json").read_text("utf-8")) | usual
    lines = (
        f"{json.dumps(label)}:{json.dumps(every[label], ensure_ascii=False)}"
        for label in sorted(every)
    )
    (DATA / "guess_charts.json").write_text("{" + ",\n".join(lines) + "}\n", "utf-8")
    print(f"{len(usual)} charts of {sum(map(len, charts.values()))}")


def usual_chart(specs: Sequence[PlotSpec]) -> PlotSpec:
    """All points that any of ``specs`` has, each with the best constant, where few have it that of the whole series."""
    series: list[PlotSeries] = []
    for name in dict.fromkeys(each.name for spec in specs for each in spec.series):
        values: dict[str | float, list[ToleranceSlot]] = defaultdict(list)
        for each in (each for spec in specs for each in spec.series if each.name == name):
            for x, y in zip(each.x, each.y, strict=True):
                reach = 0.05 * abs(y) if y else 0.01 * (max(each.y) - min(each.y))
                values[x].append(ToleranceSlot(name="y", label="y", value=y, abs_tol=reach))
        pooled = best_number([slot for slots in values.values() for slot in slots])
        y = [
            best_number(slots) if len(slots) >= FEWEST_POINTS else pooled
            for slots in values.values()
        ]
        series.append(
            PlotSeries(name=name, x=tuple(values), y=tuple(float(f"{value:.5g}") for value in y))
        )
    return specs[0].model_copy(update={"series": tuple(series)})


# -- Measuring ---------------------------------------------------------------------------------------------------------


def measure(
    fit_on: Sequence[Question], measured: Sequence[Question], boosting: bool
) -> dict[str, Any]:
    """Scores of constants, of the shipped kind of model and of boosting on ``measured``."""
    own, elsewhere = _constants_by_template(measured), _constants_by_template(fit_on)
    nothing = GuessModel({})

    def constant(of: dict[str, GuessModel]) -> Callable[[Question], dict[str, JsonValue]]:
        return lambda question: of.get(question.template, nothing).values(
            question.query, question.files, question.slots
        )

    policies = {"constant": constant(own), "constant fitted elsewhere": constant(elsewhere)}
    linear = GuessModel(fit_all(fit_on))
    policies["model"] = lambda question: linear.values(
        question.query, question.files, question.slots
    )
    if boosting:
        boosted = _boosted(fit_on)
        policies["boosting"] = boosted
    scores = {
        name: np.array([_score(question, policy(question)) for question in measured])
        for name, policy in policies.items()
    }
    templates = np.array([question.template for question in measured])
    clusters = np.array([question.cluster for question in measured])
    told: dict[str, Any] = {
        "questions": len(measured), "clusters": len(set(clusters.tolist())), "templates": len(set(templates.tolist())),
        **{name: float(values.mean()) for name, values in scores.items()},
    }  # fmt: skip
    for name in scores:
        if not name.startswith("constant"):
            for floor in ("constant", "constant fitted elsewhere"):
                told[f"{name} - {floor}, upper 95 %"] = _upper(
                    scores[name] - scores[floor], clusters
                )
    by_template: dict[str, dict[str, float]] = {}
    for template in np.unique(templates).tolist():
        own_rows = templates == template
        by_template[template] = {
            kind: float(values[own_rows].mean()) for kind, values in scores.items()
        }
        by_template[template]["n"] = float(own_rows.sum())
    return told | {"by_template": by_template}


def _constants_by_template(questions: Sequence[Question]) -> dict[str, GuessModel]:
    of_template: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        of_template[question.template].append(question)
    return {
        template: GuessModel({key: best_constant(cases) for key, cases in cases_of(own).items()})
        for template, own in of_template.items()
    }


def _boosted(questions: Sequence[Question]) -> Callable[[Question], dict[str, JsonValue]]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    found: dict[str, Callable[[Case], JsonValue]] = {}
    for key, cases in cases_of(questions).items():
        slot = cases[0].slot
        constant = best_constant(cases)
        model = GuessModel({key: constant})
        found[key] = lambda case, model=model: model.value_of(case.slot, case.features)
        if len(cases) < 2 * LEAST or isinstance(slot, OpenTextSlot):
            continue
        matrix = np.array([case.question.all_numbers for case in cases])
        if isinstance(slot, ToleranceSlot):
            values = np.array([case.slot.value for case in cases])  # type: ignore[union-attr]
            logarithm = bool((values > 0).all())
            numbers = HistGradientBoostingRegressor(
                loss="absolute_error", max_iter=80, min_samples_leaf=10
            )
            numbers.fit(matrix, np.log(values) if logarithm else values)
            found[key] = lambda case, numbers=numbers, logarithm=logarithm: _number(
                numbers, case, logarithm
            )
            continue
        by_place = isinstance(slot, FileSlot) or _sets_differ(cases)
        targets = [
            json.dumps(_place(case.slot) if by_place else _outcome(case.slot)) for case in cases
        ]
        if len(set(targets)) < 2:
            continue
        classes = HistGradientBoostingClassifier(max_iter=80, min_samples_leaf=10).fit(
            matrix, targets
        )
        found[key] = lambda case, classes=classes, by_place=by_place, key=key: GuessModel(
            {
                key: Guesser(
                    json.loads(classes.predict(case.question.all_numbers[None])[0]),
                    by_place=by_place,
                )
            }
        ).value_of(case.slot, case.features)

    def values(question: Question) -> dict[str, JsonValue]:
        features = question.features
        known = [slot for slot in question.slots if slot_key(slot) in found]
        return {slot.name: found[slot_key(slot)](Case(question, slot, features)) for slot in known}

    return values


def _number(model: Any, case: Case, logarithm: bool) -> float:
    found = float(model.predict(case.question.all_numbers[None])[0])
    return float(np.exp(found)) if logarithm else found


def _score(question: Question, values: dict[str, JsonValue]) -> float:
    """The score of the sample, figures with 0: no words draw them."""
    spoken = [slot for slot in question.slots if not isinstance(slot, PlotSlot)]
    earned = sum(slot.weight * hit(slot, values.get(slot.name)) for slot in spoken)
    return earned / sum(slot.weight for slot in question.slots)


def _upper(differences: Floats, clusters: NDArray[np.str_], draws: int = 2_000) -> float:
    """Upper 95 % bound of the mean difference, one-sided, by a bootstrap of clusters."""
    rng = np.random.default_rng(7)
    _, codes = np.unique(clusters, return_inverse=True)
    sums, sizes = np.bincount(codes, weights=differences), np.bincount(codes)
    picks = rng.integers(0, len(sums), (draws, len(sums)))
    return float(np.quantile(sums[picks].sum(1) / sizes[picks].sum(1), 0.95))


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    questions = commands.add_parser("questions")
    questions.add_argument("--seeds", required=True)
    questions.add_argument("--out", type=Path, required=True)
    questions.add_argument(
        "--field", type=Path, required=True, help="folder of the data sets of the field benchmark"
    )
    packed = commands.add_parser("packed")
    packed.add_argument("work", type=Path)
    packed.add_argument("--seeds", required=True)
    packed.add_argument("--choices", type=int, default=8)
    packed.add_argument("--names", default="embedded,frontier")
    packed.add_argument("--out", type=Path, required=True)
    fit = commands.add_parser("fit")
    fit.add_argument("files", type=Path, nargs="+")
    charts = commands.add_parser("charts")
    charts.add_argument("files", type=Path, nargs="+")
    measured = commands.add_parser("measure")
    measured.add_argument("--fitted", required=True)
    measured.add_argument("--boosting", action="store_true")
    measured.add_argument("--json", type=Path)
    measured.add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "questions":
        write_field_questions(
            given.field, [int(seed) for seed in given.seeds.split(",")], given.out
        )
    elif given.command == "packed":
        seeds = [int(seed) for seed in given.seeds.split(",")]
        write_packed_questions(given.work, seeds, given.choices, given.out, given.names.split(","))
    elif given.command == "fit":
        asked = read_questions(given.files)
        ship(fit_all(asked), asked, [path.stem for path in given.files])
    elif given.command == "charts":
        ship_charts(read_questions(given.files))
    else:
        found = measure(
            read_questions(map(Path, given.fitted.split(","))),
            read_questions(given.files),
            given.boosting,
        )
        if given.json:
            given.json.write_text(json.dumps(found, indent=1), "utf-8")
        worst = sorted(found.pop("by_template").items(), key=lambda item: -item[1]["constant"])
        print(json.dumps(found, indent=1))
        for template, told in worst[:40]:
            figures = (f"{kind} {100 * value:5.1f}" for kind, value in told.items() if kind != "n")
            print(f"{template:32s} n {told['n']:4.0f}", *figures)


if __name__ == "__main__":
    main()
