"""One HTTP request to a service: which addresses may be reached, retries, and errors without the key.

Private addresses are refused unless they are allowed: an address in a configuration can be a slip or come from somebody
else, and a page fetched from inside can hold private content. The name is resolved for the connection itself, so that
the checked address is the one that is reached.
"""

import asyncio
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.models.refusals import one_line, retry_after

_TRANSLATED = ip_network("64:ff9b::/96")
_NOT_OUTSIDE = (
    ip_network("fec0::/10"),  # site-local, RFC 3879
    ip_network("192.0.0.0/24"),  # IETF protocol assignments, RFC 6890; a cloud's metadata at 192.0.0.192
    ip_network("168.63.129.16/32"),  # Azure's service for the virtual machine itself
)
"""Addresses of a network's inside that Python takes for public ones, older versions at least."""


class PrivateAddress(OSError):
    """A host whose address is not one of the public network."""


def is_public(address: str) -> bool:
    """True if an IP address is public: not private, loopback, link-local, multicast or reserved.

    An IPv4 address inside an IPv6 one (mapped, translated, 6to4, Teredo) is judged too.
    """
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner: list[IPv4Address] = []
    if isinstance(parsed, IPv6Address):
        inner = [each for each in (parsed.ipv4_mapped, parsed.sixtofour) if each is not None]
        if parsed.teredo is not None:
            inner += parsed.teredo
        if parsed in _TRANSLATED:
            inner.append(IPv4Address(int(parsed) & 0xFFFFFFFF))
        if parsed.ipv4_mapped is not None or parsed in _TRANSLATED:  # it stands for the inner one, and is reserved
            return all(_is_public(each) for each in inner)
    return _is_public(parsed) and all(_is_public(each) for each in inner)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    inside = any(address in network for network in _NOT_OUTSIDE)
    return address.is_global and not (address.is_multicast or address.is_reserved or inside)


def checked_url(url: str, variable: str, *, private: bool) -> str:
    """An address out of the variable of that name, fit to be asked.

    Raises:
        UsageError: no HTTP address, one that holds a secret, or one that names a private IP address.
    """
    host = ""
    try:
        parts = urlsplit(url)
        # The host as it will be asked for: other letters and points can spell an address, such as 127。0。0。1.
        host = URL(url).host or ""
        usable = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable or not url.isprintable():
        raise UsageError(f"{variable} holds no HTTP address", hint="it must look like https://search.example.org")
    if parts.username or parts.password or parts.query:
        raise UsageError(
            f"the address in {variable} holds a user name, a password or a query",
            hint="give a key in its own environment variable",
        )
    if not private and _is_literal(host) and not is_public(host):
        raise UsageError(f"the address in {variable} is a private one ({host})", hint=ALLOW)
    return url.rstrip("/")


ALLOW = "AGROTOOLS_SEARCH_ALLOW_PRIVATE=1 allows addresses of your own network"


def _is_literal(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


class PublicResolver(AbstractResolver):
    """Looks names up, and refuses a name that leads to any address that is not public."""

    def __init__(self, inner: AbstractResolver | None = None) -> None:
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = await self._inner.resolve(host, port, family)
        if not addresses or not all(is_public(each["host"]) for each in addresses):
            raise PrivateAddress(f"{host} leads to a private address")
        return addresses

    async def close(self) -> None:
        await self._inner.close()


def connector(*, private: bool) -> aiohttp.TCPConnector:
    """Connections to anywhere (``private``), or to public addresses alone."""
    options: dict[str, Any] = {} if private else {"resolver": PublicResolver(), "use_dns_cache": False}
    return aiohttp.TCPConnector(**options)


_LARGEST_REPLY = 64 * 2**20


@dataclass(frozen=True)
class Patience:
    """Time limit of one attempt, number of attempts, and total waiting time between them."""

    timeout_s: float = 20.0
    attempts: int = 3
    first_wait_s: float = 0.5
    waits_s: float = 30.0


DEFAULT_PATIENCE = Patience()


async def exchange(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    *,
    service: str,
    secret: str = "",
    patience: Patience = DEFAULT_PATIENCE,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    params: Mapping[str, str] | None = None,
    form: Any = None,
    key_variable: str = "",
) -> bytes:
    """The body of a good reply. 408, 429, 5xx and broken connections are tried again; ``Retry-After`` is obeyed.

    Args:
        form: makes a new form for each attempt, called without arguments.

    Raises:
        UsageError: the service refuses the key or the address, or the address is private.
        InfrastructureError: no reply within the budget.
        ToolError: ``invalid_argument``: the service refuses this request; ``limit``: its reply has no end.
    """
    attempt, waited_s = 0, 0.0
    while True:
        attempt += 1
        requested_wait_s: float | None = None
        try:
            async with session.request(
                method,
                url,
                headers=headers,
                params=params,
                timeout=aiohttp.ClientTimeout(total=patience.timeout_s),
                allow_redirects=False,  # it would carry the key elsewhere
                data=form() if form else None,
                json=json,
            ) as response:
                body = await _read(response, service)
                if 200 <= response.status < 300:
                    return body
                message = one_line(_message_in(body), secret)
                fault = f"HTTP {response.status}" + (f": {message}" if message else "")
                _raise_for(response.status, fault, service, key_variable)
                requested_wait_s = retry_after(response.headers)
        except TimeoutError:
            fault = f"no reply within {patience.timeout_s:g} s"
        except (aiohttp.ClientError, OSError) as error:
            if _is_private(error):
                raise UsageError(f"the address of {service} leads into a private network", hint=ALLOW) from None
            fault = one_line(f"{type(error).__name__}: {error}", secret)
        wait_s = patience.first_wait_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
        if requested_wait_s is not None:
            wait_s = requested_wait_s
        if attempt >= patience.attempts or waited_s + wait_s > patience.waits_s:
            waits = f"; it asks to wait {requested_wait_s:.0f} s" if requested_wait_s else ""
            raise InfrastructureError(
                f"no reply from {service} after {attempt} attempts: {fault}{waits}",
                hint="is it up, and its address right? Ask again later, or choose another back-end",
            )
        waited_s += wait_s
        await asyncio.sleep(wait_s)


async def _read(response: aiohttp.ClientResponse, service: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST_REPLY:
            raise ToolError("limit", f"the reply of {service} is longer than {_LARGEST_REPLY >> 20} MiB")
    return b"".join(pieces)


def _raise_for(status: int, fault: str, service: str, key_variable: str) -> None:
    """Raise the error of a reply that is not retryable."""
    if status in (401, 403):
        hint = f"set the environment variable {key_variable} to a valid key" if key_variable else None
        raise UsageError(f"{service} refuses the request: {fault}", hint=hint or "does it ask for a key?")
    if status in (404, 405) or 300 <= status < 400:
        raise UsageError(f"{service} is not at that address: {fault}", hint="check the address, redirects included")
    if status < 500 and status not in (408, 409, 425, 429):
        raise ToolError("invalid_argument", f"{service} refuses this request: {fault}", hint="another wording may do")


def _is_private(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, PrivateAddress) or isinstance(getattr(error, "os_error", None), PrivateAddress):
            return True
        error = error.__cause__ or error.__context__
    return False


def _message_in(body: bytes) -> str:
    """Error message in a server's reply, in any of the usual forms."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[:2000].decode(errors="replace").strip()
        return "" if text.startswith("<") else text
    if isinstance(value, dict):
        error = value.get("error") or value.get("message") or value.get("detail")
        return str(error.get("message", "") if isinstance(error, dict) else error or "")
    return ""
