import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agrotools_tools.vision.vegetation import (
    Vegetation,
    choose_index,
    doubt_of_cover,
    index_values,
    otsu_threshold,
    segment,
)
from support.picture_files import CROP, SOIL, discs, field, noisy

PLANTS = discs((240, 320), [(60, 60), (200, 100), (120, 190), (280, 200)], 24)


def plants_in(pixels: np.ndarray, index: str = "lab_a") -> Vegetation:
    return segment(index, {"R": pixels[..., 0], "G": pixels[..., 1], "B": pixels[..., 2]}, None)  # type: ignore[arg-type]


def iou(first: np.ndarray, second: np.ndarray) -> float:
    return float((first & second).sum() / (first | second).sum())


def test_indices_of_known_values() -> None:
    bands = {
        name: np.array([[value]], np.float32)
        for name, value in {"R": 40.0, "G": 120.0, "B": 40.0, "RE": 60.0, "NIR": 160.0}.items()
    }
    assert index_values("exg", bands)[0, 0] == pytest.approx(0.8)
    assert index_values("exgr", bands)[0, 0] == pytest.approx(0.8 - (1.4 * 0.2 - 0.6))
    assert index_values("cive", bands)[0, 0] == pytest.approx(
        0.811 * 120 - 0.441 * 40 - 0.385 * 40 - 18.78745
    )
    assert index_values("ndvi", bands)[0, 0] == pytest.approx(0.6)
    assert index_values("gndvi", bands)[0, 0] == pytest.approx(40 / 280)
    assert index_values("ndre", bands)[0, 0] == pytest.approx(100 / 220)
    # CIE L*a*b* of sRGB (40, 120, 40), D65, by the formulas of the standard
    assert index_values("lab_a", bands)[0, 0] == pytest.approx(40.9, abs=0.3)


@pytest.mark.parametrize(
    ("bands", "index"),
    [
        ("R G B", "lab_a"),
        ("NIR R", "ndvi"),
        ("R G B NIR RE", "ndvi"),
        ("NIR G", "gndvi"),
        ("NIR RE", "ndre"),
    ],
)
def test_auto_takes_the_best_that_the_bands_allow(bands: str, index: str) -> None:
    assert choose_index("auto", dict.fromkeys(bands.split())) == index  # type: ignore[arg-type]


def test_otsu_parts_two_levels_and_agrees_with_scikit_image() -> None:
    from skimage.filters import threshold_otsu

    draw = np.random.default_rng(0)
    sample = np.concatenate([draw.normal(0, 1, 9000), draw.normal(9, 2, 1000)]).astype(np.float32)
    assert otsu_threshold(sample) == pytest.approx(threshold_otsu(sample, nbins=512), abs=0.05)
    assert otsu_threshold(np.full(10, 3, np.float32)) == 3


@pytest.mark.parametrize("index", ["lab_a", "exg", "exgr", "cive"])
def test_plants_of_known_area_are_found(index: str) -> None:
    found = plants_in(field(PLANTS), index)
    assert iou(found.mask, PLANTS) > 0.96
    assert found.flags == ()
    assert abs(found.mask.mean() - PLANTS.mean()) < 0.005


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("colour", "share", "flag"), [(SOIL, 0, "no_vegetation"), (CROP, 1, "no_soil_visible")]
)
def test_bare_soil_and_a_closed_canopy_are_not_split(colour, share, flag, seed: int) -> None:
    found = plants_in(noisy(colour, (200, 300), seed, sigma=9))
    assert (found.mask.mean(), found.flags, found.threshold) == (share, (flag,), None)


def test_few_plants_on_much_soil_are_found() -> None:
    mask = discs((600, 800), [(400, 300)], 7)  # 0.03 % of the picture
    found = plants_in(field(mask))
    assert found.flags == ("sparse_vegetation",)
    assert iou(found.mask, mask) > 0.8


def test_specks_and_pinholes_are_taken_out() -> None:
    mask = PLANTS.copy()
    mask[100, 20], mask[60, 60] = True, False
    found = plants_in(field(mask))
    assert not found.mask[96:104, 16:24].any()
    assert found.mask[60, 60]


@settings(max_examples=15)
@given(st.floats(0.45, 1.3))
def test_exposure_hardly_changes_the_area(gain: float) -> None:
    pixels = np.clip(field(PLANTS).astype(float) * gain, 0, 255).astype(np.uint8)
    assert plants_in(pixels).mask.mean() == pytest.approx(PLANTS.mean(), rel=0.04)


def test_no_plants_are_believed_on_soil_in_even_light() -> None:
    for pixels in (noisy(SOIL, (120, 160)), noisy((128, 126, 122), (120, 160)), field(PLANTS)):
        assert doubt_of_cover(pixels, plants_in(pixels)) is None


@pytest.mark.parametrize(
    ("ground", "why"),
    [
        ((24, 20, 14), "shade"),
        ((150, 100, 140), "cast"),
        ((100, 110, 150), "cast"),
        ((120, 128, 110), "greenish"),
    ],
)
def test_no_plants_are_not_believed_where_they_would_not_be_seen(
    ground: tuple[int, int, int], why: str
) -> None:
    pixels = noisy(ground, (120, 160))
    plants = plants_in(pixels)
    assert plants.flags == ("no_vegetation",)
    assert why in (doubt_of_cover(pixels, plants) or "")


def test_an_index_is_zero_where_both_bands_are() -> None:
    zero = np.zeros((2, 2), np.uint16)
    assert (index_values("ndvi", {"NIR": zero, "R": zero}) == 0).all()
