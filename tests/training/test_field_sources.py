"""Readers of public repositories for ``field``: what they conclude from the pictures themselves."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

sys.path.append(str(Path(__file__).resolve().parents[2] / "training"))

from field_sources import deepweeds, land, orchards
from field_sources.weeds import _cells_by_edges

pytestmark = pytest.mark.unit


def test_tiles_of_two_maps_are_told_apart_and_placed_by_their_edges():
    rng = np.random.default_rng(7)
    # Smooth over some pixels, so that the last line of a tile resembles the first line of the next.
    maps = [gaussian_filter(rng.normal(size=(120, 160, 3)), (3, 3, 0)) for _ in range(2)]
    tiles = {}
    for number, ground in enumerate(maps):
        scaled = 20 + 230 * (ground - ground.min()) / np.ptp(ground)
        for row in range(3):
            for column in range(4):
                tile = scaled[40 * row : 40 * row + 40, 40 * column : 40 * column + 40]
                tiles[f"{number} {column} {row}"] = tile.astype(np.uint8)
    cells = _cells_by_edges(tiles)
    assert len(cells) == len(tiles)
    assert len({name for name, _ in cells.values()}) == len(maps)
    for path, (name, (column, row)) in cells.items():
        number, right, down = map(int, path.split())
        corner = cells[f"{number} 0 0"]
        assert (name, column - corner[1][0], row - corner[1][1]) == (corner[0], right, down)


def test_photographs_of_weeds_are_apart_in_time():
    names = [f"20170711-1200{second:02}-0" for second in range(0, 60, 3)]
    some = deepweeds._spread(names, ["20170711-120030-0"])
    seconds = sorted(int(name[13:15]) for name in [*some, "20170711-120030-0"])
    assert len(seconds) > 2
    assert min(np.diff(seconds)) >= deepweeds._LEAST_PAUSE_S
    assert deepweeds._spread(names[::-1], ["20170711-120030-0"]) == some


def test_boxes_of_tiles_are_in_pixels_and_slivers_are_left_out():
    text = "0 0.5 0.25 0.1 0.1\n0 0.999 0.5 0.002 0.1\n0 1.0 0.5 0.1 0.1\n"
    assert orchards._boxes(text) == [[288, 128, 352, 192], [608, 288, 640, 352]]


def test_the_window_of_a_town_lies_on_the_greenest_marked_tree():
    red, nir = np.full((256, 256), 100.0), np.full((256, 256), 100.0)
    nir[90:111, 90:111] = 300
    nir[198:203, 198:202] = 400  # greener, but its window reaches beyond it
    points = [(200.0, 200.0), (100.0, 100.0), (0.0, 0.0)]
    assert land._greenest_tree(points, red, nir) == [98, 98, 103, 103]


def test_a_town_without_a_green_crown_has_no_window():
    bare = np.full((256, 256), 100.0)
    assert land._greenest_tree([(100.0, 100.0)], bare, bare) is None
