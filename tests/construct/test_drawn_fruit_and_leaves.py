import json
from collections import defaultdict
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from agrotools.construct.choosing import asked_of
from agrotools.construct.sources.drawn import Drawn
from agrotools.construct.sources.part import Originals
from agrotools.construct.templates import load_templates
from agrotools.construct.templates.wording import sentences
from agrotools.core.refs import resolved_value
from agrotools.text.expressions import evaluate_from
from agrotools.tools import get_tool

MODULES = {
    name: import_module(f"agrotools.construct.sources.drawn.{name}")
    for name in ("apples", "fruit_counts", "leaf_lesions")
}
LEAST_WAYS = 34
"""In which a question can be put, since no two of a benchmark may share a sentence."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Two subjects of each kind, easy and hard."""
    found = {}
    for name, module in MODULES.items():
        found[name] = []
        for seed, difficulty in ((5006, 0), (5002, 3)):
            folder = tmp_path_factory.mktemp(f"{name}-{seed}")
            record = json.loads(json.dumps(module.draw(seed, difficulty, folder)))
            found[name].append(Drawn(name, seed, difficulty, folder, record))
    return found


def _asked(module, drawn, language="en"):
    for each in drawn:
        for subject in module.subjects(each, Originals(each.folder)):
            for file in module.TEMPLATES:
                for template in load_templates(file, language):
                    if (item := asked_of(subject, template, 1)) is not None:
                        yield each, template, item


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", MODULES)
def test_every_question_can_be_put_in_enough_ways(name, language, drawn):
    ways = defaultdict(set)
    for _, template, item in _asked(MODULES[name], drawn[name], language):
        if template.template not in ways:
            for wording in template.wordings:
                own = set(sentences(item.asked.query(wording)))
                if not own & set().union(*ways[template.template], set()):
                    ways[template.template].add(frozenset(own))
    assert ways
    assert {kind: len(found) for kind, found in ways.items() if len(found) < LEAST_WAYS} == {}


@pytest.mark.parametrize("name", MODULES)
def test_both_languages_ask_the_same(name):
    for file in MODULES[name].TEMPLATES:
        english, chinese = load_templates(file), load_templates(file, "zh")
        assert [template.template for template in english] == [template.template for template in chinese]
        for template in english:
            assert all(slot.label_zh for slot in template.slots)


@pytest.mark.parametrize("name", MODULES)
def test_questions_name_no_tool_and_no_argument(name):
    for file in MODULES[name].TEMPLATES:
        for template in load_templates(file):
            for wording in template.wordings:
                for word in ("detect", "segment", "calculate", "plot the", "extract", "tool", "region", "kb_id"):
                    assert word not in wording.lower(), (template.template, wording)


@pytest.mark.parametrize("name", MODULES)
def test_chains_of_one_to_four_tools_and_all_kinds_of_answers(name, drawn):
    items = [item.asked for _, _, item in _asked(MODULES[name], drawn[name])]
    assert {len({call.tool for call in asked.calls}) for asked in items} == {1, 2, 3, 4}
    kinds = {asked.answer_type for asked in items}
    assert kinds >= {"tolerance", "exact", "plot"}
    charts = [asked for asked in items if asked.answer_type == "plot"]
    assert all(any(slot.type == "plot" for slot in asked.slots) for asked in charts)


@pytest.mark.parametrize("name", MODULES)
def test_answers_follow_from_what_perfect_tools_return(name, drawn):
    from agrotools.construct.templates.exact_steps import exact_result

    checked = 0
    for _, template, item in _asked(MODULES[name], drawn[name]):
        results = []
        for call in item.asked.calls:
            arguments = resolved_value(dict(call.arguments), results)
            results.append(exact_result(call.tool, arguments) if call.truth is None else call.truth)
        for slot in item.asked.slots:
            if slot.type in ("plot", "open_text"):
                continue
            checked += 1
            assert evaluate_from(slot.from_, results) == slot.value, template.template
    assert checked > 20


@pytest.mark.parametrize("name", MODULES)
def test_arguments_are_ones_that_the_tools_take(name, drawn):
    for _, template, item in _asked(MODULES[name], drawn[name]):
        results = []
        for call in item.asked.calls:
            arguments = resolved_value(dict(call.arguments), results)
            results.append(call.truth or {"value": [1.0] * 4, "spec": {}})
            known = get_tool(call.tool).spec.parameters["properties"]
            assert set(arguments) <= set(known), (template.template, call.tool)


@pytest.mark.parametrize("name", MODULES)
def test_drawing_again_gives_the_same_files(name, drawn, tmp_path):
    first = drawn[name][0]
    record = json.loads(json.dumps(MODULES[name].draw(first.seed, first.difficulty, tmp_path)))
    assert record == first.record
    for path in sorted(first.folder.iterdir()):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


@pytest.mark.slow
def test_marks_are_found_where_they_were_drawn(drawn):
    from agrotools.tools import extract_marked_region

    first = drawn["leaf_lesions"][0]
    (mark, *_) = first.record["boards"][0]["marks"]
    found = extract_marked_region(image=first.folder / "board_0.jpg", mark_color=mark["color"])
    np.testing.assert_allclose(found.crop_box, mark["truth"]["crop_box"], atol=3)


def test_pictures_are_of_the_size_that_was_drawn(drawn):
    with Image.open(drawn["apples"][0].folder / "photo_0.jpg") as photo:
        assert photo.size == (640, 480)
    depth = np.asarray(Image.open(drawn["apples"][0].folder / "depth_0.png"))
    assert depth.dtype.kind in "ui"
    assert 500 < np.median(depth[depth > 0]) < 5500
