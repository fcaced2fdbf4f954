"""Constants of detect_change are chosen on other scenes than the one they are measured on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from agrotools.build.accuracy.detect_change import ScenePair, best_of, left_out

LEFT, RIGHT = np.zeros((4, 4), bool), np.zeros((4, 4), bool)
LEFT[:, :2], RIGHT[:, 2:] = True, True


@dataclass(frozen=True)
class _Halves:
    """Two rules, of which each marks one half of every pair."""

    grid: tuple[str, ...] = ("right", "left")

    def mask(self, rule: str, pair: Any, gains_only: bool) -> Any:
        return LEFT if rule == "left" else RIGHT


def _pair(name: str, scene: str, truth: Any) -> ScenePair:
    picture = np.zeros((4, 4, 3), np.uint8)
    return ScenePair(name, scene, picture, picture, np.ones((4, 4), bool), truth)


def test_the_scene_measured_has_no_say_in_the_choice_with_all_its_crops():
    pairs = [
        _pair("a", "one", LEFT),
        _pair("b", "two", LEFT),
        _pair("c", "three", RIGHT),
        _pair("d", "three", RIGHT),
        _pair("e", "three", RIGHT),
    ]
    masks, _ = left_out(pairs, [pair.scene for pair in pairs], _Halves(), gains_only=False)  # pyright: ignore[reportArgumentType]
    for mask in masks[2:]:  # both other scenes choose the left half, though most pairs change on the right
        np.testing.assert_array_equal(mask, LEFT)


def test_what_all_scenes_choose_does_not_depend_on_an_unchanged_scene():
    pairs = [_pair("a", "one", LEFT), _pair("b", "two", np.zeros_like(LEFT))]
    assert left_out(pairs, ["one", "two"], _Halves(), gains_only=False)[1] == "left"  # pyright: ignore[reportArgumentType]


def test_the_best_worst_scene_goes_before_the_best_average():
    assert best_of([[0.9, -0.1], [0.2, 0.1], [0.3, 0.1]]) == 2
