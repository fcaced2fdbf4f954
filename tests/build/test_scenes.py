from functools import cache

import numpy as np
import pytest

from agrotools.build.scenes.rows import CLASSES, SOIL, make_scene

RED, INFRARED = 2, 4
scene_of = cache(make_scene)


@pytest.mark.parametrize("difficulty", [0, 1, 2, 3])
def test_bands_look_like_leaves_and_soil(difficulty):
    """In reflectance, leaves are bright in the near infrared and dark in the red; soil rises slowly."""
    scene = scene_of(3, difficulty)
    assert (scene.images["rgb"].shape, scene.images["bands"].dtype) == ((480, 640, 3), np.uint16)
    bands = scene.images["bands"].astype(float) / 1e4
    ndvi = (bands[INFRARED] - bands[RED]) / (bands[INFRARED] + bands[RED])
    classes = scene.masks["classes"]
    assert set(np.unique(classes)) == set(CLASSES)
    assert np.median(ndvi[classes != SOIL]) > 0.55
    assert np.median(ndvi[classes == SOIL]) < 0.3
    assert 0.01 < np.median(bands[INFRARED]) < 0.7


def test_weeds_cover_what_was_asked_for():
    covers = [scene_of(3, difficulty).truth["weed_pct"] for difficulty in range(4)]
    assert all(0.9 <= cover <= 12.8 for cover in covers), covers
    assert max(covers) - min(covers) > 2
    scene = make_scene(5, 1, 20.0)
    assert (scene.images["bands"].shape, scene.masks["classes"].shape) == ((5, 480, 640), (480, 640))
    assert 15.0 < scene.truth["weed_pct"] < 30.0
