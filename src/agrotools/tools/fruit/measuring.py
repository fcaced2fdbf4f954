"""Single fruits in a picture with depth: where they are, how much of each is seen, how large each is.

A fruit is taken for a sphere. Its distance follows from the depth of each visible pixel, since a pixel near the outline
lies deeper than one in the middle. (Averaged over a whole visible face, the middle of a sphere lies a third of a
diameter behind it.) Its outline is completed where leaves hide it.

A sphere's outline is a circle only where the camera looks straight at it; elsewhere it is an ellipse, by some percent
at the edge of a wide-angle picture. The rays that touch a sphere, though, always make a cone: all of them are at one
angle from the ray to its middle. So circles are fitted to rays (unit vectors), where a cone is a plane through them,
and three points of the outline give it exactly. Random sampling after Fischler and Bolles 1981 (RANSAC); weighting of
the final fit after Beaton and Tukey 1974.
"""

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.tools.fruit.camera import Camera
from agrotools.vision import Box

Floats = NDArray[np.floating[Any]]

SECTORS = 36
"""Number of equal parts of the outline whose visibility is judged."""
_DRAWS = 400
_REFINEMENTS = 5
_MINIMUM_POINTS = 6
_MOST_POINTS = 90
"""More points of an outline than this are sampled for the search; the final fit uses all."""
_STARTS = 4
_NEAR = 0.05
"""Points within this share of the half angle of an outline count as on it: fruits are not quite round."""
_STEEP = 0.9
_SHORT_LIST = 32
"""Candidates that show most of an outline are looked at further."""
_OUTSIDE_WEIGHT = 1.5
_CONTRADICTED_WEIGHT = 1.0


