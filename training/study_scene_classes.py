"""Decide from fresh scenes which classes of questions belong to ``embedded`` and ``frontier``.

Makes src/agrotools_build/sources/drawn/membership.toml; tables of docs/scenes.md.

    python training/study_scene_classes.py ask --seeds A --scenes 12 --out DIR   # draw, ask, run the tools, score
    python training/study_scene_classes.py decide --seeds A --out DIR            # write membership.toml
    python training/study_scene_classes.py decide --seeds A --out DIR --kinds pots   # decide on these kinds anew
    python training/study_scene_classes.py ask --seeds B --kept --scenes 4 --out DIR
    python training/study_scene_classes.py check --seeds B --out DIR             # rates of the kept classes
    python training/study_scene_classes.py tables --seeds A --out DIR            # tables of docs/scenes.md

``ask`` draws ``--scenes`` scenes of each kind at each difficulty (seeds A: 30,000,000 and up; B: 60,000,000; C:
90,000,000), asks each template once about each kind of things, runs the measuring calls with the real tools and scores
the answer of the oracle. The results of a scene are a line of DIR/SEEDS.jsonl; scenes in that file are not drawn again,
so the command resumes, and a larger ``--scenes`` adds to it.
With ``--kept``, only classes of ``embedded`` are asked, and only kinds and difficulties that still lack scenes for
some of them are drawn.

A class is a template about things of one kind and variant at one difficulty. Its rate is the mean score of the oracle,
drawn towards the median of all templates about such things at this difficulty with the weight of :data:`WEIGHT` scenes,
and that towards the median of all difficulties with :data:`WEIGHT_OF_ALL`; charts, whose points must be right within
5 %, apart from the rest. ``decide`` applies this rule, which was fixed before seeds B were drawn: **embedded** from
:data:`KEPT_FROM` on with at least :data:`FEWEST` questions; **frontier** up to :data:`FAILED_TO`; **dropped**
otherwise. Templates whose label is nearly always the same are dropped, too.
"""

import argparse
import asyncio
import shutil
import sys
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, cast

import orjson
from pydantic import JsonValue

import agrotools_build.sources.drawn
from agrotools.agents.baselines.simple import derived_values, live_arguments
from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    PlotSlot,
    PlotSpec,
    ReferenceStep,
    Slot,
    ToleranceSlot,
    ToolCall,
    ToolError,
    UnresolvedRef,
    counts_in_headline,
)
from agrotools.core.record import iter_refs, literal_value
from agrotools.scoring.plots import score_plot
from agrotools.scoring.slots import score_slot
from agrotools.scoring.statistics import estimate_mean
from agrotools.text.answer_form import format_answer
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools_build.building import with_plot_weights
from agrotools_build.choosing import Chosen, ask_subject
from agrotools_build.references import ChainBroken, PlannedCall, check_observed
from agrotools_build.scenes.processes import Order
from agrotools_build.scenes.scene import Difficulty
from agrotools_build.sources.drawn import DrawnScene
from agrotools_build.sources.drawn.drawing import SCENE_KINDS, draw_all
from agrotools_build.sources.part import Originals
from agrotools_build.templates import load_templates
from agrotools_build.templates.template import exact_result
from agrotools_tools import AGROTOOLS

WEIGHT, WEIGHT_OF_ALL = 3.0, 1.0
KEPT_FROM, FAILED_TO = 0.96, 0.75
FEWEST = 4
MOST_ALIKE = 0.8
"""Largest share of the questions of a template that may have the same label as the answer."""
SEEDS = {"A": 30_000_000, "B": 60_000_000, "C": 90_000_000}
_DIFFICULTIES: tuple[Difficulty, ...] = (0, 1, 2, 3)
_MOST_SCENES = 250
"""Maximum number of scenes of a kind and difficulty; the seeds of the next difficulty begin there."""
_CHUNK = 40
_MOST_DRAWN = 10
"""Scenes drawn at most, as a multiple of those wanted, if only the kept classes are asked."""
_EXACT = ("calculate", "plot", "lookup_agronomy")

Line = dict[str, Any]
Group = tuple[str, str, str, bool]
"""Kind of scene, kind of things, variant, and True for charts."""
ClassKey = tuple[str, str, str, str, int]
"""Kind of scene, kind of things, template, variant, difficulty."""
MEMBERSHIP = Path(agrotools_build.sources.drawn.__path__[0]) / "membership.toml"


# -- Scenes and questions ----------------------------------------------------------------------------------------------


