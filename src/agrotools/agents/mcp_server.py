"""Server of tools over MCP (Model Context Protocol, SDK 2.3), for agents under evaluation and for other clients.

An HTTP server listens on 127.0.0.1 only, asks for a bearer token, checks ``Host`` and ``Origin`` (against DNS
rebinding) and limits the size of requests.
"""

import asyncio
import hmac
import logging
import socket
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from agrotools.agents.task import ToolDescription, ToolReply
from agrotools.core import UsageError
from agrotools.core.lazy import import_of_extra

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

LARGEST_REQUEST = 2**20
"""Maximum bytes of a request's body."""
PATH = "/mcp"
_KEEP_ALIVE_S = 300
"""Seconds that an unused connection stays open; if it is closed just before it is used again, the call is lost."""


ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
Headers = Mapping[str, str]


class ToolService(NamedTuple):
    """Functions behind a server; ``headers`` are those of the HTTP request, empty over standard input and output."""

    tools: Callable[[Headers], Sequence[ToolDescription]]
    call: Callable[[str, dict[str, Any], Headers, ReportProgress], Awaitable[ToolReply]]
    read: Callable[[str], tuple[str, bytes]] | None = None
    """Media type and content of the resource at a URI, or KeyError."""


def tool_server(
    service: ToolService, *, instructions: str = "", output_schemas: Mapping[str, Any] | None = None
) -> "Server[Any]":
    """Return the MCP server of a service.

    Args:
        instructions: text for the client's model about the tools as a whole.
        output_schemas: JSON Schema of the result, by tool; none by default, because they are longer than all else.

    Raises:
        UsageError: the SDK is not installed.
    """
    lacking = "MCP needs the package mcp, 2.3 or later"
    types = import_of_extra("mcp_types", "mcp", lacking)
    lowlevel = import_of_extra("mcp.server.lowlevel", "mcp", lacking)
    schemas = output_schemas or {}

    async def list_tools(context: Any, _params: Any) -> Any:
        offered = service.tools(_headers(context))
        return types.ListToolsResult(
            tools=[_tool(types, tool, schemas.get(tool.name)) for tool in offered]
        )

    async def call_tool(context: Any, params: Any) -> Any:
        async def report(done: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(done, total, message)

        arguments = dict(params.arguments or {})
        reply = await service.call(params.name, arguments, _headers(context), report)
        return _call_result(types, reply)

    async def read_resource(_context: Any, params: Any) -> Any:
        from mcp.shared.exceptions import MCPError

        uri = str(params.uri)
        try:
            assert service.read is not None
            media_type, content = await asyncio.to_thread(service.read, uri)
        except KeyError:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri}") from None
        resource = _resource(types, uri, media_type, content)
        return types.ReadResourceResult(contents=[resource])

    async def list_resources(_context: Any, _params: Any) -> Any:
        return types.ListResourcesResult(resources=[])  # results link to theirs

    has_resources = service.read is not None
    return lowlevel.Server(
        "agrotools",
        version=version("agrotools"),
        instructions=instructions or None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_read_resource=read_resource if has_resources else None,
        on_list_resources=list_resources if has_resources else None,
    )


# The types of the SDK are handed over, because it is an extra that is imported when a server is made.


def _tool(types: Any, tool: ToolDescription, output_schema: Any) -> Any:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        output_schema=output_schema,
    )


def _call_result(types: Any, reply: ToolReply) -> Any:
    """Return the reply of a tool as MCP writes it: its text, its pictures, and links to its files."""
    content: list[Any] = [types.TextContent(text=reply.text)]
    for picture in reply.pictures:
        content.append(types.ImageContent(data=picture.content, mime_type=picture.media_type))
    for link in reply.links:
        content.append(types.ResourceLink(uri=link.uri, name=link.name, mime_type=link.media_type))
    is_error = "error" in reply.observation
    return types.CallToolResult(
        content=content,
        structured_content=None if is_error else dict(reply.observation.get("result") or {}),
        is_error=is_error,
        meta=reply.meta,
    )


def _resource(types: Any, uri: str, media_type: str, content: bytes) -> Any:
    """Return a file as text if its media type is one of text or JSON, and in base64 otherwise."""
    if media_type.startswith("text/") or media_type.endswith("json"):
        text = content.decode("utf-8", "replace")
        return types.TextResourceContents(uri=uri, mime_type=media_type, text=text)
    blob = b64encode(content).decode()
    return types.BlobResourceContents(uri=uri, mime_type=media_type, blob=blob)


def _headers(context: Any) -> Headers:
    return dict(context.request.headers) if context.request is not None else {}


@asynccontextmanager
async def http_server(
    server: "Server[Any]", accepts: Callable[[str], bool], port: int = 0
) -> AsyncGenerator[str]:
    """Serve over streamable HTTP on 127.0.0.1 within the block, and yield the address.

    Args:
        accepts: True for a valid bearer token.
        port: number of the port; 0 for a free one.

    Raises:
        UsageError: the port is taken.
    """
    import uvicorn

    for name in ("streamable_http", "streamable_http_manager"):
        logging.getLogger(f"mcp.server.{name}").addFilter(_is_no_hang_up)
    app = _with_token(
        server.streamable_http_app(
            streamable_http_path=PATH, max_request_body_size=LARGEST_REQUEST
        ),
        accepts,
    )
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"port {port} of 127.0.0.1 is taken", hint="choose another, or omit it"
        ) from error
    running = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="error",
            lifespan="on",
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
        )
    )
    # Signals are those of the command.
    running.capture_signals = nullcontext  # pyright: ignore[reportAttributeAccessIssue]
    task = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        while not running.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
    finally:
        # Requests that never came to an end are cancelled, each with a traceback.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        running.should_exit = True
        await task
        listener.close()


_HANG_UPS = ("ClientDisconnect", "ClosedResourceError", "BrokenResourceError")


def _is_no_hang_up(record: logging.LogRecord) -> bool:
    """Return False for the error of a client that hung up, which the SDK logs with its stack trace."""
    return record.exc_info is None or type(record.exc_info[1]).__name__ not in _HANG_UPS


def bearer_token(headers: Headers) -> str:
    """Return the token of a request; empty if it has none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_token(given: str, expected: str) -> bool:
    """Compare two tokens in constant time."""
    return hmac.compare_digest(given.encode(), expected.encode())


def _with_token(app: Any, accepts: Callable[[str], bool]) -> Any:
    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope.get("headers", ())
        }
        answering = app
        if scope["type"] == "http" and not accepts(bearer_token(headers)):
            from starlette.responses import JSONResponse

            answering = JSONResponse(
                {"error": "a valid bearer token is needed"}, 401, {"WWW-Authenticate": "Bearer"}
            )
        await answering(scope, receive, send)

    return guarded
