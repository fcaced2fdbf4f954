"""The drawn canopies and the matching that figures of counting rest on."""

from pathlib import Path

import numpy as np
import pytest

from agrotools.build.accuracy.count_objects import CANOPY_STUDIES, _match_tops, _most_pairs
from agrotools.build.accuracy.study import Bench


def test_each_top_is_matched_once_within_its_crown() -> None:
    assert _most_pairs(np.array([[True, True], [True, False]])) == 2
    assert _most_pairs(np.array([[True], [True], [True]])) == 1
    assert _most_pairs(np.zeros((0, 4), bool)) == 0
    tops, radii = np.array([[10.0, 10.0], [20.0, 10.0], [12.0, 30.0]]), np.array([3.0, 4.0, 2.0])
    exact = np.column_stack([tops, np.zeros((3, 7))])
    assert len(_match_tops(tops, radii, exact)) == 3
    assert len(_match_tops(tops, radii, np.concatenate([exact, exact]))) == 3
    assert not _match_tops(tops, radii, exact + 1000)
    assert not _match_tops(tops, radii, np.zeros((0, 9)))


@pytest.mark.slow
def test_surface_less_terrain_is_measured_to_centimetres(tmp_path: Path) -> None:
    study = next(study for study in CANOPY_STUDIES if not study.needs_folder)
    figures = study.measure(Bench(study.tool, tmp_path, tmp_path / "scratch"))
    assert all(figure.rows.max() < 0.05 for figure in figures)
