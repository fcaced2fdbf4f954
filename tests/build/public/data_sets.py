"""Small copies of the twelve public data sets, as their authors lay them out, with what makes them hard to read."""

import csv
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rasterio
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import from_origin

# --- agromind ---

PALM_COUNTS = (23, 60, 41, 12, 77, 35, 52, 8, 66, 30, 48, 19)
_AGROMIND_FRUITS = (("mango", "mangos"), ("apple", "apples"), ("almond", "almonds"))
AGROMIND_COUNTS = (0, 4, 9, 15, 2, 22)


def _noise(path: Path, seed: Sequence[int], size: tuple[int, int] = (210, 200), **options: Any) -> None:
    """Write a picture of noise, (columns, rows)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng([*seed, *path.name.encode()]).normal((80, 120, 60), 14, (size[1], size[0], 3))
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(path, **options)


def write_agromind(folder: Path, questions: str = "QA_Pairs") -> Path:
    """AgroMind: ``QA_Pairs/FAMILY/XX_a_b_c.json`` and ``images/``.

    Returns ``folder``. Traps: paths with and without ``./``, numbers as text and as options that letters name, a
    picture that two files ask about (alike, and not alike), a number that is none, types of questions without a
    picture, a README of another form.
    """
    qa, images = folder / questions, folder / "images"
    files: dict[str, list[dict[str, Any]]] = {}

    def ask(of: str, path: str, question: str, answer: object, **more: object) -> None:
        item = {"image_path": path, "question": question, "answer": answer, "type_id": 2, **more}
        files.setdefault(of, []).append(item | {"item_id": len(files.get(of, [])) + 1})

    for number, count in enumerate(PALM_COUNTS):
        path = f"Oil_palm_trees/Result/images/44000_4000_{number}_77.jpg"
        _noise(images / path, (count, number))
        if number % 2:
            options = {"A": count + 7, "B": count, "C": 3, "D": 99}
            ask("CO_3_2_7", f"./{path}", "How many oil palm trees are there in the image?", "B", options=options)
        else:
            ask("CO_3_2_4", f"./{path}", "How many oil palm trees are there in the image?", str(count))
    first = "./Oil_palm_trees/Result/images/44000_4000_0_77.jpg"
    ask("CO_3_2_4", first, "How many oil palm trees are there in the image?", str(PALM_COUNTS[0]))
    ask("CO_3_2_7", first.replace("_0_", "_2_"), "How many oil palm trees are there in the image?", "A",
        options={"A": 40, "B": 2})  # fmt: skip
    for fruit, said in _AGROMIND_FRUITS:
        for number, count in enumerate(AGROMIND_COUNTS):
            path = f"Fruit/acfr-fruit-dataset/images/{fruit}_{number}.png"
            _noise(images / path, (count, 50 + number))
            ask("CO_3_2_2", f"./{path}", f"How many {said} are there?", str(count))
    for number, count in enumerate(AGROMIND_COUNTS):
        _noise(images / f"corn/images/image_{number:04d}.jpg", (count, 80 + number))
        ask(
            "CO_3_2_3", f"./corn/images/image_{number:04d}.jpg", "How many tassels are there in this image?", str(count)
        )
        _noise(images / f"crop/images/05-15_{number}.png", (count, 90 + number))
        ask("CO_3_2_6", f"./crop/images/05-15_{number}.png",
            "How many different plant individuals are in the image?", str(count))  # fmt: skip
    ask("CO_3_2_3", "./corn/images/image_0000.jpg", "How many tassels are there in this image?", "many")
    ask("CO_3_2_3", "./../../etc/passwd.jpg", "How many tassels are there in this image?", "3")
    for _ in range(3):
        ask("CO_3_2_1", "./Pest/JPEGImages/IP102000010.jpg", "How many Cicadellidae are in this image?", "1")
        ask("OC_2_1_3", "./Pest/JPEGImages/IP102000015.jpg", "What pests are in this image?", "A", options={"A": "x"})
    ask("PDD_2_2_1", "./Leaf_diseases/images/1.jpg", "Is the leaf healthy?", "A", options={"A": "No, it has Scorch"})
    ask("VPR_4_1_2", "./Oil_palm_trees/Result/images/diameter_blank_1.jpg", "What is the diameter?", "6.4")
    ask("SC_3_1_1", "./Agriculture/images/a.jpg", "Which class is it?", "C")
    families = {"CO": "Scene Understanding", "SC": "Scene Understanding", "OC": "Object Understanding",
                "PDD": "Object Understanding", "VPR": "Scene Reasoning"}  # fmt: skip
    for of, items in files.items():
        place = qa / families[of.split("_")[0]]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{of}.json").write_text(json.dumps(items), encoding="utf-8")
    (qa / "README.json").write_text('{"metadata": {}}')
    return folder


# --- clcd ---

FIELDS_PX = 160


def write_clcd(folder: Path, shares_pct: list[float], dates: tuple[str, str] = ("time1", "time2")) -> Path:
    """CLCD: ``CLCD/{train,val,test}/{time1,time2,label}/NNNNN.png``.

    Test pairs of which at least these shares changed, and a train split; returns ``folder``. With what makes such
    folders hard to read: the numbers of the train split come again in the test split, one mask has three channels,
    one pair of pictures are TIFF files, and a Mac left a hidden file beside each mask.
    """
    for split, number_of_pairs in (("train", 1), ("test", len(shares_pct))):
        places = [folder / "CLCD" / split / name for name in (*dates, "label")]
        for place in places:
            place.mkdir(parents=True)
        for number in range(number_of_pairs):
            share = shares_pct[number] if split == "test" else 50.0
            *bands, changed = draw_land(number + 1000 * (split == "train"), share)
            before, after = ((date[[2, 1, 0]] / 8).astype(np.uint8).transpose(1, 2, 0) for date in bands)
            suffix = ".tif" if number == 1 else ".png"
            Image.fromarray(before).save(places[0] / f"{number:05d}{suffix}")
            Image.fromarray(after).save(places[1] / f"{number:05d}{suffix}")
            label = changed.astype(np.uint8) * 255
            Image.fromarray(np.dstack([label] * 3) if number == 2 else label).save(places[2] / f"{number:05d}.png")
            (places[2] / f"._{number:05d}.png").write_bytes(b"\0\5\26\7")
    return folder


# --- deepnir ---

_FRUITS = (
    "apple", "avocado", "blueberry", "capsicum", "cherry", "kiwi", "mango", "orange", "rockmelon", "strawberry",
    "wheat",
)  # fmt: skip
_FRUIT_COUNTS = (3, 12, 0, 7, 25, 5, 1, 16)
"""Fruits of the pictures of a folder, in turn; of the picture with none, every other has no label file at all."""


def write_deepnir(folder: Path, of_each: int = 4, wheat: int = 12) -> Path:
    """deepNIR's fruit boxes: ``FRUIT/{train,valid,test}/{images,labels}``, YOLO lines.

    ``of_each`` test pictures of every fruit but wheat, and one for training that must not be shown. Traps: class 0 in
    every folder, a label file that is missing and one that is empty, boxes that touch borders, a box written twice,
    names as Roboflow writes them, many more pictures of wheat than of anything else.
    """
    for fruit in _FRUITS:
        number_of = wheat if fruit == "wheat" else of_each
        _write_fruits(folder / fruit, fruit, "test", number_of)
        _write_fruits(folder / fruit, fruit, "train", 1)
        (folder / fruit / "data.yaml").write_text(f"nc: 1\nnames: ['{fruit}']\n")
    return folder


def _write_fruits(folder: Path, fruit: str, part: str, number_of: int) -> None:
    images, labels = folder / part / "images", folder / part / "labels"
    images.mkdir(parents=True)
    labels.mkdir()
    for number in range(number_of):
        count = _FRUIT_COUNTS[(number + _FRUITS.index(fruit)) % len(_FRUIT_COUNTS)]
        stem = f"{fruit}{number}_jpg.rf.{number:08x}"
        _noise(images / f"{stem}.jpg", (len(part),), (300 + number, 260))
        places = [(0.05 + 0.1 * (place % 5), 0.05 + 0.1 * (place // 5)) for place in range(count)]
        lines = [f"0 {x:.6f} {y:.6f} 0.08 0.08" for x, y in places]
        if lines and number % 2:
            lines.append(lines[0])
        if lines or number % 2:
            (labels / f"{stem}.txt").write_text("".join(f"{line}\n" for line in lines))


# --- deepweeds ---

CLASSES = 9


def write_deepweeds(folder: Path, of_each: int = 2) -> Path:
    """DeepWeeds: ``images/`` flat, ``labels/test_subset0.csv`` with two columns.

    ``of_each`` pictures of every class; returns ``folder``.
    """
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    rows = ["Filename,Label"]
    for label in range(CLASSES):
        for number in range(of_each):
            name = f"2017{label + 1:02d}{number + 10:02d}-101010-{number % 4}.jpg"
            _noise(folder / "images" / name, (label,), (256, 256))
            rows.append(f"{name},{label}")
    (folder / "labels" / "test_subset0.csv").write_text("\n".join(rows) + "\n")
    return folder


# --- fpcd ---

POND_WIDTH, POND_HEIGHT = 256, 192
VILLAGE = "Akola_Old_Akhatwada"

Ponds = Sequence[tuple[int, int, int, int]]
"""Of each pond what happened to it (1 to 4, 0 nothing), its left and upper corner, its side in pixels."""


def _draw_ponds(seed: int, ponds: Ponds) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Fields with ponds on two dates, and the classes of what happened."""
    draw = np.random.default_rng([51, seed])
    ground = draw.normal((150, 128, 92), 9, (POND_HEIGHT, POND_WIDTH, 3))
    dates = [ground.copy(), ground + draw.normal(0, 3, ground.shape)]
    codes = np.zeros((POND_HEIGHT, POND_WIDTH), np.uint8)
    for event, x, y, side in ponds:
        for picture, is_there in zip(dates, (event != 1, event != 2), strict=True):
            if is_there:
                picture[y : y + side, x : x + side] = (34, 66, 62)
        codes[y : y + side, x : x + side] = event
    before, after = (np.clip(one, 0, 255).astype(np.uint8) for one in dates)
    return before, after, codes


