import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from agrotools.calling import get_tool
from agrotools.calling.execution import ToolExecutor
from agrotools.core import BENCHMARKS, FAMILY_OF_TASK_TYPE, BenchmarkError
from agrotools.formats.benchmark import content_hash_of
from agrotools.loading import Loading, load_benchmark
from agrotools.loading.benchmarks import load_as
from agrotools.loading.pack import Pack, read_pack
from agrotools.loading.validate import validate_folder
from agrotools.scoring.constants import ConstantScores, ConstantTable
from agrotools.scoring.metrics import counts_in_guess
from agrotools.scoring.slots import guess_points, score_slot
from agrotools.text.answer_form import format_answer
from agrotools_benchmarks.embedded import load as embedded
from agrotools_build.deciding import count_deciding
from agrotools_build.sources.drawn.drawing import SCENE_KINDS
from agrotools_build.templates import load_templates
from agrotools_build.templates.wording import sentences
from support.caches import separate_cache
from support.small_pack import small_pack, use_pack


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Pack:
    return small_pack(tmp_path_factory.mktemp("pack") / "small.jsonl.xz")


@pytest.fixture
def folder(tmp_path, monkeypatch, packed):
    separate_cache(monkeypatch, tmp_path / "cache")
    return use_pack(monkeypatch, packed)


@pytest.fixture(scope="module")
def drawn_before(tmp_path_factory, packed):
    """The folder into which the small pack was drawn, the progress, and the benchmark."""
    progress = []
    with pytest.MonkeyPatch.context() as patch:
        separate_cache(patch, tmp_path_factory.mktemp("drawn"))
        patch.setattr(ToolExecutor, "__init__", None)  # no tool may run
        made = use_pack(patch, packed)
        benchmark = load_benchmark("embedded", progress=lambda *stage: progress.append(stage))
    return made, progress, benchmark


@pytest.mark.process
def test_drawn_once_then_used_from_the_cache(folder, drawn_before, packed):
    made, progress, first = drawn_before
    assert progress == [("scenes", done, 4) for done in range(5)]
    assert validate_folder(made) == []
    assert first.content_hash == content_hash_of(packed.header, packed.samples)
    shutil.copytree(made, folder)
    again = []
    second = load_benchmark("embedded", progress=lambda *stage: again.append(stage))
    assert again == []
    assert second.content_hash == first.content_hash
    assert second.synthetic
    assert list(second.samples) == list(first.samples)


@pytest.mark.process
def test_the_quick_part_is_drawn_alone_and_completed_later(folder, drawn_before, packed):
    progress = []
    quick = load_benchmark("embedded", quick=True, progress=lambda *stage: progress.append(stage))
    assert progress == [("scenes", 0, 1), ("scenes", 1, 1)]
    assert quick.content_hash == drawn_before[2].content_hash
    assert [sample.id for sample in quick.samples] == [sample.id for sample in packed.samples]
    there = {
        sample.id: all(map(os.path.exists, map(quick.file_path, sample.files)))
        for sample in quick.samples
    }
    assert [each for each, is_there in there.items() if is_there] == list(packed.header.quick)
    shutil.copytree(drawn_before[0] / "files", folder / "files", dirs_exist_ok=True)
    whole = load_benchmark("embedded", progress=lambda *stage: progress.append(stage))
    assert progress[-1] == ("scenes", 3, 3)
    assert validate_folder(whole.root) == []


@pytest.mark.process
def test_with_files_later_each_scene_is_drawn_when_a_sample_of_it_is_prepared(folder, drawn_before):
    whole = drawn_before[2]
    later = load_as("embedded", Loading(files_later=True))
    assert not folder.exists()
    assert (later.content_hash, later.header) == (whole.content_hash, whole.header)
    assert [sample.cluster for sample in later.samples] == [
        sample.cluster for sample in whole.samples
    ]
    first, second = whole.samples[:2]
    assert later.prepare(later.samples[0]) == first
    assert {f"files/{path.name}" for path in (folder / "files").iterdir()} == {
        file.path for file in first.files
    }
    for file in first.files:
        assert later.file_path(file).read_bytes() == whole.file_path(file).read_bytes()
    again = load_as("embedded", Loading(files_later=True))
    _alter(folder)
    assert [again.prepare(sample) for sample in (first, second)] == [first, second]
    assert embedded.is_intact(folder) is True


def _alter(folder):
    victim = min((folder / "files").iterdir())
    victim.write_bytes(victim.read_bytes() + b"x")


@pytest.mark.process
@pytest.mark.parametrize(
    "damage", [_alter, lambda folder: (folder / "samples.jsonl").unlink(),
               lambda folder: (folder / "manifest.json").unlink(),
               lambda folder: (folder / "manifest.json").write_text("{"),
               lambda folder: (folder / "manifest.json").write_text("5")],
)  # fmt: skip
def test_a_damaged_copy_is_noticed(folder, drawn_before, damage):
    shutil.copytree(drawn_before[0], folder)
    assert embedded.is_intact(folder)
    damage(folder)
    assert not embedded.is_intact(
        folder, {f"files/{path.name}" for path in (folder / "files").iterdir()}
    )


