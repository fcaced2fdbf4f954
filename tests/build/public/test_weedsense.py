"""The WeedSense adapter on a small data set in its authors' layout."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fake_weedsense import CODES, NUMBERS, WEEKS, draw_mask, write_weedsense
from parts import sound_benchmark
from PIL import Image

from agrotools.build.sources.part import Part
from agrotools.build.sources.public.weedsense import SPECIES, weedsense
from agrotools.build.templates import Thing
from agrotools.core import BenchmarkError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_weedsense(tmp_path_factory.mktemp("weedsense") / "set")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_weedsense(tmp_path_factory.mktemp("weedsense") / "set", codes=4, frames=1)


@pytest.fixture
def own(small: Path, tmp_path: Path) -> Path:
    """A data set to damage: every frame of it is looked at where 20 samples are wanted."""
    return Path(shutil.copytree(small, tmp_path / "set"))


def _things(part: Part, of: str = "pot_weed") -> dict[Path, Thing]:
    shown = [
        subject.shown(index, 1) for subject in part.subjects if subject.of == of for index in range(subject.things)
    ]
    return {part.files[thing.files[0].path]: thing for thing in shown}


def _told(path: Path) -> tuple[str, int, int]:
    match = re.fullmatch(r"(\w+)_week_(\d+)_IMG_\d+_frame_(\d+)", path.stem)
    assert match
    return match[1], int(match[2]), int(match[3])


def _dropped(part: Part) -> dict[str, int]:
    return part.dropped


def _masks(folder: Path) -> list[Path]:
    return sorted((folder / "test" / "mmseg_masks").iterdir())


def _rewrite(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    with Image.open(path) as mask:
        values = np.array(mask)
    Image.fromarray(change(values)).save(path)


def test_cover_is_what_the_masks_say(folder: Path, tmp_path: Path) -> None:
    things = _things(weedsense(folder, tmp_path, 40))
    assert len(things) == 16 * len(WEEKS)
    for path, thing in things.items():
        values = np.asarray(Image.open(folder / "test" / "mmseg_masks" / f"{path.stem}.png"))
        plant, total = int((values == NUMBERS[_told(path)[0]]).sum()), int((values != 255).sum())
        assert 0 < (values == 255).sum() < 0.01 * values.size
        assert thing.tool == "measure_crop_weed_area"
        expected = {"total_px": total, "veg_px": plant, "veg_pct": pytest.approx(100 * plant / total, rel=1e-5)}
        assert dict(thing.truth) == expected
        assert thing.words == {"species": SPECIES[_told(path)[0]], "week": str(_told(path)[1])}
        assert not re.search(r"\d", thing.files[0].note or "")


def test_form_is_that_of_the_masks(folder: Path, tmp_path: Path) -> None:
    forms = _things(weedsense(folder, tmp_path, 40), "pot_weed_form")
    assert len(forms) == 16 * len(WEEKS)
    for path, thing in forms.items():
        plant, _ = draw_mask(*_told(path))
        rows, columns = np.flatnonzero(plant.any(axis=1)), np.flatnonzero(plant.any(axis=0))
        form = thing.truth["plants"][0]  # pyright: ignore
        assert form["area_px"] == plant.sum()  # pyright: ignore
        assert form["height_px"] == rows[-1] - rows[0] + 1  # pyright: ignore
        assert form["width_px"] == columns[-1] - columns[0] + 1  # pyright: ignore
        assert form["solidity"] == pytest.approx(plant.sum() / _hull(plant), rel=1e-4)  # pyright: ignore


def _hull(plant: np.ndarray) -> float:
    """Area of the convex hull of the pixels' corners, by Andrew's chain."""
    ys, xs = np.nonzero(plant)
    points = sorted({(int(x) + dx, int(y) + dy) for y, x in zip(ys, xs, strict=True) for dx in (0, 1) for dy in (0, 1)})

    def half(ordered: list[tuple[int, int]]) -> list[tuple[int, int]]:
        chain: list[tuple[int, int]] = []
        for x, y in ordered:
            while len(chain) > 1:
                (x0, y0), (x1, y1) = chain[-2:]
                if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 0:
                    break
                chain.pop()
            chain.append((x, y))
        return chain[:-1]

    x, y = np.array(half(points) + half(points[::-1])).T
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)


def test_a_plant_in_pieces_has_no_form(own: Path, tmp_path: Path) -> None:
    path = next(path for path in _masks(own) if _told(path)[1] == 11)

    def cut(values: np.ndarray) -> np.ndarray:
        values[150:175] = 0
        return values

    _rewrite(path, cut)
    part = weedsense(own, tmp_path, 20)
    assert path.stem in {one.stem for one in _things(part)}
    assert path.stem not in {one.stem for one in _things(part, "pot_weed_form")}


def test_no_week_of_a_species_is_shown_twice_and_series_are_long_enough_for_a_curve(
    folder: Path, tmp_path: Path
) -> None:
    part = weedsense(folder, tmp_path, 6)
    told = [_told(path)[:2] for path in _things(part)]
    assert len(told) == len(set(told)) == 12
    assert Counter(code for code, _ in told) == dict.fromkeys({code for code, _ in told}, 4)
    for subject in part.subjects:
        weeks = [int(subject.shown(index, 1).words["week"]) for index in range(subject.things)]
        assert subject.of == "pot_weed_mixed" or weeks == sorted(weeks)
    assert {path.stem for path in _things(weedsense(folder, tmp_path, 6))} == {path.stem for path in _things(part)}


def test_only_chosen_files_are_opened(own: Path, tmp_path: Path) -> None:
    chosen = {path.stem for path in _things(weedsense(own, tmp_path, 4))}
    for path in _masks(own):
        if path.stem not in chosen:
            path.write_bytes(b"")
    assert {path.stem for path in _things(weedsense(own, tmp_path, 4))} == chosen


def test_a_few_frames_without_files_or_rows_without_a_week_are_dropped_and_counted(tmp_path: Path) -> None:
    own = write_weedsense(tmp_path / "set", codes=5, frames=1)
    _masks(own)[-1].unlink()
    table = own / "test" / "test_data.csv"
    table.write_text(table.read_text().replace(",11.0\n", ",\n", 1))
    part = weedsense(own, tmp_path, 20)
    assert _dropped(part) == {
        "without a picture or a mask": 1,
        "without a name, species or week in the table": 1,
    }
    assert len(_things(part)) == 23


def test_masks_that_settle_nothing_are_dropped_and_counted(own: Path, tmp_path: Path) -> None:
    empty, undecided, other, mixed = _masks(own)[0], _masks(own)[6], _masks(own)[12], _masks(own)[17]
    _rewrite(empty, lambda values: np.where(values == 255, values, 0).astype(np.uint8))

    def undecide(values: np.ndarray) -> np.ndarray:
        values[:4] = 255
        return values

    _rewrite(undecided, undecide)
    _rewrite(other, lambda values: np.where(values == NUMBERS[CODES[2]], NUMBERS[CODES[0]], values).astype(np.uint8))

    def add_other(values: np.ndarray) -> np.ndarray:
        values[20:40, 20:40] = NUMBERS[CODES[1]]
        return values

    _rewrite(mixed, add_other)
    part = weedsense(own, tmp_path, 20)
    assert _dropped(part) == {
        "without a plant": 1,
        "with more than 1 % left undecided": 1,
        "with the number of another species": 2,
    }
    assert {path.stem for path in _things(part)} == {
        path.stem for path in _masks(own) if path not in (empty, undecided, other, mixed)
    }


def test_a_split_alone_without_nesting_is_read(own: Path, tmp_path: Path) -> None:
    (own / "test" / "images" / "images").rename(tmp_path / "flat")
    shutil.rmtree(own / "test" / "images")
    (tmp_path / "flat").rename(own / "test" / "images")
    assert len(_things(weedsense(own / "test", tmp_path, 20))) == 20


def _table(change: Callable[[str], str]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        table = folder / "test" / "test_data.csv"
        table.write_text(change(table.read_text()))

    return damage


def _all_one_number(folder: Path) -> None:
    for path in _masks(folder):
        _rewrite(path, lambda values: np.where((values > 0) & (values < 255), 1, values).astype(np.uint8))


def _black_and_white(folder: Path) -> None:
    for path in _masks(folder):
        _rewrite(path, lambda values: np.where(values > 0, 255, 0).astype(np.uint8))


def _coloured(folder: Path) -> None:
    shutil.rmtree(folder / "test" / "mmseg_masks")
    (folder / "test" / "masks").rename(folder / "test" / "mmseg_masks")


def _cut_short(folder: Path) -> None:
    picture = sorted((folder / "test" / "images" / "images").iterdir())[0]
    picture.write_bytes(picture.read_bytes()[:900])


def _no_pictures(folder: Path) -> None:
    shutil.rmtree(folder / "test" / "images" / "images")


def _some_pictures(folder: Path) -> None:
    for path in sorted((folder / "test" / "images" / "images").iterdir())[:3]:
        path.unlink()


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no folder": (shutil.rmtree, "has no test_data.csv"),
    "no table": (lambda folder: (folder / "test" / "test_data.csv").unlink(), "has no test_data.csv"),
    "no masks": (lambda folder: shutil.rmtree(folder / "test" / "mmseg_masks"), "has no mmseg_masks"),
    "no pictures": (_no_pictures, "20 have no picture"),
    "some pictures": (_some_pictures, "of 20 frames in test_data.csv, 3 have no picture"),
    "empty table": (_table(lambda text: text.split("\n")[0] + "\n"), "of 0 frames"),
    "another table": (_table(lambda text: text.replace("species", "plant", 1)), "no column species"),
    "another species": (_table(lambda text: text.replace(",ABUTH,", ",TAROF,", 1)), "line 2: 'TAROF'"),
    "no week": (_table(lambda text: text.replace(",3.0\n", ",twelve\n", 1)), "'twelve' no week"),
    "week nan": (_table(lambda text: text.replace(",3.0\n", ",nan\n", 1)), "'nan' no week"),
    "contradiction": (
        _table(lambda text: text + text.split("\n")[1].replace(",1.0", ",2.0") + "\n"),
        "contradicts another line",
    ),
    "broken picture": (_cut_short, "damaged or cut short"),
    "broken mask": (lambda folder: _masks(folder)[3].write_bytes(b"\x89PNG\r\n"), "cannot be used"),
    "coloured masks": (_coloured, "codes its classes as colours"),
    "strange value": (
        lambda folder: _rewrite(_masks(folder)[3], lambda values: np.maximum(values, 17).astype(np.uint8)),
        "16, 255: 17",
    ),
    "smaller mask": (
        lambda folder: _rewrite(_masks(folder)[3], lambda values: values[:-1]),
        "has 240 x 320 pixels, its mask 240 x 319",
    ),
    "one number for all": (_all_one_number, "15 with the number of another species"),
    "black and white": (_black_and_white, "most of the masks compared"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_missing_or_odd_is_named_with_where_to_get_it(own: Path, tmp_path: Path, fault: str) -> None:
    damage, message = FAULTS[fault]
    damage(own)
    with pytest.raises(BenchmarkError) as raised:
        weedsense(own, tmp_path, 20)
    assert message in str(raised.value)
    assert "baselab/weedsense" in str(raised.value.hint)


def _fullest(covers: list[float], _: list[int]) -> str:
    return f"image_{int(np.argmax(covers)) + 1}.jpg"


ANSWERS: dict[str, Callable[[list[float], list[int]], float | str]] = {
    "pot_weed_cover": lambda covers, _: covers[0],
    "pot_weed_more": _fullest,
    "pot_weed_peak": _fullest,
    "pot_weed_factor": lambda covers, _: covers[1] / covers[0],
    "pot_weed_points": lambda covers, _: abs(covers[1] - covers[0]),
    "pot_weed_rate": lambda covers, weeks: (covers[1] - covers[0]) / (weeks[1] - weeks[0]),
    "pot_weed_mean": lambda covers, _: float(np.mean(covers)),
}


def test_the_data_set_becomes_a_sound_benchmark(folder: Path, tmp_path: Path) -> None:
    part = weedsense(folder, tmp_path, 34)
    _, samples = sound_benchmark(part, tmp_path)
    assert {sample.task_type for sample in samples} == {"weed_crop_area", "plotting"}
    assert len({sample.template for sample in samples}) == 14
    for sample in samples:
        print(sample.template, [file.name for file in sample.files], sample.query)
        print("   ", [slot.model_dump().get("value") for slot in sample.answer])
        assert sample.reference is not None
        for step in sample.reference.steps:
            assert step.observation
            assert step.observation.result
            if step.tool == "measure_crop_weed_area":
                seen, true = step.observation.result["veg_pct"], step.truth["veg_pct"]  # pyright: ignore
                assert seen == pytest.approx(true, abs=1.0)
    by_stored = {stored: path.stem for stored, path in part.files.items()}
    for sample in samples:
        values = [
            np.asarray(Image.open(folder / f"test/mmseg_masks/{by_stored[file.path]}.png")) for file in sample.files
        ]
        covers = [100 * np.count_nonzero((one > 0) & (one < 255)) / np.count_nonzero(one < 255) for one in values]
        weeks = [_told(Path(by_stored[file.path]))[1] for file in sample.files]
        if sample.template in ANSWERS:
            answer = ANSWERS[sample.template](covers, weeks)
            expected = answer if isinstance(answer, str) else pytest.approx(answer, rel=1e-4)
            assert sample.answer[0].value == expected, sample.template  # pyright: ignore
    fullest = [sample.answer[0].value for sample in samples if sample.template == "pot_weed_peak"]  # pyright: ignore
    assert len(set(fullest)) > 1
