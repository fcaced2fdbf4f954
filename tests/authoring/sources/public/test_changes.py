"""Adapters of pairs with masks of change: CLCD, FPCD and Hi-CNA."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import (
    FIELDS_PX,
    POND_HEIGHT,
    POND_WIDTH,
    PONDS,
    SHARES,
    VILLAGE,
    clcd,
    draw_land,
    fpcd,
    hi_cna,
    land_tiff,
    written,
)
from PIL import Image

from agrotools_build.sources import reading
from agrotools_build.sources.part import Part
from agrotools_build.sources.public import adapter_of
from agrotools_build.templates import Thing


def by_pair(part: Part, of: str = "change") -> dict[str, Thing]:
    """The first thing of each pair of a kind, by the end of the pair's name."""
    return {
        str(subject.metadata["pair"]).replace("-", "_").rsplit("_", 1)[1]: subject.shown(0, 1)
        for subject in part.subjects
        if subject.of == of
    }


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture)


def shown(part: Part, thing: Thing) -> list[np.ndarray]:
    return [pixels(part.files[file.path]).astype(np.float64) for file in thing.files]


def test_the_first_date_comes_first_and_pictures_are_unchanged_unless_models_cannot_read_them(
    data_set, scratch
):
    folder = data_set("clcd") / "CLCD" / "test"
    part = adapter_of("clcd")(data_set("clcd"), scratch, 20)
    for stem, thing in by_pair(part).items():
        assert [file.name for file in thing.files] == ["before.png", "after.png"]
        assert ["2017" in file.note for file in thing.files] == [True, False]
        for file, date in zip(thing.files, ("time1", "time2"), strict=True):
            (original,) = (folder / date).glob(f"{stem}.*")
            assert (part.files[file.path] == original) == (original.suffix == ".png")
            assert np.array_equal(pixels(part.files[file.path]), pixels(original))
    lower = next(each for each in part.subjects if each.name == "clcd-00004-down").shown(1, 1)
    assert lower.truth["change_pct"] == pytest.approx(
        100 * (pixels(folder / "label/00004.png")[80:] > 0).mean(), rel=1e-5
    )
    ponds, folder = adapter_of("fpcd")(data_set("fpcd"), scratch, 20), data_set("fpcd") / "FPCD"
    for number, thing in by_pair(ponds, "pond").items():
        assert thing.arguments == {"before": "before.jpg", "after": "after.jpg", "target": "pond"}
        assert ["2007-03" in file.note for file in thing.files] == [True, False]
        first, second = (
            part_of / f"{VILLAGE}_{{}}_{number}.jpg"
            for part_of in (folder / "T0/T0", folder / "T1")
        )
        originals = [Path(str(first).format("200703")), Path(str(second).format("201502"))]
        assert [ponds.files[file.path] for file in thing.files] == originals
    for thing in by_pair(adapter_of("hi_cna")(data_set("hi_cna"), scratch, 20)).values():
        assert [(file.name, file.gsd_m) for file in thing.files] == [
            ("before.png", 0.8),
            ("after.png", 0.8),
        ]


@pytest.mark.parametrize("dates", [("image1", "image2"), ("im1", "im2"), ("A", "B"), ("T1", "T2")])
def test_the_other_names_of_folders_and_a_nested_folder_are_read(tmp_path, dates):
    written(tmp_path / "set" / "CLCD-main", clcd(SHARES[:3], dates))
    assert len(by_pair(adapter_of("clcd")(tmp_path / "set", tmp_path, 20))) == 3


def test_pairs_with_much_little_and_no_change_are_drawn_and_no_other_picture_is_read(
    tmp_path, monkeypatch
):
    folder = written(tmp_path / "set", clcd([0, 0, 0, 0, 0, 0, 10, 0, 25, 0, 0, 0]))
    reads: list[str] = []

    def counting(path: Path) -> Any:
        reads.append(path.name)
        return reading.read_photo(path)

    monkeypatch.setattr("agrotools_build.sources.public.changes.read_photo", counting)
    part = adapter_of("clcd")(folder, tmp_path, 2)
    shares = sorted(thing.truth["change_pct"] for thing in by_pair(part).values())
    assert (len(shares), shares[1]) == (4, 0)
    assert 10 <= shares[2] < 20 < shares[3]
    assert len(reads) == 8
    assert list(by_pair(adapter_of("clcd")(folder, tmp_path, 2))) == list(by_pair(part))


