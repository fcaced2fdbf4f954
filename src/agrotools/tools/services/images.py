"""Images made and edited by an endpoint of the form of OpenAI's images."""

import base64
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from agrotools.core import InfrastructureError, UsageError
from agrotools.tools.services.http import Patience, checked_url, connector, exchange

URL, KEY_NAME = "AGROTOOLS_IMAGES_URL", "AGROTOOLS_IMAGES_KEY_ENV"
OPENAI_URL = "https://api.openai.com/v1"
_PATIENCE = Patience(timeout_s=300.0, attempts=3, first_wait_s=1.0, waits_s=120.0)


@dataclass(frozen=True)
class ImagesSettings:
    """Endpoint and key for images."""

    url: str
    key: str = field(repr=False)
    key_variable: str


def images_settings() -> ImagesSettings:
    """The settings in the environment: AGROTOOLS_IMAGES_URL (default: OpenAI's own) and the key in OPENAI_API_KEY,
    or in the variable that AGROTOOLS_IMAGES_KEY_ENV names.

    Raises:
        UsageError: no usable address, or no key where OpenAI's own endpoint is asked.
    """
    base_url = os.environ.get(URL, "").strip()
    variable = os.environ.get(KEY_NAME, "").strip() or "OPENAI_API_KEY"
    key = os.environ.get(variable, "").strip()
    # Like a model's endpoint, it may be on this machine: who names it is who runs this.
    url = checked_url(base_url, URL, private=True) if base_url else OPENAI_URL
    if base_url and urlsplit(base_url).hostname != urlsplit(OPENAI_URL).hostname and not os.environ.get(KEY_NAME):
        key = ""  # a vendor's key goes to no other server unasked
    elif not key or not key.isascii() or not key.isprintable():
        raise UsageError(
            f"the environment variable {variable} holds no API key", hint="it must hold the key for images"
        )
    return ImagesSettings(url, key, variable)


async def draw(
    model: str, prompt: str, pictures: tuple[bytes, ...] = (), patience: Patience = _PATIENCE
) -> dict[str, Any]:
    """A picture made from words, or from words and a picture: ``{"picture": base64, "revised_prompt": text | None}``.

    A reply that names an address instead of holding the picture is followed only to the public network, or to the
    endpoint itself.

    Raises:
        UsageError, InfrastructureError, ToolError: see :func:`agrotools.tools.services.http.exchange`.
    """
    settings = images_settings()
    headers = {"Authorization": f"Bearer {settings.key}"} if settings.key else {}

    def form() -> aiohttp.FormData:
        data = aiohttp.FormData({"model": model, "prompt": prompt, "n": "1"})
        for picture in pictures:
            data.add_field("image", picture, filename="image.png", content_type="image/png")
        return data

    service = "the images endpoint"
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=True) as session:
        body = await exchange(
            session,
            "POST",
            f"{settings.url}/images/{'edits' if pictures else 'generations'}",
            service=service,
            secret=settings.key,
            patience=patience,
            headers=headers,
            key_variable=settings.key_variable,
            form=form if pictures else None,
            json=None if pictures else {"model": model, "prompt": prompt, "n": 1},
        )
    try:
        item = orjson.loads(body)["data"][0]
        revised = item.get("revised_prompt")
        content, address = item.get("b64_json"), item.get("url")
        if content:
            base64.b64decode(content, validate=True)
        elif not isinstance(address, str):
            raise TypeError("neither a picture nor an address")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InfrastructureError(f"{service} replied in no form that is known") from None
    if not content:
        content = base64.b64encode(await _fetch(str(address), settings, patience)).decode()
    return {"picture": content, "revised_prompt": str(revised)[:2000] if revised else None}


async def _fetch(address: str, settings: ImagesSettings, patience: Patience) -> bytes:
    """The picture at an address that the endpoint named. The key is not sent there."""
    try:
        same = urlsplit(address)[:2] == urlsplit(settings.url)[:2]
        url = _fit(address, same)
    except (UsageError, ValueError) as error:
        why = error.message if isinstance(error, UsageError) else "it is none"
        raise InfrastructureError("the images endpoint names an address that is not fetched", hint=why) from None
    async with aiohttp.ClientSession(
        connector=connector(private=same), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        return await exchange(session, "GET", url, service="the place of the picture", patience=patience)


def _fit(address: str, same: bool) -> str:
    bare, _, query = address.partition("?")  # signed addresses have a query
    checked = checked_url(bare, "the reply", private=same)
    return f"{checked}?{query}" if query else checked
