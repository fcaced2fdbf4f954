"""Tiles of photographs of fruit trees, with a box round each fruit (AppleBBCH81, CherryBBCH81)."""

import re
from collections import defaultdict
from functools import partial

from field_sources.snapshot import Prepared, Reader, drawn_by_lot

_SIDE_PX = 640
_LEAST_BOX_PX = 4
"""Least side of a box: smaller ones are what is left of a fruit at the edge of a tile."""


def _read_orchard(
    kept: str, more: str, fewest: int, most: int, folder: str, prepared: Prepared
) -> None:
    """Tiles that were kept for questions from the first, and one of each of further photographs.

    The net that counts fruit learnt from other photographs of the same orchard. ``kept``: names of tiles; ``more``:
    numbers of the further photographs, as their names have them; ``fewest``, ``most``: fruits in a tile.
    """
    boxes: dict[str, list[list[int]]] = {}
    tiles: dict[str, list[str]] = defaultdict(list)
    wanted, further = set(kept.split()), set(more.split())
    for path in prepared.snapshot.paths(f"{folder}/", ".txt"):
        name = path.rpartition("/")[2].removesuffix(".txt")
        photograph = name.rpartition("_")[0]
        is_further = re.sub(r"^\D+(\d+).*", r"\1", photograph) in further
        if name in wanted or is_further:
            boxes[name] = _boxes(prepared.snapshot.text(path))
            if is_further and fewest <= len(boxes[name]) <= most:
                tiles[photograph].append(name)
    drawn = [name for names in tiles.values() for name in drawn_by_lot(names, 1)]
    for name in sorted({*wanted, *drawn}):
        prepared.add(
            name,
            name.rpartition("_")[0],
            {"image": f"data/images/{name}.jpg"},
            count=len(boxes[name]),
            boxes=prepared.store_boxes(name, boxes[name]),
        )


def _boxes(text: str) -> list[list[int]]:
    """Return left, top, right and bottom of each box in pixels; a line has a class, the middle and the sides."""
    found: list[list[int]] = []
    for line in filter(None, text.splitlines()):
        x, y, width, height = (float(each) * _SIDE_PX for each in line.split()[1:5])
        edges = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        box = [round(min(max(edge, 0), _SIDE_PX)) for edge in edges]
        if min(box[2] - box[0], box[3] - box[1]) >= _LEAST_BOX_PX:
            found.append(box)
    return found


_APPLES_KEPT = """
DSC_1083_17kv3r11k_2 DSC_1103_17kv4r29k_2 DSC_1105_17kv4r31k_8 DSC_1148_17kv8r35k_9
DSC_1154_17kv7r18k_1 DSC_1160_17kv7r24k_3 DSC_1162_17kv7r26k_4 DSC_1191_17kv10r11k_13
DSC_1192_17kv10r12k_12 DSC_1207_17kv10r27k_12 DSC_1209_17kv10r29k_11 DSC_1260_17kv11r24k_0
DSC_1262_17kv11r26k_6 DSC_1268_17kv12r25k_7 DSC_1340_17kv36r5k_14 DSC_1341_17kv36r6k_5
DSC_1345_17kv36r10k_1 DSC_1361_17kv36r26k_7 DSC_1367_17kv37r2k_0 DSC_1389_17kv38r8k_4
"""
_APPLES_MORE = """
1084 1085 1101 1102 1106 1107 1108 1111 1112 1115 1116 1117 1141 1142 1143 1150 1151 1163 1165
1167 1193 1228 1229 1246 1247 1257 1259 1296 1297 1304 1305 1306 1311 1312 1387 1388 1418
"""
ORCHARD_APPLES = Reader(
    "ai-agriculture-circuits-and-systems/AppleBBCH81",
    "982445d15077531a3bff0da27aa1764c64863fca",
    partial(_read_orchard, _APPLES_KEPT, _APPLES_MORE, 2, 12, "data/labels"),
)

_CHERRIES_KEPT = """
IMGP9372_6 IMGP9375_1 IMGP9382_0 IMGP9390_4 IMGP9393_2 IMGP9398_1 IMGP9400_8 IMGP9417_6
IMGP9424_12 IMGP9425_3 IMGP9427_0 IMGP9435_1 IMGP9437_6 IMGP9446_16 IMGP9450_9 IMGP9481_9
IMGP9489_11 IMGP9500_9 IMGP9502_0 IMGP9504_23
"""
_CHERRIES_MORE = """
9355 9356 9357 9358 9359 9376 9377 9378 9394 9395 9403 9404 9405 9407 9408 9414 9415 9416 9418
9419 9420 9421 9422 9430 9431 9432 9447 9448 9451 9452 9459 9460 9461 9479 9480 9482 9483 9484
9485 9490 9491 9492 9495 9496 9497 9498 9499 9501
"""
ORCHARD_CHERRIES = Reader(
    "ai-agriculture-circuits-and-systems/CherryBBCH81",
    "6cd29d71dadd2e0ed8c35f9e73c32597984e47e0",
    partial(_read_orchard, _CHERRIES_KEPT, _CHERRIES_MORE, 3, 10, "data/labels"),
)
