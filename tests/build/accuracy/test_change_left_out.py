"""Constants of detect_change are chosen on other scenes than the one they are measured on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agrotools.build.accuracy.detect_change import (
    ROOFS,
    TEXTURE,
    ScenePair,
    best_of,
    left_out,
    read_dsifn,
    read_levir,
)
from agrotools.tools.change.buildings import RoofRule, TextureRule, built_change

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


def test_where_texture_changes_almost_everywhere_nothing_stable_is_left():
    rng = np.random.default_rng(0)
    smooth = np.full((120, 120, 3), 120, np.uint8)
    valid = np.ones((120, 120), bool)
    for share, is_wide in ((0.3, False), (0.7, True)):
        rough = smooth.copy()
        edge = round(120 * share)
        rough[:edge] = rng.integers(60, 180, (edge, 120, 1), np.uint8)
        for first, second in ((smooth, rough), (rough, smooth)):
            assert built_change(first, second, valid, None).has_scene_wide_shift(valid) is is_wide
    assert not built_change(smooth, rough, valid, 0.5).has_scene_wide_shift(valid)


@pytest.mark.slow
def test_the_constants_shipped_are_those_of_the_best_worst_scene(field_data: Path):
    levir, dsifn = read_levir(field_data / "levir_cd"), read_dsifn(field_data / "dsifn_cd")
    for rules, pairs, shipped in ((ROOFS, levir, RoofRule()), (TEXTURE, [*dsifn, *levir], TextureRule())):
        assert left_out(pairs, [pair.scene for pair in pairs], rules, gains_only=True)[1] == shipped
