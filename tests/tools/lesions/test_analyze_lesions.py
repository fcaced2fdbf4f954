"""Lesions on drawn leaves of known areas, on bad input, and on real leaves where they are at hand."""

import csv
import io
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.workspace import CallContext, call_context
from agrotools_tools.lesions.measure import load_lesion_model, mahalanobis, read_lesion_model
from agrotools_tools.lesions.result import MODEL_FILES, RULES, LeafLesions, grade_of
from agrotools_tools.shipped import shipped_file
from agrotools_tools.vision import strangeness
from support.picture_files import discs, noisy
from support.real_pictures import real_pictures
from support.tool_errors import tool_error

SHAPE = (300, 480)
BOARD, GREEN, BROWN, SOIL = (214, 212, 216), (70, 105, 40), (120, 74, 40), (128, 92, 70)
SPOTS = ((150, 140, 12), (240, 170, 20), (330, 150, 9))


def ellipse(
    shape: tuple[int, int] = SHAPE, centre: tuple[float, float] = (240, 150), size: float = 1.0
) -> np.ndarray:
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    return ((x - centre[0]) / (180 * size)) ** 2 + ((y - centre[1]) / (80 * size)) ** 2 <= 1


def spots(
    chosen: tuple[tuple[int, int, int], ...] = SPOTS, shape: tuple[int, int] = SHAPE
) -> np.ndarray:
    mask = np.zeros(shape, np.bool_)
    for x, y, radius in chosen:
        mask |= discs(shape, [(x, y)], radius)
    return mask


def leaf_picture(
    leaf: np.ndarray,
    lesion: np.ndarray,
    board: tuple[int, int, int] = BOARD,
    green: tuple[int, int, int] = GREEN,
) -> np.ndarray:
    shape = (leaf.shape[0], leaf.shape[1])
    picture = np.where(leaf[..., None], noisy(green, shape, 1), noisy(board, shape, 2, 2.0))
    return np.where((lesion & leaf)[..., None], noisy(BROWN, shape, 3), picture).astype(np.uint8)


def before_soil(picture: np.ndarray) -> np.ndarray:
    draw = np.random.default_rng(5)
    light = cv2.GaussianBlur(draw.normal(0, 260, (*SHAPE, 1)).astype(np.float32), (0, 0), 6)
    soil = noisy(SOIL, SHAPE, 2, 2.0) + 4.0 * light[..., None]
    return np.clip(np.where(LEAF[..., None], picture, soil), 0, 255).astype(np.uint8)


def analysed(image: Any, backend: str | None = None, **arguments: Any) -> LeafLesions:
    with call_context(
        CallContext(keep=lambda artifact, _: artifact, backend=backend, reads_sidecars=True)
    ):
        return get_tool("analyze_lesions")(image, **arguments)


fault = partial(tool_error, analysed)


def directions(flags: tuple[str, ...]) -> list[str]:
    return [flag for flag in flags if flag.startswith("severity_too_")]


def mask_of(result: LeafLesions) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(result.content(result.mask))))


LEAF, LESION = ellipse(), spots()
PICTURE = leaf_picture(LEAF, LESION)


@pytest.mark.parametrize("backend", [None, RULES])
def test_areas_of_a_drawn_leaf(backend: str | None) -> None:
    result = analysed(PICTURE, backend)
    assert result.leaf_area_px == pytest.approx(LEAF.sum(), rel=0.02)
    assert result.severity_pct == pytest.approx(100 * result.lesion_area_px / result.leaf_area_px)
    assert result.n_lesions == len(result.lesions) == 3
    assert result.severity_pct == pytest.approx(
        100 * LESION.sum() / LEAF.sum(), rel=0.15 if backend else 0.5
    )
    found = mask_of(result)
    assert np.count_nonzero(found == 2) == result.lesion_area_px
    assert np.count_nonzero((found == 1) | (found == 2)) == result.leaf_area_px
    areas = [each.area_px for each in result.lesions]
    assert (sum(areas), areas) == (result.lesion_area_px, sorted(areas, reverse=True))
    largest = result.lesions[0]
    assert (largest.box[0], largest.box[3]) == (
        pytest.approx(220, abs=5),
        pytest.approx(190, abs=5),
    )
    assert largest.eccentricity < 0.4
    assert largest.mean_lab[1] > 0 > -15 > result.healthy_lab[1]
    assert not largest.touches_edge
    rows = csv.DictReader(result.content(result.table).decode().splitlines())
    assert [int(row["area_px"]) for row in rows] == areas