@dataclass(frozen=True, eq=False)
class Cone:
    """The rays that touch a sphere. ``axis``: unit vector (3,) to its middle; ``half_angle``: radians."""

    axis: Floats
    half_angle: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for one round object, as rays from the camera.

    ``edge`` (n, 3): points of its visible outline, which may hold edges of leaves that hide it. ``inside`` (m, 3):
    points of its surface. ``against`` (k, 3) with ``against_weight`` (k,) in 0..1: points that are not it, weighted by
    how surely one would see it there if it reached so far (something behind it: 1; a leaf before it: 0).
    ``pixel``: angle of one pixel, radians.
    """

    edge: Floats
    inside: Floats
    against: Floats
    against_weight: Floats
    pixel: float


@dataclass(frozen=True, eq=False)
class RoundFit:
    """A fitted outline. ``arc_coverage``: share of the outline that is seen, 0..1; ``score``: higher is better."""

    cone: Cone
    arc_coverage: float
    score: float


def fit_round(evidence: Evidence, half_angles: tuple[float, float], near: Cone | None = None) -> RoundFit | None:
    """The round outline that explains the evidence best, or None where nothing does.

    Args:
        half_angles: smallest and largest half angle, radians, as far as distance and size allow.
        near: candidates are taken only with their middle inside this cone.
    """
    edge = evidence.edge
    if len(edge) < _MINIMUM_POINTS:
        return None
    draw = np.random.default_rng(0)
    if len(edge) > _MOST_POINTS:
        edge = edge[draw.choice(len(edge), _MOST_POINTS, replace=False)]
    picks = draw.integers(0, len(edge), (_DRAWS, 3))
    axes, angles = _cones_through(edge[picks])
    allowed = (angles >= half_angles[0]) & (angles <= half_angles[1])
    if near is not None:
        allowed &= axes @ near.axis >= np.cos(near.half_angle)
    axes, angles = axes[allowed], angles[allowed]
    if not len(angles):
        return None
    thinned = replace(evidence, edge=edge)
    promising = np.argsort(-_visible_share(thinned, axes, angles), kind="stable")[:_SHORT_LIST]
    axes, angles = axes[promising], angles[promising]
    scores = _scores(thinned, axes, angles)
    starts = np.argsort(-scores, kind="stable")[:_STARTS]
    cones = [_refine_cone(thinned, Cone(axes[place], float(angles[place])), half_angles) for place in starts]
    again = _scores(evidence, np.stack([cone.axis for cone in cones]), np.array([cone.half_angle for cone in cones]))
    return _judge_cone(evidence, _refine_cone(evidence, cones[int(np.argmax(again))], half_angles))


def visible_sectors(points: Floats, axis: Floats) -> NDArray[np.int64]:
    """Sector (of :data:`SECTORS`) around the axis in which each ray lies."""
    first, second = _across(axis)
    return _sector(np.arctan2(points @ second, points @ first))


def outline_points(cone: Cone, count: int = 72) -> Floats:
    """Rays along the outline, (count, 3)."""
    first, second = _across(cone.axis)
    turn = np.linspace(0, 2 * np.pi, count, endpoint=False)[:, None]
    return np.cos(cone.half_angle) * cone.axis + np.sin(cone.half_angle) * (
        np.cos(turn) * first + np.sin(turn) * second
    )


def angle_from(points: Floats, axis: Floats) -> Floats:
    """Angle between rays (..., 3) and an axis, radians."""
    return np.arccos(np.minimum(np.maximum(points @ axis, -1.0), 1.0))  # np.clip takes several times as long


def _cones_through(triples: Floats) -> tuple[Floats, Floats]:
    """Axis and half angle of the cone through each three rays (n, 3, 3)."""
    first, second, third = triples[:, 0], triples[:, 1], triples[:, 2]
    normal = np.cross(second - first, third - first)
    length = np.linalg.norm(normal, axis=1)
    sound = length > 1e-12
    normal = normal[sound] / length[sound, None]
    height = np.einsum("ij,ij->i", normal, first[sound])
    normal = np.where(height[:, None] < 0, -normal, normal)
    return normal, np.arccos(np.clip(np.abs(height), 0.0, 1.0))


def _tolerance(evidence: Evidence, angles: Floats) -> Floats:
    """Distance from the outline at which a point still counts as on it, radians."""
    return np.maximum(1.2 * evidence.pixel, _NEAR * angles)


def _scores(evidence: Evidence, axes: Floats, angles: Floats) -> Floats:
    """Share of the outline seen, less what lies outside, less what should not lie inside; for each cone."""
    tolerance = _tolerance(evidence, angles)
    larger, smaller = np.cos(angles + tolerance), np.cos(np.maximum(angles - tolerance, 0.0))
    within = evidence.inside @ axes.T
    outside = (within < larger).mean(axis=0) if len(within) else np.zeros(len(angles))
    contradicted = np.zeros(len(angles))
    if len(evidence.against):
        covered = evidence.against @ axes.T > smaller
        filled = (within > np.cos(angles)).sum(axis=0)
        contradicted = (evidence.against_weight @ covered) / np.maximum(covered.sum(axis=0) + filled, 1)
    return _visible_share(evidence, axes, angles) - _OUTSIDE_WEIGHT * outside - _CONTRADICTED_WEIGHT * contradicted


def _visible_share(evidence: Evidence, axes: Floats, angles: Floats) -> Floats:
    """Share of the sectors around each axis (k, 3) in which a point lies on the outline."""
    tolerance = _tolerance(evidence, angles)
    # Comparing cosines is comparing angles, without an arc cosine per point and cone.
    along = evidence.edge @ axes.T
    near = (along > np.cos(angles + tolerance)) & (along < np.cos(np.maximum(angles - tolerance, 0.0)))
    # The cross product of (0, 1, 0), or near it of (1, 0, 0), and each axis.
    x, y, z = axes.T
    zero = np.zeros_like(x)
    first = np.where((np.abs(y) < _STEEP)[:, None], np.stack([z, zero, -x], 1), np.stack([zero, -z, y], 1))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.stack(
        [y * first[:, 2] - z * first[:, 1], z * first[:, 0] - x * first[:, 2], x * first[:, 1] - y * first[:, 0]], 1
    )
    point, cone = np.nonzero(near)
    turn = np.arctan2((evidence.edge @ second.T)[point, cone], (evidence.edge @ first.T)[point, cone])
    seen = np.zeros((len(axes), SECTORS), np.bool_)
    seen[cone, _sector(turn)] = True
    return seen.mean(axis=1)


def _sector(turn: Floats) -> NDArray[np.int64]:
    return np.minimum(((turn / (2 * np.pi) + 0.5) * SECTORS).astype(np.int64), SECTORS - 1)


def _refine_cone(evidence: Evidence, cone: Cone, half_angles: tuple[float, float]) -> Cone:
    """Least squares over the points near the outline, each weighted by how near it is."""
    for _ in range(_REFINEMENTS):
        away = angle_from(evidence.edge, cone.axis) - cone.half_angle
        reach = 1.5 * float(_tolerance(evidence, np.array([cone.half_angle]))[0])
        weight = np.where(np.abs(away) < reach, (1 - (away / reach) ** 2) ** 2, 0.0)
        if np.count_nonzero(weight) < _MINIMUM_POINTS:
            break
        # Sectors with many points, as beside a ragged leaf, count no more than others.
        sectors = visible_sectors(evidence.edge, cone.axis)
        crowd = np.bincount(sectors, weight, SECTORS)
        weight = weight / np.maximum(crowd[sectors], 1e-9)
        rows = evidence.edge * weight[:, None]
        try:
            normal = np.linalg.solve(evidence.edge.T @ rows, rows.sum(axis=0))
        except np.linalg.LinAlgError:  # points on a straight line
            break
        length = float(np.linalg.norm(normal))
        if length <= 1:
            break
        angle = float(np.arccos(1 / length))
        if not half_angles[0] <= angle <= half_angles[1] or angle_from(normal / length, cone.axis) > cone.half_angle:
            break
        cone = Cone(normal / length, angle)
    return cone


def _judge_cone(evidence: Evidence, cone: Cone) -> RoundFit:
    away = angle_from(evidence.edge, cone.axis) - cone.half_angle
    near = np.abs(away) < _tolerance(evidence, np.array([cone.half_angle]))[0]
    score = float(_scores(evidence, cone.axis[None], np.array([cone.half_angle]))[0])
    coverage = len(np.unique(visible_sectors(evidence.edge[near], cone.axis))) / SECTORS
    return RoundFit(cone, coverage, score)


def _across(axis: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors across the axis and each other."""
    x, y, z = (float(part) for part in axis)
    first = np.array((z, 0.0, -x) if abs(y) < _STEEP else (0.0, -z, y))
    first /= np.sqrt(first @ first)
    second = (y * first[2] - z * first[1], z * first[0] - x * first[2], x * first[1] - y * first[0])
    return first, np.array(second)


