from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import SampleFile
from agrotools_build.area_truth import AreaTruth, count_area
from agrotools_build.choosing import choose
from agrotools_build.templates.field import FieldPicture, field_picture
from agrotools_build.templates.slot_draft import same_answer
from agrotools_build.templates.template import Template, field_templates
from agrotools_build.templates.thing import Subject

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
    return field_picture(
        (file,), arguments, lambda region: count_area(classes, plants, region), _SIDE, _SIDE
    )


def _subject(seed: int, unnamed: bool = False, pictures: int = 2) -> Subject:
    def picture(index: int, number: int) -> FieldPicture:
        return _picture(10 * seed + index, number, unnamed)

    return Subject(f"subject-{seed}", pictures, picture)


def test_what_unnamed_plants_could_change_is_not_asked():
    """All plants unnamed but a few: no question on crop or weeds may be asked, those on plants and soil may."""
    area = AreaTruth(crop_px=300, weed_px=300, unnamed_px=3000, total_px=40_000)
    file = SampleFile(name="image_1.jpg", path="1.jpg", kind="image")
    picture = field_picture((file,), {"image": file.name}, lambda region: area, _SIDE, _SIDE)
    rng = np.random.default_rng(0)
    asked = {
        q.template
        for q in QUESTIONS
        if q.things == 1 and q.instantiate((picture,), rng) is not None
    }
    assert "plant_cover" in asked
    assert "bare_soil" in asked
    assert not asked & {
        "weed_share",
        "crop_share",
        "leading_plants",
        "surface_bars",
        "weed_cover",
    }


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
    assert {slot.type for item in first for slot in item.slots} == {
        "tolerance",
        "exact",
        "boolean",
        "file",
        "plot",
    }


def test_no_file_is_shown_by_more_questions_than_may_show_it():
    subjects = [_subject(seed) for seed in range(4)]
    free = choose(subjects, QUESTIONS, 60, 1)
    limited = choose(subjects, QUESTIONS, 60, 1, most_of_a_file=4)

    def most(chosen):
        return max(Counter(f.path for item in chosen for f in {*item.instance.files}).values())

    assert most(free) > 4
    assert most(limited) == 4
    assert len(limited) >= 4 * 2  # each of the four pairs is asked about


def test_every_file_is_shown_before_one_is_shown_again():
    subjects = [_subject(seed, pictures=1) for seed in range(6)]
    chosen = choose(subjects, QUESTIONS, 6, 1, most_of_a_file=4)
    assert len({item.instance.files[0].path for item in chosen}) == 6


def test_more_questions_are_chosen_within_what_was_asked_before():
    subjects = [_subject(seed) for seed in range(4)]
    first = choose(subjects[:1], QUESTIONS, 6, 1)
    before = Counter(file.path for item in first for file in item.instance.files)
    more = choose(subjects, QUESTIONS, 60, 1, most_of_a_file=4, shown=before)
    after = before + Counter(file.path for item in more for file in item.instance.files)
    assert max(after.values()) == max(4, *before.values())


def test_no_kind_is_asked_more_often_than_it_may_be():
    subjects = [_subject(seed) for seed in range(4)]
    chosen = choose(subjects, QUESTIONS[:3], 60, 1, most_of_a_kind=2)
    assert max(Counter(item.question.template for item in chosen).values()) == 2


def test_questions_of_two_sentences_share_one_only_where_they_may():
    wordings = ("[Good|Bad] seed? What percentage is weeds?",)
    share = next(each for each in QUESTIONS if each.template == "weed_share")
    told = Template.model_validate({**share.model_dump(by_alias=True), "wordings": wordings})
    subjects = [_subject(seed) for seed in range(4)]
    strict = choose(subjects, [told], 4, 1)
    shared = choose(subjects, [told], 4, 1, may_share=True)
    assert len(strict) == 1
    assert {item.query for item in shared} == {
        "Good seed? What percentage is weeds?",
        "Bad seed? What percentage is weeds?",
    }