def test_the_interval_holds_the_severity_with_the_settings_it_was_measured_with(
    monkeypatch,
) -> None:
    assert analysed(PICTURE).severity_interval_pct is None, (
        "the picture is unlike photographs of leaves"
    )
    monkeypatch.setattr(strangeness, "strangeness", lambda *_: strangeness.Strangeness(0.0, 1.0))
    result = analysed(PICTURE)
    low, high = result.severity_interval_pct or (100, 0)
    assert 0 <= low < result.severity_pct < high <= 100
    for how in ({"backend": RULES}, {"sensitivity": 0.8}, {"min_lesion_px": 200}):
        assert analysed(PICTURE, **how).severity_interval_pct is None


def test_a_leaf_unlike_the_training_leaves_is_left_to_the_rules() -> None:
    result = analysed(leaf_picture(discs(SHAPE, [(240, 150)], 110), LESION))
    assert (result.method, "out_of_distribution" in result.flags) == ("rules", True)


def test_a_known_leaf_on_another_background_is_measured_by_the_model_without_an_interval(
    monkeypatch,
) -> None:
    monkeypatch.setattr(strangeness, "strangeness", lambda *_: strangeness.Strangeness(0.0, 1.0))
    on_blue = leaf_picture(LEAF, LESION, board=(60, 90, 190))
    for picture in (on_blue, before_soil(PICTURE)):
        result = analysed(picture)
        assert (result.method, result.severity_interval_pct) == ("model", None)
        assert "out_of_distribution" in result.flags


def test_scale_and_grades(tmp_path: Path) -> None:
    plain = analysed(PICTURE, RULES)
    assert (plain.leaf_area_mm2, plain.lesions[0].area_mm2, plain.grade) == (
        None,
        None,
        plain.severity_pct,
    )
    assert "no_scale" in plain.flags
    scaled = analysed(PICTURE, RULES, scale_mm_px=0.25, grade_scale="0-4")
    assert scaled.leaf_area_mm2 == pytest.approx(plain.leaf_area_px / 16)
    assert scaled.lesions[0].area_mm2 == pytest.approx(plain.lesions[0].area_px / 16)
    assert ("no_scale" in scaled.flags, scaled.grade) == (False, 1)
    small = cv2.resize(PICTURE, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)
    resized = analysed(small, RULES, scale_mm_px=0.25 / 0.6)
    assert resized.lesion_area_mm2 == pytest.approx(scaled.lesion_area_mm2, rel=0.06)
    assert resized.leaf_area_mm2 == pytest.approx(scaled.leaf_area_mm2, rel=0.03)
    Image.fromarray(PICTURE).save(tmp_path / "leaf.png")
    (tmp_path / "leaf.png.meta.json").write_text('{"gsd_m": 0.00025}')
    assert analysed(tmp_path / "leaf.png", RULES).scale_mm_px == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("severity", "coffee", "rice"),
    [
        (0.0, 0, 0),
        (0.1, 0, 1),
        (0.2, 1, 1),
        (5.0, 1, 1),
        (5.1, 2, 3),
        (12.0, 3, 3),
        (15.1, 4, 5),
        (60.0, 4, 9),
    ],
)
def test_bounds_of_the_grading_scales(severity: float, coffee: int, rice: int) -> None:
    grades = [grade_of(severity, scale) for scale in ("percent", "0-4", "1-9")]
    assert grades == [severity, coffee, rice]


def test_small_patches_sensitivity_and_a_given_healthy_colour() -> None:
    picture = leaf_picture(LEAF, spots(((150, 140, 3), (240, 170, 20))))
    assert analysed(picture, RULES).n_lesions == 2
    assert analysed(picture, RULES, min_lesion_px=200).n_lesions == 1
    for backend in (None, RULES):
        levels = [
            analysed(picture, backend, sensitivity=value).lesion_area_px
            for value in (0.0, 0.5, 1.0)
        ]
        assert levels == sorted(levels)
    yellowed = leaf_picture(LEAF, LESION, green=(150, 150, 60))
    against_green = analysed(yellowed, healthy_reference=(45.0, -28.0, 32.0))
    assert (against_green.method, against_green.healthy_lab) == ("rules", (45.0, -28.0, 32.0))
    assert against_green.severity_pct > 60 > analysed(yellowed, RULES).severity_pct
    assert "mostly_lesion" in against_green.flags


def test_leaves_without_green_cut_leaves_and_several_are_found_and_shadow_is_none() -> None:
    result = analysed(leaf_picture(LEAF, LESION, green=BROWN))
    assert result.severity_pct > 90
    assert {"no_healthy_tissue", "mostly_lesion"} <= set(result.flags)
    picture = PICTURE.astype(float)
    picture[ellipse(centre=(250, 168)) & ~LEAF] *= 0.72
    result = analysed(picture.astype(np.uint8))
    assert result.leaf_area_px == pytest.approx(LEAF.sum(), rel=0.03)
    assert "shadow" in result.flags
    two = ellipse(size=0.5, centre=(120, 150)) | ellipse(size=0.45, centre=(360, 150))
    result = analysed(leaf_picture(two, np.zeros(SHAPE, np.bool_)))
    assert "several_leaves" in result.flags
    assert result.leaf_area_px == pytest.approx(ellipse(size=0.5).sum(), rel=0.05)
    assert (result.n_lesions, result.table) == (0, None)
    assert "leaf_cut" in analysed(leaf_picture(ellipse(centre=(100, 150)), LESION)).flags


