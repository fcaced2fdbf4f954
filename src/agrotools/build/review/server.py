"""Local server of the review page: loopback only, on a free port, until it is stopped."""

import hashlib
import hmac
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agrotools.build.review.agreement import ReviewJournal
from agrotools.core import UsageError

if TYPE_CHECKING:
    from agrotools.build.review.app import Review

ADDRESS = "127.0.0.1"
CSRF_HEADER = "X-Review-Session"
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


class Doorkeeper:
    """One-time token and the single session that it opens. Both end with the process.

    A new token voids the one before. Its session ends the one before, so that one in the wrong hands ends.
    """

    def __init__(self, port: int) -> None:
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        # Cookies are shared by all ports of a host; the port in the name keeps two reviews apart.
        self.cookie = f"agrotools_review_{port}"
        self._address = f"http://{ADDRESS}:{port}/?token="
        self._token = ""
        self._session = ""
        self._guard = threading.Lock()

    def new_address(self) -> str:
        """Return the address of the page with a new token, which opens it once."""
        with self._guard:
            self._token = secrets.token_urlsafe(24)
            return self._address + self._token

    def exchange(self, token: str) -> str | None:
        """Return a session for ``token`` on its first use; None for later uses and other tokens."""
        with self._guard:
            if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
                return None
            self._token = ""
            self._session = secrets.token_urlsafe(32)
            return self._session

    def has_session(self, cookies: Mapping[str, str]) -> bool:
        token = cookies.get(self.cookie, "")
        return bool(self._session) and hmac.compare_digest(token.encode(), self._session.encode())

    @property
    def csrf(self) -> str:
        """Token that the page sends with every write. It does not reveal the cookie."""
        return hmac.new(self._session.encode(), b"writes", "sha256").hexdigest()

    def refusal(self, method: str, headers: Headers) -> str | None:
        """Return the reason to refuse a request, whatever its path, or None if it is allowed."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return "wrong host: open the address that agrotools review printed"
        site = headers.get("sec-fetch-site")
        if method in _READS:
            return None
        if headers.get("origin") != f"http://{host}" or site not in (None, "same-origin"):
            return "wrong origin: decisions are made on the page itself"
        if not self._session or not hmac.compare_digest(headers.get(CSRF_HEADER, "").encode(), self.csrf.encode()):
            return "the page belongs to another session"
        return None


class Guard:
    """Middleware that checks every request with a doorkeeper and adds protective headers to every response."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

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

        refusal = self._doorkeeper.refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await PlainTextResponse(refusal, status_code=403)(scope, receive, protected)
            return
        await self._app(scope, receive, protected)


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


def serve_review(
    page: "Callable[[Doorkeeper], Review]",
    journal: ReviewJournal[Any],
    port: int | None,
    *,
    started: Callable[[str], None],
) -> None:
    """Serve a page until interrupted; ``started`` gets its address, and a new one whenever Enter is pressed.

    UsageError if ``port`` is taken, BenchmarkError if nothing can be stored.
    """
    import uvicorn

    journal.open_for_writing()
    place = bound_socket(journal.path, port)
    doorkeeper = Doorkeeper(place.getsockname()[1])
    config = uvicorn.Config(
        page(doorkeeper).application(),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )

    def wait_for_enter() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN})  # else reading in the background stops the command
        with suppress(OSError):
            while os.read(0, 4096):  # not sys.stdin, whose lock could hold up the end of the process
                started(doorkeeper.new_address())

    started(doorkeeper.new_address())
    if os.isatty(0):
        threading.Thread(target=wait_for_enter, daemon=True).start()
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([place])
