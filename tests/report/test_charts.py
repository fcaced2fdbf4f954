"""Charts of made runs whose figures are known: size, calls, difficulty, depth, and score against dose."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import (
    ErrorInfo,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    ToolCall,
    UsageError,
)
from agrotools.report.charts import CALLS, DIFFICULTY, Chart, chart_of, read_attributes
from agrotools.report.curve import ORACLE, CurvePoint, dose_curve
from agrotools.scoring.matching import call_outcomes
from support.made_runs import call, end_to_end, made_sample, predicted, right, write_run

FAILED = Observation(error=ErrorInfo(kind="nothing_found", message="nothing"))
ONE_CALL = ReferenceTrajectory(steps=made_sample().reference.steps[:1])  # pyright: ignore[reportOptionalMemberAccess]


def run(folder: Path, name: str, records: Sequence[Record], **changes: Any) -> Path:
    return write_run(folder / name.replace(":", "-"), records, **{"model": name, **changes})


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """30 samples by level: ``good`` fails the 10 hardest, ``bad`` all but the 5 easiest. The first 12 need one call."""

    def sample(k: int) -> Any:
        changes = {"reference": ONE_CALL} if k < 12 else {}
        return made_sample(f"s{k:02}", cluster=f"s{k}", difficulty={"level": k / 29}, **changes)

    rights = {"good": 20, "bad": 5}
    return [
        run(
            tmp_path,
            name,
            [end_to_end(sample(k), answer=f"rows: {7 if k < n else 9}") for k in range(30)],
        )
        for name, n in rights.items()
    ]


def values(chart: Chart, axis: str) -> dict[tuple[str, str], tuple[float, int]]:
    return {
        (row.model, row.group): (round(row.value.value, 3), row.value.n)
        for row in chart.rows
        if row.axis == axis
    }


def test_scores_are_drawn_by_level_calls_and_chain_lengths(runs: list[Path], tmp_path: Path):
    assert values(chart_of("difficulty", runs), DIFFICULTY) == {
        ("good", "easiest third"): (1, 10), ("good", "middle third"): (1, 10), ("good", "hardest third"): (0, 10),
        ("bad", "easiest third"): (0.5, 10), ("bad", "middle third"): (0, 10), ("bad", "hardest third"): (0, 10),
    }  # fmt: skip
    chart = chart_of("depth", runs)
    assert values(chart, CALLS) == {
        ("good", "1"): (1, 12), ("good", "2"): (round(8 / 18, 3), 18),
        ("bad", "1"): (round(5 / 12, 3), 12), ("bad", "2"): (0, 18),
    }  # fmt: skip
    thirds = ("easiest third", "middle third", "hardest third")
    assert [*values(chart, DIFFICULTY)] == [
        (model, third) for model in ("good", "bad") for third in thirds
    ]
    shorter = run(
        tmp_path, "short", [right(made_sample(f"s{k:02}", cluster=f"s{k}")) for k in range(25)]
    )
    chart = chart_of("depth", [*runs, shorter])
    assert (chart.n, chart.n_dropped) == (25, 5)


def test_the_benchmarks_own_levels_come_first_and_epochs_are_averaged(tmp_path: Path):
    records = [
        right(
            made_sample(
                f"s{k}",
                difficulty={"level": k / 9},
                groups={"difficulty": "hard" if k < 4 else "easy"},
            )
        )
        for k in range(10)
    ]
    chart = chart_of("difficulty", [run(tmp_path, "m", records)])
    assert [(row.group, row.value.n, row.value.interval) for row in chart.rows] == [
        ("easy", 6, None),
        ("hard", 4, None),
    ]
    sample = made_sample(groups={"difficulty": "easy"})
    records = [
        end_to_end(sample, answer=f"rows: {7 if epoch else 9}", epoch=epoch) for epoch in range(4)
    ]
    assert (
        chart_of("difficulty", [run(tmp_path, "e", records, epochs=4)]).rows[0].value.value == 0.75
    )


def test_long_chains_are_joined(tmp_path: Path):
    step = made_sample().reference.steps[0]  # pyright: ignore[reportOptionalMemberAccess]
    lengths = [1] * 12 + [2] * 6 + [4] * 5
    records = [
        end_to_end(made_sample(f"s{k}", reference=ReferenceTrajectory(steps=(step,) * n), answer=(
            {"type": "tolerance", "name": "rows", "label": "rows", "value": 7},)))
        for k, n in enumerate(lengths)
    ]  # fmt: skip
    chart = chart_of("depth", [run(tmp_path, "m", records)])
    assert values(chart, CALLS) == {("m", "1"): (1, 12), ("m", "2+"): (1, 11)}
    assert "no difficulty" in chart.notes[0]


def test_calls_have_one_outcome_and_are_means_over_epochs(tmp_path: Path):
    other = call("1", 5, call=ToolCall(tool="count_objects", arguments={}))
    record = end_to_end(
        made_sample(),
        call("2*3"),
        call("6 + 2", 1),
        call("9", 2),
        other,
        call("8", 6, observation=FAILED),
    )
    assert call_outcomes(record) == ["right", "wrong arguments", "surplus", "wrong tool", "error"]
    step = ReferenceStep(tool="calculate", arguments={"expression": "2*3"}, observation=FAILED)
    sample = made_sample(reference=ReferenceTrajectory(steps=(step,)))
    timed_out = Observation(error=ErrorInfo(kind="timeout", message="late"))
    assert call_outcomes(end_to_end(sample, call("2*3", observation=FAILED))) == ["right"]
    assert call_outcomes(end_to_end(sample, call("2*3", observation=timed_out))) == ["error"]
    twice = [
        right(made_sample()),
        end_to_end(made_sample(), call("2*3"), call("1 / 0", observation=FAILED), epoch=1),
    ]
    (row,) = chart_of("calls", [run(tmp_path, "m", twice, epochs=2)]).calls
    assert row.outcomes == {
        "right": 1.5,
        "wrong arguments": 0,
        "surplus": 0,
        "wrong tool": 0,
        "error": 0.5,
    }
    assert row.needed == 2


def models_file(folder: Path, text: str) -> Path:
    (folder / "models.toml").write_text(text)
    return folder / "models.toml"


def test_models_without_attributes_are_named_and_runs_that_do_not_fit_refused(
    runs: list[Path], tmp_path: Path
):
    file = models_file(
        tmp_path, '[good]\nparameters_b = 7\nreleased = "2025-04-01"\nfamily = "G$_1"\n'
    )
    chart = chart_of("size", runs, attributes=read_attributes(file))
    assert [(row.model, row.x, row.family, round(row.value.value, 3)) for row in chart.rows] == [
        ("good", 7, "G$_1", 0.667)
    ]
    assert chart.notes == ("no parameters (billions) given, not shown: bad",)
    chart.draw(tmp_path / "size.svg")
    assert "not shown: bad" in (tmp_path / "size.svg").read_text()
    with pytest.raises(UsageError, match="one benchmark"):
        chart_of(
            "depth", [*runs, run(tmp_path, "n", [right(made_sample())], benchmark_hash="other")]
        )
    with pytest.raises(UsageError, match="are one run"):
        chart_of("depth", [runs[0], runs[0]])
    with pytest.raises(UsageError, match="no sample of these runs has a difficulty"):
        chart_of("difficulty", [run(tmp_path, "plain", [right(made_sample())])])
    with pytest.raises(UsageError, match="no scored mode in common"):
        chart_of("depth", [run(tmp_path, "steps", [predicted(made_sample(), "2*3", "6 + 1")])])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[good]\nsize = 7\n", "unknown key 'size'"),
        ("[good]\nparameters_b = 0\n", r"\[good\] parameters_b"),
        ("good = 7\n", "good is not a table"),
        ("[other]\nparameters_b = 7\n", "no model of these runs has parameters_b"),
    ],
)
def test_faults_in_the_file_of_models(runs: list[Path], tmp_path: Path, text: str, message: str):
    with pytest.raises(UsageError, match=message):
        chart_of("size", runs, attributes=read_attributes(models_file(tmp_path, text)))


@pytest.mark.parametrize("kind", ["size", "calls", "difficulty", "depth"])
def test_the_commands_draw_and_print(kind: str, runs: list[Path], tmp_path: Path):
    file = models_file(
        tmp_path, "[good]\nparameters_b = 7\nreleased = 2025-04-01\n[bad]\nreleased = 2025-01-01\n"
    )
    options = ["--models", str(file), "--by", "released"] if kind == "size" else []
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        picture = tmp_path / f"chart{suffix}"
        done = CliRunner().invoke(
            app, ["chart", kind, *map(str, runs), *options, "--out", str(picture)]
        )
        assert done.exit_code == 0, done.output
        assert picture.read_bytes().startswith(head)
        assert "good" in done.output
    done = CliRunner().invoke(
        app, ["chart", kind, *map(str, runs), *options, "--json", "--out", str(picture)]
    )
    assert json.loads(done.stdout)["n"] == 30
    wrong = CliRunner().invoke(
        app, ["chart", kind, *map(str, runs), *options, "--out", str(tmp_path / "chart.txt")]
    )
    assert isinstance(wrong.exception, UsageError)


N = 40


def planted(
    folder: Path,
    model: str,
    degrade: str,
    is_right: Callable[[int], bool],
    n: int = N,
    **changes: Any,
) -> Path:
    """A run on ``n`` samples that answers those right for which ``is_right`` holds."""
    records = [
        end_to_end(made_sample(f"s{k}", cluster=f"s{k}"), answer=f"rows: {7 if is_right(k) else 9}")
        for k in range(n)
    ]
    about = {
        "model": model,
        "degrade": degrade,
        "clean_hash": "clean" if degrade else "",
        "benchmark_hash": "clean",
    }
    if degrade:
        about["benchmark_hash"] = degrade
    return write_run(
        folder / f"{model.replace(':', '-')}-{degrade}", records, **{**about, **changes}
    )


@pytest.fixture
def dosed_runs(tmp_path: Path) -> list[Path]:
    """The oracle loses 20 of 40 by blur. The model has 30 and loses 20: 10 where the tools fail, too, 10 of its own."""
    return [
        planted(tmp_path, "m", "blur=2", lambda k: k < 10),
        planted(tmp_path, ORACLE, "", lambda _k: True),
        planted(tmp_path, "m", "", lambda k: k < 30),
        planted(tmp_path, ORACLE, "blur=2", lambda k: k < 20),
    ]


def point(points: tuple[CurvePoint, ...], model: str, label: str) -> CurvePoint:
    return next(each for each in points if (each.model, each.label) == (model, label))


def test_the_models_own_loss_is_what_the_tools_do_not_lose(dosed_runs: list[Path], tmp_path: Path):
    curve = dose_curve(dosed_runs)
    assert (curve.n, curve.n_dropped, curve.mode) == (N, 0, "end-to-end")
    assert [(each.model, each.label) for each in curve.points] == [
        (ORACLE, "none"), (ORACLE, "blur=2"), ("m", "none"), ("m", "blur=2"),
    ]  # fmt: skip
    oracle, model = point(curve.points, ORACLE, "blur=2"), point(curve.points, "m", "blur=2")
    clean = point(curve.points, "m", "none")
    losses = [oracle.loss, model.loss, model.own_loss, model.below_oracle, clean.below_oracle]
    assert [each and round(each.value, 3) for each in losses] == [0.5, 0.5, 0.25, 0.25, 0.25]
    assert all(
        each and each.interval and each.interval.lower < each.value < each.interval.upper
        for each in losses
    )
    assert (clean.loss, clean.own_loss) == (None, None)
    shorter = planted(tmp_path, "m", "blur=4", lambda _k: True, n=30)
    curve = dose_curve([*dosed_runs, shorter])
    assert (curve.n, curve.n_dropped) == (30, 10)
    assert point(curve.points, "m", "none").score.value == 1
    (only,) = dose_curve(dosed_runs[:1]).points
    assert (only.loss, only.below_oracle, only.own_loss) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "mode", "metric", "message"),
    [
        ({"benchmark_hash": "other"}, None, "fas", "one benchmark"),
        ({}, "no-tool", "fas", "no no-tool mode in common"),
        ({}, None, "agrotools.nonsense", "has no agrotools.nonsense"),
    ],
)
def test_runs_that_make_no_curve(
    dosed_runs: list[Path], tmp_path: Path, changes: Any, mode: Any, metric: str, message: str
):
    further = planted(tmp_path, "n", "", lambda _k: True, **changes)
    with pytest.raises(UsageError, match=message):
        dose_curve([*dosed_runs, further], mode=mode, metric=metric)


def test_the_models_own_loss_is_drawn_and_two_runs_of_a_dose_are_refused(
    dosed_runs: list[Path], tmp_path: Path
):
    with pytest.raises(UsageError, match="2 runs of m at blur=2"):
        dose_curve([*dosed_runs, dosed_runs[0]])
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        picture = tmp_path / f"curve{suffix}"
        done = CliRunner().invoke(
            app, ["chart", "dose", *map(str, dosed_runs), "--out", str(picture)]
        )
        assert done.exit_code == 0, done.output
        assert picture.read_bytes().startswith(head)
        assert "+25.0" in done.output
    wrong = CliRunner().invoke(
        app, ["chart", "dose", *map(str, dosed_runs), "--out", str(tmp_path / "curve.txt")]
    )
    assert isinstance(wrong.exception, UsageError)
