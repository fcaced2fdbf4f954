import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import rasterio
from fake_parts import write_canopy, write_change, write_leaves
from field_parts import PARTS, build_field
from paired import with_twins
from PIL import Image

from agrotools.core import BenchmarkError
from agrotools.loading import load_folder
from agrotools.loading.validate import validate_folder
from agrotools_build.choosing import choose
from agrotools_build.sources.assembling import SEED

_DATA = Path(os.environ.get("AGROTOOLS_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))


_FEWEST = {
    "multiband": 3,
    "tree_canopy": 10,
    "bean_leaf_class": 12,
    "soybean_heights": 4,
    "forest_heights": 7,
    "stand_metrics": 5,
    "amazon_bands": 6,
}
"""Least number of questions of data sets that give fewer than 14: most are one raster."""


def _things(part, of):
    return [
        subject.shown(index, 1)
        for subject in part.subjects
        if subject.of == of
        for index in range(subject.things)
    ]


def test_leaves_are_counted_in_their_masks(tmp_path):
    part = PARTS["coffee_lesions"](write_leaves(tmp_path / "leaves", [0, 2, 5, 12]), tmp_path)
    by_file = {original: stored for stored, original in part.files.items()}
    for number in range(4):
        mask = np.asarray(Image.open(tmp_path / f"leaves/masks/{number}.png"))
        stored = by_file[tmp_path / f"leaves/images/{number}.jpg"]
        thing = next(thing for thing in _things(part, "leaf") if thing.files[0].path == stored)
        assert thing.truth["leaf_area_px"] == np.sum(mask > 0)
        assert thing.truth["lesion_area_px"] == np.sum(mask == 2)
        assert thing.truth["severity_pct"] == pytest.approx(
            100 * np.sum(mask == 2) / np.sum(mask > 0), rel=1e-5
        )


def test_heights_are_counted_in_their_rasters(tmp_path):
    part = PARTS["chm"](write_canopy(tmp_path / "chm", 1))
    with rasterio.open(tmp_path / "chm/tile0.tif") as raster:
        heights = raster.read(1, masked=True)
    for thing in [
        each
        for of in ("canopy", "canopy_half", "canopy_quarter", "canopy_box")
        for each in _things(part, of)
    ]:
        x0, y0, x1, y1 = thing.arguments.get("region") or (0, 0, 120, 90)
        values = heights[y0:y1, x0:x1].compressed()
        assert thing.truth["mean_m"] == pytest.approx(values.mean(), rel=1e-5)
        assert thing.truth["cover_pct"] == pytest.approx(100 * np.mean(values >= 2), rel=1e-5)
        assert thing.truth["area_m2"] == values.size
        assert sum(each["pct"] for each in thing.truth["bins"]) == pytest.approx(100, rel=1e-5)


def test_change_is_counted_in_its_masks(tmp_path):
    part = PARTS["levir_cd"](write_change(tmp_path / "levir", [0, 12]))
    shares = [thing.truth["change_pct"] for thing in _things(part, "change")]
    masks = [np.asarray(Image.open(tmp_path / f"levir/masks/{number}.png")) for number in range(2)]
    assert shares == pytest.approx([100 * mask.mean() for mask in masks], rel=1e-5)
    left = next(
        thing
        for thing in _things(part, "change_half")
        if thing.called == "left" and thing.truth["change_px"]
    )
    assert left.truth["change_pct"] == pytest.approx(100 * masks[1][:, :64].mean(), rel=1e-5)
    assert left.truth["change_area_m2"] == pytest.approx(0.25 * masks[1][:, :64].sum(), rel=1e-5)


def test_names_of_files_tell_nothing_and_the_terms_of_all_sources_are_carried(tmp_path):
    data = tmp_path / "data"
    write_leaves(data / "coffee_lesions", [1, 9])
    write_change(data / "dsifn_cd", [10, 30])
    header = build_field(data, tmp_path / "out")
    assert {source.name for source in header.sources} == {"BRACOL coffee leaves", "DSIFN-CD"}
    assert "MIT" in header.licence
    assert "not stated" in header.licence
    assert header.metadata["absent"] == sorted(PARTS.keys() - {"coffee_lesions", "dsifn_cd"})
    assert validate_folder(tmp_path / "out") == []
    samples = load_folder(tmp_path / "out").samples
    assert {sample.source for sample in samples} == {"BRACOL coffee leaves", "DSIFN-CD"}
    for sample in samples:
        if sample.source == "DSIFN-CD":
            assert [file.name for file in sample.files] == ["before.png", "after.png"][
                : 1 if getattr(sample.answer[0], "reason", "") == "missing_file" else 2
            ]
            assert all(Path(file.path).stem not in ("0", "1") for file in sample.files)


def test_a_folder_that_is_cut_short_is_refused(tmp_path):
    data = tmp_path / "data"
    write_leaves(data / "coffee_lesions", [1, 9])
    (data / "coffee_lesions/masks/1.png").unlink()
    with pytest.raises(BenchmarkError, match=r"lacks masks/1\.png"):
        build_field(data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", [name for name in PARTS if name != "cwfid"])
def test_real_data_gives_varied_questions(name, tmp_path):
    if not (_DATA / name).is_dir():
        pytest.skip(f"no folder {name} in AGROTOOLS_TEST_DATA")
    part = PARTS[name](_DATA / name, tmp_path)
    chosen = choose(part.subjects, part.questions, part.samples, SEED)
    assert len(chosen) >= min(_FEWEST.get(name, 14), part.samples)
    assert len({item.query for item in chosen}) == len(chosen)
    per_subject = Counter((item.subject.of, item.subject.name) for item in chosen)
    assert max(per_subject.values()) <= len(part.questions)
    booleans = Counter(
        slot.value for item in chosen for slot in item.slots if slot.type == "boolean"
    )
    # Four equal answers come by chance once in eight.
    assert sum(booleans.values()) <= 4 or max(booleans.values()) <= 4 * min(
        booleans[True], booleans[False]
    )


@pytest.mark.parametrize("room", [None, 1, 0])
def test_twins_fill_a_source_no_further_than_it_may_ask(tmp_path, room):
    part = PARTS["levir_cd"](write_change(tmp_path / "levir", [10, 30]))
    chosen = choose(part.subjects, part.questions, 20, SEED)
    most = None if room is None else len(chosen) + room
    asked = with_twins(chosen, 0.5, source_of=lambda _: "LEVIR-CD", most_of_a_source=most)
    twins = len(asked) - len(chosen)
    assert twins == room if most else twins > 1
