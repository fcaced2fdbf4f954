"""Adapters of photographs with one pest, disease or weed each: IP102, PlantSeg, WeedSense."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from data_sets import (
    IP102_ROOT,
    SHELL_PEST,
    WEEKS,
    draw_plant,
    plantseg,
    things_by_file,
    things_of,
    written,
)
from PIL import Image
from scipy.spatial import ConvexHull

from agrotools.knowledge.kb_names import kb_names
from agrotools_build.sources.part import listing_of
from agrotools_build.sources.public import adapter_of
from agrotools_build.sources.public.ip102 import CLASSES, CROPS, known_as, others_on, pests
from agrotools_build.sources.public.plants import CAUSES, known_diseases

ENTRIES = {entry.id: entry for entry in kb_names().entries}
PLANTS = listing_of("plantseg").layout["plants"]


def test_classes_keep_their_names_and_each_is_known_but_one():
    assert len(CLASSES) == len(CROPS) == 102
    assert (CLASSES[0], CLASSES[43], CLASSES[101]) == (
        "rice leaf roller",
        "sericaorient alismots chulsky",
        "Cicadellidae",
    )
    assert CROPS.count("citrus") == 19
    assert set(range(102)) - pests().keys() == {SHELL_PEST}
    assert pests()[29].name == "bird cherry-oat aphid"


def test_a_group_is_never_offered_beside_its_members_and_members_names_are_right_for_it():
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


def test_pests_are_those_of_the_labels_of_the_test_split_and_odd_pictures_are_written_anew_or_left_out(
    data_set, scratch
):
    folder = data_set("ip102")
    part = adapter_of("ip102")(folder, scratch, 200)
    tested = dict(
        line.split() for line in (folder / IP102_ROOT / "test.txt").read_text().splitlines()
    )
    things = [(part.files[thing.files[0].path], thing) for thing in things_of(part)]
    for path, thing in things:
        truth = thing.truth if thing.tool == "diagnose_pest_disease" else thing.before[0].truth
        assert thing.words["name"] == ENTRIES[truth["best"]].names.en
        if path.is_relative_to(folder):
            assert CLASSES[int(tested[path.name])] in ENTRIES[truth["best"]].names.datasets["ip102"]
            assert path.read_bytes()[:2] == b"\xff\xd8"
    names = [path.name for path, _ in things]
    assert len(set(names)) == len(names) > 60
    assert len({thing.words["crop"] for thing in things_of(part, "pest_photo")}) == 8
    (made,) = [path for path, _ in things if path.is_relative_to(scratch)]
    with Image.open(made) as picture:
        assert (picture.format, picture.mode) == ("PNG", "RGB")
    _, second, third, fourth, *_ = tested
    assert not {*names} & {third, "40410.jpg"}
    assert len({*names} & {second, fourth}) <= 1


def test_what_is_offered_is_the_plants_own_and_holds_the_right_one_once(data_set, scratch):
    part = adapter_of("plantseg")(data_set("plantseg"), scratch, 30)
    things = things_by_file(part, "plant_disease")
    assert {path.suffix for path in things} == {".jpg", ".JPG", ".jpeg", ".png"}
    for thing in things.values():
        words, places = thing.words, range(1, int(thing.words["choices"]) + 1)
        offered, ids = (
            [words[f"option_{place}"] for place in places],
            [words[f"id_{place}"] for place in places],
        )
        assert words["label"] in ENTRIES[str(thing.truth["best"])].names.datasets["plantseg"]
        assert offered.count(words["disease"]) == 1
        assert len(set(offered)) == len(offered)
        assert ids[offered.index(words["disease"])] == thing.truth["best"]
        for one in ids:
            assert any(
                label.startswith(words["plant"])
                for label in ENTRIES[one].names.datasets["plantseg"]
            )
    pairs = [subject for subject in part.subjects if subject.of == "plant_disease"]
    same: Counter[bool] = Counter()
    for subject in pairs:
        one, two = (subject.shown(index, index + 1) for index in range(2))
        assert one.words["plant"] == two.words["plant"]
        assert {one.words["sought_id"]} & {one.truth["best"], two.truth["best"]}
        same[one.truth["best"] == two.truth["best"]] += 1
    assert min(same.values()) >= len(pairs) // 4
    assert +part.dropped == {"with a disease that the knowledge base has not": 3}
    lesions = things_by_file(part, "lesion_photo")
    assert len(lesions) > 20
    for path, thing in lesions.items():
        with Image.open(data_set("plantseg") / "annotations" / "test" / f"{path.stem}.png") as mask:
            assert thing.truth == {"lesion_area_px": np.count_nonzero(np.asarray(mask))}
            assert thing.words["pixels"] == str(mask.width * mask.height)


def test_every_label_has_a_plant_a_name_of_its_own_and_a_crop_that_the_tool_finds():
    diseases = known_diseases().values()
    assert {disease.plant for disease in diseases} == set(PLANTS)
    shorts = Counter((disease.plant, disease.short) for disease in diseases)
    ids = Counter((disease.plant, disease.entry.id) for disease in diseases)
    assert set(shorts.values()) == set(ids.values()) == {1}
    assert all(disease.short and disease.short != disease.label for disease in diseases)
    assert {disease.cause for disease in diseases} == {*CAUSES, None}


def test_a_picture_that_cannot_be_read_is_passed_over_and_a_copy_shown_once(tmp_path, data_set):
    # Found in a copy of the set: what a file holds is read once and remembered.
    shown = things_by_file(adapter_of("plantseg")(data_set("plantseg"), tmp_path, 100))
    by_plant = {
        plant: [path.name for path, thing in shown.items() if thing.words["plant"] == plant]
        for plant in PLANTS
    }
    place = written(tmp_path / "set", plantseg()) / "images" / "test"
    broken, first, second = (
        place / name for name in (by_plant["maple"][0], *by_plant["potato"][:2])
    )
    broken.write_bytes(broken.read_bytes()[:500])
    second.write_bytes(first.read_bytes())
    part = adapter_of("plantseg")(tmp_path / "set", tmp_path, 100)
    assert part.dropped["unreadable"] == 1
    assert broken not in things_by_file(part)
    assert len({first, second} & things_by_file(part).keys()) < 2


def _told(path: Path) -> tuple[str, int, int]:
    code, week, frame = re.fullmatch(r"(\w+)_week_(\d+)_IMG_\d+_frame_(\d+)", path.stem).groups()
    return code, int(week), int(frame)


def test_forms_are_those_of_the_masks_and_a_plant_in_pieces_has_none(data_set, own_set, scratch):
    species = listing_of("weedsense").layout["species"]
    part = adapter_of("weedsense")(data_set("weedsense"), scratch, 40)
    forms = things_by_file(part, "pot_weed_form")
    assert len(forms) == 16 * len(WEEKS)
    for path, thing in forms.items():
        assert thing.words["species"] == species[_told(path)[0]]
        assert not re.search(r"\d", thing.files[0].note or "")
        plant = draw_plant(*_told(path))
        ys, xs = np.nonzero(plant)
        corners = np.concatenate(
            [np.stack([xs + dx, ys + dy], 1) for dx in (0, 1) for dy in (0, 1)]
        )
        (form,) = thing.truth["plants"]
        measured = [form[key] for key in ("area_px", "height_px", "width_px")]
        assert measured == [plant.sum(), np.ptp(ys) + 1, np.ptp(xs) + 1]
        assert form["solidity"] == pytest.approx(plant.sum() / ConvexHull(corners).volume, rel=1e-4)
    own = own_set("weedsense")
    mask = next(
        path for path in sorted((own / "test/mmseg_masks").iterdir()) if _told(path)[1] == 11
    )
    values = np.array(Image.open(mask))
    values[150:175] = 0
    Image.fromarray(values).save(mask)
    part = adapter_of("weedsense")(own, scratch, 20)
    assert mask.stem in {path.stem for path in things_by_file(part, "pot_weed")}
    assert mask.stem not in {path.stem for path in things_by_file(part, "pot_weed_form")}


def test_no_week_of_a_species_is_shown_twice_and_series_are_long_enough_for_a_curve(
    data_set, scratch
):
    part = adapter_of("weedsense")(data_set("weedsense"), scratch, 6)
    told = [_told(path)[:2] for path in things_by_file(part, "pot_weed")]
    assert len(told) == len(set(told)) == 12
    assert Counter(code for code, _ in told) == dict.fromkeys({code for code, _ in told}, 4)
    for subject in part.subjects:
        weeks = [int(subject.shown(index, 1).words["week"]) for index in range(subject.things)]
        assert subject.of == "pot_weed_mixed" or weeks == sorted(weeks)
    again = adapter_of("weedsense")(data_set("weedsense"), scratch, 6)
    assert things_by_file(again, "pot_weed").keys() == things_by_file(part, "pot_weed").keys()
