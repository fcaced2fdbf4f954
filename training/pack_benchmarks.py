"""Draw scenes, choose questions, run the reference calls, and write the packs of ``embedded`` and ``frontier``.

Makes embedded.jsonl.xz and frontier.jsonl.xz in src/agrotools_benchmarks/data.

    python training/pack_benchmarks.py WORK [--names embedded frontier] [--workers 2] [--out DIR]

``membership.toml`` says which classes of questions (kind of scene, subject, template, variant, difficulty) belong to
which benchmark. Each scene is asked one question; which one is decided for all scenes together, before any tool runs,
so that answers cannot be guessed from other ones and all shares are near those wanted. Scenes that are drawn and calls
that have run are kept in WORK, so the command resumes. Run it again when a drawing, a template, a tool or the
membership changes, and raise its version in ``VERSIONS``. Where only results of tools changed, and the oracle scores as
before, ``record_again.py`` keeps the questions. ``--out`` writes to another folder than that of the shipped packs.
"""

import argparse
import os
import shutil
import sys
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from agrotools_build.templates.slot_draft import PLOT_MARGIN

SHIPPED = Path(__file__).parent.parent / "src" / "agrotools_benchmarks" / "data"
VERSIONS = {"embedded": "21", "frontier": "17"}
SEED = 20281120
SIZES = {"embedded": 434, "frontier": 120}
DRAWN = {"embedded": 56, "frontier": 20}
TIMES = {
    "rows": 1.2, "pots": 2.4, "blocks": 2.4, "apples": 1.4, "fruit_counts": 1.6, "leaf_lesions": 1.6
}  # fmt: skip
"""Scenes of each kind that are drawn to choose from, and the kinds of which more are drawn.

What must be done with a pot, a block, fruit or a leaf stands in its picture, not in the question: some have a mark and
some have none.
"""
MORE = {"embedded": {("rows", 1): 50}, "frontier": {}}
"""Scenes of a kind and difficulty that are drawn at least, so that answers to the only questions of a task differ."""
TWINS = 0.17
"""Share of unanswerable questions in ``embedded``; some are dropped when their calls run."""
LISTED = 0.1
"""Largest share of these that the list of files tells apart; others need a look at a picture or a call."""
QUICK = 60
ANSWERS = {"tolerance": 0.43, "exact": 0.22, "plot": 0.22, "open_text": 0.13}
CALLS = {1: 0.05, 2: 0.25, 3: 0.3, 4: 0.18, 5: 0.1, 6: 0.07, 7: 0.03, 8: 0.02}
"""Wanted shares of answer types and of numbers of calls.

After a measurement, a usual plan can know the next call less often the more kinds of steps follow it, since a mark may
have to be found first. So few questions end with one measurement, and most go on with one or two other steps. Questions
with many measurements, in which the same call is usual again and again, are few.
"""
MOST_OF_TEMPLATE = 24
"""Uses of a template in a benchmark, at most one a wording, so that no two questions share a sentence."""
MANY_OF_TEMPLATE, FEWEST_OF_TASK, MANY_OF_TASK, FEWEST_OF_REASON, MANY_OF_ENTRY = 16, 18, 50, 20, 2
MOST_GUESSED = 0.5
"""Largest score of the best constant answer to a template, over all scenes drawn."""
COPIED, SHARES, ROUNDS = 10.0, 3.0, 200_000
"""Weights of copied answers and of wanted shares in the cost of a choice, and steps of its improvement."""
ADVICE = 0.3
"""Usual score of advice that was given to another question."""
PLANNED, MOST_PLANNED = 6.0, 0.5
"""Weight of calls that the usual plan guesses in the cost of a choice, and the share of them that costs nothing.

The usual plan is that of an answer form with its number of files, and that of a template.
"""
Features = tuple[str, str, str, int, str, str]
"""Template, task type, answer type, number of calls, reason of an unanswerable twin, entry of the knowledge base.

The last two are empty if there is none.
"""


class Plan(NamedTuple):
    """What the prompt of a question shows, and the tools of its calls in order.

    ``prompt``: answer form and number of files; ``words``: the template, whose words anyone may know.
    """

    prompt: tuple[str, int]
    words: str
    tools: tuple[str, ...]

    @property
    def told(self) -> tuple[tuple[str, int] | str, ...]:
        """What a plan may be guessed from."""
        return self.prompt, self.words


