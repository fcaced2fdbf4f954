"""Accuracy of ``detect_change`` on drawn ponds, real image pairs and label rasters."""

from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from accuracy.study import Bench, Columns, Figure, Study, mean_of
from agrotools.vision.rasters import open_raster
from agrotools_build.scenes.ponds import make_pond_pair
from agrotools_tools.change.ponds import pond_change

if TYPE_CHECKING:
    from agrotools_build.scenes.scene import Scene

PAIRS = 80
"""Number of pairs, a quarter of each difficulty. The tests were fitted on seeds 1000 to 1359, tried on 2000 to 2079."""
FIRST_SEED = 12_000
_SAME_SIDE = {
    "constructed": "wetted",
    "wetted": "constructed",
    "demolished": "dried",
    "dried": "demolished",
}
_DATES = ("before", "after")


def _drawn_ponds(bench: Bench, infrared: bool) -> list[Figure]:
    """Measure the event through the tool, and water masks (which it does not return) through the function it calls."""
    columns = Columns(note="drawn pairs, fresh seeds; says nothing of real ponds")
    for number in range(PAIRS):
        scene = make_pond_pair(FIRST_SEED + number, number % 4)  # pyright: ignore[reportArgumentType]
        gsd_m = cast(float, scene.sidecar["gsd_m"])
        (before, after), nir = _arrays(scene, infrared)
        if infrared:
            roles = cast("list[str]", scene.sidecar["bands"])
            paths = [
                bench.raster(
                    f"pond_{number}_{d}.tif", scene.images[f"{d}_bands"], gsd_m, roles=roles
                )
                for d in _DATES
            ]
        else:
            paths = [
                bench.picture(f"pond_{number}_{date}.png", scene.images[date]) for date in _DATES
            ]
        result = bench.call(before=paths[0], after=paths[1], target="pond", gsd_m=gsd_m)
        event, truth = result.pond.event, cast(str, scene.truth["event"])
        right = event == truth
        columns.add(event=right, reported=None if event is None else right)
        if event in (truth, _SAME_SIDE.get(truth)) and truth != "none":
            columns.add(told=right)
        there = np.ones(before.shape[:2], np.bool_)
        change = pond_change(before, after, there, infrared=(nir[0], nir[1]), gsd_m=gsd_m)
        for date, mask in zip(_DATES, (change.water_before, change.water_after), strict=True):
            true = scene.masks[f"water_{date}"] > 0
            if true.any():
                columns.add(
                    overlap=(mask & true).sum() / (mask | true).sum(),
                    area=100 * abs(int(mask.sum()) / int(true.sum()) - 1),
                )
            else:
                columns.add(false=mask.any())
    unsaid = f"{columns.note}; an event left unsaid counts as wrong"
    return [
        columns.mean("water, IoU of pictures with water", "overlap", goal=0.88),
        columns.median_error("water area, median absolute error, %", "area"),
        columns.mean_error("false water in pictures without, share", "false"),
        columns.mean("event right, share of all pairs", "event", note=unsaid),
        columns.mean("event right, share of those said", "reported"),
        columns.mean("built told from filled, filled in from dried, share", "told"),
    ]


def _without_ponds(bench: Bench) -> list[Figure]:
    """Measure false pond events on real pairs of settlements and fields without a visible pond."""
    columns = Columns(
        note="no pond to be seen by eye; looked at while the test was made, so not unseen"
    )
    for item in bench.items():
        pair = {date: bench.folder / item[date] for date in _DATES}
        event = bench.call(**pair, target="pond").pond.event
        columns.add(claimed=event not in ("none", None), unsaid=event is None)
    return [
        columns.mean_error("pond event claimed where there is no pond, share", "claimed"),
        columns.mean_error("pond event left unsaid where there is no pond, share", "unsaid"),
    ]


def _arrays(
    scene: "Scene", infrared: bool
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.float32] | None]]:
    """Return the colours and the near infrared of both dates, scaled to 255."""
    if not infrared:
        return [cast(NDArray[np.uint8], scene.images[date]) for date in _DATES], [None, None]
    colours: list[NDArray[np.uint8]] = []
    nir: list[NDArray[np.float32] | None] = []
    for date in _DATES:
        bands = scene.images[f"{date}_bands"].astype(np.float32)
        scaled = bands * (255 / float(np.percentile(bands[:3], 99.9)))
        colours.append(
            np.clip(scaled[[2, 1, 0]], 0, 255).round().astype(np.uint8).transpose(1, 2, 0)
        )
        nir.append(scaled[3])
    return colours, nir


