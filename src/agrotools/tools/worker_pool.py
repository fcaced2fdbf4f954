"""Pool of reused worker processes: started when needed, killed when they hang, replaced when they die.

Separate from the sandbox's pool on purpose: its workers run hostile code, serve one job each and are read under a limit
for each kind of frame; these are reused, and their calls are pipelined on the event loop. One pool would hold both.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agrotools.core import InfrastructureError
from agrotools.tools.worker_process import Worker

CALLS_PER_WORKER = 20_000
"""A worker retires after that many calls. One that has grown retires sooner: it says so itself."""
_QUICK_S = 0.002
_MOST_PENDING = 32
"""Quick calls that a worker is asked for at a time, so that it does not wait for us between one and the next."""
_DECAY = 0.9
"""A tool that was slow is quick again when a hundred calls or so have shown it."""


class WorkerPool:
    """At most ``size`` workers at a time. Use as an async context manager; on exit no process is left."""

    def __init__(self, size: int, memory_mb: int, threads: int = 1) -> None:
        self.size = size
        self.memory_mb = memory_mb
        self.threads = threads
        self._free = asyncio.Semaphore(size)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._longest_s: dict[str, float] = {}
        """By tool, what a call may take."""
        self.closed = False
        self.started = 0
        """Workers started so far."""
        self.calls = 0
        """Calls that went to a worker so far."""

    async def __aenter__(self) -> "WorkerPool":
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.closed = True
        for worker in [*self._idle, *self._busy]:
            self.discard(worker)
        await asyncio.gather(*self._endings)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers that live now."""
        return tuple(worker.pid for worker in [*self._idle, *self._busy])

    def took(self, target: str, seconds: float) -> None:
        """Take note of how long a call of ``target`` was."""
        self._longest_s[target] = max(seconds, _DECAY * self._longest_s.get(target, 0.0))

    @asynccontextmanager
    async def worker_for(self, target: str, *, fresh: bool = False) -> AsyncIterator[Worker]:
        """A worker to ask for a call of ``target``, which is loaded already if there is such a one.

        Nobody else's calls are on it, but for quick ones where this is quick as well; with ``fresh`` it is a new
        process. The worker goes back to the pool unless it was discarded or the block was left by an exception.

        Raises:
            InfrastructureError: the pool is closed, or no worker can be started.
        """
        quick = self._longest_s.get(target, _QUICK_S) < _QUICK_S
        shared = self._shared(target) if quick and not fresh and self._free.locked() else None
        worker = shared or await self._own(target, fresh)
        worker.quick = quick
        try:
            yield worker
        except BaseException:
            self.discard(worker)
            raise
        finally:
            retires = worker.calls >= CALLS_PER_WORKER and not worker.asked
            if worker.spent or retires or not worker.alive or self.closed:
                self.discard(worker)
            if shared is None:
                if worker in self._busy:
                    self._busy.discard(worker)
                    self._idle.append(worker)
                self._free.release()

    async def _own(self, target: str, fresh: bool) -> Worker:
        """A worker, once there is one that nobody else has taken."""
        await self._free.acquire()
        try:
            if self.closed:
                raise InfrastructureError("the tool executor is closed")
            worker = (None if fresh else self._take(target)) or await self._start()
        except BaseException:
            self._free.release()
            raise
        self._busy.add(worker)
        return worker

    def _shared(self, target: str) -> Worker | None:
        """A worker at work on quick calls alone that may be asked for one more."""
        able = (
            worker
            for worker in self._busy
            if worker.quick and target in worker.loaded and worker.asked < _MOST_PENDING
            if worker.alive and not worker.spent and worker.calls < CALLS_PER_WORKER
        )
        return min(able, key=lambda worker: worker.asked, default=None)

    def discard(self, worker: Worker) -> None:
        """Kill a worker and see to it that nothing of it is left."""
        self._busy.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        if worker.given_up:
            return
        worker.given_up = True
        worker.kill()
        ending = asyncio.get_running_loop().create_task(worker.end())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _take(self, target: str) -> Worker | None:
        for worker in [worker for worker in self._idle if not worker.alive]:
            self.discard(worker)
        if not self._idle:
            return None
        worker = next((worker for worker in reversed(self._idle) if target in worker.loaded), self._idle[-1])
        self._idle.remove(worker)
        return worker

    async def _start(self) -> Worker:
        while self._idle and len(self._idle) + len(self._busy) >= self.size:
            self.discard(self._idle[0])
        self.started += 1
        worker = await Worker.start(self.memory_mb, self.threads)
        if self.closed:
            await worker.end()
            raise InfrastructureError("the tool executor was closed while a call was running")
        return worker
