"""The sizes of fruits in scenes of known sizes and on bad input; round outlines; files that hold depth or none."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.workspace import CallContext, call_context
from agrotools.core import SampleFile
from agrotools_build.scenes.orchard import WELL_SEEN, make_orchard
from agrotools_tools.fruit.camera import Camera, read_depth
from agrotools_tools.fruit.measure import Cone, RoundEvidence, angle_from, fit_round, outline_points
from agrotools_tools.fruit.result import FruitSizes
from support.orchard_scenes import GREEN_FRUIT, ORANGE_FRUIT, Scene, orchard
from support.picture_files import discs, png_header_only, write_raster
from support.tool_errors import tool_error

OPEN: dict[str, Any] = {"size": (480, 360), "focal_px": 500.0, "fruits": 5, "leaves": 0}
HIDDEN: dict[str, Any] = OPEN | {"leaves": 9}


def measured(image: Any, **arguments: Any) -> FruitSizes:
    """Sizes in a picture, or in a scene with its depth and camera where the arguments do not say others."""
    if isinstance(image, Scene):
        known = {} if "distance_mm" in arguments else {"depth": in_mm(image)}
        image, arguments = image.pixels, known | {"fx_px": 500} | arguments
    return get_tool("measure_fruit_size")(image, **arguments)


def in_mm(scene: Scene) -> np.ndarray:
    return np.rint(scene.depth_mm).astype(np.uint16)


fault = partial(tool_error, measured)


def errors(scene: Scene, result: FruitSizes) -> list[tuple[float, float]]:
    """Of each true fruit that was found: error of the diameter in mm, and the share of it that can be seen."""
    centres = np.array([fruit.centre_px for fruit in result.fruits])
    found: list[tuple[float, float]] = []
    for number, centre in enumerate(scene.centre_px):
        away = np.hypot(*(centres - centre).T)
        nearest = int(away.argmin())
        if away[nearest] < result.fruits[nearest].radius_px:
            found.append(
                (
                    result.fruits[nearest].diameter_mm - scene.diameters_mm[number],
                    scene.visible[number],
                )
            )
    return found


def test_fruits_in_the_open() -> None:
    scene = orchard(1000, **OPEN)
    result = measured(scene, depth_unit_mm=1)
    wrong = errors(scene, result)
    assert len(wrong) == len(scene.diameters_mm) == result.n
    assert max(abs(error) for error, _ in wrong) < 3.0
    assert result.mean_diameter_mm == pytest.approx(scene.diameters_mm.mean(), abs=2)
    assert sum(result.size_classes.values()) == result.n_measured
    for fruit in result.fruits:
        assert min(abs(fruit.distance_mm - scene.centres_mm[:, 2])) < 12, (
            "to the middle, not the surface"
        )


def test_hidden_parts_are_completed() -> None:
    wrong: list[tuple[float, float]] = []
    in_boxes: list[float] = []
    for seed in range(2000, 2004):
        scene = orchard(seed, **HIDDEN)
        wrong += errors(scene, measured(scene))
        seen = [number for number in range(len(scene.boxes)) if scene.visible[number] > 0.4]
        given = measured(scene, boxes=[scene.boxes[number] for number in seen])
        in_boxes += [
            abs(fruit.diameter_mm - scene.diameters_mm[seen[fruit.id - 1]])
            for fruit in given.fruits
        ]
    well_seen = [abs(error) for error, visible in wrong if visible > 0.6]
    assert len(well_seen) >= 10
    assert np.mean(well_seen) < 3.0
    assert np.mean(in_boxes) < 4.0


def test_one_distance_for_all_fruits() -> None:
    scene = orchard(7, **OPEN | {"distance_mm": (1195, 1205)})
    result = measured(scene, distance_mm=1200)
    assert max(abs(error) for error, _ in errors(scene, result)) < 3.0
    assert "one_distance_for_all" in result.flags
    nearer = measured(scene, distance_mm=600)
    assert nearer.mean_diameter_mm == pytest.approx((result.mean_diameter_mm or 0) / 2, rel=0.03)


def test_red_things_that_are_no_fruit_are_doubted() -> None:
    button = np.where(
        discs((300, 300), [(150, 150)], 40)[..., None], (200, 30, 30), (60, 130, 50)
    ).astype(np.uint8)
    for pixels, is_strange in ((button, True), (make_orchard(3, 0).images["rgb"], False)):
        result = measured(pixels, distance_mm=1000, fx_px=700)
        assert ("out_of_distribution" in result.flags) == is_strange
        assert any("unlike the pictures of fruit" in note for note in result.notes) == is_strange


def test_fruit_that_hardly_differs_from_leaves_is_found_by_the_net() -> None:
    scene = make_orchard(70_002, 1)
    depth, fx_px = scene.images["depth"], scene.sidecar["fx_px"]
    result = measured(scene.images["rgb"], depth=depth, depth_unit_mm=1, fx_px=fx_px)
    fruits = scene.truth["fruits"]
    assert len(fruits) / 2 < result.n <= len(fruits), "the search by colour found 29 things"
    true = np.mean([fruit["diameter_mm"] for fruit in fruits if fruit["visibility"] >= WELL_SEEN])
    assert result.mean_diameter_mm == pytest.approx(true, abs=4)
    assert "the net" in " ".join(result.notes)


def test_fruit_of_another_colour_is_found_and_pale_fruit_in_boxes_only() -> None:
    scene = orchard(11, **OPEN | {"colour": ORANGE_FRUIT})
    result = measured(scene, fruit="orange")
    assert result.mean_diameter_mm == pytest.approx(scene.diameters_mm.mean(), abs=3)
    scene = orchard(5, **OPEN | {"colour": GREEN_FRUIT})
    assert fault(scene).kind == "nothing_found"
    result = measured(scene, boxes=scene.boxes)
    assert "pale_fruit_possible" in result.flags
    wrong = [abs(fruit.diameter_mm - scene.diameters_mm[fruit.id - 1]) for fruit in result.fruits]
    assert len(wrong) == len(scene.boxes)
    assert np.median(wrong) < 4.0


def test_a_box_without_a_fruit_is_named_and_a_region_lies_where_the_picture_has_it() -> None:
    scene = orchard(1000, **OPEN)
    x0, y0, x1, y1 = scene.boxes[0]
    middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    whole, part = (
        min(
            measured(scene, region=region).fruits,
            key=lambda one: np.hypot(*(np.array(one.centre_px) - middle)),
        )
        for region in (None, [x0 - 8, y0 - 8, x1 + 8, y1 + 8])
    )
    assert part.diameter_mm == pytest.approx(whole.diameter_mm, abs=1.0)
    assert fault(scene, region=[900, 900, 950, 950]).kind == "region_empty"
    scene.depth_mm[:60, :60] = 0
    scene.pixels[:60, :60] = (60, 90, 50)
    boxes = [[5, 5, 40, 40], *(list(box) for box in scene.boxes)]
    result = measured(scene, boxes=boxes)
    assert result.boxes_without_fruit == (1,)
    assert [fruit.id for fruit in result.fruits] == list(range(2, len(boxes) + 1))


def test_cameras_and_depth_of_other_kinds_give_the_same_size(tmp_path: Path) -> None:
    scene = orchard(1000, **OPEN)
    mm = in_mm(scene)
    mean = measured(scene).mean_diameter_mm
    pixels = np.asarray(Image.fromarray(scene.pixels).resize((960, 720), Image.Resampling.BICUBIC))
    twice = partial(measured, pixels, depth=mm.repeat(2, 0).repeat(2, 1))
    by_intrinsics = twice(
        fx_px=500, calibrated_width_px=480, calibrated_height_px=360
    ).mean_diameter_mm
    assert by_intrinsics == pytest.approx(mean, abs=1.5)
    assert twice(focal_mm=5.0, sensor_width_mm=4.8).mean_diameter_mm == pytest.approx(by_intrinsics)
    metres = np.where(mm > 0, mm / 1000, np.nan)
    assert fault(scene, depth=metres).kind == "missing_metadata"
    assert measured(scene, depth=metres, depth_unit_mm=1000).mean_diameter_mm == pytest.approx(
        mean, rel=1e-4
    )
    image, tenths, exif = tmp_path / "image_1.png", tmp_path / "tenths.png", Image.Exif()
    Image.fromarray(mm * 10).save(tenths)
    told = SampleFile(name="tenths.png", path="tenths.png", kind="depth", depth_unit_mm=0.1)
    with call_context(CallContext(keep=lambda artifact, _: artifact, infos={tenths: told})):
        assert measured(scene, depth=tenths).mean_diameter_mm == pytest.approx(mean, rel=1e-4)
    exif[0x8769] = {0xA405: 36}  # 500 px x 43.27 mm / 600 px of diagonal
    Image.fromarray(scene.pixels).save(image, exif=exif)
    result = measured(image, depth=mm)
    assert "estimated_intrinsics" in result.flags
    assert result.mean_diameter_mm == pytest.approx(mean, rel=0.02)
    inner = {"fx_px": 1000, "fy_px": 1000, "cx_px": 480, "cy_px": 360}
    sidecar = {"intrinsics": inner, "width_px": 960, "height_px": 720}
    (tmp_path / "image_1.png.meta.json").write_text(json.dumps(sidecar))
    assert measured(image, depth=mm).mean_diameter_mm == pytest.approx(mean)
    (tmp_path / "image_1.png.meta.json").write_text(json.dumps(sidecar | {"width_px": 1280}))
    error = fault(image, depth=mm)
    assert error.kind == "shape_mismatch"
    assert str(tmp_path) not in str(error)


def test_what_is_missing_or_does_not_fit_is_asked_for() -> None:
    scene = orchard(1000, **OPEN)
    depth = in_mm(scene)
    for arguments, kind, argument in (
        ({"fx_px": 500}, "missing_metadata", "depth"),
        ({"depth": depth}, "missing_metadata", "fx_px"),
        ({"depth": depth[:100, :100], "fx_px": 500}, "shape_mismatch", "depth"),
        ({"depth": depth, "distance_mm": 900, "fx_px": 500}, "invalid_argument", "distance_mm"),
        ({"depth": depth, "fy_px": 500}, "invalid_argument", "fx_px"),
        ({"depth": depth, "focal_mm": 4}, "invalid_argument", "sensor_width_mm"),
    ):
        error = fault(scene.pixels, **arguments)
        assert (error.kind, error.argument) == (kind, argument)
    for arguments in (
        {"calibrated_width_px": 960},
        {"min_diameter_mm": 90, "max_diameter_mm": 60},
        {"boxes": [[0, 0, 10, 10]], "region": [0, 0, 10, 10]},
        {"boxes": [[10, 10, 5, 20]]},
    ):
        assert fault(scene, **arguments).kind == "invalid_argument"
    assert fault(scene, boxes=[[900, 900, 950, 950]]).kind == "region_empty"


def test_fruit_without_depth_is_not_guessed() -> None:
    scene = orchard(1000, **OPEN)
    x0, y0, x1, y1 = scene.boxes[0]
    scene.depth_mm[y0 - 4 : y1 + 4, x0 - 4 : x1 + 4] = 0
    assert measured(scene).n == len(scene.boxes) - 1
    scene.depth_mm[:] = 0
    scene.depth_mm[0, :20] = 900
    assert fault(scene).kind == "nothing_found"


CAMERA = Camera(900.0, 900.0, 960.0, 540.0)
PIXEL = 1 / 900


@given(st.floats(100, 1800), st.floats(100, 980), st.floats(15, 90), st.floats(0.5, 1), st.floats(0, 6.2),
       st.integers(0, 99))  # fmt: skip
def test_a_part_of_the_outline_gives_the_whole(x, y, radius, seen, turn, seed):
    axis = CAMERA.rays(np.array(x), np.array(y))
    cone = Cone(axis, float(np.arctan(radius / 900)))
    rim = np.roll(outline_points(cone, 200), int(turn * 30), axis=0)[: int(200 * seen)]
    draw = np.random.default_rng(seed)
    noisy = rim + draw.normal(0, 0.15 * PIXEL, rim.shape)
    noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
    # A leaf's edge straight across the fruit.
    leaf = axis + np.linspace(-0.5, 0.5, 20)[:, None] * (rim[0] - rim[len(rim) // 2])
    points = np.concatenate([noisy, leaf / np.linalg.norm(leaf, axis=1, keepdims=True)])
    inside = np.concatenate(
        [outline_points(Cone(axis, cone.half_angle * share), 24) for share in (0.3, 0.6, 0.9)]
    )
    evidence = RoundEvidence(points, inside, np.empty((0, 3)), np.empty(0), PIXEL)
    fit = fit_round(evidence, (cone.half_angle / 2.5, cone.half_angle * 2.5))
    assert fit.cone.half_angle == pytest.approx(cone.half_angle, rel=0.06)
    assert angle_from(fit.cone.axis, axis) < 0.08 * cone.half_angle
    assert fit.arc_coverage == pytest.approx(seen, abs=0.12)


MM = np.array([[0, 500, 1200], [1500, 65535, 2000]], np.uint16)


def depth_fault(path: Path, unit_mm: float | None = None) -> str:
    error = tool_error(read_depth, path, unit_mm)
    assert str(path.parent) not in str(error), "no path of this machine in a message"
    return error.kind


def saved(folder: Path, values: np.ndarray, name: str = "depth_1.npy") -> Path:
    np.save(folder / name, values)
    return folder / name


def test_png_and_tiff_of_16_bits(tmp_path: Path) -> None:
    Image.fromarray(MM).save(tmp_path / "a.png")
    write_raster(tmp_path / "a.tif", MM[None])
    for name in ("a.png", "a.tif"):
        depth = read_depth(tmp_path / name)
        assert depth.mm.shape == (2, 3)
        assert np.isnan(depth.mm[0, 0]), "0 is no depth"
        assert np.isnan(depth.mm[1, 1]), "nor is the largest value there is"
        assert depth.mm[1, 2] == 2000
        assert np.isfinite(depth.mm).mean() == pytest.approx(4 / 6)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2", "<u2", ">u2", "<i4", "<i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numbers(tmp_path: Path, dtype: str, order: str) -> None:
    values = np.asarray([[800, 900, 1000], [1100, 0, 1300]]).astype(dtype, order=order)
    depth = read_depth(saved(tmp_path, values))
    assert depth.mm.dtype == np.float32
    assert depth.mm[0].tolist() == [800, 900, 1000]
    assert np.isnan(depth.mm[1, 1])
    assert np.array_equal(
        read_depth(saved(tmp_path, values[..., None])).mm, depth.mm, equal_nan=True
    )
    assert np.array_equal(read_depth(saved(tmp_path, values[None])).mm, depth.mm, equal_nan=True)


def test_units_are_given_or_refused_and_gaps_are_nan(tmp_path: Path) -> None:
    values = np.array([[np.nan, np.inf, -np.inf, -5.0, 0.0, 900.0, 901.0]])
    assert np.isfinite(read_depth(saved(tmp_path, values)).mm).tolist() == [
        [False] * 5 + [True] * 2
    ]
    metres = saved(tmp_path, np.array([[1.2, 1.3], [0.0, 1.4]], np.float32))
    assert depth_fault(metres) == "missing_metadata"
    assert read_depth(metres, 1000).mm[0, 0] == pytest.approx(1200)
    assert depth_fault(metres, 1) == "invalid_argument"
    tenths = saved(tmp_path, np.array([[12000, 13000]], np.uint16))
    assert read_depth(tenths, 0.1).mm[0].tolist() == pytest.approx([1200, 1300])


def test_nothing_but_depth(tmp_path: Path) -> None:
    assert depth_fault(tmp_path / "none.npy") == "file_not_found"
    for name, content in (("empty.npy", ""), ("text.npy", "depth")):
        (tmp_path / name).write_text(content)
        assert depth_fault(tmp_path / name) == "unreadable_file"
    for name, shape in (("grey.png", (4, 4)), ("colour.png", (4, 4, 3)), ("photo.jpg", (4, 4, 3))):
        Image.fromarray(np.zeros(shape, np.uint8)).save(tmp_path / name)
        assert depth_fault(tmp_path / name) == "unreadable_file"
    assert depth_fault(saved(tmp_path, np.zeros((4, 4)))) == "nothing_found"
    for values in (
        np.array([[1.0 + 1j]]),
        np.array([["900"]]),
        np.zeros((3, 4, 5)),
        np.zeros(7),
        np.float64(3),
        np.zeros((0, 4)),
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4), bool),
        np.zeros((2, 2), [("z", "<f4")]),
    ):
        assert depth_fault(saved(tmp_path, values)) == "unreadable_file"


def test_objects_are_never_loaded_and_nothing_before_its_size_is_known(tmp_path: Path) -> None:
    bomb = np.array([[{"a": 1}]], dtype=object)
    np.save(tmp_path / "objects.npy", bomb, allow_pickle=True)
    assert depth_fault(tmp_path / "objects.npy") == "unreadable_file"
    for side, size, kind in ((20_000, 128 + 4 * 20_000**2, "limit"), (400, 192, "unreadable_file")):
        header = (
            f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({side}, {side}), }}".ljust(117)
            + "\n"
        )
        with (tmp_path / f"{side}.npy").open("wb") as file:
            file.write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode())
            file.truncate(size)  # a sparse file
        assert depth_fault(tmp_path / f"{side}.npy") == kind
    assert depth_fault(png_header_only(tmp_path / "bomb.png", 30_000, 30_000)) in (
        "limit",
        "unreadable_file",
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.binary(max_size=300))
def test_any_header_gives_a_typed_error_or_depth(tmp_path: Path, tail: bytes) -> None:
    (tmp_path / "odd.npy").write_bytes(b"\x93NUMPY" + tail)
    tool_error(read_depth, tmp_path / "odd.npy")
