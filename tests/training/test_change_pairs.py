import numpy as np
import pytest
from change_pairs import TILE_PX, Pair, unchanged_tiles
from measure_deep_change import cases, outcome


def _pair(changed, labelled=None):
    picture = np.full((*changed.shape, 3), 90, np.uint8)
    known = np.ones_like(changed) if labelled is None else labelled
    return Pair("a source", "report", "a pair", picture, picture.copy(), changed, known)


def test_a_tile_is_unchanged_only_where_all_of_it_is_labelled_and_nothing_changed():
    changed = np.zeros((TILE_PX, 3 * TILE_PX), np.bool_)
    changed[5, 5] = True
    labelled = np.ones_like(changed)
    labelled[7, TILE_PX + 7] = False
    (tile,) = unchanged_tiles(_pair(changed, labelled))
    assert tile.name.endswith(f"at {2 * TILE_PX},0")
    assert tile.before.shape == (TILE_PX, TILE_PX, 3)


def test_a_pair_comes_with_its_first_date_disturbed_which_changed_nowhere():
    changed = np.ones((40, 40), np.bool_)
    kinds = dict(cases(iter([_pair(changed)])))
    assert kinds.keys() == {"changed", "disturbed"}
    assert not kinds["disturbed"].changed.any()
    assert (kinds["disturbed"].after != kinds["disturbed"].before).any()


@pytest.mark.parametrize(("marked", "is_right"), [(20, True), (12, True), (9, False), (80, False)])
def test_a_map_of_a_changed_pair_is_right_from_half_overlap(marked, is_right):
    changed = np.zeros((40, 80), np.bool_)
    changed[:, :20] = True
    found = np.zeros_like(changed)
    found[:, :marked] = True
    assert outcome("changed", _pair(changed), found).is_right is is_right


def test_a_map_that_is_not_given_is_neither_right_nor_wrong():
    none = outcome("changed", _pair(np.ones((4, 4), np.bool_)), None)
    assert none.is_right is None
    assert none.marked is None


def test_only_labelled_pixels_count():
    changed = np.zeros((10, 10), np.bool_)
    labelled = np.zeros_like(changed)
    labelled[:, :5] = True
    found = ~labelled
    assert outcome("unchanged", _pair(changed, labelled), found).is_right
