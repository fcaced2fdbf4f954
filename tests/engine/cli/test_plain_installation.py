"""A plain installation evaluates, scores, compares and shows. What needs the extra ``tools`` names its command."""

import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from agrotools.cli.main import all_commands
from agrotools.core.texts import install_command
from support.benchmark_folders import chart_sample, number_sample, write_folder
from support.openai_server import Body, completion, serving
from support.plain_installation import HIDDEN, run_plain

HINT = f"hint: {install_command('tools')}\n"
pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and an empty cache."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_recorded_tools_are_evaluated_scored_compared_and_shown(folder: Path):
    numbers = [number_sample(folder / "bench", f"tiny-{n}", n) for n in range(10)]
    bench = write_folder(
        folder / "bench", [*numbers, chart_sample(folder / "bench", "tiny-chart", 10)]
    )
    recorded = ("--mode", "end-to-end", "--backend", "recorded")
    with serving(lambda body: completion("mean_yield: 5.4")) as server:
        model = ("-m", "m", "--base-url", server.base_url, "--yes")
        commands = [
            ("eval", bench, *model, *recorded, "--out", "model"),
            ("eval", bench, "-m", "baseline:oracle", *recorded, "--out", "oracle"),
            ("score", "model"),
            ("compare", "model", "oracle"),
            ("gate", "oracle", "--against", "model"),
            ("report", "model", "--out", "page.html"),
            ("explain", "model", "tiny-1"),
        ]
        done = run_plain(commands, folder)
    assert [(each.code, each.error[-300:]) for each in done if each.code] == []
    assert "FAS" in done[2].out
    # The floor draws charts, of which no results are recorded.
    left_out = "baseline:guess is not shown for comparison: plot needs matplotlib"
    assert left_out in done[0].error
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")
    # The oracle calls plot, whose recorded result needs no matplotlib.
    assert '"plot"' in (folder / "oracle" / "records.jsonl").read_text(encoding="utf-8")


def test_the_api_page_names_the_command_where_it_lacks_libraries(folder: Path):
    (done,) = run_plain([("docs", "api")], folder)
    assert done.code == 0
    assert "def evaluate(" in done.out
    install = f"To see it here: `{install_command('tools')}`"
    assert f"### agrotools_build.env.Env\n\n{install}\n" in done.out


def test_a_run_that_needs_the_libraries_stops_before_its_first_request(folder: Path):
    charts = write_folder(folder / "charts")
    raster = chart_sample(folder / "rasters")
    raster["files"][0]["kind"] = "raster"
    rasters = write_folder(folder / "rasters", [raster])
    asked: list[str] = []

    def answer(body: Body) -> web.Response:
        asked.append(body["model"])
        return completion("taller: north")

    with serving(answer) as server:
        refused = ("-m", "refused", "--base-url", server.base_url, "--mode", "end-to-end", "--yes")
        allowed = ("-m", "allowed", *refused[2:])
        done = run_plain(
            [
                ("eval", charts, *refused),
                ("eval", rasters, *refused, "--backend", "recorded"),
                ("eval", charts, *allowed, "--backend", "plot=recorded"),
                ("eval",),
            ],
            folder,
        )
    charts_drawn, rasters_shown, _, bare = done
    assert [each.code for each in done] == [2, 2, 0, 2]
    assert {*asked} == {"allowed"}
    assert f"error: plot needs matplotlib, which is not installed\n{HINT}" in charts_drawn.error
    assert (
        f"showing image_1.png of tiny-2 needs OpenCV, rasterio and scikit-image, which are not installed\n{HINT}"
        in rasters_shown.error
    )
    assert bare.error.endswith(HINT)
    assert not list((folder / "runs").glob("embedded*"))


def test_other_commands_name_the_one_that_installs_what_they_need(folder: Path):
    picture = write_folder(folder / "bench") / "files" / "1.png"
    done = run_plain(
        [
            ("tools", "run", "count_objects", "--image", picture, "--target", "apple"),
            ("tools", "zones", picture, "--zones", "plots.geojson"),
            ("tools", "packs", "list"),
            ("review", "bench"),
            ("doctor", "--env"),
            ("build", "--scenes", "3", "--out", "scenes"),
            ("serve", "--tools", "plot"),
            ("tools", "run", "calculate", "--expression", "2 * 3"),
            ("tools", "list"),
            ("tools", "describe", "count_objects"),
        ],
        folder,
    )
    *refused, calculated, listed, described = done
    assert [(each.code, each.error.endswith(HINT)) for each in refused] == [(2, True)] * len(
        refused
    )
    assert "6" in calculated.out
    assert [each.code for each in (calculated, listed, described)] == [0, 0, 0]


def test_every_command_has_its_help_and_the_package_its_names(folder: Path):
    helps = run_plain([(command, "--help") for command in all_commands()], folder)
    assert [each.error for each in helps if each.code] == []
    script = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(HIDDEN)!r}))
import agrotools, agrotools_build, agrotools_tools
for package in (agrotools, agrotools_build, agrotools_tools):
    for name in package.__all__:
        try:
            getattr(package, name)
        except agrotools.AgrotoolsError as error:
            print(f"{{package.__name__}}.{{name}}", error.hint)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder
    )
    command = install_command("tools")
    assert done.stdout.splitlines() == [
        f"agrotools_build.Env {command}",
        f"agrotools_build.PictureEnv {command}",
        f"agrotools_build.env_rows {command}",
        f"agrotools_build.fruit_subjects {command}",
        f"agrotools_tools.measure_zones {command}",
    ]
