import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agrotools.build.scenes.ponds import EVENTS, make_pond_pair, make_town

DIFFICULTIES = [0, 1, 2, 3]


@settings(max_examples=5)
@given(seed=st.integers(0, 10_000), difficulty=st.sampled_from(DIFFICULTIES), event=st.sampled_from(EVENTS))
def test_masks_and_truth_tell_the_same_event(seed, difficulty, event):
    scene = make_pond_pair(seed, difficulty, event)
    for name in ("before", "after"):
        assert scene.images[name].shape == (384, 512, 3)
        assert scene.images[name].dtype == np.uint8
        assert scene.images[f"{name}_bands"].shape == (4, 384, 512)
        assert scene.images[f"{name}_bands"].dtype == np.uint16
        water, basins = scene.masks[f"water_{name}"], scene.masks[f"basins_{name}"]
        assert scene.truth[f"area_{name}_px"] == water.sum()
        assert not (water & ~basins & 1).any(), "water lies in basins"
    assert scene.truth["event"] == event
    first = scene.truth["waters"][0] if scene.truth["waters"] else [None, None]
    pond = {name: scene.masks[f"basins_{name}"].any() for name in ("before", "after")}
    wet = {name: water is not None for name, water in zip(("before", "after"), first, strict=True)}
    if event in ("demolished", "dried"):
        assert wet == {"before": True, "after": False}
    if event in ("constructed", "wetted"):
        assert wet == {"before": False, "after": True}
    if event in ("dried", "wetted"):
        assert pond == {"before": True, "after": True}
    if event == "none":
        assert wet["before"] == wet["after"]


@pytest.mark.parametrize("event", EVENTS)
def test_only_the_changed_pond_changes_its_basin(event):
    scene = make_pond_pair(17, 0, event)
    before, after = (scene.masks[f"basins_{name}"].astype(bool) for name in ("before", "after"))
    if event == "constructed":
        assert not before.any()
        assert after.any()
    elif event == "demolished":
        assert before.any()
        assert not after.any()
    else:
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_water_is_dark_in_the_near_infrared(difficulty):
    scene = make_pond_pair(23, difficulty, "constructed")
    green, infrared = (scene.images["after_bands"][band].astype(float) for band in (1, 3))
    ndwi = (green - infrared) / (green + infrared)
    water = scene.masks["water_after"] > 0
    assert np.median(ndwi[water]) > 0.05
    assert np.median(ndwi[~water]) < -0.1


def test_ponds_have_the_sizes_of_ponds():
    for seed in range(6):
        scene = make_pond_pair(seed, seed % 4, "wetted")
        square_metres = scene.truth["area_after_px"] * scene.sidecar["gsd_m"] ** 2
        assert 40 < square_metres < 9000


def test_later_pictures_are_shifted_by_what_truth_says():
    assert make_pond_pair(3, 0).truth["shift_px"] == [0.0, 0.0]
    shifts = np.array([make_pond_pair(seed, 3).truth["shift_px"] for seed in range(4)])
    assert 0.2 < np.abs(shifts).max() <= 1.6


def test_an_unknown_event_is_refused():
    with pytest.raises(ValueError, match="event"):
        make_pond_pair(1, 0, "flooded")


def test_towns_are_drawn_from_their_seed():
    town = make_town(4, 1)
    assert town.shape == (384, 512, 3)
    assert town.dtype == np.uint8
    np.testing.assert_array_equal(town, make_town(4, 1))
    assert not np.array_equal(town, make_town(5, 1))