def pond_key(number: int) -> str:
    return f"{VILLAGE}_{number}"


def write_fpcd(folder: Path, pairs: Sequence[Ponds], train: int = 2) -> Path:
    """FPCD: ``FPCD/{T0,T1}/District_Village_YYYYMM_index.jpg``, masks without the date.

    Pairs of the test list, and ``train`` more. Returns ``folder``. With what makes such folders hard to read: a
    village whose name has an underscore, archives that hold a folder of their own name, a train list that names
    pictures and has pairs of the test list, a test list that names masks, blurred masks of tasks, and hidden files.
    """
    root = folder / "FPCD"
    nested = {name: root / name / name for name in ("T0", "multi_class_masks")}
    places = {name: nested.get(name, root / name) for name in ("T0", "T1", "multi_class_masks")}
    for place in places.values():
        place.mkdir(parents=True)
    every = [*pairs, *([[(1, 20, 20, 40)]] * train)]
    for number, ponds in enumerate(every):
        before, after, codes = _draw_ponds(number, ponds)
        Image.fromarray(before).save(places["T0"] / f"{VILLAGE}_200703_{number}.jpg", quality=90)
        Image.fromarray(after).save(places["T1"] / f"{VILLAGE}_201502_{number}.jpg", quality=90)
        mask = Image.fromarray(codes)
        mask.putpalette([0, 0, 0, 0, 255, 0, 255, 0, 0, 255, 255, 0, 0, 0, 255])
        mask.save(places["multi_class_masks"] / f"{pond_key(number)}.png")
        (places["multi_class_masks"] / f"._{pond_key(number)}.png").write_bytes(b"\0\5\26\7")
    (root / "cd_dataset_test.txt").write_text("".join(f"{pond_key(number)}\n" for number in range(len(pairs))))
    return folder


