import numpy as np
import pytest

from agrotools.build.scenes.ponds import EVENTS, make_pond_pair

DIFFICULTIES = [0, 1, 2, 3]


@pytest.mark.parametrize("event", EVENTS)
def test_masks_and_truth_tell_the_same_event(event):
    scene = make_pond_pair(17, 0, event)
    assert scene.truth == {"event": event}
    for name in ("before", "after"):
        assert (scene.images[name].shape, scene.images[f"{name}_bands"].shape) == ((384, 512, 3), (4, 384, 512))
        assert not (scene.masks[f"water_{name}"] & ~scene.masks[f"basins_{name}"] & 1).any(), "water lies in basins"
    pond, water = (
        [scene.masks[f"{what}_{name}"].any() for name in ("before", "after")] for what in ("basins", "water")
    )
    dug = {"constructed": [False, True], "demolished": [True, False], "none": [pond[0], pond[0]]}
    wet = {"dried": [True, False], "wetted": [False, True], "none": [water[0], water[0]]}
    assert pond == dug.get(event, [True, True])
    assert water == wet.get(event, pond)
    if event not in ("constructed", "demolished"):
        np.testing.assert_array_equal(scene.masks["basins_before"], scene.masks["basins_after"])


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_water_is_dark_in_the_near_infrared(difficulty):
    scene = make_pond_pair(23, difficulty, "constructed")
    green, infrared = (scene.images["after_bands"][band].astype(float) for band in (1, 3))
    ndwi = (green - infrared) / (green + infrared)
    water = scene.masks["water_after"] > 0
    assert np.median(ndwi[water]) > 0.05
    assert np.median(ndwi[~water]) < -0.1
