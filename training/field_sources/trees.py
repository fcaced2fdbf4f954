"""Trees seen from the air."""

import json
import re
from collections import defaultdict
from csv import DictReader
from io import StringIO
from itertools import combinations
from typing import Any

from field_sources.snapshot import Prepared, Reader, drawn_by_lot

_PLACES = 105
"""Places that are asked about: more of them ask the same."""
_FEWEST_TREES, _MOST_TREES = 5, 60
"""In denser tiles crowns merge, so that people would not agree on their number."""
_GSD_M = 0.6


def _read_town_trees(prepared: Prepared) -> None:
    """Tiles of NAIP pictures of California with a point on every tree; the latest of the years of a place.

    Trees lost or gained cannot be asked for: of the eight pairs of years that differ most, three do so only because the
    crowns of a clump or of scrub were marked one by one in one of the years.
    """
    snapshot = prepared.snapshot
    years: dict[str, dict[str, str]] = {}
    for path in snapshot.paths("images/", ".tif"):
        town, year, number = path.removeprefix("images/").removesuffix(".tif").rsplit("_", 2)
        years.setdefault(f"{town}_{number}", {})[year] = path
    points: dict[str, list[tuple[float, float]]] = {}
    for by_year in years.values():
        for path in by_year.values():
            listed = path.replace("images/", "csv/").replace(".tif", ".csv")
            # A picture without a list has no tree.
            text = snapshot.text(listed) if snapshot.has(listed) else "x,y\n"
            points[path] = [
                (float(row["x"]), float(row["y"])) for row in DictReader(StringIO(text))
            ]
    suitable = [
        place
        for place, by_year in years.items()
        if all(_FEWEST_TREES <= len(points[path]) <= _MOST_TREES for path in by_year.values())
    ]
    for place in drawn_by_lot(suitable, _PLACES):
        path = years[place][max(years[place])]
        prepared.add(place, place, {"image": path}, gsd_m=_GSD_M, points=points[path])


TOWN_TREES = Reader(
    "jonathanventura/urban-tree-detection-data",
    "78e81bdbb484048472e77cbedd3afb49a6b621c6",
    _read_town_trees,
)


_PALM_FOLDER = "cv_project/03_datasets/oil_palm_coco_v2/test"
"""The part of the second labelling that is not augmented. The first one lacks palms, the other parts are turned."""
_TILE_PX, _WINDOW_PX = 512, 256
_WINDOWS = ((0, 0), (256, 256))
"""Corners of the two windows of a tile that are shown: a whole tile has over 100 palms."""
_APART_PX = 600
"""Tiles whose corners are nearer to each other than this in both directions overlap or touch."""


def _read_oil_palms(prepared: Prepared) -> None:
    """Windows of a drone picture of an oil palm plantation, with a box round every palm."""
    labels = json.loads(prepared.snapshot.text(f"{_PALM_FOLDER}/_annotations.coco.json"))
    boxes: dict[int, list[list[float]]] = defaultdict(list)
    for each in labels["annotations"]:
        boxes[each["image_id"]].append([float(edge) for edge in each["bbox"]])
    corners: dict[str, tuple[int, int]] = {}
    for picture in labels["images"]:
        x, y = re.findall(r"\d+", picture["file_name"])[:2]
        corners[picture["file_name"]] = (int(x), int(y))
    blocks = _blocks(corners)
    for picture in sorted(labels["images"], key=lambda picture: picture["file_name"]):
        name = picture["file_name"]
        for x0, y0 in _WINDOWS:
            centres = [
                (x + width / 2 - x0, y + height / 2 - y0)
                for x, y, width, height in boxes[picture["id"]]
            ]
            prepared.add(
                f"{name.partition('_jpg')[0]}_{x0}",
                blocks[name],
                {"image": f"{_PALM_FOLDER}/{name}"},
                crop=(x0, y0, x0 + _WINDOW_PX, y0 + _WINDOW_PX),
                points=[
                    point for point in centres if all(0 <= each < _WINDOW_PX for each in point)
                ],
            )


