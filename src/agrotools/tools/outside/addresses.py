"""Which addresses may be reached: none inside the network of whoever runs this, unless that is allowed.

An address in a configuration can be a slip or come from somebody else, and a page that is fetched from inside can hold
what nobody outside shall see. The name is looked up for the connection itself, so that what was checked is what is
reached.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from agrotools.core import UsageError

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
    """Whether an IP address is one of the public network: not private, loopback, link-local, multicast or reserved.

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
        found = await self._inner.resolve(host, port, family)
        if not found or not all(is_public(each["host"]) for each in found):
            raise PrivateAddress(f"{host} leads to a private address")
        return found

    async def close(self) -> None:
        await self._inner.close()


def connector(*, private: bool) -> aiohttp.TCPConnector:
    """Connections to anywhere (``private``), or to public addresses alone."""
    options: dict[str, Any] = {} if private else {"resolver": PublicResolver(), "use_dns_cache": False}
    return aiohttp.TCPConnector(**options)
