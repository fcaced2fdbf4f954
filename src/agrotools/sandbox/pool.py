"""Warm workers: started ahead, each used for one job, then thrown away and replaced in the background."""

import atexit
import os
import queue
import threading
from concurrent.futures import Future

from agrotools.core import InfrastructureError, UsageError
from agrotools.sandbox import places
from agrotools.sandbox.session import Worker

SIZE = "AGROTOOLS_SANDBOX_WORKERS"
"""Environment variable: how many workers are kept, and so how many jobs run at once. Default: one for each core."""


class Pool:
    """Workers of one runner, none before the first is taken.

    All of them are started by one thread, since each dies with the thread that started it.
    """

    def __init__(self, runner: str, size: int) -> None:
        self.runner = runner
        self._wanted: queue.SimpleQueue[tuple[Future[Worker], tuple[str, ...], str | None] | None] = queue.SimpleQueue()
        self._ahead: queue.SimpleQueue[Future[Worker]] = queue.SimpleQueue()
        self._alive: set[Worker] = set()
        self._starting = threading.Lock()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._start_workers, name=f"starts sandboxes ({runner})", daemon=True)
        self._thread.start()
        self._size = size
        self._filled = False

    def take(self) -> Worker:
        """A worker that was started ahead, as soon as there is one. Give it back by :meth:`throw_away`.

        Raises:
            InfrastructureError: it cannot be started.
        """
        with self._lock:
            first, self._filled = not self._filled, True
        for _ in range(self._size if first else 0):
            self.refill()
        future = self._ahead.get()
        if self._closed:
            self._ahead.put(_never())  # for the next that waits
        return self._result(future)

    def start(self, warm: tuple[str, ...] = places.WARM, folder: str | None = None) -> Worker:
        """A worker beside those of the pool, as :meth:`take`."""
        return self._result(self._order(warm, folder))

    def throw_away(self, worker: Worker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.end()

    def refill(self) -> None:
        """Have another worker started in place of one that was taken."""
        self._ahead.put(self._order(places.WARM, None))

    def alive(self) -> set[int]:
        """Process ids of all workers that were started and not thrown away; none is just being started."""
        with self._starting, self._lock:
            return {worker.pid for worker in self._alive}

    def close(self) -> None:
        """Kill every worker. Nothing can be taken any more."""
        with self._lock:
            self._closed = True
            alive, self._alive = list(self._alive), set()
        self._wanted.put(None)
        for worker in alive:
            worker.kill()
            worker.end()
        self._ahead.put(_never())

    def _order(self, warm: tuple[str, ...], folder: str | None) -> "Future[Worker]":
        future: Future[Worker] = Future()
        with self._lock:
            if self._closed:
                return _never()
            self._wanted.put((future, warm, folder))
        return future

    def _result(self, future: "Future[Worker]") -> Worker:
        try:
            return future.result()
        except OSError as error:
            raise InfrastructureError(f"a sandbox worker ({self.runner}) does not start: {error}") from error

    def _start_workers(self) -> None:
        while (order := self._wanted.get()) is not None:
            future, warm, folder = order
            with self._starting:
                try:
                    worker = Worker(self.runner, warm, folder)
                except BaseException as error:
                    future.set_exception(error)
                    continue
                with self._lock:
                    self._alive.add(worker)
                    closed = self._closed
            if closed:
                self.throw_away(worker)
                future.set_exception(InfrastructureError("the sandboxes were closed"))
            else:
                future.set_result(worker)


def _never() -> "Future[Worker]":
    future: Future[Worker] = Future()
    future.set_exception(InfrastructureError("the sandboxes were closed"))
    return future


_pools: dict[str, Pool] = {}
_pools_lock = threading.Lock()


def pool_of(runner: str) -> Pool:
    """The pool of this process for ``runner``; made when first asked for, closed when the process ends.

    Raises:
        UsageError: the number of workers in the environment is none.
    """
    with _pools_lock:
        if runner not in _pools:
            _pools[runner] = Pool(runner, pool_size())
        return _pools[runner]


def are_workers(processes: set[int]) -> bool:
    """Whether these, some at least, are workers that this process keeps ready, and no others."""
    kept: set[int] = set().union(*(pool.alive() for pool in list(_pools.values())))
    return bool(processes) and processes <= kept


def pool_size() -> int:
    """How many workers are kept ready: ``AGROTOOLS_SANDBOX_WORKERS``, else the cores that this process may use."""
    text = os.environ.get(SIZE, "").strip()
    if not text:
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        return max(1, len(cores))
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise UsageError(f"{SIZE} is {text!r}", hint="give a whole number from 1 to 1024, or leave it out")
    return int(text)


@atexit.register
def close_pools() -> None:
    """Kill all workers that this process keeps."""
    with _pools_lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()


def _forget_pools() -> None:
    """A process that was forked off has no workers: they belong to the one that started them."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