_DESCRIPTIONS = {
    "embedded": "Questions on drawn scenes that the tools of the package can answer. No photographs.",
    "frontier": "Questions on drawn scenes that the tools of the package get wrong: what a better tool would win. "
    "No photographs.",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--names", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="choose the questions only")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder of the packs")
    arguments = parser.parse_args()
    work = cast(Path, arguments.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AGROTOOLS_CACHE", str(work / "cache"))

    from agrotools.runner.progress import stage_progress
    from agrotools_build.sources.part import Originals

    progress = stage_progress(sys.stderr)
    originals = Originals(work)
    for name in arguments.names:
        chosen = choose(name, offered_questions(name, work, originals, progress, arguments.workers))
        if not arguments.dry:
            pack = cast(Path, arguments.out) / f"{name}.jsonl.xz"
            write(name, chosen, originals, work / name, pack, arguments.workers, progress)


# -- Choice ------------------------------------------------------------------------------------------------------------


def offered_questions(
    name: str, work: Path, originals: Any, progress: Any, workers: int = 2, seed: int = SEED
) -> list[tuple[Any, Any]]:
    """Draw scenes into ``work`` and return all questions, each with its scene, that a benchmark may ask about them."""
    from agrotools_build.sources.drawn.drawing import SCENE_KINDS, draw_all

    offers = _Offers(name, originals, seed)
    wanted = {kind: round(DRAWN[name] * TIMES.get(kind, 1)) for kind in SCENE_KINDS}
    orders = [
        order for kind in SCENE_KINDS for order in islice(offers.orders_of(kind), wanted[kind])
    ]
    for (kind, difficulty), number in MORE[name].items():
        orders += islice(
            (order for order in offers.orders_of(kind) if order.difficulty == difficulty), number
        )
    orders = [*dict.fromkeys(orders)]
    scenes = draw_all(orders, work / "scenes", progress, workers)
    return [(scene, item) for scene in scenes for item in offers.asked(scene)]


class _Offers:
    """Scenes and questions of a benchmark, as its classes say. ``frontier`` has scenes of its own."""

    def __init__(self, name: str, originals: Any, seed: int) -> None:
        self._originals, self._seed, self._first = (
            originals,
            seed,
            seed + (500 if name == "frontier" else 0),
        )
        table = (
            files("agrotools_build.sources.drawn").joinpath("membership.toml").read_text("utf-8")
        )
        self._classes = {
            tuple(row[:5]) for row in tomllib.loads(table)["classes"] if row[7] == name
        }

    def orders_of(self, kind: str) -> Iterator[Any]:
        """Yield the scenes of a kind that may have such questions."""
        from agrotools_build.scenes.processes import Order
        from agrotools_build.sources.drawn.drawing import SCENE_KINDS

        first = self._first + 1_000 * SCENE_KINDS[kind].number
        orders = (Order(kind, first + number, number % 4) for number in range(500))  # pyright: ignore[reportArgumentType]
        return filter(self._suits, orders)

    def _suits(self, order: Any) -> bool:
        """Return True if the scene may have such questions, as far as its seed tells."""
        known = variant_of(order)
        return any(
            (key[0], key[4]) == (order.name, order.difficulty) and known in (None, key[3])
            for key in self._classes
        )

    def asked(self, scene: Any) -> Iterator[Any]:
        """Yield the questions that can be asked of a scene."""
        from agrotools_build.choosing import ask_subject
        from agrotools_build.sources.drawn.drawing import SCENE_KINDS, subjects_of
        from agrotools_build.templates import load_templates

        kind = SCENE_KINDS[scene.name]
        for subject in subjects_of(scene, self._originals):
            for template in (
                template for file in kind.templates for template in load_templates(file)
            ):
                key = (
                    scene.name,
                    subject.of,
                    template.template,
                    subject.metadata.get("variant", ""),
                    scene.difficulty,
                )
                if (
                    key not in self._classes
                    or (item := ask_subject(subject, template, self._seed)) is None
                ):
                    continue
                if 1 <= len(item.instance.calls) <= max(CALLS):
                    yield item


def choose(
    name: str, offered: Sequence[tuple[Any, Any]], seed: int = SEED
) -> list[tuple[Any, Any]]:
    """Choose the questions of a benchmark from those offered, at most one a scene, by simulated annealing.

    The cost grows with the score of answers that fit two questions of the same template, so that no value suits many
    of them and its options are right equally often, with that of the answer that is usual in all scenes, and with the
    distance from the wanted shares. No tool has run yet. Templates that mostly have the usual answer are left out.
    """
    from agrotools_build.choosing import worded
    from agrotools_build.templates.wording import sentences

    rng = np.random.default_rng(seed)
    places: dict[str, list[int]] = defaultdict(list)
    for number, (_, item) in enumerate(offered):
        places[item.question.template].append(number)
    items = {
        template: [offered[each][1] for each in members] for template, members in places.items()
    }
    usual = {
        template: _usual_answer(_copied(each, shared=False)) for template, each in items.items()
    }
    guessed = {
        template
        for template, scores in usual.items()
        if items[template][0].instance.answer_type != "plot"
        and scores.sum() / (len(scores) + 2) > MOST_GUESSED
    }
    copied = {template: _copied(each, shared=True) for template, each in items.items()}
    of_scene: dict[str, list[int]] = defaultdict(list)
    for number, (scene, item) in enumerate(offered):
        if item.question.template not in guessed:
            of_scene[str(scene.folder)].append(number)
    print(f"left out because they can be guessed: {', '.join(sorted(guessed))}")
    row = {number: place for members in places.values() for place, number in enumerate(members)}
    cost = _Cost(
        [_features(item) for _, item in offered],
        [plan_of(item) for _, item in offered],
        row,
        copied,
        usual,
        {template: len(each[0].question.wordings) for template, each in items.items()},
        SIZES[name],
    )
    scenes, current = list(of_scene), dict.fromkeys(of_scene, -1)
    for step in range(ROUNDS):
        heat = 2.0 * (1 - step / ROUNDS) ** 2 + 1e-3
        scene = scenes[int(rng.integers(len(scenes)))]
        place = int(rng.integers(len(of_scene[scene]) + 1)) - 1
        new = of_scene[scene][place] if place >= 0 else -1
        if new != current[scene]:
            worse = cost.swap(current[scene], new)
            if worse <= 0 or rng.random() < np.exp(-worse / heat):
                current[scene] = new
            else:
                cost.swap(new, current[scene])
    used: set[str] = set()
    chosen: list[tuple[Any, Any]] = []
    before: dict[str, list[Any]] = defaultdict(list)
    for scene, item in (offered[number] for number in current.values() if number >= 0):
        if (asked := worded(item, before[item.question.template], used)) is not None:
            used.update(sentences(asked.query))
            before[item.question.template].append(asked)
            chosen.append((scene, asked))
    for place, feature in enumerate(("template", "task", "answer", "calls", "twin", "entry")):
        counts = Counter(_features(item)[place] for _, item in chosen)
        print(f"{feature}: {dict(sorted(counts.items(), key=str))}")
    return chosen


class _Cost:
    """Cost of a choice, kept up to date while questions are swapped."""

    def __init__(
        self,
        features: Sequence[Features],
        plans: Sequence[Plan],
        row: Mapping[int, int],
        copied: Mapping[str, Any],
        usual: Mapping[str, Any],
        ways: Mapping[str, int],
        size: int,
    ) -> None:
        self._features, self._plans = features, plans
        self._row, self._copied, self._size = row, copied, size
        self._usual, self._ways = usual, ways
        self._tools: dict[tuple[str, int] | str, dict[int, Counter[str]]] = {
            told: defaultdict(Counter) for plan in plans for told in plan.told
        }
        self._members: dict[str, list[int]] = {template: [] for template in copied}
        self._counts: Counter[Any] = Counter()
        self._tasks = {task for _, task, *_ in features}
        self._reasons, self._entries = (
            {each[place] for each in features} - {""} for place in (4, 5)
        )

    def swap(self, old: int, new: int) -> float:
        """Replace a question by another one (-1: none), and return how much the cost grows."""
        swapped = [each for each in (old, new) if each >= 0]
        templates = {self._features[each][0] for each in swapped}
        told = {each for number in swapped for each in self._plans[number].told}
        before = self._total(templates) + self._planned(told)
        for number, sign in ((old, -1), (new, 1)):
            if number >= 0:
                template, *shares = self._features[number]
                for feature in ("all", *shares):
                    self._counts[feature] += sign
                change = (
                    self._members[template].append if sign > 0 else self._members[template].remove
                )
                change(self._row[number])
                plan = self._plans[number]
                for told_by in plan.told:
                    for step, tool in enumerate(plan.tools):
                        self._tools[told_by][step][tool] += sign
        return self._total(templates) + self._planned(told) - before

    def _total(self, templates: Iterable[str]) -> float:
        counts, wanted = self._counts, {**ANSWERS, **CALLS}
        shares = sum(
            (counts[key] / self._size - share) ** 2 / share for key, share in wanted.items()
        )
        cost = SHARES * shares * self._size
        cost += 0.5 * (counts["all"] - self._size) ** 2
        apart = (
            max(FEWEST_OF_TASK - counts[task], counts[task] - MANY_OF_TASK, 0)
            for task in self._tasks
        )
        cost += sum(each**2 for each in apart)
        cost += 5 * sum(max(0, FEWEST_OF_REASON - counts[reason]) ** 2 for reason in self._reasons)
        cost += sum(
            max(0, counts[entry] - MANY_OF_ENTRY) ** 2 + 4 * (not counts[entry])
            for entry in self._entries
        )
        return cost + sum(self._of_template(template) for template in templates)

    def _planned(self, told: Iterable[tuple[str, int] | str]) -> float:
        """Return the cost of calls that the most common tool of each step guesses in questions told apart by this."""
        cost = 0.0
        for each in told:
            for tools in self._tools[each].values():
                guessed, all_calls = max(tools.values()), tools.total()
                cost += PLANNED * (guessed - MOST_PLANNED * all_calls)
        return cost

    def _of_template(self, template: str) -> float:
        members = self._members[template]
        most = min(MOST_OF_TEMPLATE, self._ways[template])
        many = 0.1 * max(0, len(members) - MANY_OF_TEMPLATE) ** 2 + 50 * max(0, len(members) - most)
        table = self._copied[template]
        pairs = float(table[np.ix_(members, members)].sum()) / max(1, len(members) - 1)
        return many + COPIED * max(pairs, float(self._usual[template][members].sum()))


def _features(item: Any) -> Features:
    from agrotools_build.twins import unanswerable_twin

    question, instance = item.question, item.instance
    twin = unanswerable_twin(item if item.wording else replace(item, wording=question.wordings[0]))
    reason = "" if twin is None else cast(Any, twin.slots[0]).reason
    entries = (
        str(call.arguments["kb_id"]) for call in instance.calls if call.tool == "lookup_agronomy"
    )
    return (
        question.template,
        question.task_type,
        instance.answer_type,
        len(instance.calls),
        reason,
        next(entries, ""),
    )


def plan_of(item: Any) -> Plan:
    """Return what the prompt and the words of a question show, and its calls."""
    from agrotools.agents.baselines.guess import form_key

    instance = item.instance
    tools = tuple(str(call.tool) for call in instance.calls)
    return Plan((form_key(instance.slots), len(instance.files)), item.question.template, tools)


def _copied(items: Sequence[Any], *, shared: bool) -> Any:
    """Return the score of the answer to each question (column) as the answer to each other one (row)."""
    from agrotools_build.building import with_plot_weights

    slots = [with_plot_weights(item.instance.slots) for item in items]
    table = np.array([[_score_of_copy(one, other, shared) for other in slots] for one in slots])
    np.fill_diagonal(table, 0.0)
    return table


def _score_of_copy(slots: Sequence[Any], others: Sequence[Any], shared: bool) -> float:
    right = [
        slot.weight * _likeness(slot, other, shared)
        for slot, other in zip(slots, others, strict=True)
    ]
    return sum(right) / sum(slot.weight for slot in slots)


def _likeness(slot: Any, other: Any, shared: bool) -> float:
    """Return 1 if the answer to ``other`` is right for ``slot``, by its value or by its place in the options, else 0.

    For charts, return the share of the points. With ``shared``, it is enough that some value between both is right.
    """
    if slot.type == "open_text":
        return ADVICE
    if slot.type == "plot":
        points, others = (
            np.array([y for series in each.value["series"] for y in series["y"]], float)
            for each in (slot, other)
        )
        if len(points) != len(others):
            return 0.0
        return float(
            (abs(points - others) <= (2 if shared else 1) * PLOT_MARGIN * abs(points)).mean()
        )
    if slot.type == "tolerance":
        return float(abs(slot.value - other.value) <= slot.margin + (other.margin if shared else 0))
    if slot.type == "file" or (slot.type == "exact" and {*slot.choices} != {*other.choices}):
        places = [sorted(each.choices).index(each.value) for each in (slot, other)]
        return float(places[0] == places[1] or (slot.type == "exact" and slot.value == other.value))
    return float(slot.value == other.value)


def _usual_answer(table: Any) -> Any:
    """Return the scores of the answer that is right most often; its own question counts, too."""
    best = table.sum(axis=0).argmax()
    return np.where(np.arange(len(table)) == best, 1.0, table[:, best])


def variant_of(order: Any) -> str | None:
    """Return the variant of the things of a scene as far as its seed tells; None if it does not."""
    from agrotools_build.sources.drawn import turn_of
    from agrotools_build.sources.drawn.fruit import COUNTED
    from agrotools_build.sources.drawn.land import MODES_OF_BLOCKS
    from agrotools_build.sources.drawn.plants import DISEASES

    if order.name == "fruit_counts":
        return list(COUNTED)[order.seed % len(COUNTED)]
    if order.name == "leaf_lesions":
        return DISEASES[order.seed % len(DISEASES)]["lesion"]
    if order.name == "blocks":
        kind = (
            "orchard"
            if np.random.default_rng([order.seed, order.difficulty, 71]).uniform() < 0.5
            else "forest"
        )
        return f"{kind} {turn_of(order.seed, MODES_OF_BLOCKS)}"
    return None


# -- Writing -----------------------------------------------------------------------------------------------------------


def write(
    name: str,
    items: Sequence[tuple[Any, Any]],
    originals: Any,
    folder: Path,
    pack: Path,
    workers: int,
    progress: Any,
) -> None:
    """Run the reference calls and write the file ``pack``."""
    import cv2
    import numpy as np
    import PIL

    import agrotools
    from agrotools.calling import get_tool
    from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader, SourceNote
    from agrotools.formats.writing import canary_of
    from agrotools.loading.pack import write_pack
    from agrotools_build.building import Group, build_samples, with_levels
    from agrotools_build.sources.drawn.drawing import SCENE_KINDS
    from agrotools_tools import AGROTOOLS

    backends = {
        tool: kind for scenes in SCENE_KINDS.values() for tool, kind in scenes.backends.items()
    }
    from paired import with_twins

    kinds = {id(item.subject): scene.name for scene, item in items}
    asked = [item for _, item in items]
    if name == "embedded":
        asked = with_twins(asked, TWINS, LISTED)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / FILES_FOLDER).mkdir(parents=True)
    for stored in {file.path for item in asked for file in item.instance.files}:
        (folder / stored).hardlink_to(originals.files[stored])
    by_kind = {
        kind: [item for item in asked if kinds[id(item.subject)] == kind] for kind in SCENE_KINDS
    }
    groups = [Group(kind, f"scenes.{kind}", chosen) for kind, chosen in by_kind.items()]
    samples, tally = build_samples(
        groups, folder, toolset=AGROTOOLS, progress=progress, workers=workers, backends=backends
    )
    scenes = {scene.folder: scene for scene, _ in items}
    described: dict[str, dict[str, Any]] = {}
    samples = [
        packed_sample(sample, originals, scenes, described) for sample in with_levels(samples)
    ]
    samples = in_order(samples, quick := quick_part(samples) if name == "embedded" else ())
    canary = canary_of(name, VERSIONS[name])
    header = BenchmarkHeader(
        name=name,
        version=VERSIONS[name],
        licence="Apache-2.0",
        description=_DESCRIPTIONS[name],
        synthetic=True,
        canary=canary,
        toolset=AGROTOOLS,
        backends=backends,
        quick=tuple(sample.id for sample in samples if sample.id in quick),
        sources=(
            SourceNote(
                name="agrotools scenes",
                licence="Apache-2.0",
                note="Drawn by agrotools from a seed.",
            ),
        ),
        metadata={
            "agrotools": agrotools.__version__,
            "seed": SEED,
            "drawn_with": {
                "numpy": np.__version__,
                "opencv": cv2.__version__,
                "pillow": PIL.__version__,
            },
            "tools": {tool: get_tool(tool).version for tool in AGROTOOLS},
            **tally.metadata(),
        },
    )
    samples = [
        sample.model_copy(update={"canary": canary, "may_abstain": name == "embedded"})
        for sample in samples
    ]
    write_pack(pack, header, dict(sorted(described.items())), samples)
    print(
        f"{name}: {len(samples)} samples, {len(described)} files, {pack.stat().st_size // 1000} kB"
    )


