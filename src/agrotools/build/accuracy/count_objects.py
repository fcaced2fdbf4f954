"""Accuracy of count_objects (drawn trees, hand-labelled boxes) and of estimate_canopy_height."""

import csv
import math
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from agrotools.build.accuracy.fruit_and_leaves import COUNT_STUDIES
from agrotools.build.accuracy.study import Bench, Columns, Figure, Study
from agrotools.tools.counting.count_objects import RULES
from agrotools.tools.counting.fruit_net import overlaps

GSD_M = 0.5
_SCENES = range(12)
"""Seeds of the drawn scenes in the reported figures. The smoothing of height models was chosen on seeds 100 to 103."""
_PIT_SHARE = 0.01
_ROUGHNESS = 0.05


@dataclass(frozen=True, eq=False)
class CanopyScene:
    """Drawn canopy height model and its trees.

    ``heights``: float32 (rows, columns), metres, as measured by a laser scanner. ``tops``: float64 (n, 2), x and y of
    the stems in pixels. ``tall_m``, ``radius_m``: float64 (n,), height and crown radius of each tree in metres.
    """

    heights: NDArray[np.float32]
    tops: NDArray[np.float64]
    tall_m: NDArray[np.float64]
    radius_m: NDArray[np.float64]


def canopy_scene(kind: str, seed: int, side: int = 200) -> CanopyScene:
    """Draw a ``forest`` (touching and overlapping crowns of all sizes) or an ``orchard`` (rows of similar trees).

    Crown shapes range from a cone to a half ellipsoid, each with a rough surface (branches 0.5 to 1 m wide), over
    grass. The model contains noise, and pits where the laser passed through the crown. A tree whose top is hidden by
    the crown of a taller neighbour is left out of the truth, because it cannot be seen from above.
    """
    draw = np.random.default_rng([seed, len(kind)])
    extent = side * GSD_M
    if kind == "orchard":
        rows, spacing = draw.uniform(4.0, 6.0), draw.uniform(2.5, 4.5)
        xs, ys = np.meshgrid(np.arange(rows, extent - 2, rows), np.arange(spacing, extent - 2, spacing))
        places = np.column_stack([xs.ravel(), ys.ravel()]) + draw.normal(0, 0.2, (xs.size, 2))
        places = places[draw.random(len(places)) > 0.05]
        tall = draw.normal(draw.uniform(3, 5), 0.4, len(places)).clip(2.5)
        radius = np.minimum(0.30 * tall + draw.normal(0, 0.1, len(places)), 0.48 * spacing).clip(0.8)
    else:
        tall_of_many = draw.uniform(6, 28, 900)
        places_of_many = draw.uniform(0, extent, (900, 2))
        radius_of_many = np.clip(0.6 + 0.11 * tall_of_many + draw.normal(0, 0.3, 900), 0.8, None)
        spaced: list[int] = []
        closeness = draw.uniform(0.6, 0.9)
        for number in range(900):
            distances = np.hypot(*(places_of_many[spaced] - places_of_many[number]).T)
            if (distances > closeness * (radius_of_many[spaced] + radius_of_many[number])).all():
                spaced.append(number)
        places, tall, radius = places_of_many[spaced], tall_of_many[spaced], radius_of_many[spaced]
    y, x = (np.mgrid[0:side, 0:side] + 0.5) * GSD_M
    heights = np.abs(gaussian_filter(draw.normal(0, 1, (side, side)), 2)) * 0.6
    owner = np.full((side, side), -1)
    for number, ((at_x, at_y), top, wide) in enumerate(zip(places, tall, radius, strict=True)):
        share = np.hypot(x - at_x, y - at_y) / wide
        roundness = draw.uniform(1.0, 2.0)
        crown = np.where(share < 1, top * (1 - 0.6 * np.minimum(share, 1) ** roundness), 0)
        above = crown > heights
        owner[above], heights[above] = number, crown[above]
    rough = gaussian_filter(draw.normal(0, 1, (side, side)), 1.0)
    heights += np.where(owner >= 0, rough / rough.std() * _ROUGHNESS * heights, 0)
    heights += draw.normal(0, 0.08, heights.shape)
    pits = draw.random(heights.shape) < _PIT_SHARE
    heights[pits] *= draw.uniform(0.1, 0.7, int(pits.sum()))
    columns, lines = (np.clip((part / GSD_M).astype(int), 0, side - 1) for part in places.T)
    seen = owner[lines, columns] == np.arange(len(places))
    return CanopyScene(np.maximum(heights, 0).astype(np.float32), places[seen] / GSD_M, tall[seen], radius[seen])


