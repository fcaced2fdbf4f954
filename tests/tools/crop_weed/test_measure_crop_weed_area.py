"""The area tool on made-up pictures of known content, on bad input, and on real photographs where they are at hand."""

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from rasterio.transform import from_origin

from agrotools.calling import get_tool
from agrotools.calling.workspace import CallContext, artifacts_in, call_context
from agrotools.core import SampleFile, ToolError
from agrotools_tools.crop_weed.bands import rank_triplets
from agrotools_tools.crop_weed.measure import find_rows
from agrotools_tools.crop_weed.result import CropWeedArea
from support.picture_files import CROP, SOIL, discs, field, noisy, planted_rows, write_raster
from support.tool_errors import tool_error

SHAPE = (240, 320)
BANDS = ("B", "G", "R", "RE", "NIR")
PLANTS = discs(SHAPE, [(60, 60), (200, 100), (120, 190), (280, 200)], 24)


def measured(image: Path, **arguments: Any) -> CropWeedArea:
    with artifacts_in(image.parent / "made"):
        return get_tool("measure_crop_weed_area")(image, **arguments)


def mask_of(image: Path, result: CropWeedArea) -> np.ndarray:
    return np.asarray(Image.open(image.parent / "made" / result.mask.name))


fault = partial(tool_error, measured)


