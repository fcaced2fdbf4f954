"""Accuracy of count_objects, by detector: against drawn trees, and against boxes that people drew."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.accuracy.estimate_canopy_height import GSD_M, CanopyScene, canopy_scene
from agrotools.build.accuracy.figures import Figure, f1_of, mean_of, ratio_of
from agrotools.build.accuracy.fruit_and_leaves import COUNT_STUDIES
from agrotools.build.accuracy.study import Bench, Study
from agrotools.tools.counting.count_objects import RULES

_SCENES = range(12)
"""Seeds of the drawn scenes that figures are of. The smoothing of height models was chosen on seeds 100 to 103."""
_LEAST_IOU = 0.4
_NET_IOU = 0.5
_GOALS_PCT = {"apple": 20.0, "pear": 25.0, "cherry": 40.0}

Floats = NDArray[np.float64]


def _drawn_crowns(bench: Bench) -> list[Figure]:
    import rasterio
    from rasterio.transform import from_origin

    figures: list[Figure] = []
    bench.scratch.mkdir(parents=True, exist_ok=True)
    for kind in ("forest", "orchard"):
        hits: list[int] = []
        found: list[int] = []
        there: list[int] = []
        heights: list[float] = []
        for seed in _SCENES:
            scene = canopy_scene(kind, seed)
            path = bench.scratch / f"{kind}_{seed}.tif"
            side = scene.heights.shape[0]
            with rasterio.open(
                path, "w", driver="GTiff", dtype="float32", count=1, width=side, height=side, crs="EPSG:32633",
                transform=from_origin(500_000, 5_000_000, GSD_M, GSD_M),
            ) as file:  # fmt: skip
                file.write(scene.heights, 1)
            result = bench.call(image=path, target="tree", score_min=0.0)
            table = _table(bench.made(result.table))
            pairs = _tops_matched(scene, table)
            hits.append(len(pairs))
            found.append(result.count)
            there.append(len(scene.tops))
            heights.append(float(np.mean([abs(table[i, -1] - scene.tall_m[j]) for i, j in pairs])))
        note = "drawn by our own code: an upper bound for real forests; a top counts within the crown's radius"
        figures.append(f1_of(f"{kind} tree tops, F1", hits, found, there, note=note))
        errors = [100 * abs(a - b) / b for a, b in zip(found, there, strict=True)]
        figures.append(mean_of(f"{kind} count, absolute error, percent", errors, higher_is_better=False, note=note))
        figures.append(mean_of(f"{kind} height of found trees, absolute error, m", heights, higher_is_better=False))
    return figures


def _boxes_of_people(
    bench: Bench, target: str, mode: str, what: str, note: str, backend: str | None = None
) -> list[Figure]:
    hits: list[int] = []
    centred: list[int] = []
    found: list[int] = []
    there: list[int] = []
    errors: list[float] = []
    clusters: list[str] = []
    for item in bench.items():
        truth = _boxes(bench.folder / item["boxes"])
        scale = {} if item.get("gsd_m") is None else {"gsd_m": item["gsd_m"]}
        result = bench.call(image=bench.folder / item["image"], target=target, mode=mode, backend=backend, **scale)
        table = _table(bench.made(result.table))
        boxes, centres = table[:, 2:6], table[:, :2]
        hits.append(_matched(np.asarray(_iou(boxes, truth) >= _LEAST_IOU)))
        inside = (centres[:, None, :] >= truth[None, :, :2]) & (centres[:, None, :] < truth[None, :, 2:])
        centred.append(_matched(np.asarray(inside.all(axis=2))))
        found.append(result.count)
        there.append(len(truth))
        errors.append(abs(result.count - len(truth)))
        clusters.append(item["id"].rsplit("_", 1)[0])  # the photograph that a tile was cut from
    by_scene: dict[str, Any] = {"clusters": tuple(clusters), "note": note}
    return [
        f1_of(f"{what} boxes, F1 at IoU {_LEAST_IOU}", hits, found, there, **by_scene),
        f1_of(f"{what}, F1 by centre in box", centred, found, there, **by_scene),
        mean_of(f"{what} count, absolute error", errors, higher_is_better=False, **by_scene),
        mean_of(f"{what} there, per image", there, **by_scene),
    ]


def _neon(bench: Bench) -> list[Figure]:
    return _boxes_of_people(bench, "tree", "crown_rgb", "tree crown", "weak, and flagged so by the tool: colours alone")


def _fruit(target: str) -> Any:
    """By the net as it ships, then by colour, which other fruit is left to."""

    def study(bench: Bench) -> list[Figure]:
        by_colour = _boxes_of_people(
            bench, target, "fruit", f"by colour: {target}", "weak, and flagged so by the tool: colours alone", RULES
        )
        return [*_by_net(bench, target), *by_colour]

    return study


def _by_net(bench: Bench, target: str) -> list[Figure]:
    hits: list[int] = []
    found: list[int] = []
    there: list[int] = []
    inside: list[float] = []
    clusters: list[str] = []
    for item in bench.items():
        truth = _boxes(bench.folder / item["boxes"])
        result = bench.call(image=bench.folder / item["image"], target=target)
        boxes = _table(bench.made(result.table))[:, 2:6]
        hits.append(_matched(np.asarray(_iou(boxes, truth) >= _NET_IOU)))
        found.append(result.count)
        there.append(len(truth))
        low, high = result.count_interval
        inside.append(float(low <= len(truth) <= high))
        clusters.append(item["id"].rsplit("_", 1)[0])
    errors = [abs(a - b) for a, b in zip(found, there, strict=True)]
    shares = [(100 * error / true, scene) for error, true, scene in zip(errors, there, clusters, strict=True) if true]
    trained = "the net learnt from other photographs of the same orchards; fruit of rows behind is not always boxed"
    by_scene: dict[str, Any] = {"clusters": tuple(clusters), "note": trained}
    return [
        f1_of(f"{target} boxes, F1 at IoU {_NET_IOU}", hits, found, there, **by_scene),
        ratio_of(f"{target}, precision", hits, found, **by_scene),
        ratio_of(f"{target}, recall", hits, there, **by_scene),
        mean_of(f"{target} count, mean absolute percentage error", [share for share, _ in shares],
                clusters=tuple(scene for _, scene in shares), note=trained, goal=_GOALS_PCT[target],
                higher_is_better=False),
        ratio_of(f"{target} count, error summed over all, percent", [100 * error for error in errors], there,
                 higher_is_better=False, **by_scene),
        mean_of(f"{target} count, bias", [a - b for a, b in zip(found, there, strict=True)], **by_scene),
        mean_of(f"{target} count inside its interval, share", inside, goal=0.95, **by_scene),
    ]  # fmt: skip


def _table(path: Path) -> Floats:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return np.array(rows[1:], np.float64).reshape(-1, len(rows[0]))


def _boxes(path: Path) -> Floats:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row[:4] for row in csv.reader(file) if row and row[0].replace(".", "").replace("-", "").isdigit()]
    return np.array(rows, np.float64).reshape(-1, 4)


def _tops_matched(scene: CanopyScene, table: Floats) -> list[tuple[int, int]]:
    """Pairs of a found top and a true one, nearest first, each once, no further apart than the crown's radius."""
    from scipy.spatial import KDTree

    pairs: list[tuple[float, int, int]] = []
    tree = KDTree(table[:, :2])
    for j, (stem, radius) in enumerate(zip(scene.tops, scene.radius_m / GSD_M, strict=True)):
        pairs += [(math.dist(stem, table[i, :2]), i, j) for i in tree.query_ball_point(stem, radius)]
    used_found: set[int] = set()
    used_true: set[int] = set()
    matched: list[tuple[int, int]] = []
    for _, i, j in sorted(pairs):
        if i not in used_found and j not in used_true:
            used_found.add(i)
            used_true.add(j)
            matched.append((i, j))
    return matched


def _iou(first: Floats, second: Floats) -> Floats:
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(axis=2)
    sizes = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (first, second)]
    return common / np.maximum(sizes[0][:, None] + sizes[1][None, :] - common, 1e-9)


def _matched(possible: NDArray[np.bool_]) -> int:
    """The most pairs that can be made, each found object and each true one used once at most."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(possible, maximize=True)
    return int(possible[rows, columns].sum())


STUDIES = (
    Study("count_objects", "drawn_canopies", _drawn_crowns, needs_folder=False),
    Study("count_objects", "neon_trees", _neon),
    Study("count_objects", "orchard_apples", _fruit("apple")),
    Study("count_objects", "orchard_pears", _fruit("pear")),
    Study("count_objects", "orchard_cherries", _fruit("cherry")),
    *COUNT_STUDIES,
)
