"""Runs on Agent-X, judged: by our rubrics or the user's, in one command or two, beside the printed rows."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from agrotools.cli.main import app
from support.judges import judged_by
from support.made_agent_x import write_agent_x
from support.openai_server import Body, completion, serving, text_of

pytestmark = pytest.mark.process

COUNT = 36
"""Samples; entries 1, 8, 10, 12, 24, 30 and 35 of the published file are generative by its list."""
GENERATIVE = (1, 8, 10, 12, 24, 30, 35)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    write_agent_x(root / "AgentX", count=COUNT, calls=3 * COUNT, images=6, videos=0)
    return root


class Server:
    """Makes up a step and an answer for most questions, nothing for one, and judges: 0.5 by ours, 1 by others."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, body: Body) -> web.Response:
        self.asked[body["model"]] += 1
        prompt = text_of(body["messages"][0])
        if body["model"] != "GPT-4o":
            return completion(json.dumps({"score": 1 if "MINE" in prompt else 0.5}))
        query = text_of(body["messages"][1])
        if "drawing 5?" in query:
            return completion("I do not know.")
        steps = [
            {"step": 1, "task": "look", "tool_used": "OCR", "tool_output": "3", "thought": "needed"}
        ]
        if "drawing 6?" in query:
            steps += [
                {**steps[0], "step": 2},
                {**steps[0], "tool_used": "Telescope", "tool_output": ""},
            ]
        answer = {"value": "3 shapes", "justification": ""}
        return completion(json.dumps({"reasoning_steps": steps, "final_answer": answer}))


