import numpy as np
import pytest

from agrotools.core import Observation, Record, Score, Trajectory
from agrotools.report.comparison import (
    between_runs_table,
    comparison_tables,
    more_samples,
)
from agrotools.report.explain import lost_reason
from agrotools.report.verdicts import verdict_text
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import compare, side_by_side, unpaired_comparison
from agrotools.scoring.lost_points import largest_part, lost_shares
from agrotools.scoring.statistics import Estimate, Interval
from agrotools.scoring.summary import Flips, Metric, RunComparison, with_comparisons_adjusted
from support.made_runs import call, end_to_end, made_sample
from support.plain_sample import plain_sample
from support.shown import cells_of, rendered, table_of


def printed(comparison: RunComparison, **options) -> str:
    return rendered(comparison_tables(comparison, **options))


def run(values, mode="end-to-end"):
    """A tally with a score for each sample, and its summary."""
    tally = RunAggregator()
    for number, value in enumerate(values):
        of = plain_sample(f"s{number}")
        made = Record(sample=of, mode=mode, trajectory=Trajectory(termination="answered"))
        tally.add(made, [Score(metric="fas", version="1", sample_id=of.id, value=value)])
    return tally


def beside(*runs, **changes):
    summaries = [
        tally.summary().model_copy(update={"model": f"m{at}", **changes})
        for at, tally in enumerate(runs)
    ]
    return side_by_side(summaries, runs)


def metric(value, lower, upper, **parts):
    overall = Estimate(
        value=value,
        interval=Interval(lower=lower, upper=upper),
        n=40,
        n_clusters=20,
        detectable=0.123,
    )
    return Metric(overall=overall, **parts)


def test_differences_stand_with_interval_size_and_smallest_detectable_difference():
    by_task = {
        "apple_size": Estimate(value=-0.25, n=4, n_clusters=4),
        "plotting": Estimate(value=0.5, n=2, n_clusters=2),
    }
    found = RunComparison(
        first="a",
        second="b",
        modes={"end-to-end": {"fas": metric(0.125, 0.031, 0.22, by_task_type=by_task)}},
        headline={"end-to-end": "fas"},
        means={"end-to-end": (0.625, 0.5)},
        flips={"end-to-end": Flips(metric="fas", n_equal=40)},
        unpaired={"end-to-end": (3, 0)},
    )
    rows = cells_of(table_of(comparison_tables(found, details=True), "end-to-end"))
    assert [cell.text for cell in rows["FAS"].values()] == [
        "+12.5 ",
        "+3.1 to +22.0",
        "—",
        "40 (20)",
        "12",
    ]
    assert rows["task apple size"]["difference"].estimate == by_task["apple_size"]
    rows = table_of(comparison_tables(found), "").rows
    assert [(row.cells[0].text, row.cells[3].text, row.is_dim) for row in rows] == [
        ("task plotting", "2", True), ("task apple size", "4", True),
    ]  # fmt: skip
    text = printed(found)
    assert text.startswith(
        "not tested, fewer than 10 clusters: b minus a = +12.5 points (+3.1 to +22.0)"
    )
    assert "not compared: 3 samples with a valid record only in the first run" in text
    assert "no mode in common" in printed(RunComparison(first="a", second="b"))


def difference(p, **changes):
    fields = {
        "value": 0.1,
        "interval": Interval(lower=0.01, upper=0.19),
        "n": 40,
        "n_clusters": 40,
        "p": p,
    }
    return Estimate.model_validate(fields | changes)


def test_headlines_are_adjusted_together_and_so_are_all_other_rows():
    fas = Metric(
        overall=difference(0.02),
        by_task_type={"apple_size": difference(0.001), "plotting": difference(0.5)},
        by_family={"CM": difference(0.001)},
    )
    css = Metric(
        overall=difference(0.03),
        by_task_type={"apple_size": difference(0.001), "plotting": difference(0.5)},
    )
    one = RunComparison(
        first="a",
        second="b",
        modes={"end-to-end": {"fas": fas, "css": css}},
        headline={"end-to-end": "fas"},
        means={"end-to-end": (0.6, 0.5)},
        by_cause={"end-to-end": {"planning": difference(0.04)}},
        flips={"end-to-end": Flips(metric="fas", n_equal=40)},
        unpaired={"end-to-end": (0, 0)},
    )
    found, same = with_comparisons_adjusted([one, one])
    metrics = found.modes["end-to-end"]
    assert found == same
    assert metrics["fas"].overall.p_adjusted == pytest.approx(0.04)
    # Four other rows are shown in each comparison: two task types, a cause, and another metric.
    assert metrics["fas"].by_task_type["apple_size"].p_adjusted == pytest.approx(0.008)
    assert metrics["css"].overall.p_adjusted == pytest.approx(0.18)
    assert found.by_cause["end-to-end"]["planning"].p_adjusted == pytest.approx(0.18)
    assert metrics["css"].by_task_type["apple_size"].p_adjusted is None
    assert metrics["fas"].by_family["CM"].p_adjusted is None
    text = printed(found, details=True)
    assert text.count("+10.0*") == 2
    assert text.startswith("b is better: 10.0 points (1.0 to 19.0)")
    assert "all other rows together (4)" in text


