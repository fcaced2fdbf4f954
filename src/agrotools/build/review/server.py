"""Local server of the review page: loopback only, on a free port, until it is stopped."""

import hashlib
import hmac
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agrotools.build.review.journal import ReviewJournal
from agrotools.core import UsageError

if TYPE_CHECKING:
    import uvicorn

    from agrotools.build.review.app import Review

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
    """One-time token and the single session that it opens. Both end with the process."""

    def __init__(self, port: int) -> None:
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        # Cookies are shared by all ports of a host; the port in the name keeps two reviews apart.
        self.cookie = f"agrotools_review_{port}"
        self.token = secrets.token_urlsafe(24)
        self._void = False
        self._session = ""
        self._guard = threading.Lock()

    def exchange(self, token: str) -> str | None:
        """Return a session for ``token`` on its first use; None for later uses and other tokens."""
        with self._guard:
            if self._void or not hmac.compare_digest(token.encode(), self.token.encode()):
                return None
            self._void = True
            self._session = secrets.token_urlsafe(32)
            return self._session

    def has_session(self, cookies: Mapping[str, str]) -> bool:
        """True if a request belongs to the session."""
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


ADDRESS = "127.0.0.1"
_FIRST_PORT, _PORTS = 20_000, 12_000
_TRIES = 20


def bound_socket(folder: Path, port: int | None) -> socket.socket:
    """Open a listening socket on ``127.0.0.1``.

    Without ``port``, the port is derived from the folder and is the same each time if it is free, because browsers
    store the state of an unfinished review by address and port.

    Raises:
        UsageError: ``port`` is not available.
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
    for offset in range(_TRIES):
        try:
            return _bound(_FIRST_PORT + (start + offset) % _PORTS)
        except OSError:
            continue
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


class RunningReview(NamedTuple):
    """Server of a page, not yet started, its listening socket, and the URL with the one-time token that opens it."""

    server: "uvicorn.Server"
    place: socket.socket
    address: str
    page: "Review"

    def run(self) -> None:
        """Serve until interrupted."""
        self.server.run(sockets=[self.place])


def review_server(
    page: "Callable[[Doorkeeper], Review]", journal: ReviewJournal[Any], port: int | None = None
) -> RunningReview:
    """Return a server of ``page`` that listens on ``port``.

    Raises:
        BenchmarkError: decisions cannot be stored.
        UsageError: ``port`` is not available.
    """
    import uvicorn

    journal.open_for_writing()
    place = bound_socket(journal.path, port)
    doorkeeper = Doorkeeper(place.getsockname()[1])
    review = page(doorkeeper)
    config = uvicorn.Config(
        review.application(),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    address = f"http://{ADDRESS}:{place.getsockname()[1]}/?token={doorkeeper.token}"
    return RunningReview(uvicorn.Server(config), place, address, review)


def serve_review(
    page: "Callable[[Doorkeeper], Review]",
    journal: ReviewJournal[Any],
    port: int | None,
    *,
    started: Callable[[str], None],
) -> None:
    """Serve a page until interrupted; errors as in :func:`review_server`. ``started`` gets the URL with its token."""
    running = review_server(page, journal, port)
    started(running.address)
    with suppress(KeyboardInterrupt):
        running.run()
