import cv2
import numpy as np
import pytest

from agrotools.build.scenes.stand_trees import LEAST_TREE_M, TALLEST_SHRUB_M, Lobe, Tree, plant_orchard
from agrotools.build.scenes.stands import BLOCK_GSD_M, grow, make_block, make_tract


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


def test_a_crown_of_several_lobes_has_several_apexes():
    from skimage.feature import peak_local_max

    def tops(lobes):
        tree = Tree(6.0, 6.0, 14.0, 4.5, "broadleaf", lobes, 2.2, 0.5, 1.0, 0.0)
        surface = grow(np.random.default_rng(2), [tree], 120, 120, 0.1)
        smooth = cv2.GaussianBlur(surface.heights, (0, 0), 5)
        return len(peak_local_max(smooth, min_distance=8, threshold_abs=7.0))

    leader = Lobe(0.0, 0.0, 1.0, 0.8)
    assert tops((leader,)) == 1
    assert tops((leader, Lobe(0.6, 0.0, 0.97, 0.5), Lobe(-0.5, 0.4, 0.96, 0.5))) >= 2


def test_more_crowns_have_several_lobes_where_it_is_hard():
    def share(several):
        trees, _ = plant_orchard(np.random.default_rng(3), 128, 112, 0.05, several, 0.0)
        return np.mean([len(tree.lobes) > 1 for tree in trees])

    assert share(0.0) == 0
    assert 0.5 < share(0.6) < 0.7


def test_shadows_fall_to_one_side_and_are_dark():
    scene = make_block(4, 0, "orchard")
    grey = scene.images["rgb"].astype(float).mean(axis=2)
    bare = scene.masks["crowns"] == 0
    assert np.quantile(grey[bare], 0.03) < 0.75 * np.median(grey[bare])


def test_a_tract_has_old_and_young_stands_and_open_ground():
    scene = make_tract(3, 1)
    heights = scene.masks["heights"]
    assert (heights < 2).mean() > 0.1
    assert ((heights > 3) & (heights < 8)).mean() > 0.1
    assert (heights > 12).mean() > 0.1
    assert scene.images["rgb"].shape[:2] == scene.images["chm"].shape
