"""The deepNIR adapter on a small data set in its authors' layout."""

from pathlib import Path

from parts import things_by_file

from agrotools.build.sources.part import listing_of
from agrotools.build.sources.public import adapter_of

deepnir = adapter_of("deepnir")
PLURALS = listing_of("deepnir").layout["plurals"]


def _boxes_of(picture: Path) -> int:
    label = picture.parents[1] / "labels" / f"{picture.name.removesuffix('.jpg')}.txt"
    return len(set(label.read_text().split("\n")) - {""}) if label.exists() else 0


def test_counts_are_those_of_the_boxes_and_fruits_those_of_the_folders(folder: Path, tmp_path: Path) -> None:
    things = things_by_file(deepnir(folder, tmp_path, 30))
    assert len(things) == 52
    for picture, thing in things.items():
        assert picture.parts[-3] == "test"
        assert thing.arguments["target"] == {"wheat": "wheat head"}.get(picture.parts[-4], picture.parts[-4])
        assert thing.truth == {"count": _boxes_of(picture)}
    counts = {thing.truth["count"] for thing in things.values()}
    assert 0 in counts
    assert len(counts) > 4