def _given_rasters(bench: Bench) -> list[Figure]:
    columns = Columns(note="the truth is rounded to 4 places")
    for item in bench.items():
        true = item["stats"]
        result = bench.call(chm=bench.folder / item["chm"], height_bins_m=[2.0, 5.0])
        statistics = (
            result.mean_m - true["mean"],
            result.sd_m - true["std"],
            result.max_m - true["max"],
            float(result.measured_px != true["valid"]),
            result.gsd_m - true["res_m"],
        )
        shares = (
            result.cover_pct - 100 * true["fraction_over_2m"],
            result.bins[-1].pct - 100 * true["fraction_over_5m"],
        )
        columns.add(statistics=max(map(abs, statistics)), shares=max(map(abs, shares)))
    return [
        columns.mean_error("mean, sd, max: largest error, m", "statistics", goal=0.0001),
        columns.mean_error("cover at 2 and 5 m: largest error, points", "shares", goal=0.01),
    ]


def _surface_less_terrain(bench: Bench) -> list[Figure]:
    columns = Columns(note="drawn forests of 1 ha on rolling ground; terrain model of 2 m pixels on another grid")
    for seed in _SCENES:
        heights = canopy_scene("forest", seed).heights
        side = heights.shape[0]
        surface = (heights + _ground(side, GSD_M, 0.0, 0.0)).astype(np.float32)
        ground = _ground(round(side * GSD_M / 2 + 12), 2.0, -7.3, 7.7).astype(np.float32)
        result = bench.call(
            dsm=bench.raster(f"dsm_{seed}.tif", surface, GSD_M),
            dtm=bench.raster(f"dtm_{seed}.tif", ground, 2.0, (500_000 - 7.3, 5_000_000 + 7.7)),
        )
        columns.add(
            mean=abs(result.mean_m - float(heights.mean(dtype=np.float64))),
            top=abs(result.max_m - float(heights.max())),
            cover=abs(result.cover_pct - 100 * float((heights >= 2).mean())),
        )
    return [
        columns.mean_error("mean height, absolute error, m", "mean"),
        columns.mean_error("tallest tree, absolute error, m", "top"),
        columns.mean_error("canopy cover, absolute error, points", "cover"),
    ]


def _ground(side: int, size_m: float, x0: float, y0: float) -> np.ndarray:
    y, x = np.mgrid[0:side, 0:side]
    east, south = x0 + (x + 0.5) * size_m, -y0 + (y + 0.5) * size_m
    return 300 + 4 * np.sin(east / 25) + 3 * np.cos(south / 31) + 0.06 * east


CANOPY_STUDIES = (
    Study("estimate_canopy_height", "chm", _given_rasters),
    Study("estimate_canopy_height", "drawn_dsm_dtm", _surface_less_terrain, needs_folder=False),
)
_LEAST_IOU = 0.4
_NET_IOU = 0.5
_BY_COLOUR = "weak, and flagged so by the tool: colours alone"
_GOALS_PCT = {"apple": 20.0, "pear": 25.0, "cherry": 40.0}

Floats = NDArray[np.float64]


