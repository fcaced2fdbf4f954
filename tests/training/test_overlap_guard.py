"""No recipe trains on a test picture: the guard, on small pools made here."""

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from nets.overlap import (
    OverlapError,
    hash_of,
    orientations,
    photo_names,
    refuse_overlap,
    small_grey,
)
from PIL import Image

Pictures = dict[str, np.ndarray]


def picture(seed: int, side: int = 96) -> np.ndarray:
    """Soft blobs of colour: what a perceptual hash can tell apart."""
    draw = np.random.default_rng(seed)
    small = Image.fromarray(draw.integers(0, 256, (6, 6, 3)).astype(np.uint8))
    return np.asarray(small.resize((side, side), Image.Resampling.BICUBIC))


def encoded(pixels: np.ndarray, quality: int = 85) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def write_pool(folder: Path, pictures: Pictures, sources: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for name, pixels in pictures.items():
            archive.writestr(name, encoded(pixels))
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("image", "label", "source", "group", "split"))
        for name in pictures:
            source = (sources or {}).get(name, f"somebody/pool:images/{name}")
            table.writerow((name, "weed", source, f"day/{name}", "train"))
    return folder


def write_tests(folder: Path, pictures: Pictures, source: dict[str, object] | None = None) -> Path:
    (folder / "set/images").mkdir(parents=True)
    items = []
    for name, pixels in pictures.items():
        (folder / "set/images" / name).write_bytes(encoded(pixels, 70))
        items.append(
            {"id": name, "image": f"images/{name}", **({"source": source} if source else {})}
        )
    (folder / "set/truth.json").write_text(json.dumps(items))
    return folder


def test_pictures_apart_pass_and_are_counted(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "weeds", {f"{k}.jpg": picture(k) for k in range(6)})
    tests = write_tests(tmp_path / "data", {f"t{k}.jpg": picture(100 + k) for k in range(4)})
    assert refuse_overlap([pool], tests) == {
        "pool_pictures": 6,
        "test_pictures": 4,
        "hash_distance_over": 6,
    }


@pytest.mark.parametrize("turn", range(8))
def test_a_copy_is_found_however_it_was_turned_resized_and_encoded(
    tmp_path: Path, turn: int
) -> None:
    turned = [np.rot90(base, k) for base in (picture(3), picture(3)[:, ::-1]) for k in range(4)][
        turn
    ]
    smaller = np.asarray(
        Image.fromarray(np.ascontiguousarray(turned)).resize((64, 64), Image.Resampling.LANCZOS)
    )
    pool = write_pool(tmp_path / "weeds", {"a.jpg": picture(1), "copy.jpg": smaller})
    tests = write_tests(tmp_path / "data", {"t.jpg": picture(3, 160)})
    with pytest.raises(
        OverlapError, match=r"weeds/copy\.jpg looks like test picture set/images/t\.jpg"
    ):
        refuse_overlap([pool], tests)


def test_another_part_of_the_same_photograph_is_found_by_name(tmp_path: Path) -> None:
    source = "owner/AppleBBCH81:data/images/DSC_7_12.jpg"
    pool = write_pool(tmp_path / "fruit", {"tile.jpg": picture(1)}, {"tile.jpg": source})
    tests = write_tests(
        tmp_path / "data",
        {"t.jpg": picture(2)},
        {"repo": "owner/AppleBBCH81", "paths": ["data/images/DSC_7_3.jpg"]},
    )
    with pytest.raises(OverlapError, match="shares its photograph dsc_7"):
        refuse_overlap([pool], tests)


def test_a_folder_without_test_pictures_is_no_licence_to_train(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "weeds", {"a.jpg": picture(1)})
    (tmp_path / "empty").mkdir()
    with pytest.raises(OverlapError, match="holds no test picture"):
        refuse_overlap([pool], tmp_path / "empty")


def test_photographs_are_known_by_names_and_eight_orientations() -> None:
    grey = small_grey(Image.fromarray(picture(5)))
    assert len({hash_of(turned) for turned in orientations(grey)}) == 8
    assert photo_names("o/Pear640", "a/DSC_1_2.jpg") == {
        ("o/pear640", "dsc_1_2"),
        ("o/pear640", "dsc_1"),
    }
    assert photo_names("o/beans", "a/leaf_12.jpg", "set/42") == {
        ("o/beans", "leaf_12"),
        ("o/beans", "42"),
    }
