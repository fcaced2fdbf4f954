"""Session with a tool server: its listing, and calls, each with a limit on its time and on the size of its reply.

What comes in are names and arguments; what goes out are replies of ours. A server that cannot start, dies, hangs,
floods or breaks the protocol raises InfrastructureError, never an observation: it is no error of whoever made the call.
An error that the tool itself reports is a reply.

A session is opened and closed by a task of its own, because the SDK must do both in one task, while calls may come
from any.
"""

import asyncio
import base64
import binascii
import logging
import mimetypes
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from agrotools.calling.result import LARGEST_MESSAGE
from agrotools.core import InfrastructureError, UsageError
from agrotools.core.errors import innermost, last_words, words_of
from agrotools.core.files import sha256_of_json
from agrotools.core.lazy import import_of_extra
from agrotools.core.processes import kill_group
from agrotools.sandbox.agents import Isolation
from agrotools.served.address import ServerAddress

START_TIMEOUT_S = 120.0
"""Seconds until a server must be ready: some import gigabytes of libraries first."""
CALL_TIMEOUT_S = 60.0
"""Seconds of one call, as of our own tools."""
LARGEST_REPLY = 64 * 2**20
"""Bytes of one message, and of all files of one reply; a picture of 40 megapixels has less."""
LARGEST_RESULT = LARGEST_MESSAGE
"""Bytes of a result without its files, as of our own tools."""
_MOST_PAGES = 100
"""Pages of a listing; a server that always names a next page would never end."""
_END_S = 1.0
"""Seconds from the end of its input until the process of a server is killed."""
_LAST_WORDS_BYTES = 20_000
_LONGEST_WORDS = 300
"""Characters of the last line of a server that a message shows."""
_MESSAGE_TYPES = ("application/json", "text/event-stream")
"""Types of content by which an HTTP server answers a request."""
_LACKING = "tools of other servers need the package mcp, 2.3 or later"


class ServedTool(NamedTuple):
    """A tool in the listing of a server."""

    name: str
    description: str
    arguments: dict[str, Any]
    """JSON Schema of the arguments."""
    result: dict[str, Any] | None
    """JSON Schema of the structured result, if the server gives one."""


