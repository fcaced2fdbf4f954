"""Change on pairs of known content, and on bad input."""

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from rasterio.transform import from_origin

from agrotools.calling import get_tool
from agrotools.calling.result import encode_result
from agrotools_tools.change.result import ChangeResult
from support.picture_files import write_raster
from support.real_pictures import real_pictures
from support.tool_errors import tool_error

UTM = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 10, 10)}
SHAPE = (160, 200)


def changed(before: Any, after: Any, **arguments: Any) -> ChangeResult:
    """Compare two files, pictures or rasters in memory."""
    return get_tool("detect_change")(before, after, **arguments)


def mask_of(result: ChangeResult) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(result.content(result.mask))))


fault = partial(tool_error, changed)


def labels(folder: Path, before: np.ndarray, after: np.ndarray, **place: Any) -> tuple[Path, Path]:
    paths = folder / "before.tif", folder / "after.tif"
    for path, classes in zip(paths, (before, after), strict=True):
        write_raster(path, classes[None], **place)
    return paths


def scrub(seed: int, shape: tuple[int, int] = (256, 256)) -> np.ndarray:
    """Open land from above at 0.5 m: brown, with soft lumps, and with green bushes."""
    draw = np.random.default_rng(seed)
    lumps = cv2.GaussianBlur(draw.normal(0, 1, shape).astype(np.float32), (0, 0), 6) * 60
    picture = (
        np.array([140, 118, 88], np.float32) + lumps[..., None] + draw.normal(0, 3, (*shape, 3))
    )
    bushes = cv2.GaussianBlur(draw.normal(0, 1, shape).astype(np.float32), (0, 0), 5) > 0.1
    picture[bushes] = np.array([60, 85, 45]) + draw.normal(0, 6, (int(bushes.sum()), 3))
    return np.clip(picture, 0, 255).astype(np.uint8)


def test_label_rasters_give_the_whole_matrix(tmp_path: Path) -> None:
    before = np.array([[1, 1, 1, 2], [1, 2, 2, 3]], np.uint8)
    after = np.array([[1, 2, 2, 2], [2, 1, 2, 3]], np.uint8)
    names = {"cropland": [1], "building": [2], "water": [3]}
    result = changed(*labels(tmp_path, before, after, **UTM), label_map=names)
    assert (result.changed, result.dominant_transition) == (True, "cropland->building")
    assert (result.change_px, result.total_px, result.change_pct) == (4, 8, 50.0)
    assert (result.change_area_m2, result.change_area_ha) == (
        pytest.approx(400),
        pytest.approx(0.04),
    )
    assert encode_result(result)[0]["transitions"] == [
        {"from": "cropland", "to": "building", "px": 3, "pct": 37.5, "area_ha": 0.03},
        {"from": "building", "to": "cropland", "px": 1, "pct": 12.5, "area_ha": 0.01},
    ]
    matrix = result.transition_matrix
    assert (matrix.classes, matrix.px) == (
        ("cropland", "building", "water"),
        ((1, 3, 0), (1, 2, 0), (0, 0, 1)),
    )
    assert matrix.ha[0][1] == pytest.approx(0.03)
    assert (result.gain_px, result.loss_px) == (None, None)


def test_masks_of_one_thing_have_a_direction() -> None:
    before = np.zeros((6, 6, 3), np.uint8)
    first, second = np.zeros((6, 6), np.uint8), np.zeros((6, 6), np.uint8)
    first[:3, :2] = 1
    second[1:5, :2] = 255  # each date with a number of its own
    result = changed(before, before, target="pond", before_mask=first, after_mask=second)
    assert (result.gain_px, result.loss_px, result.change_px) == (4, 2, 6)
    assert result.dominant_transition == "other->water"
    assert (result.pond.event, result.pond.area_before_px, result.pond.area_after_px) == (
        None,
        6,
        8,
    )
    assert result.pond.delta_pct == pytest.approx(100 / 3)
    assert (mask_of(result)[:, 0] == [2, 0, 0, 1, 1, 0]).all()
    swapped = changed(before, before, before_mask=second, after_mask=first)
    assert (swapped.gain_px, swapped.loss_px) == (2, 4)
    empty = np.zeros((6, 6), np.uint8)
    nothing = changed(before, before, target="pond", before_mask=empty, after_mask=empty)
    assert (nothing.changed, nothing.pond.event) == (False, "none")


