"""Methods that find the objects of one kind in a picture, all with the same type of result.

Round spots of similar size are maxima of a scale-normalised Laplacian over position and size (Lindeberg 1998), which is
approximated by the difference of two Gaussians (Marr and Hildreth 1980).

Apples, pears, cherries and tomatoes are found by the shipped net. ``data/nets/fruits.json`` describes it and
``data/nets/fruits.md`` is its model card. Both and the weights are written by ``training/train_fruit_net.py``. The net
was trained on orchard tiles at one scale, to which pictures are resized by the expected size of a fruit, if known.
Peaks of its heat maps are objects, with the distances to their four sides (objects as points: Zhou, Wang and
Kraehenbuehl 2019; boxes from every place: Liu et al. 2020, TTFNet). Large pictures are searched in overlapping tiles.
Each tile is responsible for its half of an overlap, so an object comes from the tile in which it is further from the
edge. Objects found in two tiles are merged by the overlap of their boxes.

Files that are missing or differ from the shipped ones raise a ``ToolError`` of the kind ``backend_unavailable``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat
from scipy.ndimage import binary_propagation
from scipy.spatial import KDTree

from agrotools_tools.counting.result import (
    CountedObjects,
    Floats,
    FruitName,
    join_objects,
    no_objects,
    objects_in_boxes,
)
from agrotools_tools.shipped import shipped_file
from agrotools_tools.vision.colours import lab_of
from agrotools_tools.vision.nets import DescribedNet, DescriptionPart, Graph, read_whole_net
from agrotools_tools.vision.strangeness import FLAG, picture_traits, strangeness
from agrotools_tools.vision.vegetation import disc, otsu_threshold, small_parts

Values = NDArray[np.float32]
_LEAST_CONTRAST = 12.0
"""Difference from the usual colour, in units of the channel of fruit colour, above which pixels set the threshold."""
_CROWN_M = 5.0
"""Width of a crown, metres, that is assumed if none is given."""
_CROWN_RANGE = (0.6, 1.5)
"""Smallest and largest crown that is searched for, relative to the expected width."""
_BLOB_RANGE = (0.7, 1.4)
"""Smallest and largest round spot that is searched for, relative to the expected width."""
_SMALLEST_BLOB_PX = 6.0
"""Smallest round spot that is searched for, pixels, if no size is expected."""
_PALE = 26.0
"""Median strength of fruits below which others may be too pale to be found, in units of the channel of fruit colour."""
DEFAULT_SCORE = 0.3
"""Default of the tool's ``score_min``."""
_WEAK_F1 = 0.6
"""F1 of the net on a kind of fruit below which its counts are flagged as weak."""
_HIGHLIGHT_SHARE = 0.002
"""Largest highlight on a fruit, as a share of the picture; such holes are filled."""
_GAP = 0.015
"""Width of gaps between parts of one plant that are closed, as a share of the plant's width."""
_MERGED = 1.7
"""Area of a component, in typical plants, above which it may consist of several touching plants."""
_LARGEST_PLANT = 0.4
"""Share of a picture in one connected part of the plants, above which they are no single plants on soil.

Of 134 photographs of peanut fields the largest part covers 0.33 of one, of 20 of carrots 0.13 and of 4 rosettes in pots
0.30; of single leaves that fill the picture mostly 0.4 to 1.
"""
_FAR_FROM_FIELDS, _NEARER_TO_LEAVES = 1.0, 2.0
"""Strangeness to fields over its threshold, and its distance to that to leaves, from which no field is seen.

Of pools, 117 of 120 leaves are beyond, 110 of 120 tiles of fruit on trees and 73 of 120 insects; 1 of 80 peanut fields
and 1 of 120 pictures of weeds.
"""
_SURE, _SURE_GIVEN = 0.25, 0.6
"""Share of the width of a typical plant, estimated or given, from which an object has the full score."""
_SIZE_STEP = 1.25
"""Ratio between successive sizes."""
_RATIO = 1.26
"""Ratio of the variances of the two Gaussians whose difference finds spots."""
_FINEST_PX = 5.0
"""Approximate width, pixels, to which the smallest spots are shrunk; finer detail is ignored."""
_OVERLAP = 0.65
"""Distance of two spots, as a share of the sum of their radii, below which only the stronger is kept."""
_REFERENCE = 90
"""Percentile of the strengths of spots that gives a score of 1."""
_MOST_PEAKS = 400
"""Number of peaks taken from one tile, strongest first."""
TILE_PX = 416
"""Side of a tile, pixels at the net's scale."""
OVERLAP_PX = 96
"""Overlap of tiles, pixels; larger than fruits at the net's scale."""
ORCHARD_SCALE = 416 / 640
"""Scale of pictures of unknown scale: that of the orchard tiles of 640 pixels, which were shrunk by it for training."""
LEAST_SIDE_PX = 576
"""Longest side, pixels, of a picture below which fruit is likely too small for the net, unless its size is given.

The net learnt from tiles of 640 pixels. Of apples and pears in ten tiles each, it finds 0.98 in the tiles as they are,
0.63 after they are shrunk to 500 pixels, 0.21 at 320 and none at 160.
"""
TYPICAL_PX: dict[FruitName, float] = {"apple": 36.0, "pear": 28.0, "cherry": 17.0, "tomato": 44.0}
"""Median side of a fruit's box in the training tiles, pixels."""
UNSURE, ADDED = (0.2, 0.4), 2
"""Scores of boxes that may be a fruit or not, and what is added to their number: the error of a count goes with it."""
MOST_OTHERS = 0.5
"""Share of fruit of other kinds above which the fruit asked for is likely mistaken for them: the majority."""
_MULTIPLE = 32
"""Sides of pictures for the net are multiples of this, pixels."""
_LEAST_KEPT = 0.1
"""Lowest score of a detection that is kept."""
_MOST_PX = 6_000_000
"""Largest number of pixels searched at the net's scale; larger pictures are searched at a coarser scale."""
_UNLIKE_ORCHARDS = (
    "unlike the pictures that the net learnt from: the count may be too low (fruit is missed) or too high (other"
    " things are taken for fruit)"
)
_HINT = "install agrotools again"
_WHAT = "the fruit net"


