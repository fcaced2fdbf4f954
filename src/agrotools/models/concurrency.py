"""How many requests may be in flight at once: found out from the replies."""

import asyncio
from collections import deque

FIRST = 8
MOST = 128


class AdaptiveLimit:
    """A gate that lets through at most ``current`` requests, first come, first served.

    Args:
        start: how many at first.
        ceiling: never more than this.
    """

    def __init__(self, start: int = FIRST, ceiling: int = MOST) -> None:
        self.ceiling = ceiling
        self.current = min(start, ceiling)
        self.taken = 0
        self.latency_s = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()

    @classmethod
    def of(cls, concurrency: int | None) -> "AdaptiveLimit":
        """The limit that ``--concurrency`` means: None finds out, N starts at N and never goes above."""
        return cls() if concurrency is None else cls(concurrency, concurrency)

    async def acquire(self) -> None:
        """Wait for a slot."""
        if self.taken < self.current and not self._queue:
            self.taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            else:
                self._queue.remove(turn)
            raise

    def release(self) -> None:
        """Give a slot back."""
        self.taken -= 1
        self._admit()

    def replied(self, latency_s: float) -> None:
        """A reply came after ``latency_s``."""
        self.latency_s = latency_s
        self.current = min(self.current + 1, self.ceiling)
        self._admit()

    def overloaded(self) -> None:
        """The endpoint says that it has too much to do."""
        self.current = max(1, self.current // 2)

    def _admit(self) -> None:
        while self._queue and self.taken < self.current:
            turn = self._queue.popleft()
            if not turn.done():
                self.taken += 1
                turn.set_result(None)