def test_a_mask_that_was_saved_as_jpeg_is_cut_at_the_middle_of_the_scale(tmp_path):
    mask = written(tmp_path / "set", clcd([15])) / "CLCD/test/label/00000.png"
    before = (pixels(mask) > 0).sum()
    Image.open(mask).save(mask.with_suffix(".jpg"), quality=95)
    mask.unlink()
    (thing,) = by_pair(adapter_of("clcd")(tmp_path / "set", tmp_path, 5)).values()
    assert thing.truth["change_px"] == pytest.approx(before, rel=0.02)


def _codes(folder: Path, number: int) -> np.ndarray:
    return pixels(folder / "FPCD/multi_class_masks/multi_class_masks" / f"{VILLAGE}_{number}.png")


def test_new_ponds_are_the_pieces_of_the_mask_that_are_no_specks(data_set, scratch):
    found = by_pair(adapter_of("fpcd")(data_set("fpcd"), scratch, 20), "new_pond")
    assert sorted(found) == ["1", "5"]
    for number, ponds, ignored in ((1, 1, 0), (5, 3, 64)):
        thing = found[str(number)]
        (look,) = thing.closer
        assert thing.arguments["min_area_px"] == 100
        assert (
            thing.truth["change_px"] == np.count_nonzero(_codes(data_set("fpcd"), number)) - ignored
        )
        assert (look.truth["shape"]["pieces"], look.truth["area_px"]) == (
            ponds,
            thing.truth["change_px"],
        )


def test_pictures_of_unlike_size_are_cut_to_what_both_show_and_specks_alone_are_neither_change_nor_none(
    tmp_path,
):
    folder = written(tmp_path / "set", fpcd([*PONDS, [(1, 50, 50, 5)]]))
    for number, missing in ((4, 6), (2, 60)):
        path = folder / f"FPCD/T1/{VILLAGE}_201502_{number}.jpg"
        Image.open(path).crop((0, 0, POND_WIDTH - missing, POND_HEIGHT)).save(path)
    part = adapter_of("fpcd")(folder, tmp_path, 20)
    things = by_pair(part, "pond")
    assert ["cut to what both" in file.note for file in things["4"].files] == [True, False]
    assert {(file.width_px, file.height_px) for file in things["4"].files} == {
        (POND_WIDTH - 6, POND_HEIGHT)
    }
    assert things["4"].truth["total_px"] == (POND_WIDTH - 6) * POND_HEIGHT
    assert things["4"].truth["change_px"] == np.count_nonzero(
        _codes(folder, 4)[:, : POND_WIDTH - 6]
    )
    before = pixels(folder / f"FPCD/T0/T0/{VILLAGE}_200703_4.jpg")
    assert np.array_equal(shown(part, things["4"])[0], before[:, : POND_WIDTH - 6])
    assert "2" not in things
    assert part.dropped == {"unlike sizes": 1}
    truth = things["8"].truth
    assert (truth["change_px"], truth["changed"], truth["pond"]) == (25, None, {"event": None})


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_red_is_shown_red_and_ground_that_stayed_as_it_was_looks_as_it_did(tmp_path, dtype):
    folder = written(tmp_path / "set", hi_cna(SHARES[:3], dtype))
    before, after, _ = draw_land(1, SHARES[1])
    same = np.where(np.arange(FIELDS_PX) < FIELDS_PX // 2, before, after)
    (folder / "test/image2/gf2_1.tif").write_bytes(land_tiff(same[[2, 1, 0, 3]], dtype))
    part = adapter_of("hi_cna")(folder, tmp_path, 20)
    for number, thing in by_pair(part).items():
        for seen, bands in zip(
            shown(part, thing)[:1], draw_land(int(number), SHARES[int(number)]), strict=False
        ):
            for channel, band in enumerate((2, 1, 0)):
                assert np.corrcoef(seen[..., channel].ravel(), bands[band].ravel())[0, 1] > 0.95
        assert ("as stored" in thing.files[0].note) == (dtype == "uint8")
    one, two = shown(part, by_pair(part)["1"])
    assert np.array_equal(one[:, : FIELDS_PX // 2], two[:, : FIELDS_PX // 2])
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("nodata", [0, 255, None])
def test_masks_may_be_tiff_files_whatever_they_declare_as_no_data(tmp_path, nodata):
    folder = written(tmp_path / "set", hi_cna([0, 20]))
    truths = {
        key: thing.truth
        for key, thing in by_pair(adapter_of("hi_cna")(folder, tmp_path, 5)).items()
    }
    for path in list((folder / "test/change").iterdir()):
        path.with_suffix(".tif").write_bytes(land_tiff(pixels(path)[None], "uint8", nodata=nodata))
        path.unlink()
    again = by_pair(adapter_of("hi_cna")(folder, tmp_path, 5))
    assert {key: thing.truth for key, thing in again.items()} == truths
    assert [truths[key]["changed"] for key in "01"] == [False, True]
