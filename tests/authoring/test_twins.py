"""Unanswerable twins of questions: what is withheld, that nothing else differs, and their reference calls."""

from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from agrotools.core import AbstainSlot, Intrinsics, Sample
from agrotools.core.progress import no_progress
from agrotools.loading.pack import read_pack
from agrotools.text.answer_form import answer_form
from agrotools.text.expressions import shows_no_answer
from agrotools_build.building import Group, build_samples
from agrotools_build.choosing import Chosen, ask_subject
from agrotools_build.references import ref
from agrotools_build.scenes.processes import Order, look_of, read_record
from agrotools_build.sources.drawn import find_mark, save_jpeg, save_png
from agrotools_build.sources.drawn.drawing import draw_all, draw_each, subjects_of
from agrotools_build.sources.part import Originals, named, photo_thing
from agrotools_build.templates import Template, load_templates
from agrotools_build.templates.thing import Subject, Thing
from agrotools_build.twins import unanswerable_twin, with_twin, withholdings
from agrotools_tools import AGROTOOLS

FRUIT = {"fruits": [{"diameter_mm": 70.0}], "mean_diameter_mm": 70.0}


@pytest.fixture
def originals(tmp_path: Path) -> Originals:
    (tmp_path / "files").mkdir()
    photo = np.full((40, 60, 3), 120, np.uint8)
    photo[:, :30] = 180
    save_jpeg(tmp_path / "photo.jpg", photo)
    save_png(tmp_path / "depth.png", np.full((40, 60), 900, np.uint16))
    return Originals(tmp_path / "files")


def thing(originals: Originals, folder: Path, place: int = 1, *, mark: str = "") -> Thing:
    camera = Intrinsics(fx_px=500, fy_px=500, cx_px=30, cy_px=20)
    photo = originals.file(folder / "photo.jpg", note="Apples, daylight.").model_copy(
        update={"intrinsics": camera}
    )
    depth = originals.file(folder / "depth.png", kind="depth", depth_unit_mm=1.0)
    files = named(photo, "image", place), named(depth, "depth", place)
    arguments = {"image": files[0].name, "depth": files[1].name}
    made = Thing(
        files, "measure_fruit_size", arguments, FRUIT, files[0].name, "I need the diameters."
    )
    if not mark:
        return made
    before = find_mark(files[0].name, mark, {"crop_box": [1, 1, 20, 20]})
    words = {"colour": mark, "file": files[0].name, "absent": "yellow"}
    return replace(
        made, words=words, before=(before,), arguments={**arguments, "boxes": [ref(0, "crop_box")]}
    )


def asked(file: str, template: str, things: tuple[Thing, ...], *, blank: str = "") -> Chosen:
    question = next(each for each in load_templates(file) if each.template == template)
    instance = question.instantiate(things, np.random.default_rng(3))
    assert instance is not None
    subject = Subject("apples-1-rows", len(things), lambda index, _: things[index], of=question.of)
    if blank:
        subject = replace(subject, blank=lambda file: file.model_copy(update={"path": blank}))
    return Chosen(subject, question, instance, question.wordings[0])


def built(tmp_path: Path, originals: Originals, *items: Chosen) -> list[Sample]:
    for stored, path in originals.files.items():
        (tmp_path / stored).write_bytes(path.read_bytes())
    return build_samples([Group("t", "made", items)], tmp_path, toolset=AGROTOOLS, workers=1)[0]


def _listed(item: Chosen) -> list[dict]:
    return [file.model_dump(exclude={"path", "sha256"}) for file in item.instance.files]


def test_every_way_names_things_of_templates_that_exist() -> None:
    folder = files("agrotools_build.templates")
    names = {each.name[:-5] for each in folder.iterdir() if each.name.endswith(".toml")}
    templates: list[Template] = [template for name in names for template in load_templates(name)]
    kinds, known = {each.of for each in templates}, {each.template for each in templates}
    for way in withholdings():
        assert {*way.of} <= kinds, way.name
        assert {*way.skip} <= known, way.name


def test_twins_differ_in_what_is_withheld_and_the_tool_shows_why(originals, tmp_path) -> None:
    item = asked("drawn_apple", "row_calibre", (thing(originals, tmp_path),))
    pair = with_twin(item)
    twin = next(each for each in pair if isinstance(each.slots[0], AbstainSlot))
    assert len(pair) == 2
    assert {each.pair for each in pair} == {twin.pair}
    assert twin.query == item.query
    assert answer_form(twin.slots) == answer_form(item.slots)
    assert [file.model_copy(update={"intrinsics": None}) for file in item.instance.files] == [
        *twin.instance.files
    ]
    answerable, unanswerable = sorted(
        built(tmp_path, originals, *with_twin(item)), key=lambda each: not each.answerable
    )
    assert (answerable.twin, unanswerable.twin) == (unanswerable.id, answerable.id)
    slot, reference = unanswerable.answer[0], unanswerable.reference
    assert slot.reason == "no_scale"
    (step,) = reference.steps
    assert step.observation.error.kind == "missing_metadata"
    assert not unanswerable.no_tool_eligible
    assert answerable.no_tool_eligible is False  # depth cannot be known by looking


