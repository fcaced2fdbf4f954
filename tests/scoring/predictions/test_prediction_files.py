import json

import pytest

from agrotools.core import BenchmarkError
from agrotools.scoring.predictions import agent_x_files, gta_files, thinkgeo_log
from agrotools.scoring.predictions.json_files import read_json
from support.gta_files import END_GOLD, GOLD_ENDS, GOLD_STEPS, STEP_GOLD, answer, call


def written(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def entry(gold, prediction):
    return {"gold": gold, "prediction": prediction, "origin_prompt": [], "steps": []}


STEP_FILE = {str(i): entry(gold, gold) for i, gold in enumerate(GOLD_STEPS)}
END_FILE = {str(i): entry([gold], [gold]) for i, gold in enumerate(GOLD_ENDS)}
USER = {"role": "user", "content": "?"}
DATA = {str(i): {"dialogs": [USER, *gold], "gt_answer": ref} for i, (gold, ref) in enumerate(END_GOLD)}


def test_the_mode_is_told_by_the_shape(tmp_path):
    steps = gta_files.read_predictions(written(tmp_path / "a.json", STEP_FILE))
    ends = gta_files.read_predictions(written(tmp_path / "b.json", END_FILE))
    assert (steps.mode, ends.mode) == ("step-by-step", "end-to-end")
    assert [sample.key for sample in steps.samples] == ["0", "1", "2"]


def test_parts_are_joined_where_the_file_is_not_there(tmp_path):
    written(tmp_path / "gta_0.json", {"0": STEP_FILE["0"], "1": STEP_FILE["1"]})
    written(tmp_path / "gta_1.json", {"0": STEP_FILE["2"]})
    read = gta_files.read_predictions(tmp_path / "gta.json")
    assert [sample.key for sample in read.samples] == ["0", "1", "2"]
    assert read.samples[2].gold == GOLD_STEPS[2]
    assert [file.name for file in read.files] == ["gta_0.json", "gta_1.json"]
    with pytest.raises(BenchmarkError, match=r"no other_0\.json either"):
        gta_files.read_predictions(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is cut off"),
        (json.dumps(STEP_FILE)[:200], "is cut off"),
        ("{'0': 1}", "is no JSON"),
        ("[" * 200_000, "nested too deeply"),
        ([], "no object of samples"),
        ({}, "holds no prediction"),
        ({"0": STEP_FILE["0"], "2": STEP_FILE["2"]}, 'key "1" is missing'),
        ({"0": 3}, 'key "0" is no object'),
        ({"0": {"gold": []}}, 'key "0": prediction is no list'),
        ({"0": {"gold": {}, "prediction": []}}, 'key "0": gold is no list'),
        ({"0": entry([], ["x"])}, r"prediction\[0\] is neither"),
        ({"0": entry([], [["x"]])}, r"prediction\[0\]\[0\] is no message"),
        ({"0": entry([], [{"role": "assistant"}])}, "neither tool_calls nor role"),
        ({"0": entry([], [{"tool_calls": []}])}, "tool_calls holds no call"),
        ({"0": entry([], [call(None, {})])}, "tool_calls holds no call"),
        ({"0": STEP_FILE["0"], "1": END_FILE["1"]}, 'key "1": predictions of both modes'),
        ({"0": entry([], [answer("x"), [answer("x")]])}, 'key "0": predictions of both modes'),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path, content, said):
    with pytest.raises(BenchmarkError, match=said):
        gta_files.read_predictions(written(tmp_path / "p.json", content))


def test_files_that_are_no_text_are_named(tmp_path):
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BenchmarkError, match=r"p\.json is no UTF-8"):
        read_json(tmp_path / "p.json")
    with pytest.raises(BenchmarkError, match="no such file"):
        read_json(tmp_path)


def test_answers_come_from_the_data_set_by_position(tmp_path):
    predictions = gta_files.read_predictions(written(tmp_path / "p.json", {"0": END_FILE["0"], "1": END_FILE["1"]}))
    joined = gta_files.with_answers(predictions, DATA)
    assert [sample.answer for sample in joined.samples] == [ref for _, ref in END_GOLD[:2]]
    (missing,) = gta_files.unanswered(predictions, DATA)
    assert (missing.key, missing.gold, missing.prediction, missing.answer) == ("2", [GOLD_ENDS[2]], [], END_GOLD[2][1])


