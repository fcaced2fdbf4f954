"""GTA-2's trees of sub-tasks: what a judge is asked about each leaf, and what its replies come to."""

from pathlib import Path
from typing import Any

import pytest

from agrotools.core import Artifact, Observation, Record, Step, ToolCall, Trajectory
from agrotools.core.files import artifact_path
from agrotools.models import ImagePart
from agrotools.runner.judging import judge_request
from agrotools.scoring.judging.judgements import JudgedRows, Judgement
from agrotools.scoring.judging.questions import JudgeQuestion, judge_questions
from agrotools_benchmarks.gta2.plugin import SubTasksSlot
from support.made_gta import draw
from support.made_gta2 import NESTED, leaf
from support.plain_sample import plain_sample

PLOT = Artifact(name="plot.png", kind="plot", media_type="image/png", sha256="aa")
NOTES = Artifact(name="notes.md", kind="table", media_type="text/markdown", sha256="bb")
TALK = Artifact(name="talk.mp3", kind="table", media_type="audio/mpeg", sha256="cc")


def record(
    tree: list[dict[str, Any]] = NESTED,
    answer: str | None = "All is done.",
    made: tuple[Artifact, ...] = (),
    name: str = "s",
) -> Record:
    slot = SubTasksSlot.model_validate(
        {"name": "task", "label": "what came of it", "sub_tasks": tree}
    )
    sample = plain_sample(
        name,
        query="Make a report.",
        answer=(slot,),
        answer_type="open_text",
        no_tool_eligible=False,
        cluster=name,
    )
    steps = [
        Step(
            turn=0,
            kind="call",
            call=ToolCall(tool="OCR"),
            observation=Observation(result={}, artifacts=made),
        ),
        *([Step(turn=1, kind="answer", text=answer)] if answer is not None else []),
    ]
    termination = "answered" if answer is not None else "max_steps"
    return Record(
        sample=sample,
        mode="end-to-end",
        trajectory=Trajectory(steps=tuple(steps), termination=termination),
    )


def questions(of: Record) -> dict[str, JudgeQuestion]:
    """Those of the published way of reading, by leaf."""
    return {
        q.slot.removeprefix("task "): q for q in judge_questions(of) if q.metric == "gta2.gpt_score"
    }


def replies(of: Record, by_leaf: dict[str, str], judge: str = "a") -> list[Judgement]:
    return [
        Judgement(metric=q.metric, judge=judge, prompt=q.prompt, asked=q.asked, reply=by_leaf[name])
        for name, q in questions(of).items()
    ]


def values(of: Record, given: list[Judgement]) -> dict[str, float]:
    return {row.metric: row.value for row in JudgedRows(given).joined(of, ())}


def test_each_leaf_is_a_question_that_both_readings_share():
    asked = judge_questions(record())
    metrics, leaves = ("gta2.gpt_score", "gta2.score_corrected"), ("1.1", "1.2", "2")
    assert [(q.metric, q.slot) for q in asked] == [
        (metric, f"task {name}") for name in leaves for metric in metrics
    ]
    assert len({q.asked for q in asked}) == 3
    first = asked[0]
    assert all(
        text in first.user
        for text in ("Make a report.", "All is done.", "Requirement 1.1 is met.", "(none)")
    )
    assert "Requirement 1.2" not in first.user
    assert first.user.count(first.mark) == 8
    assert first.mark in first.system


def test_the_two_ways_of_reading_differ_where_a_reply_is_no_json():
    of = record([leaf("a"), leaf("b")])
    # Published: the first number there is, 10. Ours: 4 out of 10.
    assert values(of, replies(of, {"a": "Out of 10: score 4/10", "b": '{"score": 4}'})) == {
        "gta2.gpt_score": 0.7,
        "gta2.score_corrected": 0.4,
    }
    # Published: no number is 0. Ours: no grade, and so no score of the sample.
    unread = replies(of, {"a": "Good work.", "b": '{"score": 4}'})
    assert values(of, unread) == {"gta2.gpt_score": 0.2}
    judges = JudgedRows(unread)
    judges.joined(of, ())
    panel = judges.panel()
    counts = {each.metric: (each.graded, each.answers, each.unreadable) for each in panel.judges}
    assert counts == {"gta2.gpt_score": (2, 2, 0), "gta2.score_corrected": (1, 2, 1)}


def test_neither_answer_nor_file_is_not_asked_about_and_scores_nothing():
    silent = record(answer=None)
    assert judge_questions(silent) == []
    other = record(name="t")
    given = replies(other, dict.fromkeys(("1.1", "1.2", "2"), '{"score": 9}'))
    assert values(silent, given) == {"gta2.gpt_score": 0, "gta2.score_corrected": 0}
    assert "(no answer)" in questions(record(answer=None, made=(PLOT,)))["2"].user
    failed = record().model_copy(update={"trajectory": Trajectory(termination="infrastructure")})
    assert judge_questions(failed) == []


def test_a_judge_gets_texts_and_images_of_the_run(tmp_path: Path):
    draw(artifact_path(tmp_path, "aa", ".png"), 3)
    artifact_path(tmp_path, "bb", ".md").write_bytes("Sales rose.\xff".encode("latin-1"))
    asked = questions(record(made=(PLOT, NOTES, TALK)))["2"]
    put = judge_request(asked, tmp_path)
    assert put.unseen == ()
    parts = put.messages[1].content
    assert [isinstance(part, ImagePart) for part in parts] == [False, False, True, False]
    assert f"notes.md:\n{asked.mark}\nSales rose.\ufffd\n{asked.mark}" in put.messages[1].text
    blind = judge_request(asked, tmp_path, images=False)
    assert blind.unseen == ("plot.png",)
    assert "plot.png cannot be shown." in blind.messages[1].text


def test_long_texts_are_cut_and_lost_files_are_said(tmp_path: Path):
    long = [
        NOTES.model_copy(update={"name": f"n{number}.txt", "sha256": f"{number:02}"})
        for number in range(8)
    ]
    for each in long[:7]:
        artifact_path(tmp_path, each.sha256 or "", ".txt").parent.mkdir(exist_ok=True)
        artifact_path(tmp_path, each.sha256 or "", ".txt").write_text(
            "ö" * 50_000, encoding="utf-8"
        )
    put = judge_request(questions(record(made=(*long, PLOT)))["2"], tmp_path)
    told = put.messages[1].text
    assert told.count("ö") == 60_000
    assert told.count("[cut off here]") == 7
    assert "n7.txt cannot be read." in told
    assert put.unseen == ("plot.png",)


@pytest.mark.parametrize("sha256", ["link", None])
def test_a_record_leads_a_judge_to_no_file_outside_its_run(tmp_path: Path, sha256: str | None):
    run = tmp_path / "run"
    (run / "artifacts").mkdir(parents=True)
    (run / "secret.md").write_text("SECRET")
    (run / "artifacts" / "link.md").symlink_to(run / "secret.md")
    (run / "artifacts" / "ab.md").symlink_to(run / "secret.md")
    for given in (sha256, "ab"):
        asked = questions(record(made=(NOTES.model_copy(update={"sha256": given}),)))["2"]
        told = judge_request(asked, run).messages[1].text
        assert "SECRET" not in told
        assert "notes.md cannot be read." in told
