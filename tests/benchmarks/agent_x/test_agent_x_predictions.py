import json

import pytest

from agrotools.core import BenchmarkError
from agrotools_benchmarks.agent_x.judge import read_judgements
from agrotools_benchmarks.agent_x.predictions import parse_predictions, read_data, read_predictions


def written(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


STEP = {"tool_used": "OCR"}


@pytest.mark.parametrize("heading", ["Unnamed: 0", ""])
def test_a_table_of_scores_is_read(tmp_path, heading):
    table = read_judgements(written(tmp_path / "t.csv", f"{heading},goal_accuray\n3,1\n7,n/a\n"))
    assert table.ids == ("3", "7")
    assert [row["goal_accuray"] for row in table.rows] == ["1", "n/a"]
    assert not table.raw
    assert read_judgements(written(tmp_path / "u.csv", "goal_accuray\n1\n")).ids is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.json", {"0": {}}, "is no list"),
        ("p.json", [{}], "item 0 is no object with one key"),
        ("d.json", [], "no object of samples"),
        ("d.json", {"0": []}, 'key "0" is no sample'),
        ("j.json", [], "is no object"),
        ("j.json", {"0": {"other": 1}}, "none of the metrics"),
        ("j.csv", "id,goal_accuray\n1,1\n1,0\n", "two rows with the same id"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name, content, said):
    read = {"p": read_predictions, "d": read_data, "j": read_judgements}
    with pytest.raises(BenchmarkError, match=said):
        read[name[0]](written(tmp_path / name, content))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (7, "item 1 is no object with one key"),
        ({"1": []}, 'key "1" is no prediction'),
        ({"1": {"reasoning_steps": "text"}}, 'key "1": reasoning_steps is no list'),
        ({"1": {"reasoning_steps": ["text"]}}, 'key "1": reasoning_steps[0] is no object'),
        (
            {"1": {"reasoning_steps": [{"thought": None}]}},
            'key "1": reasoning_steps[0].thought is no text',
        ),
        ({"1": {"final_answer": "text"}}, 'key "1": final_answer is no object'),
    ],
)
def test_a_malformed_prediction_is_named_and_the_others_are_read(item, said):
    items, malformed = parse_predictions([{"0": {"reasoning_steps": [STEP]}}, item], "p.json")
    assert (items[1], malformed) == (item, [f"p.json, {said}"])