def _drawn_crowns(bench: Bench) -> list[Figure]:
    note = "drawn by our own code: an upper bound for real forests; a top counts within the crown's radius"
    figures: list[Figure] = []
    for kind in ("forest", "orchard"):
        columns = Columns()
        for seed in _SCENES:
            scene = canopy_scene(kind, seed)
            path = bench.raster(f"{kind}_{seed}.tif", scene.heights, GSD_M)
            result = bench.call(image=path, target="tree", score_min=0.0)
            table = _table(bench.artifact_path(result.table))
            pairs = _match_tops(scene, table)
            there = len(scene.tops)
            columns.add(
                hits=len(pairs),
                predicted=result.count,
                there=there,
                error=100 * abs(result.count - there) / there,
                height=float(np.mean([abs(table[i, -1] - scene.tall_m[j]) for i, j in pairs])),
            )
        figures += [
            columns.f1(f"{kind} tree tops, F1", "hits", "predicted", "there", note=note),
            columns.mean_error(f"{kind} count, absolute error, percent", "error", note=note),
            columns.mean_error(f"{kind} height of found trees, absolute error, m", "height"),
        ]
    return figures


TOPS_FILE = "tree_tops.csv"
_PLOT_PX = 40
_LABEL_REACH_M = 1.5


def _tops_by_eye(bench: Bench) -> list[Figure]:
    """Compare trees with tops labelled by eye in six plots of 20 x 20 m, drawn at random, of one height model.

    "sure" tops are those of separate crowns over 2 m, "doubtful" ones may be parts of a neighbouring crown.
    """
    rows = csv.DictReader((files("agrotools.build.accuracy") / TOPS_FILE).read_text("utf-8").splitlines())
    plots: dict[str, list[tuple[float, float, bool]]] = {}
    for row in rows:
        plots.setdefault(row["plot"], []).append((float(row["x"]), float(row["y"]), row["kind"] == "sure"))
    columns = Columns(note="tops that are seen in the height model, not trees measured in the field; one stand")
    for item in bench.items():
        if item["id"] != "kootenay":
            continue
        reach = _LABEL_REACH_M / item["stats"]["res_m"]
        for plot, tops in plots.items():
            x, y = map(int, plot.split())
            region = [x, y, x + _PLOT_PX, y + _PLOT_PX]
            result = bench.call(image=bench.folder / item["chm"], target="tree", region=region, score_min=0.0)
            trees = KDTree(_table(bench.artifact_path(result.table))[:, :2])
            sure = [top[:2] for top in tops if top[2]]
            columns.add(
                item["id"],
                found=result.count,
                sure=len(sure),
                labelled=len(tops),
                hits=sum(bool(trees.query_ball_point(top, reach)) for top in sure),
                inside=result.count_interval[0] <= len(sure) and len(tops) <= result.count_interval[1],
            )
    return [
        columns.ratio("trees by eye, tops of separate crowns found", "hits", "sure"),
        columns.ratio("trees found for each top of a separate crown", "found", "sure"),
        columns.ratio("trees found for each top, doubtful ones included", "found", "labelled"),
        columns.mean("both counts by eye inside the interval, share of plots", "inside"),
    ]


def _boxes_of_people(
    bench: Bench, target: str, mode: str, what: str, note: str, backend: str | None = None
) -> list[Figure]:
    columns = Columns(note=note)
    for item in bench.items():
        truth = _boxes(bench.folder / item["boxes"])
        scale = {} if item.get("gsd_m") is None else {"gsd_m": item["gsd_m"]}
        result = bench.call(image=bench.folder / item["image"], target=target, mode=mode, backend=backend, **scale)
        table = _table(bench.artifact_path(result.table))
        boxes, centres = table[:, 2:6], table[:, :2]
        inside = (centres[:, None, :] >= truth[None, :, :2]) & (centres[:, None, :] < truth[None, :, 2:])
        columns.add(
            _photograph(item["id"]),
            hits=_most_pairs(np.asarray(overlaps(boxes, truth) >= _LEAST_IOU)),
            centred=_most_pairs(np.asarray(inside.all(axis=2))),
            predicted=result.count,
            there=len(truth),
            error=abs(result.count - len(truth)),
        )
    return [
        columns.f1(f"{what} boxes, F1 at IoU {_LEAST_IOU}", "hits", "predicted", "there"),
        columns.f1(f"{what}, F1 by centre in box", "centred", "predicted", "there"),
        columns.mean_error(f"{what} count, absolute error", "error"),
        columns.mean(f"{what} there, per image", "there"),
    ]


