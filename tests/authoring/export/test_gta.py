"""Reading of GTA-shaped JSON: ``gta_shaped.json`` has the questions of ``every_slot`` in that form."""

import shutil
from pathlib import Path

import pytest
from every_slot import write_every_slot

from agrotools.core.record import literal_value
from agrotools.loading import load_folder
from agrotools_benchmarks._dialogs.gta_in import build_gta


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return load_folder(write_every_slot(tmp_path_factory.mktemp("gta") / "benchmark"))


def _write_gta_shaped(benchmark, folder):
    """Write ``dataset.json`` and the files of the benchmark at the paths that it names."""
    for sample in benchmark.samples:
        for file in sample.files:
            place = folder / "image" / sample.id / file.name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(benchmark.root / file.path, place)
    shutil.copyfile(Path(__file__).with_name("gta_shaped.json"), folder / "dataset.json")


def test_queries_files_calls_and_answers_are_read(benchmark, tmp_path):
    _write_gta_shaped(benchmark, tmp_path / "shaped")
    build_gta(tmp_path / "shaped", tmp_path / "read")
    read = load_folder(tmp_path / "read")
    assert len(read.samples) == 7
    for expected, sample in zip(benchmark.samples, read.samples, strict=True):
        assert sample.query == expected.query
        assert [(file.name, file.sha256, file.kind) for file in sample.files] == [
            (file.name, file.sha256, file.kind) for file in expected.files
        ]
        assert [
            (step.tool, step.arguments, step.observation and step.observation.result)
            for step in sample.reference.steps
        ] == [
            (step.tool, literal_value(step.arguments), step.observation and step.observation.result)
            for step in expected.reference.steps
        ]
        assert sample.answer_type == (
            "exact" if expected.answer_type == "tolerance" else expected.answer_type
        )
    answers = [sample.answer for sample in read.samples]
    assert (answers[0][0].type, answers[0][0].value, answers[0][0].from_) == ("exact", 3, None)
    assert answers[1][0].value == benchmark.samples[1].answer[0].value
    assert answers[1][0].from_ == "steps[2].observation.spec"
    assert (answers[2][0].type, answers[2][0].value, answers[2][0].choices) == (
        "file", "image_1.png", ("image_1.png", "image_2.png"),
    )  # fmt: skip
    assert (answers[3][0].type, answers[3][0].value) == ("boolean", True)
    label = answers[4][0]
    assert (label.value, label.aliases) == ("Lantana", {"Lantana": ("Lantana camara",)})
    assert label.choices == (), "the words of a blacklist are no choices of the form"
    assert answers[5][0].facts[0].phrases == ("pull it out; burn it",)
    assert answers[6][0].whitelist == (("NIR",), ("RE", "red edge"))
    assert read.samples[4].reference.steps[0].observation.error.kind == "low_confidence"
