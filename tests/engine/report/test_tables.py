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
from agrotools.report.layout import Paragraph, new_table, value_cell
from agrotools.report.tables import tables
from agrotools.report.text_tables import csv_text, latex, markdown, tables_page
from agrotools.scoring.metrics import ONLY_IN_JSON
from agrotools.scoring.statistics import Estimate, Interval
from support.plain_sample import plain_sample
from support.runs import summarise
from support.shown import cells_of, rendered, table_of, tables_text

DERIVED = {"from": "steps[0].observation.value"}
SLOT = ToleranceSlot(name="area", label="area", value=7, unit="%", abs_tol=0.5, **DERIVED)
CALL = ReferenceStep(tool="calculate", arguments={"expression": "1"})
OUTCOME = ("fas", "css")
PROCESS = (
    "st_acc",
    "tool_acc",
    "tool_acc_strict",
    "arg_acc",
    "arg_acc_strict",
    "ear",
    "summ_acc",
    "summ_acc_truth",
)


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
        rows = [
            Score(metric=metric, version="1", sample_id=of.id, step=0, value=value)
            for metric in PROCESS
        ]
        return made, rows
    failed = Observation(error=ErrorInfo(kind="file_not_found", message="no such file"))
    steps = (
        Step(turn=0, kind="call", call=ToolCall(tool="calculate"), observation=failed),
        Step(turn=1, kind="answer", text="7 %"),
    )
    made = Record(
        sample=of,
        mode=mode,
        trajectory=Trajectory(steps=steps, termination="answered"),
        seconds=2.0,
    )
    metrics = (*OUTCOME, "plot") if task == "plotting" else OUTCOME
    rows = [Score(metric=metric, version="1", sample_id=of.id, value=value) for metric in metrics]
    return made, rows


def summary(pairs, **options):
    pairs = list(pairs)
    return summarise(
        [made for made, _ in pairs], [rows for _, rows in pairs], benchmark="field-rows", **options
    )


@cache
def full(shares=(0.25, 0.5, 0.75), n=20, **options):
    """Three modes with the given shares of right samples, ``n`` of them and two more with plots."""
    pairs = []
    for mode, share in zip(("no-tool", "step-by-step", "end-to-end"), shares, strict=True):
        pairs += [scored(number, mode, float(number < share * n)) for number in range(n)]
    pairs += [scored(n + extra, "end-to-end", 1.0, task="plotting") for extra in range(2)]
    return summary(pairs, **options)


def shown(*summaries, title="End to end"):
    """The cells of a table of these runs."""
    return cells_of(table_of(tables(summaries), title))


def text_below(*summaries):
    return "\n".join(part.text for part in tables(summaries) if isinstance(part, Paragraph))


def test_each_setting_has_a_table_whose_cells_hold_estimates():
    made = full(model="m1")
    parts = tables([made])
    no_tool, end_to_end, part = (
        table_of(parts, title)
        for title in ("No tools", "End to end", "End to end, on the samples of no-tool")
    )
    assert [table.columns[1].heading for table in (no_tool, end_to_end, part)] == [
        ("FAS", "n 20 (20)"), ("FAS", "n 22 (22)"), ("FAS", "n 20 (20)"),
    ]  # fmt: skip
    cell = cells_of(no_tool)["m1"]["FAS"]
    assert cell.estimate == made.modes["no-tool"].metrics["fas"].overall
    assert cell.lines == ("25.0", "9.9–50.3")
    assert [cells_of(table)["m1"]["FAS"].lines[0] for table in (end_to_end, part)] == [
        "77.3",
        "75.0",
    ]  # 17 of 22
    process = cells_of(table_of(parts, "Step by step"))["m1"]
    assert (process["ToolAcc"].lines[-1], process["SummAcc"].lines[-1]) == (
        "strict 50.0",
        "truth 50.0",
    )
    assert "EAR ↓" in process
    assert any("Detectable difference" in note for note in end_to_end.notes)
    gain = "Gain from tools: end to end minus no tools, paired by sample, points"
    assert cells_of(table_of(parts, gain))["m1"]["FAS"].lines[0] == "+50.0*"
    by_part = cells_of(table_of(parts, "By task type and answer type"))
    assert by_part["weed crop area"]["no-tool: FAS"].lines == ("25.0", "9.9–50.3", "20 (20)")
    assert by_part["By answer type"]["no-tool: FAS"].text == ""
    counts = next(part for part in parts if getattr(part, "title", "").startswith("Run statistics"))
    assert {"end-to-end: ended: answered 22", "end-to-end: failed calls: file_not_found 22"} <= {
        *counts.notes
    }
    assert len(tables([made], details=False)) < len(parts)


