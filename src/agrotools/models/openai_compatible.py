"""Any endpoint that speaks OpenAI chat completions, over one pooled HTTP session.

Retries have a budget of attempts and of wall time, obey ``Retry-After``, and are for faults that do not depend on
the request alone: refused or broken connections, 408, 409, 425, 429, 5xx, and bodies that are no chat completion.
"""

import asyncio
import math
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson

from agrotools.core import InfrastructureError, ToolSpec, UsageError
from agrotools.models.base import DEFAULT_WIRE, Completion, Message, ModelSettings, WireSettings, WireStats
from agrotools.models.chat_format import MalformedReply, Rejection, read_error, read_reply, request_body
from agrotools.models.concurrency import AdaptiveLimit

if TYPE_CHECKING:
    import aiohttp

OPENAI_URL = "https://api.openai.com/v1"
_LONGEST_REPLY_BYTES = 64 * 2**20


@dataclass(frozen=True)
class _Fault:
    """An attempt that gave no reply and is worth another. ``wait_s`` is what the server asked for."""

    reason: str
    wait_s: float | None = None


class OpenAICompatibleModel:
    """A model behind ``POST <base_url>/chat/completions``.

    Args:
        name: the model's name as the endpoint knows it.
        base_url: up to and with ``/v1``; default ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key_env: environment variable that holds the key. Without a key no ``Authorization`` header is sent.
        wire: concurrency, rate limits, time limits and the retry budget.

    Raises:
        UsageError: the address is not an HTTP URL or holds a secret, or there is no key where one is needed.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        wire: WireSettings = DEFAULT_WIRE,
    ) -> None:
        self._name = name
        self.base_url = _checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
        self._key_env = api_key_env
        self._key = _key_from(api_key_env, required=self.base_url == OPENAI_URL)
        self._wire = wire
        self.limit = AdaptiveLimit.of(wire.concurrency)
        self._token_limit_key = "max_tokens"
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stats = WireStats(limit=self.limit.current)

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self._name!r}, base_url={self.base_url!r})"

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """One reply, within the retry budget.

        Raises:
            InfrastructureError: no reply within the budget.
            UsageError: wrong key, address, model name or request, which no retry mends.
        """
        started = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._attempt(messages, tools, settings)
            if isinstance(outcome, Completion):
                return outcome.model_copy(update={"seconds": time.monotonic() - started, "attempts": attempt})
            wait_s = self._backoff(attempt) if outcome.wait_s is None else outcome.wait_s
            elapsed = time.monotonic() - started
            if attempt >= self._wire.attempts or elapsed + wait_s > self._wire.retry_wall_s:
                asked = f"; the server asks to wait {wait_s:.0f} s" if outcome.wait_s else ""
                # No times here: reports count equal reasons.
                raise InfrastructureError(
                    f"no reply from {self.base_url} after {attempt} attempts: {outcome.reason}{asked}",
                    hint="is the server up and the address (--base-url) right? Run the same command again to go on",
                )
            self.stats.retries += 1
            self.stats.waiting += 1
            try:
                await asyncio.sleep(wait_s)
            finally:
                self.stats.waiting -= 1

    async def _attempt(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> "Completion | _Fault":
        import aiohttp

        token_limit_key = self._token_limit_key
        body = orjson.dumps(request_body(self._name, messages, tools, settings, token_limit_key))
        self.stats.in_flight += 1
        try:
            # No redirects: they would carry prompts, and perhaps the key, to another place.
            async with self._connected().post(
                f"{self.base_url}/chat/completions", data=body, allow_redirects=False
            ) as response:
                content = await _read_body(response)
                if content is None:
                    return Completion(finish_reason="timeout", detail="the reply did not end")
                self.stats.rate_limited += response.status == 429
                read = read_reply(content) if response.status == 200 else read_error(response.status, content)
                if isinstance(read, Completion):
                    self.stats.replies += 1
                    return read
                if read.verdict == "rejected" and self._renames_token_limit(read.message, token_limit_key):
                    return _Fault(read.message, wait_s=0.0)
                return self._judged(read, _retry_after(response.headers))
        except aiohttp.ConnectionTimeoutError as error:
            return _Fault(f"no connection in time: {error}")
        except TimeoutError:
            return Completion(finish_reason="timeout", detail=f"no complete reply within {self._wire.timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as error:
            return _Fault(f"{type(error).__name__}: {self._said(str(error))}")
        except MalformedReply as error:
            return _Fault(self._said(str(error)))
        finally:
            self.stats.in_flight -= 1

    def _judged(self, rejection: Rejection, asked_wait_s: float | None) -> "Completion | _Fault":
        said = self._said(rejection.message)
        match rejection.verdict:
            case "context" | "filtered":
                return Completion(finish_reason=rejection.verdict, detail=said)
            case "retry":
                return _Fault(said, asked_wait_s)
            case "credentials":
                raise UsageError(
                    f"{self.base_url} refuses the key: {said}",
                    hint=f"set the environment variable {self._key_env} to a valid key, or name another variable",
                )
            case "credit":
                raise UsageError(f"{self.base_url} says that the account has no credit: {said}")
            case "not_found":
                raise UsageError(
                    f"{self.base_url} has no model {self._name!r} or no chat completions: {said}",
                    hint="check the model name and the address; most addresses end in /v1",
                )
            case "rejected":
                return self._rejected(said)

    def _rejected(self, said: str) -> "Completion | _Fault":
        if self.stats.replies:
            # The set-up has worked before, so this request is at fault: ours, not the model's.
            raise InfrastructureError(f"{self.base_url} rejects the request: {said}")
        raise UsageError(
            f"{self.base_url} rejects the request: {said}",
            hint="does the model take images (--no-images) and native tool calls (--protocol react), "
            "and the endpoint this temperature, seed and token limit?",
        )

    def _renames_token_limit(self, said: str, used: str) -> bool:
        """Whether the endpoint wants the token limit under its newer name (OpenAI's reasoning models do)."""
        if used != "max_tokens" or "max_completion_tokens" not in said:
            return False
        self._token_limit_key = "max_completion_tokens"
        return True

    def _backoff(self, attempt: int) -> float:
        """Seconds to wait after the ``attempt``-th failed attempt."""
        longest = min(self._wire.longest_wait_s, self._wire.first_wait_s * 2 ** (attempt - 1))
        return longest * random.uniform(0.5, 1.0)

    def _said(self, text: str) -> str:
        """What a server said, as one line without the key: some echo it."""
        text = " ".join((text.replace(self._key, "***") if self._key else text).split())
        return text if len(text) <= 300 else text[:299] + "…"

    def _connected(self) -> "aiohttp.ClientSession":
        """The session of the running loop, made on first use."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._session = aiohttp.ClientSession(
                # How many requests are open at once is the runner's decision.
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                timeout=aiohttp.ClientTimeout(total=self._wire.timeout_s, sock_connect=15),
                headers=headers,
                trust_env=urlsplit(self.base_url).hostname not in ("localhost", "127.0.0.1", "::1"),
            )
            self._loop = loop
        return self._session

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()


async def _read_body(response: "aiohttp.ClientResponse") -> bytes | None:
    """The whole body; None where it is longer than any reply can be."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _LONGEST_REPLY_BYTES:
            return None
    return bytes(content)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or as a date."""
    for key, scale in (("Retry-After-Ms", 0.001), ("Retry-After", 1.0)):
        text = headers.get(key)
        if text is None:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                date = parsedate_to_datetime(text)
            except ValueError:
                continue
            seconds = (date - datetime.now(UTC if date.tzinfo else None)).total_seconds()
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


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


def _key_from(variable: str, *, required: bool) -> str:
    key = os.environ.get(variable, "").strip()
    if not key and (required or variable != "OPENAI_API_KEY"):
        raise UsageError(
            f"the environment variable {variable} is not set",
            hint="it must hold the endpoint's API key; for a local server without keys give --base-url alone",
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable {variable} does not hold an API key")
    return key
