"""A benchmark of drawn scenes with the marginals of the published one."""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools import __version__
from agrotools.build.allocation import Allocation, Marginals, published
from agrotools.build.building import Group, build_samples
from agrotools.build.choosing import Chosen, Stock, ask_subject, choose_allocated
from agrotools.build.export import write_benchmark
from agrotools.build.references import Tally
from agrotools.build.scenes.processes import Order
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn.drawing import SCENE_KINDS, draw_all
from agrotools.build.sources.part import Originals
from agrotools.build.templates import load_templates
from agrotools.build.templates.wording import Language
from agrotools.core import Sample
from agrotools.core.base import Progress, no_progress
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader, SourceNote
from agrotools.formats.writing import canary_of, check_replaceable, replace_folder
from agrotools.tools import AGROTOOLS

SEED = 20261120
QUESTIONS_PER_SUBJECT = 2.2
"""Questions per drawn subject.

With fewer subjects, more questions resemble each other; with more, drawing takes longer.
"""
_DIFFICULTIES: tuple[Difficulty, ...] = (0, 1, 2, 3)


def build_scenes(
    out: Path,
    queries: int,
    *,
    seed: int = SEED,
    language: Language = "en",
    progress: Progress = no_progress,
    workers: int = 2,
) -> BenchmarkHeader:
    """Draw scenes and write the benchmark to ``out``, completely or not at all.

    Finished scenes are kept next to ``out`` until the end, so that the same call resumes after an interruption.

    Raises:
        BenchmarkError: ``out`` holds something other than a benchmark, or so many questions cannot be asked.
        InfrastructureError: no tool worker can be started.
    """
    check_replaceable(out)
    work = out.parent / f".{out.name}-scenes"
    with replace_folder(out) as partial:
        questions = drawn_questions(work, queries, seed=seed, language=language, progress=progress, workers=workers)
        header = write_scenes(partial, questions, "scenes", progress=progress, workers=workers)
    shutil.rmtree(work, ignore_errors=True)
    return header


@dataclass(frozen=True)
class DrawnQuestions:
    """Questions chosen about drawn scenes: everything but the reference calls. ``stocks`` are by kind of scene."""

    seed: int
    language: Language
    stocks: Mapping[str, Stock]
    originals: Originals
    chosen: Sequence[Chosen]
    allocation: Allocation

    def offered(self, seed: int) -> list[Chosen]:
        """Return one instance of every question that can be asked of every subject."""
        return [
            item
            for stock in self.stocks.values()
            for subject in stock.subjects
            for question in stock.questions
            if (item := ask_subject(subject, question, seed)) is not None
        ]


def drawn_questions(
    work: Path,
    queries: int,
    *,
    seed: int = SEED,
    language: Language = "en",
    progress: Progress = no_progress,
    workers: int = 2,
    wanted: Marginals | None = None,
) -> DrawnQuestions:
    """Draw scenes into ``work``, which keeps them, and choose ``queries`` questions about them.

    ``wanted``: marginals, instead of the published ones of the sources that the scenes stand for.

    Raises:
        BenchmarkError: so many questions cannot be asked.
        InfrastructureError: a scene cannot be drawn.
    """
    wanted = wanted or published(queries, {kind.stands_for for kind in SCENE_KINDS.values()})
    scenes = draw_all(_orders(wanted, seed), work, progress, workers)
    originals = Originals(work)
    stocks: dict[str, Stock] = {}
    for name, kind in SCENE_KINDS.items():
        subjects = [subject for scene in scenes if scene.name == name for subject in kind.subjects(scene, originals)]
        templates = [template for file in kind.templates for template in load_templates(file, language)]
        stocks[name] = Stock(kind.stands_for, subjects, templates)
    chosen, allocation = choose_allocated(list(stocks.values()), wanted, seed)
    return DrawnQuestions(seed, language, stocks, originals, chosen, allocation)


def _orders(wanted: Marginals, seed: int) -> list[Order]:
    """Return the subjects to draw for each kind's share of the questions, with difficulties in turn."""
    orders: list[Order] = []
    for name, kind in SCENE_KINDS.items():
        siblings = sum(other.stands_for == kind.stands_for for other in SCENE_KINDS.values())
        questions = wanted.sources[kind.stands_for] / siblings
        for number in range(max(len(_DIFFICULTIES), math.ceil(questions / QUESTIONS_PER_SUBJECT) + 1)):
            difficulty = _DIFFICULTIES[number % len(_DIFFICULTIES)]
            orders.append(Order(name, seed + 1_000 * kind.number + number, difficulty))
    return orders


def _backends() -> dict[str, str]:
    return {tool: backend for kind in SCENE_KINDS.values() for tool, backend in kind.backends.items()}


def scene_samples(
    folder: Path,
    chosen: Mapping[str, Sequence[Chosen]],
    originals: Originals,
    toolset: tuple[str, ...],
    progress: Progress,
    workers: int = 2,
) -> tuple[list[Sample], Tally]:
    """Copy the files of the questions ``chosen``, by kind of scene, to the empty ``folder``, and run their calls.

    Raises:
        BenchmarkError: more than half of the chains of calls break.
        InfrastructureError: no tool worker can be started.
    """
    (folder / FILES_FOLDER).mkdir(parents=True)
    for stored in {file.path for items in chosen.values() for item in items for file in item.instance.files}:
        shutil.copyfile(originals.files[stored], folder / stored)
    groups = [Group(kind, f"scenes.{kind}", items) for kind, items in chosen.items()]
    return build_samples(groups, folder, toolset=toolset, progress=progress, workers=workers, backends=_backends())


def write_scenes(
    folder: Path,
    questions: DrawnQuestions,
    name: str,
    *,
    progress: Progress = no_progress,
    workers: int = 2,
) -> BenchmarkHeader:
    """Run the reference calls of these questions and write the benchmark into the empty ``folder``.

    Raises:
        BenchmarkError: more than half of the chains of calls break.
        InfrastructureError: no tool worker can be started.
    """
    by_kind: dict[str, list[Chosen]] = {}
    for kind, stock in questions.stocks.items():
        subject_ids = {id(subject) for subject in stock.subjects}
        by_kind[kind] = [item for item in questions.chosen if id(item.subject) in subject_ids]
    samples, tally = scene_samples(folder, by_kind, questions.originals, AGROTOOLS, progress, workers)
    header = BenchmarkHeader(
        name=name,
        version="1",
        licence="Apache-2.0",
        description="Questions on drawn scenes, composed as the AgroTools benchmark is, without recognition of pests "
        "and weeds. No photographs.",
        synthetic=True,
        canary=canary_of(name, "1"),
        toolset=AGROTOOLS,
        backends=_backends(),
        sources=(SourceNote(name="agrotools scenes", licence="Apache-2.0", note="Drawn by agrotools from a seed."),),
        metadata={
            "agrotools": __version__,
            "seed": questions.seed,
            "language": questions.language,
            "subjects": sum(len(stock.subjects) for stock in questions.stocks.values()),
            "marginals_missed": dict(questions.allocation.missed),
            "stands_for": {name: kind.stands_for for name, kind in SCENE_KINDS.items()},
            **tally.metadata(),
        },
    )
    write_benchmark(folder, header, samples)
    return header
