"""The Hi-CNA adapter on a small data set as it is described."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from data_sets import FIELDS_PX, SHARES, draw_land, write_bands, write_hi_cna
from PIL import Image
from rasterio.transform import from_origin

from agrotools.build.sources.public import adapter_of

hi_cna = adapter_of("hi_cna")


def scenes(part):
    """Things by stem of the pair."""
    return {
        subject.name.removeprefix("hi_cna-"): subject.shown(0, 1) for subject in part.subjects if subject.of == "change"
    }


def shown(part, thing) -> list[np.ndarray]:
    return [np.asarray(Image.open(part.files[file.path])).astype(np.float64) for file in thing.files]


def test_change_is_what_the_masks_of_the_test_split_say(folder: Path, tmp_path: Path) -> None:
    part = hi_cna(folder, tmp_path, 20)
    assert sorted(scenes(part)) == [f"gf2_{number}" for number in range(len(SHARES))]
    for stem, thing in scenes(part).items():
        mask = np.asarray(Image.open(folder / "test/change" / f"{stem}.png")) > 0
        assert thing.truth["change_px"] == mask.sum()
        assert thing.truth["change_pct"] == pytest.approx(100 * mask.mean(), rel=1e-5)
        assert thing.truth["change_area_m2"] == pytest.approx(0.64 * mask.sum(), rel=1e-5)
        assert thing.truth["change_area_ha"] == pytest.approx(0.64e-4 * mask.sum(), rel=1e-5)
        assert thing.truth["changed"] == mask.any()
        assert [file.name for file in thing.files] == ["before.png", "after.png"]
        assert [file.gsd_m for file in thing.files] == [0.8, 0.8]
    assert not part.dropped


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_red_is_shown_red(tmp_path: Path, dtype: str) -> None:
    part = hi_cna(write_hi_cna(tmp_path / "set", SHARES, dtype), tmp_path, 20)
    for stem, thing in scenes(part).items():
        for pixels, bands in zip(shown(part, thing), draw_land(int(stem[4:]), SHARES[int(stem[4:])]), strict=False):
            for channel, band in enumerate((2, 1, 0)):
                assert np.corrcoef(pixels[..., channel].ravel(), bands[band].ravel())[0, 1] > 0.95
    assert ("as stored" in next(iter(scenes(part).values())).files[0].note) == (dtype == "uint8")


def test_ground_that_stayed_as_it_was_looks_as_it_did(tmp_path: Path) -> None:
    folder = write_hi_cna(tmp_path / "set", [30])
    (before, after), (first, second) = draw_land(0, 30)[:2], (folder / f"test/image{n}/gf2_0.tif" for n in (1, 2))
    write_bands(first, before, "uint16")
    same = np.where(np.mgrid[0:FIELDS_PX, 0:FIELDS_PX][1] < FIELDS_PX // 2, before, after)
    write_bands(second, same, "uint16")
    part = hi_cna(folder, tmp_path, 5)
    one, two = shown(part, scenes(part)["gf2_0"])
    assert np.array_equal(one[:, : FIELDS_PX // 2], two[:, : FIELDS_PX // 2])
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("nodata", [0, 255, None])
def test_masks_may_be_tiff_files_whatever_they_declare_as_no_data(tmp_path: Path, nodata: int | None) -> None:
    folder = write_hi_cna(tmp_path / "set", [0, 20])
    truths = [scene.truth for _, scene in sorted(scenes(hi_cna(folder, tmp_path, 5)).items())]
    for path in list((folder / "test/change").iterdir()):
        mask = np.asarray(Image.open(path))
        profile = {
            "driver": "GTiff",
            "count": 1,
            "height": FIELDS_PX,
            "width": FIELDS_PX,
            "dtype": "uint8",
            "crs": "EPSG:32650",
        }
        transform = from_origin(400_000, 3_400_000, 0.8, 0.8)
        with rasterio.open(path.with_suffix(".tif"), "w", nodata=nodata, transform=transform, **profile) as raster:
            raster.write(mask, 1)
        path.unlink()
    assert [scene.truth for _, scene in sorted(scenes(hi_cna(folder, tmp_path, 5)).items())] == truths
    assert [truth["changed"] for truth in truths] == [False, True]