def records(values, steps=("2*3", "6 + 1"), answers=None, epochs=1):
    """A record for each value (1: right, 0: another answer) with these calls of ``calculate``."""
    return [
        end_to_end(
            made_sample(f"s{at}"),
            *(call(each) for each in steps),
            answer=f"rows: {7 if value else 9}",
            epoch=epoch,
        )
        for at, value in enumerate(values)
        for epoch in range(epochs)
    ]


def test_flips_name_samples_and_causes_add_up():
    found = compare(records([1, 1, 0, 0] * 5), records([1, 0, 1, 0] * 5), names=("a", "b"))
    flips = found.flips["end-to-end"]
    assert [flip.sample for flip in flips.up] == sorted(f"s{at}" for at in range(20) if at % 4 == 2)
    assert [flip.sample for flip in flips.down] == sorted(
        f"s{at}" for at in range(20) if at % 4 == 1
    )
    assert (flips.n_equal, flips.n_samples) == (10, 20)
    assert (flips.up[0].first, flips.up[0].second) == (0.0, 1.0)
    assert found.means["end-to-end"] == (0.5, 0.5)
    first = records([1] * 12 + [0] * 8)
    second = [*records([0] * 6, steps=()), *records([1] * 20)[6:]]
    found = compare(first, second)
    by_cause = found.by_cause["end-to-end"]
    assert by_cause["planning"].value == pytest.approx(-6 / 20)
    total = found.modes["end-to-end"]["fas"].overall.value
    assert (
        sum(each.value for each in by_cause.values())
        == pytest.approx(total)
        == pytest.approx(2 / 20)
    )


def test_the_cause_of_a_changed_sample_is_what_the_runs_lost_differently():
    """Both lack a call in one epoch; in the other one, the first run alone gives an answer that cannot be read."""
    both = call("2*3"), call("6 + 1", observation=Observation(result={"value": 7.0}))
    without_calls = end_to_end(made_sample(), answer="rows: 9", epoch=1)
    unread = end_to_end(made_sample(), *both, answer="rows: maybe")
    right = end_to_end(made_sample(), *both, answer="rows: 7")
    found = compare([unread, without_calls], [right, without_calls])
    assert [flip.cause for flip in found.flips["end-to-end"].up] == ["form"]


def test_a_cause_of_all_lost_points_has_the_interval_of_the_score():
    found = compare(records([1] * 20), records([1, 0, 1, 1] * 5))
    ((cause, lost),) = found.by_cause["end-to-end"].items()
    score = found.modes["end-to-end"]["fas"].overall
    assert (cause, lost.value) == ("answer", score.value)
    assert lost.interval == score.interval


@pytest.mark.parametrize(
    ("steps", "other", "cause"),
    [
        (("2*3",), ("2*3",), "answer"),
        (("2*3", "5 + 5"), ("2*3", "5 + 5"), "answer"),
        ((), (), "answer"),
        (("2*3",), ("2*3", "6 + 1"), "planning"),
        (("2*3", "6 + 1"), ("2*3", "6 + 1"), "tool:calculate"),
    ],
)
def test_equal_calls_with_equal_results_are_no_cause_of_a_difference(steps, other, cause):
    """Two runs that lack the same call lose points by planning, but differ in their answers alone."""
    seen = [call(each, observation=Observation(result={"value": 5.0})) for each in steps]
    said = "rows: 5" if cause == "tool:calculate" else "rows: 9"
    wrong = end_to_end(made_sample(), *seen, answer=said)
    beside = [
        call(each, observation=Observation(result={"value": 4.0 if cause != "answer" else 5.0}))
        for each in other
    ]
    found = compare([end_to_end(made_sample(), *beside, answer="rows: 7")], [wrong])
    assert [flip.cause for flip in found.flips["end-to-end"].down] == [cause]
    assert {name: each.value for name, each in found.by_cause["end-to-end"].items()} == {
        cause: -1.0
    }


