"""Fruit diameters against callipers, with the focal length from spheres of known size in the *other* frame.

The intrinsics of the camera do not come with the folder. Two spheres (60 and 120 mm) hang in each frame; the focal
length for a frame is the median over the spheres of the other frames, so no frame calibrates itself. The limits and
weights of the method were chosen on scenes made in code, and which evidence it looks at while looking at these frames.

As a check of that focal length: calibrations of single Azure Kinect cameras give fx = 904 px (panispani/3DReconstruct,
pointCloudGen/calib.md) and 917 px (GRAP-UdL-AT/ak_sw_benchmarker, camera_parameters.py) at 1920 x 1080, beside a
distortion that magnifies by some percent away from the middle; its field of view of 90 degrees alone gives 960 px.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agrotools.build.accuracy.drawn_fruit_and_leaves import FRUIT_SIZE_STUDIES
from agrotools.build.accuracy.figures import Figure, mean_of, ratio_of
from agrotools.build.accuracy.study import Bench, Study
from agrotools.core import BenchmarkError
from agrotools.tools.fruit.depth import read_depth
from agrotools.tools.fruit.finding import focal_from_sphere
from agrotools.tools.fruit.result import FruitSizes
from agrotools.vision.reading import read_image

_NEAR = 0.5
"""A circle whose middle is within this share of the box's half side of the box's middle is that fruit."""


def _diameters(bench: Bench) -> list[Figure]:
    items = bench.items()
    focal = {item["id"]: _focal_lengths(bench, item) for item in items}
    in_boxes: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    present: list[int] = []
    for item in items:
        others = [value for other, values in focal.items() if other != item["id"] for value in values]
        if not others:
            raise BenchmarkError("a frame cannot calibrate itself: the folder needs two frames with spheres")
        fruits = [fruit for fruit in item["fruits"] if not fruit.get("is_calibration_sphere")]
        call = {
            "image": bench.folder / item["image"],
            "depth": bench.folder / item["depth_mm_uint16"],
            "fx_px": float(np.median(others)),
        }
        given = bench.call(**call, boxes=[fruit["box"] for fruit in fruits])
        in_boxes += [_row(item, fruits[fruit.id - 1], fruit.diameter_mm, fruit.used_in_mean) for fruit in given.fruits]
        searched = bench.call(**call)
        found += _matched(item, fruits, searched)
        present.append(len(fruits))
    figures = _errors("diameter in given boxes", in_boxes, goal=6.0)
    figures += _errors("diameter of fruits found", found)
    hits = [sum(row["frame"] == item["id"] for row in found) for item in items]
    return [*figures, ratio_of("share of calliper-measured fruits found", hits, present)]


def _focal_lengths(bench: Bench, item: Mapping[str, Any]) -> list[float]:
    spheres = [fruit for fruit in item["fruits"] if fruit.get("is_calibration_sphere")]
    pixels = read_image(bench.folder / item["image"]).pixels
    depth = read_depth(bench.folder / item["depth_mm_uint16"], 1.0)
    return [focal_from_sphere(pixels, depth.mm, tuple(ball["box"]), ball["caliber_mm"]) for ball in spheres]


def _row(item: Mapping[str, Any], fruit: Mapping[str, Any], measured: float, counted: bool) -> dict[str, Any]:
    error = measured - fruit["caliber_mm"]
    return {"frame": item["id"], "error": error, "hidden": fruit["occluded"] == "YES", "counted": counted}


def _matched(item: Mapping[str, Any], fruits: list[Any], sizes: FruitSizes) -> list[dict[str, Any]]:
    """Each fruit with the nearest circle around its box's middle, if there is one; each circle once."""
    rows: list[dict[str, Any]] = []
    taken: set[int] = set()
    for fruit in fruits:
        x0, y0, x1, y1 = fruit["box"]
        reach = _NEAR * max(x1 - x0, y1 - y0) / 2
        near = [
            (float(np.hypot(circle.centre_px[0] - (x0 + x1) / 2, circle.centre_px[1] - (y0 + y1) / 2)), circle)
            for circle in sizes.fruits
            if circle.id not in taken
        ]
        distance, circle = min(near, key=lambda pair: pair[0], default=(np.inf, None))
        if circle is not None and distance <= reach:
            taken.add(circle.id)
            rows.append(_row(item, fruit, circle.diameter_mm, circle.used_in_mean))
    return rows


def _errors(what: str, rows: list[dict[str, Any]], goal: float | None = None) -> list[Figure]:
    """Mean absolute error and bias: of all, of those counted in the mean, of whole and of hidden fruits.

    One value per fruit; frames that show the same trees are one cluster, so two frames give no interval.
    """
    figures: list[Figure] = []
    groups = {
        "": rows,
        ", counted in the mean": [row for row in rows if row["counted"]],
        ", nothing before it": [row for row in rows if not row["hidden"]],
        ", partly hidden": [row for row in rows if row["hidden"]],
    }
    for group, chosen in groups.items():
        if not chosen:
            continue
        clusters = tuple("trees" for _ in chosen)
        sizes = [abs(row["error"]) for row in chosen]
        figures.append(
            mean_of(
                f"{what}{group}: mean absolute error, mm",
                sizes,
                clusters=clusters,
                goal=goal,
                higher_is_better=False,
                note="all frames show the same trees: no claim",
            )
        )
        figures.append(mean_of(f"{what}{group}: bias, mm", [row["error"] for row in chosen], clusters=clusters))
    return figures


STUDIES = (Study("measure_fruit_size", "rgbd_apples", _diameters), *FRUIT_SIZE_STUDIES)
