"""A published benchmark of drawn scenes from new scenes: the same questions about things that nobody has seen.

Every sample names the scene and the template that it was made from. Its replacement asks the same template about the
same kind of thing, in a scene of the same difficulty and variant with another seed. A model that knows the published
answers from its training data scores lower on the new ones.
"""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agrotools import __version__
from agrotools.build.choosing import Chosen, ask_subject, worded
from agrotools.build.export import write_benchmark
from agrotools.build.scenes.processes import Order
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.benchmark import scene_samples
from agrotools.build.sources.drawn.drawing import SCENE_KINDS, draw_all, subjects_of
from agrotools.build.sources.part import Originals
from agrotools.build.templates import load_templates
from agrotools.build.templates.wording import sentences
from agrotools.build.twins import with_twin
from agrotools.core import BenchmarkError, Sample
from agrotools.core.base import Progress
from agrotools.formats.benchmark import FRESH, Benchmark
from agrotools.formats.writing import canary_of, replace_folder

STRIDE = 4 * 27_720
"""Distance of seeds that draw the same variant: kinds of scenes take turns with at most twelve variants."""
_SCENE = re.compile(r"(?P<kind>[a-z_]+)-(?P<seed>\d{8,})-(?P<thing>.+)")
_ATTEMPTS = 3
"""Number of scenes that are drawn for a sample until its question has a clear answer."""


def fresh_version(version: str, seed: int) -> str:
    """Return the version of a benchmark from new scenes."""
    return f"{version}{FRESH}{seed}"


def write_fresh(published: Benchmark, seed: int, folder: Path, *, quick: bool = False, progress: Progress) -> None:
    """Draw new scenes and write the benchmark to ``folder``, completely or not at all. Scenes are kept until then.

    With ``quick``, only the samples of the quick part are replaced.

    Raises:
        BenchmarkError: the samples do not say which scenes they were made from, or most calls fail.
        InfrastructureError: a scene cannot be drawn, or no tool worker can be started.
    """
    samples = [each for each in published.samples if not quick or each.id in published.header.quick]
    asked = [each for each in samples if each.answerable]
    if not asked or not all(_SCENE.fullmatch(str(each.metadata.get("subject"))) for each in asked):
        raise BenchmarkError(
            f"{published.name} is not made of drawn scenes, so that it cannot be drawn anew", hint="e.g. embedded"
        )
    work = folder.parent / f".{folder.name}-scenes"
    originals = Originals(work)
    items = _new_questions(asked, seed, originals, work, progress)
    with replace_folder(folder) as partial:
        new, tally = scene_samples(partial, items, originals, published.header.toolset, progress)
        version = fresh_version(published.version, seed)
        header = published.header.model_copy(
            update={
                "version": version,
                "canary": canary_of(published.name, version),
                "quick": tuple(each.id for each in new) if quick else (),
                "metadata": {"agrotools": __version__, "seed": seed, "replaced": len(samples), **tally.metadata()},
            }
        )
        write_benchmark(partial, header, new)
    shutil.rmtree(work, ignore_errors=True)


def _new_questions(
    samples: Sequence[Sample], seed: int, originals: Originals, work: Path, progress: Progress
) -> Mapping[str, list[Chosen]]:
    """Return the new questions by kind of scene; samples without a clear answer in any of their scenes are left out."""
    by_kind: defaultdict[str, list[Chosen]] = defaultdict(list)
    used: set[str] = set()
    before: defaultdict[str, list[Chosen]] = defaultdict(list)
    missing = list(samples)
    for attempt in range(_ATTEMPTS):
        orders = {each.id: _order(each, seed, attempt) for each in missing}
        drawn = draw_all([*dict.fromkeys(orders.values())], work / "scenes", progress)
        scenes = dict(zip(dict.fromkeys(orders.values()), drawn, strict=True))
        unanswered: list[Sample] = []
        for sample in missing:
            offers = _asked(sample, scenes[orders[sample.id]], originals, seed)
            item = next((new for each in offers if (new := worded(each, before[sample.template], used))), None)
            if item is None:
                unanswered.append(sample)
                continue
            used.update(sentences(item.query))
            before[sample.template].append(item)
            pair = with_twin(item) if sample.twin else (item,)
            by_kind[orders[sample.id].name] += pair
        missing = unanswered
    return by_kind


def _order(sample: Sample, seed: int, attempt: int) -> Order:
    """Return the scene that replaces the scene of a sample."""
    scene = _SCENE.fullmatch(str(sample.metadata["subject"]))
    assert scene is not None
    new_seed = int(scene["seed"]) + STRIDE * (1 + attempt + _ATTEMPTS * seed)
    return Order(scene["kind"], new_seed, sample.metadata.get("difficulty", 0))  # pyright: ignore[reportArgumentType]


def _asked(sample: Sample, scene: DrawnScene, originals: Originals, seed: int) -> Iterator[Chosen]:
    """Yield the question of a sample about the things of a new scene, the corresponding thing first."""
    kind = SCENE_KINDS[scene.name]
    templates = [each for file in kind.templates for each in load_templates(file) if each.template == sample.template]
    match = _SCENE.fullmatch(str(sample.metadata["subject"]))
    assert match is not None
    same = f"{scene.name}-{scene.seed}-{match['thing']}"
    subjects = [
        each for each in subjects_of(scene, originals) if each.metadata.get("variant") == sample.metadata.get("variant")
    ]
    for subject in sorted(subjects, key=lambda each: each.name != same):
        for template in templates:
            if (item := ask_subject(subject, template, seed)) is not None:
                yield item
