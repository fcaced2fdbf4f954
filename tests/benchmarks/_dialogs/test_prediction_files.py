import json

import pytest

from agrotools.core import BenchmarkError
from agrotools_benchmarks._dialogs import prediction_files
from agrotools_benchmarks.thinkgeo.score import read_log
from support.gta_files import END_GOLD, GOLD_ENDS, GOLD_STEPS, answer, call


def written(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def entry(gold, prediction):
    return {"gold": gold, "prediction": prediction, "origin_prompt": [], "steps": []}


STEP_FILE = {str(i): entry(gold, gold) for i, gold in enumerate(GOLD_STEPS)}
END_FILE = {str(i): entry([gold], [gold]) for i, gold in enumerate(GOLD_ENDS)}
USER = {"role": "user", "content": "?"}
DATA = {
    str(i): {"dialogs": [USER, *gold], "gt_answer": ref} for i, (gold, ref) in enumerate(END_GOLD)
}


def test_parts_are_joined_where_the_file_is_not_there(tmp_path):
    written(tmp_path / "gta_0.json", {"0": STEP_FILE["0"], "1": STEP_FILE["1"]})
    written(tmp_path / "gta_1.json", {"0": STEP_FILE["2"]})
    read = prediction_files.read_predictions(tmp_path / "gta.json")
    assert [sample.key for sample in read.samples] == ["0", "1", "2"]
    assert read.samples[2].gold == GOLD_STEPS[2]
    assert [file.name for file in read.files] == ["gta_0.json", "gta_1.json"]
    with pytest.raises(BenchmarkError, match=r"no other_0\.json either"):
        prediction_files.read_predictions(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "no object of samples"),
        ({"0": STEP_FILE["0"], "4": STEP_FILE["2"]}, 'key "1" is missing'),
        ({"0": 3}, "contains no prediction"),
        ({"0": STEP_FILE["0"], "1": END_FILE["1"]}, 'key "1": predictions of both modes'),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path, content, said):
    with pytest.raises(BenchmarkError, match=said):
        prediction_files.read_predictions(written(tmp_path / "p.json", content))


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (3, 'key "1" is no object'),
        (entry(GOLD_STEPS[1], [["x"]]), 'key "1": prediction[0][0] is no message'),
        (
            entry(GOLD_STEPS[1], [{"role": "tool"}]),
            'key "1": prediction[0] has neither tool_calls nor role',
        ),
        (entry(GOLD_STEPS[1], [answer(None)]), 'key "1": prediction[0]: the answer is no text'),
        (
            entry(GOLD_STEPS[1], [{"tool_calls": []}]),
            'key "1": prediction[0]: tool_calls contains no call',
        ),
        (
            entry(GOLD_STEPS[1], [call("OCR", None)]),
            'key "1": prediction[0]: tool_calls contains no call',
        ),
    ],
)
def test_a_malformed_entry_is_named_and_the_others_are_read(tmp_path, spoilt, said):
    read = prediction_files.read_predictions(
        written(tmp_path / "p.json", {**STEP_FILE, "1": spoilt})
    )
    assert (read.mode, len(read.samples)) == ("step-by-step", 3)
    assert any(place.startswith(f"p.json, {said}") for place in read.malformed)


def test_predictions_and_data_belong_together_by_position(tmp_path):
    predictions = prediction_files.read_predictions(
        written(tmp_path / "p.json", {"0": END_FILE["0"], "1": END_FILE["1"]})
    )
    joined = prediction_files.join_data(predictions, DATA)
    assert [sample.answer for sample in joined.samples] == [ref for _, ref in END_GOLD[:2]]
    *_, missing = joined.scored
    assert (missing.key, missing.gold, missing.prediction, missing.answer) == (
        "2",
        [GOLD_ENDS[2]],
        [],
        END_GOLD[2][1],
    )
    predictions = prediction_files.read_predictions(written(tmp_path / "p.json", END_FILE))
    with pytest.raises(BenchmarkError, match="only 1 entries"):
        prediction_files.join_data(predictions, {"0": DATA["0"]})
    with pytest.raises(
        BenchmarkError, match='key "0": the gold of the predictions calls OCR, Calculator'
    ):
        prediction_files.join_data(predictions, dict(reversed(DATA.items())))
    for wrong in ([], {}, {"0": {"dialogs": []}}, {"0": 1}):
        with pytest.raises(BenchmarkError):
            prediction_files.read_data(written(tmp_path / "d.json", wrong))
    read = prediction_files.read_predictions(
        written(tmp_path / "p.json", {"0": STEP_FILE["0"], "2": STEP_FILE["2"]})
    )
    assert (len(read.samples), read.malformed) == (3, ('p.json, key "1" is missing',))
    read = prediction_files.read_predictions(written(tmp_path / "p.json", {**STEP_FILE, "00": 1}))
    assert (len(read.samples), read.malformed) == (
        3,
        ('p.json, key "00" is no number of a sample',),
    )


def test_a_log_of_thinkgeos_judge_is_read(tmp_path):
    entries = [
        {"id": 3, "scores": ["yes", "no"], "pred": "x"},
        {"id": "4", "scores": ["yes"]},
        {"id": 3, "scores": []},
    ]
    log, malformed = read_log(
        written(tmp_path / "log.json", [*entries, {"id": 5, "scores": ["yes", 1]}])
    )
    assert [place.partition(", ")[2] for place in malformed] == [
        "entry 1 is no judgement",
        "entry 2: sample 3 is judged twice",
        "entry 3: a reply is no text",
    ]
    assert log == [(3, ("yes", "no")), (5, ("yes", ""))]
    for wrong in ({}, [{"id": "3", "scores": []}], [{"id": 3}]):
        with pytest.raises(BenchmarkError):
            read_log(written(tmp_path / "log.json", wrong))
