"""Measurement of single fruits in a picture with depth: position, visibility and size.

A fruit is modelled as a sphere. Its distance follows from the depth of each visible pixel, because a pixel near the
outline is deeper than one in the middle. (Averaged over a fully visible face, the centre of a sphere is a third of a
diameter behind it.) Outlines hidden by leaves are completed.

The outline of a sphere is a circle only on the optical axis; elsewhere it is an ellipse, by some percent at the edge of
a wide-angle picture. But the rays tangent to a sphere always form a cone: all are at the same angle from the ray to its
centre. So circles are fitted to rays (unit vectors), for which a cone is a plane, determined exactly by three points of
the outline. Random sampling after Fischler and Bolles 1981 (RANSAC); weights of the final fit after Beaton and Tukey
1974.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from agrotools.vision import Box
from agrotools_tools.fruit.camera import Camera

Floats = NDArray[np.floating[Any]]

_SECTORS = 36
"""Number of equal parts of an outline for which visibility is judged."""
_DRAWS = 400
_REFINEMENTS = 5
_MINIMUM_POINTS = 6
_MOST_POINTS = 90
"""Largest number of outline points used in the search; the final fit uses all."""
_STARTS = 4
_NEAR = 0.05
"""Tolerance of points on an outline, as a share of its half angle, because fruits are not perfectly round."""
_STEEP = 0.9
_SHORT_LIST = 32
"""Number of candidates with the largest visible share of the outline that are scored fully."""
_OUTSIDE_WEIGHT = 1.5
_CONTRADICTED_WEIGHT = 1.0


class Cone(NamedTuple):
    """Cone of the rays tangent to a sphere. ``axis``: unit vector (3,) to the centre. ``half_angle``: radians."""

    axis: Floats
    half_angle: float


class RoundEvidence(NamedTuple):
    """Evidence for one round object, as rays from the camera.

    ``edge``: (n, 3), points of its visible outline, possibly including edges of leaves that hide it. ``inside``:
    (m, 3), points of its surface. ``against``: (k, 3), points that do not belong to it. ``against_weight``: (k,), 0 to
    1, certainty that the object would be visible at that point if it reached there: 1 for points behind it, 0 for a
    leaf in front of it. ``pixel``: angle of one pixel, radians.
    """

    edge: Floats
    inside: Floats
    against: Floats
    against_weight: Floats
    pixel: float


class RoundFit(NamedTuple):
    """Fitted outline. ``arc_coverage``: visible share of the outline, 0 to 1. ``score``: higher is better."""

    cone: Cone
    arc_coverage: float
    score: float


def fit_round(
    evidence: RoundEvidence, half_angles: tuple[float, float], near: Cone | None = None
) -> RoundFit | None:
    """Fit the round outline that explains the evidence best, with half angles (radians) and an axis (``near``) that
    distance and size allow; None if no outline fits."""
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
    thinned = evidence._replace(edge=edge)
    promising = np.argsort(-_visible_share(thinned, axes, angles), kind="stable")[:_SHORT_LIST]
    axes, angles = axes[promising], angles[promising]
    scores = _scores(thinned, axes, angles)
    starts = np.argsort(-scores, kind="stable")[:_STARTS]
    cones = [
        _refine_cone(thinned, Cone(axes[place], float(angles[place])), half_angles)
        for place in starts
    ]
    again = _scores(
        evidence,
        np.stack([cone.axis for cone in cones]),
        np.array([cone.half_angle for cone in cones]),
    )
    cone = _refine_cone(evidence, cones[int(np.argmax(again))], half_angles)
    angle = np.array([cone.half_angle])
    off_outline = np.abs(angle_from(evidence.edge, cone.axis) - cone.half_angle)
    seen = _sectors_of(evidence.edge[off_outline < _tolerance(evidence, angle)[0]], cone.axis)
    return RoundFit(
        cone, len(np.unique(seen)) / _SECTORS, float(_scores(evidence, cone.axis[None], angle)[0])
    )


def _sectors_of(points: Floats, axis: Floats) -> NDArray[np.int64]:
    """Return the sector around the axis of each ray."""
    first, second = _across(axis)
    return _sector(np.arctan2(points @ second, points @ first))


def outline_points(cone: Cone, count: int = 72) -> Floats:
    """Return rays along the outline, (count, 3)."""
    first, second = _across(cone.axis)
    turn = np.linspace(0, 2 * np.pi, count, endpoint=False)[:, None]
    return np.cos(cone.half_angle) * cone.axis + np.sin(cone.half_angle) * (
        np.cos(turn) * first + np.sin(turn) * second
    )


def angle_from(points: Floats, axis: Floats) -> Floats:
    """Return the angle between rays (..., 3) and an axis, radians."""
    return np.arccos(
        np.minimum(np.maximum(points @ axis, -1.0), 1.0)
    )  # several times faster than np.clip


def _cones_through(triples: Floats) -> tuple[Floats, Floats]:
    """Return the axis and half angle of the cone through each triple of rays (n, 3, 3)."""
    first, second, third = triples[:, 0], triples[:, 1], triples[:, 2]
    normal = np.cross(second - first, third - first)
    length = np.linalg.norm(normal, axis=1)
    sound = length > 1e-12
    normal = normal[sound] / length[sound, None]
    height = np.einsum("ij,ij->i", normal, first[sound])
    normal = np.where(height[:, None] < 0, -normal, normal)
    return normal, np.arccos(np.clip(np.abs(height), 0.0, 1.0))


def _tolerance(evidence: RoundEvidence, angles: Floats) -> Floats:
    """Return the largest distance from the outline, radians, of points that count as on it."""
    return np.maximum(1.2 * evidence.pixel, _NEAR * angles)


def _scores(evidence: RoundEvidence, axes: Floats, angles: Floats) -> Floats:
    """Return the score of each cone: visible outline share minus penalties for surface outside and contradictions."""
    tolerance = _tolerance(evidence, angles)
    larger, smaller = np.cos(angles + tolerance), np.cos(np.maximum(angles - tolerance, 0.0))
    within = evidence.inside @ axes.T
    outside = (within < larger).mean(axis=0) if len(within) else np.zeros(len(angles))
    contradicted = np.zeros(len(angles))
    if len(evidence.against):
        covered = evidence.against @ axes.T > smaller
        filled = (within > np.cos(angles)).sum(axis=0)
        contradicted = (evidence.against_weight @ covered) / np.maximum(
            covered.sum(axis=0) + filled, 1
        )
    return (
        _visible_share(evidence, axes, angles)
        - _OUTSIDE_WEIGHT * outside
        - _CONTRADICTED_WEIGHT * contradicted
    )


def _visible_share(evidence: RoundEvidence, axes: Floats, angles: Floats) -> Floats:
    """Return the share of sectors around each axis (k, 3) that have a point on the outline."""
    tolerance = _tolerance(evidence, angles)
    # Comparing cosines instead of angles avoids an arc cosine per point and cone.
    along = evidence.edge @ axes.T
    near = (along > np.cos(angles + tolerance)) & (
        along < np.cos(np.maximum(angles - tolerance, 0.0))
    )
    # Cross product of each axis with (0, 1, 0), or with (1, 0, 0) if the axis is close to (0, 1, 0).
    x, y, z = axes.T
    zero = np.zeros_like(x)
    first = np.where(
        (np.abs(y) < _STEEP)[:, None], np.stack([z, zero, -x], 1), np.stack([zero, -z, y], 1)
    )
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.stack(
        [
            y * first[:, 2] - z * first[:, 1],
            z * first[:, 0] - x * first[:, 2],
            x * first[:, 1] - y * first[:, 0],
        ],
        1,
    )
    point, cone = np.nonzero(near)
    turn = np.arctan2(
        (evidence.edge @ second.T)[point, cone], (evidence.edge @ first.T)[point, cone]
    )
    seen = np.zeros((len(axes), _SECTORS), np.bool_)
    seen[cone, _sector(turn)] = True
    return seen.mean(axis=1)


def _sector(turn: Floats) -> NDArray[np.int64]:
    return np.minimum(((turn / (2 * np.pi) + 0.5) * _SECTORS).astype(np.int64), _SECTORS - 1)


def _refine_cone(evidence: RoundEvidence, cone: Cone, half_angles: tuple[float, float]) -> Cone:
    """Refine a cone by least squares over the points near the outline, weighted by their distance from it."""
    for _ in range(_REFINEMENTS):
        away = angle_from(evidence.edge, cone.axis) - cone.half_angle
        reach = 1.5 * float(_tolerance(evidence, np.array([cone.half_angle]))[0])
        weight = np.where(np.abs(away) < reach, (1 - (away / reach) ** 2) ** 2, 0.0)
        if np.count_nonzero(weight) < _MINIMUM_POINTS:
            break
        # Sectors with many points, for example along a ragged leaf, get no more weight than others.
        sectors = _sectors_of(evidence.edge, cone.axis)
        crowd = np.bincount(sectors, weight, _SECTORS)
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
        if (
            not half_angles[0] <= angle <= half_angles[1]
            or angle_from(normal / length, cone.axis) > cone.half_angle
        ):
            break
        cone = Cone(normal / length, angle)
    return cone


def _across(axis: Floats) -> tuple[Floats, Floats]:
    """Return two unit vectors perpendicular to the axis and to each other."""
    x, y, z = (float(part) for part in axis)
    first = np.array((z, 0.0, -x) if abs(y) < _STEEP else (0.0, -z, y))
    first /= np.sqrt(first @ first)
    second = (y * first[2] - z * first[1], z * first[0] - x * first[2], x * first[1] - y * first[0])
    return first, np.array(second)


Mask = NDArray[np.bool_]
Depth = NDArray[np.float32]

_OCCLUSION_MM = 15.0
"""Least difference of depth, mm, for a surface to hide another; above the noise of depth cameras at 2 m."""
_BACKGROUND_MM = 45.0
"""Depth behind the visible surface of a fruit, mm, beyond which a pixel does not belong to the fruit."""
_BEYOND_BOX = 0.8
"""Certainty that a fruit does not extend beyond the box drawn around it."""
_STEP_MM = 8.0
"""Least outward step of depth, mm, at the edge of a fruit."""
_BESIDE_PX = 3
_GRID_POINTS = 150
_LEAST_DEPTHS = 12
_MIDDLE = 0.85
"""Share of the half angle within which pixels are used for the distance, as depth is unreliable at edges."""


class Segment(NamedTuple):
    """Pixels of one fruit. ``mask``: bool (rows, columns) of a part of the picture. ``corner``: x, y of that part in
    the picture. ``drawn_box``: box drawn around the fruit, if any; the fruit does not extend beyond it."""

    mask: Mask
    corner: tuple[int, int]
    drawn_box: Box | None = None

    @property
    def area_px(self) -> int:
        return int(np.count_nonzero(self.mask))


class FruitMeasurement(NamedTuple):
    """Measured fruit. ``distance_mm``: distance from the camera to the centre. ``depth_mm``: the same along the optical
    axis."""

    fit: RoundFit
    centre_px: tuple[float, float]
    radius_px: float
    distance_mm: float
    depth_mm: float
    diameter_mm: float
    visibility: float
    depth_share: float
    """Share of visible pixels with a depth, 0 to 1; 1 if the distance was an argument."""

    @property
    def cone(self) -> Cone:
        return self.fit.cone


@dataclass(frozen=True, eq=False)
class View:
    """Data of a picture for measuring.

    ``fruit``: bool (rows, columns), all pixels of fruit. ``depth``: float32, millimetres, NaN if unknown; None if one
    depth for all, ``depth_mm``, is given instead. ``diameters_mm``: smallest and largest diameter of a fruit.
    """

    camera: Camera
    fruit: Mask
    depth: Depth | None
    depth_mm: float | None
    diameters_mm: tuple[float, float]

    @cached_property
    def smooth(self) -> Depth | None:
        """Depth without flying pixels: medians of 5 x 5, NaN if most of them are unknown."""
        if self.depth is None:
            return None
        middle = cv2.medianBlur(
            np.where(np.isfinite(self.depth), self.depth, np.float32(0)).astype(np.float32), 5
        )
        return np.where(middle > 0, middle, np.float32(np.nan)).astype(np.float32)


def surface_depth(view: View, segment: Segment) -> float | None:
    """Return the median depth of a segment without outliers (beyond 2 MAD), millimetres; None if too few are known."""
    if view.depth is None:
        return view.depth_mm
    values = _cut(view.depth, segment)[segment.mask]
    values = values[np.isfinite(values)]
    if len(values) < _LEAST_DEPTHS:
        return None
    return _robust_median(values)


def _robust_median(values: NDArray[np.floating]) -> float:
    """Return the median of the values within two scaled median absolute deviations of the median."""
    off = np.abs(values - np.median(values))
    return float(np.median(values[off <= 2.0 * max(1.4826 * float(np.median(off)), 1e-6)]))


def measure(
    view: View,
    segment: Segment,
    *,
    near: Cone | None = None,
    radius_limits_px: tuple[float, float] | None = None,
) -> FruitMeasurement | None:
    """Fit a sphere with its centre in the cone ``near`` to a segment; None if it has no depth, no round outline, or
    no plausible size."""
    surface = surface_depth(view, segment)
    if surface is None or segment.area_px < 4:
        return None
    # Half angles of the smallest and largest fruit at this distance of the surface, with a fifth of slack.
    smallest, largest = (size / (2 * (surface + size / 3)) for size in view.diameters_mm)
    smallest, largest = (
        float(np.arcsin(min(0.8 * smallest, 0.7))),
        float(np.arcsin(min(1.2 * largest, 0.9))),
    )
    if radius_limits_px is not None:
        smallest = max(smallest, float(np.arctan(radius_limits_px[0] / view.camera.focal_px)))
        largest = min(largest, float(np.arctan(radius_limits_px[1] / view.camera.focal_px)))
    fit = fit_round(_evidence(view, segment, surface), (smallest, largest), near)
    if fit is None:
        return None
    cone, camera = fit.cone, view.camera
    known, share = _distance(view, segment, cone)
    if known is None:
        return None
    x, y = camera.project(cone.axis)
    radius = camera.focal_px * float(np.tan(cone.half_angle)) / float(cone.axis[2])
    return FruitMeasurement(
        fit=fit,
        centre_px=(float(x), float(y)),
        radius_px=radius,
        distance_mm=known,
        depth_mm=known * float(cone.axis[2]),
        diameter_mm=2 * known * float(np.sin(cone.half_angle)),
        visibility=_visibility(view, cone, radius),
        depth_share=share,
    )


def _distance(view: View, segment: Segment, cone: Cone) -> tuple[float | None, float]:
    """Return the distance to the centre of the sphere along its axis, and the share of visible pixels with a depth."""
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
    front = np.cos(off[usable]) - np.sqrt(
        np.maximum(np.sin(cone.half_angle) ** 2 - np.sin(off[usable]) ** 2, 0.0)
    )
    return _robust_median(along / front), share


def _visibility(view: View, cone: Cone, radius: float) -> float:
    """Return the visible share of the outline's area, 0 to 1; parts outside the picture count as hidden."""
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