def photo(folder: Path, pixels: np.ndarray, name: str = "image_1.png") -> Path:
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def reflectance(mask: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Reflectance x 10,000 of plants and soil in five bands, uint16."""
    draw = np.random.default_rng(seed)
    levels = {
        "B": (400, 800),
        "G": (900, 1100),
        "R": (500, 1400),
        "RE": (2200, 1700),
        "NIR": (4500, 2000),
    }
    return {
        band: np.clip(np.where(mask, plant, soil) + draw.normal(0, 60, mask.shape), 1, None).astype(
            np.uint16
        )
        for band, (plant, soil) in levels.items()
    }


def bands_raster(
    path: Path, mask: np.ndarray, names: tuple[str, ...] = ("B", "G", "R", "RE", "NIR"), **more: Any
) -> Path:
    values = reflectance(mask)
    return write_raster(
        path, np.stack([values[band] for band in ("B", "G", "R", "RE", "NIR")]), names, **more
    )


def test_scattered_plants_and_regions_of_a_photograph(tmp_path: Path) -> None:
    image = photo(tmp_path, field(PLANTS))
    result = measured(image)
    assert result.total_px == PLANTS.size
    assert result.veg_px + result.soil_px == result.total_px
    assert result.veg_pct == pytest.approx(100 * PLANTS.mean(), rel=0.02)
    assert (result.index, result.method) == ("lab_a", "none")
    assert (result.crop_px, result.weed_px, result.crop_pct, result.weed_share_of_veg_pct) == (
        None,
    ) * 4
    assert {"crop_weed_not_separated", "no_scale"} <= set(result.flags)
    assert result.area_m2 is None
    mask = mask_of(image, result)
    assert np.unique(mask).tolist() == [0, 3]
    assert np.count_nonzero(mask == 3) == result.veg_px
    whole = mask_of(image, measured(image))
    result = measured(image, region=[100, 40, 260, 220])
    assert result.total_px == 160 * 180
    assert result.veg_px == np.count_nonzero(whole[40:220, 100:260] == 3)
    assert (mask_of(image, result)[:40] == 255).all()
    parts = [measured(image, region=[x, 0, x + 160, 240]).veg_px for x in (0, 160)]
    assert sum(parts) == np.count_nonzero(whole == 3)
    clipped = measured(image, region=[-50, -50, 100, 1000])
    assert clipped.total_px == 100 * 240
    assert "region_clipped" in clipped.flags
    assert fault(image, region=[400, 0, 500, 100]).kind == "region_empty"


def test_rows_part_crop_from_weeds_with_evidence_and_a_mask(tmp_path: Path) -> None:
    crop, weeds = planted_rows()
    image = photo(tmp_path, field(crop | weeds))
    for separation in ("auto", "row"):
        result = measured(image, separation=separation, gsd_m=0.002)
        assert result.method == "row"
        assert result.crop_px == pytest.approx(crop.sum(), rel=0.05)
        assert result.weed_px == pytest.approx(weeds.sum(), rel=0.15)
        assert result.crop_px + result.weed_px == result.veg_px
        assert result.weed_to_crop_ratio == pytest.approx(result.weed_px / result.crop_px)
        assert result.weed_share_of_veg_pct == pytest.approx(100 * result.weed_px / result.veg_px)
        assert result.row.spacing_px == pytest.approx(60, rel=0.03)
        assert result.area_m2.total == pytest.approx(0.6 * 0.8)
        assert result.area_m2.crop == pytest.approx(result.crop_px * 4e-6)
        assert "no_scale" not in result.flags
    assert measured(image, separation="none").crop_px is None
    unparted = measured(image, separation="model")
    assert unparted.crop_px is None
    rows = measured(photo(tmp_path, field(crop | weeds)), separation="auto", gsd_m=0.01).row
    assert rows.peak_ratio >= 3
    assert rows.repeat >= 0.5
    assert rows.accord >= 0.6
    assert rows.spacing_m == pytest.approx(0.01 * rows.spacing_px)
    assert abs(rows.angle_deg) == pytest.approx(90, abs=1)
    scattered = measured(photo(tmp_path, field(PLANTS), "scattered.png"))
    assert scattered.row is None
    assert "weak_row_evidence" in scattered.flags
    first = measured(image)
    again = measured(
        image,
        label_raster=tmp_path / "made" / first.mask.name,
        label_map={"crop": [1], "weed": [2], "soil": [0]},
    )
    assert (again.crop_px, again.weed_px, again.soil_px) == (
        first.crop_px,
        first.weed_px,
        first.soil_px,
    )


def test_bare_soil_and_closed_canopies_are_counted(tmp_path: Path) -> None:
    result = measured(photo(tmp_path, noisy(SOIL, SHAPE)))
    assert (result.veg_px, result.crop_px, result.weed_px) == (0, 0, 0)
    assert (result.weed_share_of_veg_pct, result.weed_to_crop_ratio) == (None, None)
    assert "no_vegetation" in result.flags
    result = measured(photo(tmp_path, noisy(CROP, SHAPE)))
    assert result.soil_px == 0
    assert "no_soil_visible" in result.flags


@pytest.mark.parametrize("ground", [(24, 20, 14), (150, 100, 140)])
def test_plants_that_may_be_hidden_are_refused_not_zero(
    tmp_path: Path, ground: tuple[int, int, int]
) -> None:
    with pytest.raises(ToolError) as caught:
        measured(photo(tmp_path, noisy(ground, SHAPE)))
    assert caught.value.kind == "low_confidence"
    assert caught.value.hint


def test_false_colour_is_pointed_out(tmp_path: Path) -> None:
    pixels = field(PLANTS)
    pixels[..., 2] = pixels[..., 0]
    assert "false_colour_suspected" in measured(photo(tmp_path, pixels)).flags
    told = measured(photo(tmp_path, pixels), bands={"R": 1, "NIR": 2})
    assert told.index == "ndvi"
    assert "false_colour_suspected" not in told.flags
    assert told.veg_pct == pytest.approx(100 * PLANTS.mean(), rel=0.02)


def test_transparent_parts_and_black_margins_are_no_soil(tmp_path: Path) -> None:
    alpha = np.full(SHAPE, 255, np.uint8)
    alpha[:, :80] = 0
    result = measured(photo(tmp_path, np.dstack([field(PLANTS), alpha]), "alpha.png"))
    assert result.total_px == 240 * 240
    pixels = field(PLANTS)
    pixels[:60] = 0
    result = measured(photo(tmp_path, pixels, "margin.png"))
    assert result.total_px == 320 * 180


@pytest.mark.parametrize(
    ("index", "used"),
    [("auto", "ndvi"), ("ndre", "ndre"), ("gndvi", "gndvi"), ("exg", "exg"), ("lab_a", "lab_a")],
)
def test_a_raster_with_named_bands(tmp_path: Path, index: str, used: str) -> None:
    path = bands_raster(tmp_path / "bands_1.tif", PLANTS)
    result = measured(path, index=index)
    assert result.index == used
    assert result.veg_pct == pytest.approx(100 * PLANTS.mean(), rel=0.03)


def test_a_band_dictionary_says_which_band_is_which(tmp_path: Path) -> None:
    path = bands_raster(tmp_path / "bands_1.tif", PLANTS, names=())
    error = fault(path)
    assert error.kind == "band_not_found"
    assert measured(path, bands={"R": 3, "NIR": 5}).veg_pct == pytest.approx(
        100 * PLANTS.mean(), rel=0.03
    )
    assert fault(path, bands={"R": 3, "NIR": 6}).kind == "band_not_found"
    assert fault(path, bands={"R": 3}).kind == "band_not_found"
    assert fault(path, bands={"R": 3, "NIR": 5}, index="ndre").candidates == ("ndvi",)
    assert fault(path, bands={"SWIR": 3}).kind == "invalid_argument"


def test_a_raster_knows_its_scale(tmp_path: Path) -> None:
    place = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.05, 0.05)}
    path = bands_raster(tmp_path / "bands_1.tif", PLANTS, **place)
    result = measured(path)
    assert (result.gsd_m, result.area_m2.total) == (pytest.approx(0.05), pytest.approx(12 * 16))
    other = measured(path, gsd_m=0.1)
    assert other.gsd_m == 0.1
    assert "gsd_differs_from_file" in other.flags


def test_no_data_in_a_raster_does_not_count(tmp_path: Path) -> None:
    values = reflectance(PLANTS)
    stack = np.stack([values["R"], values["NIR"]])
    stack[:, :, :100] = 0
    path = write_raster(tmp_path / "a.tif", stack, ("red", "nir"), nodata=0)
    assert measured(path).total_px == 240 * 220
    empty = write_raster(tmp_path / "b.tif", np.zeros_like(stack), ("red", "nir"), nodata=0)
    assert fault(empty).kind == "nothing_found"
    assert fault(path, region=[0, 0, 90, 90]).kind == "region_empty"


def test_of_a_huge_raster_a_region_is_enough(tmp_path: Path) -> None:
    import rasterio

    path = tmp_path / "bands_1.tif"
    profile = {
        "driver": "GTiff",
        "dtype": "uint16",
        "count": 2,
        "width": 30_000,
        "height": 30_000,
        "tiled": True,
    }
    values = reflectance(PLANTS)
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning):
        file = rasterio.open(path, "w", sparse_ok=True, **profile)
    with file:
        file.write(np.stack([values["R"], values["NIR"]]), window=((5000, 5240), (7000, 7320)))
    bands = {"R": 1, "NIR": 2}
    assert fault(path, bands=bands).kind == "limit"
    result = measured(path, bands=bands, region=[7000, 5000, 7320, 5240])
    assert result.total_px == PLANTS.size
    assert result.veg_pct == pytest.approx(100 * PLANTS.mean(), rel=0.03)


def test_bands_are_ranked_by_the_classes_that_were_found(tmp_path: Path) -> None:
    result = measured(bands_raster(tmp_path / "bands_1.tif", PLANTS))
    ranking = result.separability
    assert (ranking.classes_from, set(ranking.classes), len(ranking.triplets)) == (
        "index",
        {"plants", "soil"},
        10,
    )
    assert all(0 <= one.min_jm <= 2 for one in ranking.triplets)
    assert ranking.ranked_by == "expected_accuracy"
    accuracies = [one.expected_accuracy for one in ranking.triplets]
    assert accuracies == sorted(accuracies, reverse=True)
    assert 0.5 <= accuracies[0] <= 1
    assert ranking.triplets[0].tied
    assert ranking.ties == sum(one.tied for one in ranking.triplets)
    assert "separability_from_own_classes" in result.flags
    two = write_raster(
        tmp_path / "two.tif",
        np.stack([reflectance(PLANTS)[band] for band in ("R", "NIR")]),
        ("R", "NIR"),
    )
    assert measured(two).separability is None
    assert measured(photo(tmp_path, field(PLANTS))).separability is None


def test_bands_are_ranked_by_the_classes_of_a_label_raster(tmp_path: Path) -> None:
    """Weeds differ from crop in the red edge alone, so the best triplets hold it."""
    weeds = discs(SHAPE, [(200, 100), (280, 200)], 24)
    values = reflectance(PLANTS)
    values["RE"] = np.where(weeds, values["RE"] + 900, values["RE"]).astype(np.uint16)
    path = write_raster(tmp_path / "bands_1.tif", np.stack([values[band] for band in BANDS]), BANDS)
    Image.fromarray(PLANTS.astype(np.uint8) + weeds).save(tmp_path / "labels_1.png")
    meaning = {"soil": [0], "crop": [1], "weed": [2]}
    result = measured(path, label_raster=tmp_path / "labels_1.png", label_map=meaning)
    assert result.separability.classes_from == "labels"
    assert all("RE" in one.bands for one in result.separability.triplets[:6])
    assert all(one.worst_pair == "crop/weed" for one in result.separability.triplets[6:])
    assert "separability_from_own_classes" not in result.flags
    named = measured(
        path,
        label_raster=tmp_path / "labels_1.png",
        label_map=meaning,
        bands={"R": 3, "G": 2, "NIR": 5},
    )
    assert [set(one.bands) for one in named.separability.triplets] == [{"R", "G", "NIR"}]
    corner = measured(
        path, label_raster=tmp_path / "labels_1.png", label_map=meaning, region=[0, 0, 20, 20]
    )
    assert corner.separability is None


def test_a_large_raster_is_counted_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bands_raster(tmp_path / "bands_1.tif", PLANTS, tiled=True, blockxsize=64, blockysize=64)
    whole = measured(path, separation="none", gsd_m=0.5)
    monkeypatch.setattr("agrotools_tools.crop_weed.large_rasters.WHOLE_PX", 10_000)
    monkeypatch.setattr("agrotools.calling.pictures.WHOLE_PX", 10_000)
    monkeypatch.setattr("agrotools_tools.crop_weed.large_rasters.LONGEST_SIDE", 80)
    large = measured(path, gsd_m=0.5)
    assert (large.total_px, large.veg_px) == (whole.total_px, pytest.approx(whole.veg_px, rel=0.01))
    assert large.veg_px + large.soil_px == large.total_px
    assert large.crop_px is None
    assert "crop_weed_not_separated" in large.flags
    assert mask_of(path, large).shape == (60, 80)
    assert large.area_m2.total == pytest.approx(240 * 320 * 0.25)
    assert measured(path, separation="none", region=[0, 0, 80, 100]).total_px == 8000
    halves = [
        measured(path, separation="none", region=[x, 0, x + 160, 240]).veg_px for x in (0, 160)
    ]
    assert sum(halves) == pytest.approx(whole.veg_px, rel=0.02)
    assert fault(path, region=[400, 0, 500, 100]).kind == "region_empty"
    partly = measured(path, bands={"R": 3}, separation="none")  # the file says which is NIR
    assert partly.veg_px == large.veg_px
    assert fault(path, bands={"R": 9}).kind == "band_not_found"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    classes=arrays(np.uint8, (12, 17), elements=st.integers(0, 4)),
    palette=st.booleans(),
    box=st.booleans(),
)
def test_label_rasters_are_counted_exactly(
    tmp_path: Path, classes: np.ndarray, palette: bool, box: bool
) -> None:
    stored = Image.fromarray(classes)
    if palette:
        stored = stored.convert("P")
        stored.putpalette(bytes(range(255, -1, -1)) * 3)
    stored.save(tmp_path / "labels.png")
    region = [2, 3, 15, 11] if box else None
    label_map = {"crop": [1, 4], "weed": [2], "soil": [0]}
    result = measured(tmp_path / "labels.png", label_map=label_map, region=region)
    part = classes[3:11, 2:15] if box else classes
    assert result.total_px == part.size
    assert result.crop_px == np.count_nonzero((part == 1) | (part == 4))
    assert result.weed_px == np.count_nonzero(part == 2)
    assert result.soil_px == np.count_nonzero(part == 0)
    assert (result.veg_px, result.method, result.index) == (
        result.crop_px + result.weed_px,
        "labels",
        None,
    )
    assert ("unnamed_classes" in result.flags) == bool((classes == 3).any())


def test_a_label_raster_beside_its_image(tmp_path: Path) -> None:
    image = photo(tmp_path, field(PLANTS))
    Image.fromarray(PLANTS.astype(np.uint8) * 2).save(tmp_path / "labels_1.png")
    labels = tmp_path / "labels_1.png"
    result = measured(image, label_raster=labels, label_map={"weed": [2]})
    assert result.weed_px == PLANTS.sum()
    assert result.crop_px == 0
    assert fault(image, label_raster=labels).kind == "missing_metadata"
    assert fault(image, label_raster=labels, label_map={"maize": [1]}).kind == "invalid_argument"
    assert (
        fault(image, label_raster=labels, label_map={"crop": [2], "weed": [2]}).kind
        == "invalid_argument"
    )
    assert fault(image, label_raster=image, label_map={"weed": [2]}).kind == "unreadable_file"
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(tmp_path / "small.png")
    assert (
        fault(image, label_raster=tmp_path / "small.png", label_map={"weed": [2]}).kind
        == "shape_mismatch"
    )


def test_what_is_known_of_a_mask_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "labels_1.png"
    Image.fromarray(PLANTS.astype(np.uint8)).save(path)
    known = SampleFile(
        name="labels_1.png",
        path=str(path),
        kind="mask",
        classes={"0": "soil", "1": "crop"},
        gsd_m=0.01,
    )
    with call_context(CallContext(keep=lambda artifact, _: artifact, infos={path: known})):
        result = get_tool("measure_crop_weed_area")(path)
    assert result.crop_px == PLANTS.sum()
    assert result.area_m2.crop == pytest.approx(PLANTS.sum() * 1e-4)


def test_a_large_colour_raster_without_data_in_a_part_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.moveaxis(field(PLANTS), -1, 0).copy()
    pixels[:, :120] = 255
    path = write_raster(tmp_path / "field_1.tif", pixels, ("R", "G", "B"), nodata=255)
    whole = measured(path, separation="none")
    monkeypatch.setattr("agrotools_tools.crop_weed.large_rasters.WHOLE_PX", 10_000)
    large = measured(path, separation="none")
    assert large.index == "lab_a"
    assert large.total_px == whole.total_px == pytest.approx(PLANTS.size / 2, rel=0.01)
    assert large.veg_px == pytest.approx(whole.veg_px, rel=0.02)


def turned(mask: np.ndarray, angle: float) -> np.ndarray:
    height, width = mask.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0)
    return (
        cv2.warpAffine(mask.astype(np.uint8), matrix, (width, height), flags=cv2.INTER_NEAREST) > 0
    )


@pytest.mark.parametrize("angle", [-61.3, 17.0])
def test_direction_is_counter_clockwise_from_the_x_axis(angle: float) -> None:
    crop, weeds = planted_rows(60, (560, 560))
    both = turned(crop | weeds, angle)[120:440, 120:440]
    rows = find_rows(both)
    expected = 90 + angle
    assert abs((rows.angle_deg - expected + 90) % 180 - 90) < 2
    assert rows.spacing_px == pytest.approx(60, rel=0.04)


@pytest.mark.parametrize("seed", range(6))
def test_plants_that_stand_anywhere_are_no_rows(seed: int) -> None:
    draw = np.random.default_rng(seed)
    mask = np.zeros((400, 500), np.bool_)
    y, x = np.mgrid[0:400, 0:500]
    for _ in range(int(draw.integers(5, 60))):
        mask |= np.hypot(x - draw.uniform(0, 500), y - draw.uniform(0, 400)) < draw.uniform(4, 20)
    assert find_rows(mask) is None
    assert (
        find_rows(np.zeros((200, 200), np.bool_)) is find_rows(np.ones((3, 900), np.bool_)) is None
    )


def five_bands(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Bands a and b part the classes, c, d, e are noise."""
    draw = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], 400).reshape(30, 40)
    bands = {name: draw.normal(0, 1, truth.shape) for name in "abcde"}
    bands["a"] = bands["a"] + 5 * (truth == 1)
    bands["b"] = bands["b"] + 5 * (truth == 2)
    return bands, {"soil": truth == 0, "crop": truth == 1, "weed": truth == 2}


