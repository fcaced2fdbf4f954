"""A call that the protocol let reach no tool is shown as such, in the terminal and on the page."""

from pathlib import Path

from agrotools.core import CallTools, ErrorInfo, Observation, Record, ToolCall
from agrotools.report.explain import explanation_text
from agrotools.report.html import build_report
from agrotools.scoring import score_record
from support.made_runs import call, end_to_end, made_sample, predicted, write_files, write_run

UNKNOWN = ErrorInfo(kind="unknown_tool", message="Telescope is no name of a tool")
WRONG = ErrorInfo(kind="invalid_argument", message="unknown arguments: ['wrong']")


def by_step() -> Record:
    record = predicted(made_sample("steps"), "2*3", "6 + 1")
    actions = (
        CallTools(calls=(ToolCall(tool="Telescope", arguments={}),), refused=UNKNOWN),
        CallTools(calls=(ToolCall(tool="calculate", arguments={"wrong": 1}),), refused=WRONG),
        record.actions[-1] if record.actions else None,
    )
    return Record.model_validate({**record.model_dump(), "actions": actions})


def to_the_end() -> Record:
    refused = call("2*3", refused=True, observation=Observation(error=UNKNOWN))
    return end_to_end(made_sample("end"), refused, call("6 + 1", 1))


def test_the_terminal_says_what_was_refused_and_why():
    record = by_step()
    text = explanation_text(record, score_record(record))
    assert "Telescope is no name of a tool" in text
    assert "unknown arguments: ['wrong']" in text
    record = to_the_end()
    text = explanation_text(record, score_record(record))
    assert text.count("rejected, tool not run") == 1


def test_the_page_says_what_was_refused_and_why(tmp_path: Path):
    records = [by_step(), to_the_end()]
    write_files(tmp_path, [record.sample for record in records])
    page = build_report([write_run(tmp_path / "run", records)], tmp_path / "report.html").path.read_text(
        encoding="utf-8"
    )
    assert page.count("<dt>rejected</dt>") == 2
    assert ">Telescope is no name of a tool</dd>" in page
    assert "unknown arguments: [&#39;wrong&#39;]" in page
    assert page.count("rejected, tool not run") == 1
