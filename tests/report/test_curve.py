"""Curves of score against dose: losses of the tools and of the model told apart on planted runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import UsageError
from agrotools.report.curve import ORACLE, CurvePoint, dose_curve
from support.made_runs import end_to_end, made_sample, write_run

N = 40


def planted(
    folder: Path, model: str, degrade: str, is_right: Callable[[int], bool], n: int = N, **changes: Any
) -> Path:
    """A run on ``n`` samples that answers those right for which ``is_right`` holds."""
    records = [
        end_to_end(made_sample(f"s{k}", cluster=f"s{k}"), answer=f"rows: {7 if is_right(k) else 9}") for k in range(n)
    ]
    about = {"model": model, "degrade": degrade, "clean_hash": "clean" if degrade else "", "benchmark_hash": "clean"}
    if degrade:
        about["benchmark_hash"] = degrade
    return write_run(folder / f"{model.replace(':', '-')}-{degrade}", records, **{**about, **changes})


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The oracle loses 20 of 40 by blur. The model has 30 and loses 20: 10 where the tools fail, too, 10 of its own."""
    return [
        planted(tmp_path, "m", "blur=2", lambda k: k < 10),
        planted(tmp_path, ORACLE, "", lambda _k: True),
        planted(tmp_path, "m", "", lambda k: k < 30),
        planted(tmp_path, ORACLE, "blur=2", lambda k: k < 20),
    ]


def point(points: tuple[CurvePoint, ...], model: str, label: str) -> CurvePoint:
    return next(each for each in points if (each.model, each.label) == (model, label))


def test_the_models_own_loss_is_what_the_tools_do_not_lose(runs: list[Path], tmp_path: Path):
    curve = dose_curve(runs)
    assert (curve.n, curve.n_dropped, curve.mode) == (N, 0, "end-to-end")
    assert [(each.model, each.label) for each in curve.points] == [
        (ORACLE, "none"), (ORACLE, "blur=2"), ("m", "none"), ("m", "blur=2"),
    ]  # fmt: skip
    oracle, model = point(curve.points, ORACLE, "blur=2"), point(curve.points, "m", "blur=2")
    clean = point(curve.points, "m", "none")
    losses = [oracle.loss, model.loss, model.own_loss, model.below_oracle, clean.below_oracle]
    assert [each and round(each.value, 3) for each in losses] == [0.5, 0.5, 0.25, 0.25, 0.25]
    assert all(each and each.interval and each.interval.lower < each.value < each.interval.upper for each in losses)
    assert (clean.loss, clean.own_loss) == (None, None)
    shorter = planted(tmp_path, "m", "blur=4", lambda _k: True, n=30)
    curve = dose_curve([*runs, shorter])
    assert (curve.n, curve.n_dropped) == (30, 10)
    assert point(curve.points, "m", "none").score.value == 1
    (only,) = dose_curve(runs[:1]).points
    assert (only.loss, only.below_oracle, only.own_loss) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "mode", "metric", "message"),
    [
        ({"benchmark_hash": "other"}, None, "fas", "one benchmark"),
        ({}, "no-tool", "fas", "no no-tool mode in common"),
        ({}, None, "agrotools.nonsense", "has no agrotools.nonsense"),
    ],
)
def test_runs_that_make_no_curve(runs: list[Path], tmp_path: Path, changes: Any, mode: Any, metric: str, message: str):
    further = planted(tmp_path, "n", "", lambda _k: True, **changes)
    with pytest.raises(UsageError, match=message):
        dose_curve([*runs, further], mode=mode, metric=metric)


def test_the_models_own_loss_is_drawn_and_two_runs_of_a_dose_are_refused(runs: list[Path], tmp_path: Path):
    with pytest.raises(UsageError, match="2 runs of m at blur=2"):
        dose_curve([*runs, runs[0]])
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        picture = tmp_path / f"curve{suffix}"
        done = CliRunner().invoke(app, ["chart", "dose", *map(str, runs), "--out", str(picture)])
        assert done.exit_code == 0, done.output
        assert picture.read_bytes().startswith(head)
        assert "+25.0" in done.output
    wrong = CliRunner().invoke(app, ["chart", "dose", *map(str, runs), "--out", str(tmp_path / "curve.txt")])
    assert isinstance(wrong.exception, UsageError)
