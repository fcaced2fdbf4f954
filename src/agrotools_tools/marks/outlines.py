"""Outline of a drawn mark: the simple shape that fits the hole inside it, and the stroke around the hole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

Points = NDArray[np.float64]
"""(points, 2), x and y in pixels; integers are the centres of pixels."""

_NEAR_PX = 1.6
"""Largest distance from an outline, pixels, at which a point is one of it."""
_INSIDE, _OUTSIDE = 9, 18
"""Width of the band inspected inside and outside an outline, pixels."""
_FEW_CORNERS = 12
"""Most corners of a polygon; an outline with more is none."""
LEAST_COVERED = 0.85
"""Least share of an outline in the colour of the stroke."""
SAME_COLOUR = 70
"""Largest difference of any channel from the colour of the stroke, 0 to 255, for a point to count as covered by it."""
_SIDE_PURITY = 70.0
"""Least purity of the palest side of a box whose sides are judged one by one; lines of 2 px in JPEG files keep 72."""
_SIDE_UNEVEN = (10.0, 30.0)
"""Largest unevenness along the sides of such a box, each against its own colour (median and 85th percentile)."""
_SIDE_LIGHTNESS = 12.0
"""Largest difference of lightness between the sides of such a box, 0 to 255: JPEG files keep it at full resolution."""
_LIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in the lightness that JPEG files store (ITU-R BT.601)."""
_PLAINER = {"box": 0.1, "ellipse": 0.06, "polygon": 0.0}


@dataclass(frozen=True, eq=False)
class Outline:
    """Simple shape.

    ``points``: points along it, about a pixel or more apart. ``normals``: their outward normals. ``side``: number of
    the side of each point. ``vertices``: corners, clockwise as seen; for an ellipse the centre, the half axes and
    (rotation, 0). ``support``: share of the shape that fits, 0 to 1.
    """

    shape: Literal["box", "ellipse", "polygon"]
    points: Points
    normals: Points
    side: NDArray[np.int64]
    vertices: Points
    support: float


@dataclass(frozen=True, eq=False)
class Stroke:
    """Line along an outline.

    ``rgb``: colour. ``covered``: share of the outline in this colour. ``two_sided``: share with another colour on both
    sides. ``unevenness``: variation of the colour along the stroke, median and 85th percentile, 0 to 255.
    ``edge_scatter_px``: deviation of its two edges from the expected position, 70th percentile. ``contrast``:
    difference to the surroundings, 0 to 255. ``middle``: corners of its centre line (points for an ellipse).
    ``reach``: distance from the centre line to the edges at the left, top, right and bottom, pixels.
    ``has_even_sides``: True for a box whose sides are even lines of the ink, equally light, each for itself.
    """

    rgb: tuple[float, float, float]
    covered: float
    two_sided: float
    unevenness: tuple[float, float]
    edge_scatter_px: float
    width_px: float
    length_px: float
    contrast: float
    middle: Points
    reach: NDArray[np.float64]
    score: float
    has_even_sides: bool


def fit_outlines(hole: NDArray[np.int32]) -> list[Outline]:
    """Fit shapes to a hole's outline (points, 2), best first; a simpler shape may fit slightly worse."""
    points = hole.astype(np.float64)
    candidates = [
        outline
        for outline in (_box(points), _ellipse(points), _polygon(hole))
        if outline is not None
    ]
    return sorted(candidates, key=lambda outline: -outline.support - _PLAINER[outline.shape])


def _box(points: Points) -> Outline | None:
    edges: list[float] = []
    for axis in (0, 1):
        values = points[:, axis].astype(int)
        low = int(values.min())
        counts = np.bincount(values - low)
        # Two neighbouring columns are summed, because a blurred edge alternates between them.
        pairs = counts + np.append(counts[1:], 0)
        half = len(counts) // 2
        first = int(np.argmax(pairs[: max(1, half)]))
        last = half + int(np.argmax(pairs[half:]))
        edges += [low + first + counts[first + 1 : first + 2].sum() / max(1, pairs[first]),
                  low + last + counts[last + 1 : last + 2].sum() / max(1, pairs[last])]  # fmt: skip
    x0, x1, y0, y1 = edges
    if x1 - x0 < 4 or y1 - y0 < 4:
        return None
    corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    support = _coverage(points, corners)
    return _outline_through("box", corners, support) if support >= 0.75 else None


