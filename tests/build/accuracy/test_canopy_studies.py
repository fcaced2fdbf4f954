"""The drawn canopies and the matching that figures of counting rest on."""

from pathlib import Path

import numpy as np
import pytest

from agrotools.build.accuracy.count_objects import (
    CANOPY_STUDIES,
    _match_tops,
    _most_pairs,
    canopy_scene,
)
from agrotools.build.accuracy.study import Bench


@pytest.mark.parametrize("kind", ["forest", "orchard"])
def test_scenes_are_the_same_each_time_and_their_trees_can_be_seen(kind: str) -> None:
    first, second = canopy_scene(kind, 4, side=120), canopy_scene(kind, 4, side=120)
    assert np.array_equal(first.heights, second.heights)
    assert not np.array_equal(first.heights, canopy_scene(kind, 5, side=120).heights)
    assert len(first.tops) == len(first.tall_m) == len(first.radius_m) > 20
    columns, rows = first.tops.astype(int).T
    around = [first.heights[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].max() for x, y in np.c_[columns, rows]]
    assert np.median(np.abs(around / first.tall_m - 1)) < 0.1


def test_each_object_is_matched_once_and_as_many_as_can_be() -> None:
    assert _most_pairs(np.array([[True, True], [True, False]])) == 2
    assert _most_pairs(np.array([[True], [True], [True]])) == 1
    assert _most_pairs(np.zeros((0, 4), bool)) == 0


def test_tops_are_matched_within_the_crown() -> None:
    scene = canopy_scene("orchard", 2, side=100)
    exact = np.column_stack([scene.tops, np.zeros((len(scene.tops), 7))])
    assert len(_match_tops(scene, exact)) == len(scene.tops)
    twice = np.concatenate([exact, exact])
    assert len(_match_tops(scene, twice)) == len(scene.tops)
    away = exact + 1000
    assert not _match_tops(scene, away)
    assert not _match_tops(scene, np.zeros((0, 9)))


@pytest.mark.slow
def test_surface_less_terrain_is_measured_to_centimetres(tmp_path: Path) -> None:
    study = next(study for study in CANOPY_STUDIES if not study.needs_folder)
    figures = study.measure(Bench(study.tool, tmp_path, tmp_path / "scratch"))
    assert all(figure.rows.max() < 0.05 for figure in figures)
