"""A call that the protocol let reach no tool is shown as such, in the terminal and on the page."""

from pathlib import Path

from agrotools.core import CallTools, ErrorInfo, Observation, Record, ToolCall
from agrotools.report.html import build_report
from agrotools.scoring import score_record
from support.made_runs import call, end_to_end, made_sample, predicted, write_files, write_run
from support.report_page import read_report
from support.shown import explanation_text

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


def test_terminal_and_page_say_what_was_refused_and_why(tmp_path: Path):
    record = by_step()
    text = explanation_text(record, score_record(record))
    assert "Telescope is no name of a tool" in text
    assert "unknown arguments: ['wrong']" in text
    record = to_the_end()
    text = explanation_text(record, score_record(record))
    assert text.count("rejected, tool not run") == 1
    records = [by_step(), to_the_end()]
    write_files(tmp_path, [record.sample for record in records])
    page = read_report(build_report([write_run(tmp_path / "run", records)], tmp_path / "report.html").path)
    steps = [step for detail in page.details for step in detail["steps"]]
    rejected = [text for step in steps for label, text, _ in step["lines"] if label == "rejected"]
    assert "Telescope is no name of a tool" in rejected
    assert len(rejected) == 2
    assert "unknown arguments: ['wrong']" in rejected[-1] + rejected[0]
    assert [step["about"] for step in steps].count("rejected, tool not run") == 1