def test_several_runs_have_a_row_each_and_columns_by_task_type():
    runs = [full(model="first"), full((0.5, 0.5, 1.0), model="organisation/second")]
    assert [*shown(*runs)] == ["first", "organisation/second"]
    by_task = shown(*runs, title="End to end, FAS, by task type and answer type")["weed crop area"]
    assert {run: cell.lines[0] for run, cell in by_task.items()} == {
        "first": "75.0",
        "second": "100.0",
    }
    assert [*shown(full(model="m1"), full(model="m1"))] == ["m1 #1", "m1 #2"]


def test_what_does_not_apply_is_a_dash_or_no_column():
    twelve = [scored(number, "end-to-end", 1.0) for number in range(12)]
    oracle = summary(twelve, model="baseline:oracle", privileged=True)
    runs = [full(model="m1"), oracle]
    assert {
        cell.lines[0][0] for cell in shown(*runs, title="No tools")["baseline:oracle"].values()
    } == {"—"}
    assert "not run in this mode" in text_below(*runs)
    assert "Plot" not in shown(*runs, title="No tools")["m1"], "plots need a tool"
    closed = summary(twelve, model="m1")
    assert [*shown(closed)["m1"]] == ["FAS", "CSS", "Calls/needed"]
    both = shown(closed, full(model="m2"))["m1"]
    assert [*both] == ["FAS", "CSS", "Plot", "Calls/needed"]
    assert both["Plot"].lines[0].startswith("—")
    lost = summary(
        [scored(number, "end-to-end", 0.0, invalid="refused") for number in range(3)], model="m3"
    )
    assert [*shown(lost)["m3"]] == ["FAS", "CSS", "Plot"]
    pairs = [scored(0, "no-tool", 1.0), scored(1, "end-to-end", 1.0, task="plotting")]
    assert "no sample of no-tool has a valid end-to-end record yet" in text_below(
        summary(pairs, model="m1")
    )


def test_what_limits_a_result_is_marked():
    oracle = full(model="baseline:oracle", privileged=True, synthetic=True)
    table = table_of(tables([oracle]), "End to end (drawn pictures)")
    assert table.rows[0].cells[0].lines == ("baseline:oracle", "privileged")
    assert "sees reference solutions" in text_below(oracle)
    assert "drawn pictures" in tables([oracle])[0].text
    assert "synthetic" not in tables_text([full(model="m1")])
    eight = summary([scored(number, "end-to-end", number % 2) for number in range(8)], model="m1")
    assert shown(eight)["m1"]["FAS"].lines == ("50.0",)
    other = summary([scored(0, "end-to-end", 1.0)], model="m2").model_copy(
        update={"benchmark": "other"}
    )
    assert "not comparable" in text_below(full(model="m1"), other)
    assert "No records" in text_below(summarise([], model="m1"))


