"""Pace of a run: how many samples are in flight at once, and the end that Ctrl-C asks for."""

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from agrotools.models import WireStats

HANDFUL = 8
"""Samples that may wait between two attempts without holding up others, where the limit is lower."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Pace:
    """As many samples as requests may be in flight, and one more for each that waits for a tool: it sends none.

    One more, too, for each that waits between two attempts, so that a few samples which no server answers do not hold
    up all others when the endpoint bears little; but no more than a handful or the limit, for it may be gone.

    Args:
        most: samples in flight at most.
        stats: of the model's wire, whose ``limit`` follows what the endpoint bears; None: ``most`` alone counts.
    """

    def __init__(self, most: int, stats: WireStats | None = None) -> None:
        self.most = most
        self._stats = stats
        self._in_tools = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    @property
    def allowed(self) -> int:
        """Samples that may be in flight now."""
        limit = self._stats.limit if self._stats else 0
        if not self._stats or not limit:
            return self.most
        waiting = min(self._stats.retry_waits, max(HANDFUL, limit))
        return min(self.most, limit + self._in_tools + waiting)

    async def enter(self) -> None:
        """Wait until one more may be in flight, and count it."""
        while self.in_flight >= self.allowed:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self.in_flight += 1

    def leave(self) -> None:
        self.in_flight -= 1
        self.look_again()

    def tool_begins(self) -> None:
        self._in_tools += 1
        self.look_again()

    def tool_ends(self) -> None:
        self._in_tools -= 1

    def look_again(self) -> None:
        """Admit those for whom there is room now."""
        for _ in range(self.allowed - self.in_flight):
            if not self._waiting:
                break
            self._wake()

    def open(self) -> None:
        """Wake everybody who waits, room or not: the run is about to end."""
        self.most = max(self.most, self.in_flight + len(self._waiting))
        self._stats = None
        while self._waiting:
            self._wake()

    def _wake(self) -> None:
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_result(None)


@contextmanager
def interrupts(on_first: Callable[[], None]) -> Generator[None]:
    """While the block runs in the current task, the first SIGINT or SIGTERM calls ``on_first``, the next cancels it.

    Raises:
        KeyboardInterrupt: the block was cancelled by a signal.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    seen = 0

    def received() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            on_first()
        else:
            task.cancel()

    # Only the main thread gets signals; elsewhere whoever runs us decides.
    with suppress(RuntimeError, ValueError):
        for number in _SIGNALS:
            loop.add_signal_handler(number, received)
    try:
        yield
    except asyncio.CancelledError:
        if seen > 1:
            raise KeyboardInterrupt from None
        raise
    finally:
        with suppress(RuntimeError, ValueError):
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
