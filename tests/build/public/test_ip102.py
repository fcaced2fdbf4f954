"""The IP102 adapter on a small data set in its authors' layout."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_ip102 import LABELS, SHELL, write_ip102
from parts import original_of, things_of
from PIL import Image

from agrotools.build.choosing import choose
from agrotools.build.sources.assembling import SEED
from agrotools.build.sources.part import Part
from agrotools.build.sources.public.ip102 import TEMPLATES, ip102
from agrotools.build.sources.public.ip102_pests import CLASSES, CROPS, known_as, others_on, pests
from agrotools.build.templates import Thing, load_templates
from agrotools.knowledge.kb_names import kb_names
from agrotools.tools import extract_marked_region
from agrotools.tools.workspace import artifacts_in


@pytest.fixture
def folder(data_set: Callable[[str], Path]) -> Path:
    return data_set("ip102")


def _things(part: Part, *kinds: str) -> list[tuple[Path, Thing]]:
    return [(original_of(part, thing), thing) for thing in things_of(part, *kinds)]


def _pixels(path: Path):
    with Image.open(path) as picture:
        return np.asarray(picture)


def _diagnosis(thing: Thing):
    return thing.truth if thing.tool == "diagnose_pest_disease" else thing.before[0].truth


def _listed(folder: Path, split: str) -> dict[str, int]:
    text = (folder / "IP102_v1.1/Classification/ip102_v1.1" / f"{split}.txt").read_text()
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()}


def test_classes_keep_their_names_and_each_is_known_but_one() -> None:
    assert len(CLASSES) == len(CROPS) == 102
    assert CLASSES[0] == "rice leaf roller"
    assert CLASSES[101] == "Cicadellidae"
    assert CLASSES[43] == "sericaorient alismots chulsky"
    assert CROPS.count("citrus") == 19
    assert set(range(102)) - pests().keys() == {SHELL}
    assert pests()[29].name == "bird cherry-oat aphid"


def test_a_group_is_never_offered_beside_its_members_and_members_names_are_right_for_it() -> None:
    aphids, thrips, grain_aphid = pests()[24], pests()[54], pests()[27]
    assert aphids.covers(grain_aphid)
    assert not grain_aphid.covers(aphids)
    assert "Sitobion avenae" in known_as(aphids)
    assert "chilli thrips" in known_as(thrips)
    assert "aphids" not in known_as(grain_aphid)
    for pest in pests().values():
        others = others_on(pest)
        assert pest not in others
        assert len({one.entry.id for one in others}) == len(others) >= 3
        assert {one.crop for one in others} == {pest.crop}
        assert not any(pest.like(one) for one in others)


def test_names_are_those_of_the_labels_and_all_pictures_those_of_the_test_split(
    folder: Path, tmp_path: Path, scratch: Path
) -> None:
    part = ip102(folder, scratch, 60)
    tested = _listed(folder, "test")
    seen = Counter[str]()
    for picture, thing in _things(part, "pest_photo", "pest_group", "pest_damage", "pest_advice"):
        truth = _diagnosis(thing)
        assert truth is not None
        (entry,) = (entry for entry in kb_names().entries if entry.id == truth["best"])
        assert thing.words["name"] == entry.names.en
        if picture.is_relative_to(folder):
            assert CLASSES[tested[picture.name]] in entry.names.datasets["ip102"]
            assert picture.read_bytes()[:2] == b"\xff\xd8"
        seen[picture.name] += 1
    assert len(seen) > 60
    assert max(seen.values()) == 1
    assert len({thing.words["crop"] for _, thing in _things(part, "pest_photo")}) == 8


def test_what_calls_itself_jpg_and_is_none_is_written_anew_and_odd_ones_are_left_out(
    folder: Path, tmp_path: Path, scratch: Path
) -> None:
    part = ip102(folder, scratch, 200)
    tested = list(_listed(folder, "test"))
    used = {picture.name for picture, _ in _things(part)}
    made = [picture for picture, _ in _things(part) if picture.is_relative_to(scratch) and picture.suffix == ".png"]
    assert len(made) == 1
    assert _pixels(made[0]).shape[2] == 3
    assert not used & {tested[2], "40410.jpg"}
    assert len(used & {tested[1], tested[3]}) <= 1
    dropped = {reason: count for reason, count in part.dropped.items() if count}
    assert dropped == {
        "of a class that cannot be told": 4,
        "also in the train split": 1,
        "repeated": 1,
        "under 64 px": 1,
        "boxed, without boxes or with some outside the picture": 1,
        "boxed, with insects of several classes": 1,
        "boxed, of another size than its annotation says": 2,
        "boxed, with no box that an outline fits around": 1,
    }


def test_outlines_are_drawn_around_a_box_and_can_be_found(folder: Path, tmp_path: Path, scratch: Path) -> None:
    part = ip102(folder, scratch, 40)
    marked = _things(part, "pest_marked")
    assert len(marked) >= 5
    for picture, thing in marked:
        (call,) = thing.before
        truth: Any = call.truth
        x0, y0, x1, y1 = truth["crop_box"]
        pixels = _pixels(picture).astype(int)
        assert picture.is_relative_to(scratch)
        stroke = pixels[y0:y1, x0 - 2]
        assert (stroke[:, 0] > 200).all()
        assert (stroke[:, 1:] < 60).all()
        # The insect is dark, the box 32 x 24 px around its middle: no part of it may lie under the stroke.
        assert x1 - x0 >= 32
        assert y1 - y0 >= 24
        assert (pixels[y0:y1, x0:x1].sum(axis=2) < 200).sum() > 200
        with artifacts_in(scratch / "cut"):
            found = extract_marked_region(picture, mark_color="red")
        assert np.abs(np.array(found.regions[0].inner_box) - (x0, y0, x1, y1)).max() <= 3


def test_counts_are_those_of_the_boxes(folder: Path, tmp_path: Path, scratch: Path) -> None:
    counted = _things(ip102(folder, scratch, 40), "pest_count")
    assert len(counted) >= 9
    for picture, thing in counted:
        text = (picture.parents[1] / "Annotations" / f"{picture.stem}.xml").read_text()
        assert thing.truth == {"count": text.count("<object>")}
        assert thing.arguments["target"] in ("insect", "mite")
    assert len({str(thing.truth["count"]) for _, thing in counted}) > 3


def test_classes_of_boxes_are_those_of_the_names_of_files_whatever_their_numbers(
    own_set: Callable[[str], Path], scratch: Path
) -> None:
    own = own_set("ip102")
    for path in own.glob("IP102_v1.1/Detection/VOC2007/Annotations/*.xml"):
        path.write_text(re.sub(r"<name>(\d+)", lambda match: f"<name>{int(match[1]) + 39}", path.read_text()))
    names = {thing.words["name"] for _, thing in _things(ip102(own, scratch, 20), "pest_marked")}
    assert names
    assert names <= {pests()[label].name for label in LABELS}


def test_without_the_detection_part_nothing_is_outlined_or_counted(tmp_path: Path, scratch: Path) -> None:
    without = ip102(write_ip102(tmp_path / "none", 3, LABELS[:8], boxed=0), scratch, 30)
    assert {subject.of for subject in without.subjects} == {"pest_photo", "pest_group", "pest_advice", "pest_damage"}


def test_annotations_that_declare_entities_are_not_read(own_set: Callable[[str], Path], scratch: Path) -> None:
    folder = own_set("ip102")
    path = sorted((folder / "IP102_v1.1/Detection/VOC2007/Annotations").iterdir())[0]
    path.write_text('<!DOCTYPE a [<!ENTITY b "c">]>' + path.read_text())
    assert ip102(folder, scratch, 30).dropped["boxed, with an annotation that cannot be read"] == 1


def test_questions_are_varied(folder: Path, scratch: Path) -> None:
    part = ip102(folder, scratch, 80)
    chosen = choose(part.subjects, part.questions, part.samples, SEED)
    assert len(chosen) == 80
    uses = Counter(item.question.template for item in chosen)
    assert uses.keys() == {question.template for question in part.questions}
    assert max(uses.values()) <= 12
    tools = Counter(len({call.tool for call in item.instance.calls}) for item in chosen)
    assert tools[2] > 40
    assert tools[3] >= 4
    assert {item.instance.answer_type for item in chosen} == {"exact", "tolerance", "plot", "open_text"}
    assert len({item.query for item in chosen}) == 80
    for item in chosen:
        assert "{" not in item.query


def test_every_question_can_be_put_in_chinese_too(folder: Path, tmp_path: Path, scratch: Path) -> None:
    part = ip102(folder, scratch, 60)
    put = Counter[str]()
    for question in (one for file in TEMPLATES for one in load_templates(file, "zh")):
        for subject in part.subjects:
            if subject.of != question.of or subject.things < question.things:
                continue
            things = tuple(subject.shown(index, index + 1) for index in range(question.things))
            asked = question.instantiate(things, np.random.default_rng(1))
            if asked is not None:
                put[question.template] += 1
                for wording in question.wordings:
                    query = asked.query(wording)
                    assert "{" not in query
                    assert "水稻" in query or "rice" not in query.replace("rice ", "")
    assert put.keys() == {one.template for file in TEMPLATES for one in load_templates(file)}