def invoked(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def agrotools(*arguments: object) -> str:
    done = invoked(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def published(run: Path, mode: str = "no-tool") -> dict[str, Any]:
    return json.loads((run / "scores.json").read_text(encoding="utf-8"))["summary"]["modes"][mode][
        "published"
    ]


def judgements(run: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (run / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
    ]


@pytest.fixture(scope="module")
def first_run(root: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch, serving(Server()) as api:
        patch.setenv("AGROTOOLS_CACHE", str(root / "cache"))
        common = (
            "eval",
            "agent-x",
            "--data-root",
            root,
            "-m",
            "GPT-4o",
            "--base-url",
            api.base_url,
        )
        agrotools(*common, "--out", root / "run")
    return root / "run"


@pytest.fixture
def run(first_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of the model GPT-4o that nobody has judged."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    return Path(shutil.copytree(first_run, tmp_path / "run"))


def rubric(folder: Path) -> Path:
    """A file of the user's, with one criterion."""
    own = folder / "original.toml"
    own.write_text('[criteria.goal_accuray]\nrubric = "MINE: is it so?"\n', encoding="utf-8")
    return own


def test_one_command_runs_judges_and_shows_the_printed_rows(root, tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    server, run = Server(), tmp_path / "run"
    with serving(server) as api:
        command = (
            "eval",
            "agent-x",
            "--data-root",
            root,
            "-m",
            "GPT-4o",
            "--base-url",
            api.base_url,
            "--out",
            run,
        )
        judge = judged_by(run.parent, "grader", at=api.base_url)
        told = agrotools(*command, *judge, "--details")
        assert server.asked["grader"] == 12 * (COUNT - 1), "one prediction holds nothing to judge"
        agrotools(*command, *judge)
        assert server.asked["grader"] == 12 * (COUNT - 1), "nothing is asked twice"
    figures = published(run)
    assert figures["family"] == "agent-x"
    others = COUNT - len(GENERATIVE)
    assert figures["reference"]["agent_x.ground_s"] == pytest.approx(0.5 * (COUNT - 1) / COUNT)
    assert figures["reference"]["agent_x.goal_acc"] == pytest.approx(0.5 * (others - 1) / others)
    assert figures["reference"]["agent_x.goal_acc_imggen"] == pytest.approx(0.5)
    assert figures["corrected"]["agent_x.ground_s_corrected"]["value"] == pytest.approx(
        0.5 * (COUNT - 1) / COUNT
    )
    assert 0 < figures["corrected"]["agent_x.toolset_f1_corrected"]["value"] < 1
    assert figures["differs"] == [
        f"{COUNT} questions of 828",
        "our prompt, which offers only the tools of the question",
        "judged by grader (the paper: GPT-4o, Qwen-14B)",
        "built-in rubrics",
    ]
    assert "judged by grader (the paper: GPT-4o, Qwen-14B); built-in rubrics." in " ".join(
        told.split()
    )
    assert "Not comparable with the printed rows: 36 questions of 828" in told
    assert "Goal*" in told
    assert "(arXiv 2505.24876), Table 4, as printed" in " ".join(told.split())
    printed = [re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹]", "", line).split() for line in told.splitlines()]
    assert any(line[:3] == ["GPT-4o", "60", "47"] for line in printed), (
        "grounding and tool precision, as printed"
    )
    assert any(line[:3] == ["GPT-4o", "37", "70"] for line in printed), "Goal and Goal*, as printed"
    for made in ((), ("report", run, "--out", run / "report.html")):
        if made:
            agrotools(*made)
        page = (run / "report.html").read_text(encoding="utf-8")
        assert all(
            words in page for words in ("Goal*", "built-in rubrics", "the same tool twice in a row")
        )
    assert any(line[:1] == ["OpenAI-o4-mini"] for line in printed), (
        "the best of the paper stands beside it"
    )


def test_calls_and_errors_are_counted_without_a_judge(run: Path):
    figures = published(run)
    assert figures["reference"] == {}
    none = ("only_answer", "conflicting_tools", "answer_in_invalid_format")
    once = (
        "failed_calls",
        "invalid_calls",
        "samples_without_steps",
        "no_response",
        "invalid_format",
        "repeated_tool",
    )
    calls = {"steps": COUNT - 1 + 2, "successful_calls": COUNT - 1 + 1}
    assert figures["counts"] == calls | dict.fromkeys(none, 0) | dict.fromkeys(once, 1)
    told = " ".join(agrotools("score", run).split())
    assert "the same tool twice in a row 1" in told
    assert "steps and errors, as its notebooks count them" in told
    assert "as printed" not in told


def test_rubrics_of_the_user_make_other_scores_which_are_never_mixed_with_ours(
    run: Path, tmp_path: Path
):
    own = rubric(tmp_path)
    server = Server()
    with serving(server) as api:
        judge = ("score", run, *judged_by(run.parent, "grader", at=api.base_url))
        agrotools(*judge)
        ours = published(run)["reference"]
        assert server.asked["grader"] == 12 * (COUNT - 1)
        told = agrotools(
            "score", run, *judged_by(run.parent, "grader", at=api.base_url, judge_rubrics=str(own))
        )
        assert server.asked["grader"] == 13 * (COUNT - 1), "ours are no answer to the user's"
        assert "rubrics of original.toml (" in told
        mine = agrotools("score", run)
        assert mine == told, "offline, from the folder alone"
        differs = published(run)["differs"]
        scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
        metrics = {row["metric"] for row in scores["scores"]}
        assert {metric for metric in metrics if metric.startswith("agent_x.")} == {
            "agent_x.goal_acc"
        }
        goal = scores["summary"]["modes"]["no-tool"]["metrics"]["agent_x.goal_acc"]["overall"][
            "value"
        ]
        assert goal == pytest.approx((COUNT - 1) / COUNT)
        assert any(each.startswith("rubrics of original.toml (") for each in differs)
        (kept,) = run.glob("judge-rubrics-*")
        text = kept.read_bytes()
        kept.write_text("[", encoding="utf-8")
        done = invoked("score", run)
        assert kept.name in done.exception.message
        assert "judge_rubrics" in str(done.exception.hint)
        kept.write_bytes(text)
        agrotools("score", run, *judged_by(run.parent, "grader", at=api.base_url))
        assert server.asked["grader"] == 13 * (COUNT - 1), "replies by ours are still there"
    assert published(run)["reference"] == ours
    assert {len({each["rubrics"] for each in judgements(run)})} == {2}
