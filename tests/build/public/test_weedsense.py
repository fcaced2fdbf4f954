"""The WeedSense adapter on a small data set in its authors' layout."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_sets import WEED_NUMBERS, WEEKS, draw_plant
from parts import things_by_file
from PIL import Image
from scipy.spatial import ConvexHull

from agrotools.build.sources.part import listing_of
from agrotools.build.sources.public import adapter_of

weedsense = adapter_of("weedsense")
SPECIES = listing_of("weedsense").layout["species"]


def _told(path: Path) -> tuple[str, int, int]:
    match = re.fullmatch(r"(\w+)_week_(\d+)_IMG_\d+_frame_(\d+)", path.stem)
    assert match
    return match[1], int(match[2]), int(match[3])


def _masks(folder: Path) -> list[Path]:
    return sorted((folder / "test" / "mmseg_masks").iterdir())


def _rewrite(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    with Image.open(path) as mask:
        values = np.array(mask)
    Image.fromarray(change(values)).save(path)


def test_cover_and_form_are_what_the_masks_say(folder: Path, tmp_path: Path) -> None:
    things = things_by_file(weedsense(folder, tmp_path, 40), "pot_weed")
    assert len(things) == 16 * len(WEEKS)
    for path, thing in things.items():
        values = np.asarray(Image.open(folder / "test" / "mmseg_masks" / f"{path.stem}.png"))
        plant, total = int((values == WEED_NUMBERS[_told(path)[0]]).sum()), int((values != 255).sum())
        assert 0 < (values == 255).sum() < 0.01 * values.size
        assert thing.tool == "measure_crop_weed_area"
        expected = {"total_px": total, "veg_px": plant, "veg_pct": pytest.approx(100 * plant / total, rel=1e-5)}
        assert dict(thing.truth) == expected
        assert thing.words == {"species": SPECIES[_told(path)[0]], "week": str(_told(path)[1])}
        assert not re.search(r"\d", thing.files[0].note or "")
    forms = things_by_file(weedsense(folder, tmp_path, 40), "pot_weed_form")
    assert len(forms) == 16 * len(WEEKS)
    for path, thing in forms.items():
        plant, _ = draw_plant(*_told(path))
        rows, columns = np.flatnonzero(plant.any(axis=1)), np.flatnonzero(plant.any(axis=0))
        form = thing.truth["plants"][0]  # pyright: ignore
        assert form["area_px"] == plant.sum()  # pyright: ignore
        assert form["height_px"] == rows[-1] - rows[0] + 1  # pyright: ignore
        assert form["width_px"] == columns[-1] - columns[0] + 1  # pyright: ignore
        assert form["solidity"] == pytest.approx(plant.sum() / _hull(plant), rel=1e-4)  # pyright: ignore


def _hull(plant: np.ndarray) -> float:
    """Area of the convex hull of the pixels' corners."""
    ys, xs = np.nonzero(plant)
    return float(ConvexHull(np.concatenate([np.stack([xs + dx, ys + dy], 1) for dx in (0, 1) for dy in (0, 1)])).volume)


def test_a_plant_in_pieces_has_no_form(own: Path, tmp_path: Path) -> None:
    path = next(path for path in _masks(own) if _told(path)[1] == 11)

    def cut(values: np.ndarray) -> np.ndarray:
        values[150:175] = 0
        return values

    _rewrite(path, cut)
    part = weedsense(own, tmp_path, 20)
    assert path.stem in {one.stem for one in things_by_file(part, "pot_weed")}
    assert path.stem not in {one.stem for one in things_by_file(part, "pot_weed_form")}


def test_no_week_of_a_species_is_shown_twice_and_series_are_long_enough_for_a_curve(folder, tmp_path):
    part = weedsense(folder, tmp_path, 6)
    told = [_told(path)[:2] for path in things_by_file(part, "pot_weed")]
    assert len(told) == len(set(told)) == 12
    assert Counter(code for code, _ in told) == dict.fromkeys({code for code, _ in told}, 4)
    for subject in part.subjects:
        weeks = [int(subject.shown(index, 1).words["week"]) for index in range(subject.things)]
        assert subject.of == "pot_weed_mixed" or weeks == sorted(weeks)
    assert {path.stem for path in things_by_file(weedsense(folder, tmp_path, 6), "pot_weed")} == {
        path.stem for path in things_by_file(part, "pot_weed")
    }
