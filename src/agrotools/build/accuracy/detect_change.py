"""Accuracy of `detect_change` on new buildings in real pairs, and on label rasters.

Tiles of one large scene are no independent pairs: they share a fold, and count once as far as intervals go.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.build.accuracy.study import Bench, Figure, Study, f1_of, mean_of, median_of, ratio_of
from agrotools.core.files import fold_of
from agrotools.tools.change.buildings import RoofRule, TextureRule, built_change
from agrotools.tools.change.picture_pairs import shift_back, shift_between
from agrotools.tools.change.result import CHANGED, GAINED, LOST
from agrotools.vision.reading import read_image, read_labels

if TYPE_CHECKING:
    from agrotools.build.scenes.scene import Scene

PAIRS = 80
"""A quarter of each difficulty. The tests were fitted on seeds 1000 to 1359 and tried on 2000 to 2079."""
FIRST_SEED = 12_000


def _colours(bench: Bench) -> list[Figure]:
    return _measured(bench, infrared=False)


def _with_infrared(bench: Bench) -> list[Figure]:
    return _measured(bench, infrared=True)


def _measured(bench: Bench, infrared: bool) -> list[Figure]:
    """Event through the tool; water from the very function that the tool calls, since it returns no water masks."""
    from agrotools.build.scenes.ponds import make_pond_pair
    from agrotools.tools.change.ponds import pond_change

    save = _save_bands if infrared else _save_photos
    overlaps: list[float] = []
    errors: list[float] = []
    events: list[float] = []
    reported: list[float] = []
    true_values: list[float] = []
    false: list[float] = []
    for number in range(PAIRS):
        scene = make_pond_pair(FIRST_SEED + number, number % 4)  # pyright: ignore[reportArgumentType]
        gsd_m = cast(float, scene.sidecar["gsd_m"])
        files = save(bench, scene, number)
        result = bench.call(before=files["before"], after=files["after"], target="pond", gsd_m=gsd_m)
        event, truth = result.pond.event, cast(str, scene.truth["event"])
        events.append(float(event == truth))
        if event is not None:
            reported.append(float(event == truth))
        same_side = {"constructed": "wetted", "wetted": "constructed", "demolished": "dried", "dried": "demolished"}
        if event in (truth, same_side.get(truth)) and truth != "none":
            true_values.append(float(event == truth))
        (before, after), nir = _arrays(scene, infrared)
        there = np.ones(before.shape[:2], np.bool_)
        change = pond_change(before, after, there, nir_before=nir[0], nir_after=nir[1], gsd_m=gsd_m)
        for name, mask in (("before", change.water_before), ("after", change.water_after)):
            true = scene.masks[f"water_{name}"] > 0
            if true.any():
                overlaps.append(float((mask & true).sum() / (mask | true).sum()))
                errors.append(100 * abs(int(mask.sum()) / int(true.sum()) - 1))
            else:
                false.append(float(mask.any()))
    note = "drawn pairs, fresh seeds; says nothing of real ponds"
    return [
        mean_of("water, IoU of pictures with water", overlaps, goal=0.88, note=note),
        median_of("water area, median absolute error, %", errors, higher_is_better=False, note=note),
        mean_of("false water in pictures without, share", false, higher_is_better=False, note=note),
        mean_of("event right, share of all pairs", events, note=f"{note}; an event left unsaid counts as wrong"),
        mean_of("event right, share of those said", reported, note=note),
        mean_of("built told from filled, filled in from dried, share", true_values, note=note),
    ]


def _without_ponds(bench: Bench) -> list[Figure]:
    """Real pairs of settlements and fields in which nobody sees a pond: what is said to have happened is false."""
    claimed: list[float] = []
    unsaid: list[float] = []
    for item in bench.items():
        event = bench.call(
            before=bench.folder / item["before"], after=bench.folder / item["after"], target="pond"
        ).pond.event
        claimed.append(float(event not in ("none", None)))
        unsaid.append(float(event is None))
    seen = "no pond to be seen by eye; looked at while the test was made, so not unseen"
    return [
        mean_of("pond event claimed where there is no pond, share", claimed, higher_is_better=False, note=seen),
        mean_of("pond event left unsaid where there is no pond, share", unsaid, higher_is_better=False, note=seen),
    ]


def _arrays(scene: "Scene", infrared: bool) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.float32] | None]]:
    names = ("before", "after")
    if not infrared:
        return [cast(NDArray[np.uint8], scene.images[name]) for name in names], [None, None]
    colours: list[NDArray[np.uint8]] = []
    nir: list[NDArray[np.float32] | None] = []
    for name in names:
        bands = scene.images[f"{name}_bands"].astype(np.float32)
        scaled = bands * (255 / float(np.percentile(bands[:3], 99.9)))
        colours.append(np.clip(scaled[[2, 1, 0]], 0, 255).round().astype(np.uint8).transpose(1, 2, 0))
        nir.append(scaled[3])
    return colours, nir


def _save_photos(bench: Bench, scene: "Scene", number: int) -> dict[str, Path]:
    pictures = zip(("before", "after"), _arrays(scene, False)[0], strict=True)
    return {name: bench.picture(f"pond_{number}_{name}.png", pixels) for name, pixels in pictures}


def _save_bands(bench: Bench, scene: "Scene", number: int) -> dict[str, Path]:
    gsd_m, roles = cast(float, scene.sidecar["gsd_m"]), cast("list[str]", scene.sidecar["bands"])
    return {
        name: bench.raster(f"pond_{number}_{name}.tif", scene.images[f"{name}_bands"], gsd_m, roles=roles)
        for name in ("before", "after")
    }


POND_STUDIES = (
    Study("detect_change", "drawn pairs of ponds", _colours, needs_folder=False),
    Study("detect_change", "drawn pairs of ponds with infrared", _with_infrared, needs_folder=False),
    Study("detect_change", "levir_cd", _without_ponds),
    Study("detect_change", "dsifn_cd", _without_ponds),
)
"""For the studies of detect_change."""


_GOAL = 0.40
_LEVIR_M = 0.5
"""Ground sampling distance at which the LEVIR-CD data are published (Chen and Shi 2020)."""

Mask = NDArray[np.bool_]
Scene = Callable[[dict[str, Any]], str]
Built = Callable[[NDArray[np.uint8], NDArray[np.uint8], Mask], Mask]


@dataclass(frozen=True, eq=False)
class _Pair:
    name: str
    scene: str
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    valid: Mask
    truth: Mask


def _of_levir(bench: Bench) -> list[Figure]:
    grid = [
        RoofRule(blue=blue, half_width_m=half, lasting=lasting)
        for blue in (0.5, 0.75, 1.0, 1.5)
        for half in (3.5, 4.5, 5.5)
        for lasting in (0.3, 0.4, 0.5)
    ]

    def by(rule: RoofRule, pair: _Pair, gains_only: bool) -> Mask:
        built = built_change(pair.before, pair.after, pair.valid, _LEVIR_M, gains_only=gains_only, roofs=rule)
        return built.gained | built.lost

    # test_2_0000_0512 is a part of the scene test_2.
    return _figures(bench, lambda item: str(item["id"]).rsplit("_", 2)[0], _LEVIR_M, grid, by)


def _of_dsifn(bench: Bench) -> list[Figure]:
    grid = [
        TextureRule(sigma_px=sigma, contrast=contrast, rise=rise, rise_both=both)
        for sigma in (6.0, 9.0, 12.0)
        for contrast in (3.0, 4.0, 5.0)
        for rise, both in ((0.05, 0.2), (0.1, 0.4), (0.2, 0.6))
    ]

    def by(rule: TextureRule, pair: _Pair, gains_only: bool) -> Mask:
        built = built_change(pair.before, pair.after, pair.valid, None, gains_only=gains_only, texture=rule)
        return built.gained | built.lost

    return _figures(bench, lambda _: "one city", None, grid, by)


def _figures(
    bench: Bench,
    scene: Scene,
    gsd_m: float | None,
    grid: Sequence[Any],
    by: Callable[[Any, _Pair, bool], Mask],
) -> list[Figure]:
    pairs = [_read(bench.folder, item, scene(item)) for item in bench.items()]
    scenes = tuple(pair.scene for pair in pairs)
    figures: list[Figure] = []
    for target in ("farmland", "any"):
        results = [
            bench.call(
                before=bench.folder / item["before"], after=bench.folder / item["after"], target=target, gsd_m=gsd_m
            )
            for item in bench.items()
        ]
        masks = [_changed(bench.scratch, number, result) for number, result in _numbered(bench, results)]
        figures += _of_masks(f"{target}, as shipped", pairs, masks, scenes, "its constants were chosen on these pairs")
        truths = [100.0 * float(pair.truth.mean()) for pair in pairs]
        errors = [abs(result.change_pct - truth) for result, truth in zip(results, truths, strict=True)]
        figures.append(mean_of(f"{target}, as shipped: changed area, mean absolute error, points", errors,
                               clusters=scenes, higher_is_better=False))  # fmt: skip
        answers = [result.changed for result in results]
        wrong = sum(answer is (truth == 0) for answer, truth in zip(answers, truths, strict=True))
        figures.append(ratio_of(f"{target}, as shipped: said whether anything changed, share of pairs",
                                [answer is not None for answer in answers], [1] * len(answers), clusters=scenes,
                                note=f"{wrong} of the answers wrong"))  # fmt: skip
        held_out = _two_fold(pairs, grid, by, gains_only=target == "farmland")
        alone = len(set(scenes)) > 1
        note = "constants chosen on " + ("the scenes of the other fold" if alone else "other tiles of the same city")
        figures += _of_masks(f"{target}, two-fold", pairs, held_out, scenes, note, goal=_GOAL)
    for method in ("cva", "irmad", "pca_kmeans"):
        results = [
            bench.call(before=bench.folder / item["before"], after=bench.folder / item["after"], method=method)
            for item in bench.items()
        ]
        masks = [_changed(bench.scratch, number, result) for number, result in _numbered(bench, results)]
        figures += _of_masks(method, pairs, masks, scenes, "nothing chosen")[:1]
    everything = [np.ones_like(pair.truth) for pair in pairs]
    figures += _of_masks("calling everything changed", pairs, everything, scenes, "what any method must beat")[:1]
    return figures


def _read(folder: Path, item: dict[str, Any], scene: str) -> _Pair:
    before, after = (read_image(folder / item[date]).pixels for date in ("before", "after"))
    truth = read_labels(folder / item["mask"]).classes > 0
    valid = np.ones(truth.shape, np.bool_)
    shift = shift_between(before, after, valid)
    if shift.is_worth_moving:
        after, valid = shift_back(after, valid, shift)
    return _Pair(str(item["id"]), scene, before, after, valid, truth)


def _numbered(bench: Bench, results: Sequence[Any]) -> Iterable[tuple[int, Any]]:
    """The last results with the numbers of their calls, by which their artifacts are kept."""
    return enumerate(results, start=len(bench.call_ms) - len(results))


def _changed(scratch: Path, number: int, result: Any) -> Mask:
    return np.isin(read_labels(scratch / f"call-{number}" / result.mask.name).classes, (GAINED, LOST, CHANGED))


def _two_fold(
    pairs: Sequence[_Pair], grid: Sequence[Any], by: Callable[[Any, _Pair, bool], Mask], *, gains_only: bool
) -> list[Mask]:
    """Each pair by the constants that do best, pooled, on the scenes of the other fold."""
    units = [pair.scene if len({other.scene for other in pairs}) > 1 else pair.name for pair in pairs]
    keys = [sha256(unit.encode()).hexdigest() for unit in units]
    folds = fold_of(keys)
    masks_by_rule = [[by(rule, pair, gains_only) for pair in pairs] for rule in grid]
    best: dict[int, int] = {}
    for fold in (0, 1):
        others = [place for place, key in enumerate(keys) if folds[key] != fold]
        best[fold] = max(
            range(len(grid)),
            key=lambda rule: _f1([masks_by_rule[rule][k] for k in others], [pairs[k].truth for k in others]),
        )
    return [masks_by_rule[best[folds[key]]][place] for place, key in enumerate(keys)]


def _f1(found: Sequence[Mask], truth: Sequence[Mask]) -> float:
    hits = sum(int((mine & true).sum()) for mine, true in zip(found, truth, strict=True))
    return 2 * hits / max(1, sum(int(mine.sum()) + int(true.sum()) for mine, true in zip(found, truth, strict=True)))


def _of_masks(
    what: str,
    pairs: Sequence[_Pair],
    found: Sequence[Mask],
    scenes: tuple[str, ...],
    note: str,
    goal: float | None = None,
) -> list[Figure]:
    truths = [pair.truth for pair in pairs]
    hits = [int((mine & true).sum()) for mine, true in zip(found, truths, strict=True)]
    each = ", ".join(
        f"{pair.name} {_f1([mine], [pair.truth]):.2f}"
        if pair.truth.any()
        else f"{pair.name} {100 * mine.mean():.1f} % false"
        for pair, mine in zip(pairs, found, strict=True)
    )
    sizes = [int(mine.sum()) for mine in found]
    there = [int(true.sum()) for true in truths]
    union = [mine + true - both for mine, true, both in zip(sizes, there, hits, strict=True)]
    return [
        f1_of(f"{what}: F1 of changed pixels, pooled", hits, sizes, there, clusters=scenes, goal=goal,
              note=f"{note}; per pair: {each}"),
        ratio_of(f"{what}: IoU of changed pixels, pooled", hits, union, clusters=scenes, note=note),
    ]  # fmt: skip


def _of_ndvi(bench: Bench) -> list[Figure]:
    """Neighbouring dates: the tool's counts against the arrays subtracted here; the class raster against itself."""
    from agrotools.vision.rasters import open_raster

    items = sorted(bench.items(), key=lambda item: str(item["id"]))
    apart: list[float] = []
    for first, second in pairwise(items):
        paths = bench.folder / first["ndvi"], bench.folder / second["ndvi"]
        values: list[NDArray[np.float32]] = []
        for path in paths:
            with open_raster(path) as source:
                values.append(source.read([1])[0])
        difference = values[1] - values[0]
        result = bench.call(before=paths[0], after=paths[1], target="vegetation", bands={"NDVI": 1}, threshold=0.2)
        gain, loss = int((difference > 0.2).sum()), int((difference < -0.2).sum())
        apart.append(abs(result.gain_px - gain) + abs(result.loss_px - loss))
    classes = bench.folder / items[0]["lulc"]
    same = bench.call(before=classes, after=classes, method="mask_diff")
    return [
        mean_of("NDVI gain and loss between neighbouring dates, mean error, px", apart, goal=0,
                clusters=("one patch of land",) * len(apart), higher_is_better=False),
        mean_of("class raster against itself, changed px", [same.change_px], goal=0, higher_is_better=False),
    ]  # fmt: skip