def test_names_known_of_the_files(tmp_path: Path) -> None:
    before, after = labels(tmp_path, np.array([[1, 9]], np.uint8), np.array([[2, 2]], np.uint8))
    classes = {"1": "cropland", "2": "building", "9": "ignore"}
    for path in (before, after):
        sidecar = path.with_name(f"{path.name}.meta.json")
        sidecar.write_text(json.dumps({"kind": "mask", "classes": classes, "gsd_m": 2.0}))
    result = changed(before, after)
    assert result.dominant_transition == "cropland->building"
    assert (result.total_px, result.change_area_m2) == (1, 4.0)
    sidecar.write_text(json.dumps({"kind": "mask", "classes": {"1": "building"}}))
    assert fault(before, after).argument == "label_map"


def test_areas_and_regions_of_label_rasters(tmp_path: Path) -> None:
    after = np.zeros((20, 20), np.uint8)
    after[2, 2] = after[10:14, 10:14] = 1
    pair = labels(tmp_path, np.zeros((20, 20), np.uint8), after, **UTM)
    assert changed(*pair, method="mask_diff").change_px == 17
    assert changed(*pair, method="mask_diff", min_area_px=2).change_px == 16
    result = changed(*pair, method="mask_diff", min_area_m2=1700)
    assert (result.changed, result.change_px) == (False, 0)
    assert sum(map(sum, result.transition_matrix.px if result.transition_matrix else ())) == 400
    draw = np.random.default_rng(0)
    before, after = (draw.integers(0, 3, (40, 60)).astype(np.uint8) for _ in range(2))
    parts = [changed(before, after, method="mask_diff", region=[x, 0, x + 30, 40]) for x in (0, 30)]
    assert sum(part.change_px for part in parts) == int((before != after).sum())
    assert (mask_of(parts[1])[:, :30] == 255).all()
    assert fault(before, after, method="mask_diff", region=[100, 0, 130, 40]).kind == "region_empty"


