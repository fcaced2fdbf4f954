"""``examples/tool_servers/published`` in a run: entries of GTA equal the run with the built-in tools, call by call."""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agrotools import Run
from support.command import run_command
from support.gta_files import answer, call
from support.made_gta import plain_entry, returned, tool_meta

pytest.importorskip("mcp", reason="needs the extra mcp")
pytest.importorskip("agrotools.served", reason="needs a client of tool servers")
pytestmark = pytest.mark.data

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "examples" / "tool_servers" / "published"
PLOT = """import matplotlib.pyplot as plt
def solution():
    figure, axes = plt.subplots()
    axes.bar(["a", "b"], [1, 2])
    return figure"""
DRAWN: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "DrawBox",
        {"image": "image/image_96.jpg", "bbox": "(40, 40, 120, 90)", "annotation": "label"},
    ),
    ("AddText", {"image": "image/image_96.jpg", "text": "fish oil", "position": "mt"}),
    ("Plot", {"command": PLOT}),
)
"""Calls of the tools that draw, which no entry at hand has."""


def entries(field_data: Path) -> dict[str, Any]:
    """Two entries of GTA, and one of calls that draw."""
    source = field_data / "gta_entries" / "real_entries_via_TRACE.json"
    if not source.is_file():
        pytest.skip(f"no entries of GTA at {source.parent}: set AGROTOOLS_TEST_DATA")
    real = json.loads(source.read_text("utf-8"))
    dialogs = [{"role": "user", "content": "Mark the label, name the picture, and plot a and b."}]
    for tool, arguments in DRAWN:
        dialogs += [call(tool, arguments), returned(tool, f"image/{tool}.png", "image")]
    drawn = plain_entry(
        tools=[tool_meta(tool) for tool, _ in DRAWN],
        files=[{"type": "image", "path": "image/image_96.jpg", "url": None}],
        dialogs=[*dialogs, answer("done")],
        gt_answer=None,
    )
    return {**real, "drawn": drawn}


def observations(folder: Path) -> dict[tuple[str, int], Any]:
    """What each call of a run got, by sample and place: None for a refusal; hashes of pictures for their names."""
    found: dict[tuple[str, int], Any] = {}
    for record in Run(folder).samples():
        assert record.trajectory is not None, record.invalid
        calls = [step for step in record.trajectory.steps if step.kind == "call"]
        for place, step in enumerate(calls):
            observation = step.observation
            assert observation is not None
            pictures = [made.sha256 for made in observation.artifacts]
            values = {**(observation.result or {}), "image": pictures}
            is_refusal = observation.error is not None
            found[record.sample.id, place] = step.call.tool, None if is_refusal else values
    return found


def test_entries_of_gta_get_the_same_from_the_server(field_data: Path, tmp_path: Path):
    dataset = tmp_path / "gta_dataset"
    (dataset / "image").mkdir(parents=True)
    whole = entries(field_data)
    (dataset / "dataset.json").write_text(json.dumps(whole))
    menu = field_data / "gta_samples" / "images" / "menu_0.png"
    for entry in whole.values():
        for file in entry["files"]:
            shutil.copy(menu, dataset / file["path"])
    command = (
        "eval",
        "gta",
        "--data-root",
        tmp_path,
        "-m",
        "baseline:oracle",
        "--mode",
        "end-to-end",
    )
    # A sealed server reads the paths that its command names, and this package need not be among its libraries.
    python = f"env PYTHONPATH={ROOT / 'src'} {sys.executable}"
    server = f"{python} {SERVER / 'server.py'} --files {{files}} --tools gta"
    runs = {
        "built-in": (),
        "served": ("--tool-server", server, "--binding", SERVER / "gta.toml"),
    }
    for name, options in runs.items():
        done = run_command(*command, "--out", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
    built_in, served = (observations(tmp_path / name) for name in runs)
    assert served == built_in
    answered = {tool for tool, values in served.values() if values is not None}
    expected = {"Calculator", "Solver", "DrawBox", "AddText", "Plot"}
    assert answered == (expected | {"OCR"} if find_spec("rapidocr") else expected)
