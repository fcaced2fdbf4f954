"""Lesions on drawn leaves of known areas, on bad input, and on real leaves where they are at hand."""

import csv
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from agrotools.core import SampleFile
from agrotools.tools import get_tool
from agrotools.tools.contract import shipped_file
from agrotools.tools.lesions.result import MODEL_FILES, RULES, LeafLesions, grade_of
from agrotools.tools.lesions.segmentation import load_lesion_model, read_lesion_model
from agrotools.tools.workspace import CallContext, call_context, write_artifact
from agrotools.vision import strangeness
from support.picture_files import discs, noisy, write_raster
from support.tool_errors import tool_error

SHAPE = (300, 480)
BOARD, GREEN, BROWN, SOIL = (214, 212, 216), (74, 120, 48), (120, 74, 40), (128, 92, 70)
SPOTS = ((150, 140, 12), (240, 170, 20), (330, 150, 9))


def ellipse(shape: tuple[int, int] = SHAPE, centre: tuple[float, float] = (240, 150), size: float = 1.0) -> np.ndarray:
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    return ((x - centre[0]) / (180 * size)) ** 2 + ((y - centre[1]) / (80 * size)) ** 2 <= 1


def spots(chosen: tuple[tuple[int, int, int], ...] = SPOTS, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    mask = np.zeros(shape, np.bool_)
    for x, y, radius in chosen:
        mask |= discs(shape, [(x, y)], radius)
    return mask


def leaf_picture(
    leaf: np.ndarray, lesion: np.ndarray, board: tuple[int, int, int] = BOARD, green: tuple[int, int, int] = GREEN
) -> np.ndarray:
    shape = (leaf.shape[0], leaf.shape[1])
    picture = np.where(leaf[..., None], noisy(green, shape, 1), noisy(board, shape, 2, 2.0))
    return np.where((lesion & leaf)[..., None], noisy(BROWN, shape, 3), picture).astype(np.uint8)


def saved(folder: Path, pixels: np.ndarray, name: str = "leaf.png") -> Path:
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def analysed(image: Path, backend: str | None = None, info: SampleFile | None = None, **arguments: Any) -> LeafLesions:
    made = image.parent / "made"
    work = CallContext(
        keep=lambda artifact, content: write_artifact(made, artifact, content),
        infos={image: info} if info else {},
        backend=backend,
        reads_sidecars=info is None,
    )
    with call_context(work):
        return get_tool("analyze_lesions")(image, **arguments)


fault = partial(tool_error, analysed)


def mask_of(image: Path, result: LeafLesions) -> np.ndarray:
    return np.asarray(Image.open(image.parent / "made" / result.mask.name))


@pytest.mark.parametrize("backend", [None, RULES])
def test_areas_of_a_drawn_leaf(tmp_path: Path, backend: str | None) -> None:
    leaf, lesion = ellipse(), spots()
    image = saved(tmp_path, leaf_picture(leaf, lesion))
    result = analysed(image, backend)
    assert result.leaf_area_px == pytest.approx(leaf.sum(), rel=0.02)
    assert result.severity_pct == pytest.approx(100 * result.lesion_area_px / result.leaf_area_px)
    assert result.n_lesions == len(result.lesions) == 3
    assert result.severity_pct == pytest.approx(100 * lesion.sum() / leaf.sum(), rel=0.15 if backend else 0.5)
    found = mask_of(image, result)
    assert np.count_nonzero(found == 2) == result.lesion_area_px
    assert np.count_nonzero((found == 1) | (found == 2)) == result.leaf_area_px
    assert sum(each.area_px for each in result.lesions) == result.lesion_area_px
    assert [each.area_px for each in result.lesions] == sorted((each.area_px for each in result.lesions), reverse=True)
    largest = result.lesions[0]
    assert (largest.box[0], largest.box[3]) == (pytest.approx(220, abs=5), pytest.approx(190, abs=5))
    assert largest.eccentricity < 0.4
    assert largest.mean_lab[1] > 0
    assert not largest.touches_edge
    assert result.healthy_lab[1] < -15
    rows = list(csv.DictReader((tmp_path / "made" / result.table.name).read_text().splitlines()))
    assert [int(row["area_px"]) for row in rows] == [each.area_px for each in result.lesions]


def test_the_interval_holds_the_severity_with_the_settings_it_was_measured_with(tmp_path: Path, monkeypatch) -> None:
    image = saved(tmp_path, leaf_picture(ellipse(), spots()))
    assert analysed(image).severity_interval_pct is None, "the picture is unlike photographs of leaves"
    monkeypatch.setattr(strangeness, "strangeness", lambda *_: strangeness.Strangeness(0.0, 1.0))
    result = analysed(image)
    low, high = result.severity_interval_pct or (100, 0)
    assert 0 <= low < result.severity_pct < high <= 100
    for how in ({"backend": RULES}, {"sensitivity": 0.8}, {"min_lesion_px": 200}):
        assert analysed(image, **how).severity_interval_pct is None


def test_a_leaf_unlike_the_training_leaves_is_left_to_the_rules(tmp_path: Path) -> None:
    blue_board = saved(tmp_path, leaf_picture(ellipse(), spots(), board=(60, 90, 190)), "blue.png")
    result = analysed(blue_board)
    assert result.method == "rules"
    assert "out_of_distribution" in result.flags
    round_leaf = discs(SHAPE, [(240, 150)], 110)
    result = analysed(saved(tmp_path, leaf_picture(round_leaf, spots()), "round.png"))
    assert result.method == "rules"
    assert "out_of_distribution" in analysed(blue_board, RULES).flags


def test_scale_and_grades(tmp_path: Path) -> None:
    image = saved(tmp_path, leaf_picture(ellipse(), spots()))
    plain = analysed(image, RULES)
    assert (plain.leaf_area_mm2, plain.lesions[0].area_mm2) == (None, None)
    assert "no_scale" in plain.flags
    assert plain.grade == plain.severity_pct
    scaled = analysed(image, RULES, scale_mm_px=0.25, grade_scale="0-4")
    assert scaled.leaf_area_mm2 == pytest.approx(plain.leaf_area_px / 16)
    assert scaled.lesions[0].area_mm2 == pytest.approx(plain.lesions[0].area_px / 16)
    assert "no_scale" not in scaled.flags
    assert scaled.grade == 1
    small = cv2.resize(np.asarray(Image.open(image)), None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)
    resized = analysed(saved(tmp_path, small, "small.png"), RULES, scale_mm_px=0.25 / 0.6)
    assert resized.lesion_area_mm2 == pytest.approx(scaled.lesion_area_mm2, rel=0.06)
    assert resized.leaf_area_mm2 == pytest.approx(scaled.leaf_area_mm2, rel=0.03)
    known = SampleFile(name="leaf.png", path="leaf.png", kind="image", gsd_m=0.00025)
    assert analysed(image, RULES, known).scale_mm_px == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("severity", "coffee", "rice"),
    [(0.0, 0, 0), (0.1, 0, 1), (0.2, 1, 1), (5.0, 1, 1), (5.1, 2, 3), (12.0, 3, 3), (15.1, 4, 5), (60.0, 4, 9)],
)
def test_bounds_of_the_grading_scales(severity: float, coffee: int, rice: int) -> None:
    assert grade_of(severity, "percent") == severity
    assert grade_of(severity, "0-4") == coffee
    assert grade_of(severity, "1-9") == rice


