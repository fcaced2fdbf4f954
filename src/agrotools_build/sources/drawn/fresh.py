"""A published benchmark of drawn scenes from new scenes: the same questions about things that nobody has seen.

Every sample names the scene and the template that it was made from. Its replacement asks the same template about the
same kind of thing, in a scene of the same difficulty and variant with another seed. A model that knows the published
answers from its training data scores lower on the new ones. :func:`share_of` gives fewer samples to replace, in the
same shares of questions.
"""

import importlib.metadata
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agrotools.core import BenchmarkError, Sample, UsageError
from agrotools.core.progress import Progress
from agrotools.formats.benchmark import FILES_FOLDER, Benchmark, BenchmarkHeader, fresh_version
from agrotools.formats.writing import canary_of, check_replaceable, replace_folder
from agrotools_build.building import Group, build_samples
from agrotools_build.choosing import Chosen, ask_subject, worded
from agrotools_build.export.folder import write_benchmark
from agrotools_build.references import Tally
from agrotools_build.scenes.processes import Order
from agrotools_build.sources.drawn import DrawnScene
from agrotools_build.sources.drawn.drawing import SCENE_KINDS, draw_all, subjects_of
from agrotools_build.sources.part import Originals
from agrotools_build.templates import load_templates
from agrotools_build.templates.wording import Language, sentences
from agrotools_build.twins import with_twin

STRIDE = 4 * 27_720
"""Distance of seeds that draw the same variant: kinds of scenes take turns with at most twelve variants."""
_SCENE = re.compile(r"(?P<kind>[a-z_]+)-(?P<seed>\d{8,})-(?P<thing>.+)")
_ATTEMPTS = 3
"""Number of scenes that are drawn for a sample until its question has a clear answer."""


def share_of(samples: Sequence[Sample], count: int) -> list[Sample]:
    """Return the answerable ones of about ``count`` samples, in the shares of all; UsageError if that is too many."""
    if count > len(samples):
        hint = "draw several benchmarks, each with another seed: --scenes SEED"
        raise UsageError(
            f"at most {len(samples)} questions are drawn together, not {count}", hint=hint
        )
    asked = [each for each in samples if each.answerable]
    taken: list[Sample] = []
    due = 0.5
    for each in sorted(
        asked, key=lambda each: (each.task_type, each.answer_type, each.template or "", each.id)
    ):
        size = 2 if each.twin else 1
        due += size * count / len(samples)
        if due >= size:
            taken.append(each)
            due -= size
    return taken


def write_fresh(
    published: Benchmark,
    seed: int,
    folder: Path,
    *,
    name: str | None = None,
    quick: bool = False,
    language: Language = "en",
    progress: Progress,
    workers: int = 2,
) -> BenchmarkHeader:
    """Draw new scenes and write the benchmark, called ``name``, to ``folder``, completely or not at all.

    ``quick``: only its quick part. BenchmarkError: it is not made of drawn scenes, or most calls fail.
    InfrastructureError: a scene cannot be drawn.
    """
    samples = [each for each in published.samples if not quick or each.id in published.header.quick]
    asked = [each for each in samples if each.answerable]
    if not asked or not all(_SCENE.fullmatch(str(each.metadata.get("subject"))) for each in asked):
        raise BenchmarkError(
            f"{published.name} is not made of drawn scenes, so that it cannot be drawn anew",
            hint="e.g. embedded",
        )
    check_replaceable(folder)
    work = folder.parent / f".{folder.name}-scenes"
    originals = Originals(work)
    with replace_folder(folder) as partial:
        items = _new_questions(asked, seed, originals, work, language, progress, workers)
        new, tally = scene_samples(
            partial, items, originals, published.header.toolset, progress, workers
        )
        version = fresh_version(published.version, seed)
        header = published.header.model_copy(
            update={
                "name": name or published.name,
                "version": version,
                "canary": canary_of(name or published.name, version),
                "quick": tuple(each.id for each in new) if quick else (),
                "metadata": {
                    "agrotools": importlib.metadata.version("agrotools"),
                    "seed": seed,
                    "replaced": len(samples),
                    **tally.metadata(),
                },
            }
        )
        write_benchmark(partial, header, new)
    shutil.rmtree(work, ignore_errors=True)
    return header


def scene_samples(
    folder: Path,
    chosen: Mapping[str, Sequence[Chosen]],
    originals: Originals,
    toolset: tuple[str, ...],
    progress: Progress,
    workers: int = 2,
) -> tuple[list[Sample], Tally]:
    """Copy the files of the questions ``chosen``, by kind of scene, to the empty ``folder``, and run their calls.

    Errors are those of :func:`~agrotools_build.building.build_samples`.
    """
    (folder / FILES_FOLDER).mkdir(parents=True)
    for stored in {
        file.path for items in chosen.values() for item in items for file in item.instance.files
    }:
        shutil.copyfile(originals.files[stored], folder / stored)
    groups = [Group(kind, f"scenes.{kind}", items) for kind, items in chosen.items()]
    backends = {
        tool: backend for kind in SCENE_KINDS.values() for tool, backend in kind.backends.items()
    }
    return build_samples(
        groups, folder, toolset=toolset, progress=progress, workers=workers, backends=backends
    )


def _new_questions(
    samples: Sequence[Sample],
    seed: int,
    originals: Originals,
    work: Path,
    language: Language,
    progress: Progress,
    workers: int,
) -> Mapping[str, list[Chosen]]:
    """Return the new questions by kind of scene; samples without a clear answer in any of their scenes are left out."""
    by_kind: defaultdict[str, list[Chosen]] = defaultdict(list)
    used: set[str] = set()
    before: defaultdict[str, list[Chosen]] = defaultdict(list)
    missing = list(samples)
    for attempt in range(_ATTEMPTS):
        orders = {each.id: _order(each, seed, attempt) for each in missing}
        drawn = draw_all([*dict.fromkeys(orders.values())], work / "scenes", progress, workers)
        scenes = dict(zip(dict.fromkeys(orders.values()), drawn, strict=True))
        unanswered: list[Sample] = []
        for sample in missing:
            offers = _asked(sample, scenes[orders[sample.id]], originals, seed, language)
            item = next(
                (new for each in offers if (new := worded(each, before[sample.template], used))),
                None,
            )
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
    scene = _SCENE.fullmatch(str(sample.metadata["subject"]))
    assert scene is not None
    new_seed = int(scene["seed"]) + STRIDE * (1 + attempt + _ATTEMPTS * seed)
    return Order(scene["kind"], new_seed, sample.metadata.get("difficulty", 0))  # pyright: ignore[reportArgumentType]


def _asked(
    sample: Sample, scene: DrawnScene, originals: Originals, seed: int, language: Language
) -> Iterator[Chosen]:
    """Yield the question of a sample about the things of a new scene, the corresponding thing first."""
    kind = SCENE_KINDS[scene.name]
    every = (each for file in kind.templates for each in load_templates(file, language))
    templates = [each for each in every if each.template == sample.template]
    match = _SCENE.fullmatch(str(sample.metadata["subject"]))
    assert match is not None
    same = f"{scene.name}-{scene.seed}-{match['thing']}"
    subjects = [
        each
        for each in subjects_of(scene, originals)
        if each.metadata.get("variant") == sample.metadata.get("variant")
    ]
    for subject in sorted(subjects, key=lambda each: each.name != same):
        for template in templates:
            if (item := ask_subject(subject, template, seed)) is not None:
                yield item
