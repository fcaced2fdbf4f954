"""Correlations of steps with answers: over the samples of a run, and over runs."""

import random
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from agrotools.core import Mode
from agrotools.scoring import Estimate, Metric, ModeSummary, Summary
from agrotools.scoring.correlations import across_runs, correlations, with_correlations
from agrotools.scoring.summary import PublishedFigures
from agrotools.scoring.units import Rows, SampleTable, Units, units_of
from support.plain_sample import plain_sample


def table_of(count: int, files: int = 0) -> SampleTable:
    table = SampleTable()
    for number in range(count):
        cluster = f"s{number % files}" if files else f"s{number}"
        table.number(plain_sample(f"s{number}", cluster=cluster))
    return table


def units(metric: str, values: dict[int, list[float]], table: SampleTable) -> Units:
    rows = Rows()
    for place, step_values in enumerate(values.values()):
        for step, value in enumerate(step_values):
            rows.add(place, None if len(step_values) == 1 else step, value)
    numbers = [table.number(plain_sample(f"s{sample}")) for sample in values]
    n = len(values)
    return units_of(metric, rows, array("I", numbers), array("I", [1] * n), array("I", [0] * n), table)


def test_samples_of_one_file_count_as_one_draw():
    lots = random.Random(5)
    values = [lots.random() for _ in range(12)]
    apart, shared = table_of(240), table_of(240, files=12)
    steps = {n: [values[n % 12], values[n % 12]] for n in range(240)}
    outcome = {n: [min(1.0, values[n % 12] / 2 + 0.4 * ((n % 12) % 2))] for n in range(240)}
    widths = []
    for table in (apart, shared):
        (result,) = correlations(
            {"arg_acc": units("arg_acc", steps, table)}, {"fas": units("fas", outcome, table)}, table
        )
        widths.append(result.interval.upper - result.interval.lower)
    assert widths[1] > 2 * widths[0]


def metric(value: float) -> Metric:
    return Metric(overall=Estimate(value=value, n=40, n_clusters=40))


def part(metrics: dict[str, float], published: PublishedFigures | None = None, **changes) -> ModeSummary:
    by_name = {name: metric(value) for name, value in metrics.items()}
    fields = {"n_records": 40, "n_samples": 40, "n_clusters": 40, "epochs": 1, "metrics": by_name}
    return ModeSummary.model_validate({**fields, "published": published, **changes})


def run(name: str, step: float, outcome: float, *, benchmark: str = "b", **changes) -> Summary:
    modes: dict[Mode, ModeSummary] = {
        "step-by-step": part({"arg_acc": step, "tool_acc": 0.5}),
        "end-to-end": part({"fas": outcome}),
    }
    return Summary(benchmark=benchmark, benchmark_version="1", model=name, modes=modes).model_copy(update=changes)


@given(st.lists(st.tuples(st.sampled_from([k / 8 for k in range(9)]), st.floats(0, 1)), min_size=3, max_size=15))
def test_r_and_rho_are_those_of_scipy(values):
    result = across_runs([run(f"m{at}", *pair) for at, pair in enumerate(values)])
    (correlation,) = [each for each in result.correlations if each.step == "arg_acc"]
    x, y = np.array(values).T
    if correlation.pearson is None:
        assert np.ptp(x) * np.ptp(y) < 1e-6
        return
    assert correlation.n == len(values)
    assert correlation.pearson == pytest.approx(pearsonr(x, y)[0], abs=1e-6)
    assert correlation.spearman == pytest.approx(spearmanr(x, y)[0], abs=1e-9)
    assert (correlation.interval is None) == (len(values) < 10 or abs(correlation.pearson) > 1 - 1e-12)


def test_the_interval_is_that_of_fishers_z():
    lots = random.Random(1)
    values = [(step, step + lots.gauss(0, 0.2)) for step in (lots.random() for _ in range(12))]
    result = across_runs([run(f"m{at}", *pair) for at, pair in enumerate(values)])
    correlation = next(each for each in result.correlations if each.step == "arg_acc")
    theirs = pearsonr(*np.array(values).T).confidence_interval(0.95)
    assert (correlation.interval.lower, correlation.interval.upper) == pytest.approx(
        (theirs.low, theirs.high), abs=1e-6
    )


def test_only_counting_runs_of_one_benchmark_are_set_together():
    good = [run(name, step, step) for name, step in (("a", 0.1), ("b", 0.5), ("c", 0.3))]
    one_mode = run("d", 0.1, 0.9)
    one_mode = one_mode.model_copy(update={"modes": {"end-to-end": one_mode.modes["end-to-end"]}})
    invalid = run("e", 0.1, 0.9)
    modes = {**invalid.modes, "end-to-end": part({"fas": 0.9}, headline=False)}
    others = [run("oracle", 1, 1, privileged=True), one_mode, invalid.model_copy(update={"modes": modes})]
    result = across_runs([*good, *others])
    assert result.runs == ("a", "b", "c")
    assert list(result.left_out.values()) == [("oracle",), ("d",), ("e",)]
    assert across_runs([*good[:2], *others]) is None
    here = [run(f"m{at}", at / 4, at / 4) for at in range(3)]
    there = [run(f"m{at}", at / 4, 1 - at / 4, benchmark="other") for at in range(3)]
    split = [run(f"m{at}", 0, 0, benchmark_options={"split": "sar"}) for at in range(2)]
    across = [each.across_runs for each in with_correlations([*here, *there, *split])]
    assert [each and (each.benchmark, round(each.correlations[1].pearson or 0, 6)) for each in across] == [
        *[("b", 1.0)] * 3, *[("other", -1.0)] * 3, None, None,
    ]  # fmt: skip


def figures(mode: Mode, value: float) -> PublishedFigures:
    name = "tool_acc" if mode == "step-by-step" else "ans_acc"
    other = Estimate(value=1 - value, n=40, n_clusters=40)
    reference = {f"gta.{name}": value, "gta.inst_acc": None}
    return PublishedFigures(family="gta", reference=reference, corrected={f"gta.{name}_corrected": other})


def published_runs() -> list[Summary]:
    runs: list[Summary] = []
    for at, (step, outcome) in enumerate(((0.1, 0.2), (0.5, 0.4), (0.3, 0.9), (0.7, 0.8))):
        summary = run(f"m{at}", step, outcome, benchmark="gta")
        modes: dict[Mode, ModeSummary] = {
            mode: each.model_copy(update={"published": figures(mode, step if mode == "step-by-step" else outcome)})
            for mode, each in summary.modes.items()
        }
        runs.append(summary.model_copy(update={"modes": modes}))
    return runs


def test_the_papers_metrics_go_with_each_other():
    result = across_runs(published_runs())
    pairs = {(each.step, each.outcome) for each in result.correlations}
    assert pairs == {
        ("arg_acc", "fas"),
        ("tool_acc", "fas"),
        ("gta.tool_acc", "gta.ans_acc"),
        ("gta.tool_acc_corrected", "gta.ans_acc_corrected"),
    }
