"""Tools of the authors in a package of their own: a map names them, and they run the calls end to end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.installed import installed
from support.made_agrotools import agrotools_entries, write_agrotools

pytestmark = pytest.mark.process

PROJECT = """
[project]
name = "authors-tools"
version = "1"
[project.entry-points."agrotools.tools"]
measure_fruit = "authors_tools:measure_fruit"
"""
TOOL = '''
from agrotools.calling import ImageFile, ToolResult, tool


class FruitSize(ToolResult):
    mean_mm: float
    """mean diameter, mm"""


@tool(category="measurement", version="1")
def measure_fruit(photo: ImageFile, fruit: str = "apple") -> FruitSize:
    """Measure fruit: here the size of the file, which no recorded result has."""
    return FruitSize(mean_mm=float(photo.stat().st_size))
'''
MAP = """
[tools]
FruitSize = "measure_fruit"
[arguments.measure_fruit]
image = "photo"
"""


def test_a_tool_of_the_authors_runs_the_calls_that_the_map_gives_it(tmp_path: Path) -> None:
    project = tmp_path / "package"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "authors_tools.py").write_text(TOOL)
    folder = write_agrotools(tmp_path / "agrotools", {"2": agrotools_entries()["2"]})
    (folder / "agrotools-map.toml").write_text(MAP)
    command = "eval agrotools -m baseline:oracle --mode end-to-end --data-root . --out run"
    ended = subprocess.run(
        [sys.executable, "-m", "agrotools", *command.split()],
        cwd=tmp_path,
        env=installed(project, project, tmp_path / "cache"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    record = json.loads((tmp_path / "run/records.jsonl").read_text().splitlines()[0])
    steps = [step for step in record["trajectory"]["steps"] if step.get("call")]
    measured = [step["observation"] for step in steps if step["call"]["tool"] == "FruitSize"]
    photos = [folder / f"images/fruit_{number}.jpg" for number in (1, 2)]
    assert [each["result"]["mean_mm"] for each in measured] == [
        photo.stat().st_size for photo in photos
    ]
