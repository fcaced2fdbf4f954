"""Connections to an endpoint that are used again. Imported on first use, as aiohttp is."""

import asyncio

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

_PASSES = 2
"""Passes of the event loop before an idle connection is used: the first polls its socket, the second reads it."""


class CleanConnector(aiohttp.TCPConnector):
    """Never reuses a connection on which bytes came after the last reply.

    Some servers and proxies send a second reply that nobody asked for. aiohttp would hand it to the next request.
    """

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own
    ) -> Connection:
        """Return an idle connection without unread bytes, or a new one."""
        while True:
            connection = await super().connect(req, traces, timeout)
            try:
                for _ in range(_PASSES):
                    await asyncio.sleep(0)
            except BaseException:
                connection.close()
                raise
            protocol = connection.protocol
            if protocol is not None and protocol.is_connected() and not protocol.should_close:
                return connection
            connection.close()
