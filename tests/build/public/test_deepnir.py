"""The deepNIR adapter on a small data set in its authors' layout."""

from collections import Counter
from pathlib import Path

import pytest
from fake_deepnir import write_deepnir
from parts import original_of, sound_benchmark, things_of

from agrotools.benchmarks import load_folder
from agrotools.build.sources.assembling import assembled
from agrotools.build.sources.part import Part
from agrotools.build.sources.public.counts import DEEPNIR_PLURAL, deepnir
from agrotools.build.templates import Thing
from agrotools.core import BenchmarkError

COUNTED_OFFLINE = {"apple", "cherry", "orange", "strawberry"}


def _things(part: Part) -> dict[Path, Thing]:
    return {original_of(part, thing): thing for thing in things_of(part)}


def _boxes_of(picture: Path) -> int:
    label = picture.parents[1] / "labels" / f"{picture.name.removesuffix('.jpg')}.txt"
    return len(set(label.read_text().split("\n")) - {""}) if label.exists() else 0


def test_counts_are_those_of_the_boxes_and_fruits_those_of_the_folders(tmp_path: Path) -> None:
    things = _things(deepnir(write_deepnir(tmp_path / "set"), tmp_path, 30))
    assert len(things) == 52
    for picture, thing in things.items():
        assert picture.parts[-3] == "test"
        assert thing.arguments["target"] == {"wheat": "wheat head"}.get(picture.parts[-4], picture.parts[-4])
        assert thing.truth == {"count": _boxes_of(picture)}
    counts = {thing.truth["count"] for thing in things.values()}
    assert 0 in counts
    assert len(counts) > 4


def test_fruits_of_a_pair_are_alike_and_each_fruit_is_named_as_people_do(tmp_path: Path) -> None:
    part = deepnir(write_deepnir(tmp_path / "set"), tmp_path, 20)
    for subject in part.subjects:
        targets = {subject.shown(index, 1).words["fruits"] for index in range(subject.things)}
        assert len(targets) == 1
        assert targets <= set(DEEPNIR_PLURAL.values())


def test_what_the_tool_cannot_count_is_asked_about_all_the_same(tmp_path: Path) -> None:
    part = deepnir(write_deepnir(tmp_path / "set", of_each=4, wheat=12), tmp_path, 30)
    assert part.metadata["deepnir_test_pictures"] == dict.fromkeys(DEEPNIR_PLURAL, 4) | {"wheat": 12}
    assembled([part], tmp_path / "out", name="deepnir", version="1", description="Counts.", progress=lambda *_: None)
    benchmark = load_folder(tmp_path / "out")
    lacking = 0
    for sample in benchmark.samples:
        assert sample.reference is not None
        counts = [step for step in sample.reference.steps if step.tool == "count_objects"]
        errors = {step.observation.error.kind for step in counts if step.observation and step.observation.error}
        assert errors <= {"backend_unavailable"}
        assert all(step.truth and isinstance(step.truth["count"], int) for step in counts)
        assert bool(errors) is not ({str(step.arguments["target"]) for step in counts} <= COUNTED_OFFLINE)
        lacking += bool(errors)
    assert 0 < lacking < len(benchmark.samples)
    told = benchmark.header.metadata
    assert told["needs_backend"] == {"count_objects": lacking}
    assert "dropped" not in told


def test_no_more_pictures_are_read_than_samples_need_and_all_fruits_are_there(tmp_path: Path) -> None:
    things = _things(deepnir(write_deepnir(tmp_path / "set", of_each=6), tmp_path, 8))
    counts = Counter(thing.words["fruits"] for thing in things.values())
    assert sum(counts.values()) == 16
    assert counts.keys() == set(DEEPNIR_PLURAL.values())
    assert max(counts.values()) - min(counts.values()) <= 1


FAULTS = {
    "four numbers": ("0 0.5 0.5 0.1", "line 2 is not a box"),
    "no number": ("0 0.5 0.5 0.1 wide", "line 2 is not a box"),
    "nan": ("0 0.5 nan 0.1 0.1", "line 2 has a box that no picture holds"),
    "pixels": ("0 120 80 30 30", "line 2 has a box that no picture holds"),
    "no width": ("0 0.5 0.5 0 0.1", "line 2 has a box that no picture holds"),
    "another class": ("3 0.5 0.5 0.1 0.1", "line 2 is of class 3"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_line_that_is_no_box_is_named(tmp_path: Path, fault: str) -> None:
    folder = write_deepnir(tmp_path / "set")
    label = sorted((folder / "orange" / "test" / "labels").iterdir())[0]
    line, message = FAULTS[fault]
    label.write_text(f"0 0.5 0.5 0.1 0.1\n{line}\n")
    with pytest.raises(BenchmarkError) as raised:
        deepnir(folder, tmp_path, 20)
    assert f"{label}, {message}" in str(raised.value)
    assert "6324489" in str(raised.value.hint)


@pytest.mark.parametrize("fault", ["no folder", "no fruit", "no labels", "no picture", "empty", "binary", "cut short"])
def test_what_is_missing_is_named_with_where_to_get_it(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "set"
    if fault != "no folder":
        write_deepnir(folder)
    place = folder / "cherry" / "test"
    if fault == "no fruit":
        (folder / "cherry").rename(tmp_path / "elsewhere")
    elif fault == "no labels":
        (place / "labels").rename(tmp_path / "elsewhere")
    elif fault == "no picture":
        label = sorted((place / "labels").iterdir())[0]
        (place / "images" / f"{label.stem}.jpg").unlink()
    elif fault == "empty":
        for path in folder.glob("*/test/*/*"):
            path.unlink()
    elif fault == "binary":
        sorted((place / "labels").iterdir())[0].write_bytes(b"\xff\xfe\x00")
    elif fault == "cut short":
        picture = sorted((place / "images").iterdir())[0]
        picture.write_bytes(picture.read_bytes()[:900])
    with pytest.raises(BenchmarkError) as raised:
        deepnir(folder, tmp_path, 20)
    assert "6324489" in str(raised.value.hint)


def test_the_data_set_becomes_a_sound_benchmark(tmp_path: Path) -> None:
    part = deepnir(write_deepnir(tmp_path / "set"), tmp_path, 12)
    _, samples = sound_benchmark(part, tmp_path)
    assert {sample.task_type for sample in samples} == {"organ_counting", "plotting"}
    for sample in samples:
        assert sample.reference is not None
        assert all(step.observation for step in sample.reference.steps)
