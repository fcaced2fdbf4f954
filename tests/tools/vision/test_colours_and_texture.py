"""Names of colours against the published table, groups of colours, and texture against scikit-image."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy.extract_marked_region import patches
from agrotools_tools.regions.measure import LEVELS, cooccurrence, texture_of
from agrotools_tools.vision.colours import NAMED_COLOURS, colour_name, dominant_colours


def test_the_table_is_that_of_the_survey() -> None:
    from matplotlib.colors import XKCD_COLORS, to_hex

    for name, rgb in NAMED_COLOURS.items():
        assert to_hex([part / 255 for part in rgb]) == XKCD_COLORS[f"xkcd:{name}"]
        assert colour_name(rgb) == name


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_patches_of_known_colour_are_named_and_counted(seed: int) -> None:
    pixels, true = patches(np.random.default_rng(seed))
    found = dominant_colours(pixels.reshape(-1, 3))
    assert {colour.name: 100 * colour.share for colour in found} == pytest.approx(true, abs=1)
    assert [colour.share for colour in found] == sorted(
        (colour.share for colour in found), reverse=True
    )
    again = dominant_colours(pixels.reshape(-1, 3))
    assert found == again


def test_texture_agrees_with_scikit_image() -> None:
    from skimage.feature import graycomatrix, graycoprops

    grey = np.random.default_rng(1).integers(0, 256, (40, 60)).astype(np.uint8)
    mine = cooccurrence(grey, np.ones(grey.shape, bool))
    angles = [0, np.pi / 4, np.pi / 2, 3 * np.pi / 4]
    counts = graycomatrix(grey >> 3, [1], angles, levels=LEVELS, symmetric=True).sum(
        axis=3, keepdims=True
    )
    assert np.allclose(mine, counts[:, :, 0, 0] / counts.sum())
    texture = texture_of(np.dstack([grey] * 3), np.ones(grey.shape, bool))
    assert texture is not None
    assert texture.contrast == pytest.approx(graycoprops(counts, "contrast")[0, 0])
    assert texture.homogeneity == pytest.approx(graycoprops(counts, "homogeneity")[0, 0])
    assert texture.correlation == pytest.approx(graycoprops(counts, "correlation")[0, 0])


def test_texture_counts_pairs_inside_only() -> None:
    grey = np.zeros((20, 20), np.uint8)
    grey[:, 10:] = 255
    left = np.zeros(grey.shape, bool)
    left[:, :10] = True
    texture = texture_of(np.dstack([grey] * 3), left)
    assert texture is not None
    assert (texture.entropy, texture.contrast) == (0, 0)
    lone = np.zeros(grey.shape, bool)
    lone[3, 3] = True
    assert texture_of(np.dstack([grey] * 3), lone) is None
