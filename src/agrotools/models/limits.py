"""Limits of an endpoint: requests and tokens per minute, requested waits, and the concurrency it sustains."""

import asyncio
import time
from collections.abc import Callable, Sequence
from statistics import median

from agrotools.core import ToolSpec
from agrotools.models.base import Message, ModelSettings, Slots, prompt_length

_MINUTE_S = 60.0
_TICK_S = 1e-6
"""Shorter waits count as zero: they are rounding errors of the previous wait."""
_LOOKS_AGAIN_S = 1.0
_BURST_S = 1.0
"""Seconds of the allowance that may be used at once: servers also enforce a per-minute limit over shorter spans."""
_CHARACTERS_PER_TOKEN = 3.5
_TOKENS_PER_IMAGE = 1000
_REPLY_TOKENS = 1024
_CHARACTERS_PER_PARAMETER = 200


class TokenBucket:
    """Token bucket that allows at most ``per_minute`` in any minute, except for a single take larger than a burst.

    Generic cell rate algorithm in its leaky-bucket form (ITU-T I.371).
    """

    def __init__(self, per_minute: int) -> None:
        self._most = max(1.0, per_minute * _BURST_S / _MINUTE_S)
        self._per_s = (per_minute - self._most + 1) / _MINUTE_S
        self._level = self._most
        self._at: float | None = None

    def wait_s(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` may be taken. An excess over a burst becomes a debt for later takes."""
        if self._at is not None:
            self._level = min(self._most, self._level + (now - self._at) * self._per_s)
        self._at = now
        return max(0.0, (min(amount, self._most) - self._level) / self._per_s)

    def take(self, amount: float) -> None:
        """Take ``amount``; a negative amount is returned to the bucket."""
        self._level = min(self._most, self._level - amount)


class RateLimit:
    """Admits requests in order, each as soon as the server and the limits of requests (``rpm``) and of tokens of
    prompts and replies together (``tpm``) per minute allow it; None for no limit."""

    def __init__(self, rpm: int | None = None, tpm: int | None = None) -> None:
        self._buckets = [
            TokenBucket(per_minute) if per_minute else None for per_minute in (rpm, tpm)
        ]
        """Of requests and of tokens."""
        self._not_before = 0.0
        self._first = asyncio.Lock()
        """Held by the first of those that wait; the others follow in order."""

    def reset(self) -> None:
        """Make the limit usable in another event loop."""
        self._first = asyncio.Lock()

    def try_admit(self, tokens: int = 0) -> bool:
        """Admit a request of about ``tokens`` tokens and return True if the limits allow it now."""
        if self._buckets == [None, None] and not self._not_before:
            return True
        if self._first.locked() or self._wait_s(tokens):
            return False
        self._take(tokens)
        return True

    async def admit(self, tokens: int = 0) -> None:
        """Wait until a request may be sent. A cancelled wait consumes nothing."""
        if self.try_admit(tokens):
            return
        async with self._first:
            # Replies may use fewer tokens than were reserved for them.
            while wait_s := self._wait_s(tokens):  # noqa: ASYNC110
                await asyncio.sleep(min(wait_s, _LOOKS_AGAIN_S))
            self._take(tokens)

    def pause(self, seconds: float) -> None:
        """Admit nothing for ``seconds``, as requested by the server."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    def settle(self, reserved: int, used: int) -> None:
        """Replace the estimated tokens of a request by the actual number."""
        if self._buckets[1] is not None:
            self._buckets[1].take(used - reserved)

    def _wait_s(self, tokens: int) -> float:
        now = asyncio.get_running_loop().time()
        wait_s = self._not_before - now
        if wait_s <= 0:
            self._not_before = 0.0
        for bucket, amount in zip(self._buckets, (1, tokens), strict=True):
            wait_s = max(wait_s, bucket.wait_s(amount, now)) if bucket else wait_s
        return wait_s if wait_s > _TICK_S else 0.0

    def _take(self, tokens: int) -> None:
        for bucket, amount in zip(self._buckets, (1, tokens), strict=True):
            if bucket is not None:
                bucket.take(amount)


class TokenEstimate:
    """Estimate of the tokens of a request from its length, calibrated by actual usage."""

    def __init__(self) -> None:
        self._scale = 1.0

    def of(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> int:
        """Return the estimated tokens of prompt and reply together, at least 1."""
        characters, images = prompt_length(messages)
        characters += sum(
            len(spec.description) + _CHARACTERS_PER_PARAMETER * len(spec.parameters)
            for spec in tools
        )
        guess = characters / _CHARACTERS_PER_TOKEN + images * _TOKENS_PER_IMAGE
        # Vendors count the full reply allowance against the limit until the reply is complete; so does this estimate.
        return max(1, round(self._scale * (guess + (settings.max_output_tokens or _REPLY_TOKENS))))

    def learn(self, guessed: int, used: int) -> None:
        """Update the estimate from a request that was estimated at ``guessed`` tokens and used ``used``."""
        self._scale = min(100.0, max(0.01, self._scale * (0.8 + 0.2 * used / guessed)))


FIRST = 8
MOST = 128
_MOST_SLOWER = 2.5
"""Factor on the shortest median latency above which more requests only queue: the limit is halved."""
_FADING = 1.02
"""Growth of the shortest median latency in each round, because prompts and replies change during a run."""


class AdaptiveLimit(Slots):
    """Adaptive limit on concurrent requests: admits at most ``current`` at a time, first come, first served.

    In each round of as many replies as the limit, it doubles until the first refusal or queue, then grows by a step.

    Args:
        start: initial limit.
        ceiling: maximum limit. If it equals ``start``, the user has fixed it, and only overload lowers it.
        clock: monotonic clock in seconds.
        timeout_s: request timeout. The limit does not grow while replies take more than half of it.
    """

    def __init__(
        self,
        start: int = FIRST,
        ceiling: int = MOST,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = float("inf"),
    ) -> None:
        super().__init__()
        self.ceiling = ceiling
        self.current = self._least = min(start, ceiling)
        self._clock = clock
        self._slow_s = timeout_s / 2
        self._step = max(1, ceiling // 32)
        self._doubling = True
        self._shortest_s = float("inf")
        self._cut_at = float("-inf")
        self._latencies: list[float] = []
        self._begin_round()

    @classmethod
    def of(cls, concurrency: int | None, timeout_s: float = float("inf")) -> "AdaptiveLimit":
        """Return the limit for ``--concurrency``: None adapts, N starts at N and never exceeds it."""
        start, ceiling = (FIRST, MOST) if concurrency is None else (concurrency, concurrency)
        return cls(start, ceiling, timeout_s=timeout_s)

    @property
    def allowed(self) -> int:
        return self.current

    def replied(self, latency_s: float) -> None:
        """Record a reply that arrived ``latency_s`` after its request was sent."""
        self._latencies.append(latency_s)
        if len(self._latencies) >= self.current:
            self._end_round()
            self.admit()

    def overloaded(self, latency_s: float = 0.0, most: int = MOST) -> None:
        """Record that the endpoint refused a request because of overload, or let it time out, and lower the limit.

        Args:
            latency_s: time since the request was sent. Requests sent before the last cut do not cause another one.
            most: upper bound of the new limit.
        """
        now = self._clock()
        if now - latency_s < self._cut_at:
            return
        self._cut_at = now
        self._doubling = False
        self.current = max(1, min(self.current // 2, most))
        self._begin_round()

    def _take(self) -> None:
        super()._take()
        self._peak = max(self._peak, self.in_use)

    def _begin_round(self) -> None:
        self._latencies.clear()
        self._peak = self.in_use

    def _end_round(self) -> None:
        needed = (
            2 * self._peak > self.current
        )  # A limit that was not used shows nothing (as in RFC 7661).
        usual_s = median(self._latencies)
        self._shortest_s = min(_FADING * self._shortest_s, usual_s)
        if self._least < self.ceiling and usual_s > _MOST_SLOWER * self._shortest_s:
            self._doubling = False
            self.current = max(self._least, self.current // 2)
        elif needed and max(self._latencies) <= self._slow_s:
            self.current = min(
                self.ceiling, 2 * self.current if self._doubling else self.current + self._step
            )
        self._begin_round()