def test_a_leaf_before_soil() -> None:
    result = analysed(before_soil(PICTURE), mode="field")
    assert "field_background" in result.flags
    assert result.leaf_area_px == pytest.approx(LEAF.sum(), rel=0.06)
    assert result.severity_pct == pytest.approx(100 * LESION.sum() / LEAF.sum(), rel=0.3)


WOOD, CLODS, GRASS = (96, 58, 34), (150, 135, 75), (90, 160, 60)


def test_lesions_at_the_margin_are_part_of_a_leaf_on_brown_wood() -> None:
    lesion = spots(((240, 222, 14), (100, 150, 16)))
    result = analysed(leaf_picture(LEAF, lesion, board=WOOD))
    truth = 100 * (lesion & LEAF).sum() / LEAF.sum()
    assert result.severity_pct == pytest.approx(truth, rel=0.3)


def on_checked_ground(
    leaf: np.ndarray, ground: tuple[int, int, int], other: tuple[int, int, int] = (120, 120, 120)
) -> np.ndarray:
    """A leaf on ground whose every second square has another colour, so that it is no plain board."""
    rows, columns = np.indices(SHAPE) // 24
    is_other = ((rows + columns) % 2 == 0)[..., None] & ~leaf[..., None]
    return np.where(is_other, other, leaf_picture(leaf, LESION, board=ground)).astype(np.uint8)


@pytest.mark.parametrize(
    ("ground", "is_uncertain", "said"),
    [
        (GRASS, True, []),
        (CLODS, True, ["severity_too_high_possible"]),
        (WOOD, False, []),
    ],
    ids=["grass", "clods of soil", "wood"],
)
def test_on_ground_in_the_colours_of_a_leaf_the_outline_is_uncertain(
    ground: tuple[int, int, int], is_uncertain: bool, said: list[str]
) -> None:
    flags = analysed(on_checked_ground(LEAF, ground)).flags
    assert ("leaf_outline_uncertain" in flags) == is_uncertain
    assert directions(flags) == said


def test_a_leaf_in_the_field_that_reaches_the_border_has_an_uncertain_outline() -> None:
    leaf = ellipse(centre=(100, 150))
    flags = analysed(on_checked_ground(leaf, WOOD), mode="field").flags
    assert {"leaf_cut", "leaf_outline_uncertain"} <= set(flags)
    assert directions(flags) == []


@pytest.mark.parametrize(
    ("ground", "other", "said"),
    [
        (WOOD, (150, 100, 70), ["severity_too_low_possible"]),
        ((150, 148, 146), (90, 90, 92), []),
    ],
    ids=["wood", "grey gravel"],
)
def test_a_leaf_with_pieces_missing_has_an_uncertain_outline_and_on_brown_ground_a_direction(
    ground: tuple[int, int, int], other: tuple[int, int, int], said: list[str]
) -> None:
    cut_off = spots(((160, 60, 60), (330, 235, 60)))
    picture = on_checked_ground(LEAF & ~cut_off, ground, other)
    flags = analysed(picture, mode="field").flags
    assert "leaf_outline_uncertain" in flags
    assert directions(flags) == said


def test_masks_transparent_ground_and_regions_say_where_the_leaf_is() -> None:
    half = LEAF & (np.arange(SHAPE[1])[None] < 240)
    result = analysed(PICTURE, RULES, leaf_mask=(3 * half).astype(np.uint8))
    assert (result.leaf_area_px, result.leaf_box[2]) == (half.sum(), 240)
    transparent = np.dstack([PICTURE, np.where(LEAF, 255, 0).astype(np.uint8)])
    assert analysed(transparent).leaf_area_px == pytest.approx(LEAF.sum(), rel=0.02)
    padded = np.pad(PICTURE, ((40, 0), (60, 0), (0, 0)), mode="edge")
    result, alone = analysed(padded, RULES, region=[60, 40, 540, 340]), analysed(PICTURE, RULES)
    assert result.lesions[0].box == tuple(np.add(alone.lesions[0].box, (60, 40, 60, 40)))
    mask = mask_of(result)
    assert np.count_nonzero(mask == 2) == alone.lesion_area_px
    assert (mask[:40] == 255).all()
    assert (mask[:, :60] == 255).all()


