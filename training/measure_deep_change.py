"""Measure deep change vectors, with the encoder of packs, on real pairs of two dates whose changes people have drawn.

Table of docs/accuracy.md, "detect_change".

    python training/measure_deep_change.py --snapshots DIR --published FILE

``DIR`` holds git directories of the repositories in ``change_pairs.toml``. The limits in this file were chosen on the
sources of its half ``develop``. Deep change vectors are differences of a net's inner features (Saha, Bovolo and
Bruzzone 2019, IEEE TGRS 57(6)). The net is the encoder of packs as it was published
(``build_backbone.py --out FILE``); nothing is trained.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from change_pairs import Pair, read_pairs, unchanged_tiles
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.scoring.statistics import exact_share_interval
from agrotools_tools import detect_change
from agrotools_tools.vision.vegetation import otsu_of_counts, small_parts

Plane = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

LAYERS = {
    8: "onnx_node!_blocks.4.sum",
    16: "onnx_node!_blocks.7.sum",
    17: "onnx_node!_blocks.10.sum",
    32: "onnx_node!_blocks.14.sum",
}
"""Ends of the encoder's stages by their stride; 17 is the second stage of stride 16. Those of stride 2 and 4 were left
out: on the half for development they rank pixels hardly better than colours do."""
SIDE_PX = 256
"""Longest side at which a picture is encoded; 448 was no better on the half for development."""
FIXED_LIMIT = 0.80
"""Distance from which a pixel counts as changed: the best mean IoU on the half for development."""
CLEAR_CONTRAST = 1.37
"""Least ratio of the median length of changed to unchanged vectors for a map: on the half for development, four of five
maps with it were right."""
CLEAR_ANGLE = 0.75
"""Least median distance of the marked pixels for a map: on the half for development, pictures against themselves,
shifted and brighter, have up to 0.67, and right maps have 0.80 and more."""
SPECK_SHARE = 0.001
"""Share of a picture below which a changed region is removed."""
RIGHT_IOU, RIGHT_UNCHANGED = 0.5, 0.01
"""Least IoU of a right map; largest share that a right map marks where no more than this changed."""
AT_MOST_TILES = 4
"""Tiles that a pair gives, so that a few large pairs do not decide."""


class Deep:
    """The encoder's inner features. OpenCV's classic engine gives them; its new one gives declared outputs alone."""

    def __init__(self, encoder: Path) -> None:
        self._net = cv2.dnn.readNetFromONNX(str(encoder), cv2.dnn.ENGINE_CLASSIC)

    def features(self, picture: NDArray[np.uint8]) -> dict[int, Plane]:
        factor = SIDE_PX / max(picture.shape[:2])
        rows, columns = (max(1, round(side * factor / 32)) * 32 for side in picture.shape[:2])
        kind = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
        resized = cv2.resize(picture, (columns, rows), interpolation=kind)
        image = resized.astype(np.float32).transpose(2, 0, 1)[None] / 255
        self._net.setInput(np.ascontiguousarray(image), "image")
        outputs = self._net.forward(list(LAYERS.values()))
        return {stride: np.array(each[0]) for stride, each in zip(LAYERS, outputs, strict=True)}


class Distances(NamedTuple):
    """How far the two dates differ, by pixel. ``colours``: each channel standardised by date. ``vectors``: lengths of
    the change vectors of three layers. ``layer``: the same of the best layer. ``angles``: 1 - cosine, three layers."""

    colours: Plane
    vectors: Plane
    layer: Plane
    angles: Plane


def distances(deep: Deep, pair: Pair) -> Distances:
    rows, columns = pair.changed.shape
    first, second = deep.features(pair.before), deep.features(pair.after)
    lengths: dict[int, Plane] = {}
    angles: dict[int, Plane] = {}
    for stride in LAYERS:
        a, b = _standardised(first[stride], second[stride])
        length = np.sqrt(((a - b) ** 2).mean(axis=0))
        product = (a * b).sum(axis=0)
        angle = 1 - product / (np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0) + 1e-6)
        lengths[stride], angles[stride] = (
            cv2.resize(each, (columns, rows), interpolation=cv2.INTER_LINEAR)
            for each in (length, angle)
        )
    colours = [_by_date(picture) for picture in (pair.before, pair.after)]
    apart = np.sqrt(((colours[0] - colours[1]) ** 2).mean(axis=-1))
    return Distances(
        colours=cv2.GaussianBlur(apart, (0, 0), max(rows, columns) / 64),
        vectors=(lengths[8] + lengths[16] + lengths[17]) / 3,
        layer=lengths[16],
        angles=(angles[16] + angles[17] + angles[32]) / 3,
    )


def _standardised(first: Plane, second: Plane) -> tuple[Plane, Plane]:
    """Standardise each channel over both dates, so that no channel decides by its size."""
    both = np.concatenate([first, second], axis=1)
    mean = both.mean(axis=(1, 2), keepdims=True)
    spread = both.std(axis=(1, 2), keepdims=True) + 1e-6
    return (first - mean) / spread, (second - mean) / spread


def _by_date(picture: NDArray[np.uint8]) -> Plane:
    values = picture.astype(np.float32)
    return (values - values.mean(axis=(0, 1))) / (values.std(axis=(0, 1)) + 1e-6)


def otsu(values: Plane) -> float:
    low, high = float(values.min()), float(values.max())
    counts, edges = np.histogram(values, 256, (low, high))
    return otsu_of_counts(counts, edges)


def above(values: Plane, limit: float) -> Mask:
    changed = values > limit
    changed[small_parts(changed, round(SPECK_SHARE * changed.size))] = False
    return changed


def clear_map(at: Distances) -> Mask | None:
    """Return the map of the best layer where changed vectors are clearly longer and point elsewhere, else None."""
    changed = above(at.layer, otsu(at.layer))
    if not changed.any() or changed.all():
        return None
    contrast = np.median(at.layer[changed]) / np.median(at.layer[~changed])
    is_clear = contrast >= CLEAR_CONTRAST and np.median(at.angles[changed]) >= CLEAR_ANGLE
    return changed if is_clear else None


METHODS: dict[str, Callable[[Distances], Mask | None]] = {
    "nothing changed": lambda at: np.zeros_like(at.colours, np.bool_),
    "everything changed": lambda at: np.ones_like(at.colours, np.bool_),
    "colours, Otsu": lambda at: above(at.colours, otsu(at.colours)),
    "three layers, Otsu": lambda at: above(at.vectors, otsu(at.vectors)),
    "best layer, Otsu": lambda at: above(at.layer, otsu(at.layer)),
    "best layer, Otsu, only where clear": clear_map,
    "angles, fixed limit": lambda at: above(at.angles, FIXED_LIMIT),
}


class Outcome(NamedTuple):
    """What a method made of a pair. ``kind``: changed, unchanged, or disturbed. Without a map the rest is None."""

    kind: str
    source: str
    iou: float | None = None
    f1: float | None = None
    area_error: float | None = None
    marked: float | None = None
    is_right: bool | None = None


def outcome(kind: str, pair: Pair, changed: Mask | None) -> Outcome:
    if changed is None:
        return Outcome(kind, pair.source)
    found, true = changed[pair.labelled], pair.changed[pair.labelled]
    both, either = int((found & true).sum()), int((found | true).sum())
    iou = both / either if either else 1.0
    marked, share = float(found.mean()), float(true.mean())
    is_right = iou >= RIGHT_IOU if kind == "changed" else marked <= RIGHT_UNCHANGED
    return Outcome(
        kind, pair.source, iou, 2 * iou / (1 + iou), 100 * abs(marked - share), marked, is_right
    )


def disturbed(pair: Pair) -> Pair:
    """Return the first date against itself: shifted by a hundredth of its width, brighter, and of other contrast."""
    step = max(1, round(0.01 * pair.changed.shape[1]))
    moved = np.roll(pair.before, (step, step), axis=(0, 1))
    bright = 255 * (moved / 255) ** 0.8 * np.array([1.0, 0.95, 0.85])
    never = np.zeros_like(pair.changed)
    after = bright.round().astype(np.uint8)
    return replace(pair, after=after, changed=never, labelled=np.ones_like(never))


def cases(pairs: Iterator[Pair]) -> Iterator[tuple[str, Pair]]:
    """Return each pair, its unchanged tiles, and its disturbed first date, each with its kind."""
    for pair in pairs:
        share = float(pair.changed[pair.labelled].mean())
        yield ("changed" if share > RIGHT_UNCHANGED else "unchanged"), pair
        tiles = list(unchanged_tiles(pair))
        for tile in tiles[:: max(1, -(-len(tiles) // AT_MOST_TILES))]:
            yield "unchanged", tile
        yield "disturbed", disturbed(pair)


def today(pair: Pair, folder: Path) -> bool:
    """Return whether the tool gives a map for the pair."""
    files = [folder / "before.png", folder / "after.png"]
    for file, picture in zip(files, (pair.before, pair.after), strict=True):
        cv2.imwrite(str(file), picture[..., ::-1])
    try:
        return detect_change(before=files[0], after=files[1], target="any").change_pct is not None
    except ToolError:
        return False


def _share(hits: int, n: int) -> str:
    if not n:
        return "-"
    low, high = exact_share_interval(hits, n)
    return f"{hits}/{n} ({100 * low:.0f} to {100 * high:.0f} %)"


def _median(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f}" if known else "-"


def print_table(half: str, rows: dict[str, list[Outcome]]) -> None:
    print(f"\n## {half}\n")
    print("| method | changed: map given | right of given | median IoU | median F1 | median area error, points "
          "| unchanged: map given | called changed | disturbed: called changed | wrong of all given |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for method, outcomes in rows.items():
        by_kind = {kind: [each for each in outcomes if each.kind == kind]
                   for kind in ("changed", "unchanged", "disturbed")}  # fmt: skip
        given = {kind: [each for each in group if each.marked is not None]
                 for kind, group in by_kind.items()}  # fmt: skip
        wrong = {kind: sum(not each.is_right for each in group) for kind, group in given.items()}
        changed = given["changed"]
        real = [*changed, *given["unchanged"]]
        print(
            f"| {method} | {len(changed)} of {len(by_kind['changed'])} "
            f"| {_share(len(changed) - wrong['changed'], len(changed))} "
            f"| {_median([each.iou for each in changed])} | {_median([each.f1 for each in changed])} "
            f"| {_median([each.area_error for each in changed])} "
            f"| {len(given['unchanged'])} of {len(by_kind['unchanged'])} "
            f"| {_share(wrong['unchanged'], len(by_kind['unchanged']))} "
            f"| {_share(wrong['disturbed'], len(by_kind['disturbed']))} "
            f"| {_share(wrong['changed'] + wrong['unchanged'], len(real))} |"
        )


def print_sources(rows: dict[str, list[Outcome]]) -> None:
    """Print right maps, maps, pairs that changed and the median IoU, by method and source."""
    for method, outcomes in rows.items():
        words: list[str] = []
        for source in dict.fromkeys(each.source for each in outcomes):
            group = [each for each in outcomes if each.source == source and each.kind == "changed"]
            given = [each for each in group if each.iou is not None]
            right = sum(bool(each.is_right) for each in given)
            overlap = _median([each.iou for each in given])
            words.append(f"{source} {right}/{len(given)} of {len(group)} ({overlap})")
        print(f"{method}: {'; '.join(words)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=Path, required=True)
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--half", choices=("develop", "report"), action="append")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp"))
    options = parser.parse_args()
    deep = Deep(options.published)
    pairs = list(read_pairs(options.snapshots))
    shares = [float(each.changed[each.labelled].mean()) for each in pairs if each.half == "develop"]
    mean_share = statistics.mean(shares)
    for half in options.half or ("develop", "report"):
        rows: dict[str, list[Outcome]] = {method: [] for method in METHODS}
        constant: list[float] = []
        maps_today = 0
        of_half = [pair for pair in pairs if pair.half == half]
        for kind, pair in cases(iter(of_half)):
            at = distances(deep, pair)
            for method, find in METHODS.items():
                rows[method].append(outcome(kind, pair, find(at)))
            if kind == "changed":
                share = float(pair.changed[pair.labelled].mean())
                constant.append(100 * abs(mean_share - share))
                maps_today += today(pair, options.scratch)
        print_table(half, rows)
        error = statistics.median(constant)
        print(f"\ndetect_change gives {maps_today} maps of {len(constant)} pairs that changed.")
        print(
            f"The mean share of the half develop ({100 * mean_share:.0f} %) errs by {error:.1f} points (median)."
        )
        print_sources(rows)


if __name__ == "__main__":
    main()
