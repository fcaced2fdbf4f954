"""Forms that the released questions may have, each read without a map and with the map that is proposed."""

import json

import pytest

from agrotools.core import BenchmarkError
from agrotools.core.errors import UndecidedError
from agrotools.core.progress import no_progress
from agrotools.core.readings import Readings
from agrotools.loading.benchmarks import Loading, load_benchmark
from agrotools.loading.checking import propose_map_of
from agrotools_benchmarks.released.answers import bare_kind, read_tolerance
from agrotools_benchmarks.released.load import MAP, check_released, load_released
from agrotools_benchmarks.released.traces import read_trace
from agrotools_build.export.gta_entries import read_map
from support.command import run_command
from support.more_released_forms import OTHERS
from support.released_forms import EIGHT, differences, picture

pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "agrotools").mkdir()
    return tmp_path / "agrotools"


@pytest.mark.parametrize("write", [*EIGHT, *OTHERS], ids=lambda each: each.__name__)
def test_a_form_is_read_without_questions_and_its_proposed_map_gives_the_same(folder, write):
    write(folder)
    readings = Readings()
    assert differences(load_released(Loading(folder.parent, readings=readings)).samples) == []
    assert readings.questions == []
    propose_map_of("agrotools", folder.parent)
    assert (folder / "agrotools-map.toml").is_file()
    assert differences(load_benchmark("agrotools", folder.parent).samples) == []


_CALL = {"tool": "count", "arguments": {"image": "a.png"}, "observation": {"count": 14}}
_ROW = {"question": "How many trees are there?", "image": "a.png", "steps": [_CALL]}


def _write(folder, **fields):
    (folder / "a.png").write_bytes(picture("a.png"))
    (folder / "rows.json").write_text(json.dumps([{**_ROW, **fields}]))
    return folder.parent


def _answer(root, **options):
    return load_benchmark("agrotools", root, options=options).samples[0].answer


@pytest.mark.parametrize(
    ("fields", "option", "readings"),
    [
        ({"gold": "14", "gt": "15"}, "answer", {"gold": "14", "gt": "15"}),
        (
            {"gold": 40, "type": "tolerance", "tolerance": 5},
            "tolerance",
            {"abs": 5, "percent": 2},
        ),
        (
            {"gold": 40, "type": "tolerance", "tolerance": 0.5},
            "tolerance",
            {"abs": 0.5, "rel": 20},
        ),
        (
            {"gold": 40, "type": "tolerance", "unit": "%", "tolerance": "5%"},
            "percent",
            {"relative": 2, "points": 5},
        ),
    ],
)
def test_what_may_be_read_in_two_ways_is_asked(folder, fields, option, readings):
    root = _write(folder, **fields)
    with pytest.raises(UndecidedError) as caught:
        load_benchmark("agrotools", root)
    first = next(iter(readings))
    assert caught.value.answers == (f"--option={option}={first}",)
    for given, wanted in readings.items():
        slot = _answer(root, **{option: given})[0]
        assert (slot.value if option == "answer" else slot.margin) == wanted
    with pytest.raises(UndecidedError):  # an answer holds for its command alone
        load_benchmark("agrotools", root)
    accepted = load_released(Loading(root, readings=Readings(accept=True))).samples[0].answer
    assert accepted == _answer(root, **{option: first})
    lines = propose_map_of("agrotools", root)
    assert any(line.startswith("decide: ") for line in lines)
    assert _answer(root) == accepted


_TOLERANCE = {"answer_type": "tolerance"}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (
            {"answer": "There are 14 trees.", **_TOLERANCE, "tolerance": "±2 trees"},
            [("tolerance", 14, 2)],
        ),
        (
            {"answer": {"text": "many", "numeric_value": 40}, "type": "numeric", "tolerance": 0.1},
            [("tolerance", 40, 4)],
        ),
        ({"answer": 40, "answer_type": "text", "tolerance": 2}, [("tolerance", 40, 2)]),
        ({"answer": 40, **_TOLERANCE, "acceptable_range": [38, 42]}, [("tolerance", 40, 2)]),
        (
            {
                "gold": {"trees": 14, "crown_m": 4.0},
                **_TOLERANCE,
                "tolerance": {"trees": 1, "crown_m": "10%"},
            },
            [("tolerance", 14, 1), ("tolerance", 4, 0.4)],
        ),
        (
            {"gold": {"exact": None, "tolerance": {"value": 40, "eps": 2}, "plot": None}},
            [("tolerance", 40, 2)],
        ),
        (
            {"gold": [{"name": "trees", "value": 14}, {"name": "crown", "value": "oak"}]},
            [("exact", 14, None), ("exact", "oak", None)],
        ),
        ({"gold": True, "answer_type": "exact match"}, [("boolean", True, None)]),
    ],
)
def test_answers_in_other_forms(folder, fields, wanted):
    slots = _answer(_write(folder, **fields))
    found = [(slot.type, slot.value, getattr(slot, "margin", None)) for slot in slots]
    assert found == [(*each[:2], each[2] and pytest.approx(each[2])) for each in wanted]


