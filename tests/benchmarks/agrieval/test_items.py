"""Files of examination questions: the published ones, made ones, and damaged ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import BenchmarkError
from agrotools_benchmarks.agrieval.items import read_items

RIGHT = {
    "id": 1, "question_type": "单选", "question": "问", "options": {"A": "甲", "B": "乙", "C": "丙"}, "answer": "B",
}  # fmt: skip


def written(folder: Path, entries: Any, name: str = "choice.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


@pytest.mark.data
def test_the_published_files_are_read_whole(field_data: Path):
    folder = field_data / "agrieval"
    choice = read_items(folder / "simple_merged_choice_v6_5(rag).json")
    kinds = [item.kind for item in choice.items]
    assert [kinds.count(kind) for kind in ("single", "true_false", "multiple")] == [785, 185, 104]
    assert choice.left_out == {}
    assert {name for item in choice.items for name in item.groups} == {"type"}, (
        "they tell nothing else"
    )
    questions = read_items(folder / "simple_merged_question_v4_2(main).json")
    assert len(questions.items) == 2167
    assert {item.kind for item in questions.items} == {None}, "63 of them without a question type"
    assert {name for item in questions.items for name in item.groups} == {
        "domain",
        "field",
        "level",
        "task",
    }


@pytest.mark.data
def test_cmmlu_is_read_from_json_and_from_its_table(field_data: Path, tmp_path: Path):
    published = read_items(field_data / "agri_text" / "cmmlu_agronomy.json").items
    assert len(published) == 60
    assert {(item.kind, len(item.options)) for item in published} == {("single", 4)}
    table = tmp_path / "agronomy.csv"
    table.write_text(',Question,A,B,C,D,Answer\n0,哪个？,甲,"乙,二",丙,丁,C\n', encoding="utf-8")
    (item,) = read_items(table).items
    assert (item.options["B"], item.answer) == ("乙,二", ("C",))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": ""}, "without an answer"),
        ({"answer": "BB"}, "with an answer outside the options"),
        ({"answer": "AB"}, "with several answers where one is asked for"),
        ({"options": {"a": "甲", "A": "乙"}}, "with options that lack letters of their own"),
        ({"options": {"A": "甲", "B": " "}}, "with fewer than two options"),
        ({"options": ["甲"]}, "with fewer than two options"),
        (
            {"options": None, "question_type": "判断", "answer": "正确"},
            "with fewer than two options",
        ),
        ({"options": "A甲B乙"}, "with options of another form"),
        ({"question": "长" * 30_000}, "with over 20000 characters in a field"),
        ({"question": "\ud83c 问"}, "with half of a character"),
    ],
)
def test_what_cannot_be_asked_is_left_out_and_counted(
    tmp_path: Path, change: dict[str, Any], reason: str
):
    file = read_items(written(tmp_path, [RIGHT, {**RIGHT, "id": 2, **change}, "no object"]))
    assert [item.number for item in file.items] == ["1"]
    assert (
        file.left_out == {reason: 1, "without a question": 1}
        if reason != "without a question"
        else {reason: 2}
    )


def test_answers_kinds_and_ids_are_made_plain(tmp_path: Path):
    several = {**RIGHT, "question_type": "多选"}
    answers = ["CA", "A、C", "a c", "A,C"]
    file = read_items(
        written(
            tmp_path,
            [{**several, "id": number, "answer": each} for number, each in enumerate(answers)],
        )
    )
    assert [item.answer for item in file.items] == [("A", "C")] * 4
    plain = {name: value for name, value in RIGHT.items() if name != "question_type"}
    two = {**plain, "options": {"A": "对", "B": "错"}, "answer": "A"}
    file = read_items(
        written(
            tmp_path, [plain, {**plain, "answer": "AC"}, two, {"question": "q", "answer": "text"}]
        )
    )
    assert [item.kind for item in file.items] == ["single", "multiple", "true_false", None]
    file = read_items(
        written(tmp_path, [RIGHT, {**RIGHT, "question": "又问"}, {**RIGHT, "id": "a/../b 题"}])
    )
    assert [item.number for item in file.items] == ["1", "1.2", "a..b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"id": 1', "is cut off"),
        ("问题".encode("gb18030"), "is not UTF-8"), (b"{}", "contains no list"),
        (b"[" * 100_000, "is nested too deeply"), (b'[{"question": 1}]', "1 without an answer"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, content: bytes, message: str):
    path = tmp_path / "choice.json"
    path.write_bytes(content)
    with pytest.raises(BenchmarkError, match=message) as raised:
        read_items(path)
    assert "choice.json" in str(raised.value)
