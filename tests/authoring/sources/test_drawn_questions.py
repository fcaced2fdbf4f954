"""Questions of all kinds of drawn scenes: which can be asked, in how many ways, and what their answers follow from."""

import json
import re
import tomllib
from collections import Counter
from importlib.resources import files
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.workspace import artifacts_in
from agrotools.core import ReferenceStep, ReferenceTrajectory, Sample
from agrotools.core.record import resolved_value
from agrotools.knowledge.kb_names import shipped_names
from agrotools.text.expressions import evaluate_from
from agrotools_build.quality import order_faults
from agrotools_build.scenes.farmland import make_farmland_pair
from agrotools_build.scenes.marks import STROKE_COLOURS, marked
from agrotools_build.scenes.rows import UNSURVEYED
from agrotools_build.scenes.scene import save_picture
from agrotools_build.sources.drawn import every_file
from agrotools_build.sources.drawn.drawing import SCENE_KINDS
from agrotools_build.sources.drawn.land import ORCHARD_PESTS
from agrotools_build.templates.template import exact_result
from agrotools_build.templates.thing import QuestionInstance
from agrotools_build.templates.wording import sentences
from agrotools_tools import detect_change, extract_marked_region
from support.drawn_scenes import SEEDS, asked_of_drawings, drawn_scene, drawn_subjects, questions_of
from support.plain_sample import plain_sample

NEVER_OF_DRAWINGS = {"new_pond_count", "new_pond_several"}
"""One pond at most is built in a drawn pair."""
ENGLISH_ONLY = {"half_bars", "pair_halves"}
LEAST_WAYS = 12
"""In which a question can be put. No two of a benchmark may share a sentence, so a template is asked that often."""
FEWER_WAYS = {"weed_gap": 6, "barer_image": 11, "cover_gap": 11, "weedier_image": 11}
"""Ways of English templates that lost padded wordings; no pack asks them so often."""
STEP_WORDS = (
    "detect", "segment", "calculate", "plot the", "look up", "identify_", "extract", "tool", "expected_size", "kb_id",
)  # fmt: skip


@pytest.mark.parametrize("name", SCENE_KINDS)
def test_drawing_again_gives_the_same_files_and_record(name, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    first = drawn_scene(name, SEEDS[name][0])
    record = SCENE_KINDS[name].draw(first.seed, first.difficulty, tmp_path, every_file)
    assert json.loads(json.dumps(record)) == first.record
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert again == {path.name: path.read_bytes() for path in first.folder.iterdir()}
    last = max(again)
    SCENE_KINDS[name].draw(first.seed, first.difficulty, alone, last.__eq__)
    assert (alone / last).read_bytes() == again[last]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENE_KINDS)
def test_every_question_can_be_asked_of_some_subject_and_of_its_files(name):
    subjects, originals = drawn_subjects(name)
    assert len({(subject.name, subject.of) for subject in subjects}) == len(subjects)
    assert all(subject.metadata["difficulty"] in range(4) for subject in subjects)
    for language in ("en", "zh"):
        items = asked_of_drawings(name, language)
        wanted = {question.template for question in questions_of(name, language)}
        # Open text that would count in no headline is not asked, as that on thresholds.
        never = NEVER_OF_DRAWINGS | {
            each for each in wanted if each.endswith(("_first", "_harm", "_manage"))
        }
        assert wanted - {item.question.template for item in items} <= never
        for item in items:
            assert {file.path for file in item.instance.files} <= originals.files.keys()
            query = item.instance.query(item.question.wordings[0])
            assert not re.search(r"[{}\[\]]", query), query
            names = [
                call.arguments.get(key)
                for call in item.instance.calls
                for key in ("image", "chm", "before", "after")
            ]
            assert {name for name in names if name} <= {file.name for file in item.instance.files}