def test_unanswered_steps_have_the_messages_of_the_assistant(tmp_path):
    predictions = gta_files.read_predictions(written(tmp_path / "p.json", {"0": STEP_FILE["0"]}))
    dialogs = [USER, STEP_GOLD[0][0][0], {"role": "tool", "name": "OCR", "content": {}}, answer("6")]
    data = {"0": {"dialogs": GOLD_STEPS[0], "gt_answer": None}, "1": {"dialogs": dialogs, "gt_answer": None}}
    assert gta_files.unanswered(predictions, data)[0].gold == [STEP_GOLD[0][0][0], answer("6")]


def test_predictions_and_data_must_belong_together(tmp_path):
    predictions = gta_files.read_predictions(written(tmp_path / "p.json", END_FILE))
    with pytest.raises(BenchmarkError, match="only 1 entries"):
        gta_files.with_answers(predictions, {"0": DATA["0"]})
    with pytest.raises(BenchmarkError, match='key "0": the gold of the predictions calls OCR, Calculator'):
        gta_files.with_answers(predictions, dict(reversed(DATA.items())))
    for wrong in ([], {}, {"0": {"dialogs": []}}, {"0": 1}):
        with pytest.raises(BenchmarkError):
            gta_files.read_data(written(tmp_path / "d.json", wrong))


STEP = {"tool_used": "OCR"}


def test_agent_x_files_are_read(tmp_path):
    predictions = agent_x_files.read_predictions(
        written(tmp_path / "p.json", [{"0": {"reasoning_steps": ""}}, {"1": {}}])
    )
    assert [next(iter(item)) for item in predictions] == ["0", "1"]
    data = agent_x_files.read_data(written(tmp_path / "d.json", {"0": [{"query": "a"}], "1": {"query": "b"}}))
    assert data["0"]["query"] == "a"
    replies = agent_x_files.read_judgements(written(tmp_path / "j.json", {"0": {"goal_accuray": "1"}, "1": None}))
    assert (replies.ids, replies.raw, replies.rows[1]) == (("0", "1"), True, {})


@pytest.mark.parametrize("heading", ["id", "Unnamed: 0", ""])
def test_a_table_of_scores_is_read(tmp_path, heading):
    table = agent_x_files.read_judgements(written(tmp_path / "t.csv", f"{heading},goal_accuray\n3,1\n7,n/a\n"))
    assert table.ids == ("3", "7")
    assert [row["goal_accuray"] for row in table.rows] == ["1", "n/a"]
    assert not table.raw
    assert agent_x_files.read_judgements(written(tmp_path / "u.csv", "goal_accuray\n1\n")).ids is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.json", {"0": {}}, "is no list"),
        ("p.json", [{"0": {}, "1": {}}], "item 0 is no object with one key"),
        ("p.json", [{"0": []}], 'key "0" is no prediction'),
        ("p.json", [{"0": {}}, {"0": {}}], "stands there twice"),
        ("d.json", [], "no object of samples"),
        ("d.json", {"0": []}, 'key "0" is no sample'),
        ("j.json", [], "is no object"),
        ("j.json", {"0": "x"}, 'key "0" is no object of replies'),
        ("j.json", {"0": {"other": 1}}, "none of the metrics"),
        ("j.csv", "id,goal_accuray\n1,1\n1,0\n", "two rows with the same id"),
    ],
)
def test_what_is_wrong_with_an_agent_x_file_is_said(tmp_path, name, content, said):
    read = {"p": agent_x_files.read_predictions, "d": agent_x_files.read_data, "j": agent_x_files.read_judgements}
    with pytest.raises(BenchmarkError, match=said):
        read[name[0]](written(tmp_path / name, content))


def test_a_log_of_thinkgeos_judge_is_read(tmp_path):
    log = thinkgeo_log.read_log(written(tmp_path / "log.json", [{"id": 3, "scores": ["yes", "no"], "pred": "x"}]))
    assert (log[0].position, log[0].replies, log[0].passed) == (3, ("yes", "no"), False)
    for wrong in ({}, [{"id": "3", "scores": []}], [{"id": 3}], [{"id": 3, "scores": []}] * 2):
        with pytest.raises(BenchmarkError):
            thinkgeo_log.read_log(written(tmp_path / "log.json", wrong))
