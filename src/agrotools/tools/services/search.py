"""Searching the web: an API of Serper's form, or a SearXNG of one's own.

The answer of either becomes the same plain form. No page that was found is opened. Searches can be recorded in a
file, one to a line, and replayed from it.
"""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from agrotools.core import InfrastructureError, UsageError
from agrotools.tools.services import SERPER
from agrotools.tools.services.http import DEFAULT_PATIENCE, Patience, checked_url, connector, exchange

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
            params = {"q": query, "format": "json"}
            body = await exchange(session, "GET", address, service="the SearXNG", patience=patience, params=params)
    try:
        page = (read_serper if backend == SERPER else read_searxng)(orjson.loads(body), k)
    except (ValueError, TypeError, AttributeError, LookupError):
        raise InfrastructureError(
            "the search service replied in no form that is known",
            hint="is its address right?"
            if backend == SERPER
            else "a SearXNG must allow the format json (search.formats in its settings)",
        ) from None
    if settings.record is not None:
        record_search(settings.record, backend, query, k, page)
    return page


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
        "results": [_page(item, "link", "snippet") for item in (reply.get("organic") or [])[:k]],
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
        "results": [_page(item, "url", "content") for item in reply["results"][:k]],
    }


def _page(item: dict[str, Any], link: str, text: str) -> dict[str, str]:
    return {"title": _text(item.get("title")), "url": _text(item.get(link)), "snippet": _text(item.get(text))}


def _text(value: object) -> str:
    return "" if value is None else " ".join(str(value)[:_LONGEST_TEXT].split())


FILE = "searches.jsonl"
"""Name of the file in a folder of recorded searches."""


def query_key(query: str) -> str:
    """Key of a query: letter case and spaces do not count."""
    return " ".join(query.casefold().split())


def record_search(folder: Path, backend: str, query: str, k: int, page: dict[str, Any]) -> None:
    """Add a search to the folder's file. A disk that is full or read-only costs the record, not the search."""
    line = {"query": query, "k": k, "service": backend, "at": datetime.now(UTC).isoformat(timespec="seconds"), **page}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / FILE).open("ab", buffering=0) as file:  # whole, in one piece, whoever else adds a line
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
    except OSError:
        return


def recording_path(place: str) -> Path:
    """The file of recorded searches at a path: that file, or the one in that folder."""
    path = Path(place).expanduser()
    return path / FILE if path.is_dir() else path


def find_recorded(place: str, query: str, k: int) -> dict[str, Any] | None:
    """The last recorded search of that query that asked for as many results at least, else the last of it; or None.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line of it is no recorded search (a torn last line is passed over).
    """
    lines = recording_path(place).read_text(encoding="utf-8").split("\n")  # other line breaks may stand in text
    best: dict[str, Any] | None = None
    enough = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            same, limit = query_key(entry["query"]) == query_key(query), int(entry.get("k", 0))
            _check_entry(entry)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            if number == len(lines):  # what ends in a line break has an empty last line
                break
            raise ValueError(f"line {number} is no recorded search") from error
        if same and (limit >= k or not enough):
            best, enough = entry, limit >= k
    if best is None:
        return None
    return {name: best.get(name) for name in ("answer", "knowledge")} | {"results": best["results"][:k]}


def _check_entry(entry: dict[str, Any]) -> None:
    """Check the form of a recorded search.

    Raises:
        TypeError: it has another.
    """
    texts = [hit[name] for hit in entry["results"] for name in ("title", "url", "snippet")]
    if (knowledge := entry.get("knowledge")) is not None:
        texts += [knowledge["title"], knowledge["text"]]
    if entry.get("answer") is not None:
        texts.append(entry["answer"])
    if not isinstance(entry["results"], list) or not all(isinstance(text, str) for text in texts):
        raise TypeError
