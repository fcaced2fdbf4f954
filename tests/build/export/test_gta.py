import json
import re
import shutil

import pytest
from every_slot import HEADER, write_every_slot

from agrotools.benchmarks import load_folder
from agrotools.build.export.gta import export_gta, gta_path
from agrotools.build.export.gta_in import build_gta
from agrotools.core.record import literal_value


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return load_folder(write_every_slot(tmp_path_factory.mktemp("gta") / "benchmark"))


@pytest.fixture(scope="module")
def exported_once(benchmark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "gta"
    export_gta(benchmark.root, benchmark.header, benchmark.samples, folder)
    return folder


@pytest.fixture
def exported(exported_once, tmp_path):
    return shutil.copytree(exported_once, tmp_path / "gta")


def _entries(folder):
    return json.loads((folder / "dataset.json").read_text())


def test_an_entry_has_the_shape_of_gta(benchmark, exported):
    entries = _entries(exported)
    assert list(entries) == [str(number) for number in range(7)]
    first = entries["0"]
    assert first["files"][0] == {"type": "image", "path": "image/every-1/image_1.png", "url": None}
    assert [message["role"] for message in first["dialogs"]] == ["user", *["assistant", "tool"] * 3, "assistant"]
    call = first["dialogs"][1]
    called = {"name": "count_objects", "arguments": {"image": "image/every-1/image_1.png", "target": "apple"}}
    assert call["tool_calls"] == [{"type": "function", "function": called}]
    assert call["thought"] == "Left."
    assert "thought" not in first["dialogs"][3]
    assert first["dialogs"][5]["tool_calls"][0]["function"]["arguments"]["variables"] == {"a": 11, "b": 9}
    assert json.loads(first["dialogs"][6]["content"]["content"]) == {"value": 2.0}
    assert {tool["name"] for tool in first["tools"]} == set(HEADER.toolset)
    inputs = {given["name"]: given for given in first["tools"][0]["inputs"]}
    assert (inputs["image"]["type"], inputs["image"]["optional"]) == ("image", False)
    assert set(json.loads((exported / "toolmeta.json").read_text())) == set(HEADER.toolset)
    for sample in benchmark.samples:
        for file in sample.files:
            assert (exported / gta_path(sample, file)).read_bytes() == (benchmark.root / file.path).read_bytes()


def test_answers_take_the_three_forms_of_gta(exported):
    number, figure, file, yes, weed, advice, bands = (entry["gt_answer"] for entry in _entries(exported).values())
    assert number == {"whitelist": [["3", "3.000", "3.00", "3.0"]], "blacklist": None}
    assert figure is None
    assert file["whitelist"] == [["image_1.png"]]
    assert yes["whitelist"] == [["yes", "true"]]
    assert weed == {"whitelist": [["Lantana", "Lantana camara"]], "blacklist": [["Parthenium"]]}
    assert advice == ["pull it out; burn it"]
    assert bands["whitelist"] == [["NIR"], ["RE", "red edge"]]


def _hit(text, words):
    return re.search(rf"\b(?:{'|'.join(map(re.escape, words))})\b", text, re.IGNORECASE)


def test_the_last_message_is_right_by_the_rule_of_gta(exported):
    closed = [entry for entry in _entries(exported).values() if isinstance(entry["gt_answer"], dict)]
    assert len(closed) == 5
    for entry in closed:
        text = entry["dialogs"][-1]["content"]
        assert all(_hit(text, group) for group in entry["gt_answer"]["whitelist"])
        assert not any(_hit(text, group) for group in entry["gt_answer"]["blacklist"] or [])


def test_the_shape_keeps_queries_files_calls_and_answers(benchmark, exported, tmp_path):
    build_gta(exported, tmp_path / "back")
    back = load_folder(tmp_path / "back")
    assert len(back.samples) == 7
    for before, after in zip(benchmark.samples, back.samples, strict=True):
        assert after.query == before.query
        assert [(file.name, file.sha256, file.kind) for file in after.files] == [
            (file.name, file.sha256, file.kind) for file in before.files
        ]
        assert [
            (step.tool, step.arguments, step.observation and step.observation.result) for step in after.reference.steps
        ] == [
            (step.tool, literal_value(step.arguments), step.observation and step.observation.result)
            for step in before.reference.steps
        ]
        assert after.answer_type == ("exact" if before.answer_type == "tolerance" else before.answer_type)
    answers = [sample.answer for sample in back.samples]
    assert (answers[0][0].type, answers[0][0].value, answers[0][0].from_) == ("exact", "3", None)
    assert answers[1][0].value == benchmark.samples[1].answer[0].value
    assert answers[1][0].from_ == "steps[2].observation.spec"
    assert (answers[2][0].type, answers[2][0].value, answers[2][0].choices) == (
        "file", "image_1.png", ("image_1.png", "image_2.png"),
    )  # fmt: skip
    assert (answers[3][0].type, answers[3][0].value) == ("boolean", True)
    assert (answers[4][0].value, answers[4][0].aliases, answers[4][0].distractors) == (
        "Lantana", {"Lantana": ("Lantana camara",)}, ("Parthenium",),
    )  # fmt: skip
    assert answers[5][0].facts[0].phrases == ("pull it out; burn it",)
    assert answers[6][0].whitelist == (("NIR",), ("RE", "red edge"))
    assert back.samples[4].reference.steps[0].observation.error.kind == "low_confidence"
