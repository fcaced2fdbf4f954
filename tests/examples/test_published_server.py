"""``examples/tool_servers/published``: the toolsets of GTA and ThinkGeo over MCP, beside the built-in tools."""

import json
import re
import shutil
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import StdioServerParameters
from mcp.client.client import Client
from PIL import Image

from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace
from agrotools.core import BENCHMARKS, Observation, SampleFile, ToolCall

SERVER = (
    Path(__file__).resolve().parents[2] / "examples" / "tool_servers" / "published" / "server.py"
)
ANSWERING = {"Calculator", "OCR", "Solver", "Plot", "DrawBox", "AddText"}
PLOT = """```python
import matplotlib.pyplot as plt
def solution():
    figure, axes = plt.subplots()
    axes.bar(["a", "b"], [1, 2])
    return figure
```"""
SOLVER = """```python
from sympy import symbols, solve
def solution():
    x = symbols("x")
    return str(solve(9 * x**3 + 243, x))
```"""
pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Any:
    """The module of the example."""
    spec = spec_from_file_location("published_server", SERVER)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def toolset(benchmark: str) -> tuple[str, ...]:
    return tuple(BENCHMARKS.get(benchmark).tools)


@pytest.mark.parametrize("benchmark", ["gta", "thinkgeo"])
async def test_the_published_names_and_arguments_are_served(
    server: Any, tmp_path: Path, benchmark: str
):
    import agrotools_benchmarks._dialogs as dialogs

    declared = json.loads((Path(dialogs.__file__).parent / "toolmeta.json").read_text("utf-8"))
    async with Client(server.tool_server(toolset(benchmark), tmp_path)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert len(tools) == 14
    for name, tool in tools.items():
        published = declared.get(name)
        if published is None:  # toolmeta.json is that of GTA
            continue
        arguments = {each["name"]: each["optional"] for each in published["inputs"]}
        served = tool.input_schema
        assert arguments.keys() <= served["properties"].keys()
        assert set(served["required"]) == {
            name for name, optional in arguments.items() if not optional
        }


async def test_six_tools_answer_and_the_others_refuse_in_words(server: Any, tmp_path: Path):
    Image.new("RGB", (300, 200), "white").save(tmp_path / "a.png")
    calls: dict[str, dict[str, Any]] = {
        "Calculator": {"expression": "290 / 5"},
        "OCR": {"image": "a.png"},
        "Solver": {"command": SOLVER},
        "Plot": {"command": PLOT},
        "DrawBox": {"image": "a.png", "bbox": "(10, 20, 90, 80)"},
        "AddText": {"image": "a.png", "text": "cow", "position": "mt"},
        "CountGivenObject": {"image": "a.png", "text": "cow"},
        "ImageDescription": {"image": "a.png"},
        "GoogleSearch": {"query": "cow"},
        "RegionAttributeDescription": {
            "image": "a.png",
            "bbox": "(1, 2, 9, 9)",
            "attribute": "hue",
        },
        "TextToBbox": {"image": "a.png", "text": "cow"},
        "MathOCR": {"image": "a.png"},
        "TextToImage": {"keywords": "cow"},
        "ImageStylization": {"image": "a.png", "instruction": "as an oil painting"},
    }
    assert calls.keys() == set(toolset("gta"))
    if find_spec("rapidocr") is None:
        del calls["OCR"]
    async with Client(server.tool_server(toolset("gta"), tmp_path)) as client:
        results = {name: await client.call_tool(name, given) for name, given in calls.items()}
    answering = {name for name, result in results.items() if not result.is_error}
    assert answering == ANSWERING & calls.keys()
    for name in calls.keys() - answering:
        assert "not done offline" in results[name].content[0].text
    assert results["Solver"].structured_content["text"].startswith("[-3")
    for name in ("Plot", "DrawBox", "AddText"):
        _, picture, file = results[name].content
        assert picture.mime_type == "image/png"
        assert picture.data == file.resource.blob
        assert Path(file.resource.uri).name == results[name].structured_content["image"]


async def test_only_files_of_the_folder_are_opened(server: Any, tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    for path in (folder / "a.png", tmp_path / "secret.png"):
        Image.new("RGB", (30, 20), "white").save(path)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    tools = ("DrawBox", "ChangeDetection")
    async with Client(server.tool_server(tools, folder.resolve())) as client:
        for name in ("a.png", str(folder / "a.png")):
            result = await client.call_tool("DrawBox", {"image": name, "bbox": "(1, 2, 9, 9)"})
            assert not result.is_error
        for name in ("../secret.png", str(tmp_path / "secret.png"), "link.png", "none.png", "."):
            calls = {
                "DrawBox": {"image": name, "bbox": "(1, 2, 9, 9)"},
                "ChangeDetection": {"text": "what?", "pre_image": "a.png", "post_image": name},
            }
            for tool, arguments in calls.items():
                result = await client.call_tool(tool, arguments)
                assert "no file" in result.content[0].text, (tool, name)


async def test_a_client_starts_the_server_as_a_process(tmp_path: Path):
    command = StdioServerParameters(
        command=sys.executable, args=[str(SERVER), "--files", str(tmp_path), "--tools", "gta"]
    )
    async with Client(command) as client:
        result = await client.call_tool("Calculator", {"expression": "sqrt(16)"})
        wrong = await client.call_tool("Calculator", {"expression": "a +"})
        unknown = await client.call_tool("ObjectDetection", {"image": "a.png"})
    assert result.structured_content == {"text": "4.0", "notes": [], "flags": []}
    assert (wrong.is_error, unknown.is_error) == (True, True)


FILES = (
    "gta_entries/real_entries_via_TRACE.json",
    "gta_entries/real_prefix_via_reynaldj.json",
    "ag_vqa/gta-trace/meta_gta.first1.json",
    "ag_vqa/gta-trace/gpt-4.1.first2.json",
    "ag_vqa/thinkgeo-reynaldj/tool_choice_data_from_predictions/val.first300.json",
)
"""Reference calls of both benchmarks, and calls of models that answered them."""
MOST_CALLS = 8
"""Calls of each tool that are made: code that a sandbox runs takes seconds."""
PICTURES = ("gta_samples/images/*.png", "ocr_text/images/receipt_2.jpg", "rs_scenes/images/*.jpg")
SAMPLE_FILE = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Names that a file of a sample may have: some models made names up."""
FILE_ARGUMENTS = ("image", "pre_image", "post_image")


@dataclass(frozen=True)
class RealCalls:
    """Distinct calls of real entries, on a workspace in which a real picture has each name that they use."""

    tools: tuple[str, ...]
    calls: list[tuple[str, dict[str, Any]]]
    folder: Path
    workspace: Workspace


@pytest.fixture
def real_calls(field_data: Path, tmp_path: Path) -> RealCalls:
    """The entries come without their pictures: other pictures of both benchmarks stand in their place."""
    pictures = [path for pattern in PICTURES for path in sorted(field_data.glob(pattern))]
    if not pictures or not all((field_data / name).is_file() for name in FILES):
        pytest.skip(f"no entries of GTA and ThinkGeo at {field_data}")
    tools = tuple(dict.fromkeys((*toolset("gta"), *toolset("thinkgeo"))))
    runnable = set(tools) if find_spec("rapidocr") else {*tools} - {"OCR"}
    calls: list[tuple[str, dict[str, Any]]] = []
    made = Counter[str]()
    for file in FILES:
        for call in calls_in(json.loads((field_data / file).read_text("utf-8"))):
            name, _ = call
            if name in runnable and call not in calls and made[name] < MOST_CALLS:
                calls.append(call)
                made[name] += 1
    files: dict[str, SampleFile] = {}
    for name in (file_name(call[1].get(argument)) for call in calls for argument in FILE_ARGUMENTS):
        if SAMPLE_FILE.fullmatch(name) and name not in files:
            shutil.copy(pictures[len(files) % len(pictures)], tmp_path / name)
            files[name] = SampleFile(name=name, path=str(tmp_path / name), kind="image")
    workspace = Workspace(tuple(files.values()), tmp_path / "made")
    return RealCalls(tools, calls, tmp_path.resolve(), workspace)


def calls_in(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """All calls in a file of trajectories or steps."""
    if isinstance(value, list):
        for item in value:
            yield from calls_in(item)
    if isinstance(value, dict):
        if "tool_arguments" in value:
            yield value["tool_name"], value["tool_arguments"]
        function = value.get("function")
        if isinstance(function, dict) and "arguments" in function:
            yield function["name"], function["arguments"]
        for item in value.values():
            yield from calls_in(item)


def file_name(path: object) -> str:
    return Path(path).name if isinstance(path, str) else ""


@pytest.mark.data
async def test_calls_of_real_entries_get_what_the_built_in_tools_return(
    server: Any, real_calls: RealCalls
):
    workspace, folder = real_calls.workspace, real_calls.folder
    equal, refused = Counter[str](), Counter[str]()
    async with (
        ToolExecutor(1) as executor,
        Client(server.tool_server(real_calls.tools, folder)) as client,
    ):
        for name, arguments in real_calls.calls:
            call = ToolCall(tool=name, arguments=arguments)
            built_in = (await executor.run(call, workspace, real_calls.tools)).observation
            located = dict(arguments)
            for argument in FILE_ARGUMENTS:
                if argument in arguments:
                    located[argument] = str(folder / file_name(arguments[argument]))
            served = await client.call_tool(name, located)
            assert served.is_error == (built_in.error is not None), (name, arguments)
            if built_in.error is not None:
                refused[name] += 1
                continue
            assert value_of(served) == value_in(workspace, built_in), (name, arguments)
            equal[name] += 1
    assert equal.keys() == (ANSWERING if find_spec("rapidocr") else ANSWERING - {"OCR"})
    assert refused.keys() >= {"TextToBbox", "ChangeDetection", "SegmentObjectPixels"}


def value_of(served: Any) -> dict[str, Any]:
    """The fields of a result over MCP, with the picture itself in the place of its name."""
    fields = dict(served.structured_content)
    if "image" in fields:
        fields["image"] = b64decode(served.content[1].data)
    return fields


def value_in(workspace: Workspace, observation: Observation) -> dict[str, Any]:
    """The same of a built-in tool."""
    fields: dict[str, Any] = dict(observation.result or {})
    if "image" in fields:
        fields["image"] = (workspace.artifacts / fields["image"]).read_bytes()
    return fields
