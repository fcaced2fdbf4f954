"""Who may talk to the server: one browser, let in by a token that works once; nobody through a foreign page.

What is kept out: other users of the machine (the token), other pages in the same browser (cookie that is never sent
across sites, ``Origin`` and a token of the session on everything that writes), names that are made to point here
(``Host``), and content that would run (content policy, fixed content types).
"""

import hmac
import secrets
import threading
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """The one-time token and the one session that it opens. Both end with the process."""

    def __init__(self, port: int) -> None:
        self.hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        # Cookies are shared by all ports of a host: the name keeps two reviews apart.
        self.cookie = f"agrotools_review_{port}"
        self.token = secrets.token_urlsafe(24)
        self._void = False
        self._session = ""
        self._guard = threading.Lock()

    def exchange(self, token: str) -> str | None:
        """A session for ``token`` the first time it is shown; None ever after, and for any other token."""
        with self._guard:
            if self._void or not hmac.compare_digest(token.encode(), self.token.encode()):
                return None
            self._void = True
            self._session = secrets.token_urlsafe(32)
            return self._session

    def knows(self, cookies: Mapping[str, str]) -> bool:
        """Whether a request comes from the session."""
        given = cookies.get(self.cookie, "")
        return bool(self._session) and hmac.compare_digest(given.encode(), self._session.encode())

    @property
    def csrf(self) -> str:
        """What a page of the session sends with everything that writes. It says nothing of the cookie."""
        return hmac.new(self._session.encode(), b"writes", "sha256").hexdigest()

    def refusal(self, method: str, headers: Headers) -> str | None:
        """Why a request is refused whatever its path, or None."""
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
    """Puts the checks of a doorkeeper before an application, and the protecting headers on all that it answers."""

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no websockets here

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
