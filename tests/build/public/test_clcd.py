"""The CLCD adapter on a small data set in its authors' layout."""

from pathlib import Path

import numpy as np
import pytest
from fake_clcd import write_clcd
from parts import sound_benchmark
from PIL import Image

from agrotools.build.sources import reading
from agrotools.build.sources.public.cropland import clcd
from agrotools.core import BenchmarkError

SHARES = [0, 6, 12, 2, 30]


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


def test_change_is_what_the_masks_of_the_test_split_say(tmp_path: Path) -> None:
    folder = write_clcd(tmp_path / "set", SHARES)
    part = clcd(folder, tmp_path, 20)
    scenes = things(part)
    assert sorted(stem for stem, _ in scenes) == [f"{number:05d}" for number in range(len(SHARES))]
    for (stem, _), thing in scenes.items():
        mask = label(folder, stem)
        assert thing.truth["change_px"] == mask.sum()
        assert thing.truth["change_pct"] == pytest.approx(100 * mask.mean(), rel=1e-5)
        assert thing.truth["changed"] == mask.any()
        assert thing.truth["change_area_ha"] is None
        assert thing.truth["gsd_m"] is None
    lower = things(part, "change_half")["00004", "lower"].truth
    rows = label(folder, "00004").shape[0]
    assert lower["change_pct"] == pytest.approx(100 * label(folder, "00004")[rows // 2 :].mean(), rel=1e-5)
    assert part.metadata == {}
    assert part.source.licence == "not stated"


def test_the_first_date_comes_first_and_what_cannot_be_shown_becomes_a_png(tmp_path: Path) -> None:
    folder = write_clcd(tmp_path / "set", SHARES)
    part = clcd(folder, tmp_path, 20)
    for (stem, _), thing in things(part).items():
        assert [file.name for file in thing.files] == ["before.png", "after.png"]
        assert ["2017" in file.note for file in thing.files] == [True, False]
        for file, date in zip(thing.files, ("time1", "time2"), strict=True):
            (original,) = (folder / "CLCD/test" / date).glob(f"{stem}.*")
            shown = part.files[file.path]
            assert (shown == original) == (original.suffix == ".png")
            assert np.array_equal(np.asarray(Image.open(shown)), np.asarray(Image.open(original)))


def test_the_other_names_of_folders_and_a_nested_folder_are_read(tmp_path: Path) -> None:
    write_clcd(tmp_path / "set" / "CLCD-main", SHARES[:3], dates=("image1", "image2"))
    assert len(things(clcd(tmp_path / "set", tmp_path, 20))) == 3


def test_pairs_with_much_little_and_no_change_are_drawn_and_no_other_picture_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_clcd(tmp_path / "set", [0, 0, 0, 0, 0, 0, 10, 0, 25, 0, 0, 0])
    reads: list[str] = []

    def counting(path: Path, shape: tuple[int, int]):
        reads.append(path.name)
        return original(path, shape)

    original = reading.read_photo
    monkeypatch.setattr("agrotools.build.sources.public.cropland.read_photo", counting)
    part = clcd(folder, tmp_path, 2)
    shares = sorted(thing.truth["change_pct"] for thing in things(part).values())
    assert len(shares) == 4
    assert shares[1] == 0
    assert 10 <= shares[2] < 20 < shares[3]
    assert len(reads) == 8
    again = things(clcd(folder, tmp_path, 2))
    assert list(again) == list(things(part))


def test_incomplete_repeated_and_blank_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    folder = write_clcd(tmp_path / "set", [*SHARES, 9, 9])
    test = folder / "CLCD" / "test"
    (test / "label" / "00000.png").unlink()
    (test / "label" / "00001.png").unlink()
    (test / "time2" / "00002.png").unlink()
    for place in ("time1", "time2", "label"):
        (test / place / "00006.png").write_bytes((test / place / "00005.png").read_bytes())
    Image.new("RGB", (160, 160)).save(test / "time1" / "00003.png")
    part = clcd(folder, tmp_path, 20)
    assert len(things(part)) == 2
    assert part.dropped == {"no label": 2, "no time2": 1, "blank picture": 1, "repeated": 1}


def test_a_mask_that_was_saved_as_jpeg_is_cut_at_the_middle_of_the_scale(tmp_path: Path) -> None:
    folder = write_clcd(tmp_path / "set", [15])
    mask = folder / "CLCD/test/label/00000.png"
    before = label(folder, "00000")
    Image.open(mask).save(mask.with_suffix(".jpg"), quality=95)
    mask.unlink()
    (thing,) = things(clcd(folder, tmp_path, 5)).values()
    assert thing.truth["change_px"] == pytest.approx(before.sum(), rel=0.02)


FAULTS = {
    "no folder": "has no test/label",
    "no test split": "has no test/label",
    "no dates": "has no folder time2 or image2",
    "no pairs": "no complete pair",
    "only blank": "show anything",
    "strange label": r"00001\.png has values other than 0, 255 or 0, 1: 7",
    "coloured label": r"00001\.png cannot be used",
    "cut label": r"00001\.png cannot be used",
    "cut picture": r"00002\.png cannot be used",
    "empty picture": r"00002\.png cannot be used",
    "other size": r"00002\.png has 80 x 60 pixels, its mask 160 x 160",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_named_with_where_to_get_it(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "set"
    if fault != "no folder":
        write_clcd(folder, SHARES[:3])
    test = folder / "CLCD" / "test"
    mask, picture = test / "label" / "00001.png", test / "time2" / "00002.png"
    if fault == "no test split":
        test.rename(test.with_name("tests"))
    elif fault == "no dates":
        (test / "time2").rename(test / "later")
    elif fault == "no pairs":
        for path in (test / "time2").iterdir():
            path.rename(path.with_stem(f"b{path.stem}"))
    elif fault == "only blank":
        for path in (test / "time2").iterdir():
            Image.new("RGB", (160, 160), (9, 9, 9)).save(path)
    elif fault == "strange label":
        Image.fromarray(np.full((160, 160), 7, np.uint8)).save(mask)
    elif fault == "coloured label":
        Image.new("RGB", (160, 160), (255, 0, 0)).save(mask)
    elif fault.startswith("cut"):
        path = mask if fault == "cut label" else picture
        path.write_bytes(path.read_bytes()[:200])
    elif fault == "empty picture":
        picture.write_bytes(b"")
    elif fault == "other size":
        Image.open(picture).resize((80, 60)).save(picture)
    with pytest.raises(BenchmarkError, match=FAULTS[fault]) as raised:
        clcd(folder, tmp_path, 20)
    assert "liumency/CropLand-CD" in str(raised.value.hint)


def test_a_sound_benchmark_is_made_of_it(tmp_path: Path) -> None:
    part = clcd(write_clcd(tmp_path / "set", [0, 6, 12, 2, 30, 18]), tmp_path, 6)
    _, samples = sound_benchmark(part, tmp_path)
    assert {sample.task_type for sample in samples} <= {"farmland_change", "plotting"}
    assert all("converted to or from cropland" in sample.query for sample in samples)
