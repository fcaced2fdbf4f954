"""Draw scenes, choose questions, run the reference calls, and write the packs of ``embedded`` and ``frontier``.

    python training/pack_benchmarks.py WORK [--workers 2]

``membership.toml`` says which classes of questions (kind of scene, subject, template, variant, difficulty) belong to
which benchmark. Each scene is asked one question: the one whose task type, answer type, number of calls and template
are rarest so far. Scenes that are drawn and calls that have run are
kept in WORK, so the command resumes. Run it again when a drawing, a template, a tool or the membership changes, and
raise ``VERSION``.
"""

import argparse
import os
import shutil
import sys
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np

VERSION = "7"
SEED = 20261120
SIZES = {"embedded": 434, "frontier": 120}
TWINS = 0.16
"""Share of unanswerable questions in ``embedded``; some are dropped when their calls run."""
QUICK = 60
ANSWERS = {"tolerance": 0.33, "exact": 0.29, "plot": 0.25, "open_text": 0.13}
CALLS = {1: 0.1, 2: 0.35, 3: 0.25, 4: 0.2, 5: 0.06, 6: 0.04}
MOST_OF_TEMPLATE = 24
"""Uses of a template in a benchmark; each in another wording, so that no two questions share a sentence."""
_DESCRIPTIONS = {
    "embedded": "Questions on drawn scenes that the tools of the package can answer. No photographs.",
    "frontier": "Questions on drawn scenes that the tools of the package get wrong: what a better tool would win. "
    "No photographs.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--share", type=float, default=1.0, help="share of the questions, for a first look")
    arguments = parser.parse_args()
    work = cast(Path, arguments.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AGROTOOLS_CACHE", str(work / "cache"))

    from agrotools.build.sources.drawn.drawing import SCENE_KINDS, draw_all
    from agrotools.build.sources.part import Originals
    from agrotools.runner.progress import stage_progress

    progress = stage_progress(sys.stderr)
    originals = Originals(work)
    choice = Choice(originals, {name: round(size * arguments.share) for name, size in SIZES.items()})
    for name in SIZES:
        streams = {kind: orders_of(kind, name, choice) for kind in SCENE_KINDS}
        while choice.is_open(name) and streams:
            orders = {kind: list(islice(stream, 4)) for kind, stream in streams.items()}
            streams = {kind: streams[kind] for kind in streams if orders[kind]}
            batch = [order for one in orders.values() for order in one]
            choice.ask(name, draw_all(batch, work / "scenes", progress, arguments.workers))
            print(f"{name}: {len(choice.chosen[name])} questions", file=sys.stderr)
        print(name, {str(value): n for (_, value), n in sorted(choice.counts[name].items(), key=str)})
        write(name, choice.chosen[name], originals, work / name, arguments.workers, progress)


# -- Choice ------------------------------------------------------------------------------------------------------------


class Choice:
    """Questions chosen so far, as (scene, question) by benchmark; at most one question per scene."""

    def __init__(self, originals: Any, sizes: Mapping[str, int]) -> None:
        self._originals, self._sizes = originals, sizes
        table = files("agrotools.build.sources.drawn").joinpath("membership.toml").read_text("utf-8")
        self._benchmarks = {tuple(row[:5]): row[7] for row in tomllib.loads(table)["classes"]}
        self._sentences: set[str] = set()
        self.chosen: dict[str, list[tuple[Any, Any]]] = {name: [] for name in sizes}
        self.counts: dict[str, Counter[tuple[str, Any]]] = {name: Counter() for name in sizes}

    def is_open(self, name: str) -> bool:
        return len(self.chosen[name]) < self._sizes[name]

    def suits(self, name: str, order: Any) -> bool:
        """Return True if the scene may have questions of a benchmark, as far as its seed tells."""
        known = variant_of(order)
        return any(
            benchmark == name and (key[0], key[4]) == (order.name, order.difficulty) and known in (None, key[3])
            for key, benchmark in self._benchmarks.items()
        )

    def ask(self, name: str, scenes: Sequence[Any]) -> None:
        """Choose a question of a benchmark for each scene that has one."""
        for scene in scenes:
            offered = list(self._asked(name, scene))
            for candidate in sorted(offered, key=lambda item: _cost(item, self.counts[name])):
                if self.is_open(name) and self._choose(name, scene, candidate):
                    break

    def _asked(self, name: str, scene: Any) -> Iterator[Any]:
        from agrotools.build.choosing import ask_subject
        from agrotools.build.sources.drawn.drawing import SCENE_KINDS
        from agrotools.build.templates import load_templates

        kind = SCENE_KINDS[scene.name]
        for subject in kind.subjects(scene, self._originals):
            for template in (template for file in kind.templates for template in load_templates(file)):
                variant = subject.metadata.get("variant", "")
                key = (scene.name, subject.of, template.template, variant, scene.difficulty)
                if self._benchmarks.get(key) != name or (item := ask_subject(subject, template, SEED)) is None:
                    continue
                if 1 <= len(item.instance.calls) <= 6:
                    yield item

    def _choose(self, name: str, scene: Any, candidate: Any) -> bool:
        from agrotools.build.choosing import worded
        from agrotools.build.templates.wording import sentences

        template = candidate.question.template
        before = [other for _, other in self.chosen[name] if other.question.template == template]
        item = worded(candidate, before, self._sentences) if len(before) < MOST_OF_TEMPLATE else None
        if item is None:
            return False
        self._sentences.update(sentences(item.query))
        self.counts[name].update(_features(item))
        self.chosen[name].append((scene, item))
        return True


def variant_of(order: Any) -> str | None:
    """Return the variant of the things of a scene as far as its seed tells; None if it does not."""
    from agrotools.build.sources.drawn import turn_of
    from agrotools.build.sources.drawn.fruit import COUNTED
    from agrotools.build.sources.drawn.leaf_lesions import DISEASES

    if order.name == "fruit_counts":
        return list(COUNTED)[order.seed % len(COUNTED)]
    if order.name == "leaf_lesions":
        return DISEASES[order.seed % len(DISEASES)].lesion
    if order.name == "blocks":
        kind = "orchard" if np.random.default_rng([order.seed, order.difficulty, 71]).uniform() < 0.5 else "forest"
        return f"{kind} {turn_of(order.seed, ('pictures', 'heights', 'heights'))}"
    return None


def orders_of(kind: str, name: str, choice: Choice) -> Iterator[Any]:
    """Yield the scenes of a kind that may have questions of a benchmark; ``frontier`` has seeds of its own."""
    from agrotools.build.sources.drawn.drawing import SCENE_KINDS, Order

    first = SEED + 1_000 * SCENE_KINDS[kind].number + (500 if name == "frontier" else 0)
    for number in range(500):
        order = Order(kind, first + number, number % 4)  # pyright: ignore[reportArgumentType]
        if choice.suits(name, order):
            yield order


def _features(item: Any) -> list[tuple[str, Any]]:
    return [
        ("task", item.question.task_type),
        ("answer", item.instance.answer_type),
        ("calls", len(item.instance.calls)),
        ("template", item.question.template),
    ]


def _cost(item: Any, counts: Mapping[tuple[str, Any], int]) -> tuple[float, int]:
    """Return how frequent the features of a question are already, each in proportion to its share."""
    task, answer, calls, template = _features(item)
    cost = (
        12 * counts[task]
        + counts[answer] / ANSWERS[answer[1]]
        + counts[calls] / CALLS[calls[1]]
        + 60 * counts[template]
    )
    return cost, zlib.crc32(f"{item.subject.name} {template[1]}".encode())


# -- Writing -----------------------------------------------------------------------------------------------------------


def write(
    name: str, items: Sequence[tuple[Any, Any]], originals: Any, folder: Path, workers: int, progress: Any
) -> None:
    """Run the reference calls and write the pack."""
    import cv2
    import numpy as np
    import PIL

    import agrotools
    from agrotools.benchmarks.embedded.pack import pack_path, write_pack
    from agrotools.build.building import Group, build_samples, with_levels
    from agrotools.build.references import Tally
    from agrotools.build.sources.drawn.drawing import SCENE_KINDS
    from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader, SourceNote
    from agrotools.formats.writing import canary_of
    from agrotools.tools import AGROTOOLS, get_tool

    shutil.rmtree(folder, ignore_errors=True)
    (folder / FILES_FOLDER).mkdir(parents=True)
    for stored in {file.path for _, item in items for file in item.instance.files}:
        (folder / stored).hardlink_to(originals.files[stored])
    backends = {tool: kind for scenes in SCENE_KINDS.values() for tool, kind in scenes.backends.items()}
    from agrotools.build.twins import with_twins

    kinds = {id(item.subject): scene.name for scene, item in items}
    asked = with_twins([item for _, item in items], TWINS) if name == "embedded" else [item for _, item in items]
    by_kind = {kind: [item for item in asked if kinds[id(item.subject)] == kind] for kind in SCENE_KINDS}
    groups = [Group(kind, f"scenes.{kind}", chosen) for kind, chosen in by_kind.items()]
    tally = Tally()
    samples = build_samples(
        groups, folder, toolset=AGROTOOLS, progress=progress, workers=workers, backends=backends, tally=tally
    )
    tally.check()
    scenes = {originals.files[file.path]: scene for scene, item in items for file in item.instance.files}
    described: dict[str, dict[str, Any]] = {}
    samples = [packed_sample(sample, originals, scenes, described) for sample in with_levels(samples)]
    canary = canary_of(name, VERSION)
    header = BenchmarkHeader(
        name=name,
        version=VERSION,
        licence="Apache-2.0",
        description=_DESCRIPTIONS[name],
        synthetic=True,
        canary=canary,
        toolset=AGROTOOLS,
        backends=backends,
        quick=quick_part(samples) if name == "embedded" else (),
        sources=(SourceNote(name="agrotools scenes", licence="Apache-2.0", note="Drawn by agrotools from a seed."),),
        metadata={
            "agrotools": agrotools.__version__,
            "seed": SEED,
            "drawn_with": {"numpy": np.__version__, "opencv": cv2.__version__, "pillow": PIL.__version__},
            "tools": {tool: get_tool(tool).version for tool in AGROTOOLS},
            **tally.metadata(),
        },
    )
    samples = [sample.model_copy(update={"canary": canary, "may_abstain": name == "embedded"}) for sample in samples]
    write_pack(pack_path(name), header, dict(sorted(described.items())), samples)
    print(f"{name}: {len(samples)} samples, {len(described)} files, {pack_path(name).stat().st_size // 1000} kB")


def packed_sample(sample: Any, originals: Any, scenes: Mapping[Path, Any], described: dict[str, dict[str, Any]]) -> Any:
    """Return the sample with files named after their pixels, and describe these in ``described``."""
    from agrotools.build.sources.drawn.saving import look_of
    from agrotools.formats.benchmark import FILES_FOLDER

    renamed: list[Any] = []
    for file in sample.files:
        drawn = originals.files[file.path]
        scene, look = scenes[drawn], look_of(drawn)
        path = f"{FILES_FOLDER}/{look.pixels[:16]}{drawn.suffix}"
        described[path] = {
            "scene": [scene.name, scene.seed, scene.difficulty],
            "file": drawn.name,
            "look": look.model_dump(),
        }
        renamed.append(file.model_copy(update={"path": path, "sha256": None, "pixels": look.pixels}))
    return sample.model_copy(update={"files": tuple(renamed)})


def quick_part(samples: Sequence[Any]) -> tuple[str, ...]:
    """Return the ids of about ``QUICK`` samples: each task and answer type in proportion, twins together, few files."""
    strata: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for sample in samples:
        if not (sample.twin and sample.answer[0].type == "abstain"):
            strata[sample.task_type, sample.answer_type].append(sample)
    places: list[tuple[bool, float, str, Any]] = []
    for members in strata.values():
        members.sort(key=lambda each: (each.twin is None, len(each.files), zlib.crc32(each.id.encode())))
        places += [(at > 0, (at + 0.5) / len(members), each.id, each) for at, each in enumerate(members)]
    ids: list[str] = []
    for *_, sample in sorted(places, key=lambda place: place[:3]):
        if len(ids) < QUICK:
            ids += [each for each in (sample.id, sample.twin) if each]
    return tuple(sorted(ids))


if __name__ == "__main__":
    main()