def _blocks(corners: dict[str, tuple[int, int]]) -> dict[str, str]:
    """Return the block of each tile: tiles that overlap or touch, directly or by others, are one."""
    block = {name: name for name in corners}
    for one, other in combinations(sorted(corners), 2):
        (x0, y0), (x1, y1) = corners[one], corners[other]
        if max(abs(x0 - x1), abs(y0 - y1)) < _APART_PX and block[one] != block[other]:
            old, new = sorted((block[one], block[other]), reverse=True)
            block = {name: new if its == old else its for name, its in block.items()}
    names = sorted(set(block.values()))
    return {name: f"block-{names.index(its)}" for name, its in block.items()}


OIL_PALMS = Reader(
    "NarimT/Computer-Vision-Project",
    "e48c8914f74d9ff4f6fa3d7b0e70fc76cf54dfc9",
    _read_oil_palms,
)


_CROWN_FOLDER = "data/raw/dead_test"
_SITES_SHOWN_ELSEWHERE = {"OSBS", "SJER", "YELL", "JERC", "SOAP"}
"""Sites of which the benchmark or a recogniser has other pictures."""
_LEAST_CROWN_PX = 60
"""Least side of a crown that can be judged, 6 m on the ground."""
_CROWNS_OF_A_STATE = 60
"""Most dead, and most living, crowns."""


def _read_tree_crowns(prepared: Prepared) -> None:
    """Single crowns from the air (0.1 m), sorted into dead and living; a cluster is a plot or a tile of a flight."""
    snapshot = prepared.snapshot
    suitable: dict[str, list[str]] = {"Dead": [], "Alive": []}
    for state, chosen in suitable.items():
        for path in snapshot.paths(f"{_CROWN_FOLDER}/{state}/", ".png"):
            site = re.search("[A-Z]{4}", path.rpartition("/")[2])
            assert site is not None
            if site[0] in _SITES_SHOWN_ELSEWHERE:
                continue
            if min(snapshot.picture(path).size) >= _LEAST_CROWN_PX:
                chosen.append(path)
    for state, paths in suitable.items():
        for path in drawn_by_lot(paths, _CROWNS_OF_A_STATE):
            name = path.rpartition("/")[2].removesuffix(".png")
            # YEAR_SITE_BLOCK_EASTING_NORTHING_image_NUMBER (a tile) or SITE_PLOT_YEAR_NUMBER (a plot).
            place = name.rpartition("_")[0].removesuffix("_image")
            truth: dict[str, Any] = {"label": state.lower(), "gsd_m": 0.1}
            prepared.add(f"{state.lower()}_{name}", place, {"image": path}, **truth)


TREE_CROWNS = Reader(
    "weecology/DeepTreeAttention",
    "cae13f1e4271b5386e2379068f8239de3033ec40",
    _read_tree_crowns,
)


_DATE_FOLDER = "data_palm_tree_yolov12"
_DATE_PARTS = ("test", "valid")
"""The parts that are not augmented."""
_GROVE_DIGITS = 16
"""Leading digits of a tile's number that tiles of one grove share, as the number is a path in a tree of tiles."""
_OF_A_GROVE = 2
_DATE_SIDE_PX = 640
_FEWEST_PALMS = 6


def _read_date_palms(prepared: Prepared) -> None:
    """Tiles of groves of date palms in Saudi Arabia, seen by satellite, with a box round every palm."""
    snapshot = prepared.snapshot
    groves: dict[str, list[str]] = defaultdict(list)
    points: dict[str, list[list[float]]] = {}
    for part in _DATE_PARTS:
        for path in snapshot.paths(f"{_DATE_FOLDER}/{part}/images/", ".jpg"):
            listed = path.replace("/images/", "/labels/").removesuffix(".jpg") + ".txt"
            if not snapshot.has(listed):
                continue
            rows = [line.split() for line in snapshot.text(listed).splitlines()]
            centres = [[_DATE_SIDE_PX * float(edge) for edge in row[1:3]] for row in rows]
            if _FEWEST_PALMS <= len(centres) <= _MOST_TREES:
                points[path] = centres
                groves[path.rpartition("/")[2][:_GROVE_DIGITS]].append(path)
    for grove, paths in sorted(groves.items()):
        for path in drawn_by_lot(paths, _OF_A_GROVE):
            number = path.rpartition("/")[2].partition("_")[0]
            prepared.add(number, grove, {"image": path}, points=points[path])


DATE_PALMS = Reader(
    "GlowLab-IU/Palm-Tree-Detection",
    "b87fdbe880ab5c001f81cdb6b8d38d64a25cd83e",
    _read_date_palms,
)
