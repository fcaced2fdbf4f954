"""HTTP exchanges with an endpoint: time limits, typed failures, and attempts at one reply."""

import asyncio
import io
import os
import random
import ssl
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from agrotools.core import EndpointProblem, UsageError
from agrotools.models.base import Completion, FinishReason, WireSettings

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 15.0
LONGEST_REPLY_BYTES = 16 * 2**20
_LARGE_BYTES = 2**20


@dataclass(slots=True)
class Response:
    """A complete response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoResponse(Exception):
    """The exchange failed.

    ``overload``: the failure suggests an overloaded server; ``unreachable``: no server accepted the request;
    ``passing``: a retry may succeed.
    """

    def __init__(
        self,
        reason: str,
        *,
        overload: bool = False,
        unreachable: bool = False,
        passing: bool = True,
    ) -> None:
        super().__init__(reason)
        self.overload = overload
        self.unreachable = unreachable
        self.passing = passing


class UntrustedServer(Exception):
    """The server's certificate is not trusted."""


class TimedOut(Exception):
    """No complete reply in time, because of the server or of the model."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt that is worth a retry. ``wait_s``: wait requested by the server."""

    reason: str
    wait_s: float | None = None
    rate_limited: bool = False
    problem: EndpointProblem = "reply"
    counts: bool = True
    """False if the request is sent again at once and the attempt does not count: in another form, or after a time-out,
    which has a limit of its own."""


@dataclass(slots=True)
class Tries:
    """Attempts so far at one reply."""

    attempts: int = 0
    """Number of requests sent."""
    faults: int = 0
    timeouts: int = 0
    spent_s: float = 0.0
    """Seconds spent on failed attempts other than time-outs, and on the waits after them."""
    first_at: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the first attempt."""
        return time.monotonic() - self.first_at

    def ended(self, reason: FinishReason, detail: str) -> Completion:
        """Return the completion of a request that was refused."""
        return Completion(
            finish_reason=reason, detail=detail, seconds=self.seconds, attempts=self.attempts
        )


def backoff_s(wire: WireSettings, attempt: int) -> float:
    """Return the seconds to wait after the ``attempt``-th failed attempt."""
    longest = min(wire.longest_wait_s, wire.first_wait_s * 2 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)


def proxy_for(url: str) -> str | None:
    """Return the proxy of an address: of ``HTTPS_PROXY`` or ``HTTP_PROXY``, else of ``ALL_PROXY``; None without one.

    Raises:
        UsageError: it is not an HTTP proxy.
    """
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if (
        not proxy
        or not parts.hostname
        or parts.hostname in ("localhost", "127.0.0.1", "::1")
        or proxy_bypass(parts.hostname)
    ):
        return None
    scheme, has_scheme, _ = proxy.partition("://")
    if has_scheme and scheme.lower() != "http":
        raise UsageError(
            f"the proxy for {parts.hostname} is a {scheme} proxy, and only HTTP proxies are supported",
            hint="set HTTPS_PROXY (or ALL_PROXY) to an HTTP proxy, or list the host in NO_PROXY",
        )
    return proxy if has_scheme else f"http://{proxy}"


def _trusted() -> ssl.SSLContext | bool:
    """Return the certificates to trust; UsageError if ``REQUESTS_CA_BUNDLE`` names a file or folder that is none."""
    bundle = os.environ.get("REQUESTS_CA_BUNDLE")
    if not bundle:
        return True  # OpenSSL reads SSL_CERT_FILE itself
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(**{"capath" if Path(bundle).is_dir() else "cafile": bundle})
    except OSError as error:
        raise UsageError(
            f"REQUESTS_CA_BUNDLE names no certificates: {bundle}", hint=str(error)
        ) from error
    return context


class Transport:
    """HTTP client that posts to one address over one pooled session.

    UsageError: the proxy is not an HTTP proxy.
    """

    def __init__(self, url: str, headers: Mapping[str, str], wire: WireSettings) -> None:
        self._url = URL(url)
        self._headers = headers
        self._wire = wire
        self._proxy = proxy_for(url)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, body: bytes) -> Response:
        """Post one request.

        Redirects are not followed: they would send prompts, and perhaps the key, elsewhere.

        Raises:
            NoResponse: the exchange was refused, broken, stalled, endless or not HTTP, or the reply is too long.
            UntrustedServer: the certificate is not trusted.
            TimedOut: no reply in time.
        """
        import aiohttp

        try:
            async with self.request(body) as response:
                content = response.content
                # A short reply arrives together with its headers and needs no further read.
                read = content.read_nowait() if content.is_eof() else await self._read(content)
                return Response(response.status, response.headers, read)
        except aiohttp.ConnectionTimeoutError as error:
            raise NoResponse(
                f"no connection in time: {error}", overload=True, unreachable=True
            ) from error
        except TimeoutError as error:
            raise TimedOut(f"no complete reply within {self._wire.timeout_s:g} s") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise UntrustedServer(str(error.certificate_error)) from error
        except (aiohttp.ClientError, OSError) as error:
            nobody = isinstance(error, aiohttp.ClientConnectorError)
            raise NoResponse(f"{type(error).__name__}: {error}", unreachable=nobody) from error

    def request(self, body: bytes) -> AbstractAsyncContextManager["aiohttp.ClientResponse"]:
        """Post one request, and return the response as it arrives; faults are those of aiohttp."""
        data = (
            body if len(body) <= _LARGE_BYTES else io.BytesIO(body)
        )  # aiohttp warns of larger ones
        return self._connected().post(
            self._url, data=data, allow_redirects=False, proxy=self._proxy
        )

    async def _read(self, content: "aiohttp.StreamReader") -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            silence = asyncio.timeout(self._wire.silence_s)
            try:
                async with silence:
                    piece = await content.readany()
            except TimeoutError as error:
                if silence.expired():
                    raise NoResponse("the reply began and then stalled") from error
                raise NoResponse(
                    f"the reply began and had no end within {self._wire.timeout_s:g} s"
                ) from error
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST_REPLY_BYTES:
                raise NoResponse(
                    f"the reply is longer than {LONGEST_REPLY_BYTES >> 20} MiB", passing=False
                )

    def _connected(self) -> "aiohttp.ClientSession":
        """Return the session of the running event loop, created on first use."""
        import aiohttp

        from agrotools.models.connections import CleanConnector

        if self._loop is not (loop := asyncio.get_running_loop()):  # another one, which has ended
            self._session = None
            self._loop = loop
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                # The number of open requests is limited before they get here.
                connector=CleanConnector(limit=0, ttl_dns_cache=300, ssl=_trusted()),
                timeout=aiohttp.ClientTimeout(total=self._wire.timeout_s, sock_connect=CONNECT_S),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        """Close connections; the next request opens new ones."""
        session = self._session
        self._session = None
        if session is not None and not session.closed:
            await session.close()
