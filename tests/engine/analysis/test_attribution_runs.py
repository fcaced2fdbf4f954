"""``agrotools attribute`` on run folders of a small benchmark."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agrotools import Run
from agrotools.core import AbstainSlot, Observation, Record, ToolCall
from agrotools.report.html.page import build_report
from agrotools.runner.repeated_calls import (
    REPEATED_CALLS_FILE,
    RepeatedCall,
    read_repeated_calls,
)
from support.command import run_command
from support.made_runs import call, end_to_end, made_sample, write_run
from support.report_page import read_report
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process
REFUSAL = "rows: unknown"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a planted agent that fails one decision in ten or so."""
    folder = tmp_path_factory.mktemp("attribution")
    write_sums(folder / "sums", 24)
    done = run_command("eval", folder / "sums", "-m", "baseline:planted:0.5:3", "--out", folder / "run", "--mode",
                       "end-to-end,step-by-step")  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def lost(run: Path, mode: str = "end-to-end") -> dict[str, Any]:
    """Return the split of lost points as the scores of a run hold it."""
    assert run_command("score", run).returncode == 0
    return json.loads((run / "scores.json").read_text())["summary"]["modes"][mode]["lost"]


def test_the_parts_of_a_run_sum_to_the_gap_of_its_score(run: Path):
    done = run_command("attribute", run)
    assert done.returncode == 0, done.stderr
    scores = json.loads((run / "scores.json").read_text())["summary"]["modes"]["end-to-end"]
    split, score = scores["lost"]["run"], scores["metrics"]["fas"]["overall"]["value"]
    assert split["score"] == pytest.approx(100 * score, abs=1e-5)
    assert 0 < split["gap"] == sum(split["parts"].values())
    assert "tool:calculate" not in split["parts"], "a planted agent errs, the tool does not"
    assert {*split["intervals"]} == {*split["parts"], "gap"}
    assert f"{split['gap']:.1f} of 100 points lost, 24 samples" in done.stdout
    printed = json.loads(run_command("attribute", run, "--json").stdout)
    assert {name: printed[name] for name in ("run", "tasks")} == {
        name: scores["lost"][name] for name in ("run", "tasks")
    }


def test_the_screen_the_page_explain_and_attribute_show_one_split(run: Path, tmp_path: Path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    assert run_command("attribute", copy, "--data-root", run.parent).returncode == 0
    whole = lost(copy)["run"]["parts"]
    page = build_report([copy], tmp_path / "report.html").path
    head = read_report(page).head
    assert head["runs"][0]["lost"]["end-to-end"]["run"]["parts"] == whole
    listed = json.loads(run_command("explain", copy, "--json").stdout)
    ours = [each["lost"] for each in listed if each["mode"] == "end-to-end"]
    assert len(ours) == 24
    for part, points in whole.items():
        mean = sum(each.get(part, 0.0) for each in ours) / len(ours)
        assert mean == pytest.approx(points, abs=1e-3), part


def test_calls_that_were_made_again_are_kept_and_not_made_twice(run: Path, tmp_path: Path):
    """``calculate`` needs no files and is never kept; so another tool stands here."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    made = RepeatedCall(
        sample="s1", tool="plot", arguments={"b": 1, "a": [2]}, observation=Observation(result={})
    )
    (copy / REPEATED_CALLS_FILE).write_text(made.model_dump_json() + "\n" + '{"cut')
    repeated = read_repeated_calls(copy)
    record = end_to_end(made_sample("s1"), call("2*3"), answer="rows: 7")
    assert repeated.of(record)(ToolCall(tool="plot", arguments={"a": [2], "b": 1})) is not None
    assert repeated.of(record)(ToolCall(tool="plot", arguments={"a": [2]})) is None
    other = end_to_end(made_sample("s2"), call("2*3"), answer="rows: 7")
    assert repeated.of(other)(ToolCall(tool="plot", arguments={"a": [2], "b": 1})) is None
    (copy / REPEATED_CALLS_FILE).write_text("no call\n")
    done = run_command("score", copy)
    assert done.returncode != 0
    assert "line 1 is not a repeated call" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_benchmark_no_tool_is_run(run: Path):
    before = json.loads(run_command("attribute", run, "--json").stdout)
    folder = run.parent / "sums"
    folder.rename(run.parent / "elsewhere")
    try:
        done = run_command("attribute", run, "--json")
    finally:
        (run.parent / "elsewhere").rename(folder)
    found = json.loads(done.stdout)
    assert found["notes"][0].startswith("no tool is run again: ")
    assert found["run"] == before["run"], "the sums need no files"


def test_the_split_of_unanswerable_samples_counts_the_refusals_of_their_twins(tmp_path: Path):
    records: list[Record] = []
    for at, (text, twin_text) in enumerate(
        ((REFUSAL, "rows: 7"), (REFUSAL, REFUSAL), ("rows: 7", REFUSAL))
    ):
        yes = made_sample(f"yes-{at}", twin=f"no-{at}", may_abstain=True)
        slot = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=yes.answer)
        no = made_sample(f"no-{at}", twin=f"yes-{at}", may_abstain=True, answer=(slot,))
        records += [end_to_end(no, call("2*3"), call("6 + 1", 1), answer=text)]
        records += [end_to_end(yes, call("2*3"), call("6 + 1", 1), answer=twin_text)]
    records.append(
        end_to_end(
            made_sample("alone", may_abstain=True, twin="gone", answer=(slot,)), answer=REFUSAL
        )
    )
    run = write_run(tmp_path / "run", records, benchmark_path=str(tmp_path))
    assert run_command("attribute", run).returncode == 0
    listed = json.loads(run_command("explain", run, "--json").stdout)
    lost_points = {each["id"]: sum(each["lost"].values()) for each in listed}
    whole = {"no-0": 0, "yes-0": 0, "no-1": 100, "yes-1": 100, "no-2": 200, "yes-2": 100}
    assert lost_points == {**whole, "alone": 0}
    mode = Run(run).summary.modes["end-to-end"]
    assert mode.lost is not None
    assert mode.lost.run.n == 6, "the one without a twin has no score"
    assert mode.lost.run.score == pytest.approx(100 * mode.metrics["fas"].overall.value, abs=1e-5)
    assert mode.lost.run.score == pytest.approx(100 / 6, abs=1e-5)
    assert mode.counts.without_twin == 1