def test_a_comparison_keeps_its_answer_without_the_focal_length_but_not_without_depth(
    originals, tmp_path
) -> None:
    things = tuple(
        replace(
            thing(originals, tmp_path, place), truth={**FRUIT, "mean_diameter_mm": 60.0 + 8 * place}
        )
        for place in (1, 2, 3)
    )
    item = asked("drawn_apple", "row_larger", things, blank="files/blank.png")
    reasons: set[str] = set()
    for wording in item.question.wordings[:20]:
        twin = unanswerable_twin(replace(item, wording=wording))
        assert _listed(twin) == _listed(item)
        (lost,) = [file for file in twin.instance.files if file.path == "files/blank.png"]
        assert [each.reason for each in twin.slots if isinstance(each, AbstainSlot)] == ["no_scale"]
        assert lost.kind == "depth"
        reasons.add(lost.name)
    assert len(reasons) > 1
    twin = unanswerable_twin(asked("drawn_apple", "row_larger", things))
    assert [each.reason for each in twin.slots if isinstance(each, AbstainSlot)] == ["missing_file"]


def test_a_mark_that_is_not_there_changes_one_word_where_the_question_allows_it(
    originals, tmp_path
) -> None:
    item = asked("drawn_apple_marks", "mark_diameter", (thing(originals, tmp_path, mark="blue"),))
    twins = [
        twin
        for wording in item.question.wordings
        if (twin := unanswerable_twin(replace(item, wording=wording)))
        and twin.slots[0].reason == "wrong_subject"
    ]
    assert twins
    for twin in twins:
        assert twin.instance.files == item.instance.files
        assert twin.query == replace(item, wording=twin.wording).query.replace("blue", "yellow")
        assert twin.instance.calls[0].arguments["mark_color"] == "yellow"
    item = asked(
        "drawn_apple", "row_calibre", (replace(thing(originals, tmp_path), words={"disc": "5"}),)
    )
    assert (
        unanswerable_twin(
            replace(item, wording="The disc is {disc} cm across: how thick are they?")
        )
        is None
    )
    bars = tuple(thing(originals, tmp_path, place) for place in (1, 2, 3, 4))
    assert unanswerable_twin(asked("drawn_apple", "row_bars", bars)) is None


def test_a_missing_file_is_one_that_every_value_needs(originals, tmp_path) -> None:
    files = [named(originals.file(tmp_path / "photo.jpg"), "image", place) for place in (1, 2)]
    things = tuple(
        photo_thing(
            file,
            "count_objects",
            {"count": count},
            "I count.",
            {"fruit": "apple", "fruits": "apples"},
        )
        for file, count in zip(files, (4, 9), strict=True)
    )
    twin = unanswerable_twin(asked("orchard", "orchard_sum", things))
    assert (twin.slots[0].reason, len(twin.instance.files)) == ("missing_file", 1)
    assert twin.instance.calls == asked("orchard", "orchard_sum", things).instance.calls
    assert (
        unanswerable_twin(asked("drawn_count", "tally_difference", things)) is None
    )  # it also asks for each number


def test_few_packed_twins_of_embedded_can_be_told_from_the_list_of_files() -> None:
    samples = {sample.id: sample for sample in read_pack("embedded").samples}
    refused = [sample for sample in samples.values() if not sample.answerable]
    reasons = Counter(
        sample.answer[0].reason for sample in refused if isinstance(sample.answer[0], AbstainSlot)
    )
    assert len(refused) >= 0.15 * len(samples)
    # An empty or unfit file is told by its size or its mean colour, so at most one refused question in eight shows one.
    without_content = reasons["no_data"] + reasons["unfit_image"]
    assert without_content <= len(refused) / 8
    needs_a_look = len(refused) - without_content
    assert all(
        reasons[each] >= 0.15 * needs_a_look
        for each in ("wrong_subject", "no_scale", "within_error")
    )
    assert "missing_file" not in reasons

    def facts(sample: Sample) -> list[tuple[str, ...]]:
        return [(file.name, *file.model_dump(exclude_none=True)) for file in sample.files]

    told = [sample.id for sample in refused if facts(sample) != facts(samples[str(sample.twin)])]
    assert 5 * len(told) <= len(refused)


