"""Bring packed benchmarks of drawn scenes in line with today's templates, without choosing their questions anew.

Makes embedded.jsonl.xz and frontier.jsonl.xz in src/agrotools_benchmarks/data again.

    python training/revise_packs.py WORK [--names embedded frontier] [--add TEMPLATE [--scenes 16]] [--out DIR]

Task types follow the templates; questions whose template is gone leave, with their twins. ``--add``: also ask a new
template about scenes whose seeds no benchmark has drawn, as far as the classes in ``membership.toml`` allow it; every
such question with a clear answer enters, whatever a tool scores on it. All other questions keep their ids, files,
answers and recorded results, the quick part has the same questions, and decisions of reviews are carried over. Raise
the versions in ``pack_benchmarks.py`` first.
"""

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent))

FIRST_NEW = 300
"""Scenes of a kind before this one may be in a pack (``pack_benchmarks.py`` draws fewer)."""


def main() -> None:
    from pack_benchmarks import SHIPPED, SIZES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--names", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--add", nargs="*", default=[], help="new templates of the first benchmark")
    parser.add_argument("--scenes", type=int, default=16, help="new scenes for each of them")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder of the packs")
    options = parser.parse_args()
    work = cast(Path, options.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AGROTOOLS_CACHE", str(work / "cache"))
    for number, name in enumerate(options.names):
        added = options.add if number == 0 else []
        revise(name, work, added, options.scenes, options.workers, options.out)


def revise(
    name: str, work: Path, added: Sequence[str], scenes: int, workers: int, out: Path
) -> None:
    """Write the pack of a benchmark and the decisions of its review again, and print what differs."""
    from pack_benchmarks import VERSIONS, in_order

    from agrotools.formats.writing import canary_of
    from agrotools.loading.pack import read_pack, write_pack
    from agrotools_build.building import with_levels

    pack = read_pack(name)
    version = VERSIONS[name]
    canary = canary_of(name, version)
    kept = [
        sample.model_copy(update={**types, "canary": canary})
        for sample in pack.samples
        if (types := types_of(sample)) is not None
    ]
    files = dict(pack.files)
    new = new_samples(name, work, added, scenes, workers, kept, files)
    new = [
        sample.model_copy(update={"canary": canary, "may_abstain": kept[0].may_abstain})
        for sample in new
    ]
    samples = in_order(with_levels([*kept, *new]), pack.header.quick)
    used = {file.path for sample in samples for file in sample.files}
    quick = tuple(sample.id for sample in samples if sample.id in pack.header.quick)
    assert len(quick) == len(pack.header.quick), "the quick part lost a sample"
    update = {"version": version, "canary": canary, "quick": quick}
    header = pack.header.model_copy(update=update)
    print_changes(pack.samples, samples)
    path = out / f"{name}.jsonl.xz"
    write_pack(path, header, {each: files[each] for each in sorted(used)}, samples)
    carry_over(name, pack.samples, samples, out)
    print(f"{name} {version}: {len(samples)} samples, {path.stat().st_size // 1000} kB")


def types_of(sample: Any) -> dict[str, str] | None:
    """Return family and task type of a sample as its template says today; None if the template is gone."""
    from agrotools.core import FAMILY_OF_TASK_TYPE
    from agrotools_build.sources.drawn.drawing import SCENE_KINDS
    from agrotools_build.templates import load_templates

    kind = SCENE_KINDS[sample.source.removeprefix("scenes.")]
    for file in kind.templates:
        for template in load_templates(file):
            if template.template == sample.template:
                family = FAMILY_OF_TASK_TYPE[template.task_type]
                return {"task_type": template.task_type, "family": family}
    return None


def new_samples(
    name: str,
    work: Path,
    added: Sequence[str],
    scenes: int,
    workers: int,
    kept: Sequence[Any],
    described: dict[str, Any],
) -> list[Any]:
    """Return samples of new templates about new scenes, numbered after those that are kept."""
    from pack_benchmarks import SEED, _Offers, packed_sample
    from revise_field import numbered

    from agrotools.formats.benchmark import FILES_FOLDER
    from agrotools.runner.progress import stage_progress
    from agrotools_build.building import Group, build_samples
    from agrotools_build.choosing import worded
    from agrotools_build.sources.drawn.drawing import SCENE_KINDS, draw_all
    from agrotools_build.sources.part import Originals
    from agrotools_build.templates import load_templates
    from agrotools_build.templates.wording import sentences
    from agrotools_tools import AGROTOOLS

    if not added:
        return []
    originals, progress = Originals(work), stage_progress(sys.stderr)
    offers = _Offers(name, originals, SEED)
    used = {sentence for sample in kept for sentence in sentences(sample.query)}
    groups: list[Any] = []
    drawn_in: dict[Path, Any] = {}
    for kind_name, kind in SCENE_KINDS.items():
        templates = {each.template for file in kind.templates for each in load_templates(file)}
        if templates.isdisjoint(added):
            continue
        first = SEED + 1_000 * kind.number + FIRST_NEW
        later = (order for order in offers.orders_of(kind_name) if order.seed >= first)
        drawn = draw_all([*islice(later, scenes)], work / "scenes", progress, workers)
        drawn_in |= {scene.folder: scene for scene in drawn}
        chosen: list[Any] = []
        for scene in drawn:
            # One question a scene, as in the whole benchmark.
            asked = (item for item in offers.asked(scene) if item.question.template in added)
            item = next((each for each in asked), None)
            before = [each for each in chosen if item and each.question == item.question]
            if item is not None and (said := worded(item, before, used)) is not None:
                used.update(sentences(said.query))
                chosen.append(said)
        groups.append(Group(kind_name, f"scenes.{kind_name}", chosen))
    folder = work / f"new-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / FILES_FOLDER).mkdir(parents=True)
    items = [item for group in groups for item in group.chosen]
    for stored in {file.path for item in items for file in item.instance.files}:
        (folder / stored).hardlink_to(originals.files[stored])
    backends = {
        tool: backend for kind in SCENE_KINDS.values() for tool, backend in kind.backends.items()
    }
    samples, tally = build_samples(
        groups, folder, toolset=AGROTOOLS, progress=progress, workers=workers, backends=backends
    )
    print(f"new: {len(samples)} of {tally.run} questions {tally.metadata()}")
    return [packed_sample(each, originals, drawn_in, described) for each in numbered(samples, kept)]


def print_changes(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Print the samples that left, those that came, and how many moved from one task type to another."""
    old, new = ({sample.id: sample for sample in each} for each in (before, after))
    left = Counter(old[each].template for each in old.keys() - new.keys())
    came = Counter(new[each].template for each in new.keys() - old.keys())
    moved = Counter((old[each].task_type, new[each].task_type) for each in old.keys() & new.keys())
    print(f"left: {dict(left)}; came: {dict(came)}")
    for (was, now), count in sorted(moved.items()):
        if was != now:
            print(f"{was} -> {now}: {count}")


def carry_over(name: str, before: Sequence[Any], after: Sequence[Any], out: Path) -> None:
    """Write the decisions of reviews again, of those questions whose words, files and answers stayed."""
    from agrotools.packages import packaged_file
    from agrotools_build.review.versions import content_of

    reviews = packaged_file(f"{name}.review.jsonl")
    if reviews is None:
        return
    new = {sample.id: sample for sample in after}
    held = {
        content_of(old): content_of(new[old.id])
        for old in before
        if old.id in new and decided_on(old) == decided_on(new[old.id])
    }
    lines = [json.loads(line) for line in reviews.read_text("utf-8").splitlines()]
    kept = [{**line, "content": held[line["content"]]} for line in lines if line["content"] in held]
    text = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in kept
    )
    (out / reviews.name).write_text(text, "utf-8")
    print(f"{name}: {len(kept)} of {len(lines)} decisions are on questions that stayed")


def decided_on(sample: Any) -> tuple[Any, ...]:
    """Return what a review decides on: the words, the files with their notes, and the answer."""
    shown = tuple((file.name, file.sha256, file.note) for file in sample.files)
    return sample.query, shown, sample.answer


if __name__ == "__main__":
    main()
