"""Local server of the review page: loopback only, on a free port, until it is stopped."""

import hashlib
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agrotools.core import UsageError

if TYPE_CHECKING:
    from agrotools.build.review.app import Review

ADDRESS = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READS = frozenset({"GET", "HEAD"})


class Guard:
    """Middleware: requests name this host and begin with the secret path, writes come from the page itself.

    Neither other machines nor other pages in the browser know the path. Every response has protective headers.
    """

    def __init__(self, app: ASGIApp, port: int, secret: str) -> None:
        self._app = app
        self._hosts = frozenset({f"{ADDRESS}:{port}", f"localhost:{port}"})
        self._root = f"/{secret}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # websockets are not supported

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if refusal := self._refusal(scope["method"], scope["path"], Headers(scope=scope)):
            await PlainTextResponse(refusal, status_code=403)(scope, receive, protected)
            return
        await self._app({**scope, "path": scope["path"].removeprefix(self._root)}, receive, protected)

    def _refusal(self, method: str, path: str, headers: Headers) -> str | None:
        """Return the reason to refuse a request, or None if it is allowed."""
        host = headers.get("host", "")
        root = f"{self._root}/".encode()
        if host not in self._hosts or not secrets.compare_digest(path.encode()[: len(root)], root):
            return "open the address that agrotools printed"
        from_page = headers.get("origin") == f"http://{host}" and headers.get("sec-fetch-site") in (None, "same-origin")
        return None if method in _READS or from_page else "wrong origin: decisions are made on the page itself"


_FIRST_PORT, _PORTS = 20_000, 12_000


def bound_socket(folder: Path, port: int | None) -> socket.socket:
    """Listen on ``127.0.0.1``, by default on a port made from the folder, as browsers keep unfinished work by port.

    Raises UsageError if ``port`` is not available.
    """
    if port is not None:
        try:
            return _bound(port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port} cannot be used: {reason}", hint="choose another --port, or leave it out"
            ) from error
    start = int.from_bytes(hashlib.sha256(str(folder.resolve()).encode()).digest()[:4], "big")
    with suppress(OSError):
        return _bound(_FIRST_PORT + start % _PORTS)
    return _bound(0)


def _bound(port: int) -> socket.socket:
    # With an explicit protocol, asyncio disables Nagle's algorithm, which would delay each response by 40 ms.
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Allows a restart while connections of the last process linger; two listeners are still refused.
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((ADDRESS, port))
        place.listen(128)
    except BaseException:
        place.close()
        raise
    return place


def serve_review(page: "Review", port: int | None, *, started: Callable[[str], None]) -> None:
    """Serve a page until interrupted; ``started`` gets its address.

    UsageError if ``port`` is taken, BenchmarkError if nothing can be stored.
    """
    import uvicorn

    page.journal.open_for_writing()
    place = bound_socket(page.journal.path, port)
    number, secret = place.getsockname()[1], secrets.token_urlsafe(18)
    config = uvicorn.Config(
        Guard(page.application(), number, secret),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    started(f"http://{ADDRESS}:{number}/{secret}/")
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([place])
