"""Response cache: replies of models to requests, shared by name between runs and processes.

Opt-in, because a cached reply shows what an endpoint once served, not what it serves now. Each name is one SQLite file,
which any number of processes can share. A fault of the file or the disk never ends a run: ``fault`` reports it once,
and the run continues without the cache.
"""

import asyncio
import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import orjson
from pydantic import ValidationError

from agrotools.core import ToolSpec, UsageError
from agrotools.core.files import cache_dir
from agrotools.models.base import Completion, Message, Model, ModelSettings, ModelWrapper, request_text

KEPT = frozenset({"stop", "tool_calls", "length", "filtered"})
"""Finish reasons of replies that are stored. ``context`` depends on how a server was started, not on the request, and
such a refusal is quick and free to repeat."""

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, entry BLOB NOT NULL)"
_WAIT_S = 1.0
"""Time for another process to finish its write, which takes less than a millisecond."""


def response_cache_path(name: str) -> Path:
    """Return the path of a cache; UsageError if its name contains characters that are not allowed."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise UsageError(
            f"{name!r} cannot name a response cache", hint="use letters, digits, '.', '_' and '-', e.g. --cache pilot"
        )
    return cache_dir("responses") / f"{name}.sqlite"


class ResponseCache:
    """Replies by key, in one file. All methods can be called in any state of the file and never raise.

    ``fault`` is None, or a sentence that describes the problem, to be shown once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: str | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _opened(path)
        except (OSError, sqlite3.Error) as error:
            self._failed(error)

    def get(self, key: str) -> Completion | None:
        """Return the reply under ``key``, marked as cached; None if there is none or it is damaged."""
        if self._connection is None:
            return None
        try:
            row = self._connection.execute("SELECT entry FROM replies WHERE key = ?", (key,)).fetchone()
            completion = Completion.model_validate_json(row[0]) if row else None
        except sqlite3.Error as error:
            self._failed(error)
            return None
        except ValidationError:
            return None
        return completion and completion.model_copy(update={"cached": True, "seconds": 0.0, "attempts": 0})

    def put(self, key: str, completion: Completion) -> None:
        """Store a reply."""
        if self._connection is None:
            return
        try:
            entry = orjson.dumps(completion.model_dump(mode="json", exclude_defaults=True))
            self._connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, entry))
        except orjson.JSONEncodeError:
            return  # Invalid Unicode.
        except sqlite3.Error as error:
            self._failed(error)

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> "ResponseCache":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, error: Exception) -> None:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        self.fault = self.fault or f"the response cache {self.path} fails: {reason}; the run goes on without it"
        self.close()


class CachedModel(ModelWrapper):
    """A model behind a response cache. ``epoch``: part of the key, so that repeats of a sample get new replies."""

    def __init__(self, model: Model, cache: ResponseCache, epoch: int = 0) -> None:
        super().__init__(model)
        self.cache = cache
        self.epoch = epoch

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return the cached reply to the same request, or a new one."""
        key = request_key(self.base_url, self.name, messages, tools, settings, self.epoch)
        cached = self.cache.get(key)
        if cached is not None:
            self.stats.cached += 1
            # A fully cached run must still leave time for progress lines and interrupts.
            await asyncio.sleep(0)
            return cached
        completion = await self.model.generate(messages, tools, settings)
        # A reply that was cut short by the endpoint's own limit also depends on how the server was started.
        cut_short = completion.finish_reason == "length" and completion.detail
        if completion.finish_reason in KEPT and not cut_short:
            self.cache.put(key, completion)
        return completion


def request_key(
    base_url: str,
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    epoch: int,
) -> str:
    """Return the SHA-256 of the endpoint, the request body (with a hash in place of each image) and the epoch."""
    text = request_text(model, messages, tools, settings, _image_digest)
    return sha256(orjson.dumps([base_url, epoch]) + b"\n" + text).hexdigest()


@lru_cache(maxsize=128)
def _image_digest(url: str) -> str:
    # The same image recurs at every step and in every mode.
    return sha256(url.encode(errors="surrogatepass")).hexdigest()


def _opened(path: Path) -> sqlite3.Connection:
    """Open the file as a response cache, and create it if necessary."""
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = OFF")  # a killed process leaves a whole file; only a power cut may not
        connection.execute(_TABLE)
    except BaseException:
        connection.close()
        raise
    return connection