def _photograph(tile: str) -> str:
    """Return the id of the photograph that a tile was cut from."""
    return tile.rsplit("_", 1)[0]


def _neon(bench: Bench) -> list[Figure]:
    return _boxes_of_people(bench, "tree", "crown_rgb", "tree crown", _BY_COLOUR)


def _fruit(bench: Bench, target: str) -> list[Figure]:
    """Measure the trained network as shipped, then the colour rules that are used for all other fruit."""
    by_colour = _boxes_of_people(bench, target, "fruit", f"by colour: {target}", _BY_COLOUR, RULES)
    return [*_by_net(bench, target), *by_colour]


def _by_net(bench: Bench, target: str) -> list[Figure]:
    columns = Columns()
    for item in bench.items():
        truth = _boxes(bench.folder / item["boxes"])
        result = bench.call(image=bench.folder / item["image"], target=target)
        boxes = _table(bench.artifact_path(result.table))[:, 2:6]
        interval: tuple[float, float] | None = result.count_interval
        bias, there = result.count - len(truth), len(truth)
        columns.add(
            _photograph(item["id"]),
            hits=_most_pairs(np.asarray(overlaps(boxes, truth) >= _NET_IOU)),
            predicted=result.count,
            there=there,
            inside=None if interval is None else interval[0] <= there <= interval[1],
            bias=bias,
            error=100 * abs(bias),
            share=100 * abs(bias) / there if there else None,
        )
    figures = [
        columns.f1(f"{target} boxes, F1 at IoU {_NET_IOU}", "hits", "predicted", "there"),
        columns.ratio(f"{target}, precision", "hits", "predicted"),
        columns.ratio(f"{target}, recall", "hits", "there"),
        columns.mean_error(f"{target} count, mean absolute percentage error", "share", goal=_GOALS_PCT[target]),
        columns.ratio(f"{target} count, error summed over all, percent", "error", "there", higher_is_better=False),
        columns.mean(f"{target} count, bias", "bias"),
    ]
    if columns["inside"]:
        figures.append(columns.mean(f"{target} count inside its interval, share", "inside", goal=0.9))
    return figures


def _table(path: Path) -> Floats:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return np.array(rows[1:], np.float64).reshape(-1, len(rows[0]))


def _boxes(path: Path) -> Floats:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row[:4] for row in csv.reader(file) if row and row[0].replace(".", "").replace("-", "").isdigit()]
    return np.array(rows, np.float64).reshape(-1, 4)


def _match_tops(scene: CanopyScene, table: Floats) -> list[tuple[int, int]]:
    """Match found tops to true tops, nearest first, each at most once, within the radius of the true crown."""
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


def _most_pairs(possible: NDArray[np.bool_]) -> int:
    """Return the largest number of pairs in which each found and each true object is used at most once."""
    rows, columns = linear_sum_assignment(possible, maximize=True)
    return int(possible[rows, columns].sum())


STUDIES = (
    Study("count_objects", "drawn_canopies", _drawn_crowns, needs_folder=False),
    Study("count_objects", "chm", _tops_by_eye),
    Study("count_objects", "neon_trees", _neon),
    *(
        Study("count_objects", folder, partial(_fruit, target=fruit))
        for fruit, folder in (("apple", "orchard_apples"), ("pear", "orchard_pears"), ("cherry", "orchard_cherries"))
    ),
    *COUNT_STUDIES,
)
