"""``examples/tool_servers/others``: MCP servers of other people, in environments of their own.

``AGROTOOLS_TEST_TOOL_SERVERS`` names the folder of these environments; ``python tests/environments.py mcp-tools``
makes it.
"""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from PIL import ExifTags, Image

from agrotools import Run
from agrotools.analysis.served_check import check_served
from agrotools.calling.workspace import Workspace
from agrotools.core import SampleFile
from agrotools.served.tools import open_toolset, served_toolset
from support.bound_tools import find_tool
from support.command import run_command
from support.eval_process import AGROTOOLS, wait_for
from support.served_calls import called, opened

SERVERS = os.environ.get("AGROTOOLS_TEST_TOOL_SERVERS")
BINDINGS = Path(__file__).resolve().parents[2] / "examples" / "tool_servers" / "others"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not SERVERS, reason="AGROTOOLS_TEST_TOOL_SERVERS names no folder of servers"
    ),
]
COMMANDS = {
    "plantcv": "plantcv-mcp",
    "gdal": "env GDAL_MCP_WORKSPACES={files} gdal --log-level ERROR",
    "kilimo": "kilimo-mcp",
    "opencv": "opencv-mcp-server",
    "farshid": "farshid-mcp-imageprocessing",
}
AGENT = """
def solve(task):
    picture = next(file.name for file in task.files if file.kind == "image")
    tools = task.tools
    calls = {
        "segment": {"image_path": picture, "channel": "a", "method": "otsu"},
        "raster_info": {"uri": picture},
        "crop_calendar": {"crop": "maize"},
        "crop_image_tool": {"image_path": picture, "x": 0, "y": 0, "width": 9, "height": 9},
        "image_info": {"path": picture},
    }
    for name, arguments in calls.items():
        if name in tools:
            tools[name](**arguments)
    return "no idea"
"""
"""An agent that calls one tool of each server."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which holds the agent; the programs of the servers are found behind all others."""
    programs = [str(Path(str(SERVERS)).resolve() / name / "bin") for name in COMMANDS]
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], *programs]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one_of_each.py").write_text(AGENT)
    return tmp_path


def evaluation(run: str, model: str, *servers: str) -> list[str]:
    """The words of a command that asks eight questions, four at a time."""
    options = ["embedded", "--limit", "8", "--mode", "end-to-end", "--concurrency", "4"]
    for server in servers:
        options += ["--tool-server", server]
    return ["eval", *options, "--model", model, "--out", run]


def answered_calls(run: str) -> list[list[str]]:
    """The names of the tools that answered, by sample; a sample that is invalid fails the test."""
    found: list[list[str]] = []
    for record in Run(Path(run)).samples():
        assert record.invalid is None
        assert record.trajectory is not None
        made = [step for step in record.trajectory.calls if step.call is not None]
        assert all(step.observation is not None and step.observation.ok for step in made)
        found.append([step.call.tool for step in made if step.call is not None])
    return found


@pytest.mark.parametrize("name", ["plantcv", "gdal", "farshid"])
def test_a_server_answers_in_the_place_of_our_tools(name: str):
    found = check_served("embedded", [], str(BINDINGS / f"{name}.toml"), StringIO())
    assert found.invalid == 0
    assert found.won is not None
    assert sum(tool.calls - tool.refused for tool in found.tools) > 0
    assert all(each.n for tool in found.tools for each in tool.fields)


def test_bindings_fit_the_servers():
    """The pinned versions list the tools, arguments and fields that the bindings name."""
    files = sorted(BINDINGS.glob("*.toml"))
    assert {file.stem for file in files} == COMMANDS.keys() - {"kilimo"}
    from agrotools.calling import get_tool

    toolset = open_toolset([], [str(file) for file in files if file.stem != "opencv"], get_tool)
    assert len(toolset.servers) == 3
    (opencv,) = open_toolset([], [str(BINDINGS / "opencv.toml")], get_tool).servers
    assert opencv.listing.tool("find_shapes_tool") is not None


def test_our_own_score_is_the_same_beside_all_servers():
    for run, servers in {"alone": (), "beside": COMMANDS.values()}.items():
        done = run_command(*evaluation(run, "baseline:oracle", *servers))
        assert done.returncode == 0, done.stderr
    alone, beside = (
        {record.sample.id: run.score_record(record) for record in run.samples()}
        for run in (Run("alone"), Run("beside"))
    )
    assert len(alone) == 8
    assert beside == alone


def test_an_agent_calls_all_servers_in_every_sample():
    done = run_command(*evaluation("run", "python:one_of_each:solve", *COMMANDS.values()))
    assert done.returncode == 0, done.stderr
    expected = ["segment", "raster_info", "crop_calendar", "crop_image_tool", "image_info"]
    assert answered_calls("run") == [expected] * 8


def test_a_killed_run_goes_on():
    words = [*AGROTOOLS, *evaluation("run", "python:one_of_each:solve", COMMANDS["plantcv"])]
    records = Path("run", "records.jsonl")
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        wait_for(lambda: records.exists() and records.read_bytes().count(b"\n") >= 2, 600)
        os.killpg(process.pid, signal.SIGKILL)
    kept = [json.loads(line)["sample"]["id"] for line in records.read_bytes().splitlines()[:2]]
    done = run_command(*words[len(AGROTOOLS) :])
    assert done.returncode == 0, done.stderr
    assert answered_calls("run") == [["segment"]] * 8
    written = [json.loads(line)["sample"]["id"] for line in records.read_bytes().splitlines()]
    assert len(written) == len({*written}) == 8
    assert written[:2] == kept


def test_a_server_over_http():
    """It reads the files of samples, which are below the folder of temporary files."""
    with served_over_http() as url:
        done = run_command(*evaluation("run", "python:one_of_each:solve", url))
    assert done.returncode == 0, done.stderr
    assert answered_calls("run") == [["raster_info"]] * 8


@contextmanager
def served_over_http() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(str(SERVERS)).resolve() / "gdal" / "bin" / "gdal"
    command = [program, "--transport", "http", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: _is_open(port), 600)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


async def test_servers_that_read_exif_and_those_that_do_not_see_one_picture(folder: Path):
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    Image.effect_noise((64, 32), 90).convert("RGB").save(folder / "phone.jpg", exif=exif)
    file = SampleFile(name="leaf.jpg", path=str(folder / "phone.jpg"), kind="image")
    workspace = Workspace((file,), folder / "made")
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "gdal": ("raster_info", {"uri": "leaf.jpg"}),
        "opencv": ("get_image_stats_tool", {"image_path": "leaf.jpg"}),
        "farshid": ("image_info", {"path": "leaf.jpg"}),
    }
    sizes: dict[str, tuple[int, int]] = {}
    toolset = await served_toolset([COMMANDS[name] for name in calls], [], find_tool)
    async with opened(toolset) as executor:
        for name, (tool, arguments) in calls.items():
            result = (await called(executor, workspace, tool, **arguments)).result
            assert result is not None
            about: Any = result.get("info", result)
            sizes[name] = about["width"], about["height"]
        await executor.end_sample(workspace)
    assert sizes == dict.fromkeys(calls, (32, 64))
