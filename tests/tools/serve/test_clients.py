"""Configurations in the clients they are for: Claude Code and the MCP inspector, installed from npm.

``AGROTOOLS_TEST_CLIENTS`` names the folder they are installed in (environment ``clients``). Claude Code talks to a
scripted endpoint instead of a model, so no account is needed.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

CLIENTS = Path(os.environ.get("AGROTOOLS_TEST_CLIENTS", "none"), "node_modules")
CLAUDE = CLIENTS / ".bin" / "claude"
INSPECTOR = CLIENTS / ".bin" / "mcp-inspector"
NODE = next((str(each) for each in CLIENTS.glob("node-*/bin/node")), shutil.which("node"))
PICTURE = "photos/field.png"
TOOLS = "calculate,describe_region,plot"
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        not CLAUDE.exists(), reason="AGROTOOLS_TEST_CLIENTS names no folder with clients from npm"
    ),
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
    (home / ".claude" / "settings.json").write_text(
        '{"enableAllProjectMcpServers": true}'
    )  # approval, by a click
    for name, value in {
        "HOME": str(home),
        "AGROTOOLS_CACHE": str(tmp_path / "cache"),
        "MCP_INSPECTOR_SECRET_STORE": "memory",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def configuration(project: Path, client: str) -> Path:
    serve = [sys.executable, "-m", "agrotools", "serve", "--tools", TOOLS]
    path = project / ".mcp.json"
    path.write_text(
        run(project.parent, *serve, "--workspace", project.parent / "workspace", "--config", client)
    )
    return path


def run(folder: Path, *command: object) -> str:
    ended = subprocess.run(
        [*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("client", ["claude-desktop", "cursor"])
def test_inspector_starts_the_server_from_the_configuration(project: Path, client: str, era: str):
    server = [
        "--config",
        str(configuration(project, client)),
        "--server",
        "agrotools",
        "--cwd",
        str(project),
    ]

    def inspected(*options: str) -> Any:
        command = [
            NODE,
            INSPECTOR,
            "--cli",
            *server,
            "--protocol-era",
            era,
            "--quiet",
            "--format",
            "json",
            *options,
        ]
        return json.loads(run(project, *command))["result"]

    names = {tool["name"] for tool in inspected("--method", "tools/list", "--strict")["tools"]}
    assert names == {*TOOLS.split(","), "list_files"}
    call = [
        "--method",
        "tools/call",
        "--tool-name",
        "describe_region",
        "--tool-arg",
        f"image={PICTURE}",
    ]
    result = inspected(*call)
    assert [each["type"] for each in result["content"]] == ["text", "image", "resource_link"]
    assert json.loads(result["content"][0]["text"])["result"] == result["structuredContent"]
    link = result["content"][2]
    (written,) = inspected("--method", "resources/read", "--uri", link["uri"])["contents"]
    assert written["mimeType"] == link["mimeType"]


def test_claude_code_connects(project: Path):
    configuration(project, "claude-code")
    assert "Connected" in run(project, CLAUDE, "mcp", "list")
    assert "Connected" in run(project, CLAUDE, "mcp", "get", "agrotools")
