"""Trees in height models made of cones whose places are known."""

import numpy as np
import pytest

from agrotools.tools.counting.crowns import find_crowns

PLACES = [(12.0, 10.0), (30.0, 14.0), (22.0, 33.0), (44.0, 40.0), (50.0, 12.0)]
TALL = [8.0, 12.0, 15.0, 6.0, 20.0]


def cones(gsd_m: float, noise: float = 0.0, extent: float = 60.0) -> np.ndarray:
    side = round(extent / gsd_m)
    y, x = (np.mgrid[0:side, 0:side] + 0.5) * gsd_m
    heights = np.zeros((side, side))
    for (at_x, at_y), tall in zip(PLACES, TALL, strict=True):
        heights = np.maximum(heights, tall * (1 - np.hypot(x - at_x, y - at_y) / 5))
    heights += np.random.default_rng(0).normal(0, 1, heights.shape) * noise
    return np.maximum(heights, 0).astype(np.float32)


@pytest.mark.parametrize("gsd_m", [0.1, 0.25, 0.5, 1.0])
def test_every_tree_is_found_whatever_the_pixel(gsd_m: float) -> None:
    crowns = find_crowns(cones(gsd_m), gsd_m)
    assert len(crowns) == len(PLACES)
    tops = np.array(sorted((crowns.centres * gsd_m).tolist()))
    assert (np.hypot(*(tops - sorted(PLACES)).T) < max(0.5, gsd_m)).all()
    assert sorted(crowns.heights_m) == pytest.approx(sorted(TALL), abs=0.1 + 3 * max(gsd_m, 0.25))
    areas = np.sort(np.pi / 4 * (crowns.diameters * gsd_m) ** 2)
    expected = np.sort([np.pi * (5 * (1 - 2 / tall)) ** 2 for tall in TALL])
    assert areas == pytest.approx(expected, rel=0.15)
    assert (crowns.scores == 1).all()
