"""Bring the pack of ``field`` in line with today's templates and pictures, without choosing its questions anew.

Makes src/agrotools_benchmarks/data/field.jsonl.xz again.

    python training/revise_field.py DATA WORK [--most 9] [--out PACK]

``DATA`` holds the data sets, as ``pack_field.py`` reads them. A question stays as it is if its template gives the same
words, calls and answer today. It leaves if its template is gone, if one of its pictures is left out, or if it has no
clear answer any more. Else it is worded, answered and run anew, under its name. New templates, and those of new data
sets, are asked about the pictures of their parts, at most ``--most`` questions of a template and part, and no picture
and no source more often than in the whole benchmark; every such question with a clear answer may enter, whatever a tool
scores on it. Raise the version in ``pack_field.py`` first. WORK takes files, calls that were run, and ``changes.json``:
what left and why.
"""

import argparse
import json
import os
import shutil
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from field_parts import MOST_OF_A_PHOTOGRAPH, MOST_OF_A_SOURCE, PARTS, as_asked
from field_parts.converted import RECIPES
from field_parts.rejected import without_rejected
from paired import with_twins
from split_field import with_reach

TWINS = 0.1
"""Share of unanswerable ones among new questions; about that of the whole benchmark."""
LISTED = 0.22
"""Largest share of these that the list of files tells apart, as in the whole benchmark."""

MOST_OF_AN_ANSWER = 3
"""Most questions of a template for which one number is right, so that no constant answer is worth giving."""


