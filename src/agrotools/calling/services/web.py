"""Network services: web search (Serper API) and image generation (OpenAI images endpoint).

The pages found are not opened. Redirects are not followed because they could leak the key.
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.models.base import WireSettings
from agrotools.models.endpoint import checked_url, key_from
from agrotools.models.refusals import error_message, one_line, retry_after
from agrotools.models.transport import NoResponse, TimedOut, Transport, UntrustedServer, backoff_s

SEARCH_URL, SEARCH_KEY = "AGROTOOLS_SEARCH_URL", "SERPER_API_KEY"
SERPER_URL = "https://google.serper.dev/search"
IMAGES_URL, IMAGES_KEY_NAME = "AGROTOOLS_IMAGES_URL", "AGROTOOLS_IMAGES_KEY_ENV"
OPENAI_URL = "https://api.openai.com/v1"
_LONGEST_TEXT = 2_000


@dataclass(frozen=True)
class ServiceEndpoint:
    """Name for messages, address and key of a service, and the environment variable that holds the key."""

    name: str
    url: str
    key: str = field(default="", repr=False)
    key_variable: str = ""


_FOR_SEARCHES = WireSettings(timeout_s=20.0, attempts=3, retry_wall_s=30.0)
_FOR_IMAGES = WireSettings(timeout_s=300.0, attempts=3, first_wait_s=1.0, retry_wall_s=120.0)


async def exchange(
    endpoint: ServiceEndpoint,
    body: bytes,
    headers: Mapping[str, str],
    patience: WireSettings,
    path: str = "",
) -> Any:
    """Post a request and return the JSON of a successful reply.

    HTTP 408, 409, 425, 429 and 5xx, time-outs and broken connections are retried; ``Retry-After`` is respected.
    UsageError: the service refuses the key or the address; InfrastructureError: no JSON within the limits of
    ``patience``; ToolError ``invalid_argument``: it refuses this request.
    """
    transport = Transport(endpoint.url + path, headers, patience)
    attempt = 0
    waited_s = 0.0
    try:
        while True:
            attempt += 1
            requested_wait_s: float | None = None
            try:
                response = await transport.post(body)
                if 200 <= response.status < 300:
                    return orjson.loads(response.body)
                message = one_line(
                    error_message(response.body[:20_000].decode(errors="replace")), endpoint.key
                )
                fault = f"HTTP {response.status}" + (f": {message}" if message else "")
                _raise_for(response.status, fault, endpoint)
                requested_wait_s = retry_after(response.headers)
            except orjson.JSONDecodeError:
                raise unknown_form(endpoint) from None
            except (NoResponse, TimedOut, UntrustedServer) as error:
                fault = one_line(str(error), endpoint.key)
            wait_s = backoff_s(patience, attempt) if requested_wait_s is None else requested_wait_s
            if attempt >= patience.attempts or waited_s + wait_s > patience.retry_wall_s:
                waits = f"; it asks to wait {requested_wait_s:.0f} s" if requested_wait_s else ""
                raise InfrastructureError(
                    f"no reply from {endpoint.name} after {attempt} attempts: {fault}{waits}",
                    hint="check that it is running and its address, or choose another back-end",
                )
            waited_s += wait_s
            await asyncio.sleep(wait_s)
    finally:
        await transport.close()


def unknown_form(endpoint: ServiceEndpoint, hint: str = "check the address") -> InfrastructureError:
    """Return the error for a reply in an unknown form."""
    return InfrastructureError(f"{endpoint.name} sent a reply of an unknown form", hint=hint)


def _raise_for(status: int, fault: str, endpoint: ServiceEndpoint) -> None:
    """Raise the error of a status that is not retryable; return for any other status."""
    name, variable = endpoint.name, endpoint.key_variable
    if status in (401, 403):
        hint = f"set the environment variable {variable} to a valid key"
        raise UsageError(f"{name} refuses the request: {fault}", hint=hint)
    if status in (404, 405) or 300 <= status < 400:
        raise UsageError(
            f"{name} is not at that address: {fault}", hint="check the address, redirects included"
        )
    if status < 500 and status not in (408, 409, 425, 429):
        raise ToolError(
            "invalid_argument", f"{name} refuses this request: {fault}", hint="try another wording"
        )


def search_endpoint() -> ServiceEndpoint:
    """Return the service of SERPER_API_KEY and AGROTOOLS_SEARCH_URL; UsageError if one is not valid."""
    url = os.environ.get(SEARCH_URL, "").strip()
    key = key_from(
        SEARCH_KEY, True, "that of serper.dev, or of the service that AGROTOOLS_SEARCH_URL names"
    )
    return ServiceEndpoint(
        "the search service", checked_url(url or SERPER_URL, SEARCH_URL), key, SEARCH_KEY
    )


async def search(query: str, k: int, patience: WireSettings = _FOR_SEARCHES) -> dict[str, Any]:
    """Search the web: ``{"answer", "knowledge", "results": [{"title", "url", "snippet"}]}`` with at most k results."""
    endpoint = search_endpoint()
    headers = {"X-API-KEY": endpoint.key, "Content-Type": "application/json"}
    reply = await exchange(endpoint, orjson.dumps({"q": query, "num": k}), headers, patience)
    try:
        return read_serper(reply, k)
    except (ValueError, TypeError, AttributeError, LookupError):
        raise unknown_form(endpoint) from None


def read_serper(reply: dict[str, Any], k: int) -> dict[str, Any]:
    """Convert a reply of Serper to the plain form."""
    box, graph = reply.get("answerBox") or {}, reply.get("knowledgeGraph") or {}
    highlighted = box.get("snippetHighlighted")
    answer = box.get("answer") or box.get("snippet") or highlighted
    attributes = _text(
        ", ".join(f"{name}: {value}" for name, value in (graph.get("attributes") or {}).items())
    )
    parts = [
        _text(graph.get("type")),
        _text(graph.get("description")),
        f"({attributes})" if attributes else "",
    ]
    return {
        "answer": _text(", ".join(map(str, answer)) if isinstance(answer, list) else answer)
        or None,
        "knowledge": {
            "title": _text(graph.get("title")),
            "text": " ".join(part for part in parts if part),
        }
        if graph
        else None,
        "results": [
            {
                name: _text(item.get(key))
                for name, key in (("title", "title"), ("url", "link"), ("snippet", "snippet"))
            }
            for item in (reply.get("organic") or [])[:k]
        ],
    }


def _text(value: object) -> str:
    return "" if value is None else " ".join(str(value)[:_LONGEST_TEXT].split())


def images_endpoint() -> ServiceEndpoint:
    """Return the images endpoint: AGROTOOLS_IMAGES_URL (default: OpenAI), with the key in OPENAI_API_KEY or in the
    variable named by AGROTOOLS_IMAGES_KEY_ENV. UsageError: the address is not valid, or a required key is missing."""
    base_url = os.environ.get(IMAGES_URL, "").strip()
    variable = os.environ.get(IMAGES_KEY_NAME, "").strip() or "OPENAI_API_KEY"
    url = checked_url(base_url, IMAGES_URL) if base_url else OPENAI_URL
    of_vendor = urlsplit(url).hostname == urlsplit(OPENAI_URL).hostname
    # A vendor's key is never sent to another server by default.
    key = key_from(variable, True) if of_vendor or os.environ.get(IMAGES_KEY_NAME) else ""
    return ServiceEndpoint("the images endpoint", url, key, variable)


async def draw(
    model: str, prompt: str, pictures: tuple[bytes, ...] = (), patience: WireSettings = _FOR_IMAGES
) -> dict[str, Any]:
    """Generate a picture from a prompt and optional pictures: ``{"picture": base64, "revised_prompt": text |
    None}``. InfrastructureError also for a reply that has an address instead of the picture."""
    endpoint = images_endpoint()
    fields = {"model": model, "prompt": prompt, "n": 1}
    if not model.startswith(
        "gpt-image"
    ):  # gpt-image models always send the picture itself and reject this field
        fields["response_format"] = "b64_json"

    form = aiohttp.FormData({name: str(value) for name, value in fields.items()})
    for picture in pictures:
        form.add_field("image", picture, filename="image.png", content_type="image/png")
    content = form()
    kind = content.headers["Content-Type"] if pictures else "application/json"
    body = await content.as_bytes() if pictures else orjson.dumps(fields)
    headers = {"Content-Type": kind} | (
        {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    )
    path = "/images/edits" if pictures else "/images/generations"
    reply = await exchange(endpoint, body, headers, patience, path)
    try:
        item = reply["data"][0]
        picture, revised = item["b64_json"], item.get("revised_prompt")
        base64.b64decode(picture, validate=True)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise unknown_form(endpoint, "it must send the picture itself (b64_json)") from None
    return {"picture": picture, "revised_prompt": str(revised)[:2000] if revised else None}
