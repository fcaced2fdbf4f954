"""HTTP/1.1 client for unencrypted addresses: POST requests over kept connections, whole replies.

Servers on one's own machine or network answer within milliseconds, so that the client's own time per exchange counts.
aiohttp's client, which also handles cookies, redirects, proxies and TLS, takes more than twice as long; addresses that
need any of these use it (:mod:`agrotools.models.transport`). Replies are parsed by httptools (llhttp).
"""

import asyncio
import socket
import zlib
from collections.abc import Mapping
from typing import cast

import aiohappyeyeballs
import httptools
from multidict import CIMultiDict
from yarl import URL

from agrotools.models.base import WireSettings

CONNECT_S = 15.0
LONGEST_REPLY_BYTES = 16 * 2**20
_LONGEST_HEAD_BYTES = 2**20
_IDLE_S = 15.0
"""Seconds after which an unused connection is not used again: many servers close them soon after."""
_LARGE_BYTES = 2**16


class HttpFault(Exception):
    """An exchange that failed below the level of replies.

    ``stage``: ``connect`` (nobody accepted the connection), ``connect_timeout``, ``head`` (before the head of the reply
    was complete), ``body``, ``stalled``, ``timeout`` (no head in time), ``endless`` (a body, but no end in time) or
    ``too_long``.
    """

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage


class _Connection(asyncio.Protocol):
    """A connection, and the reply that it waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[None] | None = None
        self.idle_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.status = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._has_head = self._is_complete = self.is_reusable = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, head: bytes, body: bytes, timeout_s: float, stall_s: float) -> None:
        """Send a request and receive the reply: ``status``, ``headers`` and ``body``."""
        assert self._transport is not None
        self._reset()
        self._reply = self._loop.create_future()
        self._stall_s = stall_s
        self._stall: asyncio.TimerHandle | None = None
        limit = self._loop.call_later(timeout_s, self._too_late, timeout_s)
        try:
            if len(body) < _LARGE_BYTES:
                self._loop.call_soon(self._transport.write, head + body)
            else:
                self._transport.write(head)
                self._transport.write(body)
            await self._reply
        except BaseException:
            self.close()
            raise
        finally:
            limit.cancel()
            if self._stall is not None:
                self._stall.cancel()
            self._reply = None
        # A server that answers before it has read the request does not read the rest.
        self.is_reusable = self.is_reusable and not self._transport.get_write_buffer_size()

    @property
    def body(self) -> bytes:
        """Body of the reply as it was sent."""
        return b"".join(self._pieces)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, stage: str, reason: str = "") -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(HttpFault(stage, reason))
        self.close()

    def _too_late(self, timeout_s: float) -> None:
        self._fail("endless" if self._has_head else "timeout", f"{timeout_s:g}")

    # --- callbacks of asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():
            self.close()  # more than was asked for
            return
        if not self._has_head:
            self._size += len(data)
            if self._size > _LONGEST_HEAD_BYTES:
                self._fail("head", "the reply has no end of its headers")
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.is_reusable = False
            self._fail("head", "not HTTP: the server switches to another protocol")
            return
        except (httptools.HttpParserError, httptools.HttpParserCallbackError, UnicodeDecodeError) as error:
            self.is_reusable = False
            self._fail("body" if self._has_head else "head", f"not HTTP: {error}")
            return
        if self._has_head and not self._reply.done():
            if self._stall is not None:
                self._stall.cancel()
            self._stall = self._loop.call_later(self._stall_s, self._fail, "stalled")

    def eof_received(self) -> None:
        has_length = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        if self._has_head and not has_length and self._reply is not None and not self._reply.done():
            self._reply.set_result(None)  # the end of the connection is the end of the body
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f"{type(exc).__name__}: {exc}" if exc else "the server closed the connection"
        self._fail("body" if self._has_head else "head", reason)

    # --- callbacks of the parser; a server may write more than the reply ---

    def on_message_begin(self) -> None:
        self.is_reusable = self.is_reusable and not self._is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_complete:
            self.headers.add(name.decode("latin-1"), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        if not self._is_complete:
            self.status = self._parser.get_status_code()
            self._size = 0
            self._has_head = self.status >= 200

    def on_body(self, data: bytes) -> None:
        if not self._is_complete:
            self._pieces.append(data)
            self._size += len(data)
            if self._size > LONGEST_REPLY_BYTES:
                self._fail("too_long")

    def on_message_complete(self) -> None:
        if self.status < 200:  # an interim reply, such as 100 Continue
            self.headers.clear()
        elif not self._is_complete and self._reply is not None and not self._reply.done():
            self._is_complete = True
            self.is_reusable = self._parser.should_keep_alive()
            self._reply.set_result(None)


class PlainHttp:
    """Client of one server without encryption.

    Args:
        headers: sent with every request.
        wire: time limits.
    """

    def __init__(self, headers: Mapping[str, str], wire: WireSettings) -> None:
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        if any("\n" in line[:-2] or "\r" in line[:-2] for line in lines):
            raise ValueError("a header of the request contains a line break")
        self._headers = "".join(lines).encode("utf-8")
        self._wire = wire
        self._heads: dict[URL, bytes] = {}
        self._idle: dict[tuple[str, int], list[_Connection]] = {}

    async def post(self, url: URL, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of the reply to a request.

        Raises:
            HttpFault: there is no whole reply.
        """
        loop = asyncio.get_running_loop()
        if (head := self._heads.get(url)) is None:
            line = f"POST {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
            head = self._heads[url] = line.encode("ascii") + self._headers
        server = url.raw_host or "", url.port or 80
        idle = self._idle.setdefault(server, [])
        connection = None
        while idle and connection is None:
            connection = idle.pop()
            if not connection.is_open or loop.time() - connection.idle_since > _IDLE_S:
                connection.close()
                connection = None
        began = loop.time()
        connection = connection or await self._connect(loop, *server)
        left_s = self._wire.timeout_s - (loop.time() - began)
        head = b"%bContent-Length: %d\r\n\r\n" % (head, len(body))
        await connection.exchange(head, body, left_s, self._wire.silence_s)
        if connection.is_reusable and connection.is_open:
            connection.idle_since = loop.time()
            idle.append(connection)
        else:
            connection.close()
        return connection.status, connection.headers, _unpacked(connection.body, connection.headers)

    async def _connect(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> _Connection:
        try:
            async with asyncio.timeout(min(CONNECT_S, self._wire.timeout_s)):
                addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                # asyncio's own races between addresses leave sockets open when they are cancelled.
                connected = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=0.25, loop=loop)
                _, connection = await loop.create_connection(lambda: _Connection(loop), sock=connected)
        except TimeoutError as error:
            raise HttpFault("connect_timeout", f"{host}:{port}") from error
        except OSError as error:
            raise HttpFault("connect", f"cannot connect to {host}:{port} [{error.strerror or error}]") from error
        return connection

    def close(self) -> None:
        """Close all connections that are not in use."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()


def _unpacked(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a body without compression, which is not asked for, and applied by some proxies all the same."""
    coding = headers.get("Content-Encoding", "").strip().lower()
    if coding not in ("gzip", "x-gzip", "deflate"):
        return body
    unpacker = zlib.decompressobj(47 if coding != "deflate" or body[:1] == b"x" else -15)
    try:
        unpacked = unpacker.decompress(body, LONGEST_REPLY_BYTES + 1)
    except zlib.error as error:
        raise HttpFault("body", f"the reply is not {coding}: {error}") from error
    if len(unpacked) > LONGEST_REPLY_BYTES:
        raise HttpFault("too_long", "")
    return unpacked