def crowns_in_colours(
    pixels: NDArray[np.uint8], gsd_m: float | None, expected_size_px: float | None
) -> CountedObjects:
    """Detect tree crowns as bright green spots of about the given size, else 5 m, else the size from the texture."""
    rgb = pixels.astype(np.float32)
    total = np.maximum(rgb.sum(axis=2), np.float32(1))
    green = np.clip((2 * rgb[..., 1] - rgb[..., 0] - rgb[..., 2]) / total, 0, 1)
    values = np.asarray(100 * green * cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY) / 255, np.float32)
    largest = max(pixels.shape[:2]) / 3
    flags = ["low_reliability_rgb_crowns"]
    if expected_size_px is not None:
        size, note = expected_size_px, "as given"
    elif gsd_m is not None:
        size, note = _CROWN_M / gsd_m, f"crowns taken as about {_CROWN_M:g} m wide"
    else:
        size_px = _typical_size_px(values, largest)
        size, note = size_px or largest / 4, "from the texture of the picture"
        flags.append("size_guessed")
    size = min(max(size, 3.0), largest)
    limits = (max(3.0, _CROWN_RANGE[0] * size), max(3.0, _CROWN_RANGE[1] * size))
    blobs = _find_blobs(values, limits, least_strength=0.5 + 0.1 * float(values.std()))
    note = f"spots of {limits[0]:.0f} to {limits[1]:.0f} px that are green and bright; size {note}"
    return _round_components(*blobs, pixels.shape, note, flags)


