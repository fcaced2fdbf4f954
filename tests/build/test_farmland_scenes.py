import numpy as np
import pytest

from agrotools.build.scenes.farmland import BECOMES, make_farmland_pair

DIFFICULTIES = [0, 1, 2, 3]


@pytest.mark.parametrize(("look", "shape", "gsd_m"), [("aerial", (384, 512), 0.5), ("satellite", (320, 400), 0.8)])
def test_looks_differ_in_size_and_scale(look, shape, gsd_m):
    scene = make_farmland_pair(1, 1, look)
    for name in ("before", "after"):
        assert scene.images[name].shape == (*shape, 3)
        assert scene.images[name].dtype == np.uint8
    assert scene.masks["lost"].shape == shape
    assert scene.sidecar["gsd_m"] == gsd_m


@pytest.mark.parametrize("becomes", BECOMES)
def test_what_was_lost_is_of_one_kind_and_looks_changed(becomes):
    scene = make_farmland_pair(21, 0, "aerial", becomes)
    lost = scene.masks["lost"]
    assert set(np.unique(lost)) == {0, 1 + BECOMES.index(becomes)}
    assert 0.01 < (lost > 0).mean() < 0.5
    assert scene.truth["becomes"] == becomes
    differs = np.abs(scene.images["after"].astype(float) - scene.images["before"]).mean(axis=2)
    assert differs[lost > 0].mean() > 8


def test_nothing_is_lost_where_only_crops_change():
    scene = make_farmland_pair(8, 3, "aerial", "none")
    assert not scene.masks["lost"].any()
    assert scene.truth["becomes"] == "none"
    assert np.abs(scene.images["after"].astype(float) - scene.images["before"]).mean() > 5


def test_outlines_are_ragged_where_it_is_hard():
    """The area of a site over that of its bounds, turned as it lies: near 1 for a drawn rectangle."""
    import cv2

    fills = []
    for seed in range(3):
        lost = make_farmland_pair(seed, 3, "aerial", "building").masks["lost"]
        outlines, _ = cv2.findContours((lost > 0).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        for outline in outlines:
            area = cv2.contourArea(outline)
            if area > 500:
                (_, (width, height), _) = cv2.minAreaRect(outline)
                fills.append(area / (width * height))
    assert len(fills) > 3
    assert np.mean(fills) < 0.9
