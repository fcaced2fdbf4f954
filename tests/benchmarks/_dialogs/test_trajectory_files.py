"""Trajectories of models from other programs: failures that only the text of a tool's result tells, and scores."""

import json

import pytest

from agrotools.core import BenchmarkError
from agrotools.scoring.predictions import compare_file
from agrotools_benchmarks._dialogs.prediction_files import failure_of
from support.gta_files import answer, call

USER = {"role": "user", "content": "How many?"}
UNKNOWN = "Failed to load tool guess because it's not in [Calculator, OCR] or not available. Consider another tools."


def returned(text):
    return {"role": "tool", "name": "OCR", "content": {"type": "text", "content": text}}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (UNKNOWN.replace("[Calculator", "[guess, Calculator"), "valid_call_failed"),
        ("Input validation error: 'image' is a required property", "invalid_arguments"),
        ("No tools are visible in the shed.", None),
    ],
)
def test_the_text_of_a_result_tells_its_failure(text, error):
    assert failure_of(text) == error


def trace(prediction, text, score, reference):
    messages = [USER, *prediction, *([answer(text)] if text is not None else [])]
    return {
        "dialogs": messages,
        "gt_answer": reference,
        "pred_answer": text or "",
        "answer_match_score_gta": score,
    }


def test_trajectories_have_answers_and_get_gold_calls_from_the_data_set(tmp_path):
    twelve = {"whitelist": [["12"]], "blacklist": None}
    entries = {
        "0": trace([call("OCR", {"image": "a"}), returned("12")], "12", 1.0, twelve),
        "7": trace([call("guess", {"question": "?"}), returned(UNKNOWN)], None, 0.0, twelve),
        "9": trace([], "", 1.0, twelve),
        "11": trace([], "a dozen", 0.7, ["twelve cups"]),
    }
    (tmp_path / "run.json").write_text(json.dumps(entries))
    scored = compare_file("gta", tmp_path / "run.json")
    assert scored.published.metrics == {}
    assert "1 subjective answers need an embedder" in scored.published.left_out["gta.ans_acc"]
    assert scored.corrected.metrics["gta.ans_acc_objective_corrected"].value == pytest.approx(
        100 / 3
    )
    assert "gold dialogues" in scored.corrected.left_out["gta.p_f1_corrected"]
    assert scored.extra == {
        "answer_match_score_gta of the file beside the published rule": {"same": 2, "different": 1}
    }
    assert (scored.errors.counts["wrong_tool_name"], scored.errors.counts["no_response"]) == (1, 1)
    data = {
        key: {"dialogs": [USER, call("OCR", {"image": "a"}), answer("12")], "gt_answer": twelve}
        for key in entries
    }
    (tmp_path / "data.json").write_text(json.dumps(data))
    whole = compare_file("gta", tmp_path / "run.json", data=tmp_path / "data.json")
    assert whole.corrected.metrics["gta.p_f1_corrected"].value == pytest.approx(40.0)
    del data["7"]
    (tmp_path / "data.json").write_text(json.dumps(data))
    with pytest.raises(BenchmarkError, match="no entry 7"):
        compare_file("gta", tmp_path / "run.json", data=tmp_path / "data.json")


@pytest.mark.data
def test_real_trajectories_score_as_their_authors_have_it(field_data):
    folder = field_data / "ag_vqa"
    if not folder.is_dir():
        pytest.skip(f"no trajectories at {folder}")
    expected = {
        "gta-trace/gpt-4.1.first2.json": (2, {"valid_call_failed": 2}),
        "gta-trace/Mistral-7B-Instruct-v0.1.first4.json": (
            4,
            {"wrong_tool_name": 1, "no_response": 3},
        ),
        "gta-trace/Mistral-7B-Instruct-v0.1.image-tasks-222-224.json": (
            0,
            {"invalid_arguments": 1, "no_response": 1},
        ),
        "thinkgeo-reynaldj/tool_choice_data_from_predictions/val.first300.json": (
            300,
            {"format_error": 1},
        ),
    }
    for name, (compared, counts) in expected.items():
        scored = compare_file(name.partition("-")[0], folder / name)
        assert {
            error: n for error, n in scored.errors.counts.items() if n and error != "repeated_tool"
        } == counts, name
        agreement = next(iter((scored.extra or {}).values()), {"same": 0, "different": 0})
        assert agreement == {"same": compared, "different": 0}, name