@pytest.mark.parametrize("name", SCENE_KINDS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_question_can_be_put_in_many_ways_that_share_no_sentence_and_name_no_step(name, language):
    for question in questions_of(name, language):
        said, ways = set(), 0
        for wording in question.wordings:
            assert not [word for word in STEP_WORDS if word in wording.lower()], wording
            assert not re.search(r"[\[\]|]", wording), wording
            if language == "zh":
                assert re.search("[\u4e00-\u9fff]", wording), wording
            new = set(sentences(wording))
            ways += not (new & said)
            said |= new
        fewer = FEWER_WAYS if language == "en" else {}
        assert ways >= fewer.get(question.template, LEAST_WAYS), question.template


@pytest.mark.parametrize("name", SCENE_KINDS)
def test_both_languages_ask_the_same(name):
    english = [
        question for question in questions_of(name, "en") if question.template not in ENGLISH_ONLY
    ]
    assert [question.template for question in english] == [
        each.template for each in questions_of(name, "zh")
    ]
    assert all(slot.label_zh for question in english for slot in question.slots)


@pytest.mark.parametrize("name", SCENE_KINDS)
def test_chains_use_one_to_four_tools_and_answers_are_of_all_kinds(name):
    items = [item.instance for item in asked_of_drawings(name)]
    lengths = {len({call.tool for call in asked.calls}) for asked in items}
    assert {1, 2, 3 if name != "tracts" else 2} <= lengths <= {1, 2, 3, 4}
    assert 4 in lengths or name not in ("apples", "fruit_counts", "leaf_lesions")
    assert {asked.answer_type for asked in items} >= {"tolerance", "exact", "plot"}
    for asked in items:
        assert any(slot.type == "plot" for slot in asked.slots) == (asked.answer_type == "plot")


@pytest.mark.parametrize("name", SCENE_KINDS)
def test_arguments_are_ones_that_tools_take_and_answers_follow_from_what_perfect_tools_return(name):
    checked = 0
    for item in asked_of_drawings(name):
        results = []
        for call in item.instance.calls:
            arguments = resolved_value(dict(call.arguments), results)
            known = get_tool(call.tool).spec.parameters["properties"]
            assert set(arguments) <= set(known), (item.question.template, call.tool)
            results.append(
                exact_result(call.tool, arguments)
                if call.truth is None
                else {"mask": "", **call.truth}
            )
        for slot in item.instance.slots:
            if slot.type in ("plot", "open_text"):
                continue
            checked += 1
            found = evaluate_from(slot.from_, results)
            value = tuple(found) if slot.type == "choice_set" else found
            known = (
                slot.value
                if slot.type != "tolerance"
                else pytest.approx(slot.value, rel=2e-5, abs=1e-4 * slot.margin)
            )
            assert value == known, (item.question.template, slot.name)
    assert checked > 10


@pytest.fixture(scope="module")
def farmland():
    return make_farmland_pair(3, 1).images["before"]


@pytest.mark.parametrize("shape", ["box", "ellipse"])
@pytest.mark.parametrize("colour", STROKE_COLOURS)
def test_a_mark_is_found_where_it_was_drawn(shape, colour, farmland, tmp_path):
    drawn, truth = marked(np.random.default_rng(1), farmland, (150, 120, 300, 230), shape, colour)
    save_picture(tmp_path / "marked.jpg", drawn)
    inside = truth["regions"][0]["inner_box"]
    if shape == "box":
        assert inside == [150, 120, 300, 230]
    with artifacts_in(tmp_path):
        found = extract_marked_region(image=tmp_path / "marked.jpg").regions
    assert len(found) == 1
    assert (found[0].color, found[0].shape) == (colour, shape)
    assert np.abs(np.array(found[0].inner_box) - inside).max() <= 3


def test_trees_in_a_mark_are_those_whose_stems_stand_there():
    subjects, _ = drawn_subjects("blocks")
    blocks = [(each, each.shown(place, 1)) for each in subjects for place in range(each.things)]
    subject, thing = next((each, block) for each, block in blocks if block.before)
    assert str(subject.metadata["variant"]).split()[0] in ("forest", "orchard")
    x0, y0, x1, y1 = thing.before[0].truth["regions"][0]["inner_box"]
    area_ha = (x1 - x0) * (y1 - y0) * thing.truth["gsd_m"] ** 2 / 1e4
    assert thing.truth["density_per_ha"] == pytest.approx(thing.truth["count"] / area_ha, rel=1e-4)
    assert thing.arguments["region"] == {"$ref": "steps[0].observation.regions[0].inner_box"}


@pytest.mark.parametrize(
    ("name", "templates"),
    [
        ("pond_pairs", ("pond_event", "pond_dug", "water_area")),
        ("rows", ("bands_bars", "row_part_mean")),
    ],
)
def test_the_picture_tells_whether_a_mark_is_found_first(name, templates):
    """The words of a question and the notes of its files are the same with and without a mark."""
    asked = [item for item in asked_of_drawings(name) if item.question.template in templates]
    for template in templates:
        items = [item for item in asked if item.question.template == template]
        marked_first = {item.instance.calls[0].tool == "extract_marked_region" for item in items}
        assert marked_first == {False, True}, template
        notes = {(file.name, file.note) for item in items for file in item.instance.files}
        assert len(notes) == len({name for name, _ in notes}), "one note for each name of a file"


@pytest.mark.parametrize(("seed", "event"), [(28, "dried"), (32, "none")])
def test_other_ponds_than_the_outlined_one_would_give_another_answer(seed, event):
    scene = drawn_scene("pond_pairs", seed)
    (pair,) = cast("list[Any]", scene.record["outlined"])
    before, after = (scene.folder / pair[name] for name in ("before", "after"))
    region = pair["mark"]["regions"][0]["inner_box"]
    with artifacts_in(scene.folder):
        inside = detect_change(before=before, after=after, target="pond", region=region).pond
        everywhere = detect_change(before=before, after=after, target="pond").pond
    assert inside is not None
    assert everywhere is not None
    assert inside.event == pair["change"]["pond"]["event"] == event
    assert everywhere.area_after_px >= 1.2 * inside.area_after_px


def test_a_box_around_surveyed_squares_changes_how_well_bands_separate():
    subjects, _ = drawn_subjects("rows")
    composites = [
        each.shown(place, 1)
        for each in subjects
        if each.of == "composite"
        for place in range(each.things)
    ]
    boxed = [thing for thing in composites if thing.before]
    assert boxed
    assert len(boxed) < len(composites)
    for thing in boxed:
        photo, raster, squares = thing.files
        assert thing.before[0].arguments["image"] == photo.name
        assert thing.arguments["image"] == raster.name
        assert thing.arguments["label_raster"] == squares.name
        assert thing.arguments["region"] == {"$ref": "steps[0].observation.regions[0].inner_box"}


def _sample(asked: QuestionInstance) -> Sample:
    truths: list[dict[str, Any] | None] = []
    steps: list[ReferenceStep] = []
    for call in asked.calls:
        if call.truth is None:
            plain = cast("dict[str, Any]", resolved_value(dict(call.arguments), truths))
            truths.append(exact_result(call.tool, plain))
        else:
            truths.append(dict(call.truth))
        steps.append(
            ReferenceStep(
                tool=call.tool, arguments=call.arguments, group=call.group, truth=truths[-1]
            )
        )
    return plain_sample(reference=ReferenceTrajectory(steps=tuple(steps)), answer=asked.slots)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENE_KINDS)
