"""Where a model is and how it is asked there: address, key and peculiarities."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from urllib.parse import urlsplit

from agrotools.core import UsageError
from agrotools.models.providers import PROVIDERS, Provider, provider_at, provider_hint

_SHORTEST_SECRET = 16
"""Placeholders (x, none, EMPTY, token-abc123) are shorter, and may stand in any reply; vendors' keys are longer."""


@dataclass(frozen=True)
class Endpoint:
    """An address, and the key that its requests carry."""

    base_url: str
    key_env: str
    key: str = field(repr=False)
    """Empty where none is sent."""
    headers: Mapping[str, str] = field(repr=False)
    """Of every request, the key's included."""
    spelling: Mapping[str, str | None]
    """Settings under other names; see :class:`~agrotools.models.providers.Provider`."""

    @property
    def secret(self) -> str:
        """What must not be stored or shown: the key, unless it is one of the words that servers without keys get."""
        return self.key if len(self.key) >= _SHORTEST_SECRET else ""


def endpoint_for(name: str, provider: Provider | None, base_url: str | None, api_key_env: str | None) -> Endpoint:
    """Where the model ``name`` is: ``base_url``, else the provider's, else ``OPENAI_BASE_URL``, else OpenAI's own.

    Raises:
        UsageError: the address is not an HTTP URL or holds a secret, or there is no key where one is needed.
    """
    fallback = provider or PROVIDERS["openai"]
    address = base_url or (None if provider else os.environ.get("OPENAI_BASE_URL")) or fallback.base_url
    address = _checked_url(address)
    vendor = provider_at(address)
    known = provider or vendor or Provider(address)
    # A vendor that is named by its address gets its own key, never another vendor's.
    key_env = api_key_env or (vendor.key_env if vendor else "") or fallback.key_env
    # One's own server or a proxy may need no key; a vendor does, and who names a variable has one.
    needed = bool(api_key_env) or (vendor is not None and bool(vendor.key_env))
    key = _key_from(key_env, needed, None if provider else provider_hint(name))
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"agrotools/{version('agrotools')}",
        **known.headers,
    }
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return Endpoint(address, key_env, key, headers, known.spelling)


def _checked_url(url: str) -> str:
    if "@" in url or "?" in url:
        raise UsageError(
            "the base URL holds a user name, a password or a query",
            hint="give the key in an environment variable: addresses are written to the run's manifest",
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"{url!r} is no base URL", hint="it must look like http://localhost:8000/v1")
    return url.rstrip("/").removesuffix("/chat/completions")


def _key_from(variable: str, needed: bool, hint: str | None) -> str:
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key and needed:
        raise UsageError(
            f"the environment variable {variable} is not set",
            hint=f"it must hold the endpoint's API key; {hint}" if hint else "it must hold the endpoint's API key",
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable {variable} does not hold an API key")
    return key
