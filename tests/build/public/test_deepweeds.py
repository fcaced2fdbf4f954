"""The DeepWeeds adapter on a small data set in its authors' layout."""

from pathlib import Path

import pytest
from fake_deepweeds import write_deepweeds

from agrotools.build.sources.public import adapter_of
from agrotools.core import BenchmarkError


def read(folder: Path, samples: int = 20):
    return adapter_of("deepweeds")(folder, folder, samples)


def test_pictures_have_the_names_that_their_labels_stand_for(tmp_path: Path) -> None:
    part = read(write_deepweeds(tmp_path / "set"))
    truths = {}
    for subject in part.subjects:
        for index in range(subject.things):
            thing = subject.shown(index, 1)
            original = part.files[thing.files[0].path]
            truths[original.name] = thing.truth
    assert len(truths) == 18
    assert truths["20170110-101010-0.jpg"]["common_name"] == "chinee apple"
    assert truths["20170510-101010-0.jpg"]["species"] == "Vachellia nilotica"
    assert truths["20170910-101010-0.jpg"] == {
        "common_name": None, "species": None, "best": "negative", "kb_id": None, "is_weed": False,
    }  # fmt: skip
    assert part.source.licence.startswith("CC BY 4.0")


def test_no_more_pictures_are_read_than_samples_need_and_all_classes_are_there(tmp_path: Path) -> None:
    part = read(write_deepweeds(tmp_path / "set", 6), samples=9)
    shown = [subject.shown(index, 1) for subject in part.subjects for index in range(subject.things)]
    assert len(shown) == 18
    assert len({thing.truth["best"] for thing in shown}) == 9


@pytest.mark.parametrize("fault", ["no folder", "no labels", "no picture", "strange label", "no column", "no text"])
def test_what_is_missing_is_named_with_where_to_get_it(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "set"
    if fault != "no folder":
        write_deepweeds(folder)
    table = folder / "labels" / "test_subset0.csv"
    if fault == "no labels":
        table.unlink()
    elif fault == "no picture":
        (folder / "images" / "20170110-101010-0.jpg").unlink()
    elif fault == "strange label":
        table.write_text("Filename,Label\n20170110-101010-0.jpg,12\n")
    elif fault == "no column":
        table.write_text("Filename,Species\n20170110-101010-0.jpg,Lantana\n")
    elif fault == "no text":
        table.write_bytes(b"Filename,Label\n\xff\xfe,1\n")
    with pytest.raises(BenchmarkError) as raised:
        read(folder)
    assert "AlexOlsen/DeepWeeds" in str(raised.value.hint)