def orders_of(seeds: str, scenes: int, kinds: Iterable[str]) -> list[Order]:
    """Return the scenes to draw. The seeds of a kind and difficulty are consecutive, so that modes take turns."""
    return [
        Order(
            name,
            SEEDS[seeds] + 1_000 * SCENE_KINDS[name].number + _MOST_SCENES * difficulty + number,
            difficulty,
        )
        for number in range(scenes)
        for name in kinds
        for difficulty in _DIFFICULTIES
    ]


def ask_scenes(seeds: str, scenes: int, kinds: Sequence[str], out: Path) -> None:
    """Ask about the scenes that are not in ``out/SEEDS.jsonl`` yet, and add their lines."""
    finished = {
        (line["kind"], line["seed"], line["difficulty"])
        for line in read_lines(out / f"{seeds}.jsonl")
    }
    orders = orders_of(seeds, scenes, kinds)
    missing = [
        order for order in orders if (order.name, order.seed, order.difficulty) not in finished
    ]
    for start in range(0, len(missing), _CHUNK):
        _add_lines(out, seeds, missing[start : start + _CHUNK])
        finished_now = len(orders) - len(missing) + start + _CHUNK
        print(f"{min(finished_now, len(orders))}/{len(orders)} scenes", file=sys.stderr, flush=True)


def ask_kept(seeds: str, scenes: int, kinds: Sequence[str], out: Path) -> None:
    """Ask the kept classes until there are ``scenes`` scenes for all things that they are about, as far as possible."""
    kept = {key for key, decision in memberships().items() if decision == "embedded"}
    things = {
        (kind, difficulty, of, variant)
        for kind, of, _, variant, difficulty in kept
        if kind in kinds
    }
    for number in range(_MOST_DRAWN * scenes):
        lines = read_lines(out / f"{seeds}.jsonl")
        counts = Counter(
            each
            for line in lines
            for each in {
                (line["kind"], line["difficulty"], one["of"], one["variant"])
                for one in line["questions"]
            }
        )
        lacking = {
            (kind, difficulty)
            for kind, difficulty, *of in things
            if counts[kind, difficulty, *of] < scenes
        }
        finished = {(line["kind"], line["seed"]) for line in lines}
        orders = [
            order
            for order in orders_of(seeds, number + 1, kinds)[-len(kinds) * len(_DIFFICULTIES) :]
            if (order.name, order.difficulty) in lacking
            and (order.name, order.seed) not in finished
        ]
        if orders:
            _add_lines(out, seeds, orders, kept)
            print(
                f"round {number + 1}: {len(lacking)} kinds and difficulties go on",
                file=sys.stderr,
                flush=True,
            )


def _add_lines(
    out: Path, seeds: str, orders: Sequence[Order], kept: Collection[ClassKey] | None = None
) -> None:
    folder = out / f"scenes-{seeds}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = asyncio.run(_asked(draw_all(orders, folder, lambda *_: None), folder, kept))
    with (out / f"{seeds}.jsonl").open("ab") as file:
        file.writelines(orjson.dumps(line) + b"\n" for line in lines)
    shutil.rmtree(folder)


def read_lines(path: Path) -> list[Line]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []


async def _asked(
    scenes: Sequence[DrawnScene], folder: Path, kept: Collection[ClassKey] | None
) -> list[Line]:
    backends = {
        tool: kind for scene in SCENE_KINDS.values() for tool, kind in scene.backends.items()
    }
    cache = ResultCache(folder / "cache")
    async with ToolExecutor(workers=2, timeout_s=300, cache=cache, backends=backends) as executor:
        return [await _asked_scene(scene, executor, kept) for scene in scenes]


async def _asked_scene(
    scene: DrawnScene, executor: ToolExecutor, kept: Collection[ClassKey] | None
) -> Line:
    kind, originals = SCENE_KINDS[scene.name], Originals(scene.folder)
    templates = [template for file in kind.templates for template in load_templates(file)]
    chosen = [
        item
        for subject in kind.subjects(scene, originals)
        for template in templates
        if (item := ask_subject(subject, template, scene.seed)) is not None
    ]
    one_each: dict[ClassKey, Chosen] = {}
    for item in reversed(chosen):
        variant = str(item.subject.metadata.get("variant", ""))
        key = (scene.name, item.subject.of, item.question.template, variant, scene.difficulty)
        if kept is None or key in kept:
            one_each[key] = item
    asked = await asyncio.gather(
        *(_scored(item, originals, scene, executor) for item in one_each.values())
    )
    return {
        "kind": scene.name,
        "seed": scene.seed,
        "difficulty": scene.difficulty,
        "questions": asked,
    }


# -- The oracle --------------------------------------------------------------------------------------------------------


