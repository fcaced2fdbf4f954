"""Each data set: what samples say is what its files say, and only files of its test split are shown."""

from typing import Any

import pytest

from agrotools_build.sources.public import adapter_of

READ: dict[str, tuple[int, tuple[str, ...], str, int]] = {
    "agromind": (40, (), "images", 41),
    "clcd": (20, ("change",), "pair", 6),
    "deepnir": (30, (), "test", 52),
    "deepweeds": (20, (), "images", 18),
    "fpcd": (20, ("pond",), "pair", 8),
    "hi_cna": (20, ("change",), "pair", 6),
    "plantseg": (30, ("plant_disease",), "test", 60),
    "weedsense": (40, ("pot_weed",), "images", 80),
}
"""Samples asked for, kinds of things, the folder of the pictures ("pair" if pairs are known by their names), and the
number of pictures or pairs that are asked about."""


@pytest.mark.parametrize("name", READ)
def test_samples_say_what_the_files_say(name, data_set, told, scratch):
    folder, (samples, kinds, place, count) = data_set(name), READ[name]
    part = adapter_of(name)(folder, scratch, samples)
    seen: set[str] = set()
    for subject in part.subjects:
        if kinds and subject.of not in kinds:
            continue
        for index in range(subject.things):
            thing = subject.shown(index, 1)
            path = part.files[thing.files[0].path]
            key = path.name if place != "pair" else f"{subject.name.partition('-')[2]}.png"
            assert place == "pair" or place in path.relative_to(folder).parts
            for field, expected in told[name][key].items():
                found = {each: getattr(thing, field)[each] for each in expected}
                assert found == {each: _near(value) for each, value in expected.items()}, key
            seen.add(key)
    assert len(seen) == count


def _near(value: Any) -> Any:
    return (
        pytest.approx(value, rel=1e-3 if value > 1000 else 1e-5)
        if isinstance(value, float)
        else value
    )
