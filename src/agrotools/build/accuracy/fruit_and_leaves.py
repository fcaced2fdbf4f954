"""Accuracy of fruit sizes, fruit counts and lesion severity, on drawn scenes by difficulty and on photographs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agrotools.build.accuracy.study import Bench, Figure, Study, concordance_of, mean_of, median_of, ratio_of
from agrotools.core import BenchmarkError, ToolError
from agrotools.tools.fruit.camera import read_depth
from agrotools.tools.fruit.finding import focal_from_sphere
from agrotools.tools.fruit.measure_fruit_size import FruitSizes
from agrotools.tools.lesions.analyze_lesions import RULES, LeafLesions
from agrotools.tools.lesions.result import LESION
from agrotools.vision.reading import read_image, read_labels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agrotools.build.scenes.scene import Difficulty

SCENES = 10
"""Of each difficulty. No tool was fitted on any of them."""
FIRST_SEED = 60_000
_DIFFICULTIES: "tuple[Difficulty, ...]" = (0, 1, 2, 3)
_NOTE = "drawn scenes, fresh seeds; says nothing of real ones"
_COLOURFUL = ("red", "dark", "striped")


def _sizes(bench: Bench) -> list[Figure]:
    """Of boxed fruit that is seen well; and means of whole pictures where the variety has a colour of its own."""
    from agrotools.build.scenes.orchard import WELL_SEEN, make_orchard

    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        errors: list[float] = []
        means: list[float] = []
        for number in range(SCENES):
            scene = make_orchard(FIRST_SEED + number, difficulty)
            files = {"image": _jpeg(bench, scene.images["rgb"]), "depth": _png(bench, scene.images["depth"])}
            camera = {"fx_px": scene.sidecar["fx_px"], "depth_unit_mm": 1.0}
            seen = [fruit for fruit in scene.truth["fruits"] if fruit["visibility"] >= WELL_SEEN]
            for fruit in seen:
                result = _called(bench, **files, **camera, boxes=[fruit["box"]])
                if result is not None and result.fruits:
                    errors.append(abs(result.fruits[0].diameter_mm - fruit["diameter_mm"]))
            if scene.truth["skin"] in _COLOURFUL and seen:
                result = _called(bench, **files, **camera)
                mean = sum(fruit["diameter_mm"] for fruit in seen) / len(seen)
                if result is not None and result.mean_diameter_mm is not None:
                    means.append(abs(result.mean_diameter_mm - mean))
        for what, values in (("boxed fruit", errors), ("mean of coloured fruit", means)):
            if values:
                metric = f"{what}, median absolute error, mm, difficulty {difficulty}"
                figures.append(median_of(metric, values, higher_is_better=False, note=_NOTE))
    return figures


def _counts(bench: Bench) -> list[Figure]:
    from agrotools.build.scenes.fruits import KINDS
    from agrotools.build.scenes.orchard import LEAST_SEEN, make_orchard

    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        for kind in ("apple", "tomato", "orange"):
            errors: list[float] = []
            for number in range(SCENES):
                scene = make_orchard(FIRST_SEED + number, difficulty, kind)
                there = sum(fruit["visibility"] >= LEAST_SEEN for fruit in scene.truth["fruits"])
                result = _called(bench, image=_jpeg(bench, scene.images["rgb"]), target=kind)
                errors.append(abs((0 if result is None else result.count) - there))
            metric = f"{KINDS[kind].plural}, mean absolute error of counts, difficulty {difficulty}"
            figures.append(mean_of(metric, errors, higher_is_better=False, note=_NOTE))
    return figures


def _ears(bench: Bench) -> list[Figure]:
    from agrotools.build.scenes.wheat import make_wheat

    shares: list[float] = []
    for number in range(SCENES):
        scene = make_wheat(FIRST_SEED + number, _DIFFICULTIES[number % len(_DIFFICULTIES)])
        image = _jpeg(bench, scene.images["rgb"])
        result = _called(bench, image=image, target="wheat head", mode="blob", expected_size_px=30)
        shares.append((0 if result is None else result.count) / scene.truth["count"])
    return [median_of("ears counted as round spots, found over true, median", shares, note=_NOTE)]


def _severities(bench: Bench) -> list[Figure]:
    from agrotools.build.scenes.leaf_photo import make_leaf_photo

    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        errors: list[float] = []
        true: list[float] = []
        for number in range(3 * SCENES):
            scene = make_leaf_photo(FIRST_SEED + number, difficulty)
            mode = "field" if scene.truth["ground"] == "soil" else "leaf"
            result = _called(bench, image=_jpeg(bench, scene.images["rgb"]), mode=mode)
            true.append(scene.truth["leaves"][0]["severity_pct"])
            errors.append(abs((0.0 if result is None else result.severity_pct) - true[-1]))
        note = f"{_NOTE}; mean true severity {sum(true) / len(true):.1f} %"
        metric = f"severity, mean absolute error, points, difficulty {difficulty}"
        figures.append(mean_of(metric, errors, higher_is_better=False, note=note))
    return figures


def _called(bench: Bench, **arguments: Any) -> Any:
    """The result; None where the tool finds nothing."""
    try:
        return bench.call(**arguments)
    except ToolError as error:
        if error.kind not in ("nothing_found", "region_empty"):
            raise
        return None


def _jpeg(bench: Bench, photo: "NDArray[np.uint8]") -> Path:
    from agrotools.build.sources.drawn.saving import save_jpeg

    path = bench.scratch / "drawn.jpg"
    save_jpeg(path, photo)
    return path


def _png(bench: Bench, plane: "NDArray[np.uint16]") -> Path:
    from agrotools.build.sources.drawn.saving import save_png

    path = bench.scratch / "drawn_depth.png"
    save_png(path, plane)
    return path


FRUIT_SIZE_STUDIES = (Study("measure_fruit_size", "drawn orchards", _sizes, needs_folder=False),)
COUNT_STUDIES = (
    Study("count_objects", "drawn orchards", _counts, needs_folder=False),
    Study("count_objects", "drawn wheat", _ears, needs_folder=False),
)
LESION_STUDIES = (Study("analyze_lesions", "drawn leaves", _severities, needs_folder=False),)
"""For the studies of those tools."""


_TRUE_SYMPTOM = 2
_TRAINED = "the model saw 342 other leaves of the same collection (white board, one crop): a closed world"
_BY_RULES = "by colour rules, which serve leaves of any kind; their constants were chosen on other leaves of this crop"


def _against_masks(bench: Bench) -> list[Figure]:
    """The tool as it is, then the same pictures with the rules that it falls back to."""
    return [
        *_figures(bench, None, "", _TRAINED, goals=(0.965, 1.7, 0.70)),
        *_figures(bench, RULES, " (rules)", _BY_RULES, goals=(None, None, None)),
    ]


def _figures(
    bench: Bench, backend: str | None, suffix: str, note: str, goals: tuple[float | None, float | None, float | None]
) -> list[Figure]:
    leaf_iou: list[float] = []
    joint: list[float] = []
    either: list[float] = []
    found_pct: list[float] = []
    true_pct: list[float] = []
    by_model = 0
    for item in bench.items():
        result: LeafLesions = bench.call(image=bench.folder / item["image"], backend=backend)
        classes = read_labels(bench.made(result.mask)).classes
        true = read_labels(bench.folder / item["mask"]).classes
        leaf_iou.append(float(((classes > 0) & (true > 0)).sum() / ((classes > 0) | (true > 0)).sum()))
        lesion, symptom = classes == LESION, true == _TRUE_SYMPTOM
        joint.append(float(np.count_nonzero(lesion & symptom)))
        either.append(float(np.count_nonzero(lesion | symptom)))
        found_pct.append(result.severity_pct)
        true_pct.append(100 * float(symptom.sum() / (true > 0).sum()))
        by_model += result.method == "model"
    errors = [classes - true for classes, true in zip(found_pct, true_pct, strict=True)]
    used = f"{note}; {by_model} of {len(errors)} by the model"
    return [
        mean_of(f"leaf IoU{suffix}", leaf_iou, goal=goals[0], note="largest leaf, found by the tool"),
        ratio_of(f"lesion IoU, pooled{suffix}", joint, either, note=used),
        mean_of(
            f"severity, mean absolute error, points{suffix}",
            [abs(error) for error in errors],
            goal=goals[1],
            higher_is_better=False,
            note=f"{used}; mean true severity {np.mean(true_pct):.2f} %, so always 0 would err by as much",
        ),
        mean_of(f"severity, bias, points{suffix}", errors, higher_is_better=False, note="found minus true"),
        concordance_of(f"severity, concordance (CCC){suffix}", found_pct, true_pct, goal=goals[2], note=used),
    ]


LEAF_STUDIES = (Study("analyze_lesions", "coffee_lesions", _against_masks), *LESION_STUDIES)


_NEAR = 0.5
"""A circle whose middle is within this share of the box's half side of the box's middle is that fruit."""


def _diameters(bench: Bench) -> list[Figure]:
    items = bench.items()
    focal = {item["id"]: _focal_lengths(bench, item) for item in items}
    in_boxes: list[dict[str, Any]] = []
    detected: list[dict[str, Any]] = []
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
        with_boxes = bench.call(**call, boxes=[fruit["box"] for fruit in fruits])
        in_boxes += [
            _row(item, fruits[fruit.id - 1], fruit.diameter_mm, fruit.used_in_mean) for fruit in with_boxes.fruits
        ]
        searched = bench.call(**call)
        detected += _matched(item, fruits, searched)
        present.append(len(fruits))
    figures = _errors("diameter in given boxes", in_boxes, goal=6.0)
    figures += _errors("diameter of fruits found", detected)
    hits = [sum(row["frame"] == item["id"] for row in detected) for item in items]
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
    used_ids: set[int] = set()
    for fruit in fruits:
        x0, y0, x1, y1 = fruit["box"]
        reach = _NEAR * max(x1 - x0, y1 - y0) / 2
        near = [
            (float(np.hypot(circle.centre_px[0] - (x0 + x1) / 2, circle.centre_px[1] - (y0 + y1) / 2)), circle)
            for circle in sizes.fruits
            if circle.id not in used_ids
        ]
        distance, circle = min(near, key=lambda pair: pair[0], default=(np.inf, None))
        if circle is not None and distance <= reach:
            used_ids.add(circle.id)
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


FRUIT_STUDIES = (Study("measure_fruit_size", "rgbd_apples", _diameters), *FRUIT_SIZE_STUDIES)
