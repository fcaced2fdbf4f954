import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agrotools.build.scenes.farmland import make_farmland_pair
from agrotools.build.scenes.leaf_photo import make_leaf_photo
from agrotools.build.scenes.orchard import make_orchard
from agrotools.build.scenes.ponds import make_pond_pair
from agrotools.build.scenes.rows import CLASSES, CROP, SOIL, WEED, class_counts, make_scene
from agrotools.build.scenes.stands import make_block, make_tract
from agrotools.build.scenes.wheat import make_wheat

_FALSE_COLOUR = {"B": 0, "G": 1, "R": 2, "RE": 3, "NIR": 4}


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), difficulty=st.sampled_from([0, 1, 2, 3]))
def test_truth_is_what_the_masks_say(seed, difficulty):
    scene = make_scene(seed, difficulty)
    classes, plants = scene.masks["classes"], scene.masks["plants"]
    assert scene.images["rgb"].shape == (480, 640, 3)
    assert scene.images["rgb"].dtype == np.uint8
    assert scene.images["bands"].shape == (5, 480, 640)
    assert scene.images["bands"].dtype == np.uint16
    assert set(np.unique(classes)) <= set(CLASSES)
    for name, index in (("soil", SOIL), ("crop", CROP), ("weed", WEED)):
        pixels = int((classes == index).sum())
        assert scene.truth[f"{name}_px"] == pixels
        assert scene.truth[f"{name}_pct"] == 100.0 * pixels / classes.size
    np.testing.assert_array_equal(classes == SOIL, plants == 0)
    for plant in np.unique(plants[plants > 0])[:20]:
        assert len(np.unique(classes[plants == plant])) == 1, "a plant is either crop or weed"
    assert len(np.unique(plants)) - 1 <= scene.truth["crop_plants"] + scene.truth["weed_plants"]


def test_weeds_cover_one_to_twelve_percent():
    covers = [make_scene(seed, difficulty).truth["weed_pct"] for difficulty in range(4) for seed in range(3)]
    assert all(0.9 <= cover <= 12.8 for cover in covers), covers
    assert max(covers) > 6.0
    assert min(covers) < 3.0


@pytest.mark.parametrize("difficulty", [0, 1, 2, 3])
def test_bands_look_like_leaves_and_soil(difficulty):
    """In reflectance, leaves are bright in the near infrared and dark in the red; soil rises slowly."""
    scene = make_scene(3, difficulty)
    bands = scene.images["bands"].astype(float) / 1e4
    red, infrared = bands[_FALSE_COLOUR["R"]], bands[_FALSE_COLOUR["NIR"]]
    ndvi = (infrared - red) / (infrared + red)
    plant = scene.masks["classes"] != SOIL
    assert np.median(ndvi[plant]) > 0.55
    assert np.median(ndvi[~plant]) < 0.3
    assert 0.01 < np.median(infrared) < 0.7


def test_a_larger_scene_is_as_densely_grown():
    usual, larger = make_scene(5, 1), make_scene(5, 1, (720, 960))
    assert larger.images["rgb"].shape == (720, 960, 3)
    assert larger.images["bands"].shape == (5, 720, 960)
    assert larger.masks["classes"].shape == larger.masks["plants"].shape == (720, 960)
    assert larger.truth["crop"] == make_scene(5, 1, (720, 960)).truth["crop"]
    assert 1.0 < larger.truth["weed_pct"] < 12.0
    assert usual.images["rgb"].shape == (480, 640, 3)
    with pytest.raises(ValueError, match="64"):
        make_scene(5, 1, (480, 20))


def test_class_counts_of_a_known_mask():
    mask = np.array([[0, 0, 0, 0], [1, 1, 2, 0]], dtype=np.uint8)
    counts = class_counts(mask)
    assert (counts["soil_px"], counts["crop_px"], counts["weed_px"]) == (5, 2, 1)
    assert counts["crop_pct"] == 25.0
    assert counts["weed_pct"] == 12.5


@pytest.mark.parametrize(
    "make",
    [make_scene, make_pond_pair, make_farmland_pair, make_block, make_tract, make_orchard, make_wheat, make_leaf_photo],
)
def test_wrong_arguments_are_refused(make):
    with pytest.raises(ValueError, match="difficulty"):
        make(1, 4)
    with pytest.raises(ValueError, match="seed"):
        make(-1, 0)