@pytest.mark.parametrize(
    ("arguments", "tool", "gold"),
    [
        ({"labels": ["a", "b"], "values": [1, 2]}, "plot_bar", "figure.png"),
        ({"chart_type": "bar", "data": [["a", 1], ["b", 2]]}, "plot", None),
        (
            {"code": "x"},
            "plot",
            {"type": "plot", "x": ["a", "b"], "y": [1, 2], "title": "Bar chart"},
        ),
        (
            {"code": "x"},
            "plot",
            {"mark": "bar", "data": {"values": [{"k": "a", "n": 1}, {"k": "b", "n": 2}]}},
        ),
    ],
)
def test_figures_are_read_from_the_answer_or_from_the_call_that_draws(
    folder, arguments, tool, gold
):
    steps = [_CALL, {"tool": tool, "arguments": arguments, "observation": "figure.png"}]
    (slot,) = _answer(_write(folder, steps=steps, answer=gold, answer_type="plot"))
    (series,) = slot.value["series"]
    assert (slot.value["kind"], [*series["x"]], [*series["y"]]) == ("bar", ["a", "b"], [1, 2])


def test_the_paths_of_a_map_are_taken_as_they_are(folder):
    odd = {"gold": 40, "type": "tolerance", "eps": 2, "label": "41"}
    root = _write(folder, **odd, ops=[{"fn": "measure", "given": {"image": "a.png"}}])
    text = '[answer]\nat = "label"\nabs_tol = "eps"\n'
    (folder / "agrotools-map.toml").write_text(text + '[calls]\nat = "ops"\narguments = "given"\n')
    sample = load_benchmark("agrotools", root).samples[0]
    assert (sample.answer[0].value, sample.answer[0].margin) == (41, 2)
    assert sample.reference.tools == ("measure",)


def test_two_traces_are_asked_for_and_those_of_a_model_are_not(folder):
    other = [{**_CALL, "tool": "measure"}]
    root = _write(folder, gold="14", predicted_steps=other, model_answer="15")
    assert load_benchmark("agrotools", root).samples[0].reference.tools == ("count",)
    root = _write(folder, gold="14", reference_steps=other)
    with pytest.raises(UndecidedError, match=r"steps \(count\), reference_steps \(measure\)"):
        load_benchmark("agrotools", root)
    options = {"calls": "reference_steps"}
    sample = load_benchmark("agrotools", root, options=options).samples[0]
    assert sample.reference.tools == ("measure",)


def test_what_was_read_and_what_was_not_is_said(folder):
    root = _write(folder, gold="14", season="spring")
    (folder / "copy.csv").write_text("question,gold\nHow many trees are there?,14\n")
    for _ in range(2):  # read, and from the cache
        readings = Readings()
        check_released(root, no_progress, {}, readings)
        assert {"question from question", "answer from gold"} < {*readings.taken}
        assert {"field season", "file copy.csv"} <= {*readings.left}


def test_a_file_that_cannot_be_read_stops_only_where_it_may_have_rows(folder):
    root = _write(folder, gold="14")
    (folder / "scores.csv").write_bytes(b"\xff\xfe\x00model")
    readings = Readings()
    assert len(load_released(Loading(root, readings=readings)).samples) == 1
    assert "file scores.csv" in readings.left
    (folder / "more.json").write_text('[{"question": ')
    with pytest.raises(BenchmarkError, match=r"more\.json is not JSON"):
        load_benchmark("agrotools", root)


@pytest.mark.process
def test_the_command_prints_the_readings_and_takes_the_answers(folder):
    root = str(_write(folder, gold="14", gt="15"))
    asked = run_command("benchmarks", "check", "agrotools", root)
    assert asked.returncode == 4
    assert "--option=answer=gold" in asked.stderr
    words = ("benchmarks", "check", "agrotools", root, "--json")
    answered = run_command(*words, "--option=answer=gt")
    assert "answer from gt" in json.loads(answered.stdout)["read"]
    accepted = run_command(*words, "--yes")
    assert "answer from gold" in json.loads(accepted.stdout)["read"]


@pytest.mark.parametrize(
    ("stated", "fields"),
    [
        (0.05, {"rel_tol": 0.05}),
        (3, {"abs_tol": 3}),
        ("5%", {"rel_tol": 0.05}),
        ("± 5 %", {"rel_tol": 0.05}),
        ("±3", {"abs_tol": 3}),
        ("+/- 0.5", {"abs_tol": 0.5}),
        ("within 5 mm", {"abs_tol": 5}),
        ("10% relative error", {"rel_tol": 0.1}),
        ({"abs": 3, "rel": None}, {"abs_tol": 3}),
        ({"type": "relative", "value": "0.1"}, {"rel_tol": 0.1}),
        ({"mode": "percent", "value": 5}, {"rel_tol": 0.05}),
        ([-3, 3], {"abs_tol": 3}),
        ("none", {}),
    ],
)
def test_tolerances_in_any_form(stated, fields):
    assert read_tolerance(stated, None, bare_kind).fields == fields


