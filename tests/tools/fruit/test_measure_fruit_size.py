"""The sizes of fruits: in scenes of known sizes, on bad input, and against callipers where real frames are at hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools.build.scenes.orchard import WELL_SEEN, make_orchard
from agrotools.core import Intrinsics, SampleFile, ToolError
from agrotools.tools import get_tool
from agrotools.tools.fruit.result import FruitSizes
from agrotools.tools.workspace import CallContext, artifacts_in, call_context
from support.orchard_scenes import GREEN_FRUIT, ORANGE_FRUIT, Scene, orchard

SIZE = (480, 360)
OPEN: dict[str, Any] = {"size": SIZE, "focal_px": 500.0, "fruits": 5, "leaves": 0}
HIDDEN: dict[str, Any] = OPEN | {"leaves": 9}


def files(folder: Path, scene: Scene, name: str = "image_1.png") -> tuple[Path, Path]:
    Image.fromarray(scene.pixels).save(folder / name)
    depth = folder / f"{Path(name).stem}_depth.png"
    Image.fromarray(np.rint(scene.depth_mm).astype(np.uint16)).save(depth)
    return folder / name, depth


def measured(folder: Path, image: Path, **arguments: Any) -> FruitSizes:
    with artifacts_in(folder / "made"):
        return get_tool("measure_fruit_size")(image, **arguments)


def sized(folder: Path, scene: Scene, **arguments: Any) -> FruitSizes:
    image, depth = files(folder, scene)
    return measured(folder, image, depth=depth, fx_px=scene.focal_px, **arguments)


def fault(folder: Path, image: Path, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        measured(folder, image, **arguments)
    assert str(folder) not in str(caught.value)
    return caught.value


def errors(scene: Scene, result: FruitSizes) -> list[tuple[float, float]]:
    """Of each true fruit that was found: error of the diameter in mm, and the share of it that can be seen."""
    centres = np.array([fruit.centre_px for fruit in result.fruits])
    found: list[tuple[float, float]] = []
    for number, centre in enumerate(scene.centre_px):
        away = np.hypot(*(centres - centre).T)
        nearest = int(away.argmin())
        if away[nearest] < result.fruits[nearest].radius_px:
            found.append((result.fruits[nearest].diameter_mm - scene.diameters_mm[number], scene.visible[number]))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_fruits_in_the_open(tmp_path: Path, seed: int) -> None:
    scene = orchard(1000 + seed, **OPEN)
    image, depth = files(tmp_path, scene)
    result = measured(tmp_path, image, depth=depth, fx_px=500, depth_unit_mm=1)
    wrong = errors(scene, result)
    assert len(wrong) == len(scene.diameters_mm) == result.n
    assert max(abs(error) for error, _ in wrong) < 3.0
    assert result.mean_diameter_mm == pytest.approx(scene.diameters_mm.mean(), abs=2)
    assert sum(result.size_classes.values()) == result.n_measured
    for fruit in result.fruits:
        assert min(abs(fruit.distance_mm - scene.centres_mm[:, 2])) < 12, "to the middle, not the surface"
    assert (tmp_path / "made" / result.overlay.name).is_file()


def test_hidden_parts_are_completed(tmp_path: Path) -> None:
    wrong: list[tuple[float, float]] = []
    in_boxes: list[float] = []
    for seed in range(2000, 2004):
        scene = orchard(seed, **HIDDEN)
        image, depth = files(tmp_path, scene, f"image_{seed}.png")
        result = measured(tmp_path, image, depth=depth, fx_px=500, depth_unit_mm=1)
        wrong += errors(scene, result)
        seen = [number for number in range(len(scene.boxes)) if scene.visible[number] > 0.4]
        given = measured(
            tmp_path, image, depth=depth, fx_px=500, depth_unit_mm=1, boxes=[scene.boxes[number] for number in seen]
        )
        in_boxes += [abs(fruit.diameter_mm - scene.diameters_mm[seen[fruit.id - 1]]) for fruit in given.fruits]
    well_seen = [abs(error) for error, visible in wrong if visible > 0.6]
    assert len(well_seen) >= 10
    assert np.mean(well_seen) < 3.0
    assert np.mean(in_boxes) < 4.0


def test_one_distance_for_all_fruits(tmp_path: Path) -> None:
    scene = orchard(7, **OPEN | {"distance_mm": (1195, 1205)})
    image, _ = files(tmp_path, scene)
    result = measured(tmp_path, image, distance_mm=1200, fx_px=500)
    assert max(abs(error) for error, _ in errors(scene, result)) < 3.0
    assert "one_distance_for_all" in result.flags
    nearer = measured(tmp_path, image, distance_mm=600, fx_px=500)
    assert nearer.mean_diameter_mm == pytest.approx((result.mean_diameter_mm or 0) / 2, rel=0.03)


def test_red_things_that_are_no_fruit_are_doubted(tmp_path: Path) -> None:
    pixels = np.full((300, 300, 3), (60, 130, 50), np.uint8)
    rows, columns = np.mgrid[:300, :300]
    pixels[np.hypot(rows - 150, columns - 150) < 40] = (200, 30, 30)
    Image.fromarray(pixels).save(tmp_path / "button.png")
    result = measured(tmp_path, tmp_path / "button.png", distance_mm=1000, fx_px=700)
    assert "out_of_distribution" in result.flags
    Image.fromarray(make_orchard(3, 0).images["rgb"]).save(tmp_path / "orchard.png")
    assert "out_of_distribution" not in measured(tmp_path, tmp_path / "orchard.png", distance_mm=1000, fx_px=700).flags


def test_fruit_that_hardly_differs_from_leaves_is_found_by_the_net(tmp_path: Path) -> None:
    scene = make_orchard(70_002, 1)
    Image.fromarray(scene.images["rgb"]).save(tmp_path / "orchard.png")
    Image.fromarray(scene.images["depth"]).save(tmp_path / "depth.png")
    arguments = {"depth": tmp_path / "depth.png", "depth_unit_mm": 1, "fx_px": scene.sidecar["fx_px"]}
    result = measured(tmp_path, tmp_path / "orchard.png", **arguments)
    fruits = scene.truth["fruits"]
    assert len(fruits) / 2 < result.n <= len(fruits), "the search by colour found 29 things"
    true = np.mean([fruit["diameter_mm"] for fruit in fruits if fruit["visibility"] >= WELL_SEEN])
    assert result.mean_diameter_mm == pytest.approx(true, abs=4)
    assert "the net" in " ".join(result.notes)


def test_fruit_of_another_colour_is_found_and_pale_fruit_in_boxes_only(tmp_path: Path) -> None:
    scene = orchard(11, **OPEN | {"colour": ORANGE_FRUIT})
    image, depth = files(tmp_path, scene)
    result = measured(tmp_path, image, depth=depth, fx_px=500, fruit="orange")
    assert result.mean_diameter_mm == pytest.approx(scene.diameters_mm.mean(), abs=3)
    scene = orchard(5, **OPEN | {"colour": GREEN_FRUIT})
    image, depth = files(tmp_path, scene)
    error = fault(tmp_path, image, depth=depth, fx_px=500)
    assert error.kind == "nothing_found"
    result = measured(tmp_path, image, depth=depth, fx_px=500, boxes=scene.boxes)
    assert "pale_fruit_possible" in result.flags
    wrong = [abs(fruit.diameter_mm - scene.diameters_mm[fruit.id - 1]) for fruit in result.fruits]
    assert len(wrong) == len(scene.boxes)
    assert np.median(wrong) < 4.0


def test_a_box_without_a_fruit_is_named(tmp_path: Path) -> None:
    scene = orchard(1000, **OPEN)
    scene.depth_mm[:60, :60] = 0
    scene.pixels[:60, :60] = (60, 90, 50)
    image, depth = files(tmp_path, scene)
    boxes = [[5, 5, 40, 40], *(list(box) for box in scene.boxes)]
    result = measured(tmp_path, image, depth=depth, fx_px=500, boxes=boxes)
    assert result.boxes_without_fruit == (1,)
    assert [fruit.id for fruit in result.fruits] == list(range(2, len(boxes) + 1))


def test_resized_pictures_with_scaled_intrinsics(tmp_path: Path) -> None:
    scene = orchard(1002, **OPEN)
    image, depth = files(tmp_path, scene)
    straight = measured(tmp_path, image, depth=depth, fx_px=500)
    Image.open(image).resize((960, 720), Image.Resampling.BICUBIC).save(tmp_path / "image_2.png")
    Image.open(depth).resize((960, 720), Image.Resampling.NEAREST).save(tmp_path / "depth_2.png")
    scaled = {"fx_px": 500, "calibrated_width_px": 480, "calibrated_height_px": 360}
    twice = measured(tmp_path, tmp_path / "image_2.png", depth=tmp_path / "depth_2.png", **scaled)
    assert twice.mean_diameter_mm == pytest.approx(straight.mean_diameter_mm, abs=1.5)
    by_lens = measured(
        tmp_path, tmp_path / "image_2.png", depth=tmp_path / "depth_2.png", focal_mm=5.0, sensor_width_mm=4.8
    )
    assert by_lens.mean_diameter_mm == pytest.approx(twice.mean_diameter_mm)


def test_depth_in_other_units_and_forms(tmp_path: Path) -> None:
    scene = orchard(1001, **OPEN)
    scene.depth_mm = np.rint(scene.depth_mm)
    image, depth = files(tmp_path, scene)
    known = measured(tmp_path, image, depth=depth, fx_px=500, depth_unit_mm=1)
    np.save(tmp_path / "metres.npy", np.where(scene.depth_mm > 0, scene.depth_mm / 1000, np.nan))
    assert fault(tmp_path, image, depth=tmp_path / "metres.npy", fx_px=500).kind == "missing_metadata"
    metres = measured(tmp_path, image, depth=tmp_path / "metres.npy", fx_px=500, depth_unit_mm=1000)
    assert metres.mean_diameter_mm == pytest.approx(known.mean_diameter_mm, rel=1e-4)
    Image.fromarray((scene.depth_mm * 10).astype(np.uint16)).save(tmp_path / "tenths.png")
    told = SampleFile(name="tenths.png", path="tenths.png", kind="depth", depth_unit_mm=0.1)
    with call_context(CallContext(keep=lambda artifact, _: artifact, infos={tmp_path / "tenths.png": told})):
        tenths = get_tool("measure_fruit_size")(image, depth=tmp_path / "tenths.png", fx_px=500)
    assert tenths.mean_diameter_mm == pytest.approx(known.mean_diameter_mm, rel=1e-4)


def test_a_region_and_its_boxes_lie_where_the_picture_has_them(tmp_path: Path) -> None:
    scene = orchard(1000, **OPEN)
    image, depth = files(tmp_path, scene)
    whole = measured(tmp_path, image, depth=depth, fx_px=500)
    x0, y0, x1, y1 = scene.boxes[0]
    part = measured(tmp_path, image, depth=depth, fx_px=500, region=[x0 - 8, y0 - 8, x1 + 8, y1 + 8])
    middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    nearest = min(whole.fruits, key=lambda fruit: np.hypot(*(np.array(fruit.centre_px) - middle)))
    inside = min(part.fruits, key=lambda fruit: np.hypot(*(np.array(fruit.centre_px) - middle)))
    assert inside.diameter_mm == pytest.approx(nearest.diameter_mm, abs=1.0)
    assert fault(tmp_path, image, depth=depth, fx_px=500, region=[900, 900, 950, 950]).kind == "region_empty"


def test_intrinsics_come_with_the_file_and_follow_its_size(tmp_path: Path) -> None:
    scene = orchard(1000, **OPEN)
    image, depth = files(tmp_path, scene)
    known = measured(tmp_path, image, depth=depth, fx_px=500)
    sidecar = {
        "intrinsics": {"fx_px": 1000, "fy_px": 1000, "cx_px": 480, "cy_px": 360},
        "width_px": 960,
        "height_px": 720,
    }
    (tmp_path / "image_1.png.meta.json").write_text(json.dumps(sidecar))
    assert measured(tmp_path, image, depth=depth).mean_diameter_mm == pytest.approx(known.mean_diameter_mm)
    (tmp_path / "image_1.png.meta.json").write_text(json.dumps(sidecar | {"width_px": 1280}))
    assert fault(tmp_path, image, depth=depth).kind == "shape_mismatch"
    inner = Intrinsics(fx_px=500, fy_px=500, cx_px=240, cy_px=180)
    told = SampleFile(name="image_1.png", path="image_1.png", kind="image", intrinsics=inner)
    with call_context(CallContext(keep=lambda artifact, _: artifact, infos={image: told})):
        result = get_tool("measure_fruit_size")(image, depth=depth)
    assert result.mean_diameter_mm == pytest.approx(known.mean_diameter_mm)


def test_the_focal_length_in_an_exif_block_is_an_estimate(tmp_path: Path) -> None:
    scene = orchard(1000, **OPEN)
    image, depth = files(tmp_path, scene)
    known = measured(tmp_path, image, depth=depth, fx_px=500)
    exif = Image.Exif()
    exif[0x8769] = {0xA405: 36}  # 500 px x 43.27 mm / 600 px of diagonal
    Image.fromarray(scene.pixels).save(tmp_path / "image_2.png", exif=exif)
    result = measured(tmp_path, tmp_path / "image_2.png", depth=depth)
    assert "estimated_intrinsics" in result.flags
    assert result.mean_diameter_mm == pytest.approx(known.mean_diameter_mm, rel=0.02)


def test_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    image, depth = files(tmp_path, orchard(1000, **OPEN))
    error = fault(tmp_path, image, fx_px=500)
    assert (error.kind, error.argument) == ("missing_metadata", "depth")
    error = fault(tmp_path, image, depth=depth)
    assert (error.kind, error.argument) == ("missing_metadata", "fx_px")
    for arguments in (
        {"depth": depth, "distance_mm": 900, "fx_px": 500},
        {"depth": depth, "fy_px": 500},
        {"depth": depth, "focal_mm": 4},
        {"depth": depth, "fx_px": 500, "calibrated_width_px": 960},
        {"depth": depth, "fx_px": 500, "min_diameter_mm": 90, "max_diameter_mm": 60},
        {"depth": depth, "fx_px": 500, "boxes": [[0, 0, 10, 10]], "region": [0, 0, 10, 10]},
        {"depth": depth, "fx_px": 500, "boxes": [[10, 10, 5, 20]]},
    ):
        assert fault(tmp_path, image, **arguments).kind == "invalid_argument"
    assert fault(tmp_path, image, depth=depth, fx_px=500, boxes=[[900, 900, 950, 950]]).kind == "region_empty"


def test_depth_of_another_size_is_refused(tmp_path: Path) -> None:
    image, _ = files(tmp_path, orchard(1000, **OPEN))
    Image.fromarray(np.full((100, 100), 900, np.uint16)).save(tmp_path / "small.png")
    assert fault(tmp_path, image, depth=tmp_path / "small.png", fx_px=500).kind == "shape_mismatch"
    Image.fromarray(np.full((480, 360), 900, np.uint16)).save(tmp_path / "turned.png")


def test_fruit_without_depth_is_not_guessed(tmp_path: Path) -> None:
    scene = orchard(1000, **OPEN)
    x0, y0, x1, y1 = scene.boxes[0]
    scene.depth_mm[y0 - 4 : y1 + 4, x0 - 4 : x1 + 4] = 0
    assert sized(tmp_path, scene).n == len(scene.boxes) - 1
    scene.depth_mm[:] = 0
    scene.depth_mm[0, :20] = 900
    error = fault(tmp_path, files(tmp_path, scene)[0], depth=files(tmp_path, scene)[1], fx_px=500)
    assert error.kind == "nothing_found"
