from functools import cache

import numpy as np
import pytest

from agrotools.build.scenes.fruits import KINDS
from agrotools.build.scenes.leaf_photo import HEALTHY, LESION, make_leaf_photo
from agrotools.build.scenes.lesions import KINDS as LESIONS
from agrotools.build.scenes.marks import mark_each
from agrotools.build.scenes.orchard import make_orchard
from agrotools.build.scenes.wheat import make_wheat

orchard_of = cache(make_orchard)


@pytest.mark.parametrize(("difficulty", "seeds"), [(0, range(11, 12)), (3, range(11, 16))])
def test_fruit_is_as_large_as_its_depth_and_outline_say(difficulty, seeds):
    checked = 0
    for seed in seeds:
        scene = orchard_of(seed, difficulty)
        focal, depth, ids = scene.sidecar["fx_px"], scene.images["depth"], scene.masks["ids"]
        assert (ids.shape, depth.dtype) == ((480, 640), np.uint16)
        for fruit in scene.truth["fruits"]:
            if fruit["visibility"] < 1:
                continue
            checked += 1
            own = ids == fruit["id"]
            middle = np.median(depth[own & (depth > 0)]) + 0.35 * fruit["diameter_mm"]
            # An apple is up to a fourteenth less long than thick, and lies in any direction.
            across = 2 * np.sqrt(own.sum() / np.pi) * middle / focal
            assert across == pytest.approx(fruit["diameter_mm"], rel=0.08)
    assert checked


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fruit_is_seen_where_the_mask_says(kind):
    scene = make_orchard(2, 0, kind)
    fruit = scene.images["rgb"][scene.masks["ids"] > 0].astype(int)
    rest = scene.images["rgb"][scene.masks["ids"] == 0].astype(int)
    assert np.mean(fruit[:, 0] - fruit[:, 1]) > np.mean(rest[:, 0] - rest[:, 1])
    assert len(np.unique(scene.masks["ids"])) > 1


def test_ears_are_counted_as_asked_for_and_as_masked():
    scene = make_wheat(8, 1, 20)
    heads = {head["id"]: head["visibility"] for head in scene.truth["heads"]}
    assert len(heads) == 20
    assert set(np.unique(scene.masks["ids"])) - {0} == {number for number, seen in heads.items() if seen}
    assert 15 < scene.truth["count"] == sum(seen >= 0.25 for seen in heads.values())
    assert scene.truth["area_m2"] == pytest.approx(512 * 512 * scene.sidecar["gsd_m"] ** 2, rel=1e-4)


@pytest.mark.parametrize("lesion", LESIONS)
def test_severity_is_exact_and_near_what_was_asked_and_lesions_look_unlike_the_leaf(lesion):
    scene = make_leaf_photo(9, 0, "apple", lesion, severity_pct=15.0)
    classes, (leaf,) = scene.masks["classes"], scene.truth["leaves"]
    assert leaf["lesion_area_px"] == (classes == LESION).sum()
    assert leaf["leaf_area_px"] == (classes >= HEALTHY).sum()
    assert leaf["severity_pct"] == pytest.approx(100 * leaf["lesion_area_px"] / leaf["leaf_area_px"], abs=1e-3)
    assert leaf["severity_pct"] == pytest.approx(15.0, abs=4.5)
    # Healthy tissue is greener than red by far; all lesions lose that.
    photo = scene.images["rgb"].astype(int)
    green = photo[..., 1] - photo[..., 0]
    assert np.median(green[classes == LESION]) < np.median(green[classes == HEALTHY]) - 15


def test_leaves_side_by_side_are_told_apart():
    scene = make_leaf_photo(3, 2, "bean", leaves=3)
    first, second, third = (leaf["box"] for leaf in scene.truth["leaves"])
    assert first[2] <= second[0]
    assert second[2] <= third[0]
    assert set(np.unique(scene.masks["leaves"])) == {0, 1, 2, 3}


def test_marks_leave_alone_what_they_enclose_and_keep_apart():
    photo = np.full((100, 120, 3), 90, np.uint8)
    boxes = [(1, 30, 60, 80), (20, 30, 60, 80), (50, 40, 90, 70)]
    (mark,) = mark_each(photo, boxes, ["blue", "cyan"], np.random.default_rng(1), shapes=("box",))
    (region,) = mark["truth"]["regions"]
    assert (mark["place"], mark["color"]) == (1, "blue")
    assert region["box"] == [
        20 - region["stroke_px"],
        30 - region["stroke_px"],
        60 + region["stroke_px"],
        80 + region["stroke_px"],
    ]
    assert (photo[30:80, 20:60] == 90).all()
    assert tuple(photo[28, 40]) == (0, 40, 255)
