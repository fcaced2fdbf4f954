"""Questions about bands: truth worked out on channels and a true class map."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from rasterio.errors import NotGeoreferencedWarning

from agrotools.core import SampleFile
from agrotools_build.choosing import choose
from agrotools_build.sources.public.weeds import TileTruth, set_subject, tile_subject
from agrotools_build.templates import load_templates

Raster = tuple[SampleFile, TileTruth]
BANDS = ("B", "G", "R", "RE", "NIR")
MEANS = {
    "soil": (70, 90, 115, 120, 125),
    "crop": (40, 95, 50, 130, 190),
    "weed": (41, 97, 62, 106, 178),
}


@pytest.fixture
def tiles(tmp_path: Path) -> list[Raster]:
    return [_tile(tmp_path / f"{seed}.tif", seed, noise) for seed, noise in ((1, 8.0), (2, 14.0))]


def _tile(path: Path, seed: int, noise: float) -> Raster:
    rng = np.random.default_rng(seed)
    classes = np.zeros((160, 200), np.uint8)
    for _ in range(60):
        x, y = int(rng.integers(0, 190)), int(rng.integers(0, 150))
        classes[y : y + 9, x : x + 10] = 1 + rng.integers(0, 2)
    means = np.array([MEANS[name] for name in ("soil", "crop", "weed")])
    values = np.clip(means[classes] + rng.normal(0, noise, (160, 200, 5)), 1, 255).astype(np.uint8)
    profile = {"driver": "GTiff", "count": 5, "height": 160, "width": 200, "dtype": "uint8"}
    with pytest.warns(NotGeoreferencedWarning), rasterio.open(path, "w", **profile) as target:
        target.write(values.transpose(2, 0, 1))
    file = SampleFile(name="x", path=path.name, kind="raster", bands=BANDS)
    return file, TileTruth(classes, np.ones((160, 200), np.bool_), path, BANDS)


def test_bands_come_by_how_classes_differ_where_there_is_data(tiles: list[Raster]) -> None:
    ranking: Any = tiles[0][1].ranking(BANDS)
    best = ranking["triplets"][0]
    assert set(best["bands"]) == {"R", "RE", "NIR"}
    assert (set(ranking["classes"]), ranking["classes_from"]) == (
        {"soil", "crop", "weed"},
        "labels",
    )
    assert len(ranking["triplets"]) == 10
    alone: Any = tiles[0][1].ranking(best["bands"])
    assert alone["triplets"][0]["expected_accuracy"] == pytest.approx(
        best["expected_accuracy"], abs=0.01
    )
    _, tile = tiles[0]
    half = np.zeros(tile.valid.shape, np.bool_)
    half[:, :100] = True
    spoilt, cut = (
        tile._replace(classes=np.where(half, tile.classes, value), valid=half) for value in (2, 0)
    )
    assert spoilt.ranking(BANDS) == cut.ranking(BANDS)


def test_what_is_asked_of_bands_follows_from_the_ranking(tiles: list[Raster]) -> None:
    subjects = [
        tile_subject("t", tiles, {}),
        *(set_subject(f"s{number}", *tile, {}) for number, tile in enumerate(tiles)),
    ]
    chosen = choose(subjects, load_templates("bands"), 12, 1)
    asked = {item.question.template for item in chosen}
    assert {
        "bands_best",
        "bands_hardest_pair",
        "bands_clearer_tile",
        "sets_best",
        "sets_gain",
        "sets_chart",
    } <= asked
    for item in chosen:
        assert item.question.task_type == "band_selection"
        slot: Any = item.slots[0]
        truths: list[Any] = [
            call.truth["separability"]["triplets"] for call in item.instance.calls if call.truth
        ]
        accuracies = [triplets[0]["expected_accuracy"] for triplets in truths]
        things: list[Any] = [
            call.arguments for call in item.instance.calls if call.tool == "measure_crop_weed_area"
        ]
        match item.question.template:
            case "bands_best":
                assert set(slot.value) == {"R", "RE", "NIR"}
            case "bands_hardest_pair":
                assert slot.value == "crop and weed"
            case "bands_clearer_tile":
                noisy = "bands_1.tif" if accuracies[0] < accuracies[1] else "bands_2.tif"
                assert slot.value != noisy
            case "sets_best":
                assert slot.value == "-".join(things[accuracies.index(max(accuracies))]["bands"])
                assert all("NIR" in thing["bands"] for thing in things)
            case "sets_gain":
                assert slot.value == pytest.approx(
                    100 * abs(accuracies[0] - accuracies[1]), abs=1e-4
                )
            case _:
                pass


def test_bands_are_given_to_the_tool_by_the_number_they_have_in_the_file(
    tiles: list[Raster],
) -> None:
    subject = set_subject("s", *tiles[0], {})
    assert subject.things == 6
    for index in range(subject.things):
        thing: Any = subject.shown(index, 1)
        assert thing.called == "-".join(thing.arguments["bands"])
        for band, number in thing.arguments["bands"].items():
            assert BANDS[number - 1] == band
