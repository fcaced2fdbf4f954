"""Decide from fresh scenes which questions the tools can answer: membership of ``embedded`` and ``frontier``.

    python training/study_scene_classes.py ask --seeds A --scenes 24 --out DIR    # draw, ask, run the tools, score
    python training/study_scene_classes.py decide DIR                             # write membership.toml
    python training/study_scene_classes.py check --seeds B DIR                    # rates of the kept classes
    python training/study_scene_classes.py tables DIR                             # tables of docs/scenes.md

``ask`` draws ``--scenes`` scenes of each kind at each difficulty (seeds A: 30,000,000 and up; B: 60,000,000 and up), asks
each template once about each subject, runs the measuring calls with the real tools and scores the answer of the oracle. A
scene's results are one line of DIR/SEEDS.jsonl; scenes in that file are not drawn again, so the command resumes, and a
larger ``--scenes`` adds to it.
"""

import argparse
import asyncio
import shutil
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import JsonValue

from agrotools.agents.baselines.simple import answer_from, live_arguments
from agrotools.build.building import with_plot_weights
from agrotools.build.choosing import Chosen, ask_subject
from agrotools.build.references import ChainBroken, PlannedCall, check_observed
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.drawing import SCENE_KINDS, Order, draw_all
from agrotools.build.sources.part import Originals
from agrotools.build.templates import load_templates
from agrotools.build.templates.template import exact_result
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
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools.tools import AGROTOOLS
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace

SEEDS = {"A": 30_000_000, "B": 60_000_000, "C": 90_000_000}
_DIFFICULTIES: tuple[Difficulty, ...] = (0, 1, 2, 3)
_MOST_SCENES = 250
"""Maximum number of scenes of a kind and difficulty; the seeds of the next difficulty begin there."""
_CHUNK = 40
_EXACT = ("calculate", "plot", "lookup_agronomy")

Line = dict[str, Any]


# -- Scenes and questions ----------------------------------------------------------------------------------------------


def orders_of(seeds: str, scenes: int, kinds: Iterable[str]) -> list[Order]:
    """Return the scenes to draw. The seeds of a kind and difficulty are consecutive, so that modes take turns."""
    return [
        Order(name, SEEDS[seeds] + 1_000 * SCENE_KINDS[name].number + _MOST_SCENES * difficulty + number, difficulty)
        for number in range(scenes)
        for name in kinds
        for difficulty in _DIFFICULTIES
    ]


def ask_scenes(seeds: str, scenes: int, kinds: Sequence[str], out: Path) -> None:
    """Ask about the scenes that are not in ``out/SEEDS.jsonl`` yet, and add their lines."""
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{seeds}.jsonl"
    finished = {(line["kind"], line["seed"], line["difficulty"]) for line in read_lines(target)}
    orders = orders_of(seeds, scenes, kinds)
    missing = [order for order in orders if (order.name, order.seed, order.difficulty) not in finished]
    for start in range(0, len(missing), _CHUNK):
        folder = out / f"scenes-{seeds}"
        chunk = draw_all(missing[start : start + _CHUNK], folder, lambda *_: None)
        lines = asyncio.run(_asked(chunk, folder))
        with target.open("ab") as file:
            file.writelines(orjson.dumps(line) + b"\n" for line in lines)
        shutil.rmtree(folder)
        print(f"{len(orders) - len(missing) + start + len(chunk)}/{len(orders)} scenes", file=sys.stderr, flush=True)


def read_lines(path: Path) -> list[Line]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []


async def _asked(scenes: Sequence[DrawnScene], folder: Path) -> list[Line]:
    backends = {tool: kind for scene in SCENE_KINDS.values() for tool, kind in scene.backends.items()}
    cache = ResultCache(folder / "cache")
    async with ToolExecutor(workers=2, timeout_s=300, cache=cache, backends=backends) as executor:
        return [await _asked_scene(scene, executor) for scene in scenes]


async def _asked_scene(scene: DrawnScene, executor: ToolExecutor) -> Line:
    kind, originals = SCENE_KINDS[scene.name], Originals(scene.folder)
    templates = [template for file in kind.templates for template in load_templates(file)]
    chosen = [
        item
        for subject in kind.subjects(scene, originals)
        for template in templates
        if (item := ask_subject(subject, template, scene.seed)) is not None
    ]
    one_each = {(item.subject.of, item.question.template): item for item in reversed(chosen)}
    asked = await asyncio.gather(*(_scored(item, originals, scene, executor) for item in one_each.values()))
    return {"kind": scene.name, "seed": scene.seed, "difficulty": scene.difficulty, "questions": asked}


# -- The oracle --------------------------------------------------------------------------------------------------------


async def _scored(item: Chosen, originals: Originals, scene: DrawnScene, executor: ToolExecutor) -> Line:
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
    files = tuple(f.model_copy(update={"path": str(originals.files[f.path])}) for f in instance.files)
    scratch = scene.folder / f"out-{zlib.crc32(repr((line, item.subject.name)).encode())}"
    workspace = Workspace(files, scratch, scene.folder)
    try:
        for index, call in enumerate(instance.calls):
            results.append(await _result(index, call, results, workspace, executor, line))
    except ChainBroken as broken:
        return {**line, "score": None, "error": broken.reason}
    slots = with_plot_weights(instance.slots)
    answer = answer_from(slots, results)
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
                off[slot.name] = round((cast(float, evaluate_from(slot.from_, results)) - slot.value) / slot.margin, 3)
    counted = [slot for slot in slots if counts_in_headline(slot)]
    score = sum(slot.weight * scores[slot.name] for slot in counted) / sum(slot.weight for slot in counted)
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
            return exact_result(call.tool, cast("Mapping[str, Any]", literal_value(cast(JsonValue, arguments))))
        except (ExpressionError, ToolError, ValueError):  # as division by zero, if nothing was found
            return None
    outcome = await executor.run(ToolCall(tool=call.tool, arguments=arguments), workspace, AGROTOOLS)
    error = outcome.observation.error
    check_observed(index, call.tool, error, follows=any(True for _ in iter_refs(dict(call.arguments))))
    if error is not None:
        line.setdefault("error", f"{call.tool}: {error.kind}")
    return outcome.observation.result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    ask = commands.add_parser("ask")
    ask.add_argument("--seeds", choices=SEEDS, default="A")
    ask.add_argument("--scenes", type=int, default=24)
    ask.add_argument("--kinds", default=",".join(SCENE_KINDS))
    ask.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.command == "ask":
        ask_scenes(arguments.seeds, arguments.scenes, arguments.kinds.split(","), arguments.out)


if __name__ == "__main__":
    main()
