"""Errors by class and seconds by part, in tables and on the page."""

import re
from pathlib import Path

import pytest

from agrotools.core import CallTools, ErrorInfo, Observation, Record, Step, ToolCall, Unparseable
from agrotools.report.html.page import build_report
from agrotools.report.layout import ReportTable
from agrotools.report.tables import tables
from agrotools.runner.rescore import rescore
from support.made_runs import (
    call,
    end_to_end,
    made_sample,
    predicted,
    right,
    write_files,
    write_run,
)
from support.report_page import read_report
from support.shown import cells_of, table_of

FAILED = Observation(error=ErrorInfo(kind="invalid_argument", message="expression: not given"))
CRASHED = Observation(error=ErrorInfo(kind="tool_failed", message="it crashed"))


def records() -> list[Record]:
    samples = [made_sample(f"s{number}", groups={"difficulty": "easy"}) for number in range(4)]
    unread = Step(
        turn=1,
        kind="unparseable",
        text="hm",
        reason="the output has neither an Action nor a Final Answer.",
    )
    return [
        right(samples[0]).model_copy(update={"seconds": 2.0}),
        end_to_end(samples[1], call("2*3", observation=FAILED), unread).model_copy(
            update={"seconds": 4.0}
        ),
        end_to_end(samples[2], call("2*3", observation=CRASHED), call("2*3", 1), seconds=6.0),
        Record(sample=samples[3], mode="end-to-end", invalid="connection refused", seconds=100.0),
        predicted(samples[0], "2*3", "6 + 1"),
        Record(
            sample=samples[1],
            mode="step-by-step",
            actions=(
                Unparseable(text="{", reason="the arguments must be a JSON object, not a list."),
                CallTools(calls=(ToolCall(tool="nope"),)),
                Unparseable(text="", reason="the output is empty."),
            ),
        ),
    ]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_files(tmp_path, [record.sample for record in records()])
    return write_run(tmp_path / "run", records())


def tables_of(*runs: Path) -> list[ReportTable]:
    """The tables of these runs."""
    parts = tables([rescore(run, allow_invalid=True).summary for run in runs])
    return [part for part in parts if isinstance(part, ReportTable)]


def test_the_table_counts_each_class_in_each_mode(run: Path):
    table = table_of(tables_of(run), "Errors by class")
    shown = {name: [cell.lines for cell in row.values()] for name, row in cells_of(table).items()}
    assert [column.heading for column in table.columns[1:]] == [("step-by-step",), ("end-to-end",)]
    assert shown["format error (steps)"] == [("1", "16.7"), ("1", "11.1")]
    assert shown["invalid json (steps)"] == [("1", "16.7"), ("0", "0.0")]
    assert shown["invalid arguments (steps)"] == [("0", "0.0"), ("1", "11.1")]
    assert shown["wrong tool name (steps)"] == [("1", "16.7"), ("0", "0.0")]
    assert shown["valid call failed (steps)"] == [("—",), ("1", "11.1")]
    assert shown["repeated tool (samples)"] == [
        ("—",),
        ("0", "0.0"),
    ]  # the reference repeats it, too
    assert not any("arXiv" in note for note in table.notes)
    part = rescore(run).summary.modes["end-to-end"]
    counted = {row.error: row for row in part.errors}
    error = counted["valid_call_failed"]
    assert (error.unit, error.count, error.of, error.samples, error.examples) == (
        "step",
        1,
        9,
        1,
        ("s2",),
    )
    assert counted["invalid_format"].count is None
    assert counted["invalid_format"].not_looked_for
    assert part.seconds
    assert (part.seconds.overall.mean, part.seconds.overall.n) == (4.0, 3)
    shown = cells_of(table_of(tables_of(run), "Seconds per query, mean"))
    assert [cell.lines[0] for cell in shown["All"].values()] == ["0.0000", "4.00"]
    assert {
        "By difficulty",
        "By calls of the reference",
        "By tools of the reference",
        "By answer type",
    } <= {*shown}


def test_errors_are_named_as_in_the_papers_and_lead_to_samples(run: Path, tmp_path: Path):
    of_gta = write_run(tmp_path / "of_gta", records(), benchmark="gta")
    notes = "\n".join(table_of(tables_of(of_gta), "Errors by class").notes)
    assert "GTA: argument format error" in notes
    assert "GTA (arXiv 2407.08713): Table 5" in notes
    assert "ThinkGeo" not in notes
    page = read_report(build_report([run], tmp_path / "report.html", allow_invalid=True).path)
    links = set(re.findall(r'<a class="example" href="#samples\?id=([^"]+)">', page.text))
    assert {"run/end-to-end/s2/0", "run/end-to-end/s1/0", "run/step-by-step/s1/0"} <= links
    shown = {
        "/".join(("run", row["mode"], row["sample"], str(row["epoch"]))) for row in page.records
    }
    assert links <= shown
    assert 'href="#errors"' in page.text


def test_several_runs_stand_side_by_side_in_a_table_for_each_mode(run: Path, tmp_path: Path):
    other = write_run(
        tmp_path / "other", [right(record.sample) for record in records()[:3]], model="other"
    )
    tables = tables_of(run, other)
    row = cells_of(table_of(tables, "Errors by class, end-to-end"))["valid call failed (steps)"]
    assert {name: cell.lines[0] for name, cell in row.items()} == {"m": "1", "other": "0"}
    assert len(table_of(tables, "Errors by class, step-by-step").columns) == 2
    run = write_run(
        tmp_path / "lost", [Record(sample=made_sample(), mode="end-to-end", invalid="refused")]
    )
    assert not [table for table in tables_of(run) if table.title.startswith(("Errors", "Seconds"))]
    page = build_report([run], tmp_path / "report.html", allow_invalid=True).path.read_text(
        encoding="utf-8"
    )
    assert 'id="errors"' not in page
