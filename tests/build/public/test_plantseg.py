"""The PlantSeg adapter on a small data set in its authors' layout."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
from data_sets import write_plantseg
from parts import things_by_file
from PIL import Image

from agrotools.build.sources.part import listing_of
from agrotools.build.sources.public import adapter_of
from agrotools.build.sources.public.plants import CAUSES, known_diseases
from agrotools.knowledge.kb_names import kb_names

plantseg = adapter_of("plantseg")
PLANTS = listing_of("plantseg").layout["plants"]


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "Metadata.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _told(folder: Path) -> dict[str, dict[str, str]]:
    return {row["Name"].removesuffix(".jpg"): row for row in _rows(folder)}


def test_diseases_are_those_of_the_metadata_and_all_pictures_those_of_the_test_split(folder, tmp_path):
    things, told = things_by_file(plantseg(folder, tmp_path, 30), "plant_disease"), _told(folder)
    assert len(things) > 50
    for picture, thing in things.items():
        row = told[picture.name.rpartition(".")[0]]
        assert row["Split"] == "Test"
        assert picture.parent.name == "test"
        entry = next(entry for entry in kb_names().entries if entry.id == thing.truth["best"])
        assert row["Disease"] in entry.names.datasets["plantseg"]
        assert thing.words["label"] == row["Disease"]
        assert thing.words["plant"] == row["Plant"].lower()
        assert thing.words["disease"] == row["Disease"].removeprefix(row["Plant"].lower()).removeprefix("vine").strip()
    assert {picture.suffix for picture in things} == {".jpg", ".JPG", ".jpeg", ".png"}


def test_what_is_offered_is_the_plants_own_and_holds_the_right_one_once(folder: Path, tmp_path: Path) -> None:
    for thing in things_by_file(plantseg(folder, tmp_path, 30), "plant_disease").values():
        words = thing.words
        offered = [words[f"option_{place}"] for place in range(1, int(words["choices"]) + 1)]
        assert offered.count(words["disease"]) == 1
        assert len(set(offered)) == len(offered)
        ids = [words[f"id_{place}"] for place in range(1, int(words["choices"]) + 1)]
        assert ids[offered.index(words["disease"])] == thing.truth["best"]
        for one in ids:
            labels = next(entry for entry in kb_names().entries if entry.id == one).names.datasets["plantseg"]
            assert any(label.startswith(words["plant"]) for label in labels)


def test_pairs_are_of_one_plant_and_labels_of_no_entry_are_counted(folder: Path, tmp_path: Path) -> None:
    part = plantseg(folder, tmp_path, 30)
    same: Counter[bool] = Counter()
    pairs = [subject for subject in part.subjects if subject.of == "plant_disease"]
    for subject in pairs:
        one, two = (subject.shown(index, index + 1) for index in range(2))
        assert one.words["plant"] == two.words["plant"]
        assert {one.words["sought_id"]} & {one.truth["best"], two.truth["best"]}
        same[one.truth["best"] == two.truth["best"]] += 1
    assert min(same.values()) >= len(pairs) // 4
    assert +part.dropped == {"with a disease that the knowledge base has not": 3}


def test_every_label_has_a_plant_a_name_of_its_own_and_a_crop_that_the_tool_finds() -> None:
    diseases = known_diseases().values()
    assert {disease.plant for disease in diseases} == set(PLANTS)
    shorts = Counter((disease.plant, disease.short) for disease in diseases)
    ids = Counter((disease.plant, disease.entry.id) for disease in diseases)
    assert set(shorts.values()) == set(ids.values()) == {1}
    assert all(disease.short and disease.short != disease.label for disease in diseases)
    assert {disease.cause for disease in diseases} == {*CAUSES, None}


def test_a_picture_that_cannot_be_read_is_passed_over_and_a_copy_shown_once(tmp_path: Path) -> None:
    folder = write_plantseg(tmp_path / "set")
    # Found in a copy of the set: what a file holds is read once and remembered.
    elsewhere = things_by_file(plantseg(write_plantseg(tmp_path / "copy"), tmp_path, 100))
    shown = {
        plant: [path.name for path, thing in elsewhere.items() if thing.words["plant"] == plant] for plant in PLANTS
    }
    place = folder / "images" / "test"
    broken, twins = place / shown["maple"][0], [place / name for name in shown["potato"][:2]]
    broken.write_bytes(broken.read_bytes()[:500])
    twins[1].write_bytes(twins[0].read_bytes())
    part = plantseg(folder, tmp_path, 100)
    assert part.dropped["unreadable"] == 1
    things = things_by_file(part)
    assert broken not in things
    assert len(set(twins) & things.keys()) < 2


def test_lesions_are_measured_by_their_masks_in_pairs_of_one_plant(folder: Path, tmp_path: Path) -> None:
    part, told = plantseg(folder, tmp_path, 30), _told(folder)
    things = things_by_file(part, "lesion_photo")
    assert len(things) > 20
    for picture, thing in things.items():
        with Image.open(folder / "annotations" / "test" / f"{picture.stem}.png") as mask:
            assert thing.truth == {"lesion_area_px": np.count_nonzero(np.asarray(mask))}
            assert thing.words["pixels"] == str(mask.width * mask.height)
        assert thing.words["plant"] == told[picture.stem]["Plant"].lower()
