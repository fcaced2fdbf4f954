import io

from agrotools.report.comparison import print_comparison
from agrotools.scoring import Comparison, Estimate, Interval, Metric


def printed(comparison: Comparison) -> str:
    written = io.StringIO()
    print_comparison(comparison, file=written)
    return written.getvalue()


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
    assert "12.3" in text
    assert "apple size" in text
    assert "-25.0" in text
    assert "3 samples are left out" in text


def test_runs_without_a_common_mode_are_said_to_have_none():
    assert "no mode in common" in printed(Comparison(first="a", second="b"))
