"""Closing messages for answers in a file that are not read, and replies to them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agrotools.core import Record, Sample, Step, Trajectory, UsageError
from agrotools.foreign.asked_again import closing_conversation, read_replies
from agrotools.foreign.predictions import import_predictions
from agrotools.loading import load_benchmark
from support.command import run_command
from support.sums_benchmark import write_sums

PREDICTIONS = ("score", "--benchmark", "sums", "--predictions", "p.jsonl")


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three questions whose right answers are 3.75, 3.755 and 3.76 t/ha, and a file of answers."""
    monkeypatch.chdir(tmp_path)
    write_sums(tmp_path / "sums", 3)
    _write(
        tmp_path / "p.jsonl",
        [
            {"id": "sum-0000", "prediction": "mean: 3.75 t/ha"},
            {"id": "sum-0001", "prediction": "Together, the fields give somewhat less than four."},
            {"id": "sum-0002", "prediction": "mean: about 3.8"},
        ],
    )
    return tmp_path


def test_each_answer_that_is_not_read_has_the_message_that_a_model_gets(folder: Path) -> None:
    ended = run_command(*PREDICTIONS, "--unread", "asked.jsonl")
    assert ended.returncode in (0, 1), ended.stderr
    rows = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["sum-0001", "sum-0002"]
    first, second = (row["messages"] for row in rows)
    assert [message["role"] for message in first] == ["user", "assistant", "user"]
    assert "Field 1 gave" in first[0]["content"]
    assert "mean: <" in first[2]["content"]
    assert "mean cannot be read (about 3.8): write one number in t/ha" in second[2]["content"]


def test_answers_in_open_text_are_not_asked_again() -> None:
    words = {"type": "open_text", "name": "advice", "label": "advice"}
    advice = {**words, "facts": [{"phrases": ["spray"]}]}
    count = {"type": "tolerance", "name": "count", "label": "number of apples", "value": 3}
    text = "Spray the three trees."
    assert not closing_conversation(_answered(advice, text))
    assert closing_conversation(_answered(count, text))


def _answered(slot: Mapping[str, object], text: str) -> Record:
    fields = {"id": "s", "query": "?", "files": [], "family": "CM", "task_type": "tree_counting", "toolset": [],
              "answer_type": "exact", "template": "own", "source": "made up", "answer": [slot], "cluster": "s",
              }  # fmt: skip
    sample = Sample.model_validate(fields)
    step = Step(turn=0, kind="answer", text=text)
    return Record(
        sample=sample, mode="no-tool", trajectory=Trajectory(steps=(step,), termination="answered")
    )


def test_replies_to_the_messages_count(folder: Path) -> None:
    replies = [
        {"id": "sum-0001", "reply": "3.755 t/ha"},
        {"id": "sum-0002", "reply": "mean: 3.8 or so"},
    ]
    _write(folder / "r.jsonl", replies)
    run_command(*PREDICTIONS, "--out", "before")
    ended = run_command(
        *PREDICTIONS, "--replies", "r.jsonl", "--out", "run", "--unread", "again.jsonl"
    )
    assert ended.returncode in (0, 1), ended.stderr
    records = [json.loads(line) for line in (folder / "run/records.jsonl").read_text().splitlines()]
    endings = {row["sample"]["id"]: row["trajectory"]["termination"] for row in records}
    assert endings == {"sum-0000": "answered", "sum-0001": "answered", "sum-0002": "no_form"}
    assert not (folder / "again.jsonl").read_text(), "nobody is asked twice"
    before, after = (_fas(folder / name) for name in ("before", "run"))
    assert (before, after) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "sum-0000", "reply": "mean: 3.75 t/ha"}, "reply to no closing message.*sum-0000"),
        ({"id": "sum-0009", "reply": "mean: 3.75 t/ha"}, "reply to no closing message.*sum-0009"),
        (
            {"id": "sum-0001", "reply": "3.755 t/ha", "messages": []},
            "other messages than.*sum-0001",
        ),
    ],
)
def test_only_answers_that_are_not_read_are_asked_again(
    folder: Path, line: Mapping[str, object], message: str
) -> None:
    _write(folder / "r.jsonl", [line])
    sums = load_benchmark(folder / "sums")
    replies = read_replies(folder / "r.jsonl")
    with pytest.raises(UsageError, match=message):
        import_predictions(folder / "p.jsonl", sums, "sums", out=folder / "run", replies=replies)
    assert not (folder / "run").exists()


def test_answers_of_one_sample_in_two_modes_have_a_line_each(folder: Path) -> None:
    prose = "Somewhat less than four."
    modes = ("end-to-end", "no-tool")
    _write(
        folder / "p.jsonl",
        [{"id": "sum-0001", "mode": mode, "prediction": prose} for mode in modes],
    )
    run_command(*PREDICTIONS, "--unread", "asked.jsonl", "--out", "before")
    rows = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    assert [row["mode"] for row in rows] == [*modes]
    for row, reply in zip(rows, ("3.755 t/ha", "4.1 t/ha"), strict=True):
        row["reply"] = reply
    _write(folder / "asked.jsonl", rows)
    run_command(*PREDICTIONS, "--replies", "asked.jsonl", "--out", "run")
    records = [json.loads(line) for line in (folder / "run/records.jsonl").read_text().splitlines()]
    asked = [row for row in records if row["sample"]["id"] == "sum-0001"]
    texts = {row["mode"]: row["trajectory"]["steps"][-1]["text"] for row in asked}
    assert [texts[mode].split("\n\n")[-1] for mode in modes] == [
        "mean: 3.755 t/ha",
        "mean: 4.1 t/ha",
    ]


def test_the_written_lines_with_replies_are_counted(folder: Path) -> None:
    run_command(*PREDICTIONS, "--unread", "asked.jsonl", "--out", "before")
    rows = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    rows[0]["reply"] = "3.755 t/ha"
    _write(folder / "asked.jsonl", rows)
    ended = run_command(*PREDICTIONS, "--replies", "asked.jsonl", "--out", "run")
    assert "1 answer asked again, replies in asked.jsonl" in ended.stderr


def _fas(run: Path) -> float | None:
    """Return the score of the run in the mode without tools."""
    summary = json.loads((run / "scores.json").read_text())["summary"]
    return summary["modes"]["no-tool"]["metrics"]["fas"]["overall"]["value"]


@pytest.mark.parametrize(
    "line", ["no JSON", "[1]", '{"id": "a"}', '{"reply": "b"}', '{"id": "a", "reply": 3}']
)
def test_a_line_that_is_no_reply_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(f'{{"id": "b", "reply": "mean: 3"}}\n{line}\n')
    with pytest.raises(UsageError, match="line 2"):
        read_replies(tmp_path / "r.jsonl")
