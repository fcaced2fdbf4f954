"""Calls of a real server: its state belongs to one sample, and its failures are never the model's."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

import support
from agrotools.calling.workspace import Workspace
from agrotools.core import InfrastructureError, SampleFile, UsageError
from agrotools.sandbox.agents import is_available
from agrotools.served.tools import served_toolset
from support.bound_tools import find_tool
from support.served_calls import called, opened, workspace

pytestmark = pytest.mark.process
SERVER = f"{sys.executable} {Path(support.__path__[0]) / 'tool_server.py'}"
BINDING = """
[measure_leaf]
when = { crop = ["coffee"] }
[[measure_leaf.calls]]
tool = "segment"
arguments = { image_path = "{image}" }
keep = { session = "session_id" }
[[measure_leaf.calls]]
tool = "measure"
arguments = { session_id = "{session}" }
[measure_leaf.result]
total_cm2 = "convert(traits.area.value, traits.area.unit, 'cm2')"
"""


async def test_a_bound_tool_of_ours_runs_on_the_server(tmp_path: Path):
    binding = tmp_path / "binding.toml"
    binding.write_text(BINDING)
    toolset = await served_toolset([SERVER], [str(binding)], find_tool)
    assert not toolset.own
    async with opened(toolset) as executor:
        at = workspace(tmp_path, "first")
        found = await called(executor, at, "measure_leaf", image="leaf.jpg")
        assert found.result == {"total_cm2": 2.5}
        other = await called(executor, at, "measure_leaf", image="leaf.jpg", crop="maize")
        assert other.error is not None
        assert other.error.argument == "crop"
        lost = await called(executor, at, "measure_leaf", image="root.jpg")
        assert lost.error is not None
        assert lost.error.kind == "file_not_found"


async def test_a_result_may_use_what_is_known_about_the_file_and_what_was_asked(tmp_path: Path):
    binding = tmp_path / "binding.toml"
    binding.write_text(
        "[measure_leaf]\n[[measure_leaf.calls]]\n"
        'tool = "cover"\narguments = { image_path = "{image}" }\n'
        '[measure_leaf.result]\ntotal_cm2 = "cover * gsd_m * (region[2] - region[0])"\n'
    )
    path = tmp_path / "leaf.jpg"
    path.write_bytes(b"leaf")
    file = SampleFile(name="leaf.jpg", path=str(path), kind="image", gsd_m=0.5)
    toolset = await served_toolset([SERVER], [str(binding)], find_tool)
    async with opened(toolset) as executor:
        at = Workspace((file,), tmp_path / "made")
        region = [10, 0, 18, 4]
        found = await called(executor, at, "measure_leaf", image="leaf.jpg", region=region)
    assert found.result == {"total_cm2": 0.5 * 0.5 * 8}


async def test_each_sample_has_a_server_of_its_own_that_ends_with_it(tmp_path: Path):
    toolset = await served_toolset([SERVER], [], find_tool)
    async with opened(toolset) as executor:
        samples = [workspace(tmp_path, f"sample{number}", 100 + number) for number in range(4)]
        first = await asyncio.gather(
            *(called(executor, at, "segment", image_path="leaf.jpg") for at in samples)
        )
        assert [found.result and found.result["session_id"] for found in first] == ["session-1"] * 4
        areas = await asyncio.gather(
            *(called(executor, at, "measure", session_id="session-1") for at in samples)
        )
        results = [found.result and found.result["traits"] for found in areas]
        sizes = (100.0, 101.0, 102.0, 103.0)
        assert results == [{"area": {"value": size, "unit": "mm2"}} for size in sizes]
        await executor.end_sample(samples[0])
        again = await called(executor, samples[0], "measure", session_id="session-1")
        assert again.error is not None  # nothing is left of the sample that ended


async def test_errors_pictures_and_files_of_a_tool_are_observed(tmp_path: Path):
    toolset = await served_toolset([SERVER], [], find_tool)
    async with opened(toolset) as executor:
        at = workspace(tmp_path, "sample")
        refused = await called(executor, at, "segment", image_path="leaf.jpg", threshold=900)
        assert refused.error is not None
        assert "threshold must be at most 255" in refused.error.message
        unknown = await called(executor, at, "segment", image_path="leaf.jpg", channel="a")
        assert unknown.error is not None
        assert unknown.error.kind == "invalid_argument"
        outside = await called(executor, at, "segment", image_path="/etc/hostname")
        assert outside.error is not None
        assert outside.error.kind == "path_outside_workspace"
        shown = await called(executor, at, "picture")
        assert [made.media_type for made in shown.artifacts] == ["image/png"]
        assert (at.artifacts / shown.artifacts[0].name).read_bytes().startswith(b"\x89PNG")
        written = await called(executor, at, "write", output_path="mask.png")
        assert written.result == {"saved": "mask.png"}


@pytest.mark.parametrize(
    ("tool", "words"),
    [("die", "ended: out of field"), ("hang", "did not answer"), ("flood", "MiB")],
)
async def test_a_server_that_fails_is_no_observation(tmp_path: Path, tool: str, words: str):
    toolset = await served_toolset([SERVER], [], find_tool)
    async with opened(toolset, timeout_s=5 if tool == "hang" else 60) as executor:
        with pytest.raises(InfrastructureError, match=words):
            await called(executor, workspace(tmp_path, "sample"), tool)
        well = await called(executor, workspace(tmp_path, "next"), "segment", image_path="leaf.jpg")
        assert well.ok


async def test_tools_of_one_name_get_that_of_their_server_in_front():
    toolset = await served_toolset(
        [f"north={SERVER}", f"south={SERVER}"], [], find_tool, taken=["picture"]
    )
    assert "north_segment" in toolset.own
    assert "south_segment" in toolset.own
    assert "segment" not in toolset.own
    alone = await served_toolset([SERVER], [], find_tool, taken=["segment"])
    assert {"field-tools_segment", "measure"} <= alone.own.keys()
    with pytest.raises(UsageError, match="the same name"):
        await served_toolset([SERVER, f"env CROP=tea {SERVER}"], [], find_tool)


async def test_a_server_that_does_not_start_says_its_last_line(tmp_path: Path):
    script = tmp_path / "server.py"
    script.write_text("import sys\nsys.exit('no leaf model is installed')\n")
    with pytest.raises(InfrastructureError, match="no leaf model is installed"):
        await served_toolset([f"{sys.executable} {script}"], [], find_tool)


@pytest.mark.skipif(not is_available(), reason="needs bubblewrap")
async def test_a_sealed_server_reads_its_sample_alone(tmp_path: Path):
    secret = tmp_path / "truth.json"
    secret.write_text("{}")
    script = tmp_path / "server.py"
    script.write_text(
        "import os, socket\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('spy')\n"
        "@server.tool()\n"
        "def spy() -> dict:\n"
        f"    seen = os.path.exists({str(secret)!r})\n"
        "    return {'secret': seen, 'files': sorted(os.listdir('.')), 'key': os.environ.get('KEY')}\n"
        "server.run()\n"
    )
    os.environ["KEY"] = "secret"
    try:
        toolset = await served_toolset([f"{sys.executable} {script}"], [], find_tool)
        async with opened(toolset) as executor:
            found = await called(executor, workspace(tmp_path, "sample"), "spy")
    finally:
        del os.environ["KEY"]
    assert toolset.uses[0].sealed
    assert found.result == {"secret": False, "files": ["leaf.jpg"], "key": None}
