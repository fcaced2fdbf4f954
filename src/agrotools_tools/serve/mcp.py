"""MCP server of the tools on a folder, over standard input and output or HTTP, and its configuration for clients."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from urllib.parse import quote, unquote

from agrotools.agents.images import result_pictures
from agrotools.agents.llm import error_data
from agrotools.agents.mcp_server import (
    Headers,
    ReportProgress,
    ToolService,
    http_server,
    is_token,
    tool_server,
)
from agrotools.agents.task import Link, Picture, ToolDescription, ToolReply
from agrotools.calling import get_tool, tool_specs
from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.result import certificate
from agrotools.core import AgrotoolsError, ErrorInfo, Observation, ToolCall, ToolError, UsageError
from agrotools.core.files import cache_dir
from agrotools.core.processes import on_stop_signal
from agrotools.core.taxonomy import CONVENTIONS
from agrotools_tools import AGROTOOLS
from agrotools_tools.serve.workspace import FolderWorkspace

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


RESULTS = "agrotools-results"
"""Folder of the files that tools write, in the workspace."""
CERTIFICATE_KEY = "agrotools/certificate"
"""Key in ``_meta`` of a result: how accurate the tool was in the accuracy studies."""
_URI = "agrotools://results/"
_LISTED_FILES = 500
_LARGEST_RESOURCE = 64 * 2**20
_PROGRESS_S = 1.0
_ABOUT_NAMES = ("file_not_found", "path_outside_workspace")
_Value = TypeVar("_Value")


def check_tools(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repetitions; UsageError if a tool does not exist, cannot be loaded, or needs a library
    that is not installed."""
    tools = [get_tool(name) for name in dict.fromkeys(names)]
    for tool in tools:
        tool.check_libraries()
    return tuple(tool.spec.name for tool in tools)


LIST_FILES = ToolDescription(
    "list_files",
    "List the files of the workspace that the tools can open, by the names that their arguments take.",
    {
        "type": "object",
        "properties": {
            "folder": {
                "type": "string",
                "description": "Only files below this subfolder.",
                "default": ".",
            }
        },
    },
)
INSTRUCTIONS = (
    "Tools that measure, count and recognise things in agricultural images. Files are named relative to the workspace "
    "(see list_files). Each result says in `notes` how it was obtained and in `flags` where it may be wrong; report "
    f"both. Pictures and tables that a tool writes are in {RESULTS}/ and may be used in later calls. A region is a "
    f"{CONVENTIONS['region']}; gsd_m is the {CONVENTIONS['pixel size']}; bands are "
    f"given as {CONVENTIONS['bands']}."
)


def open_workspace(folder: Path) -> FolderWorkspace:
    """Return the workspace of a folder.

    Raises:
        UsageError: there is no such folder, or the place of the results is a link or a file.
    """
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {folder}", hint="--workspace names the folder of your files"
        )
    root = folder.resolve()
    results = root / RESULTS
    if os.path.lexists(results) and (results.is_symlink() or not results.is_dir()):
        raise UsageError(
            f"{results} is not a folder", hint="results are written there: move it away"
        )
    return FolderWorkspace((), results, root)


