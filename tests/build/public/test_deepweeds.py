"""The DeepWeeds adapter on a small data set in its authors' layout."""

from pathlib import Path

from agrotools.build.sources.public import adapter_of


def read(folder: Path, samples: int = 20):
    return adapter_of("deepweeds")(folder, folder, samples)


def test_pictures_have_the_names_that_their_labels_stand_for(folder: Path, tmp_path: Path) -> None:
    part = read(folder)
    truths = {}
    for subject in part.subjects:
        for index in range(subject.things):
            thing = subject.shown(index, 1)
            original = part.files[thing.files[0].path]
            truths[original.name] = thing.truth
    assert (len(truths), truths["20170110-101010-0.jpg"]["common_name"]) == (18, "chinee apple")
    assert truths["20170510-101010-0.jpg"]["species"] == "Vachellia nilotica"
    assert truths["20170910-101010-0.jpg"] == {
        "common_name": None, "species": None, "best": "negative", "kb_id": None, "is_weed": False,
    }  # fmt: skip
    assert part.source.licence.startswith("CC BY 4.0")
