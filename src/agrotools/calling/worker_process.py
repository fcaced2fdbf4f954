"""Parent side of worker processes (start, calls, end, clean-up) and the pool of workers.

The pool is deliberately separate from that of the sandbox, whose workers run hostile code, serve one job each and have
a size limit for each kind of frame. The workers here are reused.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

from agrotools.calling.result import HEADER, BrokenFrame, Reply, pack_frame, unpack_frame
from agrotools.core import InfrastructureError
from agrotools.core.files import cache_dir, hub_cache
from agrotools.core.processes import kill_group
from agrotools.core.systems import read_at

START_TIMEOUT_S = 120.0
"""Time limit for starting a worker and importing a tool's libraries, which takes long on a busy machine."""
_THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)
_TIME_TO_END_S = 2.0
"""Time that a process may take to end after closing its output."""


def worker_environment(threads: int = 1) -> dict[str, str]:
    """Return the environment of a worker: import path, folders of caches and of the user's knowledge base.

    It has no keys, no PATH and no HOME. ``threads`` is the number of threads of numeric libraries.
    """
    from agrotools.knowledge.entries import user_folders
    from agrotools.sandbox import RUNNER_VARIABLE, WORKERS_VARIABLE
    from agrotools.vision import THREADS

    environment = {
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute()),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "AGROTOOLS_CACHE": str(cache_dir()),
        "AGROTOOLS_KB": os.pathsep.join(map(str, user_folders())),
        "MPLCONFIGDIR": str(cache_dir("matplotlib")),
        # the only source of large models' weights
        "HF_HUB_CACHE": str(hub_cache()),
        "HF_HUB_OFFLINE": "1",
        **dict.fromkeys((*_THREAD_LIMITS, THREADS), str(threads)),
        "MALLOC_ARENA_MAX": "2",
        WORKERS_VARIABLE: "1",  # a tool runs one call at a time
        # by default GDAL writes .aux.xml files next to its input and reads other files in that folder
        "GDAL_PAM_ENABLED": "NO",
        "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    }
    # some installations of Python do not start without their libraries, and none on Windows without its folders; GPUs
    # that are others' stay out of use
    needed = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP")
    for name in (*needed, RUNNER_VARIABLE, "CUDA_VISIBLE_DEVICES"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


class ToolWorker:
    """One worker process and the tools it has already loaded."""

    def __init__(self, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid
        self.loaded: set[str] = set()
        self.calls = 0
        self.spent = False
        """True if the worker is to be replaced, because it needs too much memory."""
        self.given_up = False

    @classmethod
    async def start(cls, memory_mb: int, threads: int = 1) -> "ToolWorker":
        """Start a worker and wait until it is ready; InfrastructureError if it does not become ready."""
        with ExitStack() as stack:
            try:
                log = stack.enter_context(tempfile.TemporaryFile(buffering=0))
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-s",
                    "-P",
                    "-m",
                    "agrotools.calling.worker",
                    str(memory_mb),
                    str(os.getpid()),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    env=worker_environment(threads),
                    cwd=os.sep,
                    start_new_session=True,
                )
            except OSError as error:
                raise InfrastructureError(f"a tool worker does not start: {error}") from error
            stack.pop_all()  # the worker closes its log
        worker = cls(process, log)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await worker._receive()
        except BaseException as error:
            why = worker.read_log().strip().splitlines()
            await asyncio.shield(worker.end())
            if not isinstance(error, (BrokenFrame, TimeoutError)):
                raise
            raise InfrastructureError(
                f"a tool worker does not start: {why[-1] if why else str(error) or 'no reply'}",
                hint=f"its memory limit is {memory_mb} MB",
            ) from error
        return worker

    @property
    def alive(self) -> bool:
        """True if the worker can take another call."""
        assert self._process.stdout is not None
        return self._process.returncode is None and not self._process.stdout.at_eof()

    async def ask(self, message: dict[str, Any], limit_s: float) -> Reply:
        """Return the reply to a message. TimeoutError: none within ``limit_s`` seconds; BrokenFrame: the worker
        died."""
        assert self._process.stdin is not None
        self._process.stdin.write(pack_frame(message))
        async with asyncio.timeout(limit_s):
            return await self._receive()

    async def _receive(self) -> Reply:
        output = self._process.stdout
        assert output is not None
        try:
            head, total = HEADER.unpack(await output.readexactly(HEADER.size))
            return unpack_frame(await output.readexactly(head), await output.readexactly(total))
        except asyncio.IncompleteReadError as error:
            raise BrokenFrame("it closed its output") from error

    def kill(self) -> None:
        """Kill the worker and its process group immediately."""
        if self._process.returncode is None:
            kill_group(self.pid)

    async def exit_status(self) -> int | None:
        """Return the exit status of a worker that ended, or None if its channel broke and it had to be killed."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._process.wait(), _TIME_TO_END_S)
        self.kill()
        return None

    async def end(self) -> None:
        """Kill the worker and close its log."""
        self.kill()
        try:
            await self._process.wait()
        finally:  # also if the loop ends meanwhile
            self._log.close()

    def read_log(self) -> str:
        """Return the end of the running call's output; the worker empties the log before each call."""
        size = os.fstat(self._log.fileno()).st_size
        return read_at(self._log.fileno(), 8000, max(0, size - 8000)).decode(errors="replace")


class WorkerPool:
    """Pool of at most ``size`` workers. Use as an async context manager; on exit all processes are removed."""

    def __init__(self, size: int, memory_mb: int, threads: int = 1) -> None:
        self.size = size
        self.memory_mb = memory_mb
        self.threads = threads
        self._free = asyncio.Semaphore(size)
        self._idle: list[ToolWorker] = []
        self._busy: set[ToolWorker] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self.closed = False
        self.calls = 0
        """Number of calls sent to workers so far."""

    async def __aenter__(self) -> "WorkerPool":
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.closed = True
        for worker in [*self._idle, *self._busy]:
            self.discard(worker)
        await asyncio.gather(*self._endings)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the live workers."""
        return tuple(worker.pid for worker in [*self._idle, *self._busy])

    @asynccontextmanager
    async def worker_for(self, target: str, *, fresh: bool = False) -> AsyncIterator[ToolWorker]:
        """Wait for a worker that no other call uses, preferably one that has ``target`` loaded; with ``fresh`` a new
        process. It returns to the pool unless it was discarded or the block was left by an exception."""
        async with self._free:
            if self.closed:
                raise InfrastructureError("the tool executor is closed")
            worker = (None if fresh else self._take(target)) or await self._start()
            self._busy.add(worker)
            try:
                yield worker
            except BaseException:
                self.discard(worker)
                raise
            if worker.spent or not worker.alive or self.closed:
                self.discard(worker)
            elif worker in self._busy:
                self._busy.discard(worker)
                self._idle.append(worker)

    def discard(self, worker: ToolWorker) -> None:
        """Kill a worker."""
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

    def _take(self, target: str) -> ToolWorker | None:
        for worker in [worker for worker in self._idle if not worker.alive]:
            self.discard(worker)
        if not self._idle:
            return None
        worker = next(
            (worker for worker in reversed(self._idle) if target in worker.loaded), self._idle[-1]
        )
        self._idle.remove(worker)
        return worker

    async def _start(self) -> ToolWorker:
        while self._idle and len(self._idle) + len(self._busy) >= self.size:
            self.discard(self._idle[0])
        worker = await ToolWorker.start(self.memory_mb, self.threads)
        if self.closed:
            await worker.end()
            raise InfrastructureError("the tool executor was closed while a call was running")
        return worker
