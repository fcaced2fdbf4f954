"""Configurations in the clients they are for: Claude Code and the MCP inspector, installed from npm.

``AGROTOOLS_TEST_CLIENTS`` names the folder they are installed in (environment ``clients``). Claude Code talks to a
scripted endpoint instead of a model, so no account is needed.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import agrotools as at

CLIENTS = Path(os.environ.get("AGROTOOLS_TEST_CLIENTS", "none"), "node_modules")
CLAUDE = CLIENTS / ".bin" / "claude"
INSPECTOR = CLIENTS / ".bin" / "mcp-inspector"
NODE = next((str(each) for each in CLIENTS.glob("node-*/bin/node")), shutil.which("node"))
TOKEN = "token-of-the-test-1234"
PICTURE = "photos/field.png"
TOOLS = "calculate,describe_region,plot"
ASK = {"tool": "describe_region", "input": {"image": PICTURE}}
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not CLAUDE.exists(), reason="AGROTOOLS_TEST_CLIENTS names no folder with clients from npm"),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder of a client, with Python files that would break the server if it imported them."""
    folder, pictures = tmp_path / "project", tmp_path / "workspace" / "photos"
    (folder / "agrotools").mkdir(parents=True)
    for name in ("random.py", "queue.py", "agrotools/__init__.py"):
        (folder / name).write_text("raise SystemExit('a file of the project is imported')\n")
    pictures.mkdir(parents=True)
    pixels = np.full((300, 400, 3), 90, np.uint8)
    pixels[50:250, 100:300] = (40, 160, 50)
    Image.fromarray(pixels).save(pictures / "field.png")
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')  # approval, by a click
    for name, value in {
        "HOME": str(home),
        "AGROTOOLS_CACHE": str(tmp_path / "cache"),
        "AGROTOOLS_MCP_TOKEN": TOKEN,
        "MCP_INSPECTOR_SECRET_STORE": "memory",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def configuration(project: Path, client: str, *options: str) -> Path:
    workspace = ["--workspace", str(project.parent / "workspace")]
    written = run(project.parent, sys.executable, *agrotools(*workspace, "--config", client, *options))
    path = project / ".mcp.json"
    path.write_text(written)
    return path


def agrotools(*options: str) -> list[str]:
    return ["-m", "agrotools", "serve", "mcp", "--tools", TOOLS, *options]


def run(folder: Path, *command: object) -> str:
    ended = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def inspect(project: Path, server: list[str], *options: str) -> Any:
    command = [NODE, INSPECTOR, "--cli", *server, "--quiet", "--format", "json", *options]
    return json.loads(run(project, *command))["result"]


def check_inspector(project: Path, server: list[str]) -> None:
    names = {tool["name"] for tool in inspect(project, server, "--method", "tools/list", "--strict")["tools"]}
    assert names == {*TOOLS.split(","), "list_files"}
    call = ["--method", "tools/call", "--tool-name", "describe_region", "--tool-arg", f"image={PICTURE}"]
    result = inspect(project, server, *call)
    assert [each["type"] for each in result["content"]] == ["text", "image", "resource_link"]
    assert json.loads(result["content"][0]["text"])["result"] == result["structuredContent"]
    (written,) = inspect(project, server, "--method", "resources/read", "--uri", result["content"][2]["uri"])[
        "contents"
    ]
    assert written["mimeType"] == result["content"][2]["mimeType"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("client", ["claude-desktop", "cursor"])
def test_inspector_starts_the_server_from_the_configuration(project: Path, client: str, era: str):
    path = configuration(project, client)
    server = ["--config", str(path), "--server", "agrotools", "--cwd", str(project), "--protocol-era", era]
    check_inspector(project, server)


@pytest.fixture
def address(project: Path) -> Iterator[str]:
    workspace = ["--workspace", str(project.parent / "workspace")]
    command = [sys.executable, "-u", *agrotools(*workspace, "--http")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=project.parent) as server:
        assert server.stdout
        server.stdout.readline()
        yield server.stdout.readline().removeprefix("address: ").strip()
        server.terminate()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_inspector_over_http(project: Path, address: str, era: str):
    options = ["--transport", "http", "--protocol-era", era, "--header", f"Authorization: Bearer {TOKEN}"]
    check_inspector(project, [address, *options])


def test_claude_code_connects(project: Path, address: str):
    configuration(project, "claude-code")
    assert "Connected" in run(project, CLAUDE, "mcp", "list")
    assert "Connected" in run(project, CLAUDE, "mcp", "get", "agrotools")
    configuration(project, "claude-code", "--http", "--port", address.split(":")[2].split("/")[0])
    assert f"{address} (HTTP) - ✔ Connected" in run(project, CLAUDE, "mcp", "list")


def test_a_session_of_claude_code_is_recorded(project: Path, monkeypatch: pytest.MonkeyPatch):
    recorded = project.parent / "recorded"
    calls = [
        {"tool": "begin_task", "input": {"question": "Which colour has the middle?"}},
        ASK,
        {"tool": "end_task", "input": {"answer": "green"}},
    ]
    with scripted_endpoint(calls) as (url, requests):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        path = configuration(project, "claude-code", "--record", str(recorded))
        allowed = ",".join(f"mcp__agrotools__{call['tool']}" for call in calls)
        options = ["--mcp-config", path, "--strict-mcp-config", "--allowedTools", allowed, "--output-format", "json"]
        assert json.loads(run(project, CLAUDE, "-p", "What colour?", *options))["result"] == "The middle is green."
    results = [part for each in requests for part in tool_results(each)]
    shown = [part["type"] for result in results if isinstance(result["content"], list) for part in result["content"]]
    assert "image" in shown, str(results)[:3000]  # the model of Claude Code sees the pictures of the tools
    (record,) = at.read_run(recorded).samples("end-to-end")
    assert record.trajectory
    assert record.sample.query == "Which colour has the middle?"
    assert [step.call.tool for step in record.trajectory.calls if step.call] == ["describe_region"]
    assert record.trajectory.answer == "green"


def tool_results(request: dict[str, Any]) -> list[Any]:
    parts = [part for each in request["messages"] if isinstance(each["content"], list) for part in each["content"]]
    return [part for part in parts if part["type"] == "tool_result"]


class scripted_endpoint:
    """Endpoint of Anthropic's API whose model makes the calls, and then answers. Gives its address and the requests."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append(request)
                done = sum(part["tool_use_id"].startswith("toolu_call") for part in tool_results(request))
                tools = [tool["name"] for tool in request.get("tools", [])]
                use = next_use(calls[done:], tools, f"{done}_{len(endpoint.requests)}")
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write("".join(reply(use)).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> tuple[str, list[dict[str, Any]]]:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}", self.requests

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def next_use(calls: list[dict[str, Any]], tools: list[str], number: str) -> dict[str, Any] | None:
    """Return the block of the next call, or of a wait for the server; None if no call is left."""
    if not calls or not tools:
        return None
    name = f"mcp__agrotools__{calls[0]['tool']}"
    if name not in tools:
        return {"type": "tool_use", "id": f"toolu_wait_{number}", "name": "WaitForMcpServers", "input": {}}
    return {"type": "tool_use", "id": f"toolu_call_{number}", "name": name, "input": calls[0]["input"]}


def reply(use: dict[str, Any] | None) -> Iterator[str]:
    """Events of a streamed message: the call of a tool, or the answer."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": "The middle is green."}
    if use is not None:
        block = {**use, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(use["input"])}
    stop = {"stop_reason": "tool_use" if use else "end_turn", "stop_sequence": None}
    for event in (
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
