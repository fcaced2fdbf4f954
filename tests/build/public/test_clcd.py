"""The CLCD adapter on a small data set in its authors' layout."""

from pathlib import Path

import numpy as np
import pytest
from data_sets import SHARES, write_clcd
from PIL import Image

from agrotools.build.sources import reading
from agrotools.build.sources.public import adapter_of

clcd = adapter_of("clcd")


def things(part, of: str = "change"):
    """Things by stem of the pair and what they are called."""
    return {
        (subject.name.split("-")[1], thing.called): thing
        for subject in part.subjects
        if subject.of == of
        for thing in (subject.shown(index, 1) for index in range(subject.things))
    }


def label(folder: Path, stem: str) -> np.ndarray:
    pixels = np.asarray(Image.open(folder / "CLCD/test/label" / f"{stem}.png"))
    return (pixels if pixels.ndim == 2 else pixels[..., 0]) == 255


def test_change_is_what_the_masks_say_and_the_first_date_comes_first(folder: Path, tmp_path: Path) -> None:
    part = clcd(folder, tmp_path, 20)
    scenes = things(part)
    assert sorted(stem for stem, _ in scenes) == [f"{number:05d}" for number in range(len(SHARES))]
    for (stem, _), thing in scenes.items():
        mask = label(folder, stem)
        assert thing.truth["change_px"] == mask.sum()
        assert thing.truth["change_pct"] == pytest.approx(100 * mask.mean(), rel=1e-5)
        assert thing.truth["changed"] == mask.any()
        assert (thing.truth["change_area_ha"], thing.truth["gsd_m"]) == (None, None)
    lower = things(part, "change_half")["00004", "lower"].truth
    rows = label(folder, "00004").shape[0]
    assert lower["change_pct"] == pytest.approx(100 * label(folder, "00004")[rows // 2 :].mean(), rel=1e-5)
    assert (part.metadata, part.source.licence) == ({}, "not stated")
    for (stem, _), thing in things(part).items():
        assert [file.name for file in thing.files] == ["before.png", "after.png"]
        assert ["2017" in file.note for file in thing.files] == [True, False]
        for file, date in zip(thing.files, ("time1", "time2"), strict=True):
            (original,) = (folder / "CLCD/test" / date).glob(f"{stem}.*")
            shown = part.files[file.path]
            assert (shown == original) == (original.suffix == ".png")
            assert np.array_equal(np.asarray(Image.open(shown)), np.asarray(Image.open(original)))


@pytest.mark.parametrize("dates", [("image1", "image2"), ("im1", "im2"), ("A", "B"), ("T1", "T2")])
def test_the_other_names_of_folders_and_a_nested_folder_are_read(tmp_path: Path, dates: tuple[str, str]) -> None:
    write_clcd(tmp_path / "set" / "CLCD-main", SHARES[:3], dates)
    assert len(things(clcd(tmp_path / "set", tmp_path, 20))) == 3


def test_pairs_with_much_little_and_no_change_are_drawn_and_no_other_picture_is_read(tmp_path, monkeypatch):
    folder = write_clcd(tmp_path / "set", [0, 0, 0, 0, 0, 0, 10, 0, 25, 0, 0, 0])
    reads: list[str] = []

    def counting(path: Path):
        reads.append(path.name)
        return original(path)

    original = reading.read_photo
    monkeypatch.setattr("agrotools.build.sources.public.changes.read_photo", counting)
    part = clcd(folder, tmp_path, 2)
    shares = sorted(thing.truth["change_pct"] for thing in things(part).values())
    assert (len(shares), shares[1]) == (4, 0)
    assert 10 <= shares[2] < 20 < shares[3]
    assert len(reads) == 8
    assert list(things(clcd(folder, tmp_path, 2))) == list(things(part))


def test_a_mask_that_was_saved_as_jpeg_is_cut_at_the_middle_of_the_scale(tmp_path: Path) -> None:
    folder = write_clcd(tmp_path / "set", [15])
    mask = folder / "CLCD/test/label/00000.png"
    before = label(folder, "00000")
    Image.open(mask).save(mask.with_suffix(".jpg"), quality=95)
    mask.unlink()
    (thing,) = things(clcd(folder, tmp_path, 5)).values()
    assert thing.truth["change_px"] == pytest.approx(before.sum(), rel=0.02)
