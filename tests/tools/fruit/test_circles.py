"""Round outlines, whole and in part, before a wide-angle camera."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.tools.fruit.camera import Camera
from agrotools.tools.fruit.measuring import Cone, Evidence, angle_from, fit_round, outline_points

CAMERA = Camera(900.0, 900.0, 960.0, 540.0)
PIXEL = 1 / 900


def evidence(points: np.ndarray, cone: Cone) -> Evidence:
    inside = np.concatenate([outline_points(Cone(cone.axis, cone.half_angle * share), 24) for share in (0.3, 0.6, 0.9)])
    return Evidence(points, inside, np.empty((0, 3)), np.empty(0), PIXEL)


@given(
    x=st.floats(100, 1800),
    y=st.floats(100, 980),
    radius=st.floats(15, 90),
    seen=st.floats(0.5, 1.0),
    turn=st.floats(0, 6.2),
    seed=st.integers(0, 99),
)
def test_a_part_of_the_outline_gives_the_whole(x, y, radius, seen, turn, seed):
    axis = CAMERA.rays(np.array(x), np.array(y))
    cone = Cone(axis, float(np.arctan(radius / 900)))
    rim = np.roll(outline_points(cone, 200), int(turn * 30), axis=0)[: int(200 * seen)]
    draw = np.random.default_rng(seed)
    noisy = rim + draw.normal(0, 0.15 * PIXEL, rim.shape)
    noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
    # A leaf's edge straight across the fruit.
    leaf = axis + np.linspace(-0.5, 0.5, 20)[:, None] * (rim[0] - rim[len(rim) // 2])
    points = np.concatenate([noisy, leaf / np.linalg.norm(leaf, axis=1, keepdims=True)])
    fit = fit_round(evidence(points, cone), (cone.half_angle / 2.5, cone.half_angle * 2.5))
    assert fit.cone.half_angle == pytest.approx(cone.half_angle, rel=0.06)
    assert angle_from(fit.cone.axis, axis) < 0.08 * cone.half_angle
    assert fit.arc_coverage == pytest.approx(seen, abs=0.12)
