"""Errors by class and seconds by part, in tables and on the page."""

import json
import re
from pathlib import Path

import pytest

from agrotools.core import CallTools, ErrorInfo, Observation, Record, Step, ToolCall, Unparseable
from agrotools.report.html import build_report
from agrotools.runner.rescore import rescore
from support.made_runs import call, end_to_end, hostile_run, made_sample, predicted, right, write_files, write_run
from support.report_page import read_report
from support.shown import tables_text

FAILED = Observation(error=ErrorInfo(kind="invalid_argument", message="expression: not given"))
CRASHED = Observation(error=ErrorInfo(kind="tool_failed", message="it crashed"))


def records() -> list[Record]:
    samples = [made_sample(f"s{number}", groups={"difficulty": "easy"}) for number in range(4)]
    unread = Step(turn=1, kind="unparseable", text="hm", reason="the output has neither an Action nor a Final Answer.")
    return [
        right(samples[0]).model_copy(update={"seconds": 2.0}),
        end_to_end(samples[1], call("2*3", observation=FAILED), unread).model_copy(update={"seconds": 4.0}),
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


def lines_of(text: str, title: str) -> list[str]:
    lines = text.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(title))
    return lines[start:]


def test_the_table_counts_each_class_in_each_mode(run: Path):
    text = tables_text([rescore(run, allow_invalid=True).summary])
    lines = lines_of(text, "Errors by class")

    def cells(label: str) -> tuple[list[str], list[str]]:
        at = next(at for at, line in enumerate(lines) if line.startswith(label))
        return lines[at].removeprefix(label).split(), lines[at + 1].split()

    assert lines[1].split() == ["step-by-step", "end-to-end"]
    assert cells("format error (steps)") == (["1", "1"], ["16.7", "11.1"])
    assert cells("invalid json (steps)") == (["1", "0"], ["16.7", "0.0"])
    assert cells("invalid arguments (steps)") == (["0", "1"], ["0.0", "11.1"])
    assert cells("wrong tool name (steps)") == (["1", "0"], ["16.7", "0.0"])
    assert cells("tool error (steps)") == (["—", "1"], ["11.1"])
    assert cells("repeated tool (samples)") == (["—", "0"], ["0.0"])  # the reference repeats it, too
    assert "arXiv" not in text
    assert "Errors by class" not in tables_text([rescore(run, allow_invalid=True).summary], details=False)


def test_errors_are_named_as_in_the_papers_and_lead_to_samples(run: Path, tmp_path: Path):
    of_gta = write_run(tmp_path / "of_gta", records(), benchmark="gta")
    flat = " ".join(tables_text([rescore(of_gta, allow_invalid=True).summary]).split())
    assert "GTA: argument format error" in flat
    assert "GTA (arXiv 2407.08713): Table 5" in flat
    assert "ThinkGeo" not in flat
    page = read_report(build_report([run], tmp_path / "report.html", allow_invalid=True).path)
    links = set(re.findall(r'<a class="example" href="#samples\?id=([^"]+)">', page.text))
    assert {"run/end-to-end/s2/0", "run/end-to-end/s1/0", "run/step-by-step/s1/0"} <= links
    shown = {"/".join(("run", row["mode"], row["sample"], str(row["epoch"]))) for row in page.records}
    assert links <= shown
    assert 'href="#errors"' in page.text


def test_scores_hold_the_classes_and_say_why_one_is_not_there(run: Path):
    rescore(run)
    modes = json.loads((run / "scores.json").read_text())["summary"]["modes"]
    rows = {row["error"]: row for row in modes["end-to-end"]["errors"]}
    assert rows["tool_error"] == {
        "error": "tool_error", "unit": "step", "count": 1, "of": 9, "share": 1 / 9, "samples": 1, "examples": ["s2"],
        "not_looked_for": "",
    }  # fmt: skip
    assert rows["invalid_format"]["count"] is None
    assert rows["invalid_format"]["not_looked_for"]
    assert modes["end-to-end"]["seconds"]["overall"] == {"mean": 4.0, "n": 3}


def test_seconds_stand_by_every_part(run: Path):
    text = tables_text([rescore(run).summary])
    lines = lines_of(text, "Seconds per query")
    flat = " ".join(" ".join(lines).split())
    assert "All 0.0000 4.00" in flat
    for group in ("By difficulty", "By calls of the reference", "By tools of the reference", "By answer type"):
        assert group in flat


def test_several_runs_stand_side_by_side_in_a_table_for_each_mode(run: Path, tmp_path: Path):
    other = write_run(tmp_path / "other", [right(record.sample) for record in records()[:3]], model="other")
    text = tables_text([rescore(each, allow_invalid=True).summary for each in (run, other)])
    lines = lines_of(text, "Errors by class, end-to-end")
    assert lines[1].split() == ["m", "other"]
    at = next(at for at, line in enumerate(lines) if line.startswith("tool error (steps)"))
    assert lines[at].split()[-2:] == ["1", "0"]
    assert lines_of(text, "Errors by class, step-by-step")[1].split() == ["m"]


def test_a_run_of_attacks_leaves_the_section_harmless(tmp_path: Path):
    runs = [hostile_run(tmp_path / "run"), hostile_run(tmp_path / "other")]
    text = build_report(runs, tmp_path / "report.html", allow_invalid=True).path.read_text(encoding="utf-8")
    start = text.index('<section class="view" id="errors"')
    section = text[start : text.index('<section class="view" id="setup"')]
    assert "&lt;script&gt;window.hit=1&lt;/script&gt;" in section, "the name of the model"
    assert set(re.findall(r"<(\w+)", section)) <= {
        "section", "h2", "h3", "div", "table", "thead", "tbody", "tr", "td", "th", "span", "a", "p",
    }  # fmt: skip


def test_runs_without_a_valid_record_have_no_table(tmp_path: Path):
    lost = Record(sample=made_sample(), mode="end-to-end", invalid="refused")
    run = write_run(tmp_path / "run", [lost])
    text = tables_text([rescore(run, allow_invalid=True).summary])
    assert "Errors by class" not in text
    assert "Seconds per query" not in text
    page = build_report([run], tmp_path / "report.html", allow_invalid=True).path.read_text(encoding="utf-8")
    assert 'id="errors"' not in page