# --- hi_cna ---

_SPECTRA = np.array(
    [
        (310, 420, 330, 1500),  # a crop
        (430, 600, 820, 1050),  # bare soil
        (330, 380, 260, 0),  # water
        (720, 820, 900, 1000),  # built up
    ],
    np.float64,
)
"""Blue, green, red and infrared of each land cover, 0 to 2047."""


def draw_land(seed: int, share_pct: float) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Blue, green, red and infrared of two dates, and where cropland was built over; fields that were bare and are now
    green are no change."""
    draw = np.random.default_rng([42, seed])
    rows, columns = np.mgrid[0:FIELDS_PX, 0:FIELDS_PX]
    before = (rows // 40 + columns // 53 + seed) % 2
    before[rows + columns > 2 * FIELDS_PX - 60] = 2
    changed = np.zeros((FIELDS_PX, FIELDS_PX), np.bool_)
    while 100 * changed.mean() < share_pct:
        x, y = (int(draw.integers(0, FIELDS_PX - 50)) for _ in range(2))
        changed[y : y + 16, x : x + 22] = True
    after = np.where(before == 2, 2, 1 - before)
    after[changed] = 3
    two = [
        np.clip(_SPECTRA[land].transpose(2, 0, 1) + draw.normal(0, 15, (4, FIELDS_PX, FIELDS_PX)), 0, 2047)
        for land in (before, after)
    ]
    for bands, land in zip(two, (before, after), strict=True):
        bands[3][land == 2] = 0
    return *two, changed


def write_hi_cna(folder: Path, shares_pct: list[float], dtype: str = "uint16") -> Path:
    """Hi-CNA: ``{train,test}/{image1,image2}/<stem>.tif`` of four bands, and ``change/<stem>.png``.

    Test pairs of which at least these shares changed, and a train split; returns ``folder``. With what makes it hard
    to read: bands in the satellite's order or in that of a screen, 16 bits or 8, an infrared band that calls itself
    alpha and is 0 over water, and masks with several codes.
    """
    for split, shares in (("train", [50.0]), ("test", shares_pct)):
        for name in ("image1", "image2", "change"):
            (folder / split / name).mkdir(parents=True)
        for number, share in enumerate(shares):
            before, after, changed = draw_land(number + 1000 * (split == "train"), share)
            stem = f"gf2_{number}"
            for name, bands in (("image1", before), ("image2", after)):
                write_bands(folder / split / name / f"{stem}.tif", bands[[2, 1, 0, 3]], dtype)
            codes = np.where(changed, 255 if number % 2 else 1 + np.arange(FIELDS_PX) // 90, 0)
            Image.fromarray(codes.astype(np.uint8)).save(folder / split / "change" / f"{stem}.png")
    return folder


def write_bands(path: Path, bands: NDArray, dtype: str) -> None:
    """0 to 2047 in that type; of 8 bits, as a picture with an alpha channel."""
    options = {"photometric": "RGB", "alpha": "YES"} if dtype == "uint8" else {}
    scale = {"uint8": 1 / 8, "uint16": 1.0, "float32": 1 / 2047}[dtype]
    profile = {
        "driver": "GTiff", "count": len(bands), "height": FIELDS_PX, "width": FIELDS_PX, "dtype": dtype,
        "crs": "EPSG:32650",
        "transform": from_origin(400_000, 3_400_000, 0.8, 0.8), **options,
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as raster:
        raster.write((bands * scale).astype(dtype))


# --- ip102 ---

_PEST_LABELS = (0, 1, 3, 7, 14, 18, 21, 24, 28, 30, 36, 37, 47, 50, 52, 57, 62, 67, 74, 76, 88, 89, 97, 98)
"""Classes with pictures, of all eight crops."""
SHELL_PEST = 13
"""A class that nobody can tell."""


def write_ip102(folder: Path, of_each: int = 4, labels: Sequence[int] = _PEST_LABELS) -> Path:
    """IP102: ``Classification/ip102_v1.1`` with images and splits.

    ``of_each`` test pictures of every class and one for training. Returns ``folder``. Traps: a PNG with alpha and a
    grey picture that call themselves .jpg, a thumbnail, a test picture that is a train picture too, one named among
    those known to be, a line with spaces before its label, a folder of the Mac.
    """
    root = folder / "IP102_v1.1" / "Classification" / "ip102_v1.1"
    (root / "images").mkdir(parents=True)
    (folder / "__MACOSX").mkdir()
    splits: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    number = 2
    for label in (*labels, SHELL_PEST):
        for split in ("train", "val", *["test"] * of_each):
            name = f"{number:05d}.jpg"
            _noise(root / "images" / name, (label,))
            splits[split].append(f"{name} {label}")
            number += 1
    first = splits["test"][0].split()[0]
    _save_as(root / "images" / first, "PNG", "RGBA")
    _save_as(root / "images" / splits["test"][1].split()[0], "JPEG", "L")
    Image.new("RGB", (52, 80), (90, 140, 60)).save(root / "images" / splits["test"][2].split()[0])
    shutil.copyfile(root / "images" / splits["test"][1].split()[0], root / "images" / splits["test"][3].split()[0])
    _noise(root / "images" / "40410.jpg", (labels[0],))
    splits["test"].append(f"40410.jpg   {labels[0]} ")
    for split, lines in splits.items():
        (root / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


def _save_as(path: Path, kind: str, mode: str) -> None:
    with Image.open(path) as picture:
        changed = picture.convert(mode)
    changed.save(path, kind)


# --- open_canopy ---

TILE_PX = 667
PIXEL_M = 1.5
LEFT_M, TOP_M = 700_000, 6_600_000


@dataclass(frozen=True)
class FakeTile:
    """``looks``: ``forest``, ``town`` (roofs over a third of it), ``meadow``, ``lake``, ``hole`` (listed in the virtual
    raster, not there), ``zeros`` (a hole that reads as 0) or ``tower`` (a spike of 150 m)."""

    split: str = "test"
    looks: str = "forest"


CANOPY_ROW = (FakeTile(), FakeTile("buffer"), FakeTile(looks="town"), FakeTile("train"), FakeTile())


def write_open_canopy(
    folder: Path, rows: dict[int, Sequence[FakeTile]] | None = None, *, crs: str | None = "urn:ogc:def:crs:EPSG::2154"
) -> Path:
    """Open-Canopy: a row of 1 km tiles a year, virtual rasters over them, and the grid.

    Tiles of several years, each year in a row of its own; returns ``folder``, which has a folder canopy_height.
    """
    root = folder / "canopy_height"
    features = []
    for number, (year, tiles) in enumerate((rows or {2021: CANOPY_ROW, 2023: CANOPY_ROW}).items()):
        top = TOP_M - 3000 * number
        written = {"lidar": [], "lidar_classification": []}
        for column, tile in enumerate(tiles):
            heights, classes = draw_tile(year, column, tile.looks)
            left = LEFT_M + 1000 * column
            for name, values in (("lidar", heights), ("lidar_classification", classes)):
                path = root / str(year) / name / f"tile_{column}.tif"
                path.parent.mkdir(parents=True, exist_ok=True)
                written[name].append(path)
                if tile.looks != "hole":
                    _write_canopy(path, values, left, top)
            x1, y0 = left + 1000, top - 1000
            ring = [[left, top], [x1, top], [x1, y0], [left, y0], [left, top]]
            shape = {"type": "MultiPolygon", "coordinates": [[ring]]} if column % 2 else _polygon(ring)
            properties = {"split": tile.split, "lidar_year": year, "X": "0700"}
            features.append({"type": "Feature", "properties": properties, "geometry": shape})
        for name, dtype in (("lidar", "UInt16"), ("lidar_classification", "Byte")):
            _write_virtual(root / str(year) / f"{name}.vrt", written[name], dtype, top)
        (root / str(year) / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    named = {"crs": {"type": "name", "properties": {"name": crs}}} if crs else {}
    grid = {"type": "FeatureCollection", **named, "features": features}
    (root / "geometries.geojson").write_text(json.dumps(grid))
    return folder


def draw_tile(year: int, column: int, looks: str) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Heights in decimetres, 0 where the ground is bare, and the class of most laser returns."""
    rng = np.random.default_rng([year, column])
    coarse = rng.normal(0.4, 1.0, (14, 14)).astype(np.float32)
    stand = cv2.resize(coarse, (TILE_PX, TILE_PX), interpolation=cv2.INTER_CUBIC) + rng.normal(0, 0.1, (TILE_PX,) * 2)
    heights = np.clip(np.rint(120 * stand), 0, 380).astype(np.uint16)
    if looks in ("meadow", "lake"):
        heights = np.minimum(heights, 8).astype(np.uint16)
    classes = np.select([heights >= 15, heights > 5, heights > 0], [5, 4, 3], 2).astype(np.uint8)
    roof = np.zeros(classes.shape, bool)
    roof[100:130, 200:240] = True
    if looks == "town":
        roof[: TILE_PX // 3] = True
    heights[roof], classes[roof] = 95, 6
    heights[400:404, 500:506], classes[400:404, 500:506] = 210, 1
    if looks == "lake":
        heights[50:], classes[50:] = 0, 9
    if looks == "tower":
        heights[::40, ::40], classes[::40, ::40] = 1500, 5
    if looks == "zeros":
        heights[:], classes[:] = 0, 5
    return heights, classes


def _polygon(ring: list[list[float]]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": [ring]}


def _write_canopy(path: Path, values: NDArray[np.uint16] | NDArray[np.uint8], left: float, top: float) -> None:
    profile = {
        "driver": "GTiff", "count": 1, "height": TILE_PX, "width": TILE_PX, "dtype": values.dtype.name,
        "crs": "EPSG:2154", "transform": from_origin(left, top, PIXEL_M, PIXEL_M), "compress": "deflate",
    }  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(values, 1)


def _write_virtual(path: Path, files: Sequence[Path], dtype: str, top: float) -> None:
    """As GDAL builds it: a tile begins wherever its coordinates say, which may be within a pixel."""
    sources = "".join(
        f'<SimpleSource><SourceFilename relativeToVRT="1">{file.relative_to(path.parent)}</SourceFilename>'
        f'<SourceBand>1</SourceBand><SrcRect xOff="0" yOff="0" xSize="{TILE_PX}" ySize="{TILE_PX}"/>'
        f'<DstRect xOff="{1000 * column / PIXEL_M}" yOff="0" xSize="{TILE_PX}" ySize="{TILE_PX}"/></SimpleSource>'
        for column, file in enumerate(files)
    )
    width = int(1000 * (len(files) - 1) / PIXEL_M + 1) + TILE_PX
    path.write_text(
        f'<VRTDataset rasterXSize="{width}" rasterYSize="{TILE_PX}"><SRS>EPSG:2154</SRS>'
        f"<GeoTransform>{LEFT_M}, {PIXEL_M}, 0, {top}, 0, -{PIXEL_M}</GeoTransform>"
        f'<VRTRasterBand dataType="{dtype}" band="1">{sources}</VRTRasterBand></VRTDataset>'
    )


# --- papple ---

FOCAL_PX = 5805.34
APPLES_WIDTH, APPLES_HEIGHT = 620, 420
_ACROSS, _DOWN = (110, 310, 510), (110, 300)
WALL_M = 3.4
_HIDDEN, _CUT_OFF, _NO_DEPTH = "hidden", "edge", "no depth"

_Regions = dict[str, Any]


def write_papple(folder: Path, crops: int = 8) -> Path:
    """PApple RGB-D-Size: spheres of known size before a camera of 5805.34 px.

    ``crops`` pictures for 2018 and as many for 2020, every fourth with the apples of the one before it. Traps: apples
    that were not measured (number 0) or whose number has no diameter, an apple in two pieces, apples mostly hidden,
    cut off by the edge or without depth, an outline of two points, regions without a number, keys that end in another
    size in the second file, depth of half the size, the same apples in two crops, numbers that are one apple in 2018
    and another in 2020, a picture without a usable apple, one without any depth, one whose name tells no year.
    """
    for part in ("images/test", "images/train", "gt_json/test", "gt_json/train", "depth_maps"):
        (folder / part).mkdir(parents=True)
    seen: _Regions = {}
    whole: _Regions = {}
    lines: list[str] = []
    for year, first in ((2018, "2"), (2020, "7")):
        for crop in range(crops):
            suffix = ".JPG" if crop % 3 == 2 else ".png"
            name = f"_MG_{first}{600 + crop}_{crop + 1}{suffix}"
            scene = crop - 1 if crop % 4 == 3 else crop
            lines += _write_apples(folder, name, year, scene, seen, whole, halved=crop % 2 == 1)
    odd = {"_MG_2900_1.png": "nothing measured", "_MG_2901_1.png": "no depth at all", "_MG_9000_1.png": "no year"}
    for number, (name, fault) in enumerate(odd.items()):
        lines += _write_apples(folder, name, 2018, 90 + number, seen, whole, fault=fault)
    for part, found in (("instance", seen), ("amodal", whole)):
        (folder / "gt_json" / "test" / f"via_region_data_{part}.json").write_text(json.dumps(found))
        (folder / "gt_json" / "train" / f"via_region_data_{part}.json").write_text("{}")
    (folder / "GT_diameter.txt").write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))
    return folder


