"""The WeedMap adapter on a small data set in its authors' layout."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from data_sets import (
    CHANNELS,
    COLUMNS_PX,
    CROP_ALONE,
    EMPTY,
    OUTSIDE,
    ROWS_PX,
    draw_channels,
    draw_labels,
    write_weedmap,
)
from PIL import Image
from rasterio.errors import NotGeoreferencedWarning

from agrotools.build.sources.public import adapter_of

weedmap = adapter_of("weedmap")
pytestmark = pytest.mark.filterwarnings(f"ignore::{NotGeoreferencedWarning.__module__}.NotGeoreferencedWarning")


SIZE = COLUMNS_PX, ROWS_PX


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    """The part of both maps."""
    folder = tmp_path_factory.mktemp("weedmap")
    (folder / "made").mkdir()
    return weedmap(write_weedmap(folder / "set"), folder / "made", 20)


def pictures(part):
    """Every picture of the part with the map and frame it was made from, found by its pixels."""
    drawn = {
        np.maximum(bands, 1)[:, valid].tobytes(): (name, frame)
        for name in CHANNELS
        for frame in range(8)
        for bands, (_, valid) in [(draw_channels(name, frame), draw_labels(name, frame))]
    }
    for subject in (one for one in part.subjects if one.of == "field"):
        for index in range(subject.things):
            picture = subject.shown(index, index + 1)
            with rasterio.open(part.files[picture.files[0].path]) as source:
                bands, valid = source.read(), source.dataset_mask() > 0
            yield picture, drawn[bands[:, valid].tobytes()]


def test_truth_is_what_the_labels_say_where_there_is_data(folder: Path, tmp_path: Path, scratch: Path) -> None:
    part = weedmap(folder, scratch, 20)
    found = list(pictures(part))
    assert sorted(at for _, at in found) == [
        (name, frame) for name in CHANNELS for frame in range(8) if frame not in (OUTSIDE, EMPTY)
    ]
    for picture, (name, frame) in found:
        classes, valid = draw_labels(name, frame)
        assert (picture.width, picture.height) == SIZE
        for region in (None, (0, 0, 160, 120), (100, 40, 300, 200)):
            x0, y0, x1, y1 = region or (0, 0, *SIZE)
            inside = classes[y0:y1, x0:x1][valid[y0:y1, x0:x1]]
            area = picture.area(region)
            assert area.total_px == inside.size
            assert (area.crop_px, area.weed_px, area.unnamed_px) == (np.sum(inside == 1), np.sum(inside == 2), 0)
            assert area.weed_pct == pytest.approx(100 * np.mean(inside == 2))
    assert part.dropped == {"empty": 2, "mostly outside the map": 2}


def test_tiles_have_named_bands_and_pairs_are_of_one_map(whole) -> None:
    for picture, (name, frame) in pictures(whole):
        file = picture.files[0]
        assert (file.kind, file.bands, file.gsd_m) == ("raster", CHANNELS[name], 0.01)
        assert file.name in ("bands_1.tif", "bands_2.tif")
        assert picture.arguments == {"image": file.name}
        with rasterio.open(whole.files[file.path]) as source:
            assert (source.descriptions, source.nodata) == (CHANNELS[name], 0)
            assert np.array_equal(source.dataset_mask() > 0, draw_labels(name, frame)[1])
            assert np.abs(source.read().astype(int) - draw_channels(name, frame)).max() <= 1
    for subject in (one for one in whole.subjects if one.of == "field"):
        assert len({subject.shown(index, 1).files[0].bands for index in range(subject.things)}) == 1


def test_tiles_with_crop_and_weeds_come_first_and_no_more_are_made_than_needed(folder, tmp_path, scratch):
    part = weedmap(folder, scratch, 5)
    frames = [at for _, at in pictures(part)]
    assert len(frames) == len(part.files) == len(list(scratch.iterdir())) == 10
    assert all(frame != CROP_ALONE for _, frame in frames)
    assert {name for name, _ in frames} == {"003", "005"}


def test_grey_may_be_stored_as_colours(tmp_path: Path, scratch: Path) -> None:
    root = write_weedmap(tmp_path / "set", maps="005") / "Tiles" / "Sequoia" / "005"
    expected = weedmap(tmp_path / "set", scratch, 20).files.keys()
    for path in (root / "tile" / "G").glob("*.png"):
        with Image.open(path) as picture:
            picture.convert("RGB").save(path)
    assert weedmap(tmp_path / "set", scratch, 20).files.keys() == expected
