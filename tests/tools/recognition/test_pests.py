"""Pictures of pests: fetched, trained on, found by the tool; folders of classes and IP102's layout alike."""

import csv
import lzma
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.workspace import artifacts_in
from agrotools.core import ToolError, UsageError
from agrotools.knowledge.kb_names import kb_names
from agrotools.loading.downloads import Patience
from agrotools.loading.obtaining import Request, list_benchmarks, obtain
from agrotools_tools.recognition import pest_photos as pests
from agrotools_tools.recognition.labelled_pictures import read_labelled
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import load_pack
from support.command import run_command
from support.labelled_pictures import PLANTS, plant_picture

CLASSES = {
    "aphids": PLANTS["green leaf"],
    "termites": PLANTS["brown leaf"],
    "mealybugs": PLANTS["yellow leaf"],
}


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))


def nearest(image: Path) -> str | None:
    """What is named, or what would be nearest: the pack refuses half of what it has not seen."""
    try:
        with artifacts_in(image.parent / "made"):
            return get_tool("diagnose_pest_disease")(image=image, kind="pest").best
    except ToolError as error:
        if error.kind != "low_confidence":
            raise
        return error.candidates[0]


@pytest.mark.process
def test_two_commands_make_a_recogniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, mirror, image = tmp_path / "data", tmp_path / "mirror", tmp_path / "new.png"
    (data / "benchmark").mkdir(parents=True)
    rows = [("image", "label", "group", "source")]
    for place, (label, colour) in enumerate(CLASSES.items()):
        for number in range(8):
            source = f"train/{label}/{number}.jpg"
            (mirror / source).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(plant_picture(colour, 100 * place + number, 300)).save(mirror / source)
            rows.append((f"{label}/{number}.jpg", label, f"{label}{number // 2}", source))
    text = "".join(f"{','.join(row)}\n" for row in rows)
    (data / "pests.csv.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setattr(pests, "_DATA", data)
    Image.fromarray(plant_picture(CLASSES["termites"], 950, 160)).save(image)
    with pytest.raises(ToolError) as caught:
        nearest(image)
    assert (caught.value.setup or "").startswith(
        "make one: agrotools benchmarks get pests, then agrotools tools packs train pests (none ships"
    )
    (mirror / "train/termites/0.jpg").write_bytes(b"no picture")
    request = Request(tmp_path / "cache/data", str(mirror), patience=Patience(attempts=1))
    assert [each.reason for each in obtain("pests", request).failures] == ["differs"]
    Image.fromarray(plant_picture(CLASSES["termites"], 100, 300)).save(
        mirror / "train/termites/0.jpg"
    )
    got = run_command("benchmarks", "get", "pests", "--mirror", mirror)
    assert (got.returncode, "next: agrotools tools packs train pests" in got.stdout) == (0, True)
    assert {row.name: row.state for row in list_benchmarks()}["pests"] == "complete"
    with Image.open(tmp_path / "cache/data/pests/termites/0.jpg") as stored:
        assert stored.size == (160, 160)
    assert (
        "3 classes, 24 pictures in 12 groups"
        in run_command("tools", "packs", "train", "pests").stdout
    )
    assert "UCI" in load_pack("pests").info.licence_note
    assert nearest(image) == "pest.termites"
    assert any(path.parent.name == "pests" for path in get_tool("diagnose_pest_disease").data_files)


def test_the_layout_of_ip102_is_read_as_folders_are(tmp_path: Path) -> None:
    (tmp_path / "ip102_v1.1/images").mkdir(parents=True)
    names = [f"{number:05}.jpg" for number in range(8)]
    for number, name in enumerate(names):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(
            tmp_path / "ip102_v1.1/images" / name
        )
    (tmp_path / "classes.txt").write_text("1  rice leaf roller \t\n2  aphids \n")
    (tmp_path / "ip102_v1.1/train.txt").write_text(
        "".join(f"{name} {n % 2}\n" for n, name in enumerate(names))
    )
    found = read_labelled(tmp_path)
    assert [(one.path.name, one.label) for one in found[:2]] == [
        (names[0], "rice leaf roller"),
        (names[1], "aphids"),
    ]
    (tmp_path / "ip102_v1.1/train.txt").write_text("00000.jpg 7\n")
    with pytest.raises(UsageError, match="as IP102 has it"):
        read_labelled(tmp_path)


def test_every_listed_class_has_an_entry_and_the_dropped_ones_are_not_listed() -> None:
    text = lzma.decompress((pests._DATA / "pests.csv.xz").read_bytes()).decode()
    rows = [*csv.DictReader(text.splitlines())]
    assert (
        len(rows),
        len({row["group"] for row in rows}),
        len({row["label"] for row in rows}),
    ) == (5258, 1107, 12)
    assert all(
        row["label"] == pests.FACTS["classes"][Path(row["source"]).parent.name] for row in rows
    )
    assert all(kb_names().of_name(row["label"], ("pest",)) for row in rows)


@pytest.mark.data
def test_real_pictures_are_told_apart(field_data: Path, tmp_path: Path) -> None:
    pool = field_data.parent / "train/pests"
    if not (pool / "images.zip").is_file():
        pytest.skip(f"{pool} is not here")
    assert obtain("pests", Request(tmp_path, str(pool))).failures == []
    listed = read_labelled(tmp_path / "pests", tmp_path / "pests/list.csv")
    some = [one for one in listed if one.label in ("aphids", "termites", "jute_stem_girdler")][::12]
    assert train_pack(some, tmp_path / "cache/packs/pests").figures.accuracy > 0.6
    assert (
        nearest(field_data / "jute_pests/images/Jute_Stem_Girdler_0.jpg")
        == "pest.jute_stem_girdler"
    )