Mask = NDArray[np.bool_]
Depth = NDArray[np.float32]

_BEFORE_MM = 15.0
"""By how much a surface must lie before another to be said to hide it: above the noise of depth cameras at 2 m."""
_BEHIND_MM = 45.0
"""Behind the visible surface of a fruit by more than this is no part of it."""
_BEYOND_BOX = 0.8
"""Certainty that a fruit does not reach beyond the box that was drawn around it."""
_STEP_MM = 8.0
"""A smaller step of depth across an edge (outwards) is no end of a fruit."""
_BESIDE_PX = 3
_GRID_POINTS = 150
_LEAST_DEPTHS = 12
_MIDDLE = 0.85
"""Pixels beyond this share of the half angle are not used for the distance: depth is unsure at edges."""


@dataclass(frozen=True, eq=False)
class Segment:
    """Pixels taken for one fruit. ``mask``: bool (rows, columns) of a cut-out; ``corner``: its x, y in the picture.

    ``drawn_box``: the box that somebody drew around the fruit, which does not reach beyond it.
    """

    mask: Mask
    corner: tuple[int, int]
    drawn_box: Box | None = None

    @property
    def area_px(self) -> int:
        return int(np.count_nonzero(self.mask))


@dataclass(frozen=True, eq=False)
class FruitMeasurement:
    """One fruit. ``distance_mm``: from the camera to its middle; ``depth_mm``: the same along the optical axis."""

    fit: RoundFit
    centre_px: tuple[float, float]
    radius_px: float
    distance_mm: float
    depth_mm: float
    diameter_mm: float
    visibility: float
    depth_share: float
    """share of its visible pixels with a depth; 1 where the distance was given"""

    @property
    def cone(self) -> Cone:
        return self.fit.cone


