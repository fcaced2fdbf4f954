import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.build.area_truth import AreaTruth, count_area
from agrotools.build.choosing import choose
from agrotools.build.templates.field import FieldPicture, field_picture, field_templates
from agrotools.build.templates.slot_draft import same_answer
from agrotools.build.templates.thing import Subject
from agrotools.core import SampleFile, ToleranceSlot
from agrotools.core.record import resolved_value
from agrotools.text.expressions import evaluate_from
from agrotools.tools import get_tool
from agrotools.tools.result import encode_result
from agrotools.tools.workspace import artifacts_in

_SIDE = 200
QUESTIONS = field_templates()


@cache
def _picture(seed: int, number: int, unnamed: bool) -> FieldPicture:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:_SIDE, 0:_SIDE]
    classes = np.zeros((_SIDE, _SIDE), np.uint8)
    for value in (1, 2):
        for _ in range(int(rng.integers(1, 9))):
            centre = rng.uniform(0, _SIDE, 2)
            classes[np.hypot(x - centre[0], y - centre[1]) < rng.uniform(4, 22)] = value
    plants = classes > 0
    if unnamed:
        centre = rng.uniform(0, _SIDE, 2)
        plants = plants | (np.hypot(x - centre[0], y - centre[1]) < rng.uniform(1, 9))
    file = SampleFile(name=f"image_{number}.jpg", path=f"{seed}.jpg", kind="image")
    arguments = {"image": file.name}
    return field_picture((file,), arguments, lambda region: count_area(classes, plants, region), _SIDE, _SIDE)


def _subject(seed: int, unnamed: bool = False, pictures: int = 2) -> Subject:
    def picture(index: int, number: int) -> FieldPicture:
        return _picture(10 * seed + index, number, unnamed)

    return Subject(f"subject-{seed}", pictures, picture)


def _true_results(calls, tmp_path):
    results = []
    for call in calls:
        if call.truth is not None:
            results.append(dict(call.truth))
            continue
        with artifacts_in(tmp_path):
            result = get_tool(call.tool)(**resolved_value(dict(call.arguments), results))
        results.append(encode_result(result)[0])
    return results


@pytest.mark.parametrize("unnamed", [False, True])
def test_every_from_yields_its_value_from_the_truth(unnamed, tmp_path):
    chosen = choose([_subject(seed, unnamed) for seed in range(8)], QUESTIONS, 60, 5)
    assert len(chosen) == 60
    assert len({item.question.template for item in chosen}) >= (28 if unnamed else 34)
    for item in chosen:
        # A choice of two would be right half of the time by chance.
        two_way = [slot.type == "boolean" or len(getattr(slot, "choices", ())) == 2 for slot in item.slots]
        assert not all(two_way), item.question.template
        results = _true_results(item.instance.calls, tmp_path)
        for slot in item.slots:
            value = evaluate_from(slot.from_, results)
            if isinstance(slot, ToleranceSlot):
                assert value == pytest.approx(slot.value, rel=2e-5, abs=1e-4 * slot.margin), item.question.template
            elif slot.type == "plot":
                assert value["kind"] == slot.value["kind"]
                drawn = [(s["name"], s["x"], pytest.approx(s["y"], rel=2e-5)) for s in value["series"]]
                assert drawn == [(s["name"], s["x"], s["y"]) for s in slot.value["series"]]
            else:
                assert value == slot.value, item.question.template


def test_arguments_fit_the_tools_and_only_later_steps_refer_to_earlier_ones():
    for item in choose([_subject(seed) for seed in range(6)], QUESTIONS, 50, 1):
        calls = item.instance.calls
        assert 1 <= len(calls) <= 5
        groups = {call.group for call in calls if call.tool == "measure_crop_weed_area"}
        measured = sum(call.tool == "measure_crop_weed_area" for call in calls)
        assert groups == ({None} if measured == 1 else {0})
        for index, call in enumerate(calls):
            refs = [int(n) for n in re.findall(r"steps\[(\d+)\]", str(call.arguments))]
            assert all(n < index for n in refs)
            if call.tool != "measure_crop_weed_area":
                assert refs, f"{call.tool} of {item.question.template} uses nothing that was measured"


def test_what_unnamed_plants_could_change_is_not_asked():
    """All plants unnamed but a few: no question on crop or weeds may be asked, those on plants and soil may."""
    area = AreaTruth(crop_px=300, weed_px=300, unnamed_px=3000, total_px=40_000)
    file = SampleFile(name="image_1.jpg", path="1.jpg", kind="image")
    picture = field_picture((file,), {"image": file.name}, lambda region: area, _SIDE, _SIDE)
    rng = np.random.default_rng(0)
    asked = {q.template for q in QUESTIONS if q.things == 1 and q.instantiate((picture,), rng) is not None}
    assert "plant_cover" in asked
    assert "bare_soil" in asked
    assert not asked & {"weed_share", "crop_share", "weed_crop_ratio", "leading_plants", "surface_bars", "weed_cover"}


