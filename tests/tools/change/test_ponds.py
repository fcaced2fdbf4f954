import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agrotools_tools.change.ponds import (
    basin_probability,
    channels_of,
    find_water,
    least_area_px,
    pond_change,
    working_shrink,
)

SHAPE = (200, 260)


def fields(seed: int = 0, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    """Bare fields with texture and straight borders, uint8 (rows, columns, 3)."""
    draw = np.random.default_rng(seed)
    tone = np.kron(draw.uniform(0.85, 1.15, (2, 3)), np.ones((shape[0] // 2, shape[1] // 3 + 1)))[
        :, : shape[1]
    ]
    grain = cv2.GaussianBlur(draw.normal(0, 1, shape).astype(np.float32), (0, 0), 1.2) * 22
    picture = np.array([150, 120, 92]) * tone[..., None] + grain[..., None]
    return np.clip(picture, 0, 255).astype(np.uint8)


def ellipse(shape: tuple[int, int] = SHAPE, grow: float = 0.0) -> np.ndarray:
    y, x = np.mgrid[: shape[0], : shape[1]]
    return ((x - 125) / (36 + grow)) ** 2 + ((y - 95) / (26 + grow)) ** 2 <= 1


def with_basin(
    picture: np.ndarray, water: tuple[int, int, int] | None, seed: int = 1
) -> np.ndarray:
    """A basin with a pale bank: full of water of that colour, or dry with a dark floor."""
    draw = np.random.default_rng(seed)
    out = picture.astype(np.float32)
    out[ellipse(grow=7)] = np.array([196, 174, 142]) + draw.normal(
        0, 4, (int(ellipse(grow=7).sum()), 3)
    )
    inside = ellipse()
    colour, noise = (np.array(water), 1.5) if water else (np.array([142, 116, 88]), 12.0)
    out[inside] = colour + draw.normal(0, noise, (int(inside.sum()), 3))
    return np.clip(cv2.GaussianBlur(out, (0, 0), 0.7), 0, 255).astype(np.uint8)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    return (one & other).sum() / (one | other).sum()


WATER = (52, 78, 96)
EVERYWHERE = np.ones(SHAPE, bool)
STATES = {
    "field": fields(3),
    "dry": with_basin(fields(4), None),
    "wet": with_basin(fields(5), WATER),
    "wet again": with_basin(fields(6), (70, 92, 80), 7),
}


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        ("field", "wet", "constructed"), ("wet", "field", "demolished"), ("wet", "dry", "dried"),
        ("dry", "wet", "wetted"), ("wet", "wet again", "none"), ("dry", "dry", "none"),
        ("field", "field", "none"),
    ],
)  # fmt: skip
def test_two_states_of_a_pond_give_the_event_between_them(
    before: str, after: str, event: str
) -> None:
    found = pond_change(STATES[before], STATES[after], EVERYWHERE, gsd_m=0.5)
    assert found.event == event
    for state, mask in ((before, found.water_before), (after, found.water_after)):
        assert overlap(mask, ellipse()) > 0.9 if state.startswith("wet") else not mask.any()
    assert (found.basin_probability is None) == (event == "none")
    assert "water_from_colour_only" in found.flags


@settings(max_examples=3)
@given(gains=st.tuples(*[st.floats(0.92, 1.08)] * 3), bright=st.floats(0.8, 1.15))
def test_white_balance_and_exposure_change_no_event(
    gains: tuple[float, float, float], bright: float
) -> None:
    changed = np.clip(STATES["wet"] * np.array(gains) * bright, 0, 255).astype(np.uint8)
    assert pond_change(STATES["field"], changed, EVERYWHERE, gsd_m=0.5).event == "constructed"
    assert pond_change(changed, STATES["dry"], EVERYWHERE, gsd_m=0.5).event == "dried"


def test_the_event_is_that_of_the_ponds_inside_the_part_asked_about() -> None:
    """Two ponds side by side: one dries up, the other one stays."""
    before = np.hstack([STATES["wet"], STATES["wet again"]])
    after = np.hstack([STATES["dry"], STATES["wet"]])
    everywhere = np.ones(before.shape[:2], bool)
    left, right = everywhere.copy(), everywhere.copy()
    left[:, SHAPE[1] :], right[:, : SHAPE[1]] = False, False
    events = [
        pond_change(before, after, everywhere, gsd_m=0.5, asked=part).event
        for part in (None, left, right)
    ]
    assert events == ["dried", "dried", "none"]


def test_near_infrared_finds_brown_water() -> None:
    """Water of the colour of the fields, which only the near infrared shows."""
    dry = np.full(SHAPE, 170, np.float32)
    infrared = np.where(ellipse(), np.float32(40), dry)
    infrared[:20] = np.nan
    change = pond_change(fields(9), fields(8), EVERYWHERE, infrared=(dry, infrared), gsd_m=0.5)
    assert overlap(change.water_after, ellipse()) > 0.93
    assert not change.water_after[:20].any()
    assert not change.water_before.any()
    assert change.event in ("constructed", None)


def test_small_or_missing_areas_hold_no_water_and_basins_have_banks() -> None:
    assert [least_area_px(*each) for each in ((0.5, None), (None, None), (0.5, 12))] == [
        240,
        80,
        12,
    ]
    assert not find_water(STATES["wet"], EVERYWHERE, min_area_px=6000).mask.any()
    valid = EVERYWHERE.copy()
    valid[:, :125] = False
    assert not (find_water(STATES["wet"], valid, gsd_m=0.5).mask & ~valid).any()
    assert basin_probability(channels_of(STATES["dry"], EVERYWHERE), np.zeros(SHAPE, bool)) == 0.5


def test_fine_pictures_are_compared_at_half_a_metre() -> None:
    fine = [
        cv2.resize(STATES[name], None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
        for name in ("wet", "dry")
    ]
    found = pond_change(fine[0], fine[1], np.ones(fine[0].shape[:2], bool), gsd_m=0.125)
    truth = cv2.resize(ellipse().astype(np.uint8), None, fx=4, fy=4) > 0
    assert (found.event, found.water_before.shape) == ("dried", truth.shape)
    assert overlap(found.water_before, truth) > 0.88
    assert working_shrink((100, 100), 0.5) == working_shrink((100, 100), None) == 1.0
    assert working_shrink((4096, 100), 0.5) == 2.0
