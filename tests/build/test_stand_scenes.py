import numpy as np
import pytest

from agrotools.build.scenes.stand_trees import LEAST_TREE_M, TALLEST_SHRUB_M
from agrotools.build.scenes.stands import BLOCK_GSD_M, make_block


@pytest.mark.parametrize(("seed", "difficulty", "kind"), [(1, 0, "orchard"), (2, 2, "forest"), (3, 3, "orchard")])
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


@pytest.mark.parametrize(("difficulty", "gsd_m"), [(0, 0.25), (1, 0.5), (3, 1.0)])
def test_the_height_model_covers_the_picture_and_gets_coarser(difficulty, gsd_m):
    scene = make_block(2, difficulty, "forest")
    rgb, chm = scene.images["rgb"], scene.images["chm"]
    assert scene.sidecar == {"gsd_m": BLOCK_GSD_M, "chm_gsd_m": gsd_m}
    assert rgb.dtype == np.uint8
    assert chm.dtype == np.float32
    factor = round(gsd_m / BLOCK_GSD_M)
    assert (chm.shape[0] * factor, chm.shape[1] * factor) == rgb.shape[:2]
    known = scene.masks["heights"]
    assert known.shape == chm.shape
    # Faults of the model: noise everywhere, pits in crowns, and errors of the ground where it is hard.
    off = np.abs(chm - known)
    assert 0 < np.median(off) < 0.5
    assert (off > 2).any()
