"""Spots of known place and size."""

import numpy as np
import pytest

from agrotools.tools.counting.methods import find_blobs, typical_size_px
from support.picture_files import discs

CENTRES = [(40, 30), (90, 35), (150, 40), (60, 90), (120, 95), (170, 110)]


@pytest.mark.parametrize("radius", [3, 6, 10])
def test_discs_are_found_with_their_size(radius: float) -> None:
    values = discs((140, 200), CENTRES, radius).astype(np.float32) * 40
    values += np.random.default_rng(0).normal(0, 1, values.shape).astype(np.float32)
    blobs = find_blobs(values, (radius, 4 * radius), least_strength=12)
    assert len(blobs.centres) == len(CENTRES)
    assert sorted(map(tuple, np.round(blobs.centres, 0).tolist())) == pytest.approx(
        np.array(sorted(CENTRES)) + 0.5, abs=2
    )
    assert blobs.diameters == pytest.approx(2 * radius, rel=0.3)
    assert (blobs.scores > 0.8).all()


def test_nothing_on_a_plain_picture() -> None:
    for values in (np.full((50, 60), 7, np.float32), np.zeros((1, 1), np.float32)):
        assert len(find_blobs(values, (4, 12), least_strength=1).centres) == 0


def test_the_size_that_a_picture_is_full_of() -> None:
    grid = [(x, y) for x in range(20, 400, 40) for y in range(20, 300, 40)]
    values = discs((300, 400), grid, 10).astype(np.float32)
    assert typical_size_px(values, 100) == pytest.approx(20, abs=6)
    assert typical_size_px(np.zeros((50, 50), np.float32), 20) is None