def test_bands_that_part_the_classes_come_first() -> None:
    bands, classes = five_bands()
    ranked = rank_triplets(bands, classes)
    assert len(ranked) == 10
    assert all({"a", "b"} <= set(one.bands) for one in ranked[:3])
    accuracies = [one.expected_accuracy for one in ranked]
    assert None not in accuracies
    assert accuracies == sorted(accuracies, reverse=True)
    assert [one.tied for one in ranked[:3]] == [True] * 3
    assert not any(one.tied for one in ranked[3:])
    for one in ranked:
        assert one.min_jm == min(one.jm.values()) == one.jm[one.worst_pair]
        assert one.mean_jm == pytest.approx(np.mean(list(one.jm.values())))
        assert set(one.jm) == {"soil/crop", "soil/weed", "crop/weed"}
        assert one.oif is not None


def test_constant_repeated_and_few_bands_do_no_harm() -> None:
    bands, classes = five_bands()
    bands["d"] = np.full_like(bands["d"], 7.0)
    bands["e"] = bands["a"].copy()
    bands["c"][:3, :3] = np.nan
    ranked = rank_triplets(bands, classes)
    assert len(ranked) == 10
    assert all(np.isfinite(one.min_jm) and 0 <= one.min_jm <= 2 for one in ranked)
    best = {one.bands: one.min_jm for one in ranked}
    assert best["a", "b", "d"] == pytest.approx(best["a", "b", "e"], abs=0.02)
    assert rank_triplets({name: bands[name] for name in "ab"}, classes) == []
    assert rank_triplets(bands, {"crop": classes["crop"]}) == []
    few = np.zeros_like(classes["weed"])
    few[0, :5] = True
    assert rank_triplets(bands, {"crop": classes["crop"], "weed": few}) == []
    many = {f"b{n}": bands["a"] for n, _ in zip(range(25), itertools.count(), strict=False)}
    with pytest.raises(ValueError, match="at most 24"):
        rank_triplets(many, classes)


def test_bands_that_jm_misjudges_are_ranked_by_what_can_be_told() -> None:
    """Weeds lie in a ring around crop in a and b, with the same mean: no Gaussian, but easy to tell; d parts them
    by a shift that overlaps."""
    draw = np.random.default_rng(1)
    truth = np.tile([0, 1, 2], 40_000).reshape(300, 400)
    bands = {name: draw.normal(0, 1, truth.shape) for name in "abcd"}
    turn = draw.uniform(0, 2 * np.pi, truth.shape)
    bands["a"] = np.where(truth == 2, 5 * np.cos(turn), bands["a"]) + 30 * (truth == 0)
    bands["b"] = np.where(truth == 2, 5 * np.sin(turn), bands["b"])
    ranked = rank_triplets(bands, {"soil": truth == 0, "crop": truth == 1, "weed": truth == 2})
    assert {"a", "b"} <= set(ranked[0].bands)
    assert {"a", "b"} <= set(ranked[1].bands)
    assert ranked[0].expected_accuracy > 0.95
