"""``examples/tool_servers/published`` in a run: entries of GTA and ThinkGeo equal the run with the built-in tools, call
by call."""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
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
TOOLS = {"Calculator", "OCR", "Solver", "DrawBox", "AddText", "Plot"}
"""Tools of both benchmarks that answer without a model."""
MOST_CALLS = 2
"""Calls of each tool: every question starts a server, and code that a sandbox runs takes seconds."""
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
"""Calls of the tools that draw, which few entries at hand have."""


def drawn_entry(image: str) -> dict[str, Any]:
    """An entry of calls that draw, on a picture."""
    dialogs = [{"role": "user", "content": "Mark the label, name the picture, and plot a and b."}]
    for tool, arguments in DRAWN:
        given = {**arguments, "image": image} if "image" in arguments else arguments
        dialogs += [call(tool, given), returned(tool, f"image/{tool}.png", "image")]
    return plain_entry(
        tools=[tool_meta(tool) for tool, _ in DRAWN],
        files=[{"type": "image", "path": image, "url": None}],
        dialogs=[*dialogs, answer("done")],
        gt_answer=None,
    )


def gta_folder(field_data: Path, folder: Path) -> None:
    """Two entries of GTA, and one of calls that draw."""
    real = read(field_data / "gta_entries" / "real_entries_via_TRACE.json")
    write(folder, "gta_dataset/dataset.json", {**real, "drawn": drawn_entry("image/image_96.jpg")})
    menu = field_data / "gta_samples" / "images" / "menu_0.png"
    for entry in real.values():
        for file in entry["files"]:
            shutil.copy(menu, folder / "gta_dataset" / file["path"])


def thinkgeo_folder(field_data: Path, folder: Path) -> None:
    """Questions of ThinkGeo with calls that were judged right, and one of calls that draw."""
    steps = "ag_vqa/thinkgeo-reynaldj/tool_choice_data_from_predictions/val.first300.json"
    scenes = sorted(field_data.glob("rs_scenes/images/*.jpg"))
    of_question: dict[str, list[dict[str, Any]]] = {}
    made = Counter[str]()
    for step in read(field_data / steps):
        tool = step["tool_name"]
        if step["label"] and tool in TOOLS and made[tool] < MOST_CALLS:
            made[tool] += 1
            of_question.setdefault(step["question_id"], []).append(step)
    entries: dict[str, Any] = {"drawn": drawn_entry("image/P0000.png")}
    pictures = {"image/P0000.png"}
    for question, calls in of_question.items():
        dialogs: list[Any] = [calls[0]["full_history"][0]]
        images: set[str] = set()
        for step in calls:
            tool, given = step["tool_name"], dict(step["tool_arguments"])
            if "image" in given:
                given["image"] = f"image/{Path(given['image']).name}"
                images.add(given["image"])
            dialogs += [call(tool, given), returned(tool, "unknown")]
        entries[question] = plain_entry(
            tools=[tool_meta(tool) for tool in {step["tool_name"] for step in calls}],
            files=[{"type": "image", "path": path, "url": None} for path in sorted(images)],
            dialogs=[*dialogs, answer("done")],
            gt_answer=None,
        )
        pictures |= images
    write(folder, "ThinkGeoBench.json", entries)
    for number, path in enumerate(sorted(pictures)):
        shutil.copy(scenes[number % len(scenes)], folder / path)


def read(file: Path) -> Any:
    if not file.is_file():
        pytest.skip(f"{file} is not there: set AGROTOOLS_TEST_DATA")
    return json.loads(file.read_text("utf-8"))


def write(folder: Path, name: str, entries: dict[str, Any]) -> None:
    """Write a file of entries, with an empty folder for their pictures beside it."""
    file = folder / name
    (file.parent / "image").mkdir(parents=True)
    file.write_text(json.dumps(entries))


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
            assert step.call is not None
            found[record.sample.id, place] = step.call.tool, None if is_refusal else values
    return found


@pytest.mark.parametrize(
    ("benchmark", "write_folder"), [("gta", gta_folder), ("thinkgeo", thinkgeo_folder)]
)
def test_entries_get_the_same_from_the_server(
    field_data: Path, tmp_path: Path, benchmark: str, write_folder: Callable[[Path, Path], None]
):
    write_folder(field_data, tmp_path / "data")
    command = ("eval", benchmark, "--data-root", tmp_path / "data")
    policy = ("-m", "baseline:oracle", "--mode", "end-to-end", "--concurrency", 2)
    # A sealed server reads the paths that its command names, and this package need not be among its libraries.
    python = f"env PYTHONPATH={ROOT / 'src'} {sys.executable}"
    server = f"{python} {SERVER / 'server.py'} --files {{files}} --tools {benchmark}"
    runs = {
        "built-in": (),
        "served": ("--tool-server", server, "--binding", SERVER / f"{benchmark}.toml"),
    }
    for name, options in runs.items():
        done = run_command(*command, *policy, "--out", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
    built_in, served = (observations(tmp_path / name) for name in runs)
    assert served == built_in
    answered = {tool for tool, values in served.values() if values is not None}
    assert answered == (TOOLS if find_spec("rapidocr") else TOOLS - {"OCR"})