async def _scored(
    item: Chosen, originals: Originals, scene: DrawnScene, executor: ToolExecutor
) -> Line:
    """Return the facts of a question and the score of the oracle's answer; None for the score if the chain breaks."""
    instance, question = item.instance, item.question
    line: Line = {
        "of": item.subject.of,
        "template": question.template,
        "task": question.task_type,
        "variant": item.subject.metadata.get("variant", ""),
        "answer": instance.answer_type,
        "calls": len(instance.calls),
        "files": [file.kind for file in instance.files],
    }
    results: list[dict[str, JsonValue] | None] = []
    files = tuple(
        f.model_copy(update={"path": str(originals.files[f.path])}) for f in instance.files
    )
    scratch = scene.folder / f"out-{zlib.crc32(repr((line, item.subject.name)).encode())}"
    workspace = Workspace(files, scratch, scene.folder)
    try:
        for index, call in enumerate(instance.calls):
            results.append(await _result(index, call, results, workspace, executor, line))
    except ChainBroken as broken:
        return {**line, "score": None, "error": broken.reason}
    slots = with_plot_weights(instance.slots)
    answer = format_answer(slots, derived_values(slots, results))
    specs = [result["spec"] for result in results if result and "spec" in result]
    scores: dict[str, float] = {}
    off: dict[str, float] = {}
    for slot in slots:
        if isinstance(slot, PlotSlot):
            chart = PlotSpec.model_validate(specs[-1]) if specs else None
            scores[slot.name] = score_plot(PlotSpec.model_validate(slot.value), chart)[0]
        else:
            scores[slot.name] = score_slot(slot, slots, answer).value
        if isinstance(slot, ToleranceSlot) and slot.from_:
            with suppress(ExpressionError, UnresolvedRef, TypeError, ValueError):
                off[slot.name] = round(
                    (cast(float, evaluate_from(slot.from_, results)) - slot.value) / slot.margin, 3
                )
    counted = [slot for slot in slots if counts_in_headline(slot)]
    score = sum(slot.weight * scores[slot.name] for slot in counted) / sum(
        slot.weight for slot in counted
    )
    return {**line, "score": round(score, 4), "slots": scores, "off": off, "value": _shown(slots)}


def _shown(slots: Sequence[Slot]) -> JsonValue:
    """Return the gold of the first slot that is no figure, as far as it fits on a line."""
    first = next((slot for slot in slots if slot.type not in ("plot", "open_text")), None)
    return cast(JsonValue, getattr(first, "value", None))


async def _result(
    index: int,
    call: PlannedCall,
    results: Sequence[dict[str, JsonValue] | None],
    workspace: Workspace,
    executor: ToolExecutor,
    line: Line,
) -> dict[str, JsonValue] | None:
    """Return the result of a call with live values; None if it fails or an earlier one left out what it needs."""
    arguments = live_arguments(ReferenceStep(tool=call.tool, arguments=call.arguments), results)
    if arguments is None:
        return None
    if call.tool in _EXACT:
        try:
            return exact_result(
                call.tool, cast("Mapping[str, Any]", literal_value(cast(JsonValue, arguments)))
            )
        except (
            ExpressionError,
            ToolError,
            ValueError,
        ):  # as division by zero, if nothing was found
            return None
    outcome = await executor.run(
        ToolCall(tool=call.tool, arguments=arguments), workspace, AGROTOOLS
    )
    error = outcome.observation.error
    check_observed(
        index, call.tool, error, follows=any(True for _ in iter_refs(dict(call.arguments)))
    )
    if error is not None:
        line.setdefault("error", f"{call.tool}: {error.kind}")
    return outcome.observation.result


# -- Decisions ---------------------------------------------------------------------------------------------------------


def asked_by_class(lines: Iterable[Line]) -> dict[ClassKey, list[Line]]:
    """Return the questions of each class that have a score, each with its scene."""
    classes: dict[ClassKey, list[Line]] = defaultdict(list)
    for line in lines:
        scene = f"{line['kind']}-{line['difficulty']}-{line['seed']}"
        for question in line["questions"]:
            if question["score"] is not None:
                key = (
                    line["kind"],
                    question["of"],
                    question["template"],
                    question["variant"],
                    line["difficulty"],
                )
                classes[key].append({**question, "scene": scene})
    return dict(sorted(classes.items()))


def _mean(questions: Sequence[Line]) -> float:
    return sum(question["score"] for question in questions) / len(questions)


def group_of(key: ClassKey, questions: Sequence[Line]) -> Group:
    """Return the group towards whose mean the rate of a class is drawn."""
    kind, of, _, variant, _ = key
    return kind, of, variant, questions[0]["answer"] == "plot"