def _with_look(**changes):
    return lambda entry: entry | {"look": entry["look"] | changes}


@pytest.mark.process
def test_pixels_that_differ_by_rounding_are_said_and_another_picture_is_refused(
    tmp_path, monkeypatch
):
    separate_cache(monkeypatch, tmp_path / "cache")
    rounded = small_pack(tmp_path / "rounded.xz", _with_look(pixels="0" * 64), samples=1)
    use_pack(monkeypatch, rounded)
    with pytest.warns(UserWarning, match="files differ from the recorded ones by rounding"):
        assert load_benchmark("embedded").content_hash == content_hash_of(
            rounded.header, rounded.samples
        )
    use_pack(
        monkeypatch,
        small_pack(tmp_path / "other.xz", _with_look(pixels="0" * 64, blocks="00" * 36), samples=1),
    )
    with pytest.raises(
        BenchmarkError, match="draws another picture than the recorded one"
    ) as caught:
        load_benchmark("embedded")
    assert "other versions of numpy" in caught.value.hint


def test_a_cache_that_cannot_be_written_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(BenchmarkError, match="cannot be written") as caught:
        load_benchmark("embedded")
    assert "AGROTOOLS_CACHE" in caught.value.hint
    later = load_as("embedded", Loading(files_later=True))
    with pytest.raises(BenchmarkError, match="cannot be written"):
        later.prepare(later.samples[0])


_LOAD = """
import json, pathlib, sys
from agrotools.loading import Loading, load_benchmark
from agrotools_benchmarks.embedded import load
from agrotools.loading.pack import Pack
pack = Pack(pathlib.Path(sys.argv[1]).read_bytes())
load.read_pack = lambda _: pack
drawn, draw = [], load.DrawnFiles._draw
load.DrawnFiles._draw = lambda self, scene, paths: (drawn.append(scene), draw(self, scene, paths))
benchmark = load_benchmark("embedded")
print(json.dumps({"hash": benchmark.content_hash, "scenes": drawn}))
"""