@pytest.mark.parametrize(
    "pixels",
    [
        np.full((200, 300, 3), 240, np.uint8),
        np.full((200, 300, 3), (40, 120, 40), np.uint8),
        np.zeros((1, 1, 3), np.uint8),
        np.clip(np.random.default_rng(0).normal(6, 4, (200, 300, 3)), 0, 255).astype(np.uint8),
        np.dstack(
            [
                np.linspace(90, 190, 200)[:, None].repeat(300, 1).astype(np.uint8) + add
                for add in (0, 30, 60)
            ]
        ),
        np.full((20, 20, 3), np.nan, np.float32),
    ],
    ids=["white", "green", "one pixel", "night", "sky", "no data"],
)
@pytest.mark.parametrize("mode", ["leaf", "field"])
def test_no_leaf(pixels: np.ndarray, mode: str) -> None:
    assert fault(pixels, mode=mode).kind == "nothing_found"


def test_unfit_masks_and_regions_are_refused() -> None:
    grey = np.repeat(PICTURE.mean(axis=2, keepdims=True), 3, 2).astype(np.uint8)
    leaf = LEAF.astype(np.uint8)
    for shown, marked, kind in (
        (PICTURE, leaf[:10, :10], "shape_mismatch"),
        (PICTURE, 0 * leaf, "nothing_found"),
        (PICTURE, 1 - leaf, "nothing_found"),  # the board
        (grey, leaf, "band_not_found"),
    ):
        assert fault(shown, leaf_mask=marked).kind == kind
    assert fault(PICTURE, region=[900, 900, 950, 950]).kind == "region_empty"


@pytest.mark.parametrize(
    ("board", "light", "is_said"), [(214, 0.3, True), (150, 0.3, True), (150, 0.6, False)]
)
def test_a_shadow_that_is_taken_for_leaf_is_said(board: int, light: float, is_said: bool) -> None:
    shape = (400, 620)
    leaf, shadow = ellipse(shape, (290, 180)), ellipse(shape, (330, 220))
    picture = leaf_picture(leaf, np.zeros(shape, np.bool_), (board, board, board))
    dark = round(light * board)
    picture[shadow & ~leaf] = noisy((dark, dark, dark), shape, 4)[shadow & ~leaf]
    result = analysed(picture)
    assert ("shadow_in_leaf" in result.flags) == is_said
    is_too_large = result.leaf_area_px > 1.1 * leaf.sum()
    assert is_too_large == is_said


@pytest.mark.parametrize(("shift", "is_outside"), [(0.0, False), (14.0, True)])
def test_leaves_of_another_colour_are_outside_the_model(shift: float, is_outside: bool) -> None:
    domain = load_lesion_model().info.domain
    traits = np.array(domain.centre) + np.array([0, shift, 0, 0, 0])  # less green
    assert (mahalanobis(domain, traits) > domain.limit) == is_outside


def test_the_limit_of_the_domain_is_not_that_of_one_odd_leaf() -> None:
    # 59.6 is the distance of the oddest training leaf; of citrus leaves half are nearer than that.
    assert load_lesion_model().info.domain.limit < 30


@pytest.mark.parametrize("what", ["weights", "version", "json", "missing"])
def test_other_model_files_are_refused(tmp_path: Path, what: str) -> None:
    description, weights = (
        Path(shutil.copy(path, tmp_path / path.name)) for path in map(shipped_file, MODEL_FILES)
    )
    if what == "weights":
        content = bytearray(weights.read_bytes())
        content[len(content) // 2] ^= 1
        weights.write_bytes(content)
    elif what == "version":
        said = json.loads(description.read_text())
        description.write_text(json.dumps({**said, "features_version": 0}))
    elif what == "json":
        description.write_text("{}")
    else:
        weights.unlink()
    error = tool_error(read_lesion_model, description, weights)
    assert error.kind == "backend_unavailable"
    assert str(tmp_path) not in str(error)


def test_probabilities_are_those_of_the_layers() -> None:
    model = load_lesion_model()
    rows = (
        np.random.default_rng(0)
        .normal(model.mean, model.scale, (7, len(model.mean)))
        .astype(np.float32)
    )
    expected = np.zeros(7)
    for layers in model.members:
        values = (rows.astype(np.float64) - model.mean) / model.scale
        for number, (weights, bias) in enumerate(layers):
            values = values @ weights + bias
            if number < len(layers) - 1:
                values = np.maximum(values, 0)
        expected += 1 / (1 + np.exp(-values[:, 0])) / len(model.members)
    assert model.probability(rows) == pytest.approx(expected, abs=1e-4)


def test_coffee_leaves_are_within_the_model_and_other_leaves_are_not(field_data: Path) -> None:
    for folder, is_outside in (("coffee_lesions", False), ("apple_leaf_class", True)):
        for image in real_pictures(field_data, folder, 4):
            assert ("out_of_distribution" in analysed(image).flags) == is_outside
