import io

import numpy as np
import pytest

from agrotools.core import Record, Score, Trajectory
from agrotools.report.comparison import print_comparison
from agrotools.report.html.result_tables import result_tables
from agrotools.report.tables import tables_text
from agrotools.scoring import Comparison, Estimate, Interval, Metric, RunAggregator
from agrotools.scoring.aggregate import side_by_side
from agrotools.scoring.summary import with_comparison_adjusted
from support.plain_sample import plain_sample


def printed(comparison: Comparison, **options) -> str:
    written = io.StringIO()
    print_comparison(comparison, file=written, **options)
    return written.getvalue()


def run(values, mode="end-to-end"):
    """A tally with a score for each sample, and its summary."""
    tally = RunAggregator()
    for number, value in enumerate(values):
        of = plain_sample(f"s{number}")
        made = Record(sample=of, mode=mode, trajectory=Trajectory(termination="answered"))
        tally.add(made, [Score(metric="agrotools.fas", version="1", sample_id=of.id, value=value)])
    return tally


def beside(*runs, **changes):
    summaries = [tally.summary().model_copy(update={"model": f"m{at}", **changes}) for at, tally in enumerate(runs)]
    return side_by_side(summaries, runs)


def metric(value, lower, upper, **parts):
    overall = Estimate(value=value, interval=Interval(lower=lower, upper=upper), n=40, n_clusters=20, detectable=0.123)
    return Metric(overall=overall, **parts)


def test_differences_stand_with_interval_size_and_smallest_detectable_difference():
    text = printed(
        Comparison(
            first="a",
            second="b",
            modes={
                "end-to-end": {
                    "agrotools.fas": metric(
                        0.125,
                        0.031,
                        0.22,
                        by_task_type={
                            "apple_size": Estimate(value=-0.25, n=4, n_clusters=4),
                            "plotting": Estimate(value=0.5, n=2, n_clusters=2),
                        },
                    )
                }
            },
            unpaired={"end-to-end": 3},
        )
    )
    assert "a minus b" in text
    assert "+12.5" in text
    assert "+3.1 to +22.0" in text
    assert "40 (20)" in text
    assert "  12\n" in text or " 12 " in text
    assert "apple size" in text
    assert "-25.0" in text
    assert "valid record of 3 samples" in text


def test_runs_without_a_common_mode_are_said_to_have_none():
    assert "no mode in common" in printed(Comparison(first="a", second="b"))


def difference(p, **changes):
    fields = {"value": 0.1, "interval": Interval(lower=0.01, upper=0.19), "n": 40, "n_clusters": 40, "p": p}
    return Estimate.model_validate(fields | changes)


def test_all_differences_that_a_comparison_shows_are_adjusted_together():
    fas = Metric(
        overall=difference(0.02),
        by_task_type={"apple_size": difference(0.001), "plotting": difference(0.5)},
        by_family={"CM": difference(0.001)},
    )
    css = Metric(overall=difference(0.03), by_task_type={"apple_size": difference(0.001), "plotting": difference(0.5)})
    found = with_comparison_adjusted(
        Comparison(first="a", second="b", modes={"end-to-end": {"agrotools.fas": fas, "agrotools.css": css}})
    )
    metrics = found.modes["end-to-end"]
    # Four are shown: two metrics, and the task types of the first.
    assert metrics["agrotools.fas"].by_task_type["apple_size"].p_adjusted == pytest.approx(0.004)
    assert metrics["agrotools.fas"].overall.p_adjusted == pytest.approx(0.06)
    assert metrics["agrotools.css"].by_task_type["apple_size"].p_adjusted is None
    assert metrics["agrotools.fas"].by_family["CM"].p_adjusted is None
    text = printed(found)
    assert text.count("+10.0*") == 1
    assert "for all differences in these tables (4)" in text


def test_runs_that_are_scored_together_are_compared_pair_by_pair():
    random = np.random.default_rng(2)
    equal = [random.random(40) for _ in range(7)]
    summaries = beside(run(np.clip(equal[0] + 0.5, 0, 1)), *map(run, equal[1:]), run(random.random(40)))
    found = summaries[0].between_runs
    assert len(found) == 28
    assert all(each.between_runs == found for each in summaries)
    assert {(each.first, each.second) for each in found if each.difference.differs()} == {(0, at) for at in range(1, 8)}
    assert all(each.difference.p <= each.difference.p_adjusted for each in found)
    text = tables_text(summaries, details=False)
    assert "for all differences in this table (28)" in text
    assert text.count("*\n") + text.count("* ") >= 7
    page = result_tables(summaries)
    assert any(table.title.startswith("Differences between runs") for table in page.main)


def test_pairs_are_on_the_samples_of_both_whatever_their_order():
    first, second = RunAggregator(), RunAggregator()
    for tally, numbers in ((first, range(30)), (second, reversed(range(10, 50)))):
        for number in numbers:
            of = plain_sample(f"s{number}")
            made = Record(sample=of, mode="no-tool", trajectory=Trajectory(termination="answered"))
            value = number / 100 + (0.1 if tally is first else 0.0)
            tally.add(made, [Score(metric="agrotools.fas", version="1", sample_id=of.id, value=value)])
    (found,) = beside(first, second)[0].between_runs
    assert (found.difference.n, found.difference.value) == (20, pytest.approx(0.1))


def test_policies_that_see_the_gold_are_in_no_pair():
    assert beside(run([1.0] * 20), run([0.0] * 20), privileged=True)[0].between_runs == ()
    assert beside(run([1.0] * 20))[0].between_runs == ()
