"""Accuracy of fruit sizes, fruit counts and lesion severity, on drawn scenes by difficulty and on photographs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accuracy.study import Bench, Columns, Figure, Study
from agrotools.core import BenchmarkError, ToolError
from agrotools.vision import Box
from agrotools.vision.reading import read_image, read_labels
from agrotools_build.scenes.leaf_photo import make_leaf_photo
from agrotools_build.scenes.orchard import KINDS, LEAST_SEEN, WELL_SEEN, make_orchard
from agrotools_build.scenes.wheat import make_wheat
from agrotools_tools.fruit.camera import Camera, read_depth
from agrotools_tools.fruit.finding import find_fruit_pixels, fruit_in_box
from agrotools_tools.fruit.measure import Depth, View
from agrotools_tools.fruit.result import FruitSizes
from agrotools_tools.lesions.result import LESION, RULES, LeafLesions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agrotools_build.scenes.scene import Difficulty

SCENES = 10
"""Number of scenes of each difficulty. No tool was fitted on any of them."""
FIRST_SEED = 60_000
_DIFFICULTIES: "tuple[Difficulty, ...]" = (0, 1, 2, 3)
_NOTE = "drawn scenes, fresh seeds; says nothing of real ones"
_COLOURFUL = ("red", "dark", "striped")


def _sizes(bench: Bench) -> list[Figure]:
    """Measure diameters of boxed, well-visible fruit, and mean diameters of whole pictures for coloured varieties."""
    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        columns = Columns(note=_NOTE)
        for number in range(SCENES):
            scene = make_orchard(FIRST_SEED + number, difficulty)
            call = {
                "image": _save_picture(bench, "drawn.jpg", scene.images["rgb"]),
                "depth": _save_picture(bench, "drawn_depth.png", scene.images["depth"]),
                "fx_px": scene.sidecar["fx_px"],
                "depth_unit_mm": 1.0,
            }
            visible = [fruit for fruit in scene.truth["fruits"] if fruit["visibility"] >= WELL_SEEN]
            for fruit in visible:
                result = _call_tool(bench, **call, boxes=[fruit["box"]])
                if result is not None and result.fruits:
                    columns.add(boxed=abs(result.fruits[0].diameter_mm - fruit["diameter_mm"]))
            if scene.truth["skin"] in _COLOURFUL and visible:
                result = _call_tool(bench, **call)
                mean = sum(fruit["diameter_mm"] for fruit in visible) / len(visible)
                if result is not None and result.mean_diameter_mm is not None:
                    columns.add(coloured=abs(result.mean_diameter_mm - mean))
        for what, column in (("boxed fruit", "boxed"), ("mean of coloured fruit", "coloured")):
            if columns[column]:
                metric = f"{what}, median absolute error, mm, difficulty {difficulty}"
                figures.append(columns.median_error(metric, column))
    return figures


def _counts(bench: Bench) -> list[Figure]:
    columns = Columns(note=_NOTE)
    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        for kind in ("apple", "tomato", "orange"):
            metric = f"{KINDS[kind].plural}, mean absolute error of counts, difficulty {difficulty}"
            for number in range(SCENES):
                scene = make_orchard(FIRST_SEED + number, difficulty, kind)
                there = sum(fruit["visibility"] >= LEAST_SEEN for fruit in scene.truth["fruits"])
                image = _save_picture(bench, "drawn.jpg", scene.images["rgb"])
                result = _call_tool(bench, image=image, target=kind)
                columns.add(**{metric: abs((0 if result is None else result.count) - there)})
            figures.append(columns.mean_error(metric, metric))
    return figures


def _ears(bench: Bench) -> list[Figure]:
    columns = Columns(note=_NOTE)
    for number in range(SCENES):
        scene = make_wheat(FIRST_SEED + number, _DIFFICULTIES[number % len(_DIFFICULTIES)])
        image = _save_picture(bench, "drawn.jpg", scene.images["rgb"])
        result = _call_tool(
            bench, image=image, target="wheat head", mode="blob", expected_size_px=30
        )
        columns.add(share=(0 if result is None else result.count) / scene.truth["count"])
    return [columns.median("ears counted as round spots, found over true, median", "share")]


def _severities(bench: Bench) -> list[Figure]:
    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        columns = Columns()
        for number in range(3 * SCENES):
            scene = make_leaf_photo(FIRST_SEED + number, difficulty)
            mode = "field" if scene.truth["ground"] == "soil" else "leaf"
            result = _call_tool(
                bench, image=_save_picture(bench, "drawn.jpg", scene.images["rgb"]), mode=mode
            )
            true = scene.truth["leaves"][0]["severity_pct"]
            columns.add(
                true=true, error=abs((0.0 if result is None else result.severity_pct) - true)
            )
        note = f"{_NOTE}; mean true severity {sum(columns['true']) / len(columns['true']):.1f} %"
        metric = f"severity, mean absolute error, points, difficulty {difficulty}"
        figures.append(columns.mean_error(metric, "error", note=note))
    return figures


def _call_tool(bench: Bench, **arguments: Any) -> Any:
    """Return the tool's result, or None if it finds nothing."""
    try:
        return bench.call(**arguments)
    except ToolError as error:
        if error.kind not in ("nothing_found", "region_empty"):
            raise
        return None


