"""PApple RGB-D-Size as its authors lay it out, small: spheres of known size before a camera of 5805.34 px.

Traps: apples that were not measured (number 0) or whose number has no diameter, an apple in two pieces, apples mostly
hidden, cut off by the edge or without depth, an outline of two points, regions without a number, keys that end in
another size in the second file, depth of half the size, the same apples in two crops, numbers that are one apple in
2018 and another in 2020, a picture without a usable apple, one without any depth, one whose name tells no year.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

FOCAL_PX = 5805.34
WIDTH, HEIGHT = 620, 420
ACROSS, DOWN = (110, 310, 510), (110, 300)
WALL_M = 3.4
HIDDEN, EDGE, NO_DEPTH = "hidden", "edge", "no depth"

Regions = dict[str, Any]


def write_papple(folder: Path, crops: int = 8) -> Path:
    """``crops`` pictures for 2018 and as many for 2020, every fourth with the apples of the one before it."""
    for part in ("images/test", "images/train", "gt_json/test", "gt_json/train", "depth_maps"):
        (folder / part).mkdir(parents=True)
    seen: Regions = {}
    whole: Regions = {}
    lines: list[str] = []
    for year, first in ((2018, "2"), (2020, "7")):
        for crop in range(crops):
            suffix = ".JPG" if crop % 3 == 2 else ".png"
            name = f"_MG_{first}{600 + crop}_{crop + 1}{suffix}"
            scene = crop - 1 if crop % 4 == 3 else crop
            lines += _write(folder, name, year, scene, seen, whole, halved=crop % 2 == 1)
    odd = {"_MG_2900_1.png": "nothing measured", "_MG_2901_1.png": "no depth at all", "_MG_9000_1.png": "no year"}
    for number, (name, fault) in enumerate(odd.items()):
        lines += _write(folder, name, 2018, 90 + number, seen, whole, fault=fault)
    for part, found in (("instance", seen), ("amodal", whole)):
        (folder / "gt_json" / "test" / f"via_region_data_{part}.json").write_text(json.dumps(found))
        (folder / "gt_json" / "train" / f"via_region_data_{part}.json").write_text("{}")
    (folder / "GT_diameter.txt").write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))
    return folder


def _write(
    folder: Path,
    name: str,
    year: int,
    scene: int,
    seen: Regions,
    whole: Regions,
    *,
    halved: bool = False,
    fault: str = "",
) -> list[str]:
    """One picture; returns the lines of its diameters."""
    draw = np.random.default_rng([year, scene])
    pixels = np.clip(draw.normal((70, 105, 50), 12, (HEIGHT, WIDTH, 3)), 0, 255)
    metres = np.full((HEIGHT, WIDTH), WALL_M)
    metres[draw.random((HEIGHT, WIDTH)) < 0.03] = 0
    lines: list[str] = []
    regions: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for place in range(6):
        number = 10 * scene + place + 1
        diameter = int(draw.integers(45, 92))
        state = {1: HIDDEN, 2: EDGE, 3: NO_DEPTH}.get(place if scene % 3 == 1 else -1, "")
        x = ACROSS[place % 3] + int(draw.integers(-8, 9)) if state != EDGE else WIDTH - 20
        y, far = DOWN[place // 3] + int(draw.integers(-8, 9)), float(draw.uniform(2.9, 3.1))
        radius = FOCAL_PX * diameter / 2000 / far
        _paint(pixels, metres, (x, y), radius, diameter / 2000, far, no_depth=state == NO_DEPTH)
        known = "0" if fault == "nothing measured" or place == 5 else str(number)
        full = _circle(x, y, radius)
        pieces = [full]
        if place == 4:
            pieces = [_circle(x, y, radius, side) for side in (-1, 1)]
            pixels[:, x - 6 : x + 6] = (60, 80, 40)
        elif state == HIDDEN:
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


def _paint(
    pixels: np.ndarray,
    metres: np.ndarray,
    at: tuple[int, int],
    radius: float,
    size_m: float,
    far: float,
    *,
    no_depth: bool,
) -> None:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
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