def _ellipse(points: Points) -> Outline | None:
    fitted = _fit_ellipse(points)
    for _ in range(2):
        if fitted is None:
            return None
        distance = np.abs(_to_ellipse(points, *fitted))
        fitted = _fit_ellipse(points[distance < max(_NEAR_PX, np.quantile(distance, 0.6))])
    if fitted is None:
        return None
    x, y, a, b, angle = fitted
    perimeter = np.pi * (3 * (a + b) - np.sqrt((3 * a + b) * (a + 3 * b)))
    t = np.linspace(0, 2 * np.pi, int(np.clip(perimeter, 48, 360)), endpoint=False)
    around, out = _on_ellipse(x, y, a, b, angle, t)
    near = points[np.abs(_to_ellipse(points, *fitted)) <= _NEAR_PX]
    seen = np.zeros(36, bool)
    seen[
        ((np.arctan2(near[:, 1] - y, near[:, 0] - x) + np.pi) / (2 * np.pi) * 36).astype(int) % 36
    ] = True
    support = min(float(seen.mean()), len(near) / len(points) + 0.15)
    if support < 0.75:
        return None
    vertices = np.array([[x, y], [a, b], [angle, 0]])
    return Outline("ellipse", around, out, np.zeros(len(around), np.int64), vertices, support)


def _fit_ellipse(points: Points) -> tuple[float, float, float, float, float] | None:
    """Fit an ellipse (Fitzgibbon et al. 1999): centre, half axes and rotation (radians), or None."""
    if len(points) < 20:
        return None
    (x, y), (d1, d2), turn = cv2.fitEllipseDirect(points.astype(np.float32))
    a, b = d1 / 2, d2 / 2
    if not (np.isfinite([x, y, a, b]).all() and min(a, b) >= 3 and max(a, b) < 1e5):
        return None
    return float(x), float(y), float(a), float(b), float(np.radians(turn))


def _to_ellipse(
    points: Points, x: float, y: float, a: float, b: float, angle: float
) -> NDArray[np.float64]:
    """Return the approximate distance to an ellipse, negative inside."""
    u = (points[:, 0] - x) * np.cos(angle) + (points[:, 1] - y) * np.sin(angle)
    v = -(points[:, 0] - x) * np.sin(angle) + (points[:, 1] - y) * np.cos(angle)
    value = (u / a) ** 2 + (v / b) ** 2
    slope = 2 * np.sqrt((u / a**2) ** 2 + (v / b**2) ** 2)
    return (value - 1) / np.maximum(slope, 1e-9)


def _on_ellipse(
    x: float, y: float, a: float, b: float, angle: float, t: NDArray[np.float64]
) -> tuple[Points, Points]:
    u, v = a * np.cos(t), b * np.sin(t)
    nu, nv = np.cos(t) / a, np.sin(t) / b
    length = np.hypot(nu, nv)
    c, s = np.cos(angle), np.sin(angle)
    points = np.column_stack([x + u * c - v * s, y + u * s + v * c])
    return points, np.column_stack([(nu * c - nv * s) / length, (nu * s + nv * c) / length])


def _polygon(hole: NDArray[np.int32]) -> Outline | None:
    perimeter = cv2.arcLength(hole, True)
    rough = cv2.approxPolyDP(hole, max(2.0, 0.012 * perimeter), True)[:, 0, :]
    if not 3 <= len(rough) <= _FEW_CORNERS:
        return None
    points = hole.astype(np.float64)
    corners = _straighten(points, rough.astype(np.float64))
    support = _coverage(points, corners)
    return _outline_through("polygon", corners, support) if support >= 0.75 else None


def _straighten(points: Points, rough: Points) -> Points:
    """Return the intersections of lines fitted to the sides, because the hole's outline is blunt at its corners."""
    lines: list[tuple[Points, Points]] = []
    for start, along, length in sides_of(rough):
        offset = points - start
        t = offset @ along
        d = offset @ np.array([-along[1], along[0]])
        near = points[(t > 0.12 * length) & (t < 0.88 * length) & (np.abs(d) < 2.5)]
        if len(near) < 4:
            lines.append((start, along))
            continue
        centre = near.mean(axis=0)
        direction = np.linalg.svd(near - centre, full_matrices=False)[2][0]
        lines.append((centre, direction if direction @ along > 0 else -direction))
    corners = rough.copy()
    for k in range(len(rough)):
        met = _intersection(lines[k - 1], lines[k])
        if met is not None and np.hypot(*(met - rough[k])) < 40:
            corners[k] = met
    return corners


def sides_of(corners: Points) -> Iterator[tuple[Points, Points, float]]:
    """Yield the start, the direction and the length of each side of a polygon."""
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        length = max(float(np.hypot(*(end - start))), 1e-9)
        yield start, (end - start) / length, length


