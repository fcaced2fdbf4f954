"""Strangeness of pictures to the domains of tools."""

import numpy as np
import pytest

from agrotools_build.scenes.leaf_photo import make_leaf_photo
from agrotools_build.scenes.orchard import make_orchard
from agrotools_tools.vision.strangeness import (
    nearest_distance,
    picture_traits,
    strangeness,
    unit_rows,
)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_scenes_are_not_strange(seed: int) -> None:
    orchard, leaf = (
        make_orchard(9_100 + seed, 1).images["rgb"],
        make_leaf_photo(9_100 + seed, 1).images["rgb"],
    )
    assert not strangeness(orchard, "fruit").is_strange
    assert not strangeness(leaf, "leaf").is_strange


@pytest.mark.parametrize("domain", ["fruit", "leaf", "field"])
def test_a_page_and_stripes_are_strange(domain: str) -> None:
    page = np.full((300, 200, 3), 250, np.uint8)
    page[40:260:20, 20:180] = 10
    stripes = np.zeros((200, 200, 3), np.uint8)
    stripes[:, ::7] = (255, 0, 255)
    for picture in (page, stripes):
        assert strangeness(picture, domain).is_strange
        assert strangeness(picture_traits(picture), domain) == strangeness(picture, domain)


def test_the_named_class_decides() -> None:
    traits = picture_traits(make_leaf_photo(9_200, 0).images["rgb"])
    embedding = np.random.default_rng(0).normal(size=256).astype(np.float32)
    scores = {label: strangeness(traits, "weeds", embedding=embedding, label=label).score
              for label in ("siam_weed", "lantana")}  # fmt: skip
    assert scores["siam_weed"] != scores["lantana"]
    assert strangeness(traits, "weeds", embedding=embedding).score <= min(scores.values()) + 1e-9


def test_a_picture_that_is_less_like_those_learnt_from_is_stranger() -> None:
    traits = picture_traits(make_leaf_photo(9_200, 0).images["rgb"])
    embedding = np.random.default_rng(0).normal(size=192).astype(np.float32)
    scores = [
        strangeness(
            traits,
            "leaves",
            embedding=embedding,
            label="coffee_rust",
            likeness=np.array([likeness]),
        ).score
        for likeness in (0.99, 0.9, 0.5)
    ]
    assert scores == sorted(set(scores))


def test_distance_is_to_the_nearest_references() -> None:
    references = np.array([[0, 0], [0, 3], [0, 4], [90, 90]], np.float32)
    assert nearest_distance(np.zeros((1, 2), np.float32), references)[0] == pytest.approx(
        np.sqrt((9 + 16) / 3)
    )
    assert np.linalg.norm(unit_rows(references + 1), axis=1) == pytest.approx(1)