def _evidence(view: View, segment: Segment, surface: float) -> RoundEvidence:
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
    # Where two fruits of the same colour meet, either may hide the other: no outline unless the other one is behind.
    beside = _others(view.fruit[y0:y1, x0:x1], part) & (doubt < 1)
    depth = None if view.smooth is None else view.smooth[y0:y1, x0:x1]
    x, y = _edges(part, (doubt == 0) | beside, depth, (x0, y0))
    step = max(1, int(np.sqrt(segment.area_px / _GRID_POINTS)))
    down, across = np.mgrid[step // 2 : part.shape[0] : step, step // 2 : part.shape[1] : step]
    across, down = across.ravel(), down.ravel()
    rays = view.camera.rays(across + x0 + 0.5, down + y0 + 0.5)
    on, weight = part[down, across], doubt[down, across]
    return RoundEvidence(
        view.camera.rays(x, y), rays[on], rays[~on], weight[~on], 1 / view.camera.focal_px
    )


def _doubt(view: View, part: Mask, box: Box, surface: float) -> Floats:
    """Return the certainty that the fruit does not cover each pixel outside it; 0 if something is in front of it."""
    x0, y0, x1, y1 = box
    other = _others(view.fruit[y0:y1, x0:x1], part)
    if view.smooth is None:
        return np.where(other, 0.25, 0.5)
    depth = view.smooth[y0:y1, x0:x1]
    doubt = np.where(other, 0.3, 0.5)
    with np.errstate(invalid="ignore"):
        doubt[np.isfinite(depth)] = 0.3
        doubt[depth > surface + _BACKGROUND_MM] = 1.0
        doubt[depth < surface - _OCCLUSION_MM] = 0.0
    return doubt


def _others(fruit: Mask, part: Mask) -> Mask:
    """Return the pixels of other fruits, up to this one; the blurred rim of this fruit is excluded."""
    apart = cv2.morphologyEx(
        (fruit & ~part).astype(np.uint8), cv2.MORPH_OPEN, np.ones((4, 4), np.uint8)
    )
    return cv2.dilate(apart, np.ones((3, 3), np.uint8), iterations=2).astype(np.bool_) & ~part


def _edges(
    part: Mask, hidden: Mask, depth: Depth | None, corner: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the points of the outline, on the border between pixels of the fruit and others.

    Points are omitted, if enough others remain, where something is in front of the fruit, and where depth has no step,
    as at a leaf on the fruit or a highlight. The edge of the picture is not an outline, since nothing beyond it is
    visible.
    """
    points: list[Floats] = []
    trusted: list[Mask] = []
    for axis in (0, 1):
        y, x = np.nonzero(np.diff(part.astype(np.int8), axis=axis))
        points.append(
            np.column_stack([x + (0.5 if axis == 0 else 1.0), y + (1.0 if axis == 0 else 0.5)])
        )
        along = np.array((1, 0) if axis == 0 else (0, 1))
        first = np.column_stack([y, x])
        outwards = np.where(part[y, x], 1, -1)[:, None] * along
        inner = np.where(part[y, x][:, None], first, first + along)
        trust = ~hidden[tuple((inner + outwards).T)]
        if depth is not None:
            step = _at(depth, inner + _BESIDE_PX * outwards) - _at(
                depth, inner - (_BESIDE_PX - 1) * outwards
            )
            trust &= ~(step < _STEP_MM)
        trusted.append(trust)
    edge_points, trust = np.concatenate(points) + np.array(corner, float), np.concatenate(trusted)
    if np.count_nonzero(trust) >= max(12, 0.2 * len(edge_points)):
        edge_points = edge_points[trust]
    return edge_points[:, 0], edge_points[:, 1]


def _at(depth: Depth, places: NDArray[np.int64]) -> Depth:
    """Return the depth at rows and columns (n, 2); positions outside the array are moved to its edge."""
    y = np.clip(places[:, 0], 0, depth.shape[0] - 1)
    x = np.clip(places[:, 1], 0, depth.shape[1] - 1)
    return depth[y, x]


def _cut(values: Depth, segment: Segment) -> Depth:
    (x, y), (height, width) = segment.corner, segment.mask.shape
    return values[y : y + height, x : x + width]
