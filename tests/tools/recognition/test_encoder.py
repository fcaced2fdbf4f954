"""The shipped encoder: pictures as numbers, alike for pictures that are alike."""

import numpy as np

from agrotools_tools.recognition.encoder import shipped_encoder
from support.labelled_pictures import PLANTS, plant_picture


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_pictures_of_one_kind_are_nearer_than_those_of_another() -> None:
    encoder = shipped_encoder()
    green, too, brown = (
        encoder.embedding(plant_picture(PLANTS[name], seed))
        for name, seed in (("green leaf", 1), ("green leaf", 2), ("brown leaf", 3))
    )
    assert green.shape == (encoder.info.width,)
    assert np.isfinite(green).all()
    assert cosine(green, too) > cosine(green, brown)


def test_the_description_says_what_the_weights_rest_on() -> None:
    info = shipped_encoder().info
    assert "Apache-2.0" in info.source
    assert "ImageNet" in info.learnt_from
