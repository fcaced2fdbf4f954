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
_JUDGED_GROWTH = 1.5
"""A limit is compared with one that is smaller by this factor: less is lost in the noise of latencies."""
_LEAST_GAIN = 0.3
"""Gain that makes a limit worth keeping; the second time that there is less, the smaller limit is taken again."""
_KEPT_GAIN = 0.1
"""Gain below which a limit that was kept is given up."""
_LEAST_LATENCY_S = 1e-6
_EPOCHS = 4
_ROUNDS_OF_REST = 8
"""Rounds at the limit that was found before more is tried again: endpoints grow, and empty."""


class _Knee(NamedTuple):
    """A limit that paid, and the latency there."""

    limit: int
    latency_s: float


class _Epoch(NamedTuple):
    """A time during which the limit stayed the same, and the latencies of requests that were sent in it."""

    limit: int
    began_at: float
    latencies: list[float]


class AdaptiveLimit:
    """A gate that lets through at most ``current`` requests, first come, first served.

    Args:
        start: how many at first.
        ceiling: never more than this. Where it equals ``start`` the user has chosen: only overload lowers the limit.
        clock: seconds that only go forward.
        timeout_s: seconds after which a request is given up. More are not let through while replies take half of it.
    """

    def __init__(
        self,
        start: int = FIRST,
        ceiling: int = MOST,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = float("inf"),
    ) -> None:
        self.ceiling = ceiling
        self.current = min(start, ceiling)
        self.taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._all_taken = False
        self._clock = clock
        self._idle_since = clock()
        self._slow_s = timeout_s / 2
        self._step = max(1, ceiling // 32)
        self._heeds_latency = start < ceiling
        self._doubling = True
        self._knees: list[_Knee] = []
        self._doubts = self._rest = 0
        self._cut_at = float("-inf")
        self._epochs: deque[_Epoch] = deque(maxlen=_EPOCHS)
        self._set(self.current)

    @classmethod
    def of(cls, concurrency: int | None, timeout_s: float = float("inf")) -> "AdaptiveLimit":
        """The limit that ``--concurrency`` means: None finds out, N starts at N and never goes above."""
        start, ceiling = (FIRST, MOST) if concurrency is None else (concurrency, concurrency)
        return cls(start, ceiling, timeout_s=timeout_s)

    def try_acquire(self) -> bool:
        """Take a slot if there is one now."""
        # Nobody can be waiting while a slot is free: whoever gives one back passes it on.
        if self._all_taken or self.taken >= self.current:
            return False
        self._take()
        return True

    def try_acquire_all(self, idle_s: float) -> bool:
        """Take all slots until the release, if nobody has held or wanted one for ``idle_s`` seconds."""
        if self.taken or self._clock() - self._idle_since < idle_s:
            return False
        self._take()
        self._all_taken = True
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
        self._all_taken = False
        self._idle_since = self._clock()
        self._admit()

    def replied(self, latency_s: float) -> None:
        """A reply came, ``latency_s`` after its request was sent."""
        self._replies += 1
        self._slow = self._slow or latency_s > self._slow_s
        if self._heeds_latency:
            self._note(latency_s)
        if self._replies >= self.current:
            self._end_round()
            self._admit()

    def overloaded(self, latency_s: float = 0.0, bears: int = MOST) -> None:
        """The endpoint refused a request, sent ``latency_s`` ago, because it has too much to do, or let it time out.

        Refusals of requests that were sent before the last cut belong to it: a round trip is answered once. No more
        than ``bears`` are let through from now on.
        """
        now = self._clock()
        if now - latency_s < self._cut_at:
            return
        self._cut_at = now
        self._doubling = False
        self._knees.clear()
        self._doubts = self._rest = 0
        self._epochs.clear()
        self._set(max(1, min(self.current // 2, bears)))

    def _take(self) -> None:
        self.taken += 1
        self._peak = max(self._peak, self.taken)

    def _admit(self) -> None:
        while self._queue and not self._all_taken and self.taken < self.current:
            turn = self._queue.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)

    def _set(self, limit: int) -> None:
        self.current = limit
        self._epochs.append(_Epoch(limit, self._clock(), []))
        self._begin_round()

    def _begin_round(self) -> None:
        self._replies = 0
        self._slow = False
        self._peak = self.taken

    def _end_round(self) -> None:
        needed = 2 * self._peak > self.current  # A limit that was not needed shows nothing (as in RFC 7661).
        if self._rest:
            self._rest -= 1
        elif needed and not self._slow and not self._doubts and self.current < self.ceiling:
            self._set(min(self.ceiling, 2 * self.current if self._doubling else self.current + self._step))
            return
        self._begin_round()

    def _note(self, latency_s: float) -> None:
        sent_at = self._clock() - latency_s
        for epoch in reversed(self._epochs):
            if sent_at >= epoch.began_at:
                epoch.latencies.append(latency_s)
                if len(epoch.latencies) >= epoch.limit:
                    self._judge(epoch.limit, max(_LEAST_LATENCY_S, median(epoch.latencies)))
                    epoch.latencies.clear()
                return

    def _judge(self, limit: int, latency_s: float) -> None:
        """Whether a limit brings more than the one below; if not, that one is taken again."""
        knees = self._knees
        if not knees:
            knees.append(_Knee(limit, latency_s))
        elif limit == knees[-1].limit:
            # Prompts and replies change during a run, so the old measure fades; and what looked like a gain may have
            # been luck.
            knees[-1] = _Knee(limit, (knees[-1].latency_s + latency_s) / 2)
            if len(knees) > 1 and _gain(knees[-2], knees[-1]) < _KEPT_GAIN:
                knees.pop()
                self._fall_back(knees[-1].limit)
        elif limit >= _JUDGED_GROWTH * knees[-1].limit:
            tried = _Knee(limit, latency_s)
            if _gain(knees[-1], tried) >= _LEAST_GAIN:
                knees.append(tried)
                self._doubts = 0
            elif self._doubts:
                self._fall_back(knees[-1].limit)
            else:
                self._doubts = 1

    def _fall_back(self, limit: int) -> None:
        self._doubling, self._doubts, self._rest = False, 0, _ROUNDS_OF_REST
        self._epochs.clear()
        self._set(limit)


def _gain(below: _Knee, above: _Knee) -> float:
    """Growth of throughput over growth of the limit: 1 where the load is not felt, 0 where requests queue."""
    growth = above.limit / below.limit
    return (growth * below.latency_s / above.latency_s - 1) / (growth - 1)