class Listing(NamedTuple):
    """What a server says of itself: its name, version and tools."""

    name: str
    version: str
    tools: tuple[ServedTool, ...]

    @property
    def schema_hash(self) -> str:
        """SHA-256 over the tools with their schemas and descriptions, in the order of their names."""
        return sha256_of_json([tool._asdict() for tool in sorted(self.tools)])

    def tool(self, name: str) -> ServedTool | None:
        """Return the tool with a name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)


class ServedFile(NamedTuple):
    """A picture or other file in a reply."""

    name: str
    media_type: str
    content: bytes


class ServedReply(NamedTuple):
    """Reply to a call: its result, or the text of the error that the tool reports, and its files."""

    result: dict[str, Any]
    error: str | None = None
    files: tuple[ServedFile, ...] = ()


@dataclass(eq=False)
class ServerSession:
    """One session with a server, and over standard input and output a process of its own.

    Args:
        address: the server.
        isolation: how its process is started; not used for HTTP.
        folder: folder of the sample's files.
        timeout_s: seconds of one call.
    """

    address: ServerAddress
    isolation: Isolation
    folder: Path
    timeout_s: float = CALL_TIMEOUT_S
    _client: Any = None
    _process: asyncio.subprocess.Process | None = None
    _said: bytearray = field(default_factory=bytearray)
    """End of what the process wrote to standard error."""
    _fault: str = ""
    """What broke the session; empty while it is well."""
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _holder: "asyncio.Task[None] | None" = None

    @property
    def _label(self) -> str:
        return f"the tool server {self.address.name or self.address.text}"

    async def open(self) -> None:
        """Start the server, or connect to it.

        Raises:
            UsageError: the SDK is not installed, or a header's variable is not set.
            InfrastructureError: the server does not start or answer.
        """
        import_of_extra("mcp.client.client", "mcp", _LACKING)
        # It logs stack traces of faults that our messages name.
        logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(ready))
        try:
            await asyncio.wait_for(asyncio.shield(ready), START_TIMEOUT_S)
        except TimeoutError:
            await self.close()
            self._fault = f"was not ready after {START_TIMEOUT_S:g} s"
            raise self._broken() from None
        except UsageError:
            raise
        except Exception as error:
            await self.close()
            if self.address.kind == "http":
                raise self._broken() from error
            reason = self._last_words() or f": {self._exit_text() or _reason(error)}"
            raise InfrastructureError(
                f"{self._label} does not start{reason}",
                hint="start it by hand to see all that it says",
            ) from error

    async def _hold(self, ready: "asyncio.Future[None]") -> None:
        """Keep the session open until it is closed; both ends of the SDK's context are in this task."""
        from mcp.client.client import Client

        # Since protocol 2026-07-28, HTTP has no sessions: a sample would see the state of another one. The handshake of
        # earlier versions opens a session.
        mode = "legacy" if self.address.kind == "http" else "auto"
        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack)
                client = Client(transport, mode=mode)
                self._client = await stack.enter_async_context(client)
                ready.set_result(None)
                await self._closing.wait()
        except Exception as error:
            self._fault = self._fault or f"cannot be reached: {_reason(error)}"
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._closing.set()

    async def _transport(self, stack: AsyncExitStack) -> Any:
        if self.address.kind == "http":
            return await self._http_transport(stack)
        command = self.address.command(self.folder)
        try:
            self._process = await self.isolation.start(command, {}, {}, self.folder)
        except OSError as error:
            raise InfrastructureError(
                f"{command[0]} cannot be started: {error.strerror}"
            ) from error
        stack.push_async_callback(_end, self._process)
        return self._pipes(self._process)

    async def _http_transport(self, stack: AsyncExitStack) -> Any:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        client = create_mcp_http_client(headers=self.address.header_values())
        client.event_hooks = {"response": [self._watch_response]}
        await stack.enter_async_context(client)
        return streamable_http_client(
            self.address.words[0], http_client=client, max_sse_event_size=LARGEST_REPLY
        )

    async def _watch_response(self, response: Any) -> None:
        """Note an answer to a request that is no message of the protocol: the SDK makes an error of the tool of it."""
        fault = _http_fault(response)
        if not fault or response.request.method != "POST":
            return
        is_request = orjson.loads(response.request.content).get("id") is not None
        if is_request:  # no message answers a notification
            self._fault = self._fault or fault
            await response.aclose()  # nobody reads a body that is too large

    @asynccontextmanager
    async def _pipes(self, process: asyncio.subprocess.Process) -> AsyncGenerator[Any]:
        """Provide the streams of the SDK over the pipes of a process.

        The SDK's own ones break at a line that is not UTF-8, and read a line of any length.
        """
        import anyio

        to_us, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, from_us = anyio.create_memory_object_stream[Any](0)
        tasks = [
            asyncio.create_task(self._read_messages(process, to_us)),
            asyncio.create_task(_write_messages(process, from_us)),
            asyncio.create_task(self._read_log(process)),
        ]
        try:
            yield incoming, outgoing
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_us, incoming, outgoing, from_us):
                stream.close()

    async def _read_messages(self, process: asyncio.subprocess.Process, to_us: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                with suppress(ValueError):  # else a line of a log, which some servers write there
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await to_us.send(SessionMessage(message))
            self._fault = "ended"
        except ValueError:
            self._fault = f"wrote a line of more than {LARGEST_REPLY // 2**20} MiB"
        finally:
            to_us.close()

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(2**16):
            self._said += chunk
            del self._said[:-_LAST_WORDS_BYTES]

    def _exit_text(self) -> str:
        status = self._process.returncode if self._process is not None else None
        return f"its process ended with status {status}" if status is not None else ""

    def _last_words(self) -> str:
        """Return the last line that the process wrote to standard error, behind a colon; empty if there is none."""
        line = last_words(self._said.decode(errors="replace")).strip()
        return f": {line[:_LONGEST_WORDS]}" if line else ""

    async def listing(self) -> Listing:
        """Return name, version and tools of the server, of all pages of its listing."""
        tools: list[ServedTool] = []
        cursor = None
        for _ in range(_MOST_PAGES):
            page = await self._ask("list_tools", cursor=cursor)
            if isinstance(page, ServedReply):
                raise InfrastructureError(f"{self._label} does not list its tools: {page.error}")
            for tool in page.tools:
                schemas = dict(tool.input_schema), tool.output_schema and dict(tool.output_schema)
                tools.append(ServedTool(tool.name, tool.description or "", *schemas))
            cursor = page.next_cursor
            if not cursor:
                about = self._client.server_info
                return Listing(about.name or "server", about.version or "", tuple(tools))
        raise InfrastructureError(f"{self._label} lists its tools without end")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServedReply:
        """Return the reply of a tool; an error of the tool is one, too."""
        answered = await self._ask("call_tool", name=tool, arguments=dict(arguments))
        if isinstance(answered, ServedReply):
            return answered
        return await self._reply(answered)

    async def _ask(self, method: str, **arguments: Any) -> Any:
        """Return what the server answers to a method of the SDK's client, an error that it reports as a reply.

        Raises:
            InfrastructureError: the server died, did not answer in time, or breaks the protocol.
        """
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR

        if self._fault:
            raise self._broken()
        # The SDK cancels who waits for an HTTP server that has gone, which must not look like the end of the run.
        asking = asyncio.ensure_future(getattr(self._client, method)(**arguments))
        try:
            await asyncio.wait({asking}, timeout=self.timeout_s)
            if not asking.done():
                self._fault = f"did not answer within {self.timeout_s:g} s"
                raise self._broken()
            if asking.cancelled():
                self._fault = self._fault or "cannot be reached"
                raise self._broken()
            return asking.result()
        except InfrastructureError:
            raise
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._fault = self._fault or f"broke off the call: {error.message}"
            elif error.code == PARSE_ERROR:
                self._fault = self._fault or f"breaks its protocol: {error.message}"
            if self._fault:
                raise self._broken() from error
            return ServedReply({}, error.message)
        except (ValueError, RuntimeError) as error:  # of pydantic, and the SDK's check of results
            self._fault = self._fault or f"breaks its protocol: {_reason(error)}"
            raise self._broken() from error
        except Exception as error:  # of the HTTP client
            self._fault = self._fault or f"cannot be reached: {_reason(error)}"
            raise self._broken() from error
        finally:
            asking.cancel()

    def _broken(self) -> InfrastructureError:
        is_http = self.address.kind == "http"
        return InfrastructureError(
            f"{self._label} {self._fault}{self._last_words()}",
            hint="check that it runs, its address and its headers" if is_http else None,
        )

    async def _reply(self, answered: Any) -> ServedReply:
        texts = [block.text for block in answered.content if block.type == "text"]
        if answered.is_error:
            return ServedReply({}, "\n".join(texts) or "the tool reports an error without words")
        files: list[ServedFile] = []
        pictures: list[ServedFile] = []
        for block in answered.content:
            if block.type == "resource_link":
                read = await self._ask("read_resource", uri=str(block.uri))
                if not isinstance(read, ServedReply):
                    files += [_resource_file(each, block.name) for each in read.contents]
            elif block.type == "resource":
                files.append(_resource_file(block.resource, ""))
            elif block.type in ("image", "audio"):
                ending = mimetypes.guess_extension(block.mime_type) or ""
                pictures.append(
                    ServedFile(f"{block.type}{ending}", block.mime_type, _decoded(block.data))
                )
        # A picture that is there as a file, too, is shown reduced beside it.
        has_pictures = any(file.media_type.startswith("image/") for file in files)
        files += [] if has_pictures else pictures
        if sum(len(file.content) for file in files) > LARGEST_REPLY:
            raise InfrastructureError(
                f"{self._label} gave files of more than {LARGEST_REPLY // 2**20} MiB"
            )
        result = _result(answered.structured_content, texts)
        if len(orjson.dumps(result)) > LARGEST_RESULT:
            raise InfrastructureError(
                f"{self._label} gave a result of more than {LARGEST_RESULT // 2**20} MiB"
            )
        return ServedReply(result, None, tuple(files))

    async def close(self) -> None:
        """End the session, and the process of the server with all that it started."""
        self._closing.set()
        if self._holder is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._holder), 2 * _END_S)
            self._holder.cancel()
            await asyncio.gather(self._holder, return_exceptions=True)
        if self._process is not None:
            await _end(self._process)