def _save_picture(bench: Bench, name: str, pixels: "NDArray[Any]") -> Path:
    from agrotools_build.sources.drawn import save_jpeg, save_png

    path = bench.scratch / name
    (save_jpeg if path.suffix == ".jpg" else save_png)(path, pixels)
    return path


COUNT_STUDIES = (
    Study("count_objects", "drawn orchards", _counts, needs_folder=False),
    Study("count_objects", "drawn wheat", _ears, needs_folder=False),
)
_TRUE_SYMPTOM = 2


def _against_masks(bench: Bench) -> list[Figure]:
    """Measure the tool as shipped, then the rules that it falls back to, on the same pictures."""
    return [
        *_figures(bench, None, "", goals=(0.965, 1.7, 0.70)),
        *_figures(bench, RULES, " (rules)", goals=(None, None, None)),
    ]


def _figures(
    bench: Bench,
    backend: str | None,
    suffix: str,
    goals: tuple[float | None, float | None, float | None],
) -> list[Figure]:
    columns = Columns()
    for item in bench.items():
        result: LeafLesions = bench.call(image=bench.folder / item["image"], backend=backend)
        classes = read_labels(bench.artifact_path(result.mask)).classes
        true = read_labels(bench.folder / item["mask"]).classes
        lesion, symptom = classes == LESION, true == _TRUE_SYMPTOM
        true_pct = 100 * float(symptom.sum() / (true > 0).sum())
        columns.add(
            leaf=((classes > 0) & (true > 0)).sum() / ((classes > 0) | (true > 0)).sum(),
            joint=np.count_nonzero(lesion & symptom),
            either=np.count_nonzero(lesion | symptom),
            measured=result.severity_pct,
            true=true_pct,
            bias=result.severity_pct - true_pct,
            error=abs(result.severity_pct - true_pct),
            by_model=result.method == "model",
        )
    used = f"{sum(columns['by_model']):.0f} of {len(columns['true'])} by the model"
    mean_true = (
        f"mean true severity {np.mean(columns['true']):.2f} %, so always 0 would err by as much"
    )
    return [
        columns.mean(
            f"leaf IoU{suffix}", "leaf", goal=goals[0], note="largest leaf, found by the tool"
        ),
        columns.ratio(f"lesion IoU, pooled{suffix}", "joint", "either", note=used),
        columns.mean_error(
            f"severity, mean absolute error, points{suffix}",
            "error",
            goal=goals[1],
            note=f"{used}; {mean_true}",
        ),
        columns.mean_error(f"severity, bias, points{suffix}", "bias", note="found minus true"),
        columns.concordance(
            f"severity, concordance (CCC){suffix}", "measured", "true", goal=goals[2], note=used
        ),
    ]


LEAF_STUDIES = (
    Study("analyze_lesions", "coffee_lesions", _against_masks),
    Study("analyze_lesions", "drawn leaves", _severities, needs_folder=False),
)
_NEAR = 0.5
"""Largest distance between the centres of a matched circle and box, as a share of half the box's longer side."""


def _diameters(bench: Bench) -> list[Figure]:
    items = bench.items()
    focal = {item["id"]: _focal_lengths(bench, item) for item in items}
    boxed, found, shares = Columns(), Columns(), Columns()
    means = Columns(
        note="fruits that were not measured by hand included: the trees bear more of them"
    )
    for item in items:
        others = [
            value for other, values in focal.items() if other != item["id"] for value in values
        ]
        if not others:
            raise BenchmarkError(
                "a frame cannot calibrate itself: the folder needs two frames with spheres"
            )
        fruits = [fruit for fruit in item["fruits"] if not fruit.get("is_calibration_sphere")]
        call = {
            "image": bench.folder / item["image"],
            "depth": bench.folder / item["depth_mm_uint16"],
            "fx_px": float(np.median(others)),
        }
        for fruit in bench.call(**call, boxes=[fruit["box"] for fruit in fruits]).fruits:
            _add_error(boxed, fruits[fruit.id - 1], fruit)
        searched = bench.call(**call)
        matched = _match_circles(fruits, searched)
        for fruit, circle in matched:
            _add_error(found, fruit, circle)
        true_mm = float(np.mean([fruit["caliber_mm"] for fruit in fruits]))
        means.add(error=100 * abs((searched.mean_diameter_mm or 0.0) - true_mm) / true_mm)
        shares.add(found=len(matched), present=len(fruits))
    return [
        *_errors("diameter in given boxes", boxed, goal=6.0),
        *_errors("diameter of fruits found", found),
        means.mean_error("mean diameter of fruits found: absolute error, percent", "error"),
        shares.ratio("share of calliper-measured fruits found", "found", "present"),
    ]