def test_small_patches_sensitivity_and_a_given_healthy_colour(tmp_path: Path) -> None:
    image = saved(tmp_path, leaf_picture(ellipse(), spots(((150, 140, 3), (240, 170, 20)))))
    assert analysed(image, RULES).n_lesions == 2
    assert analysed(image, RULES, min_lesion_px=200).n_lesions == 1
    for backend in (None, RULES):
        levels = [analysed(image, backend, sensitivity=value).lesion_area_px for value in (0.0, 0.5, 1.0)]
        assert levels == sorted(levels)
    image = saved(tmp_path, leaf_picture(ellipse(), spots(), green=(150, 150, 60)))
    alone = analysed(image, RULES)
    against_green = analysed(image, healthy_reference=(45.0, -28.0, 32.0))
    assert (against_green.method, against_green.healthy_lab) == ("rules", (45.0, -28.0, 32.0))
    assert against_green.severity_pct > 60 > alone.severity_pct
    assert "mostly_lesion" in against_green.flags


def test_leaves_without_green_are_found_and_shadow_is_none(tmp_path: Path) -> None:
    result = analysed(saved(tmp_path, leaf_picture(ellipse(), spots(), green=BROWN)))
    assert result.severity_pct > 90
    assert {"no_healthy_tissue", "mostly_lesion"} <= set(result.flags)
    leaf = ellipse()
    picture = leaf_picture(leaf, spots()).astype(float)
    shadow = ellipse(centre=(250, 168)) & ~leaf
    picture[shadow] *= 0.72
    result = analysed(saved(tmp_path, picture.astype(np.uint8)))
    assert result.leaf_area_px == pytest.approx(leaf.sum(), rel=0.03)
    assert "shadow" in result.flags


def test_several_leaves_and_a_cut_one(tmp_path: Path) -> None:
    two = ellipse(size=0.5, centre=(120, 150)) | ellipse(size=0.45, centre=(360, 150))
    result = analysed(saved(tmp_path, leaf_picture(two, np.zeros(SHAPE, np.bool_))))
    assert "several_leaves" in result.flags
    assert result.leaf_area_px == pytest.approx(ellipse(size=0.5).sum(), rel=0.05)
    assert (result.n_lesions, result.table) == (0, None)
    cut = analysed(saved(tmp_path, leaf_picture(ellipse(centre=(100, 150)), spots()), "cut.png"))
    assert "leaf_cut" in cut.flags


