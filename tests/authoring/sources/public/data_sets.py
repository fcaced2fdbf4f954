"""Small copies of the public data sets: the files of each in its authors' layout, with what makes them hard to read.

A function yields the path and the content of each file, and what a sample that shows it must say, where that follows
from what was drawn: a part of the truth, and beside it other values that a thing must have.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import from_origin

from agrotools_build.sources.part import Part
from agrotools_build.sources.reading import geotiff_of
from agrotools_build.templates import Thing

Files = Iterator[tuple[str, Any] | tuple[str, Any, Mapping[str, Any]]]
MAC = b"\0\5\26\7"
"""Content of the hidden files that a Mac leaves beside others."""


def written(
    folder: Path, files: Iterable[tuple[Any, ...]], told: dict[str, Any] | None = None
) -> Path:
    """Write text, bytes, pictures (arrays) and JSON (all else), and add what samples must say to ``told``, by name."""
    for name, content, *says in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case str():
                path.write_text(content, encoding="utf-8")
            case bytes():
                path.write_bytes(content)
            case np.ndarray() if path.suffix == ".npy":
                np.save(path, content)
            case np.ndarray():
                Image.fromarray(content).save(path)
            case _:
                path.write_text(json.dumps(content), encoding="utf-8")
        if says and told is not None:
            told[Path(name).name] = says[0]
    return folder


def noise(
    name: str, seed: Sequence[int] = (), size: tuple[int, int] = (210, 200)
) -> NDArray[np.uint8]:
    """Return a picture of noise, unlike for each name; ``size``: columns and rows."""
    draw = np.random.default_rng([*seed, *Path(name).name.encode()])
    return np.clip(draw.normal((80, 120, 60), 14, (size[1], size[0], 3)), 0, 255).astype(np.uint8)


def picture(name: str, *noisy: Any) -> tuple[str, NDArray[np.uint8]]:
    return name, noise(name, *noisy)


def encoded(pixels: NDArray[np.uint8], kind: str, mode: str = "RGB", **options: Any) -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def table(*rows: Sequence[object]) -> str:
    return "".join(f"{','.join(map(str, row))}\n" for row in rows)


def via(name: str, size: int, outlines: Sequence[tuple[str, NDArray[Any]]]) -> dict[str, Any]:
    """Return the entry of a picture in a file of the VGG Image Annotator: numbered outlines of apples."""
    regions: dict[str, Any] = {}
    for place, (number, points) in enumerate(outlines):
        xs, ys = np.rint(points).astype(int).T.tolist()
        shape = {"name": "polygon", "all_points_x": xs, "all_points_y": ys}
        attributes = {"apple_ID": number} if number else {}
        regions[str(place)] = {"shape_attributes": shape, "region_attributes": attributes}
    return {f"{name}{size}": {"filename": name, "size": size, "regions": regions}}


PALM_COUNTS = (23, 60, 41, 12, 77, 35, 52, 8, 66, 30, 48, 19)


def agromind() -> Files:
    """Questions in JSON. Paths with and without ``./``, numbers as text and as options that letters name, a picture
    that two files ask about (alike, and not alike), a number that is none, types of questions without a picture, a
    README of another form."""
    asked: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def ask(of: str, path: str, question: str, answer: str, **more: object) -> None:
        asked[of].append({"image_path": path, "question": question, "answer": answer, **more})

    def counted(count: int, noun: str, **more: Any) -> dict[str, Any]:
        return {"truth": {"count": count, **more}, "arguments": {"target": noun}}

    palms = "Oil_palm_trees/Result/images/44000_4000_{}_77.jpg"
    how_many, tassels = (
        "How many oil palm trees are there?",
        "How many tassels are there in this image?",
    )
    for number, count in enumerate(PALM_COUNTS):
        density = count / (210 * 200 * 0.08**2 / 10_000)
        says = counted(count, "oil palm", density_per_ha=density, gsd_m=0.08)
        # Two answers contradict each other about the third.
        yield (
            *picture(f"images/{palms.format(number)}", (count, number)),
            *([says] if number != 2 else []),
        )
        if number % 2:
            ask(
                "CO_3_2_7",
                f"./{palms.format(number)}",
                how_many,
                "B",
                options={"A": count + 7, "B": count, "C": 3},
            )
        else:
            ask("CO_3_2_4", palms.format(number), how_many, str(count))
    ask("CO_3_2_4", f"./{palms.format(0)}", how_many, str(PALM_COUNTS[0]))
    ask("CO_3_2_7", f"./{palms.format(2)}", how_many, "A", options={"A": 40, "B": 2})
    fruits = ("mango", "apple", "almond")
    kinds = [
        ("2", f"Fruit/images/{one}_{{}}.png", f"How many {one}s are there?", one) for one in fruits
    ]
    kinds.append(("3", "corn/images/image_{:04d}.jpg", tassels, "maize tassel"))
    kinds.append(
        (
            "6",
            "crop/images/05-15_{}.png",
            "How many different plant individuals are in the image?",
            "plant",
        )
    )
    for of, path, question, noun in kinds:
        for number, count in enumerate((0, 4, 9, 15, 2, 22)):
            yield *picture(f"images/{path.format(number)}", (count, number)), counted(count, noun)
            ask(f"CO_3_2_{of}", f"./{path.format(number)}", question, str(count))
    ask("CO_3_2_3", "./corn/images/image_0000.jpg", tassels, "many")
    ask("CO_3_2_3", "./../../etc/passwd.jpg", tassels, "3")
    for of, path in [("CO_3_2_1", "Pest"), ("OC_2_1_3", "Pest")] * 3:
        ask(
            of,
            f"./{path}/JPEGImages/IP102000010.jpg",
            "How many Cicadellidae are in this image?",
            "1",
        )
    for of, path in (
        ("PDD_2_2_1", "Leaf_diseases"),
        ("VPR_4_1_2", "Oil_palm_trees/Result"),
        ("SC_3_1_1", "Agriculture"),
    ):
        ask(of, f"./{path}/images/1.jpg", "Which class is it?", "C")
    for of, items in asked.items():
        yield (
            f"QA_Pairs/{'Scene' if of.startswith('CO') else 'Object'} Understanding/{of}.json",
            items,
        )
    yield "QA_Pairs/README.json", {"metadata": {}}


FIELDS_PX = 160
SHARES = (0, 6, 12, 2, 30, 18)
"""Changed shares of the CLCD and Hi-CNA pairs, percent."""
_SPECTRA = np.array(
    [(310, 420, 330, 1500), (430, 600, 820, 1050), (330, 380, 260, 0), (720, 820, 900, 1000)],
    np.float64,
)
"""Blue, green, red and infrared, 0 to 2047, of a crop, bare soil, water and buildings."""


def draw_land(seed: int, share_pct: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Return four bands of two dates and where cropland was built over; fields that turned green are no change."""
    draw = np.random.default_rng([42, seed])
    rows, columns = np.mgrid[0:FIELDS_PX, 0:FIELDS_PX]
    before = (rows // 40 + columns // 53 + seed) % 2
    before[rows + columns > 2 * FIELDS_PX - 60] = 2
    changed = np.zeros((FIELDS_PX, FIELDS_PX), np.bool_)
    while 100 * changed.mean() < share_pct:
        x, y = (int(draw.integers(0, FIELDS_PX - 50)) for _ in range(2))
        changed[y : y + 16, x : x + 22] = True
    after = np.where(changed, 3, np.where(before == 2, 2, 1 - before))
    both: list[NDArray[Any]] = []
    for land in (before, after):
        noisy = _SPECTRA[land].transpose(2, 0, 1) + draw.normal(0, 15, (4, *land.shape))
        both.append(np.clip(noisy, 0, 2047))
        both[-1][3][land == 2] = 0
    return both[0], both[1], changed


def _change(changed: NDArray[np.bool_], m2: float | None) -> dict[str, Any]:
    pixels = int(changed.sum())
    area = {"change_area_m2": m2 and m2 * pixels, "change_area_ha": m2 and m2 * pixels / 10_000}
    return {
        "truth": {
            "change_px": pixels,
            "change_pct": 100 * changed.mean(),
            "changed": bool(pixels),
            **area,
        }
    }


def _land_pairs(shares: Sequence[float], m2: float | None) -> Iterator[Any]:
    """Yield split, number, both dates, and what is said of each pair; numbers of the train split come again in test."""
    for split, seed, share in [
        ("train", 1000, 50.0),
        *(("test", number, share) for number, share in enumerate(shares)),
    ]:
        *both, changed = draw_land(seed, share)
        yield split, seed % 1000, both, changed, [_change(changed, m2)] if split == "test" else []


def clcd(shares: Sequence[float] = SHARES, dates: tuple[str, str] = ("time1", "time2")) -> Files:
    """Pairs with masks. A mask has three channels, one pair are TIFF files, a Mac left a hidden file beside each."""
    for split, number, both, changed, says in _land_pairs(shares, None):
        for date, bands in zip(dates, both, strict=True):
            pixels = np.ascontiguousarray(
                (bands[[2, 1, 0]] / 8).astype(np.uint8).transpose(1, 2, 0)
            )
            yield f"CLCD/{split}/{date}/{number:05d}{'.tif' if number == 1 else '.png'}", pixels
        label = changed.astype(np.uint8) * 255
        yield (
            f"CLCD/{split}/label/{number:05d}.png",
            np.dstack([label] * 3) if number == 2 else label,
            *says,
        )
        yield f"CLCD/{split}/label/._{number:05d}.png", MAC


def hi_cna(shares: Sequence[float] = SHARES, dtype: str = "uint16") -> Files:
    """Pairs of four bands. The infrared band calls itself alpha and is 0 over water, masks have several codes."""
    for split, number, both, changed, says in _land_pairs(shares, 0.64):
        for date, bands in zip(("image1", "image2"), both, strict=True):
            yield f"{split}/{date}/gf2_{number}.tif", land_tiff(bands[[2, 1, 0, 3]], dtype)
        codes = np.where(changed, 255 if number % 2 else 1 + np.arange(FIELDS_PX) // 90, 0).astype(
            np.uint8
        )
        yield f"{split}/change/gf2_{number}.png", codes, *says


def land_tiff(bands: NDArray[Any], dtype: str = "uint16", **options: Any) -> bytes:
    """Return a GeoTIFF of values from 0 to 2047 in that type; of 8 bits, as a picture with an alpha channel."""
    options |= {"photometric": "RGB", "alpha": "YES"} if dtype == "uint8" and len(bands) > 1 else {}
    scale = {"uint8": 1 / 8 if len(bands) > 1 else 1, "uint16": 1.0, "float32": 1 / 2047}[dtype]
    at = from_origin(400_000, 3_400_000, 0.8, 0.8)
    return geotiff_of((bands * scale).astype(dtype), (), crs="EPSG:32650", transform=at, **options)


FRUITS = (
    "apple avocado blueberry capsicum cherry kiwi mango orange rockmelon strawberry wheat".split()
)
_FRUIT_COUNTS = (3, 12, 0, 7, 25, 5, 1, 16)
"""Fruits of the pictures of a folder, in turn; of the pictures with none, every other has no label file at all."""


def deepnir(of_each: int = 4, wheat: int = 12) -> Files:
    """YOLO boxes. Class 0 in every folder, a label file that is missing and one that is empty, boxes at borders, a box
    written twice, names as Roboflow writes them, many more pictures of wheat than of anything else."""
    for place, fruit in enumerate(FRUITS):
        yield f"{fruit}/data.yaml", f"nc: 1\nnames: ['{fruit}']\n"
        tests = wheat if fruit == "wheat" else of_each
        for part, number in [("train", 0), *(("test", number) for number in range(tests))]:
            count = _FRUIT_COUNTS[(number + place) % len(_FRUIT_COUNTS)]
            stem = f"{fruit}{number}_jpg.rf.{number:08x}"
            target = "wheat head" if fruit == "wheat" else fruit
            says = (
                [{"truth": {"count": count}, "arguments": {"target": target}}]
                if part == "test"
                else []
            )
            yield (
                *picture(f"{fruit}/{part}/images/{stem}.jpg", (len(part),), (300 + number, 260)),
                *says,
            )
            lines = [
                f"0 {0.05 + 0.1 * (k % 5):.6f} {0.05 + 0.1 * (k // 5):.6f} 0.08 0.08\n"
                for k in range(count)
            ]
            if lines or number % 2:
                twice = lines[:1] if number % 2 else []
                yield f"{fruit}/{part}/labels/{stem}.txt", "".join(lines + twice)


def deepweeds(of_each: int = 2) -> Files:
    """A table of classes, two columns."""
    rows: list[tuple[str, int]] = []
    species = {0: "Ziziphus mauritiana", 4: "Vachellia nilotica"}
    for label in range(9):
        for number in range(of_each):
            rows.append((f"2017{label + 1:02d}{number + 10:02d}-101010-{number % 4}.jpg", label))
            says = {
                "is_weed": label < 8,
                **({"species": species[label]} if label in species else {}),
            }
            yield *picture(f"images/{rows[-1][0]}", (label,), (256, 256)), {"truth": says}
    yield "labels/test_subset0.csv", table(("Filename", "Label"), *rows)


POND_WIDTH, POND_HEIGHT = 256, 192
VILLAGE = "Akola_Old_Akhatwada"
PONDS = (
    [(0, 20, 20, 30)], [(1, 30, 40, 40), (0, 120, 90, 30)], [(2, 90, 40, 44)],
    [(3, 60, 90, 36), (0, 180, 20, 30)], [(4, 140, 60, 50)],
    [(1, 10, 10, 30), (1, 100, 20, 40), (1, 180, 120, 36), (1, 60, 120, 8)], [(1, 20, 30, 40), (3, 150, 90, 40)], [],
)  # fmt: skip
"""Ponds of each FPCD pair: what happened (1 to 4, 0 nothing), left and upper corner, side; a speck in the sixth."""
POND_EVENTS = ("none", "constructed", "demolished", "dried", "wetted", "constructed", None, "none")


def fpcd(pairs: Sequence[Sequence[tuple[int, int, int, int]]] = PONDS, train: int = 2) -> Files:
    """Pairs with masks without the date. A village with an underscore, archives that hold a folder of their own name, a
    test list that names masks, masks with a palette, hidden files."""
    for number, ponds in enumerate([*pairs, *([[(1, 20, 20, 40)]] * train)]):
        draw = np.random.default_rng([51, number])
        ground = draw.normal((150, 128, 92), 9, (POND_HEIGHT, POND_WIDTH, 3))
        dates, codes = (
            [ground, ground + draw.normal(0, 3, ground.shape)],
            np.zeros(ground.shape[:2], np.uint8),
        )
        for event, x, y, side in ponds:
            for pixels, is_there in zip(dates, (event != 1, event != 2), strict=True):
                if is_there:
                    pixels[y : y + side, x : x + side] = (34, 66, 62)
            codes[y : y + side, x : x + side] = event
        for place, month, pixels in zip(("T0/T0", "T1"), ("200703", "201502"), dates, strict=True):
            photo = np.clip(pixels, 0, 255).astype(np.uint8)
            yield f"FPCD/{place}/{VILLAGE}_{month}_{number}.jpg", encoded(photo, "JPEG", quality=90)
        mask = BytesIO()
        coloured = Image.fromarray(codes)
        coloured.putpalette([0, 0, 0, 0, 255, 0, 255, 0, 0, 255, 255, 0, 0, 0, 255])
        coloured.save(mask, "PNG")
        says = _change(codes > 0, None)
        if number < len(POND_EVENTS):
            says["truth"]["pond"] = {"event": POND_EVENTS[number]}
        masks = f"FPCD/multi_class_masks/multi_class_masks/{{}}{VILLAGE}_{number}.png"
        yield masks.format(""), mask.getvalue(), *([says] if number < len(pairs) else [])
        yield masks.format("._"), MAC
    yield (
        "FPCD/cd_dataset_test.txt",
        table(*([f"{VILLAGE}_{number}"] for number in range(len(pairs)))),
    )


_PEST_LABELS = (
    0,
    1,
    3,
    7,
    14,
    18,
    21,
    24,
    28,
    30,
    36,
    37,
    47,
    50,
    52,
    57,
    62,
    67,
    74,
    76,
    88,
    89,
    97,
    98,
)
"""Classes with pictures, of all eight crops."""
SHELL_PEST = 13
"""A class that nobody can tell."""
IP102_ROOT = "IP102_v1.1/Classification/ip102_v1.1"


def ip102(of_each: int = 4, labels: Sequence[int] = _PEST_LABELS) -> Files:
    """Lists of splits. A PNG with alpha and a grey picture that call themselves .jpg, a thumbnail, a test picture that
    is a train picture too, one shown twice, a line with spaces before its label, a folder of the Mac."""
    splits: defaultdict[str, list[str]] = defaultdict(list)
    for number, (label, split) in enumerate(
        (
            (label, split)
            for label in (*labels, SHELL_PEST)
            for split in ("train", "val", *["test"] * of_each)
        ),
        start=2,
    ):
        splits[split].append(f"{number:05d}.jpg {label}")
        yield picture(f"{IP102_ROOT}/images/{number:05d}.jpg", (label,))
    first, second, third, fourth = (
        f"{IP102_ROOT}/images/{line.split()[0]}" for line in splits["test"][:4]
    )
    yield first, encoded(noise(first), "PNG", "RGBA")
    yield from ((name, encoded(noise(second), "JPEG", "L")) for name in (second, fourth))
    yield picture(third, (), (52, 80))
    yield picture(f"{IP102_ROOT}/images/40410.jpg")
    splits["test"].append(f"40410.jpg   {labels[0]} ")
    for split, lines in splits.items():
        yield f"{IP102_ROOT}/{split}.txt", "\n".join(lines) + "\n"
    yield "__MACOSX/x", MAC


TILE_PX = 667
PIXEL_M = 1.5
LEFT_M, TOP_M = 700_000, 6_600_000
CANOPY_ROW = (
    ("test", "forest"),
    ("buffer", "forest"),
    ("test", "town"),
    ("train", "forest"),
    ("test", "forest"),
)
"""Split and look of each tile of a year: forest, town (roofs over a third), meadow, lake, hole (listed in the virtual
raster, not there), zeros (a hole that reads as 0) or tower (a spike of 150 m)."""


def open_canopy(
    years: Mapping[int, Sequence[tuple[str, str]]] | None = None,
    crs: str | None = "urn:ogc:def:crs:EPSG::2154",
) -> Files:
    """A row of 1 km tiles a year, virtual rasters over them as GDAL builds them, and the grid. A tile begins wherever
    its coordinates say, which may be within a pixel; shapes are polygons and multipolygons."""
    features: list[dict[str, Any]] = []
    for row, (year, tiles) in enumerate((years or dict.fromkeys((2021, 2023), CANOPY_ROW)).items()):
        top, root = TOP_M - 3000 * row, f"canopy_height/{year}"
        sources: defaultdict[str, str] = defaultdict(str)
        for column, (split, looks) in enumerate(tiles):
            left = LEFT_M + 1000 * column
            for name, values in zip(
                ("lidar", "lidar_classification"), draw_tile(year, column, looks), strict=True
            ):
                at = from_origin(left, top, PIXEL_M, PIXEL_M)
                raster = geotiff_of(values[None], (), crs="EPSG:2154", transform=at)
                yield from [(f"{root}/{name}/tile_{column}.tif", raster)] * (looks != "hole")
                size = f'yOff="0" xSize="{TILE_PX}" ySize="{TILE_PX}"'
                sources[name] += (
                    f'<SimpleSource><SourceFilename relativeToVRT="1">{name}/tile_{column}.tif</SourceFilename>'
                    f'<SourceBand>1</SourceBand><SrcRect xOff="0" {size}/>'
                    f'<DstRect xOff="{1000 * column / PIXEL_M}" {size}/></SimpleSource>'
                )
            x1, y0 = left + 1000, top - 1000
            ring = [[left, top], [x1, top], [x1, y0], [left, y0], [left, top]]
            kind, coordinates = ("MultiPolygon", [[ring]]) if column % 2 else ("Polygon", [ring])
            properties = {"split": split, "lidar_year": year}
            features.append(
                {"properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}
            )
        width = int(1000 * (len(tiles) - 1) / PIXEL_M + 1) + TILE_PX
        for name, dtype in (("lidar", "UInt16"), ("lidar_classification", "Byte")):
            yield (
                f"{root}/{name}.vrt",
                (
                    f'<VRTDataset rasterXSize="{width}" rasterYSize="{TILE_PX}"><SRS>EPSG:2154</SRS>'
                    f"<GeoTransform>{LEFT_M}, {PIXEL_M}, 0, {top}, 0, -{PIXEL_M}</GeoTransform>"
                    f'<VRTRasterBand dataType="{dtype}" band="1">{sources[name]}</VRTRasterBand></VRTDataset>'
                ),
            )
        yield f"{root}/.DS_Store", MAC
    named = {"crs": {"type": "name", "properties": {"name": crs}}} if crs else {}
    yield (
        "canopy_height/geometries.geojson",
        {"type": "FeatureCollection", **named, "features": features},
    )


def draw_tile(year: int, column: int, looks: str) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return heights in decimetres, 0 where the ground is bare, and the class of most laser returns."""
    rng = np.random.default_rng([year, column])
    coarse, size = rng.normal(0.4, 1.0, (14, 14)).astype(np.float32), (TILE_PX, TILE_PX)
    stand = cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC) + rng.normal(0, 0.1, size)
    heights = np.clip(np.rint(120 * stand), 0, 8 if looks in ("meadow", "lake") else 380).astype(
        np.uint16
    )
    classes = np.select([heights >= 15, heights > 5, heights > 0], [5, 4, 3], 2).astype(np.uint8)
    areas: list[tuple[Any, int, int]] = [
        (np.s_[100:130, 200:240], 95, 6),
        (np.s_[400:404, 500:506], 210, 1),
    ]
    areas += {
        "town": [(np.s_[: TILE_PX // 3], 95, 6)], "lake": [(np.s_[50:], 0, 9)],
        "tower": [(np.s_[::40, ::40], 1500, 5)], "zeros": [(np.s_[:], 0, 5)],
    }.get(looks, [])  # fmt: skip
    for area, height, kind in areas:
        heights[area], classes[area] = height, kind
    return heights, classes


FOCAL_PX = 5805.34
APPLES_WIDTH, APPLES_HEIGHT = 620, 420
_HIDDEN, _CUT_OFF, _NO_DEPTH = range(1, 4)


def papple(crops: int = 8) -> Files:
    """Spheres of known size before a camera, ``crops`` pictures for 2018 and as many for 2020.

    Apples that were not measured (number 0) or whose number has no diameter, an apple in two pieces, apples mostly
    hidden, cut off by the edge or without depth, an outline of two points, regions without a number, keys that end in
    another size in the second file, depth of half the size, the same apples in two crops, numbers that are one apple in
    2018 and another in 2020, a picture without a usable apple, one without any depth, one whose name tells no year.
    """
    seen: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    sizes: dict[tuple[str, int], None] = {}
    pictures: list[tuple[str, int, int, str]] = [
        (
            f"_MG_{first}{600 + crop}_{crop + 1}.{'JPG' if crop % 3 == 2 else 'png'}",
            year,
            crop - (crop % 4 == 3),
            "",
        )
        for year, first in ((2018, 2), (2020, 7))
        for crop in range(crops)
    ]
    pictures += [
        ("_MG_2900_1.png", 2018, 90, "unmeasured"),
        ("_MG_2901_1.png", 2018, 91, "no depth"),
    ]
    for place, (name, year, scene, fault) in enumerate(
        [*pictures, ("_MG_9000_1.png", 2018, 92, "")]
    ):
        draw = np.random.default_rng([year, scene])
        pixels = np.clip(draw.normal((70, 105, 50), 12, (APPLES_HEIGHT, APPLES_WIDTH, 3)), 0, 255)
        metres = np.where(draw.random(pixels.shape[:2]) < 0.03, 0, 3.4)
        outlines: list[tuple[str, NDArray[Any]]] = []
        full: list[tuple[str, NDArray[Any]]] = []
        for spot in range(6):
            number, diameter = 10 * scene + spot + 1, int(draw.integers(45, 92))
            state = spot if scene % 3 == 1 else 0
            x = (
                (110, 310, 510)[spot % 3] + int(draw.integers(-8, 9))
                if state != _CUT_OFF
                else APPLES_WIDTH - 20
            )
            y, far = (
                (110, 300)[spot // 3] + int(draw.integers(-8, 9)),
                float(draw.uniform(2.9, 3.1)),
            )
            radius = FOCAL_PX * diameter / 2000 / far
            ys, xs = np.mgrid[0:APPLES_HEIGHT, 0:APPLES_WIDTH]
            bulge = np.sqrt(np.clip(1 - ((xs - x) ** 2 + (ys - y) ** 2) / radius**2, 0, 1))
            pixels[bulge > 0] = np.array((175, 40, 45)) * (0.55 + 0.5 * bulge[bulge > 0, None])
            metres[bulge > 0] = (
                0 if state == _NO_DEPTH else (far - diameter / 2000 * bulge)[bulge > 0]
            )
            known = "0" if fault == "unmeasured" or spot == 5 else str(number)
            turns = np.linspace(0, 2 * np.pi, 90, endpoint=False)
            ring = np.stack([x + radius * np.cos(turns), y + radius * np.sin(turns)], axis=1)
            pieces = [np.minimum(ring, (x - 0.3 * radius, np.inf))] if state == _HIDDEN else [ring]
            if spot == 4:
                pieces = [np.minimum(ring, (x - 6, np.inf)), np.maximum(ring, (x + 6, -np.inf))]
                pixels[:, x - 6 : x + 6] = (60, 80, 40)
            outlines += [(known, piece) for piece in pieces]
            full.append((known, ring))
            if known != "0" and not (spot == 0 and scene % 2):
                sizes[f"{year}_01_{number:03d}.txt", diameter] = None
        two_points = np.array([(5, 5), (9, 9)])
        seen |= via(name, 1610302, [*outlines, ("77", two_points), ("", two_points)])
        whole |= via(name, 1610302 + scene % 2, full)
        metres = np.zeros_like(metres) if fault == "no depth" else metres
        yield f"images/test/{name}", np.clip(pixels, 0, 255).astype(np.uint8)
        yield (
            f"depth_maps/{Path(name).stem}.npy",
            metres[::2, ::2] if place % 2 and not fault else metres,
        )
    yield "gt_json/test/via_region_data_instance.json", seen
    yield "gt_json/test/via_region_data_amodal.json", whole
    yield "GT_diameter.txt", table(*sizes)


PLANT_DISEASES = {
    "apple": ("black rot", "mosaic virus", "rust", "scab"),
    "bell pepper": ("bacterial spot", "blossom end rot", "powdery mildew"),
    "coffee": ("leaf rust", "brown eye spot"),
    "cucumber": ("angular leaf spot", "bacterial wilt", "powdery mildew"),
    "grape": ("downy mildew", "leafroll disease", "black rot"),
    "maple": ("tar spot",),
    "potato": ("early blight", "late blight"),
    "tomato": (
        "early blight",
        "late blight",
        "mosaic virus",
        "bacterial leaf spot",
        "purple wobble",
    ),
    "wheat": ("stem rust", "bacterial leaf streak (black chaff)", "head scab"),
}
UNKNOWN_DISEASE = "tomato purple wobble"


def plantseg(of_each: int = 3) -> Files:
    """A table of diseases, and masks. Names that lie about the suffix, dots in names, a picture turned by EXIF, a label
    that no knowledge base has, one disease with many pictures, a mask whose value is another class, other splits."""
    rows: list[Sequence[object]] = [("Index", "Name", "Plant", "Disease", "Split")]
    for plant, short in (
        (plant, short) for plant, names in PLANT_DISEASES.items() for short in names
    ):
        label = "grapevine leafroll disease" if short.startswith("leafroll") else f"{plant} {short}"
        many = of_each * (3 if label == "apple scab" else 1)
        for number, split in enumerate([*["Test"] * many, "Training", "Validation"]):
            index = len(rows) - 1
            place = {"Training": "train", "Validation": "val"}.get(split, "test")
            # A prefix that is another disease's: only the table tells.
            stem = f"{'apple_scab' if number % 2 else label.replace(' ', '_')}_{index}{'.v2' if number == 1 else ''}"
            draw = np.random.default_rng(index)
            width, height = int(draw.integers(120, 200)), int(draw.integers(90, 160))
            suffix = (
                "png"
                if number == 2
                else "jpg"
                if index % 5 == 0
                else "jpeg"
                if index % 3
                else "JPG"
            )
            exif = Image.Exif()
            if suffix == "jpg":
                exif[0x0112] = 6
            pixels = encoded(
                noise(stem, (index,), (width, height)),
                "PNG" if suffix == "png" else "JPEG",
                exif=exif,
            )
            words = {"label": label, "plant": plant, "disease": short}
            says = [{"words": words}] if split == "Test" and label != UNKNOWN_DISEASE else []
            yield f"images/{place}/{stem}.{suffix}", pixels, *says
            mask = np.zeros((height, width), np.uint8)
            mask[20:36, 30:60] = 1 + index % 115
            yield f"annotations/{place}/{stem}.png", mask
            rows.append((index, f"{stem}.jpg", plant.title(), label, split))
    yield "Metadata.csv", table(*rows)


CHANNELS = {"003": ("B", "G", "R", "RE", "NIR"), "005": ("G", "R", "RE", "NIR")}
_REFLECTED = {
    "B": (70, 40, 42),
    "G": (90, 95, 99),
    "R": (115, 50, 62),
    "RE": (120, 130, 104),
    "NIR": (125, 190, 176),
}
"""Values of soil, crop and weeds."""
ROWS_PX, COLUMNS_PX = 240, 320
EDGE, OUTSIDE, CROP_ALONE, EMPTY = 3, 4, 5, 6
"""Frames that are not like the others."""


def weedmap(frames: int = 8, maps: Sequence[str] = tuple(CHANNELS)) -> Files:
    """Tiles of two maps, a picture a channel. One reaches over the edge of the map, one lies mostly outside it, one
    holds crop alone, one nothing that grows; other composites, and files of a Mac."""
    for name in maps:
        root = f"Tiles/{'RedEdge' if name == '003' else 'Sequoia'}/{name}"
        for frame in range(frames):
            bands = dict(zip(CHANNELS[name], draw_channels(name, frame), strict=True))
            composite = np.dstack([bands["NIR"], bands["R"], bands["G"]])
            for channel, values in {**bands, "CIR": composite, "NDVI": bands["NIR"]}.items():
                yield f"{root}/tile/{channel}/frame{frame:04d}.png", values
            yield f"{root}/groundtruth/{name}_frame{frame:04d}.png", composite
            colours = np.array([(0, 0, 0), (0, 255, 0), (255, 0, 0)], np.uint8)[
                draw_labels(name, frame)[0]
            ]
            yield f"{root}/groundtruth/{name}_frame{frame:04d}_GroundTruth_color.png", colours
        yield f"{root}/groundtruth/._{name}_frame0000_GroundTruth_color.png", MAC
        yield f"{root}/tile/R/.DS_Store", MAC


@cache
def draw_labels(name: str, frame: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return classes (0 other, 1 crop, 2 weed) and where there is data."""
    rng = np.random.default_rng([int(name), frame])
    classes = np.zeros((ROWS_PX, COLUMNS_PX), np.uint8)
    for y, x in [(y, x) for y in range(30, ROWS_PX, 60) for x in range(10, COLUMNS_PX, 34)] * (
        frame != EMPTY
    ):
        size = (int(rng.integers(7, 15)), int(rng.integers(6, 12)))
        cv2.ellipse(
            classes,
            (x + int(rng.integers(-3, 4)), y),
            size,
            float(rng.uniform(0, 180)),
            0,
            360,
            1,
            -1,
        )
    for _ in range(0 if frame in (EMPTY, CROP_ALONE) else 20 + 25 * (frame % 3)):
        at = (int(rng.integers(0, COLUMNS_PX)), int(rng.integers(0, ROWS_PX)))
        cv2.circle(classes, at, int(rng.integers(4, 10)), 2, -1)
    y, x = np.mgrid[0:ROWS_PX, 0:COLUMNS_PX]
    return classes, x + y > {EDGE: 87, OUTSIDE: 467}.get(frame, -1)


@cache
def draw_channels(name: str, frame: int) -> NDArray[np.uint8]:
    """Return channels, rows, columns; 0 where there is no data, and hardly ever elsewhere."""
    (classes, valid), rng = draw_labels(name, frame), np.random.default_rng([int(name), frame, 1])
    bands: list[NDArray[Any]] = []
    for channel in CHANNELS[name]:
        values = np.array(_REFLECTED[channel])[classes] + rng.normal(0, 8, classes.shape)
        values[rng.random(classes.shape) < 0.001] = 0
        bands.append(np.where(valid, np.clip(values, 0, 255), 0).astype(np.uint8))
    return np.array(bands)


WEED_CODES = (
    "ABUTH", "AMAPA", "AMARE", "AMATU", "AMBEL", "CHEAL", "CYPES", "DIGSA", "ECHCG", "ERICA", "PANDI", "SETFA",
    "SETPU", "SIDSP", "SORHA", "SORVU",
)  # fmt: skip
WEEKS = (1, 3, 5, 8, 11)


def weedsense(codes: int = 16, frames: int = 2) -> Files:
    """A table of weeks, and masks. Class numbers in no order that names have, neighbouring frames, a folder nested by
    its archive, a Mac's copies, undecided pixels at the edge of each plant, weeks written as 3.0."""
    rows: list[Sequence[object]] = [("img", "species", "height", "week")]
    for place, code in enumerate(WEED_CODES[:codes]):
        for week, frame in ((week, frame) for week in WEEKS for frame in range(1, frames + 1)):
            stem = f"{code}_week_{week}_IMG_{1000 + week}_frame_{frame:03d}"
            plant = draw_plant(code, week, frame)
            values = np.where(plant, 1 + (5 * place + 3) % 16, 0).astype(np.uint8)
            values[280:284, 100:140] = 255
            decided = int((values != 255).sum())
            cover = {
                "total_px": decided,
                "veg_px": int(plant.sum()),
                "veg_pct": 100 * plant.sum() / decided,
            }
            says = {"truth": cover, "words": {"week": str(week)}}
            photo = np.where(plant[..., None], (60, 130, 45), (205, 203, 200)).astype(np.uint8)
            yield f"test/images/images/{stem}.jpg", encoded(photo, "JPEG", quality=92), says
            yield f"test/mmseg_masks/{stem}.png", values
            yield f"test/images/__MACOSX/images/._{stem}.jpg", MAC
            rows.append((f"{stem}.jpg", code, f"{3.5 * week:.1f}", f"{week}.0"))
    yield "test/test_data.csv", table(*rows)


def draw_plant(code: str, week: int, frame: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng([WEED_CODES.index(code), week, frame])
    drawn, foot, top = np.zeros((320, 240), np.uint8), 270, 270 - 18 * week
    cv2.line(drawn, (120, foot), (120, top), 1, 5)
    for leaf in range(2 + week):
        y = int(foot - (foot - top) * (leaf + 1) / (2 + week))
        long, side = int(rng.integers(14, 20)) + 5 * week, 1 if leaf % 2 else -1
        cv2.ellipse(
            drawn, (120 + side * long // 2, y), (long // 2, 4 + week), 12 * side, 0, 360, 1, -1
        )
    return drawn > 0


DATA_SETS: dict[str, tuple[Callable[[], Files], Callable[[], Files]]] = {
    "agromind": (agromind, agromind),
    "clcd": (clcd, partial(clcd, SHARES[:3])),
    "deepnir": (deepnir, partial(deepnir, of_each=2, wheat=2)),
    "deepweeds": (deepweeds, deepweeds),
    "fpcd": (fpcd, partial(fpcd, PONDS[:3])),
    "hi_cna": (hi_cna, partial(hi_cna, SHARES[:3])),
    "ip102": (ip102, partial(ip102, 1, (0, 1, 3, 7, 14, 18))),
    "open_canopy": (open_canopy, partial(open_canopy, {2021: CANOPY_ROW[:1]})),
    "papple": (papple, partial(papple, 2)),
    "plantseg": (plantseg, partial(plantseg, 1)),
    "weedmap": (weedmap, partial(weedmap, 4, ("005",))),
    "weedsense": (weedsense, partial(weedsense, 4, 1)),
}
"""Each data set with everything that tests of its adapter look at, and the smallest copy that the adapter reads."""


def things_of(part: Part, *kinds: str) -> list[Thing]:
    """Every thing of the subjects of these kinds, or of all, as the first of a sample."""
    subjects = [subject for subject in part.subjects if subject.of in kinds or not kinds]
    return [subject.shown(index, 1) for subject in subjects for index in range(subject.things)]


def things_by_file(part: Part, *kinds: str) -> dict[Path, Thing]:
    """These things by the file that their first file is."""
    return {part.files[thing.files[0].path]: thing for thing in things_of(part, *kinds)}