def test_too_many_invalid_records_leave_no_headline_but_bounds():
    pairs = [scored(number, "end-to-end", 1.0) for number in range(18)]
    pairs += [scored(number, "end-to-end", 0.0, invalid="HTTP 503\x1b[2J") for number in (18, 19)]
    lost = summary(pairs, model="m1")
    value, bounds = shown(lost)["m1"]["FAS"].lines
    assert (value[0], bounds) == ("—", "90.0..100.0")
    assert "2 of 20 records invalid (10.0 %)" in text_below(lost)
    assert "\x1b" not in tables_text([lost])
    assert shown(summary(pairs, model="m1", allow_invalid=True))["m1"]["FAS"].lines[0] == "100.0"


def test_open_text_and_records_without_a_judge_are_told_below():
    made = full()
    part = made.modes["end-to-end"].model_copy(update={"without_open_text": 3})
    graded = made.model_copy(update={"modes": {**made.modes, "end-to-end": part}})
    assert (
        "the score leaves out open text in 3 questions, because no judge graded it"
        in text_below(graded)
    )
    assert "open text" not in text_below(made)


def test_scores_of_plain_rules_are_in_no_table():
    made = full(model="m1")
    part = made.modes["end-to-end"]
    ruled = dict.fromkeys(ONLY_IN_JSON, part.metrics["fas"])

    def with_metrics(metrics):
        return made.model_copy(
            update={"modes": {"end-to-end": part.model_copy(update={"metrics": metrics})}}
        )

    assert tables_text([with_metrics({**part.metrics, **ruled})]) == tables_text(
        [with_metrics(part.metrics)]
    )
    advice = with_metrics({"ots_floor": part.metrics["fas"]})
    assert shown(advice)["m1"]["FAS"].lines[0].startswith("—")
    assert "the answers are open text, which a judge scores" in text_below(advice)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
@pytest.mark.parametrize("n_runs", [1, 6])
def test_no_line_is_wider_than_the_terminal_and_no_value_is_cut(width, n_runs):
    runs = [
        full(model=f"organisation/a-model-with-a-long-name-{number}") for number in range(n_runs)
    ]
    text = tables_text(runs, width=width, details=False)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert re.findall("strict [0-9.]+", " ".join(text.split())) == ["strict 50.0"] * 2 * n_runs


def test_a_table_reads_alike_in_every_surface():
    table = new_table("T & co", ["FAS\nn 20"])
    estimate = Estimate(value=0.5, interval=Interval(lower=0.25, upper=0.75), n=20, n_clusters=20)
    table.add_row("a|b", value_cell(estimate))
    table.notes.append("100 % of them")
    text = rendered([table])
    page = tables_page([table], "title")
    for surface in (text, page, markdown([table]), latex([table], "title")):
        assert re.search(r"50\.0\W.*25\.0–75\.0", surface, re.DOTALL)
        assert "n 20" in surface
    assert "\x1b" not in text
    assert r"| a\|b | 50.0 (25.0–75.0) |" in markdown([table])
    assert r"a\textbar{}b & 50.0 {\scriptsize 25.0–75.0} \\" in latex([table], "title")
    assert r"\caption{T \& co. 100 \% of them.}" in latex([table], "title")
    assert "<h3>T &amp; co</h3>" in page
    assert csv_text([["=cmd|' /C calc'!A0", -3.5, "a"]]) == "'=cmd|' /C calc'!A0,-3.5,a\n"


def test_scores_of_steps_are_also_shown_net_of_the_usual_plan():
    shares = {"tool_acc": 0.7, "tool_acc_guess": 0.4, "arg_acc": 0.2, "arg_acc_guess": 0.4}
    records, scores = [], []
    for number in range(12):
        one, _ = scored(number, "step-by-step", 1.0)
        records.append(one)
        scores.append(
            [
                Score(metric=metric, version="1", sample_id=one.sample.id, step=0, value=value)
                for metric, value in shares.items()
            ]
        )
    text = tables_text([summarise(records, scores)])
    assert "net 50.0" in text  # (70 - 40) / (100 - 40)
    assert "net -33.3" in text
    assert "below 0 it is worse than the usual plan" in " ".join(text.split())
