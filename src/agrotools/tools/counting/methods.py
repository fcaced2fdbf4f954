"""Methods that count objects in a picture without a large model, all with the same type of result.

Round spots of similar size are maxima of a scale-normalised Laplacian over position and size (Lindeberg 1998), which is
approximated by the difference of two Gaussians (Marr and Hildreth 1980).
"""

import math
from dataclasses import replace
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from agrotools.tools.counting.fruit_net import MOST_OTHERS, UNSURE, find_fruit, load_fruit_net
from agrotools.tools.counting.result import CountedObjects, Floats, FruitName, no_objects
from agrotools.vision.colours import lab_of
from agrotools.vision.strangeness import FLAG, strangeness
from agrotools.vision.vegetation import disc, otsu_threshold

_LEAST_CONTRAST = 12.0
_CROWN_M = 5.0
_CROWN_RANGE = (0.6, 1.5)
_BLOB_RANGE = (0.7, 1.4)
_SMALLEST_BLOB_PX = 6.0
_PALE = 26.0
DEFAULT_SCORE = 0.3
"""Default of the tool's ``score_min``."""
_WEAK_F1 = 0.6
_HIGHLIGHT_SHARE = 0.002
_GAP = 0.015
"""Width of gaps between parts of one plant that are closed, as a share of the plant's width."""
_MERGED = 1.7
"""Area of a component, in typical plants, above which it may consist of several touching plants."""
_SURE, _SURE_GIVEN = 0.25, 0.6
"""Share of the width of a typical plant, estimated or given, from which an object has the full score."""


def crowns_in_colours(pixels: NDArray[np.uint8], gsd_m: float | None, expected_size_px: float | None) -> CountedObjects:
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
        size_px = typical_size_px(values, largest)
        size, note = size_px or largest / 4, "from the texture of the picture"
        flags.append("size_guessed")
    size = min(max(size, 3.0), largest)
    limits = (max(3.0, _CROWN_RANGE[0] * size), max(3.0, _CROWN_RANGE[1] * size))
    blobs = find_blobs(values, limits, least_strength=0.5 + 0.1 * float(values.std()))
    note = f"spots of {limits[0]:.0f} to {limits[1]:.0f} px that are green and bright; size {note}"
    return _round_components(*blobs, pixels.shape, (note,), tuple(flags))