@dataclass(frozen=True, eq=False)
class View:
    """A picture as far as measuring needs it.

    ``fruit``: bool (rows, columns), all pixels of fruit. ``depth``: float32, millimetres, NaN where unknown; None where
    ``depth_mm``, one depth for all, was given instead.
    """

    camera: Camera
    fruit: Mask
    depth: Depth | None
    smooth: Depth | None
    depth_mm: float | None
    diameters_mm: tuple[float, float]


def smooth_depth(depth: Depth) -> Depth:
    """Depth without flying pixels: medians of 5 x 5, NaN where most of them are unknown."""
    filled = np.where(np.isfinite(depth), depth, np.float32(0)).astype(np.float32)
    middle = cv2.medianBlur(filled, 5)
    return np.where(middle > 0, middle, np.float32(np.nan)).astype(np.float32)


def surface_depth(view: View, segment: Segment) -> float | None:
    """Median depth of a segment without outliers (beyond 2 MAD), millimetres; None where too few are known."""
    if view.depth is None:
        return view.depth_mm
    values = _cut(view.depth, segment)[segment.mask]
    values = values[np.isfinite(values)]
    if len(values) < _LEAST_DEPTHS:
        return None
    return float(np.median(drop_outliers(values)))


def drop_outliers(values: NDArray[np.floating], cut: float = 2.0) -> NDArray[np.floating]:
    """Values within ``cut`` scaled median absolute deviations of their median."""
    middle = np.median(values)
    spread = 1.4826 * np.median(np.abs(values - middle))
    return values[np.abs(values - middle) <= cut * max(float(spread), 1e-6)]


def measure(
    view: View,
    segment: Segment,
    *,
    near: Cone | None = None,
    sides_px: tuple[float, float] | None = None,
) -> FruitMeasurement | None:
    """Fit a sphere to a segment; None where it has no depth, no round outline, or no size that a fruit may have.

    Args:
        near: its middle lies inside this cone.
        sides_px: smallest and largest radius, pixels, beside what the sizes of fruits allow.
    """
    surface = surface_depth(view, segment)
    if surface is None or segment.area_px < 4:
        return None
    smallest, largest = _half_angles(view, surface)
    if sides_px is not None:
        smallest = max(smallest, float(np.arctan(sides_px[0] / view.camera.focal_px)))
        largest = min(largest, float(np.arctan(sides_px[1] / view.camera.focal_px)))
    fit = fit_round(_evidence(view, segment, surface), (smallest, largest), near)
    if fit is None:
        return None
    return _measurement(view, segment, fit)


def _half_angles(view: View, surface: float) -> tuple[float, float]:
    """Half angles of the smallest and largest fruit whose surface is that far away; a fifth of slack on both sides."""
    smallest, largest = (size / (2 * (surface + size / 3)) for size in view.diameters_mm)
    return float(np.arcsin(min(0.8 * smallest, 0.7))), float(np.arcsin(min(1.2 * largest, 0.9)))