def _loading(path):
    command = [sys.executable, "-c", _LOAD, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
def test_after_a_kill_the_next_loads_draw_the_rest_and_each_scene_is_drawn_by_one_process(
    tmp_path, monkeypatch
):
    separate_cache(monkeypatch, tmp_path / "cache")
    folder = use_pack(monkeypatch, small_pack(tmp_path / "small.xz"))
    killed = _loading(tmp_path / "small.xz")
    until = time.monotonic() + 120
    while not (folder / "manifest.json").exists() and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    runs = [_loading(tmp_path / "small.xz") for _ in range(2)]
    results = [json.loads(run.communicate(timeout=240)[0]) for run in runs]
    assert len({result["hash"] for result in results}) == 1
    drawn = [tuple(scene) for result in results for scene in result["scenes"]]
    assert 0 < len(drawn) == len(set(drawn)) < 4
    assert validate_folder(folder) == []
    assert not [path for path in (folder / ".scenes").iterdir() if path.suffix != ".lock"]


def _scene(pack, file):
    return str(pack.files[file.path]["scene"])


@pytest.mark.parametrize("name", ["embedded", "frontier"])
def test_packs_are_of_the_current_tools_and_share_no_scene_or_sentence(name):
    pack = read_pack(name)
    assert pack.header.metadata["tools"] == {
        tool: get_tool(tool).version for tool in pack.header.toolset
    }
    assert {file.path for sample in pack.samples for file in sample.files} == set(pack.files)
    for sample in pack.samples:
        assert all(pack.files[file.path]["look"]["pixels"] == file.pixels for file in sample.files)
        looks_enough = sample.answer_type != "plot" and all(
            file.kind == "image" for file in sample.files
        )
        assert sample.no_tool_eligible is (
            looks_enough and not any(slot.type == "abstain" for slot in sample.answer)
        )
        assert all(step.observation is not None for step in sample.reference.steps)
    alone = [
        sample
        for sample in pack.samples
        if not any(slot.type == "abstain" for slot in sample.answer)
    ]
    scenes = Counter(
        scene
        for sample in alone
        for scene in {str(pack.files[file.path]["scene"]) for file in sample.files}
    )
    assert set(scenes.values()) == {1}
    shared = Counter(sentence for sample in alone for sentence in set(sentences(sample.query)))
    assert [sentence for sentence, times in shared.items() if times > 1] == []


def test_the_questions_ask_all_of_a_drawing_and_the_quick_part_is_like_the_whole():
    pack = read_pack("embedded")
    samples, quick = (
        pack.samples,
        [sample for sample in pack.samples if sample.id in pack.header.quick],
    )
    assert 24 <= len(quick) <= 70
    for feature in ("task_type", "answer_type", "answerable"):
        whole, part = (
            Counter(getattr(sample, feature) for sample in each) for each in (samples, quick)
        )
        assert whole.keys() == part.keys()
        assert all(
            abs(part[each] / len(quick) - n / len(samples)) < 0.03 for each, n in whole.items()
        )
    assert [sample.id for sample in samples[:5]] == list(pack.header.quick[:5])
    assert all(
        sample.answerable and file.kind == "image" for sample in quick[:5] for file in sample.files
    )
    assert {"tolerance", "exact", "plot"} <= {sample.answer_type for sample in quick}
    assert {len(sample.reference.steps) for sample in samples} == {1, 2, 3, 4, 5, 6, 7, 8}
    refused = [
        (sample, sample.answer[0].reason)
        for sample in samples
        if sample.answer[0].type == "abstain"
    ]
    assert len(refused) >= 0.15 * len(samples)
    assert {reason for _, reason in refused} == {
        "no_scale",
        "no_data",
        "wrong_subject",
        "unfit_image",
        "within_error",
    }
    blank = [sample for sample, reason in refused if reason == "unfit_image"]
    assert {file.kind for sample in blank for file in sample.files} == {
        "image"
    }  # trees can be counted in heights
    calls = [
        step
        for sample in samples
        for step in sample.reference.steps
        if step.tool == "lookup_agronomy"
    ]
    assert len({call.arguments["kb_id"] for call in calls}) >= 20
    topics = [call.arguments["topic"] for call in calls]
    asked = [topic["value"] if isinstance(topic, dict) else topic for topic in topics]
    assert asked.count("causes") <= len(calls) / 3


@pytest.mark.parametrize("name", ["embedded", "frontier", "field"])
def test_the_task_types_that_are_not_asked_are_named(name):
    there = {sample.task_type for sample in read_pack(name).samples}
    named = {
        task_type
        for task_type in FAMILY_OF_TASK_TYPE
        if task_type.replace("_", " ")
        in BENCHMARKS.get(name).scope.partition("no questions on ")[2]
    }
    assert named == FAMILY_OF_TASK_TYPE.keys() - there


@pytest.mark.parametrize("name", ["embedded", "frontier"])
def test_a_question_on_a_drawing_belongs_to_the_task_type_of_its_template(name):
    """No drawing asks what a pest, weed or disease is: questions that name one count or measure."""
    written = {
        template.template: template.task_type
        for kind in SCENE_KINDS.values()
        for file in kind.templates
        for template in load_templates(file)
    }
    samples = read_pack(name).samples
    assert {sample.template: sample.task_type for sample in samples} == {
        sample.template: written[sample.template] for sample in samples
    }
    assert {
        sample.family
        for sample in samples
        if sample.family != FAMILY_OF_TASK_TYPE[sample.task_type]
    } == set()
    names = {"diagnose_pest_disease", "identify_weed"}
    assert [each.id for each in samples if names & {*each.reference.tools}] == []


def test_the_mean_ndvi_of_a_whole_drawn_raster_is_what_the_tool_returns():
    """Inside a box, the tool's edge of the box may differ from the true one by a pixel."""
    whole = [
        step
        for sample in read_pack("embedded").samples
        for step in sample.reference.steps
        if step.tool == "describe_region" and "region" not in step.arguments
    ]
    assert len(whole) >= 5
    for step in whole:
        assert step.observation.result["ndvi"] == pytest.approx(step.truth["ndvi"], abs=2e-6)


def test_another_result_changes_the_answer_of_nearly_every_call_and_no_constant_wins_a_task_type():
    samples = read_pack("embedded").samples
    counts = count_deciding(samples)
    assert counts.deciding >= 0.95 * counts.calls
    assert "0" not in counts.tools_per_question
    scores, guesses, types = ConstantScores(), [], []
    for sample in samples:
        if sample.answerable and any(map(counts_in_guess, sample.answer)):
            guess = guess_points(sample)
            scores.add(len(types), sample, guess)
            guesses.append(guess.score)
            types.append(sample.task_type)
    constants = scores.by_sample()
    for task_type in set(types):
        places = [at for at, each in enumerate(types) if each == task_type]
        above = [constants[at] - guesses[at] for at in places]
        assert sum(above) / len(above) <= 0.1, task_type


def test_answers_that_are_usual_for_a_template_are_seldom_right():
    pack = read_pack("embedded")
    samples = [
        sample.model_copy(update={"cluster": _scene(pack, sample.files[0])})
        for sample in pack.samples
    ]
    table = ConstantTable()
    for sample in samples:
        table.add(sample)
    scores = []
    for sample in samples:
        answer = format_answer(sample.answer, table.values(sample))
        said = [slot for slot in sample.answer if slot.type != "plot"]
        right = [slot.weight * score_slot(slot, sample.answer, answer).value for slot in said]
        scores.append(sum(right) / sum(slot.weight for slot in sample.answer))
    assert sum(scores) / len(scores) <= 0.13
