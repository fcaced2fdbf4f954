"""Studies run one by one, each in its own process; what goes wrong in one is a row and stops no other."""

from collections.abc import Iterator
from pathlib import Path

import bench_plugin
import pytest

from agrotools.build.accuracy.studies import Row, plan, run
from agrotools.core import UsageError

TOOL = "made_brightness"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with bench_plugin.installed(tmp_path, monkeypatch) as folder:
        yield folder


def measured(data: Path, *folders: str, **options) -> list[Row]:
    return run(plan(data, [TOOL], folders).studies, **options)


def test_figures_times_memory_and_goals(data: Path):
    useful, useless, few = measured(data, "greys")
    assert (useful.error, useful.value) == (None, pytest.approx(1.0, abs=1e-6))
    assert (useful.low, useful.high) == (None, None)  # all errors are equal: a bootstrap cannot tell how sure that is
    assert useful.sources == "source not stated (12 items)"
    assert useful.is_ours
    assert (useful.n, useful.independent, useful.calls) == (12, 12, 12)
    assert useful.goal_reached is False
    assert useful.ms_median
    assert useful.ms_median > 0
    assert useful.ms_per_megapixel == pytest.approx(useful.ms_median / 0.008, rel=0.5)
    assert useful.peak_mb
    assert 30 < useful.peak_mb < 1000
    assert (useless.value, useless.low, useless.goal_reached) == (None, None, None)
    assert (few.n, few.low, few.high) == (4, None, None)


def test_one_thread_and_the_memory_of_this_study_alone(data: Path):
    ballast = bytearray(500_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    (row,) = measured(data, "surroundings")
    assert row.error is None
    assert (row.value, row.n) == (1.0, 3)
    assert row.peak_mb
    assert 200 < row.peak_mb < 500
    del ballast


def test_a_study_that_hangs_is_stopped(data: Path):
    (row,) = measured(data, "hang", time_limit_s=0.5)
    assert row.error == "it took more than 0.5 s and was stopped"


def test_a_study_that_fails_is_a_row_and_the_others_go_on(data: Path, tmp_path: Path):
    seen = []
    kept = tmp_path / "kept"
    rows = measured(
        data, "crash", "greys", "kill", overlays=kept, ended=lambda study, fresh, _: seen.append((study.folder, fresh))
    )
    assert [folder for folder, _ in seen] == ["greys", "crash", "kill"]
    assert [row.error is None for row in rows] == [True, True, True, False, False]
    for row, reason in zip(rows[3:], ("RuntimeError: no such thing", "SIGKILL: about to go"), strict=True):
        assert reason in row.error
        assert str(data) not in row.error
        assert row.value is None
    assert len(list((kept / TOOL / "0_greys").glob("*_overlay.png"))) == 12


def test_absent_folders_unknown_names_and_broken_studies_are_named(data: Path):
    found = plan(data, [TOOL])
    assert found.absent == ("elsewhere",)
    assert {study.folder for study in found.studies} == {"greys", "crash", "kill", "hang", "surroundings"}
    assert plan(None, [TOOL]).absent == ("greys", "elsewhere")
    (fault,) = plan(data).faults
    assert fault.tool == "broken_studies"
    assert fault.error
    assert "no_such_module" in fault.error
    with pytest.raises(UsageError, match="made_brightnes'") as error:
        plan(data, ["made_brightnes"])
    assert TOOL in str(error.value)
    with pytest.raises(UsageError, match="'grays'") as error:
        plan(data, [TOOL], ["grays"])
    assert "greys" in str(error.value)
    with pytest.raises(UsageError, match="is not a folder"):
        plan(data / "nowhere")
