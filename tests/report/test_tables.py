import io
import re
from functools import cache

import pytest

from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    Answer,
    ErrorInfo,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Score,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.report.layout import print_parts
from agrotools.report.tables import tables
from support.plain_sample import plain_sample
from support.runs import summarise
from support.shown import tables_text

DERIVED = {"from": "steps[0].observation.value"}
SLOT = ToleranceSlot(name="area", label="area", value=7, unit="%", abs_tol=0.5, **DERIVED)
CALL = ReferenceStep(tool="calculate", arguments={"expression": "1"})
OUTCOME = ("fas", "css")
PROCESS = ("st_acc", "tool_acc", "tool_acc_strict", "arg_acc", "arg_acc_strict", "ear", "summ_acc", "summ_acc_truth")


def sample(number, *, task="weed_crop_area"):
    return plain_sample(
        f"s{number}",
        family=FAMILY_OF_TASK_TYPE[task],
        task_type=task,
        answer_type="plot" if task == "plotting" else "tolerance",
        toolset=("calculate",),
        reference=ReferenceTrajectory(steps=(CALL,)),
        answer=(SLOT,),
        no_tool_eligible=task != "plotting",
        cluster=f"c{number}",
    )


def scored(number, mode, value, *, task="weed_crop_area", invalid=None):
    """A record with all of its metrics at ``value``."""
    of = sample(number, task=task)
    if invalid is not None:
        return Record(sample=of, mode=mode, invalid=invalid), []
    if mode == "step-by-step":
        made = Record(sample=of, mode=mode, actions=(Answer(text="x"), Answer(text="7 %")))
        rows = [Score(metric=metric, version="1", sample_id=of.id, step=0, value=value) for metric in PROCESS]
        return made, rows
    failed = Observation(error=ErrorInfo(kind="file_not_found", message="no such file"))
    steps = (
        Step(turn=0, kind="call", call=ToolCall(tool="calculate"), observation=failed),
        Step(turn=1, kind="answer", text="7 %"),
    )
    made = Record(sample=of, mode=mode, trajectory=Trajectory(steps=steps, termination="answered"), seconds=2.0)
    metrics = (*OUTCOME, "plot") if task == "plotting" else OUTCOME
    rows = [Score(metric=metric, version="1", sample_id=of.id, value=value) for metric in metrics]
    return made, rows


def summary(pairs, **options):
    pairs = list(pairs)
    return summarise([made for made, _ in pairs], [rows for _, rows in pairs], benchmark="field-rows", **options)


@cache
def full(shares=(0.25, 0.5, 0.75), n=20, **options):
    """Three modes with the given shares of right samples, ``n`` of them and two more with plots."""
    pairs = []
    for mode, share in zip(("no-tool", "step-by-step", "end-to-end"), shares, strict=True):
        pairs += [scored(number, mode, float(number < share * n)) for number in range(n)]
    pairs += [scored(n + extra, "end-to-end", 1.0, task="plotting") for extra in range(2)]
    return summary(pairs, **options)


def lines_of(text, title):
    """The lines of the table under ``title``, up to the next blank line."""
    lines = [line.rstrip() for line in text.splitlines()]
    start = next(at for at, line in enumerate(lines) if line.strip() == title)
    stop = next((at for at in range(start + 1, len(lines)) if not lines[at]), len(lines))
    return lines[start:stop]


def test_each_setting_has_a_table_with_values_intervals_and_sizes():
    text = tables_text([full(model="m1")])
    no_tool = "\n".join(lines_of(text, "No tools"))
    assert "FAS" in no_tool
    assert "n 20 (20)" in no_tool
    assert "25.0" in no_tool
    end_to_end = "\n".join(lines_of(text, "End to end"))
    assert "77.3" in end_to_end  # 17 of 22
    assert "n 22 (22)" in end_to_end
    assert "75.0" in "\n".join(lines_of(text, "End to end, on the samples of no-tool"))
    process = "\n".join(lines_of(text, "Step by step"))
    assert "EAR ↓" in process
    assert "strict 50.0" in process
    assert "truth 50.0" in process
    assert "Detectable difference" in text
    interval = full().modes["no-tool"].metrics["fas"].overall.interval
    assert f"{100 * interval.lower:.1f}–{100 * interval.upper:.1f}" in no_tool


def test_signs_shares_and_parts_of_one_run():
    made = full(model="m1")
    assert made.modes["no-tool"].metrics["fas"].overall.value == 0.25
    assert "0.25" not in tables_text([made])
    table = "\n".join(line for line in tables_text([full(model="m1")]).splitlines())
    assert "+50.0" in table
    assert "Gain from tools" in table
    text = tables_text([made])
    assert "weed crop area" in text
    assert "By answer type" in text
    assert "file_not_found 22" in text
    assert "answered 20" in text
    assert "weed crop area" not in tables_text([made], details=False)


def test_several_runs_have_a_row_each_and_columns_by_task_type():
    text = tables_text([full(model="first"), full((0.5, 0.5, 1.0), model="second")])
    table = lines_of(text, "End to end")
    assert sum("first" in line for line in table) == 1
    assert sum("second" in line for line in table) == 1
    assert any("100.0" in line for line in table)
    assert len([line for line in text.splitlines() if line.strip() == "End to end"]) == 1
    table = lines_of(text, "End to end, FAS, by task type and answer type")
    assert "second" in next(line for line in table if "first" in line)
    row = next(line for line in table if "weed crop area" in line)
    assert "75.0" in row
    assert "100.0" in row