def round_spots(pixels: NDArray[np.uint8], expected_size_px: float | None) -> CountedObjects:
    """Detect round objects of any colour that differ from the background (the median colour)."""
    lab = lab_of(pixels)
    background = np.median(lab.reshape(-1, 3)[:: max(1, lab.size // 3_000_000)], axis=0).astype(np.float32)
    values = np.asarray(np.minimum(np.sqrt(((lab - background) ** 2).sum(axis=2)), 60), np.float32)
    if expected_size_px is not None:
        limits = (_BLOB_RANGE[0] * expected_size_px, _BLOB_RANGE[1] * expected_size_px)
        flags: tuple[str, ...] = ()
    else:
        limits = (_SMALLEST_BLOB_PX, max(_SMALLEST_BLOB_PX, min(pixels.shape[:2]) / 6))
        flags = ("size_guessed",)
    limits = (max(2.0, limits[0]), max(2.0, limits[1]))
    blobs = find_blobs(values, limits, least_strength=5.0)
    note = f"round spots of {limits[0]:.0f} to {limits[1]:.0f} px that differ from the background by colour"
    return _round_components(*blobs, pixels.shape, (note,), flags)


def plants_on_soil(mask: NDArray[np.bool_], expected_size_px: float | None) -> CountedObjects:
    """Count components of a vegetation mask, gaps closed; ``expected_size_px`` splits those much larger."""
    parts = _components(mask, 0)
    if not len(parts[0]):
        return no_objects()
    areas = parts[0][:, cv2.CC_STAT_AREA]
    ordered = np.sort(areas).astype(np.float64)
    by_area = ordered[np.searchsorted(np.cumsum(ordered), ordered.sum() / 2)]  # specks have little weight
    typical = expected_size_px**2 * math.pi / 4 if expected_size_px else float(by_area)
    width = 2 * math.sqrt(typical / math.pi)
    gap = round(_GAP * width)
    stats, middles, labels = _components(mask, gap) if gap else parts
    areas = stats[:, cv2.CC_STAT_AREA]
    flags: list[str] = []
    merged = areas > _MERGED * typical
    boxes, centres, sizes = stats[:, :4].astype(np.float64), middles + 0.5, 2 * np.sqrt(areas / math.pi)
    boxes[:, 2:] += boxes[:, :2]
    if merged.any() and expected_size_px:
        extra = [_split_touching(labels, int(number), stats[number], width) for number in np.flatnonzero(merged)]
        centres = np.concatenate([centres[~merged], *(part[0] for part in extra)])
        boxes = np.concatenate([boxes[~merged], *(part[1] for part in extra)])
        sizes = np.concatenate([sizes[~merged], *(part[2] for part in extra)])
    elif merged.any():
        flags.append("touching_plants_possible")
    scores = np.minimum(1.0, sizes / ((_SURE_GIVEN if expected_size_px else _SURE) * width))
    order = np.lexsort((centres[:, 0], centres[:, 1], -scores))
    note = f"single plants are about {width:.0f} px wide; gaps of {2 * gap} px closed"
    return CountedObjects(boxes[order], centres[order], sizes[order], scores[order], notes=(note,), flags=tuple(flags))


def fruit_by_net(
    pixels: NDArray[np.uint8], fruits: tuple[FruitName, ...], expected_size_px: float | None
) -> CountedObjects:
    """Detect fruit with the shipped net; scores are rescaled so that 0.3 minimises the error of counts."""
    net = load_fruit_net()
    detections, scales, others = find_fruit(net, pixels, fruits, expected_size_px)
    least = np.array([net.info.counts[name].threshold for name in net.info.classes])
    scores = _rescale_scores(DEFAULT_SCORE, detections.scores, least[detections.classes])
    notes = [f"found by the net {net.info.name}, trained on orchard photographs and one greenhouse of tomatoes"]
    flags: list[str] = []
    if len(scales) > 1:
        flags.append("size_guessed")
    if any(net.info.figures[name].f1 < _WEAK_F1 for name in fruits):
        flags.append("weak_detector")
    unlike = strangeness(pixels, "fruit").is_strange
    mistaken = others > MOST_OTHERS and bool((scores >= DEFAULT_SCORE).any())
    calibrated = net.info.counts[fruits[0]] if len(fruits) == 1 else None
    interval_of = None
    if unlike or mistaken:
        flags.append(FLAG)
    elif calibrated is not None and calibrated.spread is not None:
        low, high = _rescale_scores(DEFAULT_SCORE, np.array(UNSURE), np.array(calibrated.threshold)).tolist()

        def of_count(count: int, found: Floats) -> tuple[float, float] | None:
            return net.count_interval(fruits[0], count, int(((found >= low) & (found < high)).sum()))

        interval_of = of_count
    else:
        flags.append("ranking_only")
    objects = replace(detections, scores=scores, interval_of=interval_of, notes=tuple(notes), flags=tuple(flags))
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
    stats, _, labels = _components(likely, 0)
    is_fruit = np.zeros(len(stats) + 1, np.bool_)
    is_fruit[np.unique(labels[sure])] = True
    is_fruit[0] = False
    whole = _fill_holes(is_fruit[labels], round(_HIGHLIGHT_SHARE * labels.size))
    mask = cv2.morphologyEx(whole.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    distance = cv2.distanceTransform(mask, cv2.DIST_L2, 5)
    radii = distance[distance > 2]
    notes = ("fruit is what differs from its surroundings by colour, towards red or orange",)
    weak = ("pale_fruit_possible", "low_reliability_fruit_colour")
    if not radii.size:
        return replace(no_objects(), notes=notes, flags=weak)
    width = expected_size_px or 2 * float(np.percentile(radii, 95))
    smooth = np.asarray(cv2.GaussianBlur(distance, (0, 0), max(1.0, 0.12 * width)), np.float32)
    centres = _peaks(smooth, max(1, round(0.3 * width)), distance > 0.2 * width)
    places = np.round(centres).astype(np.intp)
    diameters = 2 * distance[places[:, 1], places[:, 0]].astype(np.float64)
    strength = channel[places[:, 1], places[:, 0]].astype(np.float64) - around
    scores = np.clip(strength / 40, 0, 1) * _roundness(np.asarray(mask, np.uint8), centres, diameters)
    scores *= np.minimum(1, diameters / (0.6 * width))
    flags = weak if not strength.size or float(np.median(strength)) < _PALE else weak[1:]
    order = np.lexsort((centres[:, 0], centres[:, 1], -scores))
    return _round_components(centres[order] + 0.5, diameters[order], scores[order], pixels.shape, notes, flags)


def _fill_holes(mask: NDArray[np.bool_], largest_px: int) -> NDArray[np.bool_]:
    """Fill holes of at most ``largest_px`` pixels in a mask, because highlights on a fruit have no colour."""
    stats, _, labels = _components(~mask, 0)
    hole = np.concatenate([[False], stats[:, 4] <= largest_px])
    return mask | hole[labels]


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
    for number, ((x, y), diameter) in enumerate(zip(centres.tolist(), diameters.tolist(), strict=True)):
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
    notes: tuple[str, ...],
    flags: tuple[str, ...],
) -> CountedObjects:
    half = diameters[:, None] / 2
    boxes = np.concatenate([centres - half, centres + half], axis=1)
    boxes = np.clip(boxes, 0, [shape[1], shape[0], shape[1], shape[0]])
    return CountedObjects(boxes, centres, diameters, scores, round_marks=True, notes=notes, flags=flags)


def _components(mask: NDArray[np.bool_], gap: int) -> tuple[NDArray[np.int32], Floats, NDArray[np.int32]]:
    """Return statistics, centres and labels (from 1) of connected components after gaps of this width are closed."""
    closed = mask.astype(np.uint8)
    if gap:
        # The area beyond the edge is empty, so that closing does not depend on the crop.
        closed = cv2.morphologyEx(np.pad(closed, gap), cv2.MORPH_CLOSE, disc(gap))[gap:-gap, gap:-gap]
        closed = np.ascontiguousarray(closed)
    _, labels, stats, middles = cv2.connectedComponentsWithStats(closed, connectivity=8)
    return np.asarray(stats[1:], np.int32), np.asarray(middles[1:], np.float64), np.asarray(labels, np.int32)


def _split_touching(
    labels: NDArray[np.int32], number: int, stat: NDArray[np.int32], width: float
) -> tuple[Floats, Floats, Floats]:
    """Return the centres, boxes and diameters of the plants in one component: peaks of the distance to its edge."""
    left, top, across, down = (int(part) for part in stat[:4])
    piece = np.pad((labels[top : top + down, left : left + across] == number + 1).astype(np.uint8), 1)
    distance = cv2.GaussianBlur(cv2.distanceTransform(piece, cv2.DIST_L2, 5), (0, 0), max(0.5, 0.1 * width))
    centres = _peaks(np.asarray(distance, np.float32), max(1, round(0.35 * width)), distance > 0.15 * width)
    if not len(centres):
        centres = np.array([[across / 2 + 0.5, down / 2 + 0.5]])
    centres = centres + np.array([left - 0.5, top - 0.5])
    # Every plant gets an equal share of the area, since the border between plants is not visible.
    diameter = 2 * math.sqrt(float(stat[4]) / len(centres) / math.pi)
    half = np.array([diameter / 2, diameter / 2])
    boxes = np.concatenate([centres - half, centres + half], axis=1)
    boxes = np.clip(boxes, [left, top, left, top], [left + across, top + down, left + across, top + down])
    return centres, boxes, np.full(len(centres), diameter)


Values = NDArray[np.float32]

_SIZE_STEP = 1.25
"""Ratio between successive sizes."""
_RATIO = 1.26
_FINEST_PX = 5.0
"""Approximate width, pixels, to which the smallest spots are shrunk; finer detail is ignored."""
_OVERLAP = 0.65
"""Distance of two spots, as a share of the sum of their radii, below which only the stronger is kept."""
_REFERENCE = 90


class Blobs(NamedTuple):
    """Detected spots, strongest first.

    ``centres``: float64 (n, 2), x and y, pixels. ``diameters``: float64 (n,), pixels. ``scores``: float64 (n,),
    contrast divided by that of a strong spot of the picture (90th percentile), at most 1.
    """

    centres: Floats
    diameters: Floats
    scores: Floats


def find_blobs(values: Values, diameters_px: tuple[float, float], *, least_strength: float) -> Blobs:
    """Detect spots of these diameters (least, largest, pixels) that are brighter than their surroundings by at least
    ``least_strength``, in units of ``values``; weaker ones are noise."""
    smallest, largest = diameters_px
    shrink = min(1.0, _FINEST_PX / smallest)
    height, width = values.shape
    size = (max(1, round(width * shrink)), max(1, round(height * shrink)))
    small = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float32) if shrink < 1 else values
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
    return Blobs(centres[order], diameters[order], np.minimum(1.0, strengths / reference))


def _response(values: Values, diameter: float) -> Values:
    """Return the filter response, which is about the contrast of a disc of that diameter."""
    sigma = max(0.5, diameter / (2 * math.sqrt(2)))
    inner = cv2.GaussianBlur(values, (0, 0), sigma / math.sqrt(_RATIO), borderType=cv2.BORDER_REFLECT_101)
    outer = cv2.GaussianBlur(values, (0, 0), sigma * math.sqrt(_RATIO), borderType=cv2.BORDER_REFLECT_101)
    # A disc of radius sigma * sqrt(2) gives 2/e of its contrast times the logarithm of the ratio.
    return np.asarray((inner - outer) * np.float32(math.e / (2 * math.log(_RATIO))), np.float32)


def _drop_overlapping_spots(centres: NDArray[np.float64], diameters: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask of the spots to keep; the input must be sorted strongest first."""
    keep = np.ones(len(centres), np.bool_)
    if len(centres) < 2:
        return keep
    tree = KDTree(centres)
    widest = float(diameters.max())
    for number in range(len(centres)):
        if not keep[number]:
            continue
        for other in tree.query_ball_point(centres[number], _OVERLAP * (diameters[number] + widest) / 2):
            near = _OVERLAP * (diameters[number] + diameters[other]) / 2
            if other > number and math.dist(centres[number], centres[other]) < near:
                keep[other] = False
    return keep


def typical_size_px(values: Values, largest: float) -> float | None:
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
