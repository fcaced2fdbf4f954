"""A new tool of the package is a folder and its name in ``table.py``: it is then offered, asked with and scored."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agrotools_tools
from agrotools.calling import tool_names
from support.benchmark_folders import HEADER, number_sample, write_folder

pytestmark = pytest.mark.process

NAME = "measure_brightness"
TOOL = '''"""The tool that measures how bright a picture is."""

from agrotools.calling.contract import ImageFile, ToolResult, tool


class Brightness(ToolResult):
    mean_pct: float
    """mean brightness, percent of white"""


@tool(category="measurement", version="1", example={"image": "image"})
def measure_brightness(image: ImageFile) -> Brightness:
    """Measure how bright a photo is.

    Raises:
        ToolError: ``nothing_found`` for a blank picture.
    """
    from agrotools.vision.reading import read_image

    return Brightness(mean_pct=float(read_image(image).pixels.mean()) / 2.55)
'''
NAMES = f"""
import json
import agrotools_tools, agrotools_build
from agrotools.calling import tool_names
places = {{
    "toolset": agrotools_tools.AGROTOOLS, "package": agrotools_tools.__all__, "names": tool_names(),
    "environment": dir(agrotools_build.Env),
}}
print(json.dumps([place for place, names in places.items() if "{NAME}" in names]))
"""


@pytest.fixture
def with_tool(tmp_path: Path) -> Path:
    """A folder with a copy of the package of tools to which a tool was added."""
    package = tmp_path / "packages" / "agrotools_tools"
    shutil.copytree(Path(agrotools_tools.__file__).parent, package, ignore=_without_caches)
    (package / "brightness").mkdir()
    (package / "brightness" / "__init__.py").write_text('"""Brightness of a picture."""\n')
    (package / "brightness" / "tool.py").write_text(TOOL)
    table = package / "table.py"
    last = '    "plot": "plotting.tool",\n'
    text = table.read_text(encoding="utf-8")
    assert last in text
    table.write_text(text.replace(last, f'{last}    "{NAME}": "brightness.tool",\n'), "utf-8")
    return package.parent


def _without_caches(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def python(packages: Path, *arguments: str) -> str:
    """Return what Python prints with the packages of a folder before the installed ones."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=packages.parent,
        env={**os.environ, "PYTHONPATH": str(packages)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tool_is_a_folder_and_a_name(with_tool: Path, tmp_path: Path):
    found = json.loads(python(with_tool, "-c", NAMES))
    assert found == ["toolset", "package", "names", "environment"]

    folder = tmp_path / "bright"
    image = tmp_path / "bright" / "files" / "1.png"
    sample = number_sample(folder)
    measured = json.loads(
        python(with_tool, "-m", "agrotools", "tools", "run", NAME, "--image", str(image), "--json")
    )
    value = measured["result"]["mean_pct"]
    call = {
        "tool": NAME,
        "arguments": {"image": "image_1.png"},
        "observation": {"result": {"mean_pct": value, "notes": [], "flags": []}},
        "truth": {"mean_pct": value},
    }
    slot = {
        "type": "tolerance", "name": "brightness", "label": "mean brightness", "unit": "%", "value": value,
        "rel_tol": 0.01, "from": "steps[0].observation.mean_pct",
    }  # fmt: skip
    sample |= {
        "query": "How bright is the photo?", "toolset": [NAME], "reference": {"steps": [call]}, "answer": [slot],
        "task_type": "organ_counting", "family": "CM",
    }  # fmt: skip
    header = HEADER.replace('["calculate", "plot"]', f'["{NAME}"]')
    write_folder(folder, [sample], header)
    python(with_tool, "-m", "agrotools", "benchmarks", "check", str(folder))
    options = ("--model", "baseline:oracle", "--mode", "end-to-end", "--out", "run")
    python(with_tool, "-m", "agrotools", "eval", str(folder), *options)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text(encoding="utf-8"))
    assert scores["summary"]["modes"]["end-to-end"]["metrics"]["fas"]["overall"]["value"] == 1

    assert NAME not in tool_names(), "the installed package is as before"