def test_of_two_pictures_only_the_one_that_is_the_answer_is_replaced(originals, tmp_path) -> None:
    things = [
        replace(
            each,
            tool="identify_weed",
            truth={"best": f"weed.{weed}"},
            words={"shows": weed, "id": f"weed.{weed}"},
        )
        for place, weed in ((1, "lantana"), (2, "parkinsonia"))
        for each in [
            photo_thing(
                named(originals.file(tmp_path / "photo.jpg"), "image", place), "x", {}, "I look."
            )
        ]
    ]
    things[1] = replace(
        things[1], files=(things[1].files[0].model_copy(update={"path": "files/second.jpg"}),)
    )
    item = asked("weed", "weed_which", tuple(things))
    spare = things[0].files[0].model_copy(update={"path": "files/spare.jpg"})
    places = {each.files[0].path: spare for each in things}
    twin = unanswerable_twin(
        replace(item, subject=replace(item.subject, instead={"another": places}))
    )
    sought = item.slots[0].value
    assert [each.path == "files/spare.jpg" for each in twin.instance.files] == [
        each.name == sought for each in item.instance.files
    ]
    assert twin.slots[0].reason == "wrong_subject"
    assert str(twin.slots[0].from_).endswith("== ''")


@pytest.fixture(scope="module")
def pots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chosen]:
    """Questions about drawn pots, by template and reason of the twin."""
    folder = tmp_path_factory.mktemp("pots")
    (scene,) = draw_all([Order("pots", 4_100, 0)], folder, no_progress, 1)
    subjects = subjects_of(scene, Originals(folder))
    return {
        template.template: replace(item, wording=template.wordings[0])
        for subject in subjects
        for template in load_templates("drawn_pot")
        if (item := ask_subject(subject, template, 1)) is not None
    }


def twins_of(item: Chosen) -> dict[str, Chosen]:
    found = (
        unanswerable_twin(replace(item, wording=wording)) for wording in item.question.wordings[:30]
    )
    return {twin.slots[0].reason: twin for twin in found if twin is not None}  # type: ignore[union-attr]


def test_a_pot_without_its_disc_is_a_picture_of_its_own_that_is_listed_alike(pots) -> None:
    twin = twins_of(pots["pot_five_mean"])["no_scale"]
    assert len(twin.instance.files) == 5
    for file, shown in zip(twin.instance.files, pots["pot_five_mean"].instance.files, strict=True):
        assert (file.name, file.width_px, file.note) == (shown.name, shown.width_px, shown.note)
        assert file.path != shown.path
    assert twin.instance.calls == pots["pot_five_mean"].instance.calls
    assert "no_scale" not in twins_of(pots["pot_taller"])


def test_a_blank_file_is_drawn_again_with_the_same_pixels(tmp_path) -> None:
    (scene,) = draw_all([Order("tracts", 4_100, 0)], tmp_path / "whole", no_progress, 1)
    originals = Originals(tmp_path / "whole")
    subject = subjects_of(scene, originals)[0]
    assert subject.blank is not None
    shown = subject.shown(0, 1).files[-1]
    blank = subject.blank(shown)
    assert blank.model_copy(update={"path": shown.path, "sha256": shown.sha256}) == shown
    drawn = originals.files[blank.path]
    order = Order("tracts", 4_100, 0, (drawn.name,))
    assert [*draw_each({order: tmp_path / "part"}, 1)] == [order]
    assert read_record(tmp_path / "part")[drawn.name]["pixels"] == look_of(drawn).pixels
    assert [path.name for path in (tmp_path / "part").glob("*.tif")] == [drawn.name]


def test_values_closer_than_the_stated_error_are_of_other_pictures_in_the_same_words(pots) -> None:
    item = pots["pot_surely"]
    twins = twins_of(item)
    assert [*twins] == ["within_error"]
    twin, (slot,) = twins["within_error"], twins["within_error"].slots
    assert twin.query == replace(item, wording=twin.wording).query
    assert [file.name for file in twin.instance.files] == [
        file.name for file in item.instance.files
    ]
    assert isinstance(slot, AbstainSlot)

    def shows(first: float, second: float) -> bool:
        finding = [call for call in twin.instance.calls if call.tool == "extract_marked_region"]
        outlines: list[dict[str, JsonValue]] = [{} for _ in finding]
        heights: list[dict[str, JsonValue]] = [
            {"plants": [{"height_cm": height}]} for height in (first, second, 0.5 * first)
        ]
        return shows_no_answer(slot, outlines + heights)

    assert shows(20.0, 21.5)
    assert not shows(20.0, 23.0)
