"""Blind grading: what is shown in which order, what a grade must hold, and results that are known beforehand."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.build.review.agreement import ReviewJournal
from agrotools.build.review.grading import (
    Item,
    Scheme,
    Sheet,
    grading_parts,
    open_sheet,
    read_scheme,
    shown_step,
    summarise_grades,
)
from agrotools.cli.main import app
from agrotools.core import UsageError
from agrotools.report.judges import Grade
from support.made_runs import call, end_to_end, made_sample, write_files, write_run

MODELS = ("acme/qwen3-vl-8b", "openai:gpt-4.1")
PLAIN = Scheme.model_validate(
    {
        "rubric": [
            {"id": "goal", "name": "Goal", "question": "Right?"},
            {
                "id": "plan",
                "name": "Plan",
                "question": "Sound?",
                "levels": ["no", "yes"],
                "steps": True,
            },
        ]
    }
)


def runs_of(folder: Path, n: int = 12) -> list[Path]:
    """Two runs with their own answers, right in every other sample; the first has calls and leaves one out."""
    samples = [made_sample(f"s{k:02}", cluster=f"c{k}") for k in range(n)]
    write_files(folder, samples)
    runs = []
    for at, model in enumerate(MODELS):
        steps = [call("2*3", thought="qwen3-vl-8b thinks")] if at == 0 else []
        records = [
            end_to_end(
                s, *steps,
                answer=None if (at, k) == (0, 3) else f"says {('Qwen', 'GPT')[at]}\nrows: {7 + (k + at) % 2}",
            )
            for k, s in enumerate(samples)
        ]  # fmt: skip
        runs.append(write_run(folder / "runs" / f"run-{at}", records, model=model))
    return runs


def graded(sheet: Sheet, item: Item, who: str, number: int, **changes: Any) -> Grade:
    fields: dict[str, Any] = {
        "id": f"{number:08x}", "sample": item.key, "content": sheet.scheme.digest, "reviewer": who, "verdict": "grade",
        "grades": {each.id: 1.0 for each in sheet.scheme.rubrics_of(item)},
    }  # fmt: skip
    return Grade.model_validate(fields | changes)


def test_answers_of_a_sample_are_together_in_an_order_of_the_seed_alone(tmp_path: Path):
    runs = runs_of(tmp_path)
    sheet, turned, other = open_sheet(runs), open_sheet(runs[::-1]), open_sheet(runs, seed=1)
    assert len(sheet.items) == 23
    assert [*sheet.items] == [*turned.items] != [*other.items]
    assert sheet.items.keys() == other.items.keys()
    samples = [item.record.sample.id for item in sheet.items.values()]
    assert len([at for at in range(1, 23) if samples[at] != samples[at - 1]]) == 11
    assert (
        len(
            {
                sheet.items[key].runs[0][0]
                for key in sheet.items
                if sheet.items[key].label.endswith("a")
            }
        )
        == 2
    )
    few = open_sheet(runs, samples=4)
    assert [*few.items] == [*sheet.items][: len(few.items)]
    assert len({item.record.sample.id for item in few.items.values()}) == 4


def test_equal_answers_are_graded_once_without_names_of_models(tmp_path: Path):
    samples = [made_sample(f"s{k}") for k in range(3)]
    runs = [
        write_run(tmp_path / name, map(end_to_end, samples), model=name) for name in ("one", "two")
    ]
    sheet = open_sheet(runs, scheme=PLAIN)
    assert [item.runs for item in sheet.items.values()] == [((0, 0), (1, 0))] * 3
    grades = [graded(sheet, item, "Ada", at) for at, item in enumerate(sheet.items.values())]
    assert [run.answers for run in summarise_grades(sheet, grades).runs] == [3, 3]
    sheet = open_sheet(runs_of(tmp_path))
    for text in (
        "I am Qwen3.",
        "qwen3-vl-8b",
        "ACME/Qwen3-VL-8B says",
        "GPT-4.1!",
        "gpt",
        "as run-0 did",
    ):
        assert "[model]" in sheet.masked(text)
        assert not any(
            name in sheet.masked(text).lower() for name in ("qwen", "gpt", "acme", "run-0")
        )
    assert sheet.masked("egypt and vl-8b") == "egypt and vl-8b"
    item = next(item for item in sheet.items.values() if item.calls)
    assert shown_step(sheet, 1, item.calls[0])["thought"] == "[model] thinks"


def test_results_and_agreement_are_those_of_hand_calculation(tmp_path: Path):
    sheet = open_sheet(runs_of(tmp_path), scheme=PLAIN)
    grades: list[Grade] = []
    for number, item in enumerate(sheet.items.values()):
        good = item.runs[0][0] == 0
        values = {each.id: 1.0 if good else 0.5 for each in PLAIN.rubrics_of(item)}
        grades += [
            graded(sheet, item, who, 100 * at + number, grades=values)
            for at, who in enumerate(("Ada", "Bo"))
        ]
    summary = summarise_grades(sheet, grades)
    assert (summary.answers, summary.graded, summary.graders) == (23, 23, {"Ada": 23, "Bo": 23})
    first, second = summary.runs
    assert first.run == MODELS[0]
    assert (first.answers, first.unanswered) == (11, 1)
    assert first.mean.value == pytest.approx(11 / 12), "the missing answer counts as 0"
    assert first.mean.interval is not None
    assert first.by_rubric["plan"].value == 1, (
        "a rubric of steps is not asked about a missing answer"
    )
    assert second.mean.value == 0.5
    assert summary.alphas["Goal"].alpha == pytest.approx(1)


def test_results_are_hidden_before_the_end_and_while_another_grader_is_at_work(tmp_path: Path):
    sheet = open_sheet(runs_of(tmp_path), scheme=PLAIN)
    first = next(iter(sheet.items.values()))
    grades = [graded(sheet, first, "Ada", 1), graded(sheet, first, "Ada", 2, content="0" * 16)]
    summary = summarise_grades(sheet, grades)
    assert (summary.graded, summary.runs, summary.outdated) == (1, (), 1)
    grades = [
        graded(sheet, item, "Ada", number) for number, item in enumerate(sheet.items.values())
    ]
    assert len(summarise_grades(sheet, grades).runs) == 2
    grades.append(graded(sheet, next(iter(sheet.items.values())), "Bo", 100))
    summary = summarise_grades(sheet, grades)
    assert (summary.graded, summary.runs) == (23, ())
    texts = [part.get("text", "") for part in grading_parts(sheet, summary)]
    assert (
        "The runs are named once everybody who began has graded all answers (Bo 1 of 23)." in texts
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, ""), ({"grades": {"goal": 1}}, "not graded yet: Plan"), ({"grades": {"goal": 0.3, "plan": 1}}, "no level"),
        ({"grades": {"goal": 1, "plan": 1, "other": 1}}, "no level"), ({"verdict": "withdraw", "grades": {}}, ""),
    ],
)  # fmt: skip
def test_what_a_grade_must_hold(tmp_path: Path, changes: dict[str, Any], complaint: str):
    sheet = open_sheet(runs_of(tmp_path, 4), scheme=PLAIN)
    item = next(item for item in sheet.items.values() if item.calls)
    assert complaint in PLAIN.complaint(item, graded(sheet, item, "Ada", 1, **changes))
    assert bool(PLAIN.complaint(item, graded(sheet, item, "Ada", 1, **changes))) == bool(complaint)


def test_schemes(tmp_path: Path):
    file = tmp_path / "rubrics.toml"
    for text in (
        "",
        "[[rubric]]\nid = 'a'",
        "[[rubric]]\nid='a'\nname='A'\nquestion='?'\nlevels=['one']",
        "x = 1",
        "[[",
    ):
        file.write_text(text)
        with pytest.raises(UsageError):
            read_scheme(file)


def test_the_summary_in_the_terminal(tmp_path: Path):
    runs = runs_of(tmp_path)
    sheet = open_sheet(runs)
    journal = ReviewJournal(sheet.material.journal, Grade)
    assert journal.path == tmp_path / "runs" / "grades.jsonl"
    for number, item in enumerate(sheet.items.values()):
        journal.append(graded(sheet, item, "\x1b[31mAda".replace("\x1b", "<"), number))
    command = ["grade", *map(str, runs), "--summary"]
    assert "91.7" in CliRunner().invoke(app, command).stdout
    data = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert data["runs"][0]["mean"]["value"] == pytest.approx(11 / 12)
