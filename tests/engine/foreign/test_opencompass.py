"""Prediction files of agents in OpenCompass, as GTA writes them, become transcripts of the samples."""

import copy
import json

import pytest

import agrotools as at
from agrotools.core import UsageError
from agrotools.foreign.predictions import import_predictions
from agrotools.loading import load_benchmark
from agrotools.scoring.metrics import is_invalid
from support.sums_benchmark import write_sums

COUNT = 4
PROCESS = ("st_acc", "tool_acc", "tool_acc_strict", "arg_acc", "arg_acc_strict")


@pytest.fixture
def sums(tmp_path):
    return load_benchmark(write_sums(tmp_path / "sums", COUNT))


def _called(name, arguments, **more):
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": function}],
        **more,
    }


def _dialog(number):
    """The messages after the question: two calls with their results, and the answer in the form."""
    north, south = 3 + number / 100, 4.5
    first, second = north + south, (north + south) / 2
    return [
        _called("calculate", {"expression": "a + b", "variables": {"a": north, "b": south}}),
        {"role": "tool", "content": [{"type": "text", "content": str(first)}]},
        _called("calculate", {"expression": "s / 2", "variables": {"s": first}}),
        {"role": "tool", "content": [{"type": "text", "content": str(second)}]},
        {"role": "assistant", "content": f"mean: {second}"},
    ]


def _by_step():
    """A file of step-by-step predictions that are the gold itself."""
    content = {}
    for number in range(COUNT):
        gold = [message for message in _dialog(number) if message["role"] == "assistant"]
        content[str(number)] = {"gold": gold, "prediction": copy.deepcopy(gold)}
    return content


def _end_to_end():
    """A file of end-to-end predictions that are the gold itself."""
    return {
        str(number): {"gold": [_dialog(number)], "prediction": [_dialog(number)]}
        for number in range(COUNT)
    }


def _imported(tmp_path, benchmark, content):
    file = tmp_path / "predictions.json"
    file.write_text(json.dumps(content))
    run, counts = import_predictions(file, benchmark, "sums", out=tmp_path / "run")
    return at.read_run(run), counts


def test_gold_against_itself_is_100_step_by_step(tmp_path, sums):
    run, counts = _imported(tmp_path, sums, _by_step())
    assert (counts.rows, counts.matched) == (COUNT, COUNT)
    assert run.manifest.modes == ("step-by-step",)
    assert {name: run.scores[name].value for name in PROCESS} == dict.fromkeys(PROCESS, 1)
    assert (run.scores["ear"].value, run.scores["summ_acc"].value) == (0, 1)


def test_gold_against_itself_is_100_end_to_end(tmp_path, sums):
    run, _ = _imported(tmp_path, sums, _end_to_end())
    assert run.manifest.modes == ("end-to-end",)
    assert run.scores["fas"].value == 1
    steps = run.samples()[0].trajectory.steps
    assert [step.kind for step in steps] == ["call", "call", "answer"]
    assert steps[0].observation.result["content"] == "7.5"


def test_a_changed_prediction_falls_below_100(tmp_path, sums):
    content = _by_step()
    content["0"]["prediction"][0] = _called("search", {"query": "yield"})
    content["1"]["prediction"][1]["tool_calls"][0]["function"]["arguments"]["expression"] = "s / 3"
    content["2"]["prediction"][0] = {"role": "assistant", "content": "mean: 3.76"}
    run, _ = _imported(tmp_path, sums, content)
    calls = 2 * COUNT
    assert run.scores["tool_acc"].value == 1 - 2 / calls
    assert run.scores["arg_acc"].value == 1 - 3 / calls
    assert run.scores["ear"].value == 1 / calls


def test_failed_replies_are_what_they_were(tmp_path, sums):
    """No call was found; the arguments are no JSON; there is no such tool; the call failed; the agent itself failed."""
    content = _by_step()
    unparsed = {"type": "API_ERROR", "msg": "Please follow the format"}
    content["0"]["prediction"][0] = _called("NoAction", {"text": ""}, error=unparsed)
    no_json = {"type": "ARGS_ERROR", "msg": "invalid json format: {expression"}
    content["0"]["prediction"][1] = _called("calculate", "{expression", error=no_json)
    unknown = {"type": "API_ERROR", "msg": "The action is invalid"}
    content["1"]["prediction"][0] = _called("InvalidAction", {"text": "{}"}, error=unknown)
    failed = {"type": "APIError", "msg": "no connection"}
    content["2"]["prediction"][0] = {"role": "assistant", "content": "[Error]", "error": failed}
    run, _ = _imported(tmp_path, sums, content)
    first, second, third, fourth = run.samples()
    assert [action.kind for action in first.actions] == ["unparseable", "unparseable", "answer"]
    assert [action.kind for action in second.actions] == ["call", "call", "answer"]
    assert [is_invalid(record) for record in (third, fourth)] == [True, False]
    assert "no connection" in third.invalid


def test_the_error_of_a_call_is_its_result(tmp_path, sums):
    content = _end_to_end()
    turn = content["0"]["prediction"][0]
    turn[0]["error"] = {"type": "ARGS_ERROR", "msg": "missing required arguments: {'variables'}"}
    turn[1]["content"] = None
    run, _ = _imported(tmp_path, sums, content)
    first, second, _ = run.samples()[0].trajectory.steps
    assert first.observation.error.kind == "invalid_argument"
    assert "missing required arguments" in first.observation.error.message
    assert second.observation.error is None


def test_a_thought_before_a_call_is_no_answer(tmp_path, sums):
    content = _end_to_end()
    thought = {"role": "assistant", "content": "First the sum.", "meta": {"type": "thought"}}
    content["0"]["prediction"][0].insert(0, thought)
    run, _ = _imported(tmp_path, sums, content)
    first = run.samples()[0].trajectory.steps[0]
    assert (first.kind, first.thought) == ("call", "First the sum.")


def test_only_the_first_turn_is_read(tmp_path, sums):
    content = _end_to_end()
    content["0"]["prediction"].append([{"role": "assistant", "content": "mean: 99"}])
    run, _ = _imported(tmp_path, sums, content)
    assert run.scores["fas"].value == 1


def test_rows_belong_to_their_questions_if_the_file_has_them(tmp_path, sums):
    """A part of a file counts its samples from 0."""
    whole = _by_step()
    part = {}
    for place, number in enumerate((2, 3)):
        question = {"role": "user", "content": sums.samples[number].query}
        part[str(place)] = whole[str(number)] | {"origin_prompt": [[question], [question]]}
    _, counts = _imported(tmp_path, sums, part)
    assert counts.by == {"question": 2}
    [missing] = [names for kind, names in counts.problems.items() if "without a row" in kind]
    assert missing == ["sum-0000", "sum-0001"]


def test_rows_with_other_gold_are_left_out(tmp_path, sums):
    content = _by_step()
    content["1"]["gold"][0] = _called("OCR", {"image": "image/image_1.jpg"})
    _, counts = _imported(tmp_path, sums, content)
    assert counts.matched == COUNT - 1
    [left_out] = [names for kind, names in counts.problems.items() if "gold calls" in kind]
    assert left_out == ["row 2 (index 1)"]


def test_a_file_on_another_benchmark_is_refused(tmp_path, sums):
    content = _by_step()
    for sample in content.values():
        sample["gold"][0] = _called("OCR", {"image": "image/image_1.jpg"})
    with pytest.raises(UsageError, match="OCR, calculate") as caught:
        _imported(tmp_path, sums, content)
    assert "made on" in str(caught.value.hint)