def test_no_other_order_of_tools_gives_the_answers(name: str):
    faults: dict[str, Any] = {}
    seen = Counter[str]()
    for item in asked_of_drawings(name):
        if seen[item.question.template] == 3:
            continue
        seen[item.question.template] += 1
        if found := order_faults(_sample(item.instance)):
            faults[item.question.template] = found
    assert faults == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENE_KINDS)
def test_no_shown_file_classifies_the_picture_that_is_asked_about(name):
    _, originals = drawn_subjects(name)
    masks = {
        file.path
        for item in asked_of_drawings(name)
        for file in item.instance.files
        if file.kind == "mask" or file.classes
    }
    assert bool(masks) == (name == "rows")
    for path in masks:
        with Image.open(originals.files[path]) as picture:
            assert (np.asarray(picture) != UNSURVEYED).mean() < 0.06, "a survey of a few squares"
    shown = {
        originals.files[file.path].name
        for item in asked_of_drawings(name)
        for file in item.instance.files
    }
    assert not any(file.startswith("classes") for file in shown)


def test_questions_with_files_beside_the_asked_ones_name_these():
    shown = [item for item in asked_of_drawings("pots") if item.question.beside]
    assert shown
    for item in shown:
        named, asked = [file.name for file in item.instance.files], item.question.things
        assert len(named) == asked + item.question.beside
        assert named == sorted(named)
        used = {
            call.arguments["image"] for call in item.instance.calls if "image" in call.arguments
        }
        assert len(used) == asked
        query = item.instance.query(item.question.wordings[0])
        assert {file for file in named if file in query} == used


def test_every_decided_class_exists():
    text = files("agrotools_build.sources.drawn").joinpath("membership.toml").read_text("utf-8")
    rows = tomllib.loads(text)["classes"]
    for kind, of, template, _, difficulty, n, rate, decision, reason in rows:
        assert (of, template) in {
            (question.of, question.template) for question in questions_of(kind, "en")
        }
        assert difficulty in range(4)
        assert n > 0
        assert 0 <= rate <= 1
        assert decision in ("embedded", "frontier", "dropped")
        assert (decision == "embedded") == (reason == "")
    assert len({tuple(row[:5]) for row in rows}) == len(rows)


def test_pests_of_orchards_name_their_entries_in_the_knowledge_base():
    for crop, pest, entry in ORCHARD_PESTS:
        assert [each.id for each in shipped_names().all_of_name(pest)] == [entry], crop
