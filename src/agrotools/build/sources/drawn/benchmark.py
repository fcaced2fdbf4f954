"""A benchmark of drawn scenes with the marginals of the published one."""

import math
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from agrotools import __version__
from agrotools.build.allocation import Allocation, Marginals, published
from agrotools.build.building import Group, build_samples
from agrotools.build.choosing import Chosen, RecordedCounts, Stock, ask_subject, choose_allocated, choose_recorded
from agrotools.build.export import write_benchmark
from agrotools.build.references import Tally
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.drawing import Order, draw_all
from agrotools.build.sources.part import Originals
from agrotools.build.templates import load_templates
from agrotools.build.templates.wording import Language
from agrotools.core.base import Progress, no_progress
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader, SourceNote
from agrotools.formats.writing import canary_of, check_replaceable, replace_folder
from agrotools.tools import AGROTOOLS

SEED = 20261120
MODULES: Mapping[str, int] = {
    "blocks": 0,
    "tracts": 1,
    "farmland_aerial": 2,
    "farmland_satellite": 3,
    "pond_pairs": 4,
    "apples": 5,
    "fruit_counts": 6,
    "leaf_lesions": 7,
    "pots": 10,
    "rows": 11,
}
"""Kinds of scenes in their order, each with the number that keeps its seeds apart from those of others."""
QUESTIONS_PER_SUBJECT = 2.2
"""Subjects are drawn for so many questions each: fewer are more alike, more take longer to draw."""
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
    """Draw scenes and write the benchmark to ``out``, whole or not at all.

    What is drawn is kept beside ``out`` until it is done, so that the same call goes on after it was stopped.

    Raises:
        BenchmarkError: ``out`` holds something else than a benchmark, or so many questions cannot be asked.
        InfrastructureError: no tool worker can be started.
    """
    check_replaceable(out)
    work = out.parent / f".{out.name}-scenes"
    with replace_folder(out) as partial:
        header = write_scenes(
            partial, work, "scenes", queries, seed=seed, language=language, progress=progress, workers=workers
        )
    shutil.rmtree(work, ignore_errors=True)
    return header


def write_scenes(
    made: Path,
    work: Path,
    name: str,
    queries: int,
    *,
    seed: int = SEED,
    version: str = "1",
    language: Language = "en",
    progress: Progress = no_progress,
    workers: int = 2,
    wanted: Marginals | None = None,
    recorded: RecordedCounts | None = None,
) -> BenchmarkHeader:
    """As :func:`build_scenes`, into the empty folder ``made``; ``work`` keeps what is drawn.

    ``wanted``: marginals, instead of the published ones of the sources that are drawn; ``recorded``: counts of an
    earlier allocation, which are taken as they are.
    """
    modules, stocks, originals, chosen, allocation = drawn_questions(
        work,
        queries,
        seed=seed,
        language=language,
        progress=progress,
        workers=workers,
        wanted=wanted,
        recorded=recorded,
    )
    (made / FILES_FOLDER).mkdir(parents=True)
    for stored in sorted({file.path for item in chosen for file in item.instance.files}):
        shutil.copyfile(originals.files[stored], made / stored)
    backends = {tool: kind for code in modules.values() for tool, kind in getattr(code, "BACKENDS", {}).items()}
    tally = Tally()
    samples = build_samples(
        [Group(module, f"scenes.{module}", _of(stock, chosen)) for module, stock in stocks.items()],
        made,
        toolset=AGROTOOLS,
        progress=progress,
        workers=workers,
        backends=backends,
        tally=tally,
    )
    tally.check()
    header = BenchmarkHeader(
        name=name,
        version=version,
        licence="Apache-2.0",
        description="Questions on drawn scenes, composed as the AgroTools benchmark is, without recognition of pests "
        "and weeds. No photographs.",
        synthetic=True,
        canary=canary_of(name, version),
        toolset=AGROTOOLS,
        backends=backends,
        sources=(SourceNote(name="agrotools scenes", licence="Apache-2.0", note="Drawn by agrotools from a seed."),),
        metadata={
            "agrotools": __version__,
            "seed": seed,
            "language": language,
            "subjects": sum(len(stock.subjects) for stock in stocks.values()),
            "marginals_missed": dict(allocation.missed),
            "stands_for": {module: code.STANDS_FOR for module, code in modules.items()},
            **tally.metadata(),
        },
    )
    write_benchmark(made, header, samples)
    return header


def embedded_counts() -> RecordedCounts:
    """The counts of questions that the embedded benchmark asks."""
    return tomllib.loads(files("agrotools.build.sources.drawn").joinpath("embedded.toml").read_text("utf-8"))


class DrawnQuestions(NamedTuple):
    """Questions chosen of what was drawn: all of a benchmark but the reference calls.

    ``modules`` and ``stocks`` are by name of the drawing module.
    """

    modules: Mapping[str, ModuleType]
    stocks: Mapping[str, Stock]
    originals: Originals
    chosen: Sequence[Chosen]
    allocation: Allocation

    def offered(self, seed: int) -> list[Chosen]:
        """Every question that can be asked of every subject, one each."""
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
    seed: int,
    language: Language = "en",
    progress: Progress = no_progress,
    workers: int = 2,
    wanted: Marginals | None = None,
    recorded: RecordedCounts | None = None,
) -> DrawnQuestions:
    """Draw scenes into ``work`` and choose ``queries`` questions of them with the published marginals.

    Raises:
        BenchmarkError: so many questions cannot be asked.
        InfrastructureError: a scene cannot be drawn.
    """
    modules = {module: import_module(f"{__package__}.{module}") for module in MODULES}
    wanted = wanted or published(queries, {module.STANDS_FOR for module in modules.values()})
    scenes = draw_all(_orders(modules, wanted, seed), work, progress, workers)
    originals = Originals(work)
    stocks = {
        module: _stock(code, [each for each in scenes if each.name == module], originals, language)
        for module, code in modules.items()
    }
    if recorded is None:
        chosen, allocation = choose_allocated(list(stocks.values()), wanted, seed)
    else:
        chosen, allocation = choose_recorded(list(stocks.values()), recorded, seed)
    return DrawnQuestions(modules, stocks, originals, chosen, allocation)


def _orders(modules: Mapping[str, ModuleType], wanted: Marginals, seed: int) -> list[Order]:
    """Subjects to draw, as many as a module's share of the questions needs, of all difficulties in turn."""
    orders = []
    for name, module in modules.items():
        siblings = sum(other.STANDS_FOR == module.STANDS_FOR for other in modules.values())
        questions = wanted.sources[module.STANDS_FOR] / siblings
        least = len(_DIFFICULTIES)
        for number in range(max(least, math.ceil(questions / QUESTIONS_PER_SUBJECT) + 1)):
            difficulty = _DIFFICULTIES[number % len(_DIFFICULTIES)]
            orders.append(Order(name, seed + 1_000 * MODULES[name] + number, difficulty))
    return orders


def _stock(module: ModuleType, drawn: Sequence[DrawnScene], originals: Originals, language: Language) -> Stock:
    subjects = [subject for each in drawn for subject in module.subjects(each, originals)]
    questions = [template for file in module.TEMPLATES for template in load_templates(file, language)]
    return Stock(module.STANDS_FOR, subjects, questions)


def _of(stock: Stock, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Those of a module's own subjects."""
    subject_ids = {id(subject) for subject in stock.subjects}
    return [item for item in chosen if id(item.subject) in subject_ids]