def encoded_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's result as clients get it: files by name, null for numbers without a value."""

    def encoded(value: Any, *, is_schema: bool = True) -> Any:
        if isinstance(value, list):
            return [encoded(item) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        schema = cast("dict[str, Any]", value)
        kept = {key: item for key, item in schema.items() if not (is_schema and key == "title")}
        plain = {
            key: encoded(item, is_schema=key not in ("properties", "$defs"))
            for key, item in kept.items()
        }
        return (
            {**plain, "type": ["number", "null"]}
            if is_schema and plain.get("type") == "number"
            else plain
        )

    schema = get_tool(name).result_type.model_json_schema(mode="serialization")
    if "Artifact" in schema.get("$defs", {}):
        schema["$defs"]["Artifact"] = {"type": "string", "description": "name of a file"}
    return encoded(schema)


@dataclass(frozen=True)
class FolderTools:
    """Tools on the files of a workspace, run by an executor."""

    names: Sequence[str]
    executor: ToolExecutor
    workspace: FolderWorkspace
    all_arguments: bool = False
    """Whether the settings of experts are listed, too; calls may give them in any case."""

    @property
    def service(self) -> ToolService:
        """The functions of an MCP server."""
        return ToolService(self._descriptions, self._call, self._read)

    def _descriptions(self, _headers: Headers) -> list[ToolDescription]:
        offered = [
            spec.offered(open_maps=True, all_arguments=self.all_arguments)
            for spec in tool_specs(self.names, backends=self.executor.backends)
        ]
        return [*(ToolDescription(**each) for each in offered), LIST_FILES]

    async def _call(
        self, tool: str, arguments: dict[str, Any], _headers: Headers, report: ReportProgress
    ) -> ToolReply:
        try:
            if tool == LIST_FILES.name:
                return ToolReply({"result": await self._list_files(arguments)})
            call = ToolCall(tool=tool, arguments=arguments)
            outcome = await _reporting(
                self.executor.run(call, self.workspace, self.names), tool, report
            )
            return await asyncio.to_thread(self._reply, tool, outcome.observation)
        except AgrotoolsError as error:
            return ToolReply({"error": _error(error)})

    async def _list_files(self, arguments: dict[str, Any]) -> dict[str, Any]:
        folder = arguments.get("folder", ".")
        if not isinstance(folder, str) or not folder.strip() or arguments.keys() - {"folder"}:
            raise ToolError(
                "invalid_argument", "list_files takes a text 'folder' alone", argument="folder"
            )
        names = await asyncio.to_thread(self.workspace.names, folder, limit=_LISTED_FILES + 1)
        return {"files": names[:_LISTED_FILES], "complete": len(names) <= _LISTED_FILES}

    def _reply(self, tool: str, observation: Observation) -> ToolReply:
        if observation.error is not None:
            return ToolReply({"error": _shown(observation.error)})
        made = observation.artifacts
        links = [
            Link(_URI + quote(item.name), f"{RESULTS}/{item.name}", item.media_type)
            for item in made
        ]
        meta = {CERTIFICATE_KEY: certificate(tool, get_tool(tool).version)}
        pictures = [Picture(*each) for each in result_pictures(made, self.workspace.artifacts)]
        return ToolReply({"result": observation.result or {}}, pictures, links, meta)

    def _read(self, uri: str) -> tuple[str, bytes]:
        """Return media type and content of a file that a tool wrote; KeyError if there is none."""
        from mimetypes import guess_type

        name = unquote(uri.removeprefix(_URI))
        results = FolderWorkspace((), self.workspace.artifacts, self.workspace.artifacts)
        try:
            if not uri.startswith(_URI) or self.workspace.artifacts.is_symlink():
                raise KeyError(uri)
            path = results.resolve(name)
            if path.stat().st_size > _LARGEST_RESOURCE:
                raise KeyError(uri)
            return guess_type(name)[0] or "application/octet-stream", path.read_bytes()
        except (ToolError, OSError) as error:
            raise KeyError(uri) from error


async def _reporting(
    work: Coroutine[Any, Any, _Value], tool: str, report: ReportProgress
) -> _Value:
    """Await ``work``, reporting progress every second; if the client goes away, the work is cancelled."""
    running, started = asyncio.ensure_future(work), time.monotonic()
    try:
        while not (await asyncio.wait({running}, timeout=_PROGRESS_S))[0]:
            seconds = round(time.monotonic() - started)
            with suppress(Exception):  # the client no longer listens
                await report(seconds, None, f"{tool}: {seconds} s")
        return running.result()
    finally:
        running.cancel()


def _shown(error: ErrorInfo) -> dict[str, Any]:
    hint = {"hint": "list_files names the files"} if error.kind in _ABOUT_NAMES else {}
    # Who reads this may tell the person that set the server up.
    setup = {"setup": error.setup} if error.setup else {}
    return {**hint, **error_data(error), **setup}


def _error(error: AgrotoolsError) -> dict[str, Any]:
    if isinstance(error, ToolError):
        return _shown(error.info)
    hint = {"hint": error.hint} if error.hint else {}
    return {
        "kind": "usage" if isinstance(error, UsageError) else "tool_failed",
        "message": error.message,
        **hint,
    }


TOKEN_VARIABLE = "AGROTOOLS_MCP_TOKEN"
_SHORTEST_TOKEN = 16
Client = Literal["claude-desktop", "claude-code", "cursor", "vscode"]


@dataclass(frozen=True)
class ServerOptions:
    """Options of the server."""

    workspace: Path = Path()
    tools: Sequence[str] = AGROTOOLS
    backends: Mapping[str, str] = field(default_factory=dict[str, str])
    output_schemas: bool = False
    all_arguments: bool = False
    workers: int = 2
    timeout_s: float = 60.0


def access_token() -> tuple[str, bool]:
    """Return the token that clients need, and True if it is new and must be shown to the user.

    Raises:
        UsageError: the token in the environment is too short.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and (
        len(token) < _SHORTEST_TOKEN
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise UsageError(
            f"{TOKEN_VARIABLE} is not usable as a token",
            hint=f"at least {_SHORTEST_TOKEN} letters, digits and signs",
        )
    return token or token_urlsafe(32), not token


async def serve_stdio(options: ServerOptions) -> None:
    """Serve one client over standard input and output until it closes them or the process is told to end."""
    stopped = asyncio.Event()
    with on_stop_signal(stopped.set):
        async with _server(options) as server:
            running, stopping = (
                asyncio.create_task(_run_stdio(server)),
                asyncio.create_task(stopped.wait()),
            )
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


async def serve_http(
    options: ServerOptions, port: int, token: str, started: Callable[[str], None]
) -> None:
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
    async with ToolExecutor(
        options.workers, options.timeout_s, cache=cache, backends=options.backends
    ) as executor:
        tools = FolderTools(names, executor, workspace, options.all_arguments)
        schemas = {name: encoded_schema(name) for name in names} if options.output_schemas else None
        yield tool_server(tools.service, instructions=INSTRUCTIONS, output_schemas=schemas)


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
        line = shlex.join([command["command"], *command["args"]])
        place += f". Instead of the file: claude mcp add agrotools -- {line}"
    return json.dumps(content, indent=2), place
