import numpy as np
import pytest

from agrotools.build.scenes.ponds import EVENTS, make_pond_pair


@pytest.mark.parametrize("event", EVENTS)
def test_masks_and_truth_tell_the_same_event(event):
    scene = make_pond_pair(17, 0, event)
    assert scene.truth == {"event": event}
    for name in ("before", "after"):
        assert scene.images[name].shape == (384, 512, 3)
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
