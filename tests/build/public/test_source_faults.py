"""What is missing or wrong in a data set is named, with where to get the data set."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_hi_cna import draw_bands, write_bands
from fake_plantseg import UNKNOWN
from PIL import Image

from agrotools.build.sources.public import adapter_of
from agrotools.core import BenchmarkError

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


def blank(size: tuple[int, int], colour: tuple[int, int, int] = (0, 0, 0)) -> Callable[[Path], object]:
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
    return lambda path: path.write_text(f"{path.read_text()}{make(path.read_text().splitlines()[1])}\n")


def _unknown_diseases(path: Path) -> None:
    path.write_text(re.sub(r"(?m)^(\d+,[^,]*,[^,]*,)[^,]*", rf"\1{UNKNOWN}", path.read_text()))


HINTS = {
    "agromind": "rssysu/AgroMind", "clcd": "liumency/CropLand-CD", "deepnir": "6324489",
    "deepweeds": "AlexOlsen/DeepWeeds", "fpcd": "ctundia/FPCD", "hi_cna": "10.1016/j.isprsjprs.2024.05.011",
    "ip102": "xpwu95/IP102", "open_canopy": "AI4Forest/Open-Canopy", "papple": "7260694", "plantseg": "17719108",
    "weedmap": "10.3929/ethz-c-000788571", "weedsense": "baselab/weedsense",
}  # fmt: skip
NOT_UTF8 = content(b"\xff\xfe\x00")
PALMS, CORN = "QA_Pairs/*/CO_3_2_4.json", "images/corn/images/image_0003.jpg"
LABEL, LATER = "CLCD/test/label/00001.png", "CLCD/test/time2/00002.png"
BOXES, WEEDS = "orange/test/labels/*.txt", "labels/test_subset0.csv"
POND_LIST, POND_MASK, POND_PHOTO = "FPCD/cd_dataset_test.txt", "FPCD/multi*/multi*/*_1.png", "FPCD/T1/*_2.jpg"
CHANGE, BANDS = "test/change/gf2_1.png", "test/image2/gf2_2.tif"
SPLIT = "IP102_v1.1/Classification/*/test.txt"
GRID, LIDAR = "canopy_height/geometries.geojson", "canopy_height/2021/lidar.vrt"
OUTLINES, SIZES = "gt_json/test/via_region_data_instance.json", "GT_diameter.txt"
DEPTH, APPLES, IN_OUTLINES = "depth_maps/_MG_7600_1.npy", "images/test/_MG_7600_1.png", "_MG_7600_1.png1610302"
TABLE, TESTED = "Metadata.csv", "images/test/*"
LABELS, CHANNEL = "Tiles/*/005/groundtruth/0*_color.png", "Tiles/*/005/tile/NIR/*.png"
FRAMES, POTS, MASKS = "test/test_data.csv", "test/images/images/*.jpg", "test/mmseg_masks/*.png"


def apple(change: Callable[[Any], object]) -> Damage:
    return first(OUTLINES, entries(lambda read: change(read[IN_OUTLINES])))


def tile(change: Callable[[Any], object]) -> Damage:
    return first(GRID, entries(lambda read: change(read["features"][0])))


FAULTS: dict[str, list[tuple[Damage, str]]] = {
    "agromind": [
        (remove, "has no images"),
        (first("images", remove), "has no images"),
        (first(CORN, remove), f"lacks {CORN}"),
        (each("QA_Pairs/*/CO_*.json", remove), "has no question that counts"),
        (first(PALMS, content(b"[")), "cannot be read"),
        (first(PALMS, content(b'{"items": []}')), "is not a list of questions"),
    ],
    "clcd": [
        (remove, "has no test/label"),
        (first("CLCD/test", remove), "has no test/label"),
        (first("CLCD/test/time2", remove), "has no folder time2 or image2 or im2"),
        (each("CLCD/test/time2/*", lambda path: path.rename(path.with_stem(f"b{path.stem}"))), "3 no time2"),
        (each("CLCD/test/time2/*", blank((160, 160), (9, 9, 9))), "3 blank picture"),
        (first(LABEL, pixels(lambda values: values * 0 + 7)), r"00001\.png has values other than 0, 255 or 0, 1: 7"),
        (first(LABEL, blank((160, 160), (255, 0, 0))), r"00001\.png cannot be used"),
        (first(LATER, cut(200)), r"00002\.png cannot be used"),
        (first(LATER, blank((80, 60))), r"00002\.png has 80 x 60 pixels, its mask 160 x 160"),
    ],
    "deepnir": [
        (remove, "has FRUIT/test/images of no fruit"),
        (each("*/test/images", remove), "has FRUIT/test/images of no fruit"),
        (first("cherry/test/labels", remove), "has no labels"),
        (lambda folder: _files(folder, "cherry/test/images/*")[1].unlink(), r"lacks images/cherry1_jpg\.rf\.\d+\.jpg"),
        (each("*/test/*/*", remove), "has no picture in its test part"),
        (first("cherry/test/images/*", cut(900)), "cannot be used"),
        *(
            (first(BOXES, content(f"0 0.5 0.5 0.1 0.1\n{line}\n".encode())), rf"\.txt, line 2 {message}")
            for line, message in (
                ("0 0.5 0.5 0.1", "is not a box"),
                ("0 0.5 0.5 0.1 wide", "is not a box"),
                ("0 0.5 nan 0.1 0.1", "has a box that no picture holds"),
                ("0 120 80 30 30", "has a box that no picture holds"),
                ("3 0.5 0.5 0.1 0.1", "is of class 3"),
            )
        ),
    ],
    "deepweeds": [
        (remove, "has no images and labels"),
        (first(WEEDS, remove), "has no images and labels"),
        (first("images/20170110-101010-0.jpg", remove), "lacks images/20170110-101010-0.jpg"),
        (first(WEEDS, text(",8\n", ",12\n", 1)), "line 18: Label is '12', not a class from 0 to 8"),
        (first(WEEDS, text("Label", "Species")), "has no column 'Label'"),
        (first(WEEDS, NOT_UTF8), "cannot be read: test_subset0.csv is not in utf-8"),
    ],
    "fpcd": [
        (remove, "has no cd_dataset_test.txt and T0 and T1 and multi_class_masks"),
        (first(POND_LIST, remove), "has no cd_dataset_test.txt"),
        (first(POND_LIST, content(b"\n\n")), "lists nothing"),
        (first(POND_LIST, content(b"\xff\xfe\x00\xd8")), "cannot be read"),
        (first(POND_LIST, content(b"Nowhere_At_All_0")), r"\(1 no T0 and T1 and multi_class_masks\)"),
        (first("FPCD/multi_class_masks", remove), "has no cd_dataset_test.txt and T0 and T1 and multi_class_masks"),
        (
            first(POND_MASK, lambda path: Image.new("L", (256, 192), 7).save(path)),
            r"_1\.png has values other than 0, 1, 2, 3, 4: 7",
        ),
        (first(POND_MASK, blank((256, 192), (255, 0, 0))), r"_1\.png cannot be used"),
        (first(POND_PHOTO, cut(900)), r"_2\.jpg cannot be used"),
    ],
    "hi_cna": [
        (remove, "has no test/change"),
        (first("test/image2", remove), "has no folder image2"),
        (each("test/change/*", lambda path: path.rename(path.with_stem(f"b{path.stem}"))), "3 no image1"),
        (
            first(CHANGE, lambda path: Image.effect_noise((160, 160), 60).save(path)),
            r"gf2_1\.png has \d+ values and is not a mask of change",
        ),
        (first(BANDS, lambda path: write_bands(path, draw_bands(2, 12)[0][:3], "uint16")), "has 3 bands, not 4"),
        (first(BANDS, cut(50_000)), r"gf2_2\.tif cannot be"),
        (first(BANDS, content(b"<html>sign in</html>")), r"gf2_2\.tif cannot be used"),
        (
            first(BANDS, lambda path: write_bands(path, draw_bands(2, 12)[1], "uint8")),
            r"gf2_2\.tif holds uint8, .*gf2_2\.tif uint16",
        ),
        (
            first(CHANGE, lambda path: Image.open(path).resize((80, 60), Image.Resampling.NEAREST).save(path)),
            r"gf2_1\.tif has 160 x 160 pixels, its mask 80 x 60",
        ),
    ],
    "ip102": [
        (remove, "has no images and test.txt"),
        (first(SPLIT, remove), "has no images and test.txt"),
        (first("IP102_v1.1/Classification/*/images/00004.jpg", remove), "lacks images/00004.jpg"),
        (first(SPLIT, content(b"00004.jpg 102\n")), "line 1 is not a picture with a label from 0 to 101"),
        (first(SPLIT, content(b"00004.jpg\n")), "line 1 is not a picture with a label"),
    ],
    "open_canopy": [
        (remove, "has no geometries.geojson"),
        (first(GRID, remove), "has no geometries.geojson"),
        (first(GRID, content(b'{"features": [\xff')), "cannot be read"),
        (first(GRID, content(b"[1, 2]")), "is not a grid of tiles"),
        (first(GRID, content(b'{"features": [{"properties": {}}]}')), "is not a grid of tiles"),
        (tile(lambda one: one["properties"].update(split="testing")), "tiles whose split is not"),
        (tile(lambda one: one["properties"].update(split="train")), "has no tile of the test part"),
        (tile(lambda one: one["properties"].update(lidar_year="last year")), "is not a grid of tiles"),
        (tile(lambda one: one.update(geometry=None)), "is not a grid of tiles"),
        (first(GRID, entries(lambda read: read.update(crs={"properties": {"name": "the moon"}}))), ""),
        (each("canopy_height/2021/*.vrt", remove), "of no year"),
        (first("canopy_height/2021/lidar_classification.vrt", remove), "cannot be read"),
        (first(LIDAR, content(b"<VRTDataset rasterXSize=")), "cannot be read"),
        (first(LIDAR, text("UInt16", "Float32")), "not decimetres as uint16"),
        (first(LIDAR, text("1.5", "10")), "is not a map with pixels of 1.5 m"),
        (first(LIDAR, text("<SRS>EPSG:2154</SRS>", "")), "is not a map with pixels of 1.5 m"),
        (each("canopy_height/2021/*/*.tif", remove), "4 unreadable, not fetched or all zero"),
        (
            tile(lambda one: one["geometry"]["coordinates"][0][2].__setitem__(0, 10**6)),
            "4 of a tile that is not 1 km wide",
        ),
    ],
    "papple": [
        (remove, "has no gt_json/test"),
        (first(OUTLINES, remove), "has no gt_json/test"),
        (first("gt_json/test/via_region_data_amodal.json", remove), "has no gt_json/test"),
        (first(SIZES, remove), "has no GT_diameter.txt"),
        (first("depth_maps", remove), "has no depth_maps"),
        (first(DEPTH, remove), f"lacks {DEPTH}"),
        (first(APPLES, remove), f"lacks {APPLES}"),
        (first(OUTLINES, cut(5000)), "cannot be read"),
        (first(OUTLINES, content(b"[]")), "holds no annotations"),
        (apple(lambda one: one.pop("regions")), "holds no annotations"),
        (apple(lambda one: one["regions"]["1"]["region_attributes"].update(apple_ID="third")), "cannot be read"),
        (
            apple(lambda one: one["regions"]["1"]["shape_attributes"].update(all_points_x=["a", "b", "c"])),
            "cannot be read",
        ),
        (
            apple(lambda one: one["regions"]["1"]["shape_attributes"]["all_points_x"].__setitem__(0, 10**12)),
            "beyond any picture",
        ),
        (first(SIZES, append(lambda _: "2020_01_322.txt,large")), "not a diameter"),
        (first(SIZES, lambda path: path.write_text("2020_01_322.txt,6300\n")), "no apple measures 6300 mm"),
        (lambda folder: (folder / "focal_length.txt").write_text("_MG_2600_1.png,far\n"), "not a focal length"),
        (first(DEPTH, array(lambda metres: 1000 * metres)), ""),
        (first(DEPTH, array(lambda metres: metres.T)), "and its picture"),
        (first(DEPTH, cut(9000)), "is no depth in metres"),
        (first(DEPTH, array(lambda _: np.array([{"a": 1}], object))), "is no depth in metres"),
        (first(APPLES, cut(9000)), "cannot be used"),
        (first(SIZES, content(b"2021_01_001.txt,70\n")), "25 apples without a diameter"),
    ],
    "plantseg": [
        (remove, "has no images/test"),
        (first("images", remove), "has no images/test"),
        (first(TABLE, remove), "has no Metadata.csv"),
        (first(TABLE, text("Disease", "Illness")), "has no column 'Disease'"),
        (first(TABLE, text(",Test", ",Training")), "names no disease of a test picture"),
        (first(TABLE, text(",Training", ",Practice", 1)), "Split is 'Practice'"),
        (first(TESTED, remove), "lacks "),
        (each(TESTED, cut(300)), "pictures cannot be read"),
        (
            first(TABLE, append(lambda row: row.replace("apple black rot", "rice blast"))),
            "contradicts itself about apple_black_rot_0",
        ),
        (first(TABLE, _unknown_diseases), "names no disease of a test picture"),
    ],
    "weedmap": [
        (remove, "no tiles of map 003 or 005"),
        (first("Tiles/*/005/tile", remove), "no tiles of map 003 or 005"),
        (each(LABELS, pixels(lambda values: np.where(values == 255, 250, values))), "with labels of other colours"),
        (each(LABELS, blank((2500, 2000))), "unreadable"),
        (first("Tiles/*/005/tile/R", remove), "incomplete"),
        (each(LABELS, remove), "it has none"),
        (each(LABELS, blank((320, 240))), "4 empty"),
        (each(CHANNEL, cut(200)), "unreadable"),
    ],
    "weedsense": [
        (remove, "has no test_data.csv"),
        (first(FRAMES, remove), "has no test_data.csv"),
        (first("test/mmseg_masks", remove), "has no mmseg_masks"),
        (first("test/images/images", remove), "and 17 more"),
        (lambda folder: [remove(path) for path in _files(folder, POTS)[:3]], "lacks images/ABUTH"),
        (first(FRAMES, lambda path: path.write_text(path.read_text().split("\n")[0])), "lists nothing"),
        (first(FRAMES, text("species", "plant", 1)), "no column 'species'"),
        (first(FRAMES, text(",ABUTH,", ",TAROF,", 1)), "line 2: species is 'TAROF'"),
        (first(FRAMES, text(",3.0\n", ",twelve\n", 1)), "week is 'twelve'"),
        (first(FRAMES, append(lambda row: row.replace(",1.0", ",2.0"))), "contradicts itself"),
        (first(POTS, cut(900)), "damaged or cut short"),
        (first(MASKS, content(b"\x89PNG\r\n"), 3), "cannot be used"),
        (first(MASKS, blank((240, 320), (0, 128, 0))), "codes its classes as colours"),
        (first(MASKS, pixels(lambda values: np.maximum(values, 17)), 3), "16, 255: 17"),
        (first(MASKS, pixels(lambda values: values[:-1]), 3), "has 240 x 320 pixels, its mask 240 x 319"),
        (
            each(MASKS, pixels(lambda values: np.where((values > 0) & (values < 255), 1, values))),
            "15 with the number of another species",
        ),
        (each(MASKS, pixels(lambda values: np.where(values > 0, 255, 0))), "most of the masks compared"),
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
def test_what_is_missing_or_wrong_is_named_with_where_to_get_it(own_set, scratch, name, damage, message):
    folder = own_set(name)
    damage(folder)
    with pytest.raises(BenchmarkError) as raised:
        adapter_of(name)(folder, scratch, SAMPLES.get(name, 20))
    assert re.search(message, str(raised.value)), str(raised.value)
    assert HINTS[name] in str(raised.value.hint)