def round_spots(pixels: NDArray[np.uint8], expected_size_px: float | None) -> CountedObjects:
    """Detect round objects of any colour that differ from the background (the median colour)."""
    lab = lab_of(pixels)
    background = np.median(lab.reshape(-1, 3)[:: max(1, lab.size // 3_000_000)], axis=0).astype(
        np.float32
    )
    values = np.asarray(np.minimum(np.sqrt(((lab - background) ** 2).sum(axis=2)), 60), np.float32)
    low, high = _SMALLEST_BLOB_PX, max(_SMALLEST_BLOB_PX, min(pixels.shape[:2]) / 6)
    if expected_size_px is not None:
        low, high = _BLOB_RANGE[0] * expected_size_px, _BLOB_RANGE[1] * expected_size_px
    limits, flags = (max(2.0, low), max(2.0, high)), () if expected_size_px else ("size_guessed",)
    blobs = _find_blobs(values, limits, least_strength=5.0)
    note = f"round spots of {limits[0]:.0f} to {limits[1]:.0f} px that differ from the background by colour"
    return _round_components(*blobs, pixels.shape, note, flags)


def has_huge_part(mask: NDArray[np.bool_], valid: NDArray[np.bool_]) -> bool:
    """Return True if one connected part of a vegetation mask covers more of a picture than single plants do: it is a
    leaf from near by, or a closed stand."""
    stats = _components(mask, 0)[0]
    largest = int(stats[:, cv2.CC_STAT_AREA].max(initial=0))
    return largest > _LARGEST_PLANT * int(np.count_nonzero(valid))


def shows_no_field(photo: NDArray[np.uint8]) -> bool:
    """Return True if a photograph, uint8 (rows, columns, 3), is no picture of a field from above.

    It is far from photographs of fields, or nearer to single leaves than to them
    (:mod:`agrotools_tools.vision.strangeness`).
    """
    traits = picture_traits(photo)
    of_field, of_leaf = strangeness(traits, "field"), strangeness(traits, "leaf")
    from_fields = of_field.score - of_field.threshold
    from_leaves = of_leaf.score - of_leaf.threshold
    is_like_a_leaf = from_leaves <= 0 and from_fields - from_leaves > _NEARER_TO_LEAVES
    return from_fields > _FAR_FROM_FIELDS or is_like_a_leaf


def plants_on_soil(mask: NDArray[np.bool_], expected_size_px: float | None) -> CountedObjects:
    """Count components of a vegetation mask, gaps closed; ``expected_size_px`` splits those much larger."""
    parts = _components(mask, 0)
    if not len(parts[0]):
        return no_objects()
    areas = parts[0][:, cv2.CC_STAT_AREA]
    ordered = np.sort(areas).astype(np.float64)
    by_area = ordered[
        np.searchsorted(np.cumsum(ordered), ordered.sum() / 2)
    ]  # specks have little weight
    typical = expected_size_px**2 * math.pi / 4 if expected_size_px else float(by_area)
    width = 2 * math.sqrt(typical / math.pi)
    gap = round(_GAP * width)
    stats, middles, labels = _components(mask, gap) if gap else parts
    areas = stats[:, cv2.CC_STAT_AREA]
    merged = areas > _MERGED * typical
    boxes, centres, sizes = (
        stats[:, :4].astype(np.float64),
        middles + 0.5,
        2 * np.sqrt(areas / math.pi),
    )
    boxes[:, 2:] += boxes[:, :2]
    if merged.any() and expected_size_px:
        extra = [
            _split_touching(labels, int(number), stats[number], width)
            for number in np.flatnonzero(merged)
        ]
        centres = np.concatenate([centres[~merged], *(part[0] for part in extra)])
        boxes = np.concatenate([boxes[~merged], *(part[1] for part in extra)])
        sizes = np.concatenate([sizes[~merged], *(part[2] for part in extra)])
    flags = ("touching_plants_possible",) if merged.any() and not expected_size_px else ()
    scores = np.minimum(1.0, sizes / ((_SURE_GIVEN if expected_size_px else _SURE) * width))
    order = np.lexsort((centres[:, 0], centres[:, 1], -scores))
    note = f"single plants are about {width:.0f} px wide; gaps of {2 * gap} px closed"
    return CountedObjects(
        boxes[order], centres[order], sizes[order], scores[order], notes=(note,), flags=flags
    )


def fruit_by_net(
    pixels: NDArray[np.uint8], fruits: tuple[FruitName, ...], expected_size_px: float | None
) -> CountedObjects:
    """Detect fruit with the shipped net; scores are rescaled so that 0.3 minimises the error of counts."""
    net = load_fruit_net()
    detections, scales, others = find_fruit(net, pixels, fruits, expected_size_px)
    least = np.array([net.info.counts[name].threshold for name in net.info.classes])
    scores = _rescale_scores(DEFAULT_SCORE, detections.scores, least[detections.classes])
    note = (
        f"found by the net {net.info.name}, trained on orchard photographs and one greenhouse of tomatoes; fruit of"
        " rows behind does not count: people left it unmarked there"
    )
    flags: list[str] = []
    if len(scales) > 1:
        flags.append("size_guessed")
    if any(net.info.figures[name].f1 < _WEAK_F1 for name in fruits):
        flags.append("weak_detector")
    is_small = expected_size_px is None and max(pixels.shape[:2]) < LEAST_SIDE_PX
    if is_small:
        flags.append("low_resolution")
        note = (
            f"{note}; in a picture of under {LEAST_SIDE_PX} px fruit may be too small for it, and the count too low:"
            " give expected_size_px, or the picture at full size"
        )
    is_mistaken = others > MOST_OTHERS and bool((scores >= DEFAULT_SCORE).any())
    calibrated = net.info.counts[fruits[0]] if len(fruits) == 1 else None
    interval_of = None
    if is_mistaken or strangeness(pixels, "fruit").is_strange:
        flags.append(FLAG)
        note = f"{note}; {_UNLIKE_ORCHARDS}"
    elif is_small:
        pass
    elif calibrated is not None and calibrated.spread is not None:
        low, high = _rescale_scores(
            DEFAULT_SCORE, np.array(UNSURE), np.array(calibrated.threshold)
        ).tolist()

        def of_count(count: int, found: Floats) -> tuple[float, float] | None:
            return net.count_interval(
                fruits[0], count, int(((found >= low) & (found < high)).sum())
            )

        interval_of = of_count
    else:
        flags.append("ranking_only")
    objects = replace(
        detections, scores=scores, interval_of=interval_of, notes=(note,), flags=tuple(flags)
    )
    return objects.chosen(np.argsort(-scores, kind="stable"))


def _rescale_scores(place: float, scores: Floats, least: Floats) -> Floats:
    """Rescale scores piecewise linearly so that ``least`` becomes ``place`` and 0 and 1 are unchanged."""
    below = place * scores / np.maximum(least, 1e-9)
    above = place + (1 - place) * (scores - least) / np.maximum(1 - least, 1e-9)
    return np.where(scores < least, below, above)


def fruit_by_colour(
    pixels: NDArray[np.uint8], direction: tuple[float, float], expected_size_px: float | None
) -> CountedObjects:
    """Detect fruit that differs from its surroundings in a direction of (a*, b*); touching fruits are split at their
    necks."""
    lab = lab_of(pixels)
    along = np.float32(direction[0]) * lab[..., 1] + np.float32(direction[1]) * lab[..., 2]
    channel = np.asarray(cv2.GaussianBlur(along, (0, 0), 1.5), np.float32)
    around = float(np.median(channel))
    beyond = channel[channel > around + _LEAST_CONTRAST]
    cut = min(max(float(otsu_threshold(beyond)) - around, 18.0), 45.0) if beyond.size else 18.0
    sure, likely = channel > around + cut, channel > around + 0.6 * cut
    fruit = np.asarray(binary_propagation(sure, np.ones((3, 3)), mask=likely), np.bool_)
    # Small holes are highlights, which have no colour.
    whole = fruit | small_parts(~fruit, round(_HIGHLIGHT_SHARE * fruit.size) + 1)
    mask = cv2.morphologyEx(whole.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    distance = cv2.distanceTransform(mask, cv2.DIST_L2, 5)
    radii = distance[distance > 2]
    note = "fruit is what differs from its surroundings by colour, towards red or orange"
    weak = ("pale_fruit_possible", "low_reliability_fruit_colour")
    if not radii.size:
        return replace(no_objects(), notes=(note,), flags=weak)
    width = expected_size_px or 2 * float(np.percentile(radii, 95))
    smooth = np.asarray(cv2.GaussianBlur(distance, (0, 0), max(1.0, 0.12 * width)), np.float32)
    centres = _peaks(smooth, max(1, round(0.3 * width)), distance > 0.2 * width)
    places = np.round(centres).astype(np.intp)
    diameters = 2 * distance[places[:, 1], places[:, 0]].astype(np.float64)
    strength = channel[places[:, 1], places[:, 0]].astype(np.float64) - around
    scores = np.clip(strength / 40, 0, 1) * _roundness(
        np.asarray(mask, np.uint8), centres, diameters
    )
    scores *= np.minimum(1, diameters / (0.6 * width))
    flags = weak if not strength.size or float(np.median(strength)) < _PALE else weak[1:]
    order = np.lexsort((centres[:, 0], centres[:, 1], -scores))
    return _round_components(
        centres[order] + 0.5, diameters[order], scores[order], pixels.shape, note, flags
    )


def _peaks(values: NDArray[np.float32], reach: int, allowed: NDArray[np.bool_]) -> Floats:
    """Return the centres (n, 2), x, y, of the allowed pixels with nothing higher within ``reach`` pixels."""
    peaks = (values >= cv2.dilate(values, np.ones((2 * reach + 1,) * 2, np.uint8))) & allowed
    middles = cv2.connectedComponentsWithStats(peaks.astype(np.uint8), connectivity=8)[3]
    return np.asarray(middles, np.float64)[1:]


def _roundness(mask: NDArray[np.uint8], centres: Floats, diameters: Floats) -> Floats:
    """Return how free of the mask the ring around each circle is, 0 to 1: low along branches and trunks."""
    turns = np.linspace(0, 2 * math.pi, 48, endpoint=False)
    free = np.ones(len(centres))
    height, width = mask.shape
    for number, ((x, y), diameter) in enumerate(
        zip(centres.tolist(), diameters.tolist(), strict=True)
    ):
        reach = 0.75 * diameter + 1
        columns = np.clip(np.round(x + reach * np.cos(turns)), 0, width - 1).astype(np.intp)
        rows = np.clip(np.round(y + reach * np.sin(turns)), 0, height - 1).astype(np.intp)
        free[number] = 1 - mask[rows, columns].mean()
    return np.clip((free - 0.3) / 0.5, 0, 1)


def _round_components(
    centres: Floats,
    diameters: Floats,
    scores: Floats,
    shape: tuple[int, ...],
    note: str,
    flags: Sequence[str],
) -> CountedObjects:
    half = diameters[:, None] / 2
    boxes = np.clip(np.hstack([centres - half, centres + half]), 0, [shape[1], shape[0]] * 2)
    return CountedObjects(
        boxes, centres, diameters, scores, round_marks=True, notes=(note,), flags=tuple(flags)
    )


def _components(
    mask: NDArray[np.bool_], gap: int
) -> tuple[NDArray[np.int32], Floats, NDArray[np.int32]]:
    """Return statistics, centres and labels (from 1) of connected components after gaps of this width are closed."""
    closed = mask.astype(np.uint8)
    if gap:
        # The area beyond the edge is empty, so that closing does not depend on the crop.
        closed = cv2.morphologyEx(np.pad(closed, gap), cv2.MORPH_CLOSE, disc(gap))[
            gap:-gap, gap:-gap
        ]
        closed = np.ascontiguousarray(closed)
    _, labels, stats, middles = cv2.connectedComponentsWithStats(closed, connectivity=8)
    return (
        np.asarray(stats[1:], np.int32),
        np.asarray(middles[1:], np.float64),
        np.asarray(labels, np.int32),
    )


def _split_touching(
    labels: NDArray[np.int32], number: int, stat: NDArray[np.int32], width: float
) -> tuple[Floats, Floats, Floats]:
    """Return the centres, boxes and diameters of the plants in one component: peaks of the distance to its edge."""
    left, top, across, down = (int(part) for part in stat[:4])
    piece = np.pad(
        (labels[top : top + down, left : left + across] == number + 1).astype(np.uint8), 1
    )
    distance = cv2.GaussianBlur(
        cv2.distanceTransform(piece, cv2.DIST_L2, 5), (0, 0), max(0.5, 0.1 * width)
    )
    centres = _peaks(
        np.asarray(distance, np.float32), max(1, round(0.35 * width)), distance > 0.15 * width
    )
    if not len(centres):
        centres = np.array([[across / 2 + 0.5, down / 2 + 0.5]])
    centres = centres + np.array([left - 0.5, top - 0.5])
    # Every plant gets an equal share of the area, since the border between plants is not visible.
    diameter = 2 * math.sqrt(float(stat[4]) / len(centres) / math.pi)
    boxes = np.hstack([centres - diameter / 2, centres + diameter / 2])
    boxes = np.clip(
        boxes, [left, top, left, top], [left + across, top + down, left + across, top + down]
    )
    return centres, boxes, np.full(len(centres), diameter)


def _find_blobs(
    values: Values, diameters_px: tuple[float, float], *, least_strength: float
) -> tuple[Floats, Floats, Floats]:
    """Detect spots of these diameters (least, largest, pixels) that are brighter than their surroundings by at least
    ``least_strength``, in units of ``values``; weaker ones are noise. Return centres (n, 2), diameters (n,) and scores
    (n,), strongest first: contrast divided by that of a strong spot of the picture (90th percentile), at most 1."""
    smallest, largest = diameters_px
    shrink = min(1.0, _FINEST_PX / smallest)
    height, width = values.shape
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = (
        np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float32)
        if shrink < 1
        else values
    )
    scale_x, scale_y = width / small.shape[1], height / small.shape[0]
    shrink = 1 / math.sqrt(scale_x * scale_y)
    steps = math.ceil(math.log(largest / smallest) / math.log(_SIZE_STEP))
    sizes = np.geomspace(smallest, largest, steps + 1)
    responses = np.stack([_response(small, shrink * diameter) for diameter in sizes])
    peak = np.max([cv2.dilate(layer, np.ones((3, 3), np.uint8)) for layer in responses], axis=0)
    best = responses.argmax(axis=0)
    top = np.take_along_axis(responses, best[None], axis=0)[0]
    rows, columns = np.nonzero((top >= peak) & (top >= least_strength))
    strengths = top[rows, columns].astype(np.float64)
    diameters = sizes[best[rows, columns]]
    centres = np.column_stack([(columns + 0.5) * scale_x, (rows + 0.5) * scale_y])
    order = np.lexsort((centres[:, 0], centres[:, 1], -strengths))
    order = order[_drop_overlapping_spots(centres[order], diameters[order])]
    strengths = strengths[order]
    reference = float(np.percentile(strengths, _REFERENCE)) if strengths.size else 1.0
    return centres[order], diameters[order], np.minimum(1.0, strengths / reference)


def _response(values: Values, diameter: float) -> Values:
    """Return the filter response, which is about the contrast of a disc of that diameter."""
    sigma = max(0.5, diameter / (2 * math.sqrt(2)))
    inner = cv2.GaussianBlur(
        values, (0, 0), sigma / math.sqrt(_RATIO), borderType=cv2.BORDER_REFLECT_101
    )
    outer = cv2.GaussianBlur(
        values, (0, 0), sigma * math.sqrt(_RATIO), borderType=cv2.BORDER_REFLECT_101
    )
    # A disc of radius sigma * sqrt(2) gives 2/e of its contrast times the logarithm of the ratio.
    return np.asarray((inner - outer) * np.float32(math.e / (2 * math.log(_RATIO))), np.float32)


def _drop_overlapping_spots(
    centres: NDArray[np.float64], diameters: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return the mask of the spots to keep; the input must be sorted strongest first."""
    keep = np.ones(len(centres), np.bool_)
    if len(centres) < 2:
        return keep
    tree = KDTree(centres)
    widest = float(diameters.max())
    for number in range(len(centres)):
        if not keep[number]:
            continue
        for other in tree.query_ball_point(
            centres[number], _OVERLAP * (diameters[number] + widest) / 2
        ):
            near = _OVERLAP * (diameters[number] + diameters[other]) / 2
            if other > number and math.dist(centres[number], centres[other]) < near:
                keep[other] = False
    return keep


def _typical_size_px(values: Values, largest: float) -> float | None:
    """Estimate the typical diameter of spots in a picture from its autocorrelation; None without a minimum.

    The mean over directions has its first minimum at the shift that moves spots onto gaps, about their diameter.
    """
    height, width = values.shape
    shrink = min(1.0, 512 / max(height, width))
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float64)
    small = small - cv2.GaussianBlur(small, (0, 0), max(2.0, largest * shrink))
    spectrum = np.abs(np.fft.rfft2(small, [2 * side for side in small.shape])) ** 2
    correlation = np.fft.irfft2(spectrum)[: small.shape[0], : small.shape[1]]
    if correlation[0, 0] <= 0:
        return None
    y, x = np.mgrid[0 : small.shape[0], 0 : small.shape[1]]
    lags = np.round(np.hypot(x, y)).astype(np.intp)
    radial = np.bincount(lags.ravel(), correlation.ravel()) / np.bincount(lags.ravel())
    radial = radial / radial[0]
    limit = min(len(radial) - 1, math.ceil(largest * shrink))
    for lag in range(2, limit):
        if radial[lag] <= radial[lag - 1] and radial[lag] < radial[lag + 1]:
            return lag / shrink
    return None


def overlaps(one: Floats, two: Floats) -> Floats:
    """Return the intersection over union of boxes ``one`` (k, 4) and ``two`` (m, 4) as (k, m), 0 to 1."""
    low = np.maximum(one[:, None, :2], two[None, :, :2])
    high = np.minimum(one[:, None, 2:], two[None, :, 2:])
    joint = np.clip(high - low, 0, None).prod(axis=2)
    areas = [np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1) for boxes in (one, two)]
    return joint / np.maximum(areas[0][:, None] + areas[1][None, :] - joint, 1e-12)


def _drop_duplicates(detections: CountedObjects) -> CountedObjects:
    """Keep the best of boxes, sorted best first, that overlap by more than half (IoU), whatever their class: greedy
    non-maximum suppression, so a box that overlaps only removed boxes is kept."""
    keep = np.ones(len(detections), np.bool_)
    for place in range(len(detections)):
        if keep[place]:
            rest = np.flatnonzero(keep[place + 1 :]) + place + 1
            alike = overlaps(detections.boxes[place : place + 1], detections.boxes[rest])[0] > 0.5
            keep[rest[alike]] = False
    return detections.chosen(keep)


def boxes_of_maps(
    heat: NDArray[np.float32], distances: NDArray[np.float32], least: float, stride: int = 4
) -> CountedObjects:
    """Convert the maps of one picture to objects in its pixels, best first, without duplicates. ``heat``: (classes,
    rows, columns), zero except at peaks; ``distances``: (4, rows, columns), pixels from the middle of a cell of
    ``stride`` pixels to the left, top, right and bottom."""
    kinds, rows, columns = np.nonzero(heat >= least)
    scores = heat[kinds, rows, columns]
    order = np.argsort(-scores, kind="stable")[:_MOST_PEAKS]
    kinds, rows, columns, scores = kinds[order], rows[order], columns[order], scores[order]
    x, y = (columns + 0.5) * stride, (rows + 0.5) * stride
    left, top, right, bottom = distances[:, rows, columns].astype(np.float64)
    boxes: Floats = np.stack([x - left, y - top, x + right, y + bottom], axis=1)
    return _drop_duplicates(
        join_objects([objects_in_boxes(boxes, scores.astype(np.float64), kinds.astype(np.int64))])
    )


def _stretches(length: int, side: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Return the start and end of each tile along one axis, of equal length, at most ``side`` pixels, that overlap by
    at least ``overlap``; and the start and end of the part whose objects belong to it alone."""
    count = 1 if length <= side else -(-(length - overlap) // (side - overlap))
    starts = [round(number * max(0, length - side) / max(1, count - 1)) for number in range(count)]
    ends = [min(length, start + side) for start in starts]
    meet = [
        0,
        *((end + start) // 2 for end, start in zip(ends[:-1], starts[1:], strict=True)),
        length,
    ]
    return [(starts[k], ends[k], meet[k], meet[k + 1]) for k in range(count)]


def detect_in_tiles(
    pixels: NDArray[np.uint8],
    detect: Callable[[NDArray[np.uint8]], CountedObjects],
    *,
    scale: float,
    side: int,
    overlap: int,
) -> CountedObjects:
    """Detect all objects of a picture, in its pixels, in tiles of ``side`` pixels after it is resized by ``scale``.
    ``overlap``: at least the size of the largest object, or every tile cuts it."""
    height, width = pixels.shape[:2]
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    resized = (
        pixels
        if size == (width, height)
        else np.asarray(cv2.resize(pixels, size, interpolation=how), np.uint8)
    )
    parts: list[CountedObjects] = []
    across, down = (_stretches(length, side, overlap) for length in size)
    for (y0, y1, core_y0, core_y1), (x0, x1, core_x0, core_x1) in product(down, across):
        detections = detect(np.ascontiguousarray(resized[y0:y1, x0:x1])).scaled(1.0, x0, y0)
        # Boxes may extend beyond the picture; a centre outside it belongs to the nearest tile.
        inside = np.clip(detections.centres, 0, np.array(size) - 1e-6)
        parts.append(
            replace(detections, centres=inside).centred_in((core_x0, core_y0, core_x1, core_y1))
        )
    detections = _drop_duplicates(join_objects(parts))
    ratio = np.array([width / size[0], height / size[1]] * 2)
    boxes = np.clip(detections.boxes * ratio, 0, [width, height, width, height])
    return objects_in_boxes(boxes, detections.scores, detections.classes)


Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class CountCalibration(DescriptionPart):
    """Counts on photographs outside the training set, written by ``training/calibrate_fruit_counts.py``.

    ``threshold``: least score at which counts have no bias. ``spread``: half-width of the 90 % interval divided by the
    number of unsure boxes plus :data:`ADDED`; None if there are too few photographs, or it is so wide that it says
    little.
    """

    threshold: Share
    spread: Annotated[FiniteFloat, Field(ge=0)] | None


class BoxFigures(DescriptionPart):
    """Accuracy of boxes at IoU 0.5 on photographs outside the training set."""

    f1: Share


class FruitNetInfo(DescribedNet):
    """Description of the fruit net."""

    classes: tuple[FruitName, ...]
    stride: Annotated[int, Field(ge=1, le=32)]
    figures: dict[FruitName, BoxFigures]
    counts: dict[FruitName, CountCalibration]


class FruitNet(NamedTuple):
    info: FruitNetInfo
    graph: Graph

    def detect(self, pixels: NDArray[np.uint8]) -> CountedObjects:
        """Detect fruits of all kinds in a tile, uint8 (rows, columns, 3), at the net's scale."""
        height, width = pixels.shape[:2]
        rows, columns = (-(-side // _MULTIPLE) * _MULTIPLE for side in (height, width))
        image = np.zeros((1, 3, rows, columns), np.float32)
        image[0, :, :height, :width] = pixels.transpose(2, 0, 1) / np.float32(255)
        heat, distances = self.graph.run(["heat", "distances"], image)
        detections = boxes_of_maps(heat[0], distances[0], _LEAST_KEPT, self.info.stride)
        return detections.centred_in((-np.inf, -np.inf, width, height))

    def count_interval(
        self, fruit: FruitName, count: int, unsure: int
    ) -> tuple[float, float] | None:
        """Return the interval of about 90 % of true counts; None if the fruit has no calibrated one.

        ``unsure``: number of boxes with a score in :data:`UNSURE`.
        """
        spread = self.info.counts[fruit].spread
        if spread is None:
            return None
        low, high = whole_bounds(np.array(count), np.array(spread * (unsure + ADDED)))
        return float(low), float(high)


def whole_bounds(
    count: NDArray[np.number[Any]], half: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and greatest whole number, 0 or more, within ``half`` of the counts: fruits are whole."""
    margin = 1e-9
    return np.maximum(0.0, np.ceil(count - half - margin)) + 0.0, np.floor(count + half + margin)


def share_of_others(found: CountedObjects, asked: list[int]) -> float:
    """Return the share of fruit whose class is not asked for, by squared scores: sure boxes weigh more."""
    assert found.classes is not None
    weights = found.scores**2
    return float(weights[~np.isin(found.classes, asked)].sum() / max(float(weights.sum()), 1e-9))


@lru_cache(maxsize=1)
def load_fruit_net() -> FruitNet:
    return read_fruit_net(shipped_file("nets/fruits.json"))


def read_fruit_net(description: Path) -> FruitNet:
    """Read the net of a description; its weights are in the same folder."""
    return FruitNet(*read_whole_net(description, FruitNetInfo, what=_WHAT, hint=_HINT))


def find_fruit(
    net: FruitNet,
    pixels: NDArray[np.uint8],
    fruits: tuple[FruitName, ...],
    expected_size_px: float | None,
) -> tuple[CountedObjects, tuple[float, ...], float]:
    """Detect fruits of the given kinds in a picture of any size, with scores from 0.1; also return the scales
    searched and the share of fruit of other kinds. Without an expected size, pictures larger than an orchard tile
    are also searched at coarser scales, in steps of two, and the better of boxes found at two scales is kept."""
    longest, area = max(pixels.shape[:2]), pixels.shape[0] * pixels.shape[1]
    if expected_size_px is not None:
        scales = [sum(TYPICAL_PX[fruit] for fruit in fruits) / len(fruits) / expected_size_px]
    else:
        scales = [ORCHARD_SCALE]
        while scales[-1] * longest > 2 * TILE_PX:
            scales.append(scales[-1] / 2)
    most = math.sqrt(_MOST_PX / area)
    scales = sorted({min(scale, most) for scale in scales}, reverse=True)
    parts = [
        detect_in_tiles(pixels, net.detect, scale=scale, side=TILE_PX, overlap=OVERLAP_PX)
        for scale in scales
    ]
    detections = _drop_duplicates(join_objects(parts)) if len(parts) > 1 else parts[0]
    assert detections.classes is not None
    asked = [net.info.classes.index(fruit) for fruit in fruits]
    found = detections.chosen(np.isin(detections.classes, asked))
    return found, tuple(scales), share_of_others(detections, asked)
