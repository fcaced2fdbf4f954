"""Round outlines, of which a part may be hidden: circles seen through a camera.

A sphere's outline is a circle only where the camera looks straight at it; elsewhere it is an ellipse, by some percent
at the edge of a wide-angle picture. The rays that touch a sphere, though, always make a cone: all of them are at one
angle from the ray to its middle. So circles are fitted to rays (unit vectors), where a cone is a plane through them,
and three points of the outline give it exactly.

Random sampling after Fischler and Bolles 1981 (RANSAC); weighting of the final fit after Beaton and Tukey 1974.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    rms: float
    """of the outline points that count, radians"""


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
    rms = float(np.sqrt(np.mean(away[near] ** 2))) if near.any() else float("nan")
    coverage = len(np.unique(visible_sectors(evidence.edge[near], cone.axis))) / SECTORS
    return RoundFit(cone, coverage, score, rms)


def _across(axis: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors across the axis and each other."""
    x, y, z = (float(part) for part in axis)
    first = np.array((z, 0.0, -x) if abs(y) < _STEEP else (0.0, -z, y))
    first /= np.sqrt(first @ first)
    second = (y * first[2] - z * first[1], z * first[0] - x * first[2], x * first[1] - y * first[0])
    return first, np.array(second)
