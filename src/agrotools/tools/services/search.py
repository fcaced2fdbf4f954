"""Searching the web: an API of Serper's form, or a SearXNG of one's own.

The answer of either becomes the same plain form. No page that was found is opened.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from agrotools.core import InfrastructureError, UsageError
from agrotools.tools.services import SERPER
from agrotools.tools.services.http import DEFAULT_PATIENCE, Patience, checked_url, connector, exchange
from agrotools.tools.services.recorded_searches import record

URL, KEY = "AGROTOOLS_SEARCH_URL", "SERPER_API_KEY"
PRIVATE, RECORD = "AGROTOOLS_SEARCH_ALLOW_PRIVATE", "AGROTOOLS_SEARCH_RECORD"
SERPER_URL = "https://google.serper.dev/search"
_LONGEST_TEXT = 2_000


@dataclass(frozen=True)
class SearchSettings:
    """Endpoint and key for searches."""

    url: str
    key: str = field(repr=False)
    private: bool
    record: Path | None


def search_settings(backend: str) -> SearchSettings:
    """The settings in the environment: SERPER_API_KEY, AGROTOOLS_SEARCH_URL, _ALLOW_PRIVATE and _RECORD.

    Raises:
        UsageError: what the back-end needs is not set, or the address is none or a private one.
    """
    private = os.environ.get(PRIVATE, "").strip() in ("1", "true", "yes")
    url, key = os.environ.get(URL, "").strip(), ""
    if backend == SERPER:
        key = os.environ.get(KEY, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            raise UsageError(
                f"the environment variable {KEY} " + ("does not hold an API key" if key else "is not set"),
                hint="it must hold a key of serper.dev, or of the service that AGROTOOLS_SEARCH_URL names",
            )
        url = url or SERPER_URL
    elif not url:
        raise UsageError(f"the environment variable {URL} is not set", hint="it must hold the address of a SearXNG")
    record = os.environ.get(RECORD, "").strip()
    return SearchSettings(
        checked_url(url, URL, private=private), key, private, Path(record).expanduser() if record else None
    )


async def search(backend: str, query: str, k: int, patience: Patience = DEFAULT_PATIENCE) -> dict[str, Any]:
    """Results of a service: ``{"answer", "knowledge", "results": [{"title", "url", "snippet"}]}``, k results at most.

    Where AGROTOOLS_SEARCH_RECORD names a folder, what was found is added to the file ``searches.jsonl`` in it.

    Raises:
        UsageError, InfrastructureError, ToolError: see :func:`agrotools.tools.services.http.exchange`.
    """
    settings = search_settings(backend)
    async with aiohttp.ClientSession(
        connector=connector(private=settings.private),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A proxy would look names up itself, so that nothing could be said of the address: none is used.
        trust_env=False,
    ) as session:
        if backend == SERPER:
            body = await exchange(
                session,
                "POST",
                settings.url,
                service="the search service",
                secret=settings.key,
                patience=patience,
                headers={"X-API-KEY": settings.key},
                json={"q": query, "num": k},
                key_variable=KEY,
            )
        else:
            address = settings.url if settings.url.endswith("/search") else f"{settings.url}/search"
            body = await exchange(
                session,
                "GET",
                address,
                service="the SearXNG",
                patience=patience,
                params={"q": query, "format": "json"},
            )
    try:
        found = (read_serper if backend == SERPER else read_searxng)(orjson.loads(body), k)
    except (ValueError, TypeError, AttributeError, LookupError):
        raise InfrastructureError(
            "the search service replied in no form that is known",
            hint="is its address right?"
            if backend == SERPER
            else "a SearXNG must allow the format json (search.formats in its settings)",
        ) from None
    if settings.record is not None:
        record(settings.record, backend, query, k, found)
    return found


def read_serper(reply: dict[str, Any], k: int) -> dict[str, Any]:
    """A reply of Serper's form in the plain form."""
    box, graph = reply.get("answerBox") or {}, reply.get("knowledgeGraph") or {}
    highlighted = box.get("snippetHighlighted")
    answer = box.get("answer") or box.get("snippet") or highlighted
    attributes = _text(", ".join(f"{name}: {value}" for name, value in (graph.get("attributes") or {}).items()))
    parts = [_text(graph.get("type")), _text(graph.get("description")), f"({attributes})" if attributes else ""]
    return {
        "answer": _text(", ".join(map(str, answer)) if isinstance(answer, list) else answer) or None,
        "knowledge": {"title": _text(graph.get("title")), "text": " ".join(part for part in parts if part)}
        if graph
        else None,
        "results": [
            {"title": _text(item.get("title")), "url": _text(item.get("link")), "snippet": _text(item.get("snippet"))}
            for item in (reply.get("organic") or [])[:k]
        ],
    }


def read_searxng(reply: dict[str, Any], k: int) -> dict[str, Any]:
    """A reply of SearXNG in the plain form."""
    answers = [item.get("answer") if isinstance(item, dict) else item for item in reply.get("answers") or []]
    boxes = reply.get("infoboxes") or []
    return {
        "answer": _text(answers[0]) if answers else None,
        "knowledge": {"title": _text(boxes[0].get("infobox")), "text": _text(boxes[0].get("content"))}
        if boxes
        else None,
        "results": [
            {"title": _text(item.get("title")), "url": _text(item.get("url")), "snippet": _text(item.get("content"))}
            for item in reply["results"][:k]
        ]
        if "results" in reply
        else _no_results(),
    }


def _no_results() -> list[dict[str, str]]:
    raise TypeError("a reply without results is none")


def _text(value: object) -> str:
    return "" if value is None else " ".join(str(value)[:_LONGEST_TEXT].split())