def _intersection(first: tuple[Points, Points], second: tuple[Points, Points]) -> Points | None:
    (p, u), (q, v) = first, second
    across = u[0] * v[1] - u[1] * v[0]
    if abs(across) < 0.05:
        return None
    gap = q - p
    return p + u * ((gap[0] * v[1] - gap[1] * v[0]) / across)


def _coverage(points: Points, corners: Points) -> float:
    """Return the smaller of two shares: of the outline near the points, and of the points near the outline."""
    near = np.zeros(len(points), bool)
    covered = total = 0.0
    for start, along, length in sides_of(corners):
        offset = points - start
        t = offset @ along
        close = (
            (np.abs(offset @ np.array([-along[1], along[0]])) <= _NEAR_PX)
            & (t >= -2)
            & (t <= length + 2)
        )
        near |= close
        steps = max(1, int(length / 3))
        seen = np.zeros(steps, bool)
        seen[np.clip(t[close] / length * steps, 0, steps - 1).astype(int)] = True
        covered += length * float(seen.mean())
        total += length
    return min(covered / max(total, 1e-9), float(near.mean()) + 0.15)


def _outline_through(shape: Literal["box", "polygon"], corners: Points, support: float) -> Outline:
    """Build the outline through the given corners, clockwise as seen (y down)."""
    turned = np.roll(corners, -1, axis=0)
    if np.sum(corners[:, 0] * turned[:, 1] - turned[:, 0] * corners[:, 1]) < 0:
        corners = corners[::-1]
        turned = np.roll(corners, -1, axis=0)
    points: list[Points] = []
    normals: list[Points] = []
    sides: list[int] = []
    perimeter = float(np.hypot(*(turned - corners).T).sum())
    step = max(1.0, perimeter / 400)
    for number, (start, along, length) in enumerate(sides_of(corners)):
        if length < 1e-6:
            continue
        # The corners themselves are omitted, because two strokes meet there.
        t = np.linspace(
            min(2.5, 0.2 * length), length - min(2.5, 0.2 * length), max(2, int(length / step))
        )
        points.append(start + t[:, None] * along)
        normals.append(np.repeat([[along[1], -along[0]]], len(t), axis=0))
        sides += [number] * len(t)
    return Outline(shape, np.vstack(points), np.vstack(normals), np.array(sides), corners, support)


@dataclass(frozen=True)
class Ink:
    """Ink colour of marks, with limits that exclude other colours.

    ``least_purity``: least purity of the colour. ``most_uneven``: largest unevenness along the stroke (median and 85th
    percentile of the difference to its colour). All values are 0 to 255.
    """

    pure: tuple[int, int, int]
    least_purity: float
    most_uneven: tuple[float, float]


