"""The PApple RGB-D-Size adapter on a small data set in its authors' layout."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
from data_sets import APPLES_HEIGHT, APPLES_WIDTH, FOCAL_PX
from parts import things_of
from PIL import Image

from agrotools.build.sources.public import adapter_of

papple = adapter_of("papple")


def _number_of(folder: Path, picture: str, box: list[int]) -> str:
    """The apple whose whole outline has that box, found in the labels."""
    entries = json.loads((folder / "gt_json/test/via_region_data_amodal.json").read_text())
    entry = next(entry for entry in entries.values() if entry["filename"] == picture)
    numbers: set[str] = set()
    for region in entry["regions"].values():
        xs, ys = (region["shape_attributes"][f"all_points_{axis}"] for axis in "xy")
        if [min(xs), min(ys), max(xs) + 1, max(ys) + 1] == box:
            numbers.add(region["region_attributes"]["apple_ID"])
    (number,) = numbers
    return number


def test_sizes_depth_and_camera_go_with_every_picture(folder: Path, tmp_path: Path) -> None:
    part = papple(folder, tmp_path, 30)
    sizes = dict(line.split(",") for line in (folder / "GT_diameter.txt").read_text().split())
    things = things_of(part, "apple")
    asked: Counter[str] = Counter()
    for thing in things:
        picture = part.files[thing.files[0].path].name
        year = {"2": 2018, "7": 2020}[picture[4]]
        line = f"{year}_01_{_number_of(folder, picture, thing.arguments['boxes'][0]):0>3}.txt"  # pyright: ignore
        asked[line] += 1
        assert thing.truth == {"fruits": [{"id": 1, "diameter_mm": float(sizes[line])}], "n": 1}
    assert max(asked.values()) == 1
    assert {line[:4] for line in asked} == {"2018", "2020"}
    # An apple in two pieces is one; its number ends in 5.
    assert any(line.endswith("5.txt") for line in asked)
    halved = 0
    for thing in things_of(part):
        image, depth = thing.files
        assert (image.width_px, image.height_px) == (depth.width_px, depth.height_px) == (APPLES_WIDTH, APPLES_HEIGHT)
        assert image.intrinsics.fx_px == image.intrinsics.fy_px == FOCAL_PX
        assert depth.kind == "depth"
        stored = np.asarray(Image.open(part.files[depth.path])).astype(float)
        metres = np.load(folder / "depth_maps" / f"{part.files[image.path].stem}.npy")
        halved += metres.shape[0] < APPLES_HEIGHT
        step = APPLES_HEIGHT // metres.shape[0]
        assert depth.depth_unit_mm is not None
        assert np.abs(stored[::step, ::step] * depth.depth_unit_mm / 1000 - metres).max() < 0.6e-4
    assert halved


def test_other_names_of_folders_and_a_file_of_focal_lengths_are_read(own: Path, tmp_path: Path) -> None:
    (own / "depth_maps").rename(own / "depthCropNpy")
    (own / "GT_diameter.txt").rename(own / "GT_diameters.txt")
    (own / "focal_length.txt").write_text("_MG_2600_1.png,5000.5\n")
    own.rename(tmp_path / "data")
    (tmp_path / "set" / "PApple_v4").mkdir(parents=True)
    (tmp_path / "data").rename(tmp_path / "set" / "PApple_v4" / "data")
    part = papple(tmp_path / "set", tmp_path, 20)
    focal = {part.files[thing.files[0].path].name: thing.files[0].intrinsics.fx_px for thing in things_of(part)}  # pyright: ignore
    assert focal.pop("_MG_2600_1.png") == 5000.5
    assert set(focal.values()) == {FOCAL_PX}


def test_an_apple_with_two_diameters_is_left_out(own: Path, tmp_path: Path) -> None:
    before = {thing.truth["fruits"][0]["diameter_mm"] for thing in things_of(papple(own, tmp_path, 20))}  # pyright: ignore
    sizes = own / "GT_diameter.txt"
    lines = sizes.read_text().split()
    sizes.write_text("".join(f"{line}\n{line}.5\n" if number % 2 else f"{line}\n" for number, line in enumerate(lines)))
    after = {thing.truth["fruits"][0]["diameter_mm"] for thing in things_of(papple(own, tmp_path, 20))}  # pyright: ignore
    assert after < before