def _focal_lengths(bench: Bench, item: Mapping[str, Any]) -> list[float]:
    spheres = [fruit for fruit in item["fruits"] if fruit.get("is_calibration_sphere")]
    pixels = read_image(bench.folder / item["image"]).pixels
    depth = read_depth(bench.folder / item["depth_mm_uint16"], 1.0)
    return [
        focal_from_sphere(pixels, depth.mm, tuple(ball["box"]), ball["caliber_mm"])
        for ball in spheres
    ]


_FOCAL_ROUNDS = 12
_FOCAL_CLOSE = 1e-4


def focal_from_sphere(
    pixels: "NDArray[np.uint8]", depth_mm: Depth, box: Box, diameter_mm: float
) -> float:
    """Calibrate the focal length, pixels, from the sphere in ``box`` of known diameter.

    The optical axis is assumed to pass through the middle of the picture, and pixels to be square. With lens distortion
    the result is the focal length at the position of the sphere.

    Args:
        pixels: uint8 (rows, columns, 3).
        depth_mm: float32 (rows, columns), registered to the picture, NaN if unknown.
        box: box around the sphere, which should be fully visible.
        diameter_mm: true diameter of the sphere.

    Raises:
        ToolError: ``nothing_found`` if no sphere can be measured in the box.
    """
    height, width = depth_mm.shape
    focal = width / (2 * np.tan(np.radians(30)))  # a field of view of 60 degrees, to begin with
    colour = find_fruit_pixels(pixels)
    for _ in range(_FOCAL_ROUNDS):
        camera = Camera(focal, focal, width / 2, height / 2)
        view = View(camera, colour.mask, depth_mm, None, (0.5 * diameter_mm, 2 * diameter_mm))
        sphere, _ = fruit_in_box(view, colour, pixels, box)
        if sphere is None:
            why = f"no sphere can be measured in the box {list(box)}"
            raise ToolError("nothing_found", why, hint="choose one that is seen whole")
        factor = sphere.diameter_mm / diameter_mm
        focal *= factor
        if abs(factor - 1) < _FOCAL_CLOSE:
            break
    return float(focal)


_GROUPS = ("", ", counted in the mean", ", nothing before it", ", partly hidden")


def _add_error(columns: Columns, fruit: Mapping[str, Any], measured: Any) -> None:
    """Add the error of a fruit to each group it belongs to, in one cluster: all frames show the same trees."""
    hidden = fruit["occluded"] == "YES"
    for group, belongs in zip(
        _GROUPS, (True, measured.used_in_mean, not hidden, hidden), strict=True
    ):
        if belongs:
            bias = measured.diameter_mm - fruit["caliber_mm"]
            columns.add("trees", **{f"bias{group}": bias, f"size{group}": abs(bias)})


def _match_circles(fruits: list[Any], sizes: FruitSizes) -> list[tuple[Any, Any]]:
    """Pair each fruit with the nearest circle around the centre of its box, if any; each circle is used once."""
    pairs: list[tuple[Any, Any]] = []
    used_ids: set[int] = set()
    for fruit in fruits:
        x0, y0, x1, y1 = fruit["box"]
        reach = _NEAR * max(x1 - x0, y1 - y0) / 2
        near = [
            (
                float(
                    np.hypot(
                        circle.centre_px[0] - (x0 + x1) / 2, circle.centre_px[1] - (y0 + y1) / 2
                    )
                ),
                circle,
            )
            for circle in sizes.fruits
            if circle.id not in used_ids
        ]
        distance, circle = min(near, key=lambda pair: pair[0], default=(np.inf, None))
        if circle is not None and distance <= reach:
            used_ids.add(circle.id)
            pairs.append((fruit, circle))
    return pairs


def _errors(what: str, columns: Columns, goal: float | None = None) -> list[Figure]:
    """Return mean absolute error and bias of each group, with one value per fruit."""
    return [
        figure
        for group in _GROUPS
        if columns[f"size{group}"]
        for figure in (
            columns.mean_error(
                f"{what}{group}: mean absolute error, mm", f"size{group}", goal=goal
            ),
            columns.mean(f"{what}{group}: bias, mm", f"bias{group}"),
        )
    ]


FRUIT_STUDIES = (
    Study("measure_fruit_size", "rgbd_apples", _diameters),
    Study("measure_fruit_size", "drawn orchards", _sizes, needs_folder=False),
)