def test_the_second_raster_comes_onto_the_grid_of_the_first(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    before, after = (draw.integers(0, 3, (30, 40)).astype(np.uint8) for _ in range(2))
    first = write_raster(tmp_path / "a.tif", before[None], **UTM)
    # The second is finer and begins 50 m further east: the first five columns have no partner.
    fine = after[:, 5:].repeat(2, 0).repeat(2, 1)
    second = write_raster(
        tmp_path / "b.tif", fine[None], **UTM | {"transform": from_origin(500_050, 5_000_000, 5, 5)}
    )
    result = changed(first, second, method="mask_diff")
    assert result.total_px == 30 * 35
    assert result.change_px == int((before != after)[:, 5:].sum())
    assert "resampled_to_before" in result.flags
    assert (mask_of(result)[:, :5] == 255).all()


def test_ndvi_gain_and_loss() -> None:
    before = np.full(SHAPE, 0.7, np.float32)
    after = before.copy()
    after[:40, :50] = 0.2
    after[100:120, 100:120] = 0.95
    before[150:, :] = np.nan
    after[:, 190:] = -9999
    pair = before, after
    result = changed(*pair, target="vegetation", bands={"NDVI": 1}, threshold=0.2, gsd_m=10)
    assert result.total_px == 150 * 190
    assert (result.loss_px, result.gain_px, result.change_px) == (2000, 400, 2400)
    assert result.loss_area_m2 == pytest.approx(200_000)
    assert result.changed is True
    assert "phenology_risk" in result.flags
    assert (result.vegetation.index, result.vegetation.threshold) == ("ndvi", 0.2)
    assert result.vegetation.mean_before == pytest.approx(0.7)
    found = changed(*pair, target="vegetation", bands={"ndvi": 1})
    assert (found.loss_px, found.gain_px) == (2000, 400)
    back = changed(*reversed(pair), target="vegetation", bands={"NDVI": 1}, threshold=0.2)
    assert (back.loss_px, back.gain_px) == (400, 2000)


def test_ndvi_of_bands(tmp_path: Path) -> None:
    red, infrared = np.full(SHAPE, 400, np.uint16), np.full(SHAPE, 4000, np.uint16)
    bare = infrared.copy()
    bare[:80] = 500
    names = ("red", "nir")
    first = write_raster(tmp_path / "a.tif", np.stack([red, infrared]), names, **UTM)
    second = write_raster(tmp_path / "b.tif", np.stack([red, bare]), names, **UTM)
    result = changed(first, second, target="vegetation")
    assert (result.loss_px, result.gain_px) == (80 * 200, 0)
    swapped = {"R": 2, "NIR": 1}
    assert changed(first, second, target="vegetation", bands=swapped).gain_px == 80 * 200
    assert fault(red, red, target="vegetation").kind == "band_not_found"


def test_classes_heights_and_whole_seasons_give_no_change_of_plants() -> None:
    draw = np.random.default_rng(0)
    for values in (draw.integers(0, 9, SHAPE).astype(np.uint8), draw.normal(400, 20, SHAPE)):
        error = fault(values, values, target="vegetation", bands={"NDVI": 1})
        assert (error.kind, error.argument) == ("invalid_argument", "bands")
    result = changed(
        np.full(SHAPE, 0.8), np.full(SHAPE, 0.2), target="vegetation", bands={"NDVI": 1}
    )
    assert (result.changed, result.change_pct) == (None, 100.0)
    assert {"scene_wide_shift", "phenology_risk"} <= set(result.flags)


def test_plant_cover_of_photographs() -> None:
    draw = np.random.default_rng(0)
    before = np.clip(np.array([120, 95, 75]) + draw.normal(0, 5, (*SHAPE, 3)), 0, 255).astype(
        np.uint8
    )
    before[40:80, 40:120] = (60, 150, 50)
    after = before.copy()
    after[40:80, 80:120] = (120, 95, 75)
    result = changed(before, after, target="vegetation", register=False)
    assert (result.loss_px, result.gain_px) == (pytest.approx(1600, rel=0.1), 0)
    assert result.vegetation.cover_before_pct == pytest.approx(10, abs=0.6)
    assert result.dominant_transition == "plants->no plants"


def test_photographs_give_no_map_of_buildings() -> None:
    before, after = scrub(1), scrub(2)
    for arguments in ({}, {"target": "farmland", "gsd_m": 10}):
        result = changed(before, after, **arguments)
        assert result.changed is None
        assert "buildings_not_mapped" in result.flags
        assert (result.change_px, result.change_pct, result.gain_px, result.loss_px) == (None,) * 4
        assert (result.transitions, result.transition_matrix, result.total_px) == (
            (),
            None,
            256 * 256,
        )
        assert (mask_of(result) == 255).all()
        part = changed(before, after, region=[0, 0, 10, 10], **arguments)
        assert (part.change_px, part.total_px) == (None, 100)


def test_a_picture_does_not_differ_from_itself_and_a_shift_is_undone() -> None:
    after = scrub(2)
    for target in ("any", "farmland", "vegetation", "pond"):
        result = changed(after, after, target=target, gsd_m=0.5)
        assert (result.changed, result.change_px, result.registration_shift_px) == (
            False,
            0,
            (0, 0),
        )
    moved = np.roll(after, (4, -6), (0, 1))
    result = changed(after, moved, gsd_m=0.5)
    assert (result.registration_shift_px, result.change_px) == (pytest.approx((-6, 4), abs=0.1), 0)
    assert result.total_px == (256 - 6) * (256 - 4)
    assert fault(after, np.roll(after, 30, 1)).kind == "shape_mismatch"


def test_a_shift_that_is_left_is_said() -> None:
    before = scrub(2)
    moved = np.roll(before, (4, -6), (0, 1))
    left = changed(before, moved, target="vegetation", register=False)
    assert left.registration_shift_px is None
    assert "shift_not_undone" in left.flags
    assert "registration_uncertain" not in left.flags
    assert any("lies -6, 4 px off" in note for note in left.notes)
    far = changed(before, np.roll(before, 30, 1), target="vegetation", register=False)
    assert "registration_uncertain" in far.flags
    assert far.changed is None
    same = changed(before, before, target="vegetation", register=False)
    assert (same.changed, same.change_px) == (False, 0)
    assert not {"shift_not_undone", "registration_uncertain"} & set(same.flags)


@pytest.mark.parametrize("register", [True, False])
def test_pictures_of_different_ground_carry_a_doubt(register: bool) -> None:
    result = changed(scrub(1), scrub(2), target="vegetation", register=register)
    assert result.change_pct is not None
    assert "registration_uncertain" in result.flags
    assert result.changed is None


def test_dark_and_empty_pictures_give_no_answer() -> None:
    dusk = (scrub(1) // 25).astype(np.uint8)
    dusk[:40, :40] = 60
    grey = np.full((256, 256, 3), 128, np.uint8)
    grey[:4, :4] = 160
    for target in ("any", "vegetation"):
        for other, flag in ((dusk, "too_dark"), (grey, "featureless_image")):
            result = changed(scrub(1), other, target=target)
            assert (flag in result.flags, result.changed) == (True, None)


def test_water_in_multi_band_rasters(tmp_path: Path) -> None:
    dry = {"green": 900, "red": 1400, "nir": 2000}
    wet = {"green": 800, "red": 500, "nir": 300}
    before = np.stack([np.full(SHAPE, dry[band], np.uint16) for band in dry])
    after = before.copy()
    for place, band in enumerate(wet):
        after[place, 20:60, 20:80] = wet[band]
    pair = [
        write_raster(tmp_path / f"{k}.tif", bands, tuple(dry), **UTM)
        for k, bands in enumerate((before, after))
    ]
    result = changed(*pair, target="pond")
    assert result.gain_px == 40 * 60
    assert (result.pond.event, result.pond.delta_pct) == (None, None)
    land = changed(*pair, target="any")
    assert (land.dominant_transition, land.changed) == ("bare or built-up->water", None)
    names = ("blue", *dry)
    pair = [
        write_raster(
            tmp_path / f"colours_{k}.tif", np.concatenate([bands[:1], bands]), names, **UTM
        )
        for k, bands in enumerate((before, after))
    ]
    in_colours = changed(*pair, target="pond")
    assert in_colours.gain_px == pytest.approx(40 * 60, rel=0.1)
    assert "water_from_colour_only" not in in_colours.flags


def test_faults_are_typed(tmp_path: Path) -> None:
    one, other, text = scrub(1, (40, 50)), scrub(1, (50, 40)), tmp_path / "c.png"
    text.write_text("no picture")
    for after, arguments, kind, argument in (
        (other, {}, "shape_mismatch", "after"),
        (text, {}, "unreadable_file", "after"),
        (one, {"before_mask": one}, "invalid_argument", "after_mask"),
        (one, {"target": "pond", "method": "post_class"}, "invalid_argument", "method"),
        (one, {"target": "vegetation", "min_area_m2": 5}, "missing_metadata", "gsd_m"),
        (one, {"region": [60, 0, 90, 20]}, "region_empty", "region"),
        (one, {"method": "mask_diff"}, "unreadable_file", "before"),
    ):
        error = fault(one, after, **arguments)
        assert (error.kind, error.argument) == (kind, argument)


def test_no_data_at_all() -> None:
    empty, full = np.full(SHAPE, np.nan), np.ones(SHAPE)
    for arguments in ({"target": "vegetation", "bands": {"NDVI": 1}}, {"method": "mask_diff"}, {}):
        for pair in ((empty, full), (full, empty)):
            assert fault(*pair, **arguments).kind == "nothing_found"
    alpha = np.zeros((30, 30, 4), np.uint8)
    alpha[:15, :, 3] = 255
    assert fault(alpha, alpha[::-1]).kind == "nothing_found"
    assert changed(alpha, alpha).total_px == 450


def test_photographs_of_two_fields_carry_a_doubt_and_one_with_itself_none(field_data: Path) -> None:
    first, second = real_pictures(field_data, "cwfid", 2)
    for register in (True, False):
        apart = changed(first, second, target="vegetation", register=register)
        assert "registration_uncertain" in apart.flags
        same = changed(first, first, target="vegetation", register=register)
        assert "registration_uncertain" not in same.flags