def shrunk_rates(classes: Mapping[ClassKey, Sequence[Line]]) -> dict[ClassKey, float]:
    """Return the rate of each class, drawn towards that of its things as the module docstring says."""
    things: dict[Group, list[ClassKey]] = defaultdict(list)
    at_difficulty: dict[tuple[Group, int], list[ClassKey]] = defaultdict(list)
    for key, questions in classes.items():
        things[group_of(key, questions)].append(key)
        at_difficulty[group_of(key, questions), key[4]].append(key)

    def middle(keys: Sequence[ClassKey]) -> float:
        return median(_mean(classes[key]) for key in keys)

    rates: dict[ClassKey, float] = {}
    for key, questions in classes.items():
        group = group_of(key, questions)
        peers = at_difficulty[group, key[4]]
        scenes = len({question["scene"] for peer in peers for question in classes[peer]})
        prior = (scenes * middle(peers) + WEIGHT_OF_ALL * middle(things[group])) / (
            scenes + WEIGHT_OF_ALL
        )
        rates[key] = (len(questions) * _mean(questions) + WEIGHT * prior) / (
            len(questions) + WEIGHT
        )
    return rates


def decide(out: Path, seeds: str, kinds: Collection[str]) -> None:
    """Write :data:`MEMBERSHIP` from the questions about these seeds (``A`` or ``AB``); other kinds keep their rows."""
    lines = (line for each in seeds for line in read_lines(out / f"{each}.jsonl"))
    classes = asked_by_class(line for line in lines if line["kind"] in kinds)
    rates = shrunk_rates(classes)
    alike = _alike(classes, [key for key, rate in rates.items() if rate >= KEPT_FROM])
    kept = tomllib.loads(MEMBERSHIP.read_text("utf-8"))["classes"]
    rows: list[list[Any]] = [row for row in kept if row[0] not in kinds]
    for key, questions in classes.items():
        n, rate = len(questions), rates[key]
        if rate >= KEPT_FROM and key[:4] in alike:
            decision, reason = "dropped", "nearly always the same label"
        elif rate >= KEPT_FROM and n < FEWEST:
            decision, reason = "dropped", "asked too rarely"
        elif rate >= KEPT_FROM:
            decision, reason = "embedded", ""
        elif rate <= FAILED_TO:
            decision, reason = "frontier", "the tools fail"
        else:
            decision, reason = "dropped", "the tools fail at times"
        rows.append([*key, n, round(_mean(questions), 3), decision, reason])
    text = "\n".join(
        [
            "# Classes of questions about drawn scenes; training/study_scene_classes.py states the rule.",
            "# Kind, things, template, variant, difficulty, questions, oracle, decision, reason.",
            "classes = [",
            *(f"    {orjson.dumps(row).decode().replace(',', ', ')}," for row in sorted(rows)),
            "]",
        ]
    )
    MEMBERSHIP.write_text(f"{text}\n", "utf-8")
    print(Counter(row[7] for row in rows))


def _alike(
    classes: Mapping[ClassKey, Sequence[Line]], kept: Iterable[ClassKey]
) -> set[tuple[str, str, str, str]]:
    """Return the templates (with their things and variant) whose label hardly varies over the kept classes."""
    labels: dict[tuple[str, str, str, str], Counter[str]] = defaultdict(Counter)
    for key in kept:
        labels[key[:4]].update(
            str(question["value"])
            for question in classes[key]
            if question["answer"] == "exact" and isinstance(question["value"], str | bool)
        )
    return {
        template
        for template, counts in labels.items()
        if counts.total() >= 5 and max(counts.values()) > MOST_ALIKE * counts.total()
    }


def memberships() -> dict[ClassKey, str]:
    """Return the decision on each class."""
    rows = tomllib.loads(MEMBERSHIP.read_text("utf-8"))["classes"]
    return {
        (kind, of, template, variant, difficulty): row[2]
        for kind, of, template, variant, difficulty, *row in rows
    }


# -- Check on seeds B, and tables --------------------------------------------------------------------------------------


