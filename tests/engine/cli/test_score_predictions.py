import json

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import BenchmarkError
from agrotools.scoring import embedders
from support.gta_files import CAT, END_GOLD, GOLD_ENDS, GOLD_STEPS, SIX, answer, call

USER = {"role": "user", "content": "?"}
DATA = {
    str(i): {"dialogs": [USER, *gold], "gt_answer": ref} for i, (gold, ref) in enumerate(END_GOLD)
}
STEP_DATA = {
    str(i): {"dialogs": [USER, *gold], "gt_answer": ref}
    for i, (gold, ref) in enumerate(zip(GOLD_STEPS, (SIX, None, CAT), strict=True))
}


def written(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return str(path)


def run(*arguments):
    result = CliRunner().invoke(app, ["score", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def scored(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture(autouse=True)
def _no_embedder(monkeypatch):
    """As where the extra is not installed."""
    monkeypatch.setattr("agrotools.knowledge.embedding.model_folder", lambda: None)


@pytest.fixture
def steps(tmp_path):
    return written(
        tmp_path / "s.json",
        {str(i): {"gold": gold, "prediction": gold} for i, gold in enumerate(GOLD_STEPS)},
    )


@pytest.fixture
def ends(tmp_path):
    file = {str(i): {"gold": [gold], "prediction": [gold]} for i, gold in enumerate(GOLD_ENDS)}
    return written(tmp_path / "e.json", file)


def test_published_and_corrected_figures_stand_side_by_side(tmp_path, steps):
    data = written(tmp_path / "d.json", STEP_DATA)
    made = scored("--format", "gta", steps, "--data", data)
    assert made["mode"] == "step-by-step"
    assert made["published"]["metrics"]["gta.inst_acc"] == {
        "value": pytest.approx(116.6666667),
        "n": 6,
    }
    assert made["corrected"]["metrics"]["gta.inst_acc_corrected"] == {"value": 100, "n": 7}
    assert made["corrected"]["left_out"] == {
        "gta.summ_acc_corrected": "1 subjective answers need an embedder"
    }
    text = run("--format", "gta", steps, "--data", data).stdout
    assert "116.67" in text
    assert "over all gold steps" in text
    assert (
        "left out: summ_acc: 1 subjective answers need an embedder\nhint: --embedder all-mpnet-base-v2"
        in text
    )


def test_without_the_data_set_only_calls_are_scored(ends):
    made = scored("--format", "gta", ends)
    assert set(made["published"]["metrics"]) == {"gta.p_f1", "gta.o_f1", "gta.l_f1", "gta.c_f1"}
    assert made["corrected"]["metrics"]["gta.p_f1_corrected"]["value"] == 100
    assert "--data" in made["corrected"]["left_out"]["gta.ans_acc_corrected"]


def test_samples_without_a_prediction_count_as_wrong_in_the_corrected_figures(tmp_path):
    file = written(
        tmp_path / "p.json", {"0": {"gold": [GOLD_ENDS[0]], "prediction": [GOLD_ENDS[0]]}}
    )
    made = scored("--format", "gta", file, "--data", written(tmp_path / "d.json", DATA))
    assert made["published"]["metrics"]["gta.ans_acc"] == {"value": 100, "n": 1}
    assert made["corrected"]["metrics"]["gta.p_f1_corrected"]["value"] == pytest.approx(40)
    assert made["samples"] == 3


def test_an_embedder_stands_in_the_label(tmp_path, ends, monkeypatch):
    half = embedders.Embedder("all-mpnet-base-v2", lambda first, second: 0.5)
    monkeypatch.setattr(embedders, "open_embedder", lambda name, folder: half)
    data = written(tmp_path / "d.json", DATA)
    made = scored("--format", "gta", ends, "--data", data, "--embedder", "all-mpnet-base-v2")
    assert made["embedder"] == "all-mpnet-base-v2"
    assert made["corrected"]["metrics"]["gta.ans_acc_corrected"]["value"] == 100
    assert made["published"]["metrics"]["gta.ans_acc"] == {
        "value": 75,
        "n": 2,
        "embedder": "all-mpnet-base-v2",
    }
    assert "embedder" not in made["published"]["metrics"]["gta.p_f1"]
    text = run("--format", "gta", ends, "--data", data, "--embedder", "all-mpnet-base-v2").stdout
    assert text.count("by all-mpnet-base-v2") == 2


def test_a_file_on_which_the_published_scorer_stops_still_has_corrected_figures(tmp_path):
    gold = [call("Nope", {}), answer("6")]
    file = written(tmp_path / "p.json", {"0": {"gold": [gold], "prediction": [gold]}})
    data = written(tmp_path / "d.json", {"0": {"dialogs": [USER, *gold], "gt_answer": SIX}})
    made = scored("--format", "gta", file, "--data", data)
    assert made["published"] is None
    assert "KeyError" in made["published_stops"]
    assert made["corrected"]["metrics"]["gta.ans_acc_corrected"] == {"value": 100, "n": 1}
    assert (
        "the published scorer stops with KeyError"
        in run("--format", "gta", file, "--data", data).stdout
    )


def test_thinkgeo_with_a_saved_log(tmp_path, steps):
    gold = [call("OCR", {}), answer("6")]
    file = written(tmp_path / "p.json", {"0": {"gold": [gold], "prediction": [gold]}})
    entry = {"dialogs": [USER, *gold], "gt_answer": SIX, "evaluation": [{"question": "6?"}]}
    data = written(tmp_path / "d.json", {"0": entry})
    for replies, published, corrected in (
        (["yes"], 100, 100),
        (["yes."], 0, 100),
        (["no"], 0, 0),
        ([], 100, 0),
    ):
        log = written(tmp_path / "log.json", [{"id": 0, "scores": replies}])
        made = scored("--format", "thinkgeo", file, "--data", data, "--judgements", log)
        assert made["published"]["metrics"]["thinkgeo.llm_score"] == {"value": published, "n": 1}
        assert made["corrected"]["metrics"]["thinkgeo.llm_score_corrected"] == {
            "value": corrected,
            "n": 1,
        }
    assert (
        "thinkgeo.llm_score"
        in scored("--format", "thinkgeo", file, "--data", data)["published"]["left_out"]
    )
    with pytest.raises(BenchmarkError, match="which nobody judges"):
        run("--format", "thinkgeo", steps, "--judgements", written(tmp_path / "log.json", []))


def test_agent_x(tmp_path):
    step = {"step": 1, "task": "t", "tool_used": "OCR", "tool_output": "x", "thought": "cup"}
    sample = {
        "query": "q",
        "filename": "f",
        "reasoning_steps": [step],
        "final_answer": {"value": "1", "justification": "cup"},
    }
    file = written(tmp_path / "p.json", [{"0": sample}, {"1": sample}])
    data = written(
        tmp_path / "d.json",
        {"0": [sample | {"query_type": "objective"}], "1": [sample | {"query_type": "generative"}]},
    )
    row = {
        "goal_accuray": "{'Score': '1'}",
        "precision_score": "x",
        "tool_accuray": "1",
        "toolset_accuray": "0.5",
    }
    judged = written(tmp_path / "j.json", {"0": row, "1": row})
    made = scored("--format", "agentx", file, "--data", data, "--judgements", judged)
    assert made["published"]["metrics"]["agent_x.goal_acc"] == {"value": 100, "n": 1}
    assert made["published"]["metrics"]["agent_x.goal_acc_imggen"]["value"] is None
    assert made["corrected"]["metrics"]["agent_x.tool_p_corrected"] == {"value": 0, "n": 2}
    assert made["corrected"]["metrics"]["agent_x.toolset_f1_corrected"] == {"value": 100, "n": 2}
    assert made["extra"]["tool calls as published"]["successful"] == 2
    text = run("--format", "agentx", file, "--data", data, "--judgements", judged).stdout
    assert "tool calls as published: samples 2" in text
    alone = scored("--format", "agentx", file)
    assert "--judgements" in alone["published_stops"]
    table = written(
        tmp_path / "t.csv",
        "goal_accuray,precision_score,tool_accuray,toolset_accuray\n1,1,1,1\n0,0,n/a,1\n",
    )
    made = scored("--format", "agentx", table)
    assert made["published"]["metrics"]["agent_x.goal_acc"] == {"value": 100, "n": 1}
    assert made["corrected"]["metrics"]["agent_x.tool_acc_corrected"] == {"value": 50, "n": 2}
