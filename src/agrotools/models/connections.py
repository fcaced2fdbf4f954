"""Connections to an endpoint that are used again. Imported on first use, as aiohttp is."""

import asyncio
import select
import sys

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

_PASSES = 2
"""Passes of the event loop after which waiting bytes are read: the first polls the socket, the second reads it."""


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
            # The loop is passed only where something waits: among many requests in flight, a pass handles the replies
            # to all others first, and so would delay this request by their time.
            if _may_hold_bytes(connection):
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


def _may_hold_bytes(connection: Connection) -> bool:
    """Return True if bytes or the end of the connection wait in its socket; the bytes may be those of TLS alone."""
    transport = connection.transport
    socket = None if transport is None else transport.get_extra_info("socket")
    if socket is None or socket.fileno() < 0:
        return True
    if sys.platform == "win32":  # the loop itself may have taken the bytes from the socket
        return True
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))