def test_a_leaf_before_soil(tmp_path: Path) -> None:
    leaf, lesion = ellipse(), spots()
    draw = np.random.default_rng(5)
    soil = cv2.GaussianBlur(draw.normal(0, 260, (*SHAPE, 1)).astype(np.float32), (0, 0), 6)[..., None]
    picture = leaf_picture(leaf, lesion, board=SOIL).astype(float)
    picture = np.where(leaf[..., None], picture, picture + 4 * soil)
    image = saved(tmp_path, np.clip(picture, 0, 255).astype(np.uint8))
    result = analysed(image, mode="field")
    assert "field_background" in result.flags
    assert result.leaf_area_px == pytest.approx(leaf.sum(), rel=0.06)
    assert result.severity_pct == pytest.approx(100 * lesion.sum() / leaf.sum(), rel=0.3)


def test_masks_and_transparent_ground_say_where_the_leaf_is(tmp_path: Path) -> None:
    leaf = ellipse()
    image = saved(tmp_path, leaf_picture(leaf, spots()))
    half = leaf & (np.arange(SHAPE[1])[None] < 240)
    mask = saved(tmp_path, (3 * half).astype(np.uint8), "mask.png")
    result = analysed(image, RULES, leaf_mask=mask)
    assert result.leaf_area_px == half.sum()
    assert result.leaf_box[2] == 240
    picture = np.dstack([leaf_picture(leaf, spots()), np.where(leaf, 255, 0).astype(np.uint8)])
    assert analysed(saved(tmp_path, picture)).leaf_area_px == pytest.approx(leaf.sum(), rel=0.02)


def test_region_is_in_pixels_of_the_whole_picture(tmp_path: Path) -> None:
    picture = leaf_picture(ellipse(), spots())
    image = saved(tmp_path, np.pad(picture, ((40, 0), (60, 0), (0, 0)), mode="edge"))
    result = analysed(image, RULES, region=[60, 40, 540, 340])
    alone = analysed(saved(tmp_path, picture, "alone.png"), RULES)
    assert result.lesions[0].box == tuple(np.add(alone.lesions[0].box, (60, 40, 60, 40)))
    mask = mask_of(image, result)
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
        np.dstack([np.linspace(90, 190, 200)[:, None].repeat(300, 1).astype(np.uint8) + add for add in (0, 30, 60)]),
    ],
    ids=["white", "green", "one pixel", "night", "sky"],
)
@pytest.mark.parametrize("mode", ["leaf", "field"])
def test_no_leaf(tmp_path: Path, pixels: np.ndarray, mode: str) -> None:
    found = fault(saved(tmp_path, pixels), mode=mode)
    assert found.kind == "nothing_found"


def test_bad_files_and_arguments(tmp_path: Path) -> None:
    picture = leaf_picture(ellipse(), spots())
    image = saved(tmp_path, picture)
    grey = saved(tmp_path, np.repeat(picture.mean(axis=2, keepdims=True), 3, 2).astype(np.uint8), "grey.png")
    leaf = ellipse().astype(np.uint8)
    for marked, shown, kind in (
        (leaf[:10, :10], image, "shape_mismatch"),
        (0 * leaf, image, "nothing_found"),
        (1 - leaf, image, "nothing_found"),  # the board
        (leaf, grey, "band_not_found"),
    ):
        assert fault(shown, leaf_mask=saved(tmp_path, marked, "mask.png")).kind == kind
    assert fault(image, region=[900, 900, 950, 950]).kind == "region_empty"
    bands = write_raster(tmp_path / "nan.tif", np.full((3, 20, 20), np.nan, np.float32))
    assert fault(bands).kind == "nothing_found"


@pytest.mark.parametrize("what", ["weights", "version", "json", "missing"])
def test_other_model_files_are_refused(tmp_path: Path, what: str) -> None:
    description, weights = (Path(shutil.copy(path, tmp_path / path.name)) for path in map(shipped_file, MODEL_FILES))
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
    rows = np.random.default_rng(0).normal(model.mean, model.scale, (7, len(model.mean))).astype(np.float32)
    expected = np.zeros(7)
    for layers in model.members:
        values = (rows.astype(np.float64) - model.mean) / model.scale
        for number, (weights, bias) in enumerate(layers):
            values = values @ weights + bias
            if number < len(layers) - 1:
                values = np.maximum(values, 0)
        expected += 1 / (1 + np.exp(-values[:, 0])) / len(model.members)
    assert model.probability(rows) == pytest.approx(expected, abs=1e-4)