def check(out: Path, seeds: str) -> None:
    """Print the oracle's score on the classes of ``embedded`` and ``frontier``, in total and by task type."""
    members = memberships()
    classes = asked_by_class(read_lines(out / f"{seeds}.jsonl"))
    print(
        "| benchmark | task type | questions | scenes | oracle | 95 % interval |\n|---|---|---:|---:|---:|---|"
    )
    for benchmark in ("embedded", "frontier"):
        questions = [
            one for key, each in classes.items() if members.get(key) == benchmark for one in each
        ]
        by_task = {
            task: [q for q in questions if q["task"] == task]
            for task in sorted({q["task"] for q in questions})
        }
        for task, each in {"all": questions, **by_task}.items():
            if not each:
                continue
            mean = estimate_mean(
                [question["score"] for question in each], [question["scene"] for question in each]
            )
            span = (
                f"{100 * mean.interval.lower:.1f} to {100 * mean.interval.upper:.1f}"
                if mean.interval
                else "-"
            )
            print(
                f"| {benchmark} | {task} | {mean.n} | {mean.n_clusters} | {100 * mean.value:.1f} | {span} |"
            )
    failed = [
        (key, len(each), _mean(each))
        for key, each in classes.items()
        if members.get(key) == "embedded" and _mean(each) < KEPT_FROM
    ]
    print(f"\n{len(failed)} classes of embedded below {KEPT_FROM:.0%} on seeds {seeds}:")
    for key, n, rate in failed:
        print(f"  {' '.join(map(str, key))}: {rate:.2f} of {n}")


def tables(out: Path, seeds: str) -> None:
    """Print what was drawn, kept and dropped by task type, and what a better tool would win."""
    members = memberships()
    lines = [line for each in seeds for line in read_lines(out / f"{each}.jsonl")]
    classes = asked_by_class(lines)
    everything = sum(len(questions) for questions in classes.values())
    tasks = sorted({question["task"] for questions in classes.values() for question in questions})
    print(f"{len(lines)} scenes, {everything} questions, {len(classes)} classes\n")
    print("| task type | classes | embedded | frontier | fail at times | too rare or alike |")
    print("|---|---:|---:|---:|---:|---:|")
    reasons = {
        tuple(row[:5]): row[8] for row in tomllib.loads(MEMBERSHIP.read_text("utf-8"))["classes"]
    }
    for task in tasks:
        of_task = [key for key, questions in classes.items() if questions[0]["task"] == task]
        counts = Counter(members[key] for key in of_task)
        at_times = sum(reasons[key] == "the tools fail at times" for key in of_task)
        rest = counts["dropped"] - at_times
        print(
            f"| {task} | {len(of_task)} | {counts['embedded']} | {counts['frontier']} | {at_times} | {rest} |"
        )
    print(
        "\n| tool | task type | classes in frontier | questions | oracle | points won by a perfect tool |"
    )
    print("|---|---|---:|---:|---:|---:|")
    failed: dict[tuple[str, str], list[Line]] = defaultdict(list)
    classes_failed: Counter[tuple[str, str]] = Counter()
    for key, questions in classes.items():
        if members[key] == "frontier":
            failed[_TOOLS[key[0]], questions[0]["task"]] += questions
            classes_failed[_TOOLS[key[0]], questions[0]["task"]] += 1
    won = {
        group: 100 * (1 - _mean(questions)) * len(questions) / everything
        for group, questions in failed.items()
    }
    for tool, task in sorted(won, key=lambda group: -won[group]):
        questions, count, points = failed[tool, task], classes_failed[tool, task], won[tool, task]
        print(
            f"| `{tool}` | {task} | {count} | {len(questions)} | {100 * _mean(questions):.0f} | {points:.1f} |"
        )


_TOOLS = {
    "blocks": "count_objects",
    "tracts": "estimate_canopy_height",
    "farmland_aerial": "detect_change",
    "farmland_satellite": "detect_change",
    "pond_pairs": "detect_change",
    "apples": "measure_fruit_size",
    "fruit_counts": "count_objects",
    "leaf_lesions": "analyze_lesions",
    "pots": "measure_weed_phenotype",
    "rows": "measure_crop_weed_area",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("ask", "decide", "check", "tables"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--seeds", default="A", help="A, B or C; for decide and tables also several, as AB"
    )
    parser.add_argument("--scenes", type=int, default=12)
    parser.add_argument("--kept", action="store_true", help="ask only the classes of embedded")
    parser.add_argument("--kinds", default=",".join(SCENE_KINDS))
    arguments = parser.parse_args()
    if arguments.command == "ask":
        ask = ask_kept if arguments.kept else ask_scenes
        ask(arguments.seeds, arguments.scenes, arguments.kinds.split(","), arguments.out)
    elif arguments.command == "decide":
        decide(arguments.out, arguments.seeds, arguments.kinds.split(","))
    elif arguments.command == "check":
        check(arguments.out, arguments.seeds)
    else:
        tables(arguments.out, arguments.seeds)


if __name__ == "__main__":
    main()