@given(seed=st.integers(0, 500), question=st.sampled_from([q for q in QUESTIONS if q.things == 1]))
def test_an_answer_is_right_however_unnamed_plants_are_counted(seed, question):
    """The question is asked of the truth as it is read; where all unnamed plants are weeds, its answer still holds."""
    picture = _picture(seed, 1, True)
    asked = question.instantiate((picture,), np.random.default_rng(seed))
    last = replace(picture, area=lambda region: picture.area(region).readings()[-1])
    whole = last.part((0, 0, _SIDE, _SIDE))
    last = replace(last, truth=whole.truth, readings=whole.readings)
    if asked is None:
        return
    other = question.instantiate((last,), np.random.default_rng(seed))
    if other is None or other.words != asked.words:
        return  # Near a rule of its own, or with another drawn value.
    for slot, alike in zip(asked.slots, other.slots, strict=True):
        assert same_answer(slot, alike)


def test_near_ties_and_a_picture_about_two_are_not_asked():
    for crop, weeds, asked in ((1000, 1100, False), (1000, 1600, True)):
        area = AreaTruth(crop, weeds, 0, 40_000)
        file = SampleFile(name="image_1.jpg", path="1.jpg", kind="image")
        picture = field_picture((file,), {}, lambda region, area=area: area, _SIDE, _SIDE)
        question = next(q for q in QUESTIONS if q.template == "leading_plants")
        assert (question.instantiate((picture,), np.random.default_rng(0)) is not None) is asked
    chosen = choose([_subject(3, pictures=1)], QUESTIONS, 100, 7)
    assert chosen
    assert all(item.question.things == 1 and len(item.instance.files) == 1 for item in chosen)


def test_the_choice_is_even_and_repeatable_and_uses_no_wording_twice():
    subjects = [_subject(seed) for seed in range(10)]
    first = choose(subjects, QUESTIONS, 80, 7)
    second = choose(subjects, QUESTIONS, 80, 7)
    assert [(a.query, a.slots) for a in first] == [(b.query, b.slots) for b in second]
    assert len({(item.question.template, item.wording) for item in first}) == 80
    assert len({item.query for item in first}) == 80
    assert len({(item.subject.name, item.question.template) for item in first}) == 80
    per_subject = [sum(item.subject.name == subject.name for item in first) for subject in subjects]
    assert max(per_subject) - min(per_subject) <= 2
    assert {slot.type for item in first for slot in item.slots} == {"tolerance", "exact", "boolean", "file", "plot"}


def test_the_answer_form_lists_each_choice_once_whatever_the_answer():
    """The other choices must not be told by having more names than the right one."""
    forms = {}
    for item in choose([_subject(seed) for seed in range(12)], QUESTIONS, 120, 3):
        for slot in item.slots:
            if slot.type == "exact":
                choices = tuple(sorted({slot.value, *slot.distractors}))
                words = (item.question.template, slot.name, choices)
                forms.setdefault(words, set()).add(slot.value)
    assert {choices for _, _, choices in forms} == {
        ("crop", "weeds"),
        ("heavy", "light", "moderate"),
        ("left", "right"),
        ("lower", "upper"),
        ("bottom left", "bottom right", "top left", "top right"),
    }
    assert sum(len(values) > 1 for values in forms.values()) >= 3


def test_a_question_in_chinese_names_answers_and_bars_in_chinese(tmp_path):
    chinese = re.compile("[\u4e00-\u9fff]")
    chosen = choose([_subject(seed) for seed in range(8)], field_templates("zh"), 80, 3)
    assert {"surface_bars", "leading_plants", "quarter_bars"} <= {item.question.template for item in chosen}
    for item in chosen:
        results = _true_results(item.instance.calls, tmp_path)
        for slot in item.slots:
            assert chinese.search(slot.label), (item.question.template, slot.label)
            if slot.type == "exact":
                assert all(chinese.search(name) for name in (slot.value, *slot.distractors))
                assert evaluate_from(slot.from_, results) in slot.names
            if slot.type == "plot":
                bars = [x for series in slot.value["series"] for x in series["x"] if not x.endswith(".jpg")]
                assert all(chinese.search(bar) for bar in bars), item.question.template
                drawn = evaluate_from(slot.from_, results)
                assert [each["x"] for each in drawn["series"]] == [each["x"] for each in slot.value["series"]]
