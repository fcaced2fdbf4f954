import itertools

import numpy as np
import pytest

from agrotools.tools.crop_weed.bands import rank_triplets


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