def _measurement(view: View, segment: Segment, fit: RoundFit) -> FruitMeasurement | None:
    cone, camera = fit.cone, view.camera
    known, share = _distance(view, segment, cone)
    if known is None:
        return None
    x, y = camera.project(cone.axis)
    diameter = 2 * known * float(np.sin(cone.half_angle))
    radius = camera.focal_px * float(np.tan(cone.half_angle)) / float(cone.axis[2])
    return FruitMeasurement(
        fit=fit,
        centre_px=(float(x), float(y)),
        radius_px=radius,
        distance_mm=known,
        depth_mm=known * float(cone.axis[2]),
        diameter_mm=diameter,
        visibility=_visibility(view, cone, radius),
        depth_share=share,
    )


def _distance(view: View, segment: Segment, cone: Cone) -> tuple[float | None, float]:
    """Distance to the middle of the sphere along its axis, and the share of visible pixels with a depth."""
    if view.depth is None:
        assert view.depth_mm is not None
        return view.depth_mm / float(cone.axis[2]), 1.0
    y, x = np.nonzero(segment.mask)
    rays = view.camera.rays(x + segment.corner[0] + 0.5, y + segment.corner[1] + 0.5)
    depth = _cut(view.depth, segment)[segment.mask]
    off = angle_from(rays, cone.axis)
    on = off < cone.half_angle
    usable = (off < _MIDDLE * cone.half_angle) & np.isfinite(depth)
    if np.count_nonzero(usable) < _LEAST_DEPTHS:
        usable = on & np.isfinite(depth)
    share = float(np.isfinite(depth[on]).mean()) if on.any() else 0.0
    if np.count_nonzero(usable) < _LEAST_DEPTHS:
        return None, share
    along = depth[usable] / rays[usable, 2]
    front = np.cos(off[usable]) - np.sqrt(np.maximum(np.sin(cone.half_angle) ** 2 - np.sin(off[usable]) ** 2, 0.0))
    return float(np.median(drop_outliers(along / front))), share


def _visibility(view: View, cone: Cone, radius: float) -> float:
    """Share of the outline's area that is fruit, 0..1, parts outside the picture counted as hidden."""
    x, y = view.camera.project(cone.axis)
    reach = 1.3 * radius + 1
    x0, y0, x1, y1 = int(x - reach), int(y - reach), int(x + reach) + 2, int(y + reach) + 2
    across, down = np.meshgrid(np.arange(x0, x1) + 0.5, np.arange(y0, y1) + 0.5)
    within = angle_from(view.camera.rays(across, down), cone.axis) < cone.half_angle
    height, width = view.fruit.shape
    inside = (across > 0) & (across < width) & (down > 0) & (down < height)
    seen = np.zeros(within.shape, np.bool_)
    seen[inside] = view.fruit[(down[inside]).astype(int), (across[inside]).astype(int)]
    return float((seen & within).sum() / max(int(within.sum()), 1))


