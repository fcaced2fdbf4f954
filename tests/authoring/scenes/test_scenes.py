"""Drawn scenes: equal arguments draw the same, what is drawn is what their truth says, and files tell nothing else."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
import rasterio

from agrotools.core import InfrastructureError
from agrotools_build.scenes.farmland import BECOMES, make_farmland_pair
from agrotools_build.scenes.leaf_photo import HEALTHY, LESION, make_leaf_photo
from agrotools_build.scenes.leaf_photo import KINDS as LESIONS
from agrotools_build.scenes.orchard import make_orchard
from agrotools_build.scenes.ponds import EVENTS, make_pond_pair
from agrotools_build.scenes.processes import Order
from agrotools_build.scenes.rows import CLASSES, SOIL, make_scene
from agrotools_build.scenes.stands import LEAST_TREE_M, TALLEST_SHRUB_M, make_block
from agrotools_build.sources.drawn import save_blank, save_heights, save_jpeg, save_png
from agrotools_build.sources.drawn.drawing import draw_all

RED, INFRARED = 2, 4
scene_of = cache(make_scene)


@pytest.mark.parametrize("difficulty", [0, 1, 2, 3])
def test_bands_look_like_leaves_and_soil(difficulty):
    """In reflectance, leaves are bright in the near infrared and dark in the red; soil rises slowly."""
    scene = scene_of(3, difficulty)
    assert (scene.images["rgb"].shape, scene.images["bands"].dtype) == ((480, 640, 3), np.uint16)
    bands = scene.images["bands"].astype(float) / 1e4
    ndvi = (bands[INFRARED] - bands[RED]) / (bands[INFRARED] + bands[RED])
    classes = scene.masks["classes"]
    assert set(np.unique(classes)) == set(CLASSES)
    assert np.median(ndvi[classes != SOIL]) > 0.55
    assert np.median(ndvi[classes == SOIL]) < 0.3
    assert 0.01 < np.median(bands[INFRARED]) < 0.7


@pytest.mark.parametrize("becomes", BECOMES)
def test_what_was_lost_is_of_one_kind_and_looks_changed(becomes):
    scene = make_farmland_pair(21, 0, "aerial", becomes)
    lost = scene.masks["lost"]
    assert set(np.unique(lost)) == {0, 1 + BECOMES.index(becomes)}
    assert 0.01 < (lost > 0).mean() < 0.5
    assert scene.truth["becomes"] == becomes
    differs = np.abs(scene.images["after"].astype(float) - scene.images["before"]).mean(axis=2)
    assert differs[lost > 0].mean() > 8


@pytest.mark.parametrize("event", EVENTS)
def test_masks_and_truth_tell_the_same_event(event):
    scene = make_pond_pair(17, 0, event)
    assert scene.truth == {"event": event}
    for name in ("before", "after"):
        assert scene.images[name].shape == (384, 512, 3)
        assert not (scene.masks[f"water_{name}"] & ~scene.masks[f"basins_{name}"] & 1).any(), (
            "water lies in basins"
        )
    pond, water = (
        [scene.masks[f"{what}_{name}"].any() for name in ("before", "after")]
        for what in ("basins", "water")
    )
    dug = {"constructed": [False, True], "demolished": [True, False], "none": [pond[0], pond[0]]}
    wet = {"dried": [True, False], "wetted": [False, True], "none": [water[0], water[0]]}
    assert pond == dug.get(event, [True, True])
    assert water == wet.get(event, pond)
    if event not in ("constructed", "demolished"):
        np.testing.assert_array_equal(scene.masks["basins_before"], scene.masks["basins_after"])


def test_other_ponds_may_have_events_of_their_own():
    scene = make_pond_pair(17, 0, "none", others_change=True)
    pair = [scene.masks[f"water_{name}"] for name in ("before", "after")]
    pieces = [cv2.connectedComponents(water, connectivity=8)[0] - 1 for water in pair]
    assert min(pieces) >= 1, "the pond without an event"
    assert pieces[0] != pieces[1], "another one that dried, filled, or was built or removed"
    alone = make_pond_pair(17, 0, "none")
    assert alone.masks["water_before"].any() == alone.masks["water_after"].any()


@pytest.mark.parametrize(
    ("seed", "difficulty", "kind"), [(1, 0, "orchard"), (2, 2, "forest"), (3, 3, "orchard")]
)
def test_every_tree_of_the_truth_is_seen_where_it_is_said_to_stand(seed, difficulty, kind):
    scene = make_block(seed, difficulty, kind)
    trees = scene.truth["trees"]
    crowns = scene.masks["crowns"]
    assert len(trees) > 30
    owners = [crowns[int(y), int(x)] for x, y, _, _ in trees]
    assert min(owners) > 0
    assert len(set(owners)) == len(owners), "each stands under its own crown"
    tall = [height for _, _, height, _ in trees]
    assert min(tall) >= LEAST_TREE_M > 2 > TALLEST_SHRUB_M
    assert scene.masks["heights"].max() <= max(*tall, 60)


orchard_of = cache(make_orchard)


@pytest.mark.parametrize(("difficulty", "seeds"), [(0, range(11, 12)), (3, range(11, 16))])
def test_fruit_is_as_large_as_its_depth_and_outline_say(difficulty, seeds):
    checked = 0
    for seed in seeds:
        scene = orchard_of(seed, difficulty)
        focal, depth, ids = scene.sidecar["fx_px"], scene.images["depth"], scene.masks["ids"]
        assert (ids.shape, depth.dtype) == ((480, 640), np.uint16)
        for fruit in scene.truth["fruits"]:
            if fruit["visibility"] < 1:
                continue
            checked += 1
            own = ids == fruit["id"]
            middle = np.median(depth[own & (depth > 0)]) + 0.35 * fruit["diameter_mm"]
            # An apple is up to a fourteenth less long than thick, and lies in any direction.
            across = 2 * np.sqrt(own.sum() / np.pi) * middle / focal
            assert across == pytest.approx(fruit["diameter_mm"], rel=0.08)
    assert checked


@pytest.mark.parametrize("lesion", LESIONS)
def test_severity_is_exact_and_near_what_was_asked_and_lesions_look_unlike_the_leaf(lesion):
    scene = make_leaf_photo(9, 0, "apple", lesion, severity_pct=15.0)
    classes, (leaf,) = scene.masks["classes"], scene.truth["leaves"]
    assert leaf["lesion_area_px"] == (classes == LESION).sum()
    assert leaf["leaf_area_px"] == (classes >= HEALTHY).sum()
    assert leaf["severity_pct"] == pytest.approx(
        100 * leaf["lesion_area_px"] / leaf["leaf_area_px"], abs=1e-3
    )
    assert leaf["severity_pct"] == pytest.approx(15.0, abs=4.5)
    # Healthy tissue is greener than red by far; all lesions lose that.
    photo = scene.images["rgb"].astype(int)
    green = photo[..., 1] - photo[..., 0]
    assert np.median(green[classes == LESION]) < np.median(green[classes == HEALTHY]) - 15


RANDOM = np.random.default_rng(0)


def write(path: Path) -> None:
    if path.suffix == ".jpg":
        save_jpeg(path, RANDOM.integers(0, 256, (200, 300, 3), dtype=np.uint8))
    elif path.suffix == ".png":
        save_png(path, RANDOM.integers(0, 9999, (200, 300)).astype(np.uint16))
    else:
        save_heights(path, RANDOM.random((96, 96), np.float32), 1.0)


@pytest.mark.parametrize("name", ["photo_1.jpg", "depth_1.png", "heights_1.tif"])
def test_a_blank_file_is_as_large_as_the_one_it_replaces(tmp_path: Path, name: str) -> None:
    original, blank = tmp_path / name, tmp_path / f"blank_{name}"
    write(original)
    save_blank(blank, original, seed=3)
    assert blank.stat().st_size == original.stat().st_size
    if blank.suffix == ".tif":
        with rasterio.open(blank) as raster:
            assert set(np.unique(raster.read(1))) == {
                np.float32(raster.nodata),
                np.finfo(np.float32).min,
            }
    else:
        pixels = cv2.imread(str(blank), cv2.IMREAD_UNCHANGED)
        assert pixels is not None
        assert pixels.shape[:2] == (200, 300)


def test_photographs_have_sizes_in_whole_blocks(tmp_path: Path) -> None:
    plain, full = tmp_path / "plain.jpg", tmp_path / "full.jpg"
    save_jpeg(plain, np.full((200, 300, 3), 90, np.uint8))
    write(full)
    assert plain.stat().st_size == 24 * 1024
    assert full.stat().st_size % (24 * 1024) == 0
    assert np.asarray(cv2.imread(str(plain))).shape == (200, 300, 3)


def _contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_scene_that_cannot_be_drawn_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InfrastructureError, match="no drawn scenes 'no_such_scenes'"):
        draw_all([Order("no_such_scenes", 3, 1)], tmp_path, lambda *_: None)
    assert not list(tmp_path.rglob("record.json"))


_DRAW = """
import sys
from pathlib import Path
from agrotools_build.scenes.processes import Order
from agrotools_build.sources.drawn.drawing import draw_all
orders = [Order("blocks", seed, difficulty) for seed, difficulty in ((5, 0), (6, 2), (7, 1))]
draw_all(orders, Path(sys.argv[1]), lambda what, done, total: print(done, total, flush=True), workers=2)
"""


@pytest.mark.slow
def test_drawing_that_is_killed_goes_on_and_draws_what_it_would_have_drawn(tmp_path):
    def draw(folder):
        command = [sys.executable, "-c", _DRAW, str(tmp_path / folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    with draw("killed") as killed:
        for line in killed.stdout:
            if line == "1 3\n":
                os.killpg(killed.pid, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    kept = len(list((tmp_path / "killed").glob("*/record.json")))
    assert 1 <= kept < 3
    with draw("killed") as again, draw("whole") as whole:
        told, _ = again.communicate()
        assert told.split("\n")[0] == f"{kept} 3"
        assert told.split("\n")[-2] == "3 3"
        whole.communicate()
    assert (again.returncode, whole.returncode) == (0, 0)
    assert _contents(tmp_path / "killed") == _contents(tmp_path / "whole")
