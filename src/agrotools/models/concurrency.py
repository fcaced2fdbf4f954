"""How many requests may be in flight at once: found out from the replies.

The limit doubles each round (TCP's slow start: Jacobson 1988), then rises by a constant and is halved when the endpoint
is overloaded (additive increase, multiplicative decrease: Chiu and Jain 1989). As in TCP Vegas (Brakmo and Peterson
1995) latency tells of a queue before anything is refused; but a server that works in batches answers each request later
and all of them sooner, so what ends the rise is not latency itself but latency in proportion to the limit: by Little's
law, no more throughput.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

FIRST = 8
MOST = 128
_JUDGED_GROWTH = 1.25
"""A limit is compared with one that is smaller by this factor: less is lost in the noise of latencies."""
_LEAST_GAIN = 0.2
"""Growth of throughput over growth of the limit; 1 is an endpoint that does not feel the load, 0 a queue."""
_DOUBTS = 2
"""Rounds without gain before the limit goes back: latencies of models vary with what they say."""
_ROUNDS_OF_REST = 8
"""Rounds at the limit that was found before more is tried again: endpoints grow, and empty."""


class _Knee(NamedTuple):
    """The largest limit that paid, and the latency there."""

    limit: int
    latency_s: float


class AdaptiveLimit:
    """A gate that lets through at most ``current`` requests, first come, first served.

    Args:
        start: how many at first.
        ceiling: never more than this. Where it equals ``start`` the user has chosen: only overload lowers the limit.
        clock: seconds that only go forward.
    """

    def __init__(self, start: int = FIRST, ceiling: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = ceiling
        self.current = min(start, ceiling)
        self.taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._clock = clock
        self._step = max(1, ceiling // 32)
        self._heeds_latency = start < ceiling
        self._doubling = True
        self._knee: _Knee | None = None
        self._doubts = 0
        self._rest = 0
        self._cut_at = float("-inf")
        self._begin_round()

    @classmethod
    def of(cls, concurrency: int | None) -> "AdaptiveLimit":
        """The limit that ``--concurrency`` means: None finds out, N starts at N and never goes above."""
        return cls() if concurrency is None else cls(concurrency, concurrency)

    def try_acquire(self) -> bool:
        """Take a slot if there is one now."""
        # Nobody can be waiting while a slot is free: whoever gives one back passes it on.
        if self.taken >= self.current:
            return False
        self._take()
        return True

    async def acquire(self) -> None:
        """Wait for a slot. A cancelled wait holds none."""
        if self.try_acquire():
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # One that was cancelled while it waited is passed over; one that had its turn already gives it on.
            if not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back."""
        self.taken -= 1
        self._admit()

    def replied(self, latency_s: float) -> None:
        """A reply came, ``latency_s`` after its request was sent."""
        self._replies += 1
        if self._clock() - latency_s >= self._round_began:
            self._latencies.append(latency_s)
        if self._replies >= self.current:
            self._end_round()
            self._admit()

    def overloaded(self, latency_s: float = 0.0) -> None:
        """The endpoint refused a request, sent ``latency_s`` ago, because it has too much to do.

        Refusals of requests that were sent before the last cut belong to it: a round trip is answered once.
        """
        now = self._clock()
        if now - latency_s < self._cut_at:
            return
        self._cut_at = now
        self.current = max(1, self.current // 2)
        self._doubling = False
        self._knee = None
        self._doubts = self._rest = 0
        self._begin_round()

    def _take(self) -> None:
        self.taken += 1
        self._peak = max(self._peak, self.taken)

    def _admit(self) -> None:
        while self._queue and self.taken < self.current:
            turn = self._queue.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)

    def _begin_round(self) -> None:
        self._round_began = self._clock()
        self._replies = 0
        self._latencies: list[float] = []
        self._peak = self.taken

    def _end_round(self) -> None:
        # A limit that was not needed shows nothing (as in RFC 7661); neither do a few replies out of many.
        if 2 * self._peak > self.current:
            judged = self._heeds_latency and 3 * len(self._latencies) >= self.current
            if not judged or self._pays(median(self._latencies)):
                self._rise()
        self._begin_round()

    def _rise(self) -> None:
        if self._rest:
            self._rest -= 1
            return
        self.current = min(self.ceiling, 2 * self.current if self._doubling else self.current + self._step)

    def _pays(self, latency_s: float) -> bool:
        """Whether the limit as it is brings more than a smaller one did; if not, twice, the limit goes back."""
        knee, latency_s = self._knee, max(latency_s, 1e-6)
        if knee is None or self.current <= knee.limit:
            # Prompts and replies change during a run, so the old measure fades.
            self._knee = _Knee(self.current, latency_s if knee is None else (knee.latency_s + latency_s) / 2)
            return True
        growth = self.current / knee.limit
        if growth < _JUDGED_GROWTH and self.current < self.ceiling:
            return True
        throughput = growth * knee.latency_s / latency_s
        if throughput - 1 >= _LEAST_GAIN * (growth - 1):
            self._knee, self._doubts = _Knee(self.current, latency_s), 0
            return True
        self._doubts += 1
        if self._doubts >= _DOUBTS:
            self.current, self._doubling, self._doubts, self._rest = knee.limit, False, 0, _ROUNDS_OF_REST
        return False