def _write_apples(
    folder: Path,
    name: str,
    year: int,
    scene: int,
    seen: _Regions,
    whole: _Regions,
    *,
    halved: bool = False,
    fault: str = "",
) -> list[str]:
    """One picture; returns the lines of its diameters."""
    draw = np.random.default_rng([year, scene])
    pixels = np.clip(draw.normal((70, 105, 50), 12, (APPLES_HEIGHT, APPLES_WIDTH, 3)), 0, 255)
    metres = np.full((APPLES_HEIGHT, APPLES_WIDTH), WALL_M)
    metres[draw.random((APPLES_HEIGHT, APPLES_WIDTH)) < 0.03] = 0
    lines: list[str] = []
    regions: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for place in range(6):
        number = 10 * scene + place + 1
        diameter = int(draw.integers(45, 92))
        state = {1: _HIDDEN, 2: _CUT_OFF, 3: _NO_DEPTH}.get(place if scene % 3 == 1 else -1, "")
        x = _ACROSS[place % 3] + int(draw.integers(-8, 9)) if state != _CUT_OFF else APPLES_WIDTH - 20
        y, far = _DOWN[place // 3] + int(draw.integers(-8, 9)), float(draw.uniform(2.9, 3.1))
        radius = FOCAL_PX * diameter / 2000 / far
        _paint_apple(pixels, metres, (x, y), radius, diameter / 2000, far, no_depth=state == _NO_DEPTH)
        known = "0" if fault == "nothing measured" or place == 5 else str(number)
        full = _circle(x, y, radius)
        pieces = [full]
        if place == 4:
            pieces = [_circle(x, y, radius, side) for side in (-1, 1)]
            pixels[:, x - 6 : x + 6] = (60, 80, 40)
        elif state == _HIDDEN:
            pieces = [_circle(x, y, radius, -1, 0.3 * radius)]
        regions += [(_region(known, piece), _region(known, full)) for piece in pieces]
        if known != "0" and not (place == 0 and scene % 2):
            lines.append(f"{year}_01_{number:03d}.txt,{diameter}")
    if fault == "no depth at all":
        metres[:] = 0
    (folder / "images" / "test" / name).parent.mkdir(exist_ok=True)
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(
        folder / "images" / "test" / name,
        "PNG" if name.endswith("png") else "JPEG",
        **({} if name.endswith("png") else {"quality": 95}),
    )
    np.save(folder / "depth_maps" / f"{Path(name).stem}.npy", metres[::2, ::2] if halved else metres)
    two_points = _region("77", [(5, 5), (9, 9)])
    of_seen = [one for one, _ in regions] + [two_points, {**two_points, "region_attributes": {}}]
    seen[f"{name}1610302"] = _entry(name, 1610302, of_seen)
    of_whole = {json.dumps(one): one for _, one in regions}
    whole[f"{name}{1610302 + scene % 2}"] = _entry(name, 1610302 + scene % 2, [*of_whole.values()])
    return lines


def _paint_apple(
    pixels: np.ndarray,
    metres: np.ndarray,
    at: tuple[int, int],
    radius: float,
    size_m: float,
    far: float,
    *,
    no_depth: bool,
) -> None:
    y, x = np.mgrid[0:APPLES_HEIGHT, 0:APPLES_WIDTH]
    aside = np.hypot(x - at[0], y - at[1]) / radius
    inside = aside < 1
    bulge = np.sqrt(np.clip(1 - aside**2, 0, 1))
    pixels[inside] = np.array((175, 40, 45)) * (0.55 + 0.5 * bulge[inside, None])
    metres[inside] = 0 if no_depth else (far - size_m * bulge)[inside]


def _circle(x: int, y: int, radius: float, side: int = 0, cut: float = 6.0) -> list[tuple[int, int]]:
    """The outline of a disc, or of what lies to the left (-1) or right (1) of a strip ``cut`` px from its middle."""
    turns = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    xs, ys = x + radius * np.cos(turns), y + radius * np.sin(turns)
    if side:
        limit = x + side * cut
        xs = np.minimum(xs, limit) if side < 0 else np.maximum(xs, limit)
    return [(round(float(a)), round(float(b))) for a, b in zip(xs, ys, strict=True)]


def _region(number: str, points: list[tuple[int, int]]) -> dict[str, Any]:
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    shape = {"name": "polygon", "all_points_x": xs, "all_points_y": ys}
    return {"shape_attributes": shape, "region_attributes": {"apple_ID": number}}


def _entry(name: str, size: int, regions: list[dict[str, Any]]) -> dict[str, Any]:
    numbered = {str(number): region for number, region in enumerate(regions)}
    return {
        "fileref": "", "size": size, "filename": name, "base64_img_data": "", "file_attributes": {},
        "regions": numbered,
    }  # fmt: skip


# --- plantseg ---

PLANT_DISEASES = {
    "apple": ("apple black rot", "apple mosaic virus", "apple rust", "apple scab"),
    "bell pepper": ("bell pepper bacterial spot", "bell pepper blossom end rot", "bell pepper powdery mildew"),
    "coffee": ("coffee leaf rust", "coffee brown eye spot"),
    "cucumber": ("cucumber angular leaf spot", "cucumber bacterial wilt", "cucumber powdery mildew"),
    "grape": ("grape downy mildew", "grapevine leafroll disease", "grape black rot"),
    "maple": ("maple tar spot",),
    "potato": ("potato early blight", "potato late blight"),
    "tomato": ("tomato early blight", "tomato late blight", "tomato mosaic virus", "tomato bacterial leaf spot"),
    "wheat": ("wheat stem rust", "wheat bacterial leaf streak (black chaff)", "wheat head scab"),
}
UNKNOWN_DISEASE = "tomato purple wobble"
_DISEASE_COLUMNS = (
    "Index", "Name", "Plant", "Disease", "Resolution", "Label file", "Mask ratio", "URL", "License", "Split",
)  # fmt: skip
_DISEASE_FOLDERS = {"Training": "train", "Validation": "val", "Test": "test"}


def write_plantseg(
    folder: Path,
    of_each: int = 3,
    table: str = "Metadata.csv",
    all_diseases: Mapping[str, Sequence[str]] = PLANT_DISEASES,
) -> Path:
    """PlantSeg: ``images/{train,val,test}``, ``annotations/...``, ``Metadata.csv``.

    ``of_each`` test pictures of every disease, thrice as many of the first, some for training too. Traps: names that
    lie about the suffix, dots in names, a picture turned by EXIF, labels that no knowledge base has, one disease with
    many pictures, a mask whose value is another class, pictures for training that must not be shown.
    """
    rows: list[dict[str, object]] = []
    for plant, diseases in all_diseases.items():
        for label in (*diseases, *([UNKNOWN_DISEASE] if plant == "tomato" else [])):
            many = of_each * (3 if label == "apple scab" else 1)
            splits = ["Test"] * many + (["Training", "Validation"] if all_diseases is PLANT_DISEASES else [])
            for number, split in enumerate(splits):
                rows.append(_written_disease(folder, len(rows), plant, label, number, split))
    with (folder / table).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _DISEASE_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return folder


def _written_disease(folder: Path, index: int, plant: str, label: str, number: int, split: str) -> dict[str, object]:
    images, masks = folder / "images" / _DISEASE_FOLDERS[split], folder / "annotations" / _DISEASE_FOLDERS[split]
    masks.mkdir(parents=True, exist_ok=True)
    # A prefix that is another disease's: only the metadata tell.
    stem = f"{'apple_scab' if number % 2 else label.replace(' ', '_')}_{index}{'.v2' if number == 1 else ''}"
    draw = np.random.default_rng(index)
    width, height = int(draw.integers(120, 200)), int(draw.integers(90, 160))
    mask = np.zeros((height, width), np.uint8)
    mask[20:36, 30:60] = 1 + index % 115
    suffix = "png" if number == 2 else "jpg" if index % 5 == 0 else "jpeg" if index % 3 else "JPG"
    exif = Image.Exif()
    if suffix == "jpg":
        exif[0x0112] = 6
    _noise(images / f"{stem}.{suffix}", (index,), (width, height), exif=exif)
    Image.fromarray(mask).save(masks / f"{stem}.png")
    told = (index, f"{stem}.jpg", plant.title(), label, f"{width}x{height}", f"{stem}.png", float((mask > 0).mean()))
    return dict(zip(_DISEASE_COLUMNS, (*told, "", "CC BY-NC 4.0", split), strict=True))


# --- weedmap ---

CHANNELS = {"003": ("B", "G", "R", "RE", "NIR"), "005": ("G", "R", "RE", "NIR")}
_SENSORS = {"003": "RedEdge", "005": "Sequoia"}
_PLANT = {"B": 40, "G": 95, "R": 50, "RE": 130, "NIR": 190}
_WEED = {"B": 42, "G": 99, "R": 62, "RE": 104, "NIR": 176}
_SOIL = {"B": 70, "G": 90, "R": 115, "RE": 120, "NIR": 125}
ROWS_PX, COLUMNS_PX = 240, 320
EDGE, OUTSIDE, CROP_ALONE, EMPTY = 3, 4, 5, 6
"""Frames that are not like the others."""


def write_weedmap(folder: Path, *, frames: int = 8, maps: str = "003 005") -> Path:
    """WeedMap's tiles as their authors lay them out, small: two maps, each with channels and labels.

    Returns ``folder``, in which the sensors' folders lie nested. Of a map's tiles most are whole; one reaches over
    the edge of the map, one lies mostly outside it, one holds crop alone, one nothing that grows.
    """
    for name in maps.split():
        root = folder / "Tiles" / _SENSORS[name] / name
        for place in ("groundtruth", *(f"tile/{one}" for one in (*CHANNELS[name], "CIR", "NDVI"))):
            (root / place).mkdir(parents=True)
            (root / place / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
        for frame in range(frames):
            _write_tile(root, name, frame)
        (root / "groundtruth" / f"._{name}_frame0000_GroundTruth_color.png").write_bytes(b"\0\5\x16\7")
    (folder / "__MACOSX").mkdir()
    return folder


@cache
def draw_labels(name: str, frame: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Classes (0 other, 1 crop, 2 weed) and where there is data."""
    rng = np.random.default_rng([int(name), frame])
    classes = np.zeros((ROWS_PX, COLUMNS_PX), np.uint8)
    if frame != EMPTY:
        for y in range(30, ROWS_PX, 60):
            for x in range(10, COLUMNS_PX, 34):
                size = (int(rng.integers(7, 15)), int(rng.integers(6, 12)))
                cv2.ellipse(classes, (x + int(rng.integers(-3, 4)), y), size, float(rng.uniform(0, 180)), 0, 360, 1, -1)
    if frame not in (EMPTY, CROP_ALONE):
        for _ in range(20 + 25 * (frame % 3)):
            at = (int(rng.integers(0, COLUMNS_PX)), int(rng.integers(0, ROWS_PX)))
            cv2.circle(classes, at, int(rng.integers(4, 10)), 2, -1)
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX]
    limit = {EDGE: 87, OUTSIDE: 467}.get(frame, -1)
    return classes, x + y > limit


@cache
def draw_channels(name: str, frame: int) -> NDArray[np.uint8]:
    """Channels, rows, columns; 0 where there is no data, and hardly ever elsewhere."""
    classes, valid = draw_labels(name, frame)
    rng = np.random.default_rng([int(name), frame, 1])
    bands = []
    for channel in CHANNELS[name]:
        means = np.array([_SOIL[channel], _PLANT[channel], _WEED[channel]])
        values = means[classes] + rng.normal(0, 8, classes.shape)
        values[rng.random(classes.shape) < 0.001] = 0
        bands.append(np.where(valid, np.clip(values, 0, 255), 0).astype(np.uint8))
    return np.array(bands)


def _write_tile(root: Path, name: str, frame: int) -> None:
    classes, _ = draw_labels(name, frame)
    bands = dict(zip(CHANNELS[name], draw_channels(name, frame), strict=True))
    stem = f"frame{frame:04d}"
    for channel, values in bands.items():
        Image.fromarray(values).save(root / "tile" / channel / f"{stem}.png")
    composite = Image.fromarray(np.dstack([bands["NIR"], bands["R"], bands["G"]]))
    composite.save(root / "tile" / "CIR" / f"{stem}.png")
    composite.save(root / "groundtruth" / f"{name}_{stem}.png")
    Image.fromarray(bands["NIR"]).save(root / "tile" / "NDVI" / f"{stem}.png")
    labels = root / "groundtruth" / f"{name}_{stem}_GroundTruth"
    colours = np.array([(0, 0, 0), (0, 255, 0), (255, 0, 0)], np.uint8)[classes]
    Image.fromarray(colours).save(f"{labels}_color.png")


# --- weedsense ---

WEED_CODES = (
    "ABUTH", "AMAPA", "AMARE", "AMATU", "AMBEL", "CHEAL", "CYPES", "DIGSA", "ECHCG", "ERICA", "PANDI", "SETFA",
    "SETPU", "SIDSP", "SORHA", "SORVU",
)  # fmt: skip
WEED_NUMBERS = {code: 1 + (5 * place + 3) % 16 for place, code in enumerate(WEED_CODES)}
_POT_WIDTH, _POT_HEIGHT = 240, 320
WEEKS = (1, 3, 5, 8, 11)


def write_weedsense(folder: Path, codes: int = 16, frames: int = 2) -> Path:
    """WeedSense's test split: ``test/{images,mmseg_masks}`` and a table.

    ``frames`` of each of the first ``codes`` species in each of :data:`WEEKS`. Traps: class numbers in no order that
    names have, neighbouring frames, a folder nested by its archive, a Mac's copies, undecided pixels at the edge of
    each plant, weeks written as 3.0.
    """
    root = folder / "test"
    images, masks = root / "images" / "images", root / "mmseg_masks"
    for place in (images, masks, root / "images" / "__MACOSX" / "images"):
        place.mkdir(parents=True)
    lines = ["img,species,height,week"]
    for code in WEED_CODES[:codes]:
        for week in WEEKS:
            for frame in range(1, frames + 1):
                stem = f"{code}_week_{week}_IMG_{1000 + week}_frame_{frame:03d}"
                plant, values = draw_plant(code, week, frame)
                Image.fromarray(_draw_pot(plant, week)).save(images / f"{stem}.jpg", quality=92)
                Image.fromarray(values).save(masks / f"{stem}.png")
                (root / "images" / "__MACOSX" / "images" / f"._{stem}.jpg").write_bytes(b"\0\5\x16\7")
                lines.append(f"{stem}.jpg,{code},{3.5 * week:.1f},{week}.0")
    (root / "test_data.csv").write_text("\n".join(lines) + "\n")
    return folder


def draw_plant(code: str, week: int, frame: int) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Where the plant is, and the mask: its number, with some undecided pixels beside it."""
    rng = np.random.default_rng([WEED_CODES.index(code), week, frame])
    drawn = np.zeros((_POT_HEIGHT, _POT_WIDTH), np.uint8)
    foot, top = 270, 270 - 18 * week
    cv2.line(drawn, (120, foot), (120, top), 1, 5)
    for leaf in range(2 + week):
        y = int(foot - (foot - top) * (leaf + 1) / (2 + week))
        long = int(rng.integers(14, 20)) + 5 * week
        side = 1 if leaf % 2 else -1
        cv2.ellipse(drawn, (120 + side * long // 2, y), (long // 2, 4 + week), 12 * side, 0, 360, 1, -1)
    plant = drawn > 0
    values = np.where(plant, WEED_NUMBERS[code], 0).astype(np.uint8)
    values[foot + 10 : foot + 14, 100:140] = 255
    return plant, values


def _draw_pot(plant: NDArray[np.bool_], week: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng([week, int(plant.sum())])
    pixels = rng.normal((205, 203, 200), 6, (_POT_HEIGHT, _POT_WIDTH, 3))
    pixels[275:, 70:170] = rng.normal((90, 70, 60), 6, (_POT_HEIGHT - 275, 100, 3))
    pixels[plant] = rng.normal((60, 130, 45), 8, (int(plant.sum()), 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)


PONDS = [
    [(0, 20, 20, 30)], [(1, 30, 40, 40), (0, 120, 90, 30)], [(2, 90, 40, 44)],
    [(3, 60, 90, 36), (0, 180, 20, 30)], [(4, 140, 60, 50)],
    [(1, 10, 10, 30), (1, 100, 20, 40), (1, 180, 120, 36), (1, 60, 120, 8)], [(1, 20, 30, 40), (3, 150, 90, 40)],
    [],
]  # fmt: skip
"""Ponds of each FPCD pair; a speck in the sixth."""
SHARES = [0, 6, 12, 2, 30, 18]
"""Changed shares of the CLCD and Hi-CNA pairs, percent."""

WRITERS: dict[str, Callable[[Path], Path]] = {
    "agromind": write_agromind, "clcd": lambda folder: write_clcd(folder, SHARES), "deepnir": write_deepnir,
    "deepweeds": write_deepweeds, "fpcd": lambda folder: write_fpcd(folder, PONDS),
    "hi_cna": lambda folder: write_hi_cna(folder, SHARES), "ip102": write_ip102, "open_canopy": write_open_canopy,
    "papple": write_papple, "plantseg": write_plantseg, "weedmap": write_weedmap, "weedsense": write_weedsense,
}  # fmt: skip
"""Writers of the data sets with everything that tests of an adapter look at."""
SMALL_WRITERS: dict[str, Callable[[Path], Path]] = WRITERS | {
    "clcd": lambda folder: write_clcd(folder, SHARES[:3]),
    "deepnir": lambda folder: write_deepnir(folder, of_each=2, wheat=2),
    "fpcd": lambda folder: write_fpcd(folder, PONDS[:3]),
    "hi_cna": lambda folder: write_hi_cna(folder, SHARES[:3]),
    "ip102": lambda folder: write_ip102(folder, 1, (0, 1, 3, 7, 14, 18)),
    "open_canopy": lambda folder: write_open_canopy(folder, {2021: [FakeTile()]}),
    "papple": lambda folder: write_papple(folder, 2),
    "plantseg": lambda folder: write_plantseg(folder, 1),
    "weedmap": lambda folder: write_weedmap(folder, frames=4, maps="005"),
    "weedsense": lambda folder: write_weedsense(folder, codes=4, frames=1),
}
"""Writers of the smallest copies that an adapter reads, to be damaged."""
