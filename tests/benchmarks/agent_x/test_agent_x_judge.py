"""Agent-X's twelve criteria: what a judge gets to see for each, and what its replies come to."""

from pathlib import Path

import pytest

from agrotools.benchmarks import load_benchmark
from agrotools.benchmarks.agent_x.judge import METRICS, SHIPPED, agent_x_questions, read_rubrics
from agrotools.benchmarks.agent_x.published_scorer import COLUMNS
from agrotools.core import Observation, Record, Step, ToolCall, Trajectory
from agrotools.scoring.judging import JudgedRows, Judgement, judge_questions
from support.made_agent_x import write_agent_x

GOLD = {
    "query": "How many cups?",
    "query_type": "objective",
    "reasoning_steps": [{"step": 1, "task": "count", "tool": "ObjectCounter", "output": "GOLD-OUTPUT"}],
    "final_answer": {"value": "GOLD-ANSWER", "justification": ""},
    "tool_metadata": {"ObjectCounter": {"description": "TOOL-DESCRIPTION"}},
}
PREDICTED = {
    "reasoning_steps": [{"step": 1, "tool_used": "OCR", "tool_output": "OWN-OUTPUT", "thought": "t"}],
    "final_answer": {"value": "OWN-ANSWER", "justification": ""},
}


def test_every_criterion_of_the_paper_is_asked_for_by_its_name_there():
    questions = agent_x_questions(GOLD, PREDICTED)
    assert [question.slot for question in questions] == list(dict.fromkeys(question.slot for question in questions))
    assert {question.slot for question in questions} == set(COLUMNS)
    assert {question.metric for question in questions} == set(METRICS.values())


@pytest.mark.parametrize(
    ("criterion", "shown", "hidden"),
    [
        ("grounding_accuracy", ["GOLD-OUTPUT", "OWN-OUTPUT"], ["OWN-ANSWER", "TOOL-DESCRIPTION"]),
        ("tool_accuray", ["TOOL-DESCRIPTION", "OWN-OUTPUT"], ["GOLD-OUTPUT", "GOLD-ANSWER"]),
        ("goal_accuray", ["GOLD-ANSWER", "OWN-ANSWER", "objective"], ["GOLD-OUTPUT", "OWN-OUTPUT"]),
        ("step_score", ["OWN-OUTPUT"], ["GOLD-OUTPUT", "GOLD-ANSWER", "How many cups?"]),
        ("reward_score", ["OWN-OUTPUT", "How many cups?"], ["GOLD-OUTPUT"]),
        ("semantic_accuracy", ["GOLD-OUTPUT", "OWN-OUTPUT", "OWN-ANSWER"], []),
    ],
)
def test_a_judge_sees_what_the_criterion_needs_and_no_more(criterion: str, shown: list[str], hidden: list[str]):
    (question,) = [each for each in agent_x_questions(GOLD, PREDICTED) if each.slot == criterion]
    assert all(text in question.user for text in shown)
    assert not any(text in question.user + question.system for text in hidden)


def test_nothing_is_asked_about_a_prediction_without_steps_and_answer():
    assert agent_x_questions(GOLD, {"reasoning_steps": "", "final_answer": {"value": "", "justification": ""}}) == []
    assert len(agent_x_questions(GOLD, {"reasoning_steps": [], "final_answer": {"value": "3"}})) == 12


def test_the_users_copy_of_the_rubrics_can_be_used(tmp_path: Path):
    shipped = SHIPPED.read_text(encoding="utf-8")
    own = tmp_path / "rubrics.toml"
    own.write_text(shipped.replace("Is every step clear", "MY OWN WORDS"), encoding="utf-8")
    questions = {question.slot: question for question in agent_x_questions(GOLD, PREDICTED, read_rubrics(own))}
    plain = {question.slot: question for question in agent_x_questions(GOLD, PREDICTED)}
    assert "MY OWN WORDS" in questions["clarity_penalty"].system
    assert questions["clarity_penalty"].prompt != plain["clarity_penalty"].prompt
    assert questions["step_score"].prompt == plain["step_score"].prompt


def test_runs_on_agent_x_are_judged_by_their_steps_and_answer(tmp_path: Path):
    sample = load_benchmark("agent-x", data_root=write_agent_x(tmp_path / "AgentX").parent).samples[0]
    call = ToolCall(tool=sample.toolset[0], arguments={})
    steps = (
        Step(turn=0, kind="call", call=call, observation=Observation(result={"text": "SEEN"}), thought="why"),
        Step(turn=1, kind="answer", text="three"),
    )
    record = Record(sample=sample, mode="end-to-end", trajectory=Trajectory(steps=steps, termination="answered"))
    questions = judge_questions(record)
    assert len(questions) == 12
    assert "SEEN" in next(question.user for question in questions if question.slot == "step_score")
    replies = [
        Judgement(metric=q.metric, judge="a", prompt=q.prompt, asked=q.asked, reply='{"score": 0.25}')
        for q in questions
    ]
    rows = JudgedRows(replies).rows(record)
    assert {row.metric: row.value for row in rows} == dict.fromkeys(METRICS.values(), 0.25)
    silent = record.model_copy(update={"trajectory": Trajectory(termination="max_steps")})
    rows = JudgedRows(replies).rows(silent)
    assert {row.value for row in rows} == {0.0}
