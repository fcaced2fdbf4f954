"""A pool of reused worker processes: started when needed, killed when they hang, replaced when they die."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

from agrotools.core import InfrastructureError
from agrotools.core.paths import cache_dir
from agrotools.tools.frames import BrokenFrame, Reply, packed, receive_frame

START_TIMEOUT_S = 120.0
"""A worker imports the tool's libraries before its first call; on a busy machine that takes a while."""
CALLS_PER_WORKER = 500
"""A worker retires after that many calls, so that what libraries leak stays small."""


def worker_environment() -> dict[str, str]:
    """All that a worker knows of this process: its import path and where the cache is. No keys, no PATH, no HOME."""
    environment = {
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute()),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "AGROTOOLS_CACHE": str(cache_dir()),
        "MPLCONFIGDIR": str(cache_dir("matplotlib")),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENCV_FOR_THREADS_NUM": "1",
        "MALLOC_ARENA_MAX": "2",
        # GDAL writes .aux.xml files beside what it reads, and reads files that lie beside it, unless told otherwise
        "GDAL_PAM_ENABLED": "NO",
        "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    }
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):  # without it some installations of Python do not start
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


class Worker:
    """One worker process and the tools it has already loaded."""

    def __init__(self, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._process = process
        self._log = log
        self.loaded: set[str] = set()
        self.calls = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, message: dict[str, Any]) -> Reply:
        """Send a message and wait for the reply.

        Raises:
            BrokenFrame: the worker died or wrote nonsense.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(packed(message))
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise BrokenFrame(str(error)) from error
        return await receive_frame(self._process.stdout)

    def kill(self) -> None:
        """End the worker and whatever it started, now."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def ended(self) -> int:
        """The exit status, once the worker has ended; all of its resources are free then."""
        status = await self._process.wait()
        self._process._transport.close()  # pyright: ignore[reportAttributeAccessIssue]
        return status

    def start_log(self) -> None:
        """Forget what earlier calls printed."""
        self._log.seek(0)
        self._log.truncate()

    def read_log(self) -> str:
        """The end of what the running call printed."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 8000))
        return self._log.read().decode(errors="replace")

    def close_log(self) -> None:
        self._log.close()


class WorkerPool:
    """At most ``size`` workers at a time. Use as an async context manager; on exit no process is left."""

    def __init__(self, size: int, memory_mb: int) -> None:
        self.size = size
        self.memory_mb = memory_mb
        self._free = asyncio.Semaphore(size)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self.closed = False

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

    @asynccontextmanager
    async def worker_for(self, target: str) -> AsyncIterator[Worker]:
        """A worker of one's own, with ``target`` already loaded if there is such a one.

        The worker goes back to the pool unless it was discarded or the block was left by an exception.
        """
        async with self._free:
            if self.closed:
                raise InfrastructureError("the tool executor is closed")
            worker = self._take(target) or await self._start()
            self._busy.add(worker)
            try:
                yield worker
            except BaseException:
                self.discard(worker)
                raise
            if worker in self._busy:
                self._busy.discard(worker)
                if worker.alive and worker.calls < CALLS_PER_WORKER and not self.closed:
                    self._idle.append(worker)
                else:
                    self.discard(worker)

    def discard(self, worker: Worker) -> None:
        """Kill a worker and see to it that nothing of it is left."""
        self._busy.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.kill()
        ending = asyncio.get_running_loop().create_task(_see_off(worker))
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
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the worker is seen off
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-s", "-P", "-m", "agrotools.tools.worker", str(self.memory_mb), str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=worker_environment(),
                cwd=os.sep,
                start_new_session=True,
            )
        except OSError as error:
            log.close()
            raise InfrastructureError(f"a tool worker does not start: {error}") from error
        except BaseException:
            log.close()
            raise
        worker = Worker(process, log)
        try:
            assert process.stdout is not None
            async with asyncio.timeout(START_TIMEOUT_S):
                await receive_frame(process.stdout)
        except (BrokenFrame, TimeoutError) as error:
            why = worker.read_log().strip().splitlines()
            self.discard(worker)
            raise InfrastructureError(
                f"a tool worker does not start: {why[-1] if why else error or 'no reply'}",
                hint=f"its memory limit is {self.memory_mb} MB",
            ) from error
        except BaseException:
            self.discard(worker)
            raise
        return worker


async def _see_off(worker: Worker) -> None:
    await worker.ended()
    worker.close_log()