def packed_sample(
    sample: Any, originals: Any, scenes: Mapping[Path, Any], described: dict[str, dict[str, Any]]
) -> Any:
    """Return the sample with files named after their pixels, and describe these in ``described``."""
    from agrotools.formats.benchmark import FILES_FOLDER
    from agrotools_build.scenes.processes import look_of

    renamed: list[Any] = []
    for file in sample.files:
        drawn = originals.files[file.path]
        scene, look = scenes[drawn.parent], look_of(drawn)
        path = f"{FILES_FOLDER}/{look.pixels[:16]}{drawn.suffix}"
        described[path] = {
            "scene": [scene.name, scene.seed, scene.difficulty],
            "file": drawn.name,
            "look": look.model_dump(),
        }
        renamed.append(
            file.model_copy(update={"path": path, "sha256": None, "pixels": look.pixels})
        )
    return sample.model_copy(update={"files": tuple(renamed)})


def quick_part(samples: Sequence[Any]) -> tuple[str, ...]:
    """Return the ids of about ``QUICK`` samples, twins together, whose shares are nearly those of all.

    Shares are those of task types, answer types and unanswerable questions. Samples are added one by one, the one
    first that brings the shares nearest; of several, the one with the fewest files.
    """

    def features(sample: Any) -> tuple[str, ...]:
        return (
            sample.task_type,
            sample.answer_type,
            "answerable" if sample.answerable else "unanswerable",
        )

    of_id = {sample.id: sample for sample in samples}
    whole = Counter(feature for sample in samples for feature in features(sample))
    units = [
        tuple(filter(None, (sample, of_id.get(sample.twin or ""))))
        for sample in sorted(
            samples, key=lambda each: (len(each.files), zlib.crc32(each.id.encode()))
        )
        if sample.answerable
    ]
    chosen: list[Any] = []

    def distance(unit: Sequence[Any]) -> float:
        counts = Counter(feature for sample in (*chosen, *unit) for feature in features(sample))
        size = (len(chosen) + len(unit)) / len(samples)
        shares = sum((counts[feature] - size * n) ** 2 for feature, n in whole.items())
        return (
            shares + 5 * (counts["unanswerable"] / size - whole["unanswerable"]) ** 2 / len(samples)
        ) / size

    while len(chosen) < QUICK:
        best = min(units, key=distance)
        units.remove(best)
        chosen += best
    return tuple(sample.id for sample in chosen)


def in_order(samples: Sequence[Any], first: Sequence[str]) -> list[Any]:
    """Return the samples mixed, at the beginning answerable ones of different task types out of ``first``.

    Among these, questions about photographs alone come first.
    """
    mixed = sorted(samples, key=lambda each: zlib.crc32(each.id.encode()))
    of_task = {
        each.task_type: each for each in reversed(mixed) if each.answerable and each.id in first
    }
    shown = sorted(
        of_task.values(), key=lambda each: any(file.kind != "image" for file in each.files)
    )
    return [*shown, *(each for each in mixed if each not in shown)]


if __name__ == "__main__":
    main()
