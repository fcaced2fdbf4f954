"""Configurations in the clients they are for: Claude Code and the MCP inspector, installed from npm.

``AGROTOOLS_TEST_CLIENTS`` names the folder they are installed in (environment ``clients``). Claude Code talks to a
scripted endpoint instead of a model, so no account is needed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

CLIENTS = Path(os.environ.get("AGROTOOLS_TEST_CLIENTS", "none"), "node_modules")
CLAUDE = CLIENTS / ".bin" / "claude"
INSPECTOR = CLIENTS / ".bin" / "mcp-inspector"
NODE = next((str(each) for each in CLIENTS.glob("node-*/bin/node")), shutil.which("node"))
TOKEN = "token-of-the-test-1234"
PICTURE = "photos/field.png"
TOOLS = "calculate,describe_region,plot"
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
    return ["-m", "agrotools", "serve", "--tools", TOOLS, *options]


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


def test_claude_code_connects(project: Path):
    configuration(project, "claude-code")
    assert "Connected" in run(project, CLAUDE, "mcp", "list")
    assert "Connected" in run(project, CLAUDE, "mcp", "get", "agrotools")