@pytest.mark.parametrize("stated", ["about right", True, {"value": "x"}, "1e999"])
def test_what_is_no_tolerance_is_named(stated):
    with pytest.raises(BenchmarkError, match="no number"):
        read_tolerance(stated, None, bare_kind)


_PERCENT = {"type": "tolerance", "unit": "%"}


@pytest.mark.parametrize(
    "fields",
    [
        {"gold": "40 %", "type": "tolerance", "tolerance": "±5%"},
        {"gold": {"value": 40, "unit": "percent", "tolerance": "5 percent"}, "type": "tolerance"},
        {"gold": 40, **_PERCENT, "tolerance": {"value": 5, "unit": "percent"}},
        {"gold": 40, **_PERCENT, "tolerance_percent": 5},
        {"gold": 40, "type": "tolerance", "tolerance": "5%", "question": "What is it in percent?"},
        {"gold": [{"name": "cover", "value": 40, "unit": "%"}], "type": "tolerance", "eps": "5%"},
    ],
)
def test_a_tolerance_in_percent_of_an_answer_in_percent_is_asked_about(folder, fields):
    root = _write(folder, **fields)
    with pytest.raises(UndecidedError) as caught:
        load_benchmark("agrotools", root)
    assert caught.value.answers == ("--option=percent=relative",)
    for given, margin in {"relative": 2, "points": 5}.items():
        assert _answer(root, percent=given)[0].margin == margin


@pytest.mark.parametrize(
    ("fields", "margin"),
    [
        ({**_PERCENT, "tolerance": "5% relative"}, 2),
        ({**_PERCENT, "tolerance": "5 % of the true value"}, 2),
        ({**_PERCENT, "rel_tol": "5%"}, 2),
        ({**_PERCENT, "tolerance_type": "relative", "tolerance": "5%"}, 2),
        ({**_PERCENT, "tolerance": {"type": "relative", "value": 0.05}}, 2),
        ({**_PERCENT, "abs_tol": "5%"}, 5),
        ({**_PERCENT, "tolerance": "5 percentage points"}, 5),
        ({**_PERCENT, "tolerance": "5 percent points"}, 5),
        ({**_PERCENT, "tolerance": {"abs": "5%"}}, 5),
        ({"type": "tolerance", "unit": "mm", "tolerance": "5%"}, 2),
        ({"type": "tolerance", "tolerance": "5%", "question": "How many trees lean?"}, 2),
    ],
)
def test_a_tolerance_that_says_what_its_percent_is_raises_no_question(folder, fields, margin):
    assert _answer(_write(folder, gold=40, **fields))[0].margin == margin


def test_percent_as_the_kind_of_numbers_without_one_is_percent_of_the_answer(folder):
    root = _write(folder, gold=40, tolerance=5, **_PERCENT)
    assert _answer(root, tolerance="percent")[0].margin == 2


_ARGUMENTS = {"image": "a.png"}
_IN_JSON = json.dumps(_ARGUMENTS)


@pytest.mark.parametrize(
    "trace",
    [
        [{"action": {"name": "count", "arguments": _ARGUMENTS}, "observation": "14"}],
        [{"count": _ARGUMENTS, "result": "14"}],
        {"step_1": {"tool": "count", "args": _ARGUMENTS, "obs": "14"}},
        {"tool": ["count"], "arguments": [_IN_JSON], "observation": ["14"]},
        [{"tool": "count", "args": [{"name": "image", "value": "a.png"}], "output": "14"}],
        [{"tool_calls": [{"tool": "count", "args": _ARGUMENTS}], "observations": "14"}],
        f"Action: count\nAction Input: {_IN_JSON}\nObservation: 14\nFinal Answer: 14",
        "Thought 1: so\nAction 1: count[a.png]\nObservation 1: 14\nFinal Answer: 14",
        f"Step 1:\nTool: count\nInput: {_IN_JSON}\nOutput: 14\nAnswer: 14",
        "1. count(image='a.png') -> 14",
        f'<tool_call>{{"name": "count", "arguments": {_IN_JSON}}}</tool_call>\n'
        "<tool_response>14</tool_response>",
        [
            {"role": "model", "parts": [{"functionCall": {"name": "count", "args": _ARGUMENTS}}]},
            {"role": "function", "parts": [{"functionResponse": {"response": "14"}}]},
        ],
    ],
)
def test_calls_are_read_from_traces_of_any_form(trace):
    (call,) = read_trace(trace, read_map(MAP).calls, {"count": ("image",)}).calls
    assert (call.tool, call.arguments, str(call.returned)) == ("count", _ARGUMENTS, "14")
