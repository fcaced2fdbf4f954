"""Tools of a folder over MCP, with the SDK's client over both transports and two protocols, under hostile input."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

import httpx2
import slow_tools
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from PIL import Image
from typer.testing import CliRunner

from agrotools.agents import mcp_server
from agrotools.agents.images import PICTURE_BYTES
from agrotools.agents.mcp_server import http_server, is_token, tool_server
from agrotools.calling import get_tool
from agrotools.calling.execution import ToolExecutor
from agrotools.cli.main import app
from agrotools.core import UsageError
from agrotools_tools import AGROTOOLS
from agrotools_tools.serve import mcp as serving
from agrotools_tools.serve.mcp import (
    TOKEN_VARIABLE,
    FolderTools,
    ServerOptions,
    access_token,
    encoded_schema,
    open_workspace,
)

pytestmark = pytest.mark.process
TOKEN = "token-of-the-test-1234"
MODES = ("auto", "legacy")
TOOLS = ("calculate", "describe_region", "plot")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "photos").mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (450, 600, 3)).astype(np.uint8)
    pixels[100:250, 100:300] = (40, 160, 50)
    Image.fromarray(pixels).save(folder / "photos" / "field.png")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))


def options(workspace: Path, **changes: Any) -> ServerOptions:
    return ServerOptions(workspace, **{"tools": TOOLS, **changes})


@asynccontextmanager
async def http(chosen: ServerOptions) -> AsyncGenerator[str]:
    async with (
        serving._server(chosen) as server,  # pyright: ignore[reportPrivateUsage]
        http_server(server, lambda given: is_token(given, TOKEN)) as address,
    ):
        yield address


@asynccontextmanager
async def client_of(chosen: ServerOptions, mode: str = "auto") -> AsyncGenerator[Client]:
    async with serving._server(chosen) as server, Client(server, mode=mode) as client:  # pyright: ignore[reportPrivateUsage]
        yield client


def bearer(token: str = TOKEN) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=None)
    return httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=100, limits=limits
    )


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 120))


def error_of(result: Any) -> dict[str, Any]:
    assert result.is_error
    assert result.structured_content is None
    return json.loads(result.content[0].text)["error"]


async def use(client: Client) -> None:
    """Call a tool that reads a file and writes one, read what it wrote, and use it in another call."""
    assert {tool.name for tool in (await client.list_tools()).tools} == {*TOOLS, "list_files"}
    listed = await client.call_tool("list_files", {})
    assert listed.structured_content == {"files": ["photos/field.png"], "complete": True}
    result = await client.call_tool("describe_region", {"image": "photos/field.png"})
    assert not result.is_error, result.content
    content = result.structured_content
    assert json.loads(result.content[0].text)["result"] == content  # pyright: ignore[reportAttributeAccessIssue]
    assert result.meta["agrotools/certificate"]["refused"]["strange"]
    (link,) = [each for each in result.content if each.type == "resource_link"]
    (picture,) = [each for each in result.content if each.type == "image"]
    assert len(picture.data) <= PICTURE_BYTES
    assert link.name == f"agrotools-results/{content['overlay']}"
    (written,) = (await client.read_resource(link.uri)).contents
    assert len(written.blob) > 1000  # pyright: ignore[reportAttributeAccessIssue]
    for name in (content["overlay"], link.name):
        assert not (await client.call_tool("describe_region", {"image": name})).is_error


@pytest.mark.parametrize("mode", MODES)
def test_over_http(workspace: Path, mode: str):
    async def work() -> None:
        async with (
            http(options(workspace)) as address,
            bearer() as web,
            Client(streamable_http_client(address, http_client=web), mode=mode) as client,
        ):
            await use(client)

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_over_standard_input(workspace: Path, mode: str):
    async def work() -> None:
        command = [
            "-m",
            "agrotools",
            "serve",
            "--workspace",
            str(workspace),
            "--tools",
            ",".join(TOOLS),
        ]
        server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with Client(stdio_client(server), mode=mode) as client:
            await use(client)

    run(work())


CALL = {"name": "calculate", "arguments": {"expression": "6 * 7"}}


def hello(version: str) -> list[dict[str, Any]]:
    about = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    return [
        message("initialize", 1, about),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def message(method: str, number: int, params: Any = None) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": method,
        **({"params": params} if params else {}),
    }


def test_malformed_input_does_not_end_the_server(workspace: Path):
    calls = [
        message("no/such/method", 2),
        message("tools/call", 3, {"name": 5}),
        message("tools/call", 4, CALL),
    ]
    lines = ["{not json", "[]", *map(json.dumps, hello("2025-03-26")), *map(json.dumps, calls)]
    command = [
        sys.executable,
        "-m",
        "agrotools",
        "serve",
        "--workspace",
        str(workspace),
        "--tools",
        "calculate",
    ]
    replies: dict[Any, Any] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        server.stdin.write("".join(f"{line}\n" for line in lines))
        server.stdin.flush()
        while 4 not in replies:
            reply = json.loads(server.stdout.readline())
            replies[reply.get("id")] = reply
        server.stdin.close()
        assert server.wait(30) == 0
    assert replies[1]["result"]["protocolVersion"] == "2025-03-26"
    assert replies[4]["result"]["structuredContent"]["value"] == 42
    assert "error" in replies[2]
    assert "error" in replies[3]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(workspace: Path, number: signal.Signals):
    command = [sys.executable, "-m", "agrotools", "serve", "--workspace", str(workspace)]
    lines = [*hello("2024-11-05"), message("tools/call", 2, CALL)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        server.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        assert json.loads(server.stdout.readline())["id"] == 2
        server.send_signal(number)
        assert server.wait(30) == 0


def test_a_signal_ends_an_http_server_with_open_requests_in_silence(workspace: Path):
    command = [sys.executable, "-m", "agrotools", "serve", "--workspace", str(workspace), "--http"]
    variables = {**os.environ, TOKEN_VARIABLE: TOKEN}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=variables, **pipes) as server:
        server.stdout.readline()
        port = int(server.stdout.readline().rpartition(":")[2].partition("/")[0])
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        open_requests = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        for connection in open_requests:
            connection.sendall(
                f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode()
            )
        time.sleep(1)
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=30)
        for connection in open_requests:
            connection.close()
    assert server.returncode == 130
    assert "Traceback" not in errors
    assert len(errors.splitlines()) <= 1


@pytest.mark.parametrize("body", [b"", b'{"jsonrpc": "2.0"'])
def test_a_client_that_hangs_up_within_its_request_leaves_no_trace(
    workspace: Path, caplog, body: bytes
):
    async def work() -> None:
        async with http(options(workspace, tools=("calculate",))) as address, bearer() as web:
            port = int(address.rpartition(":")[2].partition("/")[0])
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            )
            kinds = (
                "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            )
            writer.write(f"{head}{kinds}Content-Length: 500\r\n\r\n".encode() + body)
            await writer.drain()
            await asyncio.sleep(0.3)
            writer.close()
            await asyncio.sleep(0.3)
            async with Client(streamable_http_client(address, http_client=web)) as client:
                assert not (await client.call_tool("calculate", {"expression": "1"})).is_error

    run(work())
    assert not [record for record in caplog.records if record.exc_info]


def test_hostile_requests_are_refused(workspace: Path):
    attacks: list[tuple[Mapping[str, str], bytes, int]] = [
        ({"Authorization": ""}, b"{}", 401), ({"Authorization": "Bearer wrong"}, b"{}", 401),
        ({"Authorization": f"Basic {TOKEN}"}, b"{}", 401), ({"Host": "attacker.example"}, b"{}", 421),
        ({"Host": "127.0.0.1.attacker.example:80"}, b"{}", 421),
        ({"Origin": "https://attacker.example"}, b"{}", 403), ({}, b" " * (mcp_server.LARGEST_REQUEST + 1), 413),
        ({}, b"{not json", 400), ({}, b"\xff\xfe", 400), ({}, b"[" * 100_000, 400),
    ]  # fmt: skip

    async def work() -> None:
        async with http(options(workspace, tools=("calculate",))) as address, bearer() as web:
            for headers, body, status in attacks:
                kinds = {
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                }
                reply = await web.post(address, content=body, headers={**kinds, **headers})
                assert reply.status_code == status, (headers, body[:20])
                async with Client(streamable_http_client(address, http_client=web)) as client:
                    assert not (await client.call_tool("calculate", {"expression": "1"})).is_error

    run(work())


def test_a_file_of_the_workspace_may_be_named_by_its_path_or_uri(workspace: Path, tmp_path: Path):
    photo = workspace / "photos" / "field.png"
    spaced = workspace / "my field, 50 %.png"
    shutil.copy(photo, spaced)
    (tmp_path / "shortcut").symlink_to(workspace)
    names = [
        str(photo),
        photo.as_uri(),
        spaced.as_uri(),
        str(tmp_path / "shortcut" / "photos" / "field.png"),
        str(workspace / "photos" / ".." / "photos" / "field.png"),
    ]
    others = [f"file://elsewhere{photo}", f"file://{workspace}/../secret.png", "file://[", "file:"]

    async def work() -> None:
        async with client_of(options(workspace)) as client:
            for name in names:
                reply = await client.call_tool("describe_region", {"image": name})
                assert not reply.is_error, name
            listed = await client.call_tool("list_files", {"folder": str(workspace / "photos")})
            assert listed.structured_content["files"] == ["photos/field.png"]
            for name in others:
                error = error_of(await client.call_tool("describe_region", {"image": name}))
                assert error["kind"] in ("path_outside_workspace", "file_not_found"), name
            missing = {"image": str(workspace / "photos" / "fild.png")}
            error = error_of(await client.call_tool("describe_region", missing))
            assert "photos/field.png" in error["hint"]

    run(work())


def test_only_files_of_the_workspace_are_read(workspace: Path, tmp_path: Path):
    secret = tmp_path / "secret.png"
    shutil.copy(workspace / "photos" / "field.png", secret)
    (tmp_path / "secret.json").write_text('{"canary-key": 1}')
    (workspace / "link.png").symlink_to(secret)
    (workspace / "folder").symlink_to(tmp_path)
    (workspace / "inside.png").symlink_to(workspace / "photos" / "field.png")
    shutil.copy(secret, workspace / "sidecar.png")
    (workspace / "sidecar.png.meta.json").symlink_to(tmp_path / "secret.json")
    outside = [
        str(secret),
        "../secret.png",
        "photos/../../secret.png",
        "link.png",
        "folder/secret.png",
        "~/a.png",
    ]
    outside += [
        "..\\secret.png",
        "a\0b.png",
        f"file://{secret}",
        "/proc/self/environ",
        "sidecar.png",
    ]

    async def work() -> None:
        async with client_of(options(workspace)) as client:
            for name in outside:
                error = error_of(await client.call_tool("describe_region", {"image": name}))
                assert error["kind"] in ("path_outside_workspace", "file_not_found"), name
                assert error["hint"]
                assert "canary" not in json.dumps(error)
            assert not (await client.call_tool("describe_region", {"image": "inside.png"})).is_error
            assert (
                error_of(await client.call_tool("describe_region", {"image": "photos"}))["kind"]
                == "unreadable_file"
            )
            for folder in ("..", "folder", "/"):
                assert error_of(await client.call_tool("list_files", {"folder": folder}))["kind"]
            results = "agrotools://results/"
            for uri in (secret.as_uri(), f"{results}../photos/field.png", f"{results}%2e%2e%2fx"):
                with pytest.raises(MCPError, match="there is no resource"):
                    await client.read_resource(uri)

    run(work())
    assert not (workspace / "secret.png").exists()


def test_results_never_replace_files_and_metadata_comes_from_sidecars(
    workspace: Path, tmp_path: Path
):
    (workspace / "region_overlay.jpg").write_text("mine")
    (workspace / "agrotools-results").mkdir()
    (workspace / "agrotools-results" / "region_overlay_2.jpg").write_text("mine too")
    (workspace / "photos" / "field.png.meta.json").write_text('{"gsd_m": 0.01}')

    async def work() -> None:
        async with client_of(options(workspace)) as client:
            result = (
                await client.call_tool("describe_region", {"image": "photos/field.png"})
            ).structured_content
            assert (result["overlay"], result["area_m2"]) == (
                "region_overlay_3.jpg",
                pytest.approx(27),
            )
            listed = (await client.call_tool("list_files", {"folder": "photos"})).structured_content
            assert listed["files"] == ["photos/field.png"]

    run(work())
    assert (workspace / "region_overlay.jpg").read_text() == "mine"
    shutil.rmtree(workspace / "agrotools-results")
    (workspace / "agrotools-results").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        open_workspace(workspace)


def test_errors_have_kind_message_and_hint(workspace: Path):
    async def work() -> None:
        async with client_of(options(workspace)) as client:
            error = error_of(await client.call_tool("calculat", {}))
            assert (error["kind"], error["hint"]) == ("unknown_tool", "did you mean calculate?")
            error = error_of(
                await client.call_tool("describe_region", {"image": "photos/fiel.png"})
            )
            assert (error["kind"], error["hint"]) == (
                "file_not_found",
                "did you mean photos/field.png?",
            )
            error = error_of(await client.call_tool("calculate", {"expression": 5, "more": 1}))
            assert error["kind"] == "invalid_argument"
            assert (
                error_of(await client.call_tool("list_files", {"folder": 5}))["kind"]
                == "invalid_argument"
            )
            error = error_of(await client.call_tool("list_files", {"folder": "nowhere" * 9000}))
            assert (error["kind"], error["hint"]) == (
                "file_not_found",
                "list_files names the files",
            )

    run(work())


@pytest.mark.parametrize(("mode", "n_calls"), [("auto", 200), ("legacy", 50)])
def test_many_calls_at_once_are_all_answered(workspace: Path, mode: str, n_calls: int):
    async def work() -> None:
        async with (
            http(options(workspace, tools=("calculate",))) as address,
            bearer() as web,
            Client(streamable_http_client(address, http_client=web), mode=mode) as client,
        ):
            calls = (
                client.call_tool("calculate", {"expression": f"{n} * 2"}) for n in range(n_calls)
            )
            results = await asyncio.gather(*calls)
        assert [result.structured_content["value"] for result in results] == [
            2 * n for n in range(n_calls)
        ]

    run(work())


@asynccontextmanager
async def waiting_server(
    monkeypatch: pytest.MonkeyPatch, workspace: Path, timeout_s: float
) -> AsyncGenerator[tuple[Any, ToolExecutor]]:
    """Serve ``calculate`` and a tool that does not end, in one worker."""
    known = {"wait": slow_tools.wait, "calculate": get_tool("calculate")}
    monkeypatch.setattr(
        serving, "tool_specs", lambda names, **_: [known[name].spec for name in names]
    )
    async with ToolExecutor(1, timeout_s, find_tool=known.__getitem__) as executor:
        yield (
            tool_server(FolderTools(tuple(known), executor, open_workspace(workspace)).service),
            executor,
        )


def test_a_call_that_hangs_reports_progress_and_ends_at_the_limit(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        assert (total, message) == (None, f"wait: {progress:.0f} s")

    async def work() -> None:
        async with (
            waiting_server(monkeypatch, workspace, 2.5) as (server, _),
            Client(server) as client,
        ):
            waiting = asyncio.create_task(client.call_tool("wait", {}, progress_callback=hear))
            assert not (await client.call_tool("list_files", {})).is_error
            assert error_of(await waiting)["kind"] == "timeout"
            assert not (await client.call_tool("calculate", {"expression": "1"})).is_error

    run(work())
    assert heard[:2] == [1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_goes_away_frees_its_worker(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, mode: str
):
    async def work() -> None:
        async with (
            waiting_server(monkeypatch, workspace, 100) as (server, executor),
            http_server(server, lambda _token: True) as address,
            bearer() as web,
            Client(streamable_http_client(address, http_client=web), mode=mode) as client,
        ):
            waiting = asyncio.create_task(client.call_tool("wait", {}))
            while not executor.calls_of_workers:  # noqa: ASYNC110 - the executor has no event for it
                await asyncio.sleep(0.05)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            result = await asyncio.wait_for(client.call_tool("calculate", {"expression": "1"}), 30)
            assert not result.is_error

    run(work())


def test_output_schemas_describe_the_encoded_results(workspace: Path):
    async def work() -> None:
        async with client_of(options(workspace, tools=AGROTOOLS, output_schemas=True)) as client:
            tools = (await client.list_tools()).tools
            assert all(tool.output_schema for tool in tools if tool.name != "list_files")
            spec = {"kind": "bar", "series": [{"name": "a", "x": ["p", "q"], "y": [1, 2]}]}
            image = {"image": "photos/field.png"}
            calls = {"describe_region": image, "measure_crop_weed_area": image, "plot": spec}
            calls |= {
                "calculate": {"expression": "1 / 3"},
                "lookup_agronomy": {"query": "late blight"},
            }
            for tool, arguments in calls.items():
                result = await client.call_tool(tool, arguments)  # the client validates it
                assert not result.is_error, result.content
        async with client_of(options(workspace)) as client:
            assert all(tool.output_schema is None for tool in (await client.list_tools()).tools)

    run(work())
    for name in AGROTOOLS:
        assert "sha256" not in json.dumps(encoded_schema(name))


def test_token_and_configurations(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    token, is_new = access_token()
    assert is_new
    assert len(token) > 40
    monkeypatch.setenv("AGROTOOLS_MCP_TOKEN", TOKEN)
    assert access_token() == (TOKEN, False)
    monkeypatch.setenv("AGROTOOLS_MCP_TOKEN", "short")
    with pytest.raises(UsageError, match="not usable"):
        access_token()
    for client, key in (
        ("claude-desktop", "mcpServers"),
        ("claude-code", "mcpServers"),
        ("vscode", "servers"),
    ):
        arguments = ["serve", "--workspace", str(workspace), "--tools", "plot", "--config", client]
        arguments += ["--timeout", "90"]
        printed = CliRunner().invoke(app, arguments)
        entry = json.loads(printed.stdout)[key]["agrotools"]
        assert entry["args"][-6:] == [
            "--workspace",
            str(workspace),
            "--tools",
            "plot",
            "--timeout",
            "90.0",
        ]
        assert printed.stderr.startswith("# ")