def _evidence(view: View, segment: Segment, surface: float) -> Evidence:
    mask, (left, top) = segment.mask, segment.corner
    height, width = view.fruit.shape
    largest = view.diameters_mm[1] / 2 * view.camera.focal_px / max(surface, 1.0)
    margin = int(min(max(mask.shape) / 2 + 2, largest)) + 2
    x0, y0 = max(0, left - margin), max(0, top - margin)
    x1, y1 = min(width, left + mask.shape[1] + margin), min(height, top + mask.shape[0] + margin)
    part = np.zeros((y1 - y0, x1 - x0), np.bool_)
    part[top - y0 : top - y0 + mask.shape[0], left - x0 : left - x0 + mask.shape[1]] = mask
    doubt = _doubt(view, part, (x0, y0, x1, y1), surface)
    if segment.drawn_box is not None:
        inner = np.zeros_like(part)
        ax, ay, bx, by = segment.drawn_box
        inner[max(0, ay - y0) : max(0, by - y0), max(0, ax - x0) : max(0, bx - x0)] = True
        doubt[~inner & (doubt > 0)] = np.maximum(doubt[~inner & (doubt > 0)], _BEYOND_BOX)
    # Where two fruits of one colour meet, either may hide the other: no outline, unless the other is behind.
    beside = _others(view.fruit[y0:y1, x0:x1], part) & (doubt < 1)
    depth = None if view.smooth is None else view.smooth[y0:y1, x0:x1]
    x, y = _edges(part, (doubt == 0) | beside, depth, (x0, y0))
    step = max(1, int(np.sqrt(segment.area_px / _GRID_POINTS)))
    down, across = np.mgrid[step // 2 : part.shape[0] : step, step // 2 : part.shape[1] : step]
    across, down = across.ravel(), down.ravel()
    rays = view.camera.rays(across + x0 + 0.5, down + y0 + 0.5)
    on, weight = part[down, across], doubt[down, across]
    return Evidence(
        edge=view.camera.rays(x, y),
        inside=rays[on],
        against=rays[~on],
        against_weight=weight[~on],
        pixel=1 / view.camera.focal_px,
    )


def _doubt(view: View, part: Mask, box: Box, surface: float) -> Floats:
    """Certainty that the fruit does not cover each pixel outside it: 0 where something lies before it."""
    x0, y0, x1, y1 = box
    other = _others(view.fruit[y0:y1, x0:x1], part)
    if view.smooth is None:
        return np.where(other, 0.25, 0.5)
    depth = view.smooth[y0:y1, x0:x1]
    doubt = np.where(other, 0.3, 0.5)
    with np.errstate(invalid="ignore"):
        doubt[np.isfinite(depth)] = 0.3
        doubt[depth > surface + _BEHIND_MM] = 1.0
        doubt[depth < surface - _BEFORE_MM] = 0.0
    return doubt


def _others(fruit: Mask, part: Mask) -> Mask:
    """Pixels of other fruits, up to this one; the blurred rim of this one is none."""
    apart = cv2.morphologyEx((fruit & ~part).astype(np.uint8), cv2.MORPH_OPEN, np.ones((4, 4), np.uint8))
    return cv2.dilate(apart, np.ones((3, 3), np.uint8), iterations=2).astype(np.bool_) & ~part


def _edges(part: Mask, hidden: Mask, depth: Depth | None, corner: tuple[int, int]) -> tuple[Floats, Floats]:
    """Points of the outline, where a pixel of it and one that is not meet.

    Left out, if enough others remain: where something lies before it, and where depth goes on without a step, as at a
    leaf that lies on it or at a highlight. The edge of the picture is no outline, since nothing is beyond it.
    """
    points: list[Floats] = []
    trusted: list[Mask] = []
    for axis in (0, 1):
        y, x = np.nonzero(np.diff(part.astype(np.int8), axis=axis))
        points.append(np.column_stack([x + (0.5 if axis == 0 else 1.0), y + (1.0 if axis == 0 else 0.5)]))
        along = np.array((1, 0) if axis == 0 else (0, 1))
        first = np.column_stack([y, x])
        outwards = np.where(part[y, x], 1, -1)[:, None] * along
        inner = np.where(part[y, x][:, None], first, first + along)
        trust = ~hidden[tuple((inner + outwards).T)]
        if depth is not None:
            step = _at(depth, inner + _BESIDE_PX * outwards) - _at(depth, inner - (_BESIDE_PX - 1) * outwards)
            trust &= ~(step < _STEP_MM)
        trusted.append(trust)
    edge_points, trust = np.concatenate(points) + np.array(corner, float), np.concatenate(trusted)
    if np.count_nonzero(trust) >= max(12, 0.2 * len(edge_points)):
        edge_points = edge_points[trust]
    return edge_points[:, 0], edge_points[:, 1]


def _at(depth: Depth, places: NDArray[np.int64]) -> Depth:
    """Depth at rows and columns (n, 2), those outside moved to the edge."""
    y = np.clip(places[:, 0], 0, depth.shape[0] - 1)
    x = np.clip(places[:, 1], 0, depth.shape[1] - 1)
    return depth[y, x]


def _cut(values: Depth, segment: Segment) -> Depth:
    (x, y), (height, width) = segment.corner, segment.mask.shape
    return values[y : y + height, x : x + width]
