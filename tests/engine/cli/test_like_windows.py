"""Commands that growers use, in a Python on Linux that lacks what Python lacks on Windows (``like_windows``)."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from PIL import Image
from rasterio.transform import from_origin

from support.review_server import review_benchmark

pytestmark = pytest.mark.slow

_LACKING = Path(__file__).parents[2] / "support" / "like_windows"


def _environment(cache: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(_LACKING), *filter(None, sys.path)]),
        "PYTHONWARNINGS": "ignore:only soft file lock",
        "AGROTOOLS_CACHE": str(cache),
    }


def _run(folder: Path, *words: object, code: int = 0) -> tuple[str, str]:
    """Run a command in a folder, and return what it wrote to standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "agrotools", *map(str, words)],
        cwd=folder,
        env=_environment(folder / "cache"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def _photos(folder: Path) -> Path:
    folder.mkdir()
    for number in range(4):
        random = np.random.default_rng(number)
        pixels = random.integers(60, 120, (240, 320, 3), np.uint8)
        pixels[60:120, 40 : 80 + 40 * number] = (200, 30, 35)
        Image.fromarray(pixels).save(folder / f"IMG_{number}.jpg", quality=92)
    return folder


def test_it_is_a_python_like_that_of_windows(tmp_path: Path):
    lacking = "import os, signal; assert not hasattr(os, 'killpg') and not hasattr(signal, 'SIGKILL'); import fcntl"
    done = subprocess.run(
        [sys.executable, "-c", lacking], env=_environment(tmp_path), capture_output=True, text=True
    )
    assert "ModuleNotFoundError: import of fcntl halted" in done.stderr


def test_a_benchmark_is_built_of_photos_and_a_table(tmp_path: Path):
    _photos(tmp_path / "photos")
    table = "".join(f"IMG_{number}.jpg,{number}\n" for number in range(4))
    (tmp_path / "counts.csv").write_text(f"photo,apples\n{table}")
    words = ("build", "--images", "photos", "--answers", "counts.csv", "--yes", "--out", "mine")
    _run(tmp_path, *words)
    lines = (tmp_path / "mine" / "samples.jsonl").read_text().splitlines()
    truths = {
        slot["value"]
        for sample in map(json.loads, lines)
        for slot in sample["answer"]
        if slot["name"] == "value"
    }
    assert truths
    assert truths <= {0.0, 1.0, 2.0, 3.0}


def test_runs_are_made_scored_shown_and_compared(tmp_path: Path):
    models = ("-m", "baseline:oracle", "-m", "baseline:guess")
    _run(tmp_path, "eval", "embedded", "--limit", 2, *models)
    oracle, guess = (
        str(next((tmp_path / "runs").glob(f"*{name}*"))) for name in ("oracle", "guess")
    )
    scores = json.loads(_run(tmp_path, "score", oracle, "--json")[0])
    assert scores
    page = tmp_path / "page.html"
    _run(tmp_path, "report", oracle, "--out", page)
    assert page.stat().st_size > 10_000
    _run(tmp_path, "compare", oracle, guess)


def test_plots_are_measured(tmp_path: Path):
    pytest.importorskip("exactextract", reason="needs the extra zones")
    pixels = np.zeros((3, 60, 60), np.uint8)
    pixels[:, :, :] = np.array([60, 140, 50], np.uint8)[:, None, None]
    place = from_origin(500000, 5000000, 0.1, 0.1)
    profile: Mapping[str, Any] = {"driver": "GTiff", "height": 60, "width": 60, "count": 3}
    with rasterio.open(
        tmp_path / "field.tif", "w", **profile, dtype="uint8", crs="EPSG:32632", transform=place
    ) as file:
        file.write(pixels)
    corners = [[500001, 4999995], [500004, 4999995], [500004, 4999998], [500001, 4999998]]
    zones = {
        "type": "FeatureCollection",
        "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}},
        "features": [
            {
                "type": "Feature",
                "properties": {"plot": "A1"},
                "geometry": {"type": "Polygon", "coordinates": [[*corners, corners[0]]]},
            }
        ],
    }
    (tmp_path / "plots.geojson").write_text(json.dumps(zones))
    written = _run(tmp_path, "tools", "zones", "field.tif", "--zones", "plots.geojson", "--json")[0]
    (row,) = json.loads(written)["rows"]
    assert "A1" in json.dumps(row)


def test_code_of_a_model_is_refused_with_the_reason(tmp_path: Path):
    _, error = _run(tmp_path, "tools", "run", "plot_code", "--code", "print(1)", code=3)
    assert "needs Linux" in error


def test_the_review_page_is_served_and_stores_a_decision(tmp_path: Path):
    pytest.importorskip("uvicorn", reason="needs the extra review")
    folder = review_benchmark(tmp_path / "benchmark", 3)
    server = subprocess.Popen(
        [sys.executable, "-m", "agrotools", "review", str(folder)],
        env=_environment(tmp_path / "cache"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        address = next(
            found[1] for line in server.stdout if (found := re.search(r"(http://\S+)", line))
        )
        with urllib.request.urlopen(address) as reply:
            assert b"<html" in reply.read()
    finally:
        server.terminate()
        server.stdout.close()
        server.wait()
    stored = _stored_decisions(tmp_path)
    assert stored == ["True", "False", "1"]


def _stored_decisions(folder: Path) -> list[str]:
    """Store one decision twice; return whether it was new each time, and how many there are."""
    program = """
from pathlib import Path
from agrotools_build.review.agreement import Decision, ReviewJournal
journal = ReviewJournal(Path("review.jsonl"))
made = Decision(id="0" * 8, sample="s", content="0" * 16, reviewer="Ada", verdict="accept")
print(journal.append(made), journal.append(made), len(journal.decisions()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=_environment(folder / "cache"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_ctrl_c_reaches_an_event_loop(tmp_path: Path):
    program = """
import asyncio, os, signal
from agrotools.core.processes import on_stop_signal
async def wait():
    stopped = asyncio.Event()
    with on_stop_signal(stopped.set):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(stopped.wait(), 60)
asyncio.run(wait())
print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=_environment(tmp_path), capture_output=True, text=True
    )
    assert done.stdout.strip() == "stopped", done.stderr
