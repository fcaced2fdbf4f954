"""Accuracy of count_objects (drawn trees, hand-labelled boxes) and of estimate_canopy_height."""

import csv
import math
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from accuracy.fruit_and_leaves import COUNT_STUDIES
from accuracy.study import Bench, Columns, Figure, Study
from agrotools.core import BenchmarkError
from agrotools_build.scenes.stands import BLOCK_GSD_M, make_block
from agrotools_tools.counting.measure import overlaps
from agrotools_tools.counting.tool import RULES

GSD_M = 0.5
"""Pixel of the height models of difficulty 1."""
_SCENES = range(90_000, 90_012)
"""Seeds of the drawn scenes."""


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
    columns = Columns(
        note="drawn forests of 1.4 ha on rolling ground; terrain model of 2 m pixels on another grid"
    )
    for seed in _SCENES:
        heights = make_block(seed, 1, "forest").images["chm"]
        rows, width = heights.shape
        surface = (heights + _ground(rows, width, GSD_M, 0.0, 0.0)).astype(np.float32)
        coarse_rows, coarse_width = (round(side * GSD_M / 2 + 12) for side in heights.shape)
        ground = _ground(coarse_rows, coarse_width, 2.0, -7.3, 7.7).astype(np.float32)
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


def _ground(rows: int, width: int, size_m: float, x0: float, y0: float) -> np.ndarray:
    y, x = np.mgrid[0:rows, 0:width]
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
    note = "drawn scenes, difficulties 0 to 3: an upper bound for real stands; a top counts within the crown's radius"
    figures: list[Figure] = []
    for kind in ("forest", "orchard"):
        columns = Columns()
        for seed in _SCENES:
            scene = make_block(seed, seed % 4, kind)  # pyright: ignore[reportArgumentType]
            gsd_m = cast(float, scene.sidecar["chm_gsd_m"])
            trees = np.array(scene.truth["trees"], np.float64)
            path = bench.raster(f"{kind}_{seed}.tif", scene.images["chm"], gsd_m)
            result = bench.call(image=path, target="tree", score_min=0.0)
            table = _table(bench.artifact_path(result.table))
            pairs = _match_tops(trees[:, :2] * (BLOCK_GSD_M / gsd_m), trees[:, 3] / gsd_m, table)
            there = len(trees)
            columns.add(
                hits=len(pairs),
                predicted=result.count,
                there=there,
                error=100 * abs(result.count - there) / there,
                height=float(np.mean([abs(table[i, -1] - trees[j, 2]) for i, j in pairs])),
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
    rows = csv.DictReader(Path(__file__).with_name(TOPS_FILE).read_text("utf-8").splitlines())
    plots: dict[str, list[tuple[float, float, bool]]] = {}
    for row in rows:
        plots.setdefault(row["plot"], []).append(
            (float(row["x"]), float(row["y"]), row["kind"] == "sure")
        )
    columns = Columns(
        note="tops that are seen in the height model, not trees measured in the field; one stand"
    )
    for item in bench.items():
        if item["id"] != "kootenay":
            continue
        reach = _LABEL_REACH_M / item["stats"]["res_m"]
        for plot, tops in plots.items():
            x, y = map(int, plot.split())
            region = [x, y, x + _PLOT_PX, y + _PLOT_PX]
            result = bench.call(
                image=bench.folder / item["chm"], target="tree", region=region, score_min=0.0
            )
            trees = KDTree(_table(bench.artifact_path(result.table))[:, :2])
            sure = [top[:2] for top in tops if top[2]]
            columns.add(
                item["id"],
                found=result.count,
                sure=len(sure),
                labelled=len(tops),
                hits=sum(bool(trees.query_ball_point(top, reach)) for top in sure),
                inside=result.count_interval[0] <= len(sure)
                and len(tops) <= result.count_interval[1],
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
        result = bench.call(
            image=bench.folder / item["image"], target=target, mode=mode, backend=backend, **scale
        )
        table = _table(bench.artifact_path(result.table))
        boxes, centres = table[:, 2:6], table[:, :2]
        inside = (centres[:, None, :] >= truth[None, :, :2]) & (
            centres[:, None, :] < truth[None, :, 2:]
        )
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
        columns.mean_error(
            f"{target} count, mean absolute percentage error", "share", goal=_GOALS_PCT[target]
        ),
        columns.ratio(
            f"{target} count, error summed over all, percent",
            "error",
            "there",
            higher_is_better=False,
        ),
        columns.mean(f"{target} count, bias", "bias"),
    ]
    if columns["inside"]:
        figures.append(
            columns.mean(f"{target} count inside its interval, share", "inside", goal=0.9)
        )
    return figures


def _table(path: Path) -> Floats:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return np.array(rows[1:], np.float64).reshape(-1, len(rows[0]))


def _boxes(path: Path) -> Floats:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                row[:4]
                for row in csv.reader(file)
                if row and row[0].replace(".", "").replace("-", "").isdigit()
            ]
        return np.array(rows, np.float64).reshape(-1, 4)
    except (ValueError, csv.Error) as error:
        where = f"{path.parent.name}/{path.name}"
        raise BenchmarkError(
            f"{where} (field 'boxes') is not a table; expected left,top,right,bottom per row"
        ) from error


def _match_tops(tops: Floats, radii: Floats, table: Floats) -> list[tuple[int, int]]:
    """Match found tops to true tops, nearest first, each at most once, within the radius of the true crown (pixels)."""
    pairs: list[tuple[float, int, int]] = []
    tree = KDTree(table[:, :2])
    for j, (stem, radius) in enumerate(zip(tops, radii, strict=True)):
        pairs += [
            (math.dist(stem, table[i, :2]), i, j) for i in tree.query_ball_point(stem, radius)
        ]
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
    Study(
        "count_objects",
        "neon_trees",
        partial(
            _boxes_of_people, target="tree", mode="crown_rgb", what="tree crown", note=_BY_COLOUR
        ),
    ),
    *(
        Study("count_objects", folder, partial(_fruit, target=fruit))
        for fruit, folder in (
            ("apple", "orchard_apples"),
            ("pear", "orchard_pears"),
            ("cherry", "orchard_cherries"),
        )
    ),
    *COUNT_STUDIES,
)
