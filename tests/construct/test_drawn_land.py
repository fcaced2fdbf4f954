"""Drawn blocks, tracts, farmland and ponds as subjects of questions."""

import json
import re
from importlib import import_module

import numpy as np
import pytest

from agrotools.construct.choosing import asked_of
from agrotools.construct.scenes.strokes import STROKE_COLOURS, marked
from agrotools.construct.sources.drawn import Drawn
from agrotools.construct.sources.part import Originals
from agrotools.construct.templates import load_templates
from agrotools.construct.templates.wording import sentences
from agrotools.core import ToleranceSlot
from agrotools.text.expressions import evaluate_from
from agrotools.tools import extract_marked_region

MODULES = ["blocks", "tracts", "farmland_satellite", "farmland_aerial", "pond_pairs"]
SEEDS = {"blocks": 12, "tracts": 6, "farmland_satellite": 16, "farmland_aerial": 16, "pond_pairs": 16}
FILES = sorted(
    {file for name in MODULES for file in import_module(f"agrotools.construct.sources.drawn.{name}").TEMPLATES}
)
NEVER_OF_DRAWINGS = {"new_pond_count", "new_pond_several"}
"""One pond at most is built in a drawn pair."""


def _drawn(name, folder, seeds):
    module = import_module(f"agrotools.construct.sources.drawn.{name}")
    subjects, originals = [], Originals(folder)
    for seed in seeds:
        place = folder / f"{name}-{seed}"
        place.mkdir()
        record = module.draw(seed, seed % 4, place)
        assert json.loads(json.dumps(record)) == record
        subjects += module.subjects(Drawn(name, seed, seed % 4, place, record), originals)
    return module, subjects, originals


def test_drawing_again_gives_the_same_files_and_record(tmp_path):
    for name in MODULES:
        module = import_module(f"agrotools.construct.sources.drawn.{name}")
        records = []
        for number in range(2):
            place = tmp_path / f"{name}-{number}"
            place.mkdir()
            records.append(module.draw(6, 2, place))
        assert records[0] == records[1]
        first, second = (sorted((tmp_path / f"{name}-{number}").iterdir()) for number in range(2))
        assert [one.name for one in first] == [one.name for one in second]
        assert all(one.read_bytes() == two.read_bytes() for one, two in zip(first, second, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_every_question_can_be_asked_and_follows_from_its_truth(name, tmp_path):
    module, subjects, originals = _drawn(name, tmp_path, range(SEEDS[name]))
    assert len({subject.name for subject in subjects}) == len(subjects)
    templates = {t.template: t for file in module.TEMPLATES for t in load_templates(file)}
    asked = {}
    for template in templates.values():
        for language in ("en", "zh"):
            for subject in subjects:
                mine = template if language == "en" else _in_chinese(template, module)
                if (item := asked_of(subject, mine, 1)) is not None:
                    asked.setdefault(template.template, []).append(item)
    assert set(templates) - set(asked) <= NEVER_OF_DRAWINGS
    for items in asked.values():
        for item in items:
            assert {file.path for file in item.asked.files} <= originals.files.keys()
            query = item.asked.query(item.question.wordings[0])
            assert not re.search(r"[{}\[\]]", query), query
            names = [
                call.arguments.get(key) for call in item.asked.calls for key in ("image", "chm", "before", "after")
            ]
            assert {name for name in names if name} <= {file.name for file in item.asked.files}


def _in_chinese(template, module):
    found = [t for file in module.TEMPLATES for t in load_templates(file, "zh")]
    return next(t for t in found if t.template == template.template)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_question_can_be_put_in_34_ways_that_share_no_sentence(file, language):
    for template in load_templates(file, language):
        said, ways = set(), 0
        for wording in template.wordings:
            new = set(sentences(wording))
            ways += not (new & said)
            said |= new
        assert ways >= 34, template.template


def test_questions_use_one_to_four_tools_and_all_kinds_of_answers():
    for files in (["blocks"], ["tracts"], ["farmland"], ["pond", "pond_water"]):
        kinds = {t.answer_type for file in files for t in load_templates(file)}
        assert {"tolerance", "exact", "plot"} <= kinds


@pytest.mark.parametrize("shape", ["box", "ellipse"])
@pytest.mark.parametrize("colour", STROKE_COLOURS)
def test_a_mark_is_found_where_it_was_drawn(shape, colour, tmp_path):
    from agrotools.construct.scenes.farmland import make_farmland_pair
    from agrotools.construct.scenes.saving import save_picture

    picture = make_farmland_pair(3, 1).images["before"]
    drawn, truth = marked(np.random.default_rng(1), picture, (150, 120, 300, 230), shape, colour)
    save_picture(tmp_path / "marked.jpg", drawn)
    inside = truth["regions"][0]["inner_box"]
    if shape == "box":
        assert inside == [150, 120, 300, 230]
    found = extract_marked_region(image=tmp_path / "marked.jpg").regions
    assert len(found) == 1
    assert (found[0].color, found[0].shape) == (colour, shape)
    assert np.abs(np.array(found[0].inner_box) - inside).max() <= 3


def test_trees_in_a_mark_are_those_whose_stems_stand_there(tmp_path):
    _, subjects, _ = _drawn("blocks", tmp_path, range(10))
    subject = next(subject for subject in subjects if subject.of == "block_marked")
    thing = subject.shown(0, 1)
    record = json.loads(json.dumps(subject.metadata))
    assert record["kind"] in ("forest", "orchard")
    x0, y0, x1, y1 = thing.before[0].truth["regions"][0]["inner_box"]
    area_ha = (x1 - x0) * (y1 - y0) * thing.truth["gsd_m"] ** 2 / 1e4
    assert thing.truth["density_per_ha"] == pytest.approx(thing.truth["count"] / area_ha, rel=1e-4)
    assert thing.arguments["region"] == {"$ref": "steps[0].observation.regions[0].inner_box"}


def test_answers_follow_from_the_calls_truth(tmp_path):
    _, subjects, _ = _drawn("tracts", tmp_path, range(2))
    checked = 0
    for template in load_templates("tracts"):
        for subject in subjects:
            item = asked_of(subject, template, 1)
            if item is None or any(call.truth is None for call in item.asked.calls):
                continue
            truths = [call.truth for call in item.asked.calls]
            for slot in item.slots:
                if isinstance(slot, ToleranceSlot):
                    assert evaluate_from(slot.from_, truths) == pytest.approx(slot.value)
                    checked += 1
    assert checked
