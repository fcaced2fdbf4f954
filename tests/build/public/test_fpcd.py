"""The FPCD adapter on a small data set in its authors' layout."""

from pathlib import Path

import numpy as np
import pytest
from data_sets import POND_HEIGHT, POND_WIDTH, PONDS, VILLAGE, pond_key, write_fpcd
from PIL import Image

from agrotools.build.sources.public import adapter_of

fpcd = adapter_of("fpcd")
LEAST_PX = 100

WORDS = ["none", "constructed", "demolished", "dried", "wetted", "constructed", None, "none"]


def things(part, of: str = "pond"):
    """Things by number of the pair."""
    found = {}
    for subject in part.subjects:
        if subject.of == of:
            number = int(subject.metadata["pair"].rsplit("_", 1)[1])
            found[number] = subject.shown(0, 1)
    return found


def codes(folder: Path, number: int) -> np.ndarray:
    return np.asarray(Image.open(folder / "FPCD/multi_class_masks/multi_class_masks" / f"{pond_key(number)}.png"))


def picture(folder: Path, number: int, date: str = "T1/{}_201502_{}.jpg") -> Path:
    return folder / "FPCD" / date.format(VILLAGE, number)


def test_the_truth_is_what_the_masks_say_and_the_first_date_comes_first(folder: Path, tmp_path: Path) -> None:
    part = fpcd(folder, tmp_path, 20)
    found = things(part)
    assert sorted(found) == list(range(len(PONDS)))
    for number, thing in found.items():
        mask = codes(folder, number)
        assert thing.tool == "detect_change"
        assert thing.arguments == {"before": "before.jpg", "after": "after.jpg", "target": "pond"}
        assert thing.truth["change_px"] == np.count_nonzero(mask)
        assert thing.truth["change_pct"] == pytest.approx(100 * np.mean(mask > 0), rel=1e-5)
        assert thing.truth["total_px"] == POND_WIDTH * POND_HEIGHT
        assert thing.truth["changed"] == bool(mask.any())
        assert (thing.truth["pond"], thing.truth["change_area_ha"]) == ({"event": WORDS[number]}, None)
    assert "CC BY-SA 4.0" in part.source.licence
    for number, thing in things(part).items():
        assert [file.name for file in thing.files] == ["before.jpg", "after.jpg"]
        assert ["2007-03" in file.note for file in thing.files] == [True, False]
        originals = [part.files[file.path] for file in thing.files]
        assert originals == [picture(folder, number, "T0/T0/{}_200703_{}.jpg"), picture(folder, number)]


def test_new_ponds_are_the_pieces_of_the_mask_that_are_no_specks(folder: Path, tmp_path: Path) -> None:
    found = things(fpcd(folder, tmp_path, 20), "new_pond")
    assert sorted(found) == [1, 5]
    for number, ponds in ((1, 1), (5, 3)):
        thing = found[number]
        (look,) = thing.closer
        ignored = 64 if number == 5 else 0
        assert thing.arguments["min_area_px"] == LEAST_PX
        assert thing.truth["change_px"] == np.count_nonzero(codes(folder, number)) - ignored
        assert (look.truth["shape"]["pieces"], look.truth["area_px"]) == (ponds, thing.truth["change_px"])


def test_pictures_of_unlike_size_are_cut_to_what_both_show_and_say_so(tmp_path: Path) -> None:
    folder = write_fpcd(tmp_path / "set", PONDS)
    mask = codes(folder, 4)
    path = picture(folder, 4)
    Image.open(path).crop((0, 0, POND_WIDTH - 6, POND_HEIGHT)).save(path)
    Image.open(picture(folder, 2)).crop((0, 0, POND_WIDTH - 60, POND_HEIGHT)).save(picture(folder, 2))
    part = fpcd(folder, tmp_path, 20)
    thing = things(part)[4]
    assert [file.name for file in thing.files] == ["before.png", "after.jpg"]
    assert ["cut to what both" in file.note for file in thing.files] == [True, False]
    assert {(file.width_px, file.height_px) for file in thing.files} == {(POND_WIDTH - 6, POND_HEIGHT)}
    assert thing.truth["total_px"] == (POND_WIDTH - 6) * POND_HEIGHT
    assert thing.truth["change_px"] == np.count_nonzero(mask[:, : POND_WIDTH - 6])
    before = np.asarray(Image.open(picture(folder, 4, "T0/T0/{}_200703_{}.jpg")))
    assert np.array_equal(np.asarray(Image.open(part.files[thing.files[0].path])), before[:, : POND_WIDTH - 6])
    assert 2 not in things(part)
    assert part.dropped == {"unlike sizes": 1}


def test_specks_alone_are_neither_change_nor_none(tmp_path: Path) -> None:
    part = fpcd(write_fpcd(tmp_path / "set", [*PONDS, [(1, 50, 50, 5)]]), tmp_path, 20)
    truth = things(part)[8].truth
    assert (truth["change_px"], truth["changed"], truth["pond"]) == (25, None, {"event": None})
