"""Draw scenes, choose questions, run the reference calls, and write the packs of ``embedded`` and ``frontier``.

    python training/pack_benchmarks.py WORK [--workers 2]

``membership.toml`` says which classes of questions (kind of scene, subject, template, variant, difficulty) belong to
which benchmark. Each scene is asked one question: of the benchmark that is further from its size, the one whose task
type, answer type, number of calls and template are rarest so far. Scenes that are drawn and calls that have run are
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

VERSION = "7"
SEED = 20261120
SIZES = {"embedded": 434, "frontier": 150}
MOST_SCENES = 400
"""Of each kind that are drawn; fewer if the benchmarks are complete before."""
TWINS = 80
"""Unanswerable questions of ``embedded``, each beside the answerable one; some are dropped when their calls run."""
QUICK = 60
_ANSWERS = {"tolerance": 0.33, "exact": 0.29, "plot": 0.25, "open_text": 0.13}
_CALLS = {1: 0.1, 2: 0.35, 3: 0.25, 4: 0.2, 5: 0.06, 6: 0.04}
_MOST_OF_TEMPLATE = 24
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
    parser.add_argument("--scenes", type=int, default=MOST_SCENES, help="most scenes of a kind")
    arguments = parser.parse_args()
    work = cast(Path, arguments.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AGROTOOLS_CACHE", str(work / "cache"))

    from agrotools.build.sources.part import Originals
    from agrotools.runner.progress import stage_progress

    progress = stage_progress(sys.stderr)
    originals = Originals(work)
    choice = Choice(originals)
    for first in range(0, arguments.scenes, 4):
        if scenes := drawn_scenes(work / "scenes", range(first, first + 4), choice, arguments.workers, progress):
            choice.ask(scenes)
            print(", ".join(f"{name} {len(items)}/{SIZES[name]}" for name, items in choice.chosen.items()))
    for name, count in choice.counts.items():
        print(name, {str(value): n for (_, value), n in sorted(count.items(), key=str)})
    for name, items in choice.chosen.items():
        write(name, items, originals, work / name, arguments.workers, progress)


# -- Choice ------------------------------------------------------------------------------------------------------------


class Choice:
    """Questions chosen so far, as (scene, question) by benchmark; at most one question per scene."""

    def __init__(self, originals: Any) -> None:
        self._originals = originals
        table = files("agrotools.build.sources.drawn").joinpath("membership.toml")
        rows = tomllib.loads(table.read_text("utf-8"))["classes"] if table.is_file() else None
        self._benchmarks = None if rows is None else {tuple(row[:5]): row[7] for row in rows}
        self._sentences: set[str] = set()
        self.chosen: dict[str, list[tuple[Any, Any]]] = {name: [] for name in SIZES}
        self.counts: dict[str, Counter[tuple[str, Any]]] = {name: Counter() for name in SIZES}

    def wants(self, kind: str, difficulty: int) -> bool:
        """Return True if scenes of a kind and difficulty have questions for a benchmark that is not complete."""
        if self._benchmarks is None:
            return self._is_open("frontier" if difficulty == 3 else "embedded")
        return any(
            self._is_open(name) for key, name in self._benchmarks.items() if (key[0], key[4]) == (kind, difficulty)
        )

    def _is_open(self, name: str) -> bool:
        return name in SIZES and len(self.chosen[name]) < SIZES[name]

    def _benchmark_of(self, scene: Any, item: Any) -> str:
        if self._benchmarks is None:
            return "frontier" if scene.difficulty == 3 else "embedded"
        variant = item.subject.metadata.get("variant", "")
        return self._benchmarks.get(
            (scene.name, item.subject.of, item.question.template, variant, scene.difficulty), "dropped"
        )

    def ask(self, scenes: Sequence[Any]) -> None:
        """Choose a question for each scene, of the benchmark that is further from its size."""
        for scene in scenes:
            offered: dict[str, list[Any]] = defaultdict(list)
            for item in _asked(scene, self._originals):
                offered[self._benchmark_of(scene, item)].append(item)
            for name in sorted(filter(self._is_open, offered), key=lambda name: len(self.chosen[name]) / SIZES[name]):
                if self._choose(name, scene, offered[name]):
                    break

    def _choose(self, name: str, scene: Any, offered: Sequence[Any]) -> bool:
        from agrotools.build.choosing import worded
        from agrotools.build.templates.wording import sentences

        for candidate in sorted(offered, key=lambda item: _cost(name, item, self.counts[name])):
            template = candidate.question.template
            before = [other for _, other in self.chosen[name] if other.question.template == template]
            item = worded(candidate, before, self._sentences) if len(before) < _MOST_OF_TEMPLATE else None
            if item is not None:
                self._sentences.update(sentences(item.query))
                self.counts[name].update(_features(item))
                self.chosen[name].append((scene, item))
                return True
        return False


def drawn_scenes(folder: Path, numbers: Iterable[int], choice: Choice, workers: int, progress: Any) -> list[Any]:
    """Draw these scenes of each kind that are wanted, with difficulties in turn."""
    from agrotools.build.sources.drawn.drawing import SCENE_KINDS, Order, draw_all

    orders = [
        Order(name, SEED + 1_000 * kind.number + number, number % 4)  # pyright: ignore[reportArgumentType]
        for number in numbers
        for name, kind in SCENE_KINDS.items()
        if choice.wants(name, number % 4)
    ]
    return draw_all(orders, folder, progress, workers)


def _asked(scene: Any, originals: Any) -> Iterator[Any]:
    from agrotools.build.choosing import ask_subject
    from agrotools.build.sources.drawn.drawing import SCENE_KINDS
    from agrotools.build.templates import load_templates

    kind = SCENE_KINDS[scene.name]
    for subject in kind.subjects(scene, originals):
        for template in (template for file in kind.templates for template in load_templates(file)):
            if (item := ask_subject(subject, template, SEED)) is not None and 1 <= len(item.instance.calls) <= 6:
                yield item


def _features(item: Any) -> list[tuple[str, Any]]:
    return [
        ("task", item.question.task_type),
        ("answer", item.instance.answer_type),
        ("calls", len(item.instance.calls)),
        ("template", item.question.template),
    ]


def _cost(name: str, item: Any, counts: Mapping[tuple[str, Any], int]) -> tuple[float, int]:
    """Return how frequent the features of a question are already, each in proportion to its share."""
    task, answer, calls, template = _features(item)
    size = SIZES[name]
    cost = (
        counts[task] / size * 12
        + counts[answer] / size / _ANSWERS[answer[1]]
        + counts[calls] / size / _CALLS[calls[1]]
        + counts[template] / 6
    )
    return cost, zlib.crc32(f"{item.subject.name} {template}".encode())


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
    from agrotools.build.building import Group, build_samples
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
    twins = _with_twins([item for _, item in items]) if name == "embedded" else {}
    by_kind = {
        kind: [each for scene, item in items if scene.name == kind for each in twins.get(id(item), (item,))]
        for kind in SCENE_KINDS
    }
    groups = [Group(kind, f"scenes.{kind}", chosen) for kind, chosen in by_kind.items()]
    tally = Tally()
    samples = build_samples(
        groups, folder, toolset=AGROTOOLS, progress=progress, workers=workers, backends=backends, tally=tally
    )
    tally.check()
    scenes = {originals.files[file.path]: scene for scene, item in items for file in item.instance.files}
    described: dict[str, dict[str, Any]] = {}
    samples = [packed_sample(sample, originals, scenes, described) for sample in samples]
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
    samples = [sample.model_copy(update={"canary": canary, "may_abstain": bool(twins)}) for sample in samples]
    write_pack(pack_path(name), header, dict(sorted(described.items())), samples)
    print(f"{name}: {len(samples)} samples, {len(described)} files, {pack_path(name).stat().st_size // 1000} kB")


def _with_twins(items: Sequence[Any]) -> dict[int, Any]:
    """Return the pair of twins by the id of the answerable one, for ``TWINS`` questions spread over their kinds."""
    from agrotools.build.twins import with_twin

    pairs = [(item, pair) for item in items if len(pair := with_twin(item)) == 2]
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Any, Any]] = []
    for item, pair in pairs:
        ranked.append((seen[item.subject.of], zlib.crc32(item.query.encode()), item, pair))
        seen[item.subject.of] += 1
    ranked.sort(key=lambda each: each[:2])
    return {id(item): pair for *_, item, pair in ranked[:TWINS]}


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
