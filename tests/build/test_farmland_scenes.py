import numpy as np
import pytest

from agrotools.build.scenes.farmland import BECOMES, make_farmland_pair


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
