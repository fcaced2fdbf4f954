"""Constants of detect_change are chosen on other scenes than the one they are measured on."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accuracy.change_rules import RoofRules, ScenePair, left_out, read_pairs
from agrotools.tools.change.buildings import RoofRule

LEFT, RIGHT = np.zeros((4, 4), bool), np.zeros((4, 4), bool)
LEFT[:, :2], RIGHT[:, 2:] = True, True


@dataclass(frozen=True)
class _Halves:
    """Rules that mark one half of every pair."""

    grid: tuple[str | None, ...] = ("right", "left")

    def mask(self, rule: str, pair: Any) -> Any:
        return LEFT if rule == "left" else RIGHT


def _pair(name: str, scene: str, truth: Any) -> ScenePair:
    picture = np.zeros((*truth.shape, 3), np.uint8)
    return ScenePair(name, scene, picture, picture, np.ones(truth.shape, bool), truth)


def test_scenes_measured_and_unchanged_have_no_say_in_the_choice() -> None:
    pairs = [
        _pair("a", "one", LEFT),
        _pair("b", "two", LEFT),
        _pair("c", "three", RIGHT),
        _pair("d", "three", RIGHT),
        _pair("e", "three", RIGHT),
    ]
    masks = left_out(pairs, [pair.scene for pair in pairs], _Halves()).masks
    for mask in masks[2:]:  # both other scenes choose the left half, though most pairs change on the right
        np.testing.assert_array_equal(mask, LEFT)
    pairs = [_pair("a", "one", LEFT), _pair("b", "two", np.zeros_like(LEFT))]
    assert left_out(pairs, ["one", "two"], _Halves()).of_all == "left"


def test_no_map_is_chosen_where_marking_everything_is_better_in_one_scene() -> None:
    pairs, scenes = [_pair("a", "one", LEFT), _pair("b", "two", RIGHT)], ["one", "two"]
    choice = left_out(pairs, scenes, _Halves(("right", "left", None)))
    assert (choice.of_all, choice.worst) == (None, 0)
    assert left_out(pairs, scenes, _Halves()).worst < 0


@pytest.mark.slow
def test_what_ships_is_what_all_real_scenes_choose() -> None:
    data = Path(os.environ.get("AGROTOOLS_TEST_DATA", "absent"))
    if not (data / "levir_cd").is_dir():
        pytest.skip("the real pairs are not part of the project")
    items = json.loads((data / "levir_cd" / "truth.json").read_text(encoding="utf-8"))
    pairs = read_pairs(data / "levir_cd", items)
    scenes = [pair.scene for pair in pairs]
    for gains_only in (True, False):
        choice = left_out(pairs, scenes, RoofRules(gains_only))
        assert choice.of_all == RoofRule()
        assert choice.worst > 0
