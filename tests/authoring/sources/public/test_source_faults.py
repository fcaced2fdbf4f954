"""What is missing or wrong in a data set is named, with where to get it, or left out and counted by reason."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import UNKNOWN_DISEASE, draw_land, land_tiff
from PIL import Image

from agrotools.core import BenchmarkError
from agrotools_build.sources.part import listing_of
from agrotools_build.sources.public import adapter_of

Damage = Callable[[Path], object]


def _files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))
    assert found, pattern
    return found


def each(pattern: str, change: Callable[[Path], object]) -> Damage:
    """Change every file of that name."""
    return lambda folder: [change(path) for path in _files(folder, pattern)]


def first(pattern: str, change: Callable[[Path], object], number: int = 0) -> Damage:
    """Change the file of that name that comes first, or has that number."""
    return lambda folder: change(_files(folder, pattern)[number])


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def cut(size: int) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def content(new: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(new)


def text(old: str, new: str, times: int = -1) -> Callable[[Path], object]:
    """Replace a part of the text; all of it if ``old`` is empty."""

    def change(path: Path) -> None:
        before = path.read_text()
        assert old in before
        path.write_text(before.replace(old, new, times) if old else new)

    return change


def pixels(change: Callable[[Any], Any]) -> Callable[[Path], object]:
    """Change the values of a picture."""

    def draw(path: Path) -> None:
        with Image.open(path) as picture:
            values = np.array(picture)
        Image.fromarray(np.asarray(change(values), values.dtype)).save(path)

    return draw


def blank(
    size: tuple[int, int], colour: tuple[int, int, int] = (0, 0, 0)
) -> Callable[[Path], object]:
    return lambda path: Image.new("RGB", size, colour).save(path)


def entries(change: Callable[[Any], object]) -> Callable[[Path], object]:
    """Change the content of a JSON file."""

    def write(path: Path) -> None:
        read = json.loads(path.read_text())
        change(read)
        path.write_text(json.dumps(read))

    return write


def array(change: Callable[[Any], Any]) -> Callable[[Path], object]:
    return lambda path: np.save(path, change(np.load(path)), allow_pickle=True)


def append(make: Callable[[str], str]) -> Callable[[Path], object]:
    """Append a line that is made from the one after the header."""
    return lambda path: path.write_text(
        f"{path.read_text()}{make(path.read_text().splitlines()[1])}\n"
    )


def _unknown_diseases(path: Path) -> None:
    path.write_text(
        re.sub(r"(?m)^(\d+,[^,]*,[^,]*,)[^,]*", rf"\1{UNKNOWN_DISEASE}", path.read_text())
    )


LABEL, LATER = "CLCD/test/label/00001.png", "CLCD/test/time2/00002.png"
WEEDS, POND_LIST = "labels/test_subset0.csv", "FPCD/cd_dataset_test.txt"
CHANGE, BANDS = "test/change/gf2_1.png", "test/image2/gf2_2.tif"
GRID, LIDAR = "canopy_height/geometries.geojson", "canopy_height/2021/lidar.vrt"
OUTLINES, SIZES, DEPTH = (
    "gt_json/test/via_region_data_instance.json",
    "GT_diameter.txt",
    "depth_maps/_MG_7600_1.npy",
)
LABELS = "Tiles/*/005/groundtruth/0*_color.png"
TABLE, FRAMES, MASKS = "Metadata.csv", "test/test_data.csv", "test/mmseg_masks/*.png"


def apple(change: Callable[[Any], object]) -> Damage:
    return first(
        OUTLINES, entries(lambda read: change(read["_MG_7600_1.png1610302"]["regions"]["1"]))
    )


def tile(change: Callable[[Any], object]) -> Damage:
    return first(GRID, entries(lambda read: change(read["features"][0])))


FAULTS: dict[str, list[tuple[Damage, str]]] = {
    "agromind": [
        (remove, "has no images"),
        (each("QA_Pairs/*/CO_*.json", remove), "has no question that counts"),
        (first("QA_Pairs/*/CO_3_2_4.json", content(b"[")), "cannot be read"),
        (
            first("QA_Pairs/*/CO_3_2_4.json", content(b'{"items": []}')),
            "is not a list of questions",
        ),
    ],
    "clcd": [
        (first("CLCD/test", remove), "has no test/label"),
        (first("CLCD/test/time2", remove), "has no folder time2 or image2 or im2"),
        (
            each("CLCD/test/time2/*", lambda path: path.rename(path.with_stem(f"b{path.stem}"))),
            "3 no time2",
        ),
        (
            first(LABEL, pixels(lambda values: values * 0 + 7)),
            r"00001\.png has values other than 0, 255 or 0, 1: 7",
        ),
        (first(LABEL, blank((160, 160), (255, 0, 0))), r"00001\.png cannot be used"),
        (first(LATER, cut(200)), r"00002\.png cannot be used"),
        (first(LATER, blank((80, 60))), r"00002\.png has 80 x 60 pixels, its mask 160 x 160"),
    ],
    "deepnir": [
        (remove, "has FRUIT/test/images of no fruit"),
        (first("cherry/test/labels", remove), "has no labels"),
        (each("*/test/*/*", remove), "has no picture in its test part"),
        (
            first("orange/test/labels/*.txt", content(b"3 0.5 0.5 0.1 0.1\n")),
            r"\.txt, line 1 is of class 3",
        ),
    ],
    "deepweeds": [
        (first(WEEDS, text(",8\n", ",12\n", 1)), "line 18: Label is '12', not a class from 0 to 8"),
        (first(WEEDS, text("Label", "Species")), "has no column 'Label'"),
        (
            first(WEEDS, content(b"\xff\xfe\x00")),
            "cannot be read: test_subset0.csv is not in utf-8",
        ),
    ],
    "fpcd": [
        (first(POND_LIST, content(b"\n\n")), "lists nothing"),
        (
            first(POND_LIST, content(b"Nowhere_At_All_0")),
            r"\(1 no T0 and T1 and multi_class_masks\)",
        ),
    ],
    "hi_cna": [
        (
            first(CHANGE, lambda path: Image.effect_noise((160, 160), 60).save(path)),
            "values and is not a mask",
        ),
        (first(BANDS, content(land_tiff(draw_land(2, 12)[0][:3]))), "has 3 bands, not 4"),
        (first(BANDS, cut(50_000)), r"gf2_2\.tif cannot be"),
        (first(BANDS, content(land_tiff(draw_land(2, 12)[1], "uint8"))), r"holds uint8, .* uint16"),
    ],
    "ip102": [
        (
            first("IP102_v1.1/Classification/*/test.txt", content(b"00004.jpg 102\n")),
            "line 1 is not a picture with a label from 0 to 101",
        )
    ],
    "open_canopy": [
        (first(GRID, content(b'{"features": [{"properties": {}}]}')), "is not a grid of tiles"),
        (tile(lambda one: one["properties"].update(split="testing")), "tiles whose split is not"),
        (tile(lambda one: one["properties"].update(split="train")), "has no tile of the test part"),
        (
            tile(lambda one: one["properties"].update(lidar_year="last year")),
            "is not a grid of tiles",
        ),
        (
            first(
                GRID, entries(lambda read: read.update(crs={"properties": {"name": "the moon"}}))
            ),
            "",
        ),
        (each("canopy_height/2021/*.vrt", remove), "of no year"),
        (first("canopy_height/2021/lidar_classification.vrt", remove), "cannot be read"),
        (first(LIDAR, text("UInt16", "Float32")), "not decimetres as uint16"),
        (first(LIDAR, text("1.5", "10")), "is not a map with pixels of 1.5 m"),
        (
            tile(lambda one: one["geometry"]["coordinates"][0][2].__setitem__(0, 10**6)),
            "4 of a tile that is not 1 km wide",
        ),
    ],
    "papple": [
        (first("depth_maps", remove), "has no depth_maps"),
        (first(OUTLINES, content(b"[]")), "holds no annotations"),
        (apple(lambda one: one["region_attributes"].update(apple_ID="third")), "cannot be read"),
        (
            apple(lambda one: one["shape_attributes"]["all_points_x"].__setitem__(0, 10**12)),
            "beyond any picture",
        ),
        (first(SIZES, append(lambda _: "2020_01_322.txt,large")), "not a diameter"),
        (first(SIZES, content(b"2020_01_322.txt,6300\n")), "no apple measures 6300 mm"),
        (
            lambda folder: (folder / "focal_length.txt").write_text("_MG_2600_1.png,far\n"),
            "not a focal length",
        ),
        (first(DEPTH, array(lambda metres: 1000 * metres)), ""),
        (first(DEPTH, array(lambda metres: metres.T)), "and its picture"),
        (first(DEPTH, cut(9000)), "is no depth in metres"),
        (first(SIZES, content(b"2021_01_001.txt,70\n")), "25 apples without a diameter"),
    ],
    "plantseg": [
        (first(TABLE, text(",Test", ",Training")), "names no disease of a test picture"),
        (first(TABLE, text(",Training", ",Practice", 1)), "Split is 'Practice'"),
        (each("images/test/*", cut(300)), "pictures cannot be read"),
        (
            first(TABLE, append(lambda row: row.replace("apple black rot", "rice blast"))),
            "contradicts itself",
        ),
        (first(TABLE, _unknown_diseases), "names no disease of a test picture"),
    ],
    "weedmap": [
        (remove, "no tiles of map 003 or 005"),
        (each(LABELS, blank((2500, 2000))), "unreadable"),
    ],
    "weedsense": [
        (first("test/images/images", remove), "and 17 more"),
        (first(FRAMES, text(",ABUTH,", ",TAROF,", 1)), "line 2: species is 'TAROF'"),
        (first(FRAMES, text(",3.0\n", ",twelve\n", 1)), "week is 'twelve'"),
        (first(MASKS, pixels(lambda values: np.maximum(values, 17)), 3), "16, 255: 17"),
        (
            first(MASKS, pixels(lambda values: values[:-1]), 3),
            "has 240 x 320 pixels, its mask 240 x 319",
        ),
        (
            each(MASKS, pixels(lambda values: np.where((values > 0) & (values < 255), 1, values))),
            "15 with the number of another species",
        ),
        (
            each(MASKS, pixels(lambda values: np.where(values > 0, 255, 0))),
            "most of the masks compared",
        ),
    ],
}
SAMPLES = {"weedmap": 4, "open_canopy": 4, "agromind": 40}
"""Samples asked for, if not 20."""


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        pytest.param(name, damage, message, id=f"{name}-{number}-{message[:40]}")
        for name, faults in FAULTS.items()
        for number, (damage, message) in enumerate(faults)
    ],
)
def test_what_is_missing_or_wrong_is_named_with_where_to_get_it(
    own_set, scratch, name, damage, message
):
    folder = own_set(name)
    damage(folder)
    with pytest.raises(BenchmarkError) as raised:
        adapter_of(name)(folder, scratch, SAMPLES.get(name, 20))
    assert re.search(message, str(raised.value)), str(raised.value)
    assert listing_of(name).get_it in str(raised.value.hint)


def same_as(name: str) -> Callable[[Path], object]:
    """Write the content of another file of the folder."""
    return lambda path: path.write_bytes(path.with_name(name).read_bytes())


def renamed(old: str, new: str) -> Callable[[Path], object]:
    return lambda path: path.rename(path.with_name(path.name.replace(old, new)))


def plant(change: Callable[[Any, int], object]) -> Callable[[Path], object]:
    """Change the values of a mask, given the number of its plant."""

    def changed(values: Any) -> Any:
        change(values, int(values[(values > 0) & (values < 255)][0]))
        return values

    return pixels(changed)


BEFORE, AFTER, EVENTS = "FPCD/T0/T0/*", "FPCD/T1/*", "FPCD/*/multi_class_masks/*"
MAP = "Tiles/*/003"
LEFT_OUT: dict[str, tuple[list[Damage], dict[str, int]]] = {
    "agromind": (
        [],
        {
            "repeated": 2, "incomplete": 2, "with two answers for one picture": 1,
            "about pictures of IP102, which is a source of its own": 6, "with an answer that no tool measures": 3,
        },
    ),
    "clcd": (
        [
            first("CLCD/test/label/00000.png", remove), first("CLCD/test/time2/00002.png", remove),
            first("CLCD/test/time1/00003.png", blank((160, 160))), each("CLCD/test/*/00005.png", same_as("00004.png")),
        ],
        {"no label": 1, "no time2": 1, "blank picture": 1, "repeated": 1},
    ),
    "fpcd": (
        [
            first(BEFORE, remove), first(f"{AFTER}_1.jpg", remove), first(f"{EVENTS}_2.png", remove),
            first(f"{AFTER}_3.jpg", lambda path: shutil.copy(path, path.with_name(path.name.replace("2015", "2017")))),
            first(f"{AFTER}_4.jpg", renamed("201502", "200612")), first(f"{AFTER}_5.jpg", blank((256, 192))),
            *(first(f"{place}_7.jpg", lambda path: same_as(path.name.replace("7.", "6."))(path))
              for place in (BEFORE, AFTER)),
        ],
        {
            "no T0": 1, "no T1": 1, "no multi_class_masks": 1, "several dates": 1, "dates in the wrong order": 1,
            "blank picture": 1, "repeated": 1,
        },
    ),
    "ip102": (
        [], {"of a class that cannot be told": 4, "also in the train split": 1, "repeated": 1, "under 64 px": 1},
    ),
    "papple": (
        [],
        {
            "pictures whose names tell no year": 1, "pictures without a usable apple": 1, "pictures without depth": 1,
            "outlines of fewer than three points": 19, "outlines without the number of an apple": 44,
            "apples without a diameter": 5, "apples that are mostly hidden": 5, "apples without depth": 4,
            "apples at the edge of a picture": 4, "apples shown in another picture already": 20,
        },
    ),
    "weedmap": (
        [
            first(f"{MAP}/tile/RE/*", remove), first(f"{MAP}/*/*1_*color.png", content(b"\x89PNG\r\n")),
            first(f"{MAP}/*/*2_*color.png", blank((320, 240), (0, 0, 255))), first(f"{MAP}/tile/NIR/*7.png", cut(9000)),
        ],
        {
            "incomplete": 1, "unreadable": 2, "with labels of other colours": 1, "mostly outside the map": 2,
            "empty": 2,
        },
    ),
    "weedsense": (
        [
            first(MASKS, pixels(lambda values: np.where(values == 255, values, 0)), 0),
            first(MASKS, plant(lambda values, _: values[:4].fill(255)), 6),
            first(MASKS, plant(lambda values, number: np.putmask(values, values == number, number % 16 + 1)), 12),
            first(MASKS, plant(lambda values, number: values[20:40, 20:40].fill(number % 16 + 1)), 17),
            first(MASKS, remove, 19),
        ],
        {
            "without a plant": 1, "with more than 1 % left undecided": 1, "with the number of another species": 2,
            "listed files that are missing": 1,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_cannot_be_used_is_left_out_and_counted(data_set, own_set, scratch, tmp_path, name):
    damages, expected = LEFT_OUT[name]
    whole = name != "weedsense"  # of which no more is read than is needed
    folder = Path(shutil.copytree(data_set(name), tmp_path / "whole")) if whole else own_set(name)
    for damage in damages:
        damage(folder)
    part = adapter_of(name)(folder, scratch, 200 if whole else 20)
    assert {reason: count for reason, count in part.dropped.items() if count} == expected
    assert part.subjects
