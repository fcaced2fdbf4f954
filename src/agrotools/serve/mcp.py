"""MCP server of the tools on a folder, over standard input and output or HTTP, and its configuration for clients."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Literal

from agrotools.agents.mcp_server import http_server, is_token, tool_server
from agrotools.core import UsageError
from agrotools.core.files import cache_dir
from agrotools.core.processes import on_stop_signal
from agrotools.serve.folder_tools import (
    INSTRUCTIONS,
    RECORDED,
    FolderTools,
    check_tools,
    encoded_schema,
    open_workspace,
)
from agrotools.serve.recording import SessionRecorder
from agrotools.tools import AGROTOOLS
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

TOKEN_VARIABLE = "AGROTOOLS_MCP_TOKEN"
_SHORTEST_TOKEN = 16
Client = Literal["claude-desktop", "claude-code", "cursor", "vscode"]


@dataclass(frozen=True)
class ServerOptions:
    """Options of the server."""

    workspace: Path = Path()
    tools: Sequence[str] = AGROTOOLS
    backends: Mapping[str, str] = field(default_factory=dict[str, str])
    record: Path | None = None
    output_schemas: bool = False
    workers: int = 2
    timeout_s: float = 60.0


def access_token() -> tuple[str, bool]:
    """Return the token that clients need, and True if it is new and must be shown to the user.

    Raises:
        UsageError: the token in the environment is too short.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise UsageError(
            f"{TOKEN_VARIABLE} is not usable as a token", hint=f"at least {_SHORTEST_TOKEN} letters, digits and signs"
        )
    return token or token_urlsafe(32), not token


async def serve_stdio(options: ServerOptions) -> None:
    """Serve one client over standard input and output until it closes them or the process is told to end."""
    stopped = asyncio.Event()
    with on_stop_signal(stopped.set):
        async with _server(options) as server:
            running, stopping = asyncio.create_task(_run_stdio(server)), asyncio.create_task(stopped.wait())
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
    if not running.done():
        sys.stderr.flush()
        os._exit(0)  # a thread still waits for standard input, and nothing can interrupt it
    running.result()


async def _run_stdio(server: "Server[Any]") -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def serve_http(options: ServerOptions, port: int, token: str, started: Callable[[str], None]) -> None:
    """Serve any number of clients over HTTP until the process is told to end.

    Args:
        port: number of the port; 0 for a free one.
        started: is called with the address.

    Raises:
        UsageError: the port is taken.
    """
    stopped = asyncio.Event()
    with on_stop_signal(stopped.set):
        async with (
            _server(options) as server,
            http_server(server, lambda given: is_token(given, token), port) as address,
        ):
            started(address)
            await stopped.wait()


@asynccontextmanager
async def _server(options: ServerOptions) -> AsyncGenerator["Server[Any]"]:
    names, workspace = check_tools(options.tools), open_workspace(options.workspace)
    cache = ResultCache(cache_dir("tool-results"))
    async with ToolExecutor(options.workers, options.timeout_s, cache=cache, backends=options.backends) as executor:
        recorder = SessionRecorder(options.record, names) if options.record else None
        try:
            if recorder is not None:
                sys.stderr.write(f"recording to {recorder.folder}\n")
            tools = FolderTools(names, executor, workspace, recorder)
            schemas = {name: encoded_schema(name) for name in names} if options.output_schemas else None
            instructions = INSTRUCTIONS + RECORDED * (recorder is not None)
            yield tool_server(tools.service, instructions=instructions, output_schemas=schemas)
        finally:
            if recorder is not None:
                recorder.close()


def client_configuration(client: Client, arguments: Sequence[str]) -> tuple[str, str]:
    """Return the configuration of a client as JSON, and the place where it belongs, in words; ``arguments``: those of
    ``agrotools serve``, which the client starts."""
    # -P: clients start the server in the folder of the project, whose Python files must not be imported.
    command = {"command": sys.executable, "args": ["-P", "-m", "agrotools", "serve", *arguments]}
    entry = command if client == "claude-desktop" else {"type": "stdio", **command}
    content = {"servers" if client == "vscode" else "mcpServers": {"agrotools": entry}}
    place = {
        "claude-desktop": "claude_desktop_config.json (Settings, Developer, Edit Config), then restart Claude Desktop",
        "claude-code": ".mcp.json in your project; claude asks for approval when it starts there",
        "cursor": ".cursor/mcp.json in your project, or ~/.cursor/mcp.json",
        "vscode": ".vscode/mcp.json in your project",
    }[client]
    if client == "claude-code":
        place += (
            f". Instead of the file: claude mcp add agrotools -- {shlex.join([command['command'], *command['args']])}"
        )
    return json.dumps(content, indent=2), place