def stroke_along(outline: Outline, pixels: NDArray[np.uint8], ink: Ink) -> Stroke | None:
    """Measure the ink just outside a hole's outline; None if there is none."""
    every = max(1, len(outline.points) // 60)
    sides = outline.side if outline.shape == "box" else None
    some = None if sides is None else sides[::every]
    sample = _band(outline.points[::every], outline.normals[::every], pixels)
    if _ink_in(sample, ink, some, slack=1.3) is None:
        return None
    band = _band(outline.points, outline.normals, pixels)
    if (found := _ink_in(band, ink, sides)) is None:
        return None
    peak, rgb, covered, unevenness, has_even_sides = found
    inner_side = band[:, max(0, peak - 7) : max(1, peak - 3)].mean(axis=1)
    width, reach_in, reach_out = _extent(band, rgb, inner_side, peak)
    far = min(band.shape[1] - 2, int(np.ceil(reach_out)) + 3)
    outer_side = band[:, far : far + 3].mean(axis=1)
    near = max(0, int(np.floor(reach_in)) - 4)
    inner_side = band[:, near : near + 3].mean(axis=1)
    contrast_in = np.abs(inner_side - rgb).max(axis=1)
    x, y = (outline.points + outline.normals * (far - _INSIDE)).T
    off_picture = (x < 0) | (y < 0) | (x > pixels.shape[1] - 1) | (y > pixels.shape[0] - 1)
    contrast_out = np.where(off_picture, 255, np.abs(outer_side - rgb).max(axis=1))
    # A stroke of very uniform colour needs less contrast.
    other = float(np.clip(4 * unevenness[1], 15, 45))
    two_sided = float(((contrast_in > other) & (contrast_out > other)).mean())
    if width <= 0.5 or width > 14:
        return None
    middle, reach = _place_stroke(outline, band, rgb, peak, reach_in, reach_out)
    return Stroke(
        rgb=(float(rgb[0]), float(rgb[1]), float(rgb[2])),
        covered=covered,
        two_sided=two_sided,
        unevenness=unevenness,
        edge_scatter_px=_edge_scatter(outline, band, rgb, inner_side, peak),
        width_px=width,
        length_px=float(cv2.arcLength(middle.astype(np.float32), True)),
        contrast=float(np.median(np.minimum(contrast_in, contrast_out))),
        middle=middle,
        reach=reach,
        score=covered * (0.5 + 0.5 * two_sided) * (1 - min(unevenness[0], 100) / 200),
        has_even_sides=has_even_sides,
    )


def _edge_scatter(
    outline: Outline, band: Floats, rgb: Floats, inner_side: Floats, peak: int
) -> float:
    """Return the scatter of the edges of single rows around those of their side, 70th percentile, pixels."""
    off = _shares(band, rgb, inner_side, peak) < 0.5
    inner = np.where(off[:, :peak].any(axis=1), np.argmax(off[:, :peak][:, ::-1], axis=1), peak)
    outer = np.where(
        off[:, peak:].any(axis=1), np.argmax(off[:, peak:], axis=1), band.shape[1] - peak
    )
    away: list[NDArray[np.float64]] = []
    for edge in (inner, outer):
        expected = np.empty(len(edge))
        for number in np.unique(outline.side):
            rows = outline.side == number
            expected[rows] = np.median(edge[rows])
        away.append(np.abs(edge - expected))
    return float(np.quantile(np.concatenate(away), 0.7))


class _InkLine(NamedTuple):
    """Column of a band that is closest to the pure colour: its number, its colour, its share of the outline, its
    unevenness (median, 85th percentile), and whether the sides of a box are even, each for itself."""

    peak: int
    rgb: Floats
    covered: float
    unevenness: tuple[float, float]
    has_even_sides: bool


def _ink_in(
    band: Floats, ink: Ink, sides: NDArray[np.int64] | None, slack: float = 1.0
) -> _InkLine | None:
    """Return the line of ink in a band; None if that is no ink. ``sides``: number of the side of each point of a box,
    None for other shapes."""
    columns = band[:, _INSIDE - 1 : _INSIDE + 8]
    mean = np.abs(columns - np.array(ink.pure, np.float32)).sum(axis=(0, 2))
    peak = _INSIDE - 1 + int(np.argmin(mean))
    rgb = np.median(band[:, peak], axis=0)
    # The line may deviate from the outline by a pixel.
    near = band[:, peak - 1 : peak + 2]
    distance = np.abs(near - rgb).max(axis=2).min(axis=1)
    covered = float((distance <= SAME_COLOUR).mean())
    middling, uneven = np.quantile(distance.astype(np.float64), (0.5, 0.85)).tolist()
    is_ink = (
        covered >= LEAST_COVERED - 0.1 * (slack - 1)
        and middling <= slack * ink.most_uneven[0]
        and uneven <= slack * ink.most_uneven[1]
        and purity(rgb, ink.pure) >= ink.least_purity / slack
    )
    has_even_sides = sides is not None and _are_sides_even(near, sides, ink, slack)
    if not is_ink and not has_even_sides:
        return None
    return _InkLine(peak, rgb, covered, (middling, uneven), has_even_sides)


def _are_sides_even(near: Floats, sides: NDArray[np.int64], ink: Ink, slack: float) -> bool:
    """Return True if each side of a box is an even line of the ink, and all are equally light.

    JPEG files store colours at half resolution: a line of two pixels keeps its colour where it fills a pair of pixels
    and loses half of it where it fills halves of two, so its sides differ in colour, but neither along themselves nor
    in lightness. ``near``: (points, 3, 3), the line and its neighbours.
    """
    distances: list[Floats] = []
    lightness: list[float] = []
    for number in np.unique(sides):
        side = near[sides == number]
        rgb = np.median(side[:, 1], axis=0)
        if purity(rgb, ink.pure) < _SIDE_PURITY / slack:
            return False
        distances.append(np.abs(side - rgb).max(axis=2).min(axis=1))
        lightness.append(float(rgb @ _LIGHTNESS))
    middling, uneven = np.quantile(np.concatenate(distances), (0.5, 0.85)).tolist()
    is_even = middling <= slack * _SIDE_UNEVEN[0] and uneven <= slack * _SIDE_UNEVEN[1]
    return is_even and max(lightness) - min(lightness) <= slack * _SIDE_LIGHTNESS


def _band(points: Points, normals: Points, pixels: NDArray[np.uint8]) -> Floats:
    """Sample colours along the normals of an outline, float32 (points, from inside to outside, 3)."""
    steps = np.arange(-_INSIDE, _OUTSIDE + 1)
    x = (points[:, :1] + normals[:, :1] * steps).astype(np.float32)
    y = (points[:, 1:] + normals[:, 1:] * steps).astype(np.float32)
    band = cv2.remap(pixels, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(band, np.float32)


def purity(rgb: Sequence[float] | Floats, pure: tuple[int, int, int]) -> float:
    """Return the amount of a pure colour in a colour, up to 255; 0 or less for other colours."""
    high = min(float(part) for part, full in zip(rgb, pure, strict=True) if full)
    low = max((float(part) for part, full in zip(rgb, pure, strict=True) if not full), default=0.0)
    return high - low


def _extent(band: Floats, rgb: Floats, inner_side: Floats, peak: int) -> tuple[float, float, float]:
    """Return the width of the stroke, and its inner and outer edge at half height as columns of the band."""
    share = _shares(band, rgb, inner_side, peak)
    profile = np.median(share, axis=0)
    top = float(profile[peak])
    if top < 0.3:
        return 0.0, float(peak), float(peak)
    inner, outer = _crossing(profile, peak, -1, top / 2), _crossing(profile, peak, 1, top / 2)
    return outer - inner, inner, outer


def _shares(band: Floats, rgb: Floats, inner_side: Floats, peak: int) -> Floats:
    """Return the share of stroke in each sample, 0 to 1.2, against the colours inside and outside of it."""
    count = band.shape[1]
    outer_side = band[:, min(count - 4, peak + 8) :].mean(axis=1)
    shares = np.empty(band.shape[:2], np.float32)
    for part, ground in ((slice(0, peak), inner_side), (slice(peak, count), outer_side)):
        line = rgb - ground
        square = np.maximum((line**2).sum(axis=1), 400.0)
        shares[:, part] = ((band[:, part] - ground[:, None]) * line[:, None]).sum(axis=2) / square[
            :, None
        ]
    return np.clip(shares, 0, 1.2)


def _crossing(profile: Floats, peak: int, step: int, level: float) -> float:
    k = peak
    while 0 <= k + step < len(profile):
        level_here, level_next = float(profile[k]), float(profile[k + step])
        if level_next < level:
            return k + step * (level_here - level) / max(level_here - level_next, 1e-6)
        k += step
    return float(k)


def _place_stroke(
    outline: Outline, band: Floats, rgb: Floats, peak: int, reach_in: float, reach_out: float
) -> tuple[Points, NDArray[np.float64]]:
    """Return the centre line of the stroke, and the distance to its edges at the left, top, right and bottom."""
    centre = (reach_in + reach_out) / 2 - _INSIDE
    half = (reach_out - reach_in) / 2
    if outline.shape == "ellipse":
        (x, y), (a, b), (angle, _) = outline.vertices
        t = np.linspace(0, 2 * np.pi, 96, endpoint=False)
        middle = _on_ellipse(x, y, a + centre, b + centre, angle, t)[0]
        return middle, np.full(4, half)
    corners = outline.vertices
    shifts: list[float] = []
    halves: list[float] = []
    inner_all = band[:, max(0, peak - 7) : max(1, peak - 3)].mean(axis=1)
    for number in range(len(corners)):
        rows = outline.side == number
        if np.count_nonzero(rows) >= 6:
            width, inner, outer = _extent(band[rows], rgb, inner_all[rows], peak)
            if 0.5 < width < 2.5 * (reach_out - reach_in):
                shifts.append((inner + outer) / 2 - _INSIDE)
                halves.append(width / 2)
                continue
        shifts.append(centre)
        halves.append(half)
    middle = _shift_sides(corners, shifts)
    if outline.shape != "box":
        return middle, np.full(4, half)
    # Corners of a box run clockwise from the top left, so the sides are top, right, bottom, left.
    top, right, bottom, left = halves
    return middle, np.array([left, top, right, bottom])


def _shift_sides(corners: Points, shifts: list[float]) -> Points:
    """Move each side of a polygon outwards by its own distance."""
    lines: list[tuple[Points, Points]] = []
    for (start, along, _), shift in zip(sides_of(corners), shifts, strict=True):
        lines.append((start + shift * np.array([along[1], -along[0]]), along))
    moved = corners.copy()
    for k in range(len(corners)):
        met = _intersection(lines[k - 1], lines[k])
        moved[k] = lines[k][0] if met is None else met
    return moved