@pytest.mark.parametrize(
    ("steps", "answer", "observed", "cause"),
    [
        (("2*3",), "rows: 9", 6.0, "planning"),
        (("2*3", "5 + 5"), "rows: 10", 10.0, "arguments"),
        (("2*3", "6 + 1"), "rows: 9", 9.0, "tool:calculate"),
        (("2*3", "6 + 1"), "rows: 9", None, "tool:calculate"),
        (("2*3", "6 + 1"), "rows: 9", 7.0, "reading"),
        (("2*3", "6 + 1"), "there are many", 7.0, "form"),
        (("2*3", "6 + 1"), None, 7.0, "planning"),
    ],
)  # fmt: skip
def test_causes_are_the_part_that_lost_most(steps, answer, observed, cause):
    calls = [call(each, observation=Observation(result={"value": observed})) for each in steps]
    record = end_to_end(made_sample(), *calls, answer=answer)
    assert largest_part(lost_shares(record, score_record(record))) == cause
    assert lost_reason(record, score_record(record), cause)


def test_runs_that_are_scored_together_are_compared_pair_by_pair():
    random = np.random.default_rng(2)
    equal = [random.random(40) for _ in range(7)]
    summaries = beside(
        run(np.clip(equal[0] + 0.5, 0, 1)), *map(run, equal[1:]), run(random.random(40))
    )
    found = summaries[0].between_runs
    assert len(found) == 28
    assert all(each.between_runs == found for each in summaries)
    assert {(each.first, each.second) for each in found if each.difference.differs()} == {
        (0, at) for at in range(1, 8)
    }
    assert all(each.difference.p <= each.difference.p_adjusted for each in found)
    (table,) = between_runs_table(summaries)
    assert "for all differences in this table (28)" in table.notes[0]
    assert len([row for row in table.rows if row.cells[1].lines[0].endswith("*")]) == 7
    first, second = RunAggregator(), RunAggregator()
    for tally, numbers in ((first, range(30)), (second, reversed(range(10, 50)))):
        for number in numbers:
            of = plain_sample(f"s{number}")
            made = Record(sample=of, mode="no-tool", trajectory=Trajectory(termination="answered"))
            value = number / 100 + (0.1 if tally is first else 0.0)
            tally.add(made, [Score(metric="fas", version="1", sample_id=of.id, value=value)])
    (found,) = beside(first, second)[0].between_runs
    assert (found.difference.n, found.difference.value) == (20, pytest.approx(-0.1))
    assert beside(run([1.0] * 20), run([0.0] * 20), privileged=True)[0].between_runs == ()
    assert beside(run([1.0] * 20))[0].between_runs == ()


def test_fresh_minus_published_is_not_paired():
    tallies = [RunAggregator(), RunAggregator()]
    for tally, values in zip(tallies, ([1] * 36 + [0] * 4, [1] * 20 + [0] * 20), strict=True):
        for each in records(values):
            tally.add(each, score_record(each))
    found = unpaired_comparison(tallies[0], tallies[1], ("published", "fresh"))
    estimate = found.modes["end-to-end"]["fas"].overall
    assert estimate.value == pytest.approx(-0.4)
    error = (0.09 / 39 + 0.25 / 39) ** 0.5
    assert estimate.interval.upper - estimate.value == pytest.approx(1.997 * error, rel=0.01)
    text = " ".join(printed(found, details=True).split())
    assert "lower on the samples of the second run: fresh minus published = -40.0 points" in text
    assert "not paired" in text


def test_the_number_of_further_samples_follows_from_the_growth_of_the_clusters():
    near = difference(0.3, detectable=0.2, growth=4.0, p_adjusted=0.3)
    assert more_samples(near) == 120
    assert more_samples(difference(0.3, detectable=0.2, p_adjusted=0.3)) is None
    assert verdict_text(near, ("a", "b")).startswith(
        "no difference shown: b minus a = +10.0 points"
    )
    shown = difference(0.01, detectable=0.2, growth=4.0, p_adjusted=0.01)
    assert more_samples(shown) is None
    worse = difference(
        0.01, value=-0.1, interval=Interval(lower=-0.19, upper=-0.01), p_adjusted=0.01
    )
    assert verdict_text(worse, ("a", "b")) == "a is better: 10.0 points (1.0 to 19.0)"