def _http_fault(response: Any) -> str:
    """Return what is wrong with the answer of an HTTP server to a request; empty if it may be a message."""
    if response.status_code >= 400:
        return f"answered {response.status_code} {response.reason_phrase}"
    if int(response.headers.get("content-length", 0)) > LARGEST_REPLY:
        return f"sent more than {LARGEST_REPLY // 2**20} MiB"
    kind = response.headers.get("content-type", "").lower()
    if response.status_code == 200 and not kind.startswith(_MESSAGE_TYPES):
        return f"answered with {kind or 'nothing'}, which is no message of MCP"
    return ""


async def _write_messages(process: asyncio.subprocess.Process, from_us: Any) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError):  # the process has ended, which reading it finds out
        async for message in from_us:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process: it may end by itself when its input does, and is killed with its group otherwise."""
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _END_S)
    kill_group(process.pid)  # also what it left behind
    await process.wait()


def _result(structured: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Return the structured result, else the text as JSON, else the text.

    A result that is no object comes as ``{"result": ...}``, and so do objects of tools whose type is not declared.
    """
    # Through orjson, for which numbers that are not finite are null, as in results of our own tools.
    value = orjson.loads(orjson.dumps(structured)) if structured is not None else None
    if value is None:
        value = _loaded("\n".join(texts))
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        inner = found.get("result")
        is_wrapped = found.keys() == {"result"} and isinstance(inner, dict)
        return cast("dict[str, Any]", inner) if is_wrapped else found
    return {"text": value} if isinstance(value, str) else {"result": value}


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _resource_file(resource: Any, name: str) -> ServedFile:
    """Return a resource as a file, with the name of its link, else the last part of its address."""
    last = Path(name or str(resource.uri)).name or "file"
    media_type = resource.mime_type or mimetypes.guess_type(last)[0] or "application/octet-stream"
    if hasattr(resource, "blob"):
        return ServedFile(last, media_type, _decoded(resource.blob))
    return ServedFile(last, media_type, resource.text.encode())


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InfrastructureError(f"a tool server gave a file that is no base64: {error}") from None


def _reason(error: BaseException) -> str:
    """Return the first line of an error, of a group that of its first one."""
    first = innermost(error)[0]
    words = words_of(first).strip().split("\n")[0]
    return (words or type(first).__name__)[:_LONGEST_WORDS]