def _of_drawn_labels(bench: Bench) -> list[Figure]:
    """Random label rasters with a known matrix, and half of them given on another grid."""
    wrong: list[float] = []
    for seed in range(10):
        draw = np.random.default_rng(seed)
        shape = (int(draw.integers(40, 120)), int(draw.integers(40, 120)))
        before, after = (draw.integers(0, 5, shape).astype(np.uint8) for _ in range(2))
        # Every other second raster is finer by two: brought onto the first grid, it is the same one again.
        fine = 1 + seed % 2
        finer = after.repeat(fine, 0).repeat(fine, 1)
        first = bench.raster(f"before-{seed}.tif", before, 10)
        second = bench.raster(f"after-{seed}.tif", finer, 10 / fine)
        result = bench.call(before=first, after=second, label_map={f"c{k}": [k] for k in range(5)})
        true = np.bincount(before.ravel().astype(int) * 5 + after.ravel(), minlength=25).reshape(5, 5)
        names = [result.transition_matrix.classes.index(f"c{k}") for k in range(5)]
        wrong.append(float(np.abs(np.array(result.transition_matrix.px)[np.ix_(names, names)] - true).sum()))
    return [mean_of("cells of the transition matrix, mean error, px", wrong, goal=0, higher_is_better=False)]


STUDIES = (
    Study("detect_change", "levir_cd", _of_levir),
    Study("detect_change", "dsifn_cd", _of_dsifn),
    Study("detect_change", "s2_ndvi", _of_ndvi),
    Study("detect_change", "label rasters drawn here", _of_drawn_labels, needs_folder=False),
    *POND_STUDIES,
)