POND_STUDIES = (
    Study(
        "detect_change",
        "drawn pairs of ponds",
        partial(_drawn_ponds, infrared=False),
        needs_folder=False,
    ),
    Study(
        "detect_change",
        "drawn pairs of ponds with infrared",
        partial(_drawn_ponds, infrared=True),
        needs_folder=False,
    ),
    Study("detect_change", "levir_cd", _without_ponds),
    Study("detect_change", "dsifn_cd", _without_ponds),
)


def _measure_buildings(bench: Bench) -> list[Figure]:
    """Count the maps and answers that the tool gives for real pairs, at 0.5 to 2 m per pixel and without a scale."""
    columns = Columns()
    for item, target, gsd_m in product(bench.items(), ("farmland", "any"), (0.5, 1.0, 2.0, None)):
        result = bench.call(
            **{date: bench.folder / item[date] for date in _DATES}, target=target, gsd_m=gsd_m
        )
        columns.add(
            bench.folder.name,
            mapped=result.change_pct is not None,
            answered=result.changed is not None,
        )
    return [
        columns.mean_error("farmland and any: gives a map, share of calls", "mapped", goal=0),
        columns.mean_error(
            "farmland and any: says whether anything changed, share of calls", "answered"
        ),
    ]


def _measure_ndvi(bench: Bench) -> list[Figure]:
    """Compare the tool with arrays subtracted here (neighbouring dates), and a class raster with itself."""
    items = sorted(bench.items(), key=lambda item: str(item["id"]))
    apart: list[float] = []
    for first, second in pairwise(items):
        paths = bench.folder / first["ndvi"], bench.folder / second["ndvi"]
        values: list[NDArray[np.float32]] = []
        for path in paths:
            with open_raster(path) as source:
                values.append(source.read([1])[0])
        difference = values[1] - values[0]
        result = bench.call(
            before=paths[0], after=paths[1], target="vegetation", bands={"NDVI": 1}, threshold=0.2
        )
        gain, loss = int((difference > 0.2).sum()), int((difference < -0.2).sum())
        apart.append(abs(result.gain_px - gain) + abs(result.loss_px - loss))
    classes = bench.folder / items[0]["lulc"]
    same = bench.call(before=classes, after=classes, method="mask_diff")
    return [
        mean_of("NDVI gain and loss between neighbouring dates, mean error, px", apart, goal=0,
                clusters=("one patch of land",) * len(apart), higher_is_better=False),
        mean_of("class raster against itself, changed px", [same.change_px], goal=0, higher_is_better=False),
    ]  # fmt: skip


def _measure_drawn_labels(bench: Bench) -> list[Figure]:
    """Compare random label rasters with a known transition matrix; half of the second rasters are on another grid."""
    wrong: list[float] = []
    for seed in range(10):
        draw = np.random.default_rng(seed)
        shape = (int(draw.integers(40, 120)), int(draw.integers(40, 120)))
        before, after = (draw.integers(0, 5, shape).astype(np.uint8) for _ in range(2))
        # Every other second raster is finer by a factor of two: resampled to the first grid, it is identical again.
        fine = 1 + seed % 2
        finer = after.repeat(fine, 0).repeat(fine, 1)
        first = bench.raster(f"before-{seed}.tif", before, 10)
        second = bench.raster(f"after-{seed}.tif", finer, 10 / fine)
        result = bench.call(before=first, after=second, label_map={f"c{k}": [k] for k in range(5)})
        true = np.bincount(before.ravel().astype(int) * 5 + after.ravel(), minlength=25).reshape(
            5, 5
        )
        names = [result.transition_matrix.classes.index(f"c{k}") for k in range(5)]
        wrong.append(
            float(np.abs(np.array(result.transition_matrix.px)[np.ix_(names, names)] - true).sum())
        )
    return [
        mean_of(
            "cells of the transition matrix, mean error, px", wrong, goal=0, higher_is_better=False
        )
    ]


STUDIES = (
    Study("detect_change", "levir_cd", _measure_buildings),
    Study("detect_change", "dsifn_cd", _measure_buildings),
    Study("detect_change", "s2_ndvi", _measure_ndvi),
    Study("detect_change", "label rasters drawn here", _measure_drawn_labels, needs_folder=False),
    *POND_STUDIES,
)