@dataclass
class Revision:
    """What becomes of the questions of a benchmark.

    ``kept``: samples that stay, some in other words or with another answer; ``again``: questions that are run under the
    name of a sample; ``new``: questions of a part that are run and numbered; ``left``: reasons by the name of a sample.
    """

    kept: list[Any] = field(default_factory=list)
    again: dict[str, Any] = field(default_factory=dict)
    new: dict[str, list[Any]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--most", type=int, default=9, help="new questions of a template and part")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="the pack of the package, if not given")
    options = parser.parse_args()
    work = cast(Path, options.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AGROTOOLS_CACHE", str(work / "cache"))
    revise(options.data.resolve(), work, options.most, options.workers, options.out)


def revise(data: Path, work: Path, most: int, workers: int, out: Path | None) -> None:
    """Write the pack again, and print what differs."""
    from pack_field import UNUSED

    from agrotools.loading.pack import read_pack

    pack = read_pack("field")
    scratch = work / "scratch"
    scratch.mkdir(exist_ok=True)
    parts = [
        as_asked(PARTS[name](data / name, scratch))
        for name in PARTS
        if name not in UNUSED and (data / name).is_dir()
    ]
    revision = revised(pack.samples, parts, most)
    samples = run_questions(revision, parts, pack, work, workers)
    samples = without_common_answers(samples, revision)
    write(samples, revision, parts, pack, data, work, out)


def revised(samples: Sequence[Any], parts: Sequence[Any], most: int) -> Revision:
    """Decide what becomes of each sample, and choose new questions."""
    from agrotools_build.choosing import whole_question

    of_part: defaultdict[str, list[Any]] = defaultdict(list)
    for sample in samples:
        of_part[sample.id.rpartition("-")[0]].append(sample)
    revision = Revision()
    used = {part for sample in samples for part in whole_question(sample.query)}
    for part in parts:
        ours = of_part.pop(part.name, [])
        revise_part(part, ours, used, revision)
        add_questions(part, ours, used, revision, most)
    for name, ours in of_part.items():
        print(f"{name}: no data here, its {len(ours)} questions stay")
        revision.kept += ours
    return revision


def revise_part(part: Any, ours: Sequence[Any], used: set[str], revision: Revision) -> None:
    """Decide what becomes of the samples of a part."""
    templates = {each.template: each for each in part.questions}
    shown = paths_shown(part)
    candidates = questions_by_files(part, {sample.template for sample in ours})
    before = {sample.id: sample for sample in ours}
    for sample in ours:
        if not sample.answerable:
            continue
        item = of_subject(candidates[sample.template, files_of(sample.files)], sample)
        if item is None and sample.template in templates:
            item = asked_again(sample, templates[sample.template], part)
        if sample.template not in templates:
            revision.left[sample.id] = "its template is gone"
        elif not {file.path for file in sample.files} <= shown:
            revision.left[sample.id] = "its picture is left out"
        elif item is None:
            revision.left[sample.id] = (
                "it has no clear answer, or its pictures are not shown together"
            )
        else:
            revise_question(sample, item, used, revision)
    for twin in ours:
        if twin.answerable:
            continue
        again = twin_again(twin, part, revision)
        if again is None:
            revise_twin(twin, before.get(str(twin.twin)), shown, revision)
        else:
            revision.again[twin.id] = again


def paths_shown(part: Any) -> set[str]:
    """Return the stored paths of all files that questions of a part may show."""
    paths: set[str] = set()
    for subject in part.subjects:
        for index in range(subject.things):
            paths |= {file.path for file in subject.shown(index, 1).files}
        for files in subject.instead.values():
            paths |= {*files, *(file.path for file in files.values())}
    return paths


def files_of(files: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted(str(file.sha256) for file in files))


def questions_by_files(
    part: Any, wanted: set[str]
) -> defaultdict[tuple[str, tuple[str, ...]], list[Any]]:
    """Return the questions of today's templates about a part, by template and the files that they show."""
    from agrotools_build.choosing import ask_subject
    from agrotools_build.sources.assembling import SEED

    found: defaultdict[tuple[str, tuple[str, ...]], list[Any]] = defaultdict(list)
    for template in part.questions:
        if template.template not in wanted:
            continue
        for subject in part.subjects:
            item = ask_subject(subject, template, SEED)
            if item is not None:
                found[template.template, files_of(item.instance.files)].append(item)
    return found


def of_subject(items: Sequence[Any], sample: Any) -> Any:
    """Return the question about the subject of a sample, else the first; None if there is none.

    Several subjects may be in one picture: three apples and the next three, or its halves across and down.
    """
    named = sample.metadata.get("subject")
    same = (item for item in items if item.subject.name == named)
    return next(same, items[0] if items else None)


def asked_again(sample: Any, template: Any, part: Any) -> Any:
    """Return the question of a template about the pictures of a sample; None if no subject has them all."""
    from agrotools_build.choosing import Chosen
    from agrotools_build.sources.assembling import SEED

    paths = [file.path for file in sorted(sample.files, key=lambda each: each.name)]
    for subject in part.subjects:
        if subject.of != template.of or template.things != len(paths) or template.beside:
            continue
        index_of = {subject.shown(index, 1).files[0].path: index for index in range(subject.things)}
        if not all(path in index_of for path in paths):
            continue
        things = [subject.shown(index_of[path], number) for number, path in enumerate(paths, 1)]
        rng = np.random.default_rng([SEED, zlib.crc32(sample.id.encode())])
        if (instance := template.instantiate(things, rng)) is not None:
            return Chosen(subject, template, instance, wording="")
    return None


def revise_question(sample: Any, item: Any, used: set[str], revision: Revision) -> None:
    """Keep a question, or word and answer it anew; run its calls again if they differ."""
    from agrotools_build.building import measured_difficulty, with_plot_weights
    from agrotools_build.choosing import whole_question, worded

    instance = item.instance
    same = [
        wording for wording in item.question.wordings if instance.query(wording) == sample.query
    ]
    answer = with_plot_weights(instance.slots)
    steps = sample.reference.steps
    same_calls = [call.tool for call in instance.calls] == [step.tool for step in steps]
    if same:
        said = replace(item, wording=same[0])
    else:
        used.difference_update(whole_question(sample.query))
        said = worded(item, (), used, whole_question)
        if said is None:
            revision.left[sample.id] = "no words of its template are left"
            return
        used.update(whole_question(said.query))
    truths = [step.truth for step in steps]
    same_truths = same_calls and all(
        call.truth is None or call.truth == truth
        for call, truth in zip(instance.calls, truths, strict=True)
    )
    same_numbers = same or not any(
        isinstance(value, int | float) for value in numbers_given(instance.calls)
    )
    cluster = f"{sample.id.rpartition('-')[0]} {item.subject.cluster}"
    update = {
        "groups": {**sample.groups, **item.subject.groups},
        "cluster": cluster if item.subject.cluster else None,
    }
    if same_truths and same_numbers:
        difficulty = measured_difficulty(instance, sample.reference)
        update |= {"query": said.query, "answer": answer, "difficulty": difficulty}
        update["files"] = with_notes_of(instance.files, sample.files)
        revision.kept.append(sample.model_copy(update=update))
    else:
        revision.again[sample.id] = said


def with_notes_of(shown: Sequence[Any], files: Sequence[Any]) -> tuple[Any, ...]:
    """Return files with the notes that the same pictures have in ``shown``."""
    notes = {str(file.sha256): file.note for file in shown}
    return tuple(
        file.model_copy(update={"note": notes[str(file.sha256)]})
        if str(file.sha256) in notes
        else file
        for file in files
    )


def numbers_given(calls: Sequence[Any]) -> list[Any]:
    """Return the variables of calculations, which a question may give as numbers."""
    return [
        value
        for call in calls
        if call.tool == "calculate"
        for value in cast("dict[str, Any]", call.arguments.get("variables") or {}).values()
    ]


def twin_again(twin: Any, part: Any, revision: Revision) -> Any:
    """Return an unanswerable question about the same pictures, where its twin is run anew; None if there is none."""
    from agrotools_build.twins import unanswerable_twin

    asked = revision.again.get(str(twin.twin))
    if asked is None:
        return None
    found = unanswerable_twin(asked, part.subjects)
    is_same = found is not None and files_of(found.instance.files) == files_of(twin.files)
    return found if is_same else None


def revise_twin(twin: Any, before: Any, shown: set[str], revision: Revision) -> None:
    """Keep an unanswerable question in the words of its twin; it leaves with it, or if the calls differ now.

    ``before``: its twin as it was. A file that had the same note in both has the same one again.
    """
    asked = next((each for each in revision.kept if each.id == twin.twin), None)
    if asked is None:
        revision.left[twin.id] = (
            "its twin is run anew" if twin.twin in revision.again else "its twin left"
        )
    elif not {file.path for file in twin.files} <= shown | {file.path for file in asked.files}:
        revision.left[twin.id] = "its picture is left out"
    else:
        refusal = twin.answer[0].model_copy(update={"asks": asked.answer})
        notes = {
            old.note: new.note
            for old, new in zip(before.files, asked.files, strict=True)
            if old.note != new.note
        }
        files = tuple(
            file.model_copy(update={"note": notes.get(file.note, file.note)}) for file in twin.files
        )
        changes = {
            "query": asked.query,
            "answer": (refusal,),
            "cluster": asked.cluster,
            "files": files,
        }
        groups = {**twin.groups, **{k: v for k, v in asked.groups.items() if k not in twin.groups}}
        revision.kept.append(twin.model_copy(update={**changes, "groups": groups}))


def add_questions(
    part: Any, ours: Sequence[Any], used: set[str], revision: Revision, most: int
) -> None:
    """Choose questions of templates that no sample of the part has, as many as there is room for."""
    from agrotools_build.choosing import choose, whole_question
    from agrotools_build.sources.assembling import SEED

    known = {sample.template for sample in ours}
    templates = [each for each in part.questions if each.template not in known]
    staying = {sample.id for sample in revision.kept} | revision.again.keys()
    shown = Counter(
        file.path for each in ours if each.id in staying and each.answerable for file in each.files
    )
    room = min(MOST_OF_A_SOURCE, part.samples) - sum(each.id in staying for each in ours)
    if not templates or room < 1:
        return
    chosen = choose(
        part.subjects,
        templates,
        room,
        SEED,
        used,
        most_of_a_file=MOST_OF_A_PHOTOGRAPH,
        most_of_a_kind=most,
        shown=shown,
        may_share=True,
    )
    used.update(each for item in chosen for each in whole_question(item.query))
    more = room - len(chosen)
    if more > 0 and chosen:
        chosen = with_twins(
            chosen,
            TWINS,
            listed=LISTED,
            subjects=part.subjects,
            source_of=lambda _: part.source.name,
            most_of_a_source=len(chosen) + more,
        )
    if chosen:
        revision.new[part.name] = chosen


def run_questions(
    revision: Revision, parts: Sequence[Any], pack: Any, work: Path, workers: int
) -> list[Any]:
    """Return all samples: those that stay, and the others after their calls were run."""
    from agrotools.formats.benchmark import FILES_FOLDER
    from agrotools.runner.progress import stage_progress
    from agrotools_build.building import Group, build_samples
    from agrotools_tools import AGROTOOLS

    twins = {sample.id: sample.twin for sample in pack.samples}
    refusals = {sample.id for sample in pack.samples if not sample.answerable}
    folder = work / "new"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / FILES_FOLDER).mkdir(parents=True)
    groups: list[Any] = []
    for part in parts:
        names = [name for name in revision.again if name.rpartition("-")[0] == part.name]
        # Each question that is run under its name is a group with its twin, so that their samples can be found.
        ours = [
            (name, with_twin_again(revision.again[name], revision.again.get(str(twins[name]))))
            for name in names
            if name not in refusals
        ]
        ours += [(part.name, revision.new[part.name])] if part.name in revision.new else []
        for prefix, chosen in ours:
            groups.append(Group(prefix, part.source.name, chosen))
            for path in {file.path for item in chosen for file in item.instance.files}:
                if not (folder / path).exists():
                    shutil.copyfile(part.files[path], folder / path)
    built, tally = build_samples(
        groups,
        folder,
        toolset=AGROTOOLS,
        progress=stage_progress(sys.stderr),
        workers=workers,
        people_decide=True,
        open_executor=executor_with(recorded_calls(pack.samples)),
    )
    print(f"run: {len(built)} of {tally.run} {tally.metadata()}")
    by_name: dict[str, Any] = {}
    for sample in built:
        asked = sample.id.rpartition("-")[0]
        if asked in revision.again:
            by_name[asked if sample.answerable else str(twins[asked])] = sample
    for name in revision.again:
        if name not in by_name:
            revision.left[name] = "its calls do not give its answer"
    changed = [
        by_name[name].model_copy(
            update={
                "id": name,
                "twin": twins[name] if twins[name] in by_name else None,
                "cluster": cluster_named(by_name[name], name.rpartition("-")[0]),
            }
        )
        for name in revision.again
        if name in by_name
    ]
    came = [each for each in built if each.id.rpartition("-")[0] in revision.new]
    new = numbered(came, pack.samples)
    lost = revision.left.keys()
    kept = [
        each.model_copy(update={"twin": None}) if each.answerable and each.twin in lost else each
        for each in revision.kept
    ]
    canary = pack.header.canary
    return [
        *kept,
        *(each.model_copy(update={"canary": canary, "may_abstain": True}) for each in changed),
        *(each.model_copy(update={"canary": canary, "may_abstain": True}) for each in new),
    ]


def with_twin_again(asked: Any, twin: Any) -> list[Any]:
    """Return a question that is run anew, and its unanswerable twin if that is, too."""
    from agrotools_build.twins import paired

    return [asked] if twin is None else [*paired(asked, twin)]


def cluster_named(sample: Any, part: str) -> str | None:
    """Return the cluster of a sample that was run in a group of its own, under the name of its part."""
    group = sample.id.rpartition("-")[0]
    return (sample.cluster or "").replace(group, part) or None


def recorded_calls(samples: Sequence[Any]) -> dict[str, Any]:
    """Return what calls on pictures returned when the benchmark was built, by what the calls are.

    A new question about the same part of a picture gets the same result, also where the model that gave it (a head for
    crop and weeds, the recogniser of pests) is not on this machine.
    """
    from agrotools.core.record import literal_value

    found: dict[str, Any] = {}
    for sample in samples:
        for step in sample.reference.steps:
            key = call_key(step.tool, literal_value(dict(step.arguments)), sample.files)
            found.setdefault(key, step.observation)
    return found


def call_key(tool: str, arguments: Any, files: Sequence[Any]) -> str:
    """Return what names a call: its tool and arguments, with the hashes of files in place of their names."""
    digests = {file.name: str(file.sha256) for file in files}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [plain(each) for each in value]
        return digests.get(value, value) if isinstance(value, str) else value

    return json.dumps([tool, plain(arguments)], sort_keys=True)


def executor_with(recorded: dict[str, Any]) -> type:
    """Return the kind of executor that returns recorded results, and runs all other calls."""
    from agrotools.calling.execution import ToolExecutor
    from agrotools.core.record import ToolOutcome

    class RecordedFirst(ToolExecutor):
        async def run(self, call: Any, workspace: Any, toolset: Any) -> Any:
            key = call_key(call.tool, dict(call.arguments), workspace.files)
            if call.tool not in _EXACT and key in recorded:
                return ToolOutcome(recorded[key], source="recording")
            return await super().run(call, workspace, toolset)

    return RecordedFirst


_EXACT = ("calculate", "plot", "lookup_agronomy")
"""Tools that read no picture and run at once."""


def numbered(built: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """Return new samples with numbers after those of all samples of their part, and their twins renamed."""
    last = Counter[str]()
    for sample in before:
        prefix, _, number = sample.id.rpartition("-")
        last[prefix] = max(last[prefix], int(number))
    names: dict[str, str] = {}
    for sample in built:
        prefix = sample.id.rpartition("-")[0]
        last[prefix] += 1
        names[sample.id] = f"{prefix}-{last[prefix]:03d}"
    return [
        each.model_copy(update={"id": names[each.id], "twin": names.get(str(each.twin))})
        for each in built
    ]


def without_common_answers(samples: Sequence[Any], revision: Revision) -> list[Any]:
    """Return the samples without those that leave a template whose numbers are too much alike.

    Of the questions of a template, no number may be right for more than :data:`MOST_OF_AN_ANSWER`. Which of them leave
    is drawn by a hash of their words and pictures.
    """
    from field_parts.rejected import question_key

    met: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    lost: set[str] = set()
    for sample in sorted(samples, key=question_key):
        numbers = [slot for slot in sample.answer if slot.type == "tolerance"]
        if not sample.answerable or not numbers:
            continue
        value, margin = numbers[0].value, numbers[0].margin
        before = met[str(sample.template)]
        tried = [value - margin, value, value + margin, *(each for each, _ in before)]
        most = max(
            sum(abs(number - each) <= near for each, near in before)
            for number in tried
            if abs(number - value) <= margin
        )
        if most >= MOST_OF_AN_ANSWER:
            lost.add(sample.id)
            revision.left[sample.id] = (
                "a number that is right for it is right for three others, too"
            )
        else:
            before.append((value, margin))
    kept: list[Any] = []
    for sample in samples:
        if not sample.answerable and sample.twin in lost:
            revision.left[sample.id] = "its twin left"
        elif sample.id not in lost:
            kept.append(sample)
    names = {sample.id for sample in kept}
    return [
        each.model_copy(update={"twin": None}) if each.twin and each.twin not in names else each
        for each in kept
    ]


def recorded_scores(samples: Sequence[Any]) -> dict[str, float]:
    """Return what the recorded results of the reference calls score, which is the score of the oracle."""
    from agrotools.core.taxonomy import PlotSpec
    from agrotools.formats.reference_results import derived_values
    from agrotools.scoring.plots import score_plot
    from agrotools.scoring.slot_weights import weighted_mean
    from agrotools.scoring.slots import score_slot
    from agrotools.text.answer_form import format_answer

    scores: dict[str, float] = {}
    for sample in samples:
        if not sample.answerable:
            continue
        observed = [step.observation.result for step in sample.reference.steps]
        said = format_answer(sample.answer, derived_values(sample.answer, observed))
        charts = [result["spec"] for result in observed if result and "spec" in result]
        chart = PlotSpec.model_validate(charts[-1]) if charts else None
        slots = [slot for slot in sample.answer if not slot.free_text]
        points = [
            score_plot(PlotSpec.model_validate(slot.value), chart, slot.rel_tol, slot.abs_tol)[0]
            if slot.made_by_tools
            else score_slot(slot, sample.answer, said).value
            for slot in slots
        ]
        scores[sample.id] = weighted_mean(slots, points)
    return scores


def write(
    samples: list[Any],
    revision: Revision,
    parts: Sequence[Any],
    pack: Any,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Write the pack, its reviews and the list of what changed."""
    from pack_field import OUT, VERSION, described_data_sets, metadata_of, originals_of, quick_ids
    from revise_packs import carry_over

    from agrotools.formats.benchmark import content_hash_of, with_clusters
    from agrotools.loading.pack import write_pack
    from agrotools_benchmarks.field.load import with_equal_task_types
    from agrotools_build.building import with_levels

    samples = without_rejected(with_clusters(sorted(samples, key=lambda each: each.id)))
    samples = with_reach(with_levels(samples), recorded_scores(samples))
    samples = with_equal_task_types(samples)
    used = {file.path for sample in samples for file in sample.files}
    files: dict[str, Any] = {path: facts for path, facts in pack.files.items() if path in used}
    for file in RECIPES.values():
        if file.path in used - files.keys():
            files[file.path] = file.model_dump(exclude={"path"}, exclude_defaults=True)
    for name in PARTS:
        if used - files.keys() and (data / name / "truth.json").is_file():
            found = {each.path: each for each in originals_of(data, name).values()}
            for path in (used - files.keys()) & found.keys():
                files[path] = found[path].model_dump(exclude={"path"}, exclude_defaults=True)
    if lost := used - files.keys():
        raise SystemExit(f"{len(lost)} files are in no data set, such as {min(lost)}")
    stored = {path: local for part in parts for path, local in part.files.items()}
    sizes = {
        path: facts.get("size") or stored[path].stat().st_size for path, facts in files.items()
    }
    data_sets = described_data_sets(pack.described["data_sets"], samples, files)
    header = pack.header.model_copy(
        update={
            "version": VERSION,
            **terms_of(data_sets),
            "quick": quick_ids(samples, sizes),
            "metadata": metadata_of(pack.header.metadata, samples),
        }
    )
    facts = {key: value for key, value in pack.described.items() if key not in ("header", "files")}
    facts["data_sets"] = data_sets
    facts["content_hash"] = content_hash_of(header, samples)
    target = out or OUT
    write_pack(target, header, {path: files[path] for path in sorted(files)}, samples, **facts)
    carry_over("field", pack.samples, samples, target.parent)
    note_changes(pack.samples, samples, revision, work)
    print(
        f"{len(samples)} questions, {len(files)} files, {target.stat().st_size:,} bytes, {facts['content_hash']}"
    )


def terms_of(data_sets: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the header fields ``sources`` and ``licence`` for the data sets that are asked about."""
    from agrotools_benchmarks.field.pack import DataSetNote

    notes = [DataSetNote.model_validate(each) for each in data_sets]
    used = {note.source.name: note.source for note in notes if not note.unused}
    terms = "; ".join(f"{name}: {source.licence}" for name, source in used.items()).rstrip(".")
    licence = f"{terms}. Questions and reference calls: Apache-2.0."
    return {"sources": tuple(used.values()), "licence": licence}


def note_changes(
    before: Sequence[Any], after: Sequence[Any], revision: Revision, work: Path
) -> None:
    """Write ``changes.json`` and print its counts."""
    old, new = ({sample.id: sample for sample in some} for some in (before, after))
    left = {
        name: {
            "template": old[name].template,
            "question": old[name].query,
            "reason": revision.left.get(name, "it was rejected"),
        }
        for name in sorted(old.keys() - new.keys())
    }
    came = {name: new[name].template for name in sorted(new.keys() - old.keys())}
    changed = {
        name: new[name].template
        for name in sorted(old.keys() & new.keys())
        if old[name].query != new[name].query or old[name].answer != new[name].answer
    }
    content = {"left": left, "came": came, "changed": changed, "run again": sorted(revision.again)}
    (work / "changes.json").write_text(json.dumps(content, indent=1), "utf-8")
    print("left", Counter((each["template"], each["reason"]) for each in left.values()))
    print("came", Counter(came.values()))
    print("changed", Counter(changed.values()))


if __name__ == "__main__":
    main()
