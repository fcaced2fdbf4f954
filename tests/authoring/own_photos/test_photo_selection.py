"""The choice of photos to label, the table that lists them, and how well a score on them will be known."""

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from agrotools.core import UsageError
from agrotools_build.own_photos.selection import Photo, choose_photos, precision_lines, write_choice


def _photo(
    path: Path, time: str = "", make: str = "", model: str = "", format: str = "JPEG"
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if time:
        exif.get_ifd(0x8769)[36867] = time
        exif[271], exif[272] = make, model
    Image.new("RGB", (32, 24), (40, 120, 40)).save(path, format, **({"exif": exif} if time else {}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(20):
        time = f"2026:05:{3 + number % 2:02d} 10:{number:02d}:00"
        _photo(tmp_path / "photos" / "north" / f"{number}.jpg", time, "Canon", "Canon EOS 60D")
    for number in range(8):
        _photo(
            tmp_path / "photos" / "south" / f"{number}.png",
            "2026:05:03 12:00:00",
            "DJI\0",
            "M3M",
            "PNG",
        )
    _photo(tmp_path / "photos" / "south" / "edge" / "scan.png", format="PNG")
    (tmp_path / "photos" / "south" / "broken.jpg").write_bytes(b"no picture")
    return tmp_path / "photos"


def test_a_table_of_photos_of_all_groups_is_written_without_decoding(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def load(picture: Image.Image) -> None:
        raise AssertionError(f"{picture} is decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    out = folder.parent / "labels.csv"
    said = "\n".join(write_choice(folder, 10, None, out))
    with out.open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["photo", "block", "day", "device", "answer"]
    assert all((folder / row["photo"]).is_file() and row["answer"] == "" for row in rows)
    assert Counter(row["block"] for row in rows) == {"north": 6, "south": 3, "south/edge": 1}
    assert {row["day"] for row in rows} == {"2026-05-03", "2026-05-04", "unknown"}
    assert {row["device"] for row in rows} == {"Canon EOS 60D", "DJI M3M", "unknown"}
    assert "10 of 29 photos (10 wanted, 1 cannot be read: south/broken.jpg)" in said
    assert "block: 3 of 3 groups: north 6 of 20, south 3 of 8, south/edge 1 of 1" in said
    again = folder.parent / "again.csv"
    assert list(write_choice(folder, 10, None, again))
    assert again.read_bytes() == out.read_bytes()
    with pytest.raises(UsageError, match="exists"):
        list(write_choice(folder, 10, None, out))
    assert again.read_bytes() == out.read_bytes()


def test_what_cannot_be_chosen_is_said(folder: Path):
    said = list(
        write_choice(folder / "south" / "edge", 50, "block, device", folder.parent / "one.csv")
    )
    assert said[0].endswith("1 of 1 photos (50 wanted, 0 cannot be read)")
    assert said[1:3] == [
        "block: all photos share it: edge 1 of 1",
        "device: all photos share it: unknown 1 of 1",
    ]
    with pytest.raises(UsageError, match="--by plot is unknown"):
        list(write_choice(folder, 5, "plot", folder.parent / "two.csv"))
    with pytest.raises(UsageError, match="no \\.csv file"):
        list(write_choice(folder, 5, None, folder.parent / "two"))
    (folder / "bad").mkdir()
    (folder / "bad" / "a.jpg").write_bytes(b"")
    with pytest.raises(UsageError, match="none of the 1 photos"):
        list(write_choice(folder / "bad", 5, None, folder.parent / "two.csv"))
    assert not (folder.parent / "two.csv").exists()


def test_groups_have_their_shares_and_bursts_give_one_photo():
    burst = [Photo(f"b{at}", ("burst", "1"), 1000 * (at // 10) + at % 10) for at in range(300)]
    steady = [Photo(f"s{at}", ("steady", str(at % 7)), 5.0 * at) for at in range(700)]
    rare = [Photo("r", ("rare", "9"), 0.0)]
    chosen = choose_photos([*burst, *steady, *rare], 100)
    counts = Counter(photo.values[0] for photo in chosen)
    assert counts["rare"] == 1
    assert counts["burst"] == pytest.approx(30, abs=1)
    assert len(chosen) == len({*chosen}) == 100
    assert (
        Counter(photo.time // 1000 for photo in chosen if photo.values[0] == "burst").most_common(
            1
        )[0][1]
        == 1
    )
    assert {photo.values[1] for photo in chosen} == {*"1234560", "9"}
    assert choose_photos(rare, 5) == rare


@pytest.mark.parametrize("mean", [0.5, 0.8])
def test_a_score_is_known_as_well_as_was_said(mean: float):
    draw = np.random.default_rng(1)
    lines = list(precision_lines([Photo(str(at), ("a",), at) for at in range(200)]))
    alone, together = (
        float(found[1]) / 100
        for line in lines
        if (found := re.search(f"±(\\d+) at {100 * mean:.0f} %", line))
    )
    population = draw.permutation(3000) < 3000 * mean
    scores = np.array([draw.choice(population, 200, replace=False).mean() for _ in range(4000)])
    assert np.mean(np.abs(scores - mean) <= alone + 1e-9) >= 0.95
    assert "100 questions (of a new plan) on 100 photos" in lines[2]
    first = draw.random((4000, 100)) < mean
    assert np.mean(np.abs(first.mean(axis=1) - mean) <= together + 1e-9) >= 0.95
    # Two questions on each photo: the second has the score of the first in half of the photos.
    lines = list(precision_lines([Photo(str(at), ("a",), at) for at in range(50)]))
    assert "100 questions (of a new plan) on 50 photos" in lines[2]
    found = re.search(f"±(\\d+) at {100 * mean:.0f} %", lines[2])
    assert found
    first, other = draw.random((2, 4000, 50)) < mean
    second = np.where(draw.random((4000, 50)) < 0.5, first, other)
    off = np.abs((first * 0.5 + second * 0.5).mean(axis=1) - mean)
    assert np.mean(off <= float(found[1]) / 100 + 1e-9) >= 0.95