def test_what_does_not_apply_is_a_dash_or_no_column():
    oracle = summary(
        [scored(number, "end-to-end", 1.0) for number in range(12)], model="baseline:oracle", privileged=True
    )
    text = tables_text([full(model="m1"), oracle])
    row = next(line for line in lines_of(text, "No tools") if "oracle" in line)
    assert row.count("—") == 2
    assert "without tools there is no reference call to make" in text
    assert "Plot" not in "\n".join(lines_of(text, "No tools")), "plots need a tool"
    assert "End to end, on the samples of no-tool" in text
    closed = summary([scored(number, "end-to-end", 1.0) for number in range(12)], model="m1")
    heading = lines_of(tables_text([closed]), "End to end")[1]
    assert heading.split() == ["FAS", "CSS", "Calls/needed"]
    both = lines_of(tables_text([closed, full(model="m2")]), "End to end")
    assert both[1].split() == ["FAS", "CSS", "Plot", "Calls/needed"]
    assert "—" in next(line for line in both if "m1" in line)
    lost = summary([scored(number, "end-to-end", 0.0, invalid="refused") for number in range(3)], model="m3")
    assert lines_of(tables_text([lost]), "End to end")[1].split() == ["FAS", "CSS", "OTS", "floor", "Plot"]


def test_privileged_policies_and_synthetic_benchmarks_are_marked():
    text = tables_text([full(model="baseline:oracle", privileged=True, synthetic=True)])
    assert "synthetic" in text.splitlines()[0]
    assert "privileged" in "\n".join(lines_of(text, "End to end (synthetic)"))
    assert "sees reference solutions" in " ".join(text.split())
    plain = tables_text([full(model="m1")])
    assert "synthetic" not in plain
    assert "privileged" not in plain


def test_under_ten_clusters_there_is_no_interval():
    text = tables_text([summary([scored(number, "end-to-end", number % 2) for number in range(8)], model="m1")])
    table = "\n".join(lines_of(text, "End to end"))
    assert "50.0" in table
    assert "n 8 (8)" in table
    assert "–" not in table


def test_too_many_invalid_records_leave_no_headline_but_bounds():
    pairs = [scored(number, "end-to-end", 1.0) for number in range(18)]
    pairs += [scored(number, "end-to-end", 0.0, invalid="HTTP 503\x1b[2J") for number in (18, 19)]
    text = tables_text([summary(pairs, model="m1")])
    table = "\n".join(lines_of(text, "End to end"))
    assert "90.0..100.0" in table
    assert "—" in table
    assert "2 of 20 records invalid (10.0 %)" in " ".join(text.split())
    assert "\x1b" not in text
    allowed = tables_text([summary(pairs, model="m1", allow_invalid=True)])
    assert "100.0" in "\n".join(lines_of(allowed, "End to end"))
    assert "2 of 20 records invalid" in " ".join(allowed.split())


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("n_runs", [1, 3, 6])
def test_no_line_is_wider_than_asked_and_no_value_is_cut(width, n_runs):
    runs = [full(model=f"organisation/a-model-with-a-long-name-{number}") for number in range(n_runs)]
    text = tables_text(runs, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "\n".join(lines_of(text, "Step by step")).count("strict 50.0") == 2 * n_runs


@pytest.mark.parametrize("name", ["a", "gpt4", "mid-sized"])
def test_no_figure_is_cut_beside_a_short_name(name):
    def figures(width):
        return sorted(re.findall(r"\d[\d.–]*", tables_text([full(model=name)], width=width)))

    assert [width for width in range(60, 126) if figures(width) != figures(200)] == []


@pytest.mark.parametrize("width", [20, 40, 60])
def test_no_value_is_cut_where_the_window_is_too_narrow_for_the_table(width):
    text = tables_text([full(model="organisation/a-model-with-a-long-name")], width=width)
    shown = text.partition("Step by step")[2]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert shown.count("27.7–72.3") >= 5
    assert shown.count("50.0") >= 7


def test_runs_of_other_benchmarks_or_without_records_are_told():
    other = summary([scored(0, "end-to-end", 1.0)], model="m2").model_copy(update={"benchmark": "other"})
    assert "not comparable" in tables_text([full(model="m1"), other])
    assert "no records" in tables_text([summarise([], model="m1")]).lower()
    rows = [line for line in lines_of(tables_text([full(model="m1"), full(model="m1")]), "End to end") if "m1" in line]
    assert [row.split()[0:2] for row in rows] == [["m1", "#1"], ["m1", "#2"]]


def test_what_is_not_a_terminal_gets_plain_text():
    written = io.StringIO()
    print_parts(tables([full(model="m1")]), written)
    assert "\x1b" not in written.getvalue()
    assert "77.3" in written.getvalue()


def test_open_text_and_records_without_a_judge_are_told_below():
    made = full()
    part = made.modes["end-to-end"].model_copy(update={"without_open_text": 3})
    text = tables_text([made.model_copy(update={"modes": {**made.modes, "end-to-end": part}})])
    assert "FAS without open text (3 samples that no judge graded)" in text
    assert "open text" not in tables_text([made])
    metrics = {**part.metrics, "fas_text": part.metrics["fas"]}
    made = made.model_copy(update={"modes": {"end-to-end": part.model_copy(update={"metrics": metrics})}})
    assert "text below FAS" in tables_text([made])
    assert "text below FAS" not in tables_text([made.model_copy(update={"model": "baseline:oracle"})])
    pairs = [scored(0, "no-tool", 1.0), scored(1, "end-to-end", 1.0, task="plotting")]
    text = tables_text([summary(pairs, model="m1")])
    assert "no sample of no-tool has a valid end-to-end record yet" in text
    assert "judge" not in text
