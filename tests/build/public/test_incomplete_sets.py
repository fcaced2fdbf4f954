"""Adapters on incomplete data sets, on layouts that differ from the documented one, and on real files."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agrotools.build.sources import build_sources
from agrotools.build.sources.part import listing_of
from agrotools.build.sources.public import DATASETS, adapter_of
from agrotools.core import BenchmarkError, UsageError

_LISTED = "listed files that are missing"
REMOVED = {
    "agromind": ("images/corn/images/image_0003.jpg", _LISTED, 1),
    "deepnir": ("cherry/test/images/cherry1_*", _LISTED, 1),
    "deepweeds": ("images/20170110-*", _LISTED, 1),
    "ip102": ("IP102_v1.1/Classification/*/images/00004.jpg", _LISTED, 1),
    "papple": ("depth_maps/_MG_7600_1.npy", _LISTED, 1),
    "plantseg": ("images/test/*0.*", _LISTED, 3),
    "weedsense": ("test/images/images/*.jpg", _LISTED, 3),
}
"""Files of each data set, the reason under which they are counted if removed, and the number of those removed."""


@pytest.mark.parametrize("name", REMOVED)
def test_missing_files_are_refused_unless_allowed_and_counted_then(own_set, scratch, name):
    folder = own_set(name)
    pattern, reason, count = REMOVED[name]
    removed = sorted(path for path in folder.glob(pattern) if not path.name.startswith("."))[:count]
    for path in removed:
        path.unlink()
    with pytest.raises(BenchmarkError) as raised:
        adapter_of(name)(folder, scratch, 20)
    assert "--allow-missing" in str(raised.value.hint)
    part = adapter_of(name)(folder, scratch, 20, allow_missing=True)
    assert part.dropped[reason] == len(removed) == count
    assert part.subjects
    assert not {path.name for path in removed} & {path.name for path in part.files.values()}


def test_lists_without_a_file_and_other_sources_are_refused_even_so(own_set, scratch, tmp_path):
    folder = own_set("deepweeds")
    shutil.rmtree(folder / "images")
    (folder / "images").mkdir()
    with pytest.raises(BenchmarkError, match="lacks"):
        adapter_of("deepweeds")(folder, scratch, 20, allow_missing=True)
    with pytest.raises(UsageError, match="--allow-missing does not apply to 'gta'"):
        build_sources([f"gta={tmp_path}"], tmp_path / "out", allow_missing=True)


def test_one_kind_of_fruit_is_enough(own_set: Callable[[str], Path], scratch: Path) -> None:
    folder = own_set("deepnir")
    (folder / "cherry").rename(folder / "kept")
    for place in folder.iterdir():
        if place.name != "kept":
            shutil.rmtree(place)
    (folder / "kept").rename(folder / "cherry")
    part = adapter_of("deepnir")(folder, scratch, 20)
    assert part.metadata["deepnir_test_pictures"] == {"cherry": 2}
    assert part.dropped == {"kinds of fruit whose folder is missing": 10}


def test_masks_of_fpcd_may_be_split_like_the_lists(own_set: Callable[[str], Path], tmp_path: Path) -> None:
    folder = own_set("fpcd")
    before = adapter_of("fpcd")(folder, tmp_path, 10)
    place = next((folder / "FPCD").glob("multi_class_masks/multi_class_masks"))
    for split in ("train", "test"):
        shutil.copytree(place, place.parent / split)
    for mask in (place.parent / "train").glob("*.png"):
        shutil.copyfile(next(place.glob("*_1.png")), mask)
    shutil.rmtree(place)
    header = build_sources([f"fpcd={folder}"], tmp_path / "out")
    assert header.metadata["shares"]["fpcd"]["made"] > 0  # pyright: ignore
    assert adapter_of("fpcd")(folder, tmp_path, 10).files == before.files


@pytest.mark.parametrize(
    ("folder", "pictures", "left_out"),
    [
        ("agromind", 4, {_LISTED: 2094}),
        ("agromind_trimmed", 4, {}),
        ("deepweeds", 36, {_LISTED: 3471}),
        ("ip102_trimmed", 5, {}),
        ("deepnir", 4, {"kinds of fruit whose folder is missing": 10}),
    ],
)
def test_real_files_are_read(field_data, scratch, folder, pictures, left_out):
    real = field_data / "sources_real" / folder
    if not real.is_dir():
        pytest.skip(f"no folder sources_real/{folder} in AGROTOOLS_TEST_DATA")
    part = adapter_of(folder.removesuffix("_trimmed"))(real, scratch, allow_missing=True, samples=40)
    assert len(part.files) == pictures
    assert {reason: part.dropped[reason] for reason in left_out} == left_out
    assert part.subjects


def test_documentation_lists_the_real_files_that_each_adapter_has_read() -> None:
    page = " ".join((Path(__file__).parents[3] / "docs" / "building.md").read_text().split())
    for name in DATASETS:
        assert listing_of(name).seen
        (row,) = [each for each in page.split(" | ") if f"`{name}`" in each]
        assert f"{row} | {listing_of(name).seen} |" in page, name
