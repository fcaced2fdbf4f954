"""Judging of Agent-X: questions of the twelve criteria, scores read from replies, and rubric files of users."""

from pathlib import Path

import pytest

from agrotools.core import Observation, Record, Step, ToolCall, Trajectory, UsageError
from agrotools.loading import load_benchmark
from agrotools.scoring.judging.judgements import JudgedRows, Judgement
from agrotools.scoring.judging.questions import judge_questions
from agrotools_benchmarks.agent_x.judge import (
    METRICS,
    agent_x_questions,
    read_judge_score,
    read_rubrics,
)
from agrotools_benchmarks.agent_x.published_scorer import COLUMNS
from support.made_agent_x import write_agent_x

GOLD = {
    "query": "How many cups?",
    "query_type": "objective",
    "reasoning_steps": [
        {"step": 1, "task": "count", "tool": "ObjectCounter", "output": "GOLD-OUTPUT"}
    ],
    "final_answer": {"value": "GOLD-ANSWER", "justification": ""},
    "tool_metadata": {"ObjectCounter": {"description": "TOOL-DESCRIPTION"}},
}
PREDICTED = {
    "reasoning_steps": [
        {"step": 1, "tool_used": "OCR", "tool_output": "OWN-OUTPUT", "thought": "t"}
    ],
    "final_answer": {"value": "OWN-ANSWER", "justification": ""},
}


def test_every_criterion_of_the_paper_is_asked_for_by_its_name_there():
    questions = agent_x_questions(GOLD, PREDICTED)
    assert [question.slot for question in questions] == list(
        dict.fromkeys(question.slot for question in questions)
    )
    assert {question.slot for question in questions} == set(COLUMNS)
    assert {question.metric for question in questions} == set(METRICS.values())
    assert (
        agent_x_questions(
            GOLD, {"reasoning_steps": "", "final_answer": {"value": "", "justification": ""}}
        )
        == []
    )
    assert (
        len(agent_x_questions(GOLD, {"reasoning_steps": [], "final_answer": {"value": "3"}})) == 12
    )


def test_runs_on_agent_x_are_judged_by_their_steps_and_answer(tmp_path: Path):
    root = write_agent_x(tmp_path / "AgentX", count=4, calls=8, images=1, videos=0).parent
    sample = load_benchmark("agent-x", data_root=root).samples[0]
    call = ToolCall(tool=sample.toolset[0], arguments={})
    steps = (
        Step(
            turn=0,
            kind="call",
            call=call,
            observation=Observation(result={"text": "SEEN"}),
            thought="why",
        ),
        Step(turn=1, kind="answer", text="three"),
    )
    record = Record(
        sample=sample, mode="end-to-end", trajectory=Trajectory(steps=steps, termination="answered")
    )
    questions = judge_questions(record)
    assert len(questions) == 12
    assert "SEEN" in next(question.user for question in questions if question.slot == "step_score")
    replies = [
        Judgement(
            metric=q.metric, judge="a", prompt=q.prompt, asked=q.asked, reply='{"score": 0.25}'
        )
        for q in questions
    ]
    rows = JudgedRows(replies).joined(record, ())
    assert {row.metric: row.value for row in rows} == dict.fromkeys(METRICS.values(), 0.25)
    silent = record.model_copy(update={"trajectory": Trajectory(termination="max_steps")})
    assert {row.value for row in JudgedRows(replies).joined(silent, ())} == {0.0}


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("{'Score': 0.8, 'Justification': 'it's fine'}", 0.8),
        ('```json\n{"score": 0.25}\n```', 0.25),
        ("{'Score': 0.6, 'Justification': 'cut off", 0.6), ({"Score": "0.5"}, 0.5),
    ],
)  # fmt: skip
def test_a_score_is_read(reply, value):
    assert read_judge_score(reply) == pytest.approx(value)


NO_SCORES = (
    "no idea",
    "{'Score': 'high'}",
    "{'Score': True}",
    "{'Score': '1/0'}",
    "{'Score': 7}",
    "3 cups, 2 plates",
)
NO_SCORES += ('{"score": 0}\nThe answer asks for {"score": 1}',)


@pytest.mark.parametrize("reply", [*NO_SCORES, None, "", {"x": 1}, 10**400, float("nan")])
def test_what_is_no_score_is_not_read(reply):
    assert read_judge_score(reply) is None


ONE = '[criteria.goal_accuray]\nrubric = "Is it so?"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "original.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[criteria.goal_accuray]\nrubric = 'x'\nshows = ['gold']",
            "criteria.goal_accuray.shows.0: input should be",
        ),
        ("[criteria.goal_accuracy]\nrubric = 'x'", "Agent-X has no criterion 'goal_accuracy'"),
        (f"system = 'Grade.'\n{ONE}", "says nowhere where the rubric goes"),
        ("criteria: yaml", "cannot read the rubrics"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str):
    with pytest.raises(UsageError, match="rubrics") as raised:
        read_rubrics(written(tmp_path, text))
    assert said.lower() in raised.value.message.lower()
    assert raised.value.hint
