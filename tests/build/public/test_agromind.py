"""The AgroMind adapter on a small data set in its authors' layout."""

from pathlib import Path

import pytest
from data_sets import AGROMIND_COUNTS, PALM_COUNTS
from parts import original_of, things_of

from agrotools.build.sources.part import Part
from agrotools.build.sources.public import adapter_of
from agrotools.build.templates import Thing

agromind = adapter_of("agromind")
GSD_M = 0.08


def _things(part: Part) -> dict[str, Thing]:
    return {original_of(part, thing).name: thing for thing in things_of(part)}


def test_counts_are_those_of_the_answers_whether_numbers_or_options(folder: Path, tmp_path: Path) -> None:
    part = agromind(folder, tmp_path, 40)
    assert part.metadata["agromind_counted_pictures"] == {
        "oil palm": 11, "mango": 6, "apple": 6, "almond": 6, "maize tassel": 6, "plant": 6,
    }  # fmt: skip
    things = _things(part)
    for number, count in enumerate(PALM_COUNTS):
        name = f"44000_4000_{number}_77.jpg"
        # Two answers contradict each other about the third.
        assert (name in things) == (number != 2)
        if name in things:
            assert (things[name].truth["count"], things[name].arguments["target"]) == (count, "oil palm")
            area_ha = 210 * 200 * GSD_M**2 / 10_000
            assert things[name].truth["density_per_ha"] == pytest.approx(count / area_ha, rel=1e-3)
            assert things[name].files[0].gsd_m == GSD_M
    for number, count in enumerate(AGROMIND_COUNTS):
        assert things[f"image_{number:04d}.jpg"].truth == {"count": count}
        assert things[f"mango_{number}.png"].arguments["target"] == "mango"
        assert things[f"05-15_{number}.png"].words["fruits"] == "young plants"
    assert not any("Pest" in name or "passwd" in name for name in things)
