"""Parent side of worker processes (start, calls, end, clean-up) and the pool of workers.

The pool is deliberately separate from that of the sandbox, whose workers run hostile code, serve one job each and have
a size limit for each kind of frame. The workers here are reused.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from agrotools.core import InfrastructureError
from agrotools.core.files import cache_dir, hub_cache
from agrotools.core.processes import kill_descendants
from agrotools.tools.result import (
    HEADER,
    LARGEST_CONTENT,
    LARGEST_MESSAGE,
    BrokenFrame,
    Reply,
    pack_frame,
    unpack_frame,
)

START_TIMEOUT_S = 120.0
"""Time limit for starting a worker and importing a tool's libraries, which takes long on a busy machine."""
_TOKEN = "AGROTOOLS_WORKER"
"""Environment variable that identifies the processes started by a tool, even if they leave its session."""
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
_DRAIN_S = 0.05
"""Time to read the pipe after a worker has ended, because it may still contain its last output."""
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
    # some installations of Python do not start without the first two; GPUs that are others' stay out of use
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", RUNNER_VARIABLE, "CUDA_VISIBLE_DEVICES"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


class _Channel(asyncio.SubprocessProtocol):
    """Output of a worker, and the end of its process."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport: asyncio.SubprocessTransport | None = None
        self.exited: asyncio.Future[int] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.at_end = False
        """True if the worker's output is closed, usually because it is ending."""
        self.unread = 0
        """Bytes that arrived and are no part of a reply yet."""
        self._output = asyncio.StreamReader()
        self._is_closed = False

    async def receive(self) -> Reply:
        """Return the next frame; BrokenFrame if it is invalid or cannot arrive any more."""
        try:
            head, total = HEADER.unpack(await self._output.readexactly(HEADER.size))
            if head > LARGEST_MESSAGE or total > LARGEST_CONTENT:
                raise BrokenFrame("the frame is too large")
            message, contents = await self._output.readexactly(head), await self._output.readexactly(total)
        except asyncio.IncompleteReadError as error:
            raise BrokenFrame("it closed its output") from error
        self.unread -= HEADER.size + head + total
        return unpack_frame(message, contents)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:  # noqa: ARG002
        assert isinstance(data, bytes)
        if not self._is_closed:
            self.unread += len(data)
            self._output.feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 1:
            self._close_output()

    def process_exited(self) -> None:
        assert self.transport is not None
        status = self.transport.get_returncode()
        if not self.exited.done():
            self.exited.set_result(-1 if status is None else status)
        self.at_end = True
        # A process started by the worker may hold its output open, so that the pipe would never be closed.
        asyncio.get_running_loop().call_later(_DRAIN_S, self._close_output)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.closed.done():
            self.closed.set_result(None)

    def _close_output(self) -> None:
        self.at_end = self._is_closed = True
        self._output.feed_eof()


class Worker:
    """One worker process and the tools it has already loaded."""

    def __init__(self, transport: asyncio.SubprocessTransport, channel: _Channel, log: IO[bytes], token: str) -> None:
        self._transport = transport
        self._channel = channel
        self._log = log
        self._token = token
        self.pid: int = transport.get_pid()
        self.loaded: set[str] = set()
        self.calls = 0
        self.spent = False
        """True if the last call left something behind that could affect the next one."""
        self.given_up = False
        self._is_busy = False

    @classmethod
    async def start(cls, memory_mb: int, threads: int = 1) -> "Worker":
        """Start a worker and wait until it is ready; InfrastructureError if it does not become ready."""
        token = f"{os.getpid()}-{uuid4().hex}"
        try:
            log = _anonymous_file()
            try:
                transport, channel = await asyncio.get_running_loop().subprocess_exec(
                    _Channel,
                    sys.executable,
                    *("-s", "-P", "-m", "agrotools.tools.worker", str(memory_mb), str(os.getpid())),
                    stderr=log,
                    env={**worker_environment(threads), _TOKEN: token},
                    cwd=os.sep,
                    start_new_session=True,
                )
            except BaseException:
                log.close()
                raise
        except OSError as error:
            raise InfrastructureError(f"a tool worker does not start: {error}") from error
        worker = cls(transport, channel, log, token)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await channel.receive()
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
        return not self._channel.at_end and not self._channel.unread

    async def ask(self, message: dict[str, Any], limit_s: float) -> Reply:
        """Return the reply to a message. TimeoutError: none within ``limit_s`` seconds; BrokenFrame: the worker
        died, wrote an invalid frame, or wrote one without being asked."""
        if self._channel.unread:
            raise BrokenFrame("it sent an unexpected frame")
        self._is_busy = True
        stdin = self._transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(pack_frame(message))
        async with asyncio.timeout(limit_s):
            reply = await self._channel.receive()
        self._is_busy = False
        return reply

    def kill(self) -> None:
        """Kill the worker and its process group immediately."""
        if not self._channel.exited.done():
            with suppress(ProcessLookupError, PermissionError):  # macOS forbids it for one that has just ended
                os.killpg(self.pid, signal.SIGKILL)

    async def exit_status(self) -> int | None:
        """Return the exit status of a worker that ended, or None if its channel broke and it had to be killed."""
        if self._channel.at_end:
            await asyncio.wait([self._channel.exited], timeout=_TIME_TO_END_S)
        if not self._channel.exited.done():
            self.kill()
            return None
        return self._channel.exited.result()

    async def end(self) -> None:
        """Kill the worker and remove all its processes, pipes and files."""
        clean = self.alive and not self.spent and not self._is_busy
        self.kill()
        try:
            await self._channel.exited
            if not clean:
                kill_descendants(self._token, self.pid)
            self._transport.close()
            await self._channel.closed
        finally:  # also if the loop ends meanwhile
            self._log.close()

    def read_log(self) -> str:
        """Return the end of the running call's output; the worker empties the log before each call."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 8000, max(0, size - 8000)).decode(errors="replace")


def _anonymous_file() -> IO[bytes]:
    """Return an unnamed temporary file, in memory if the system supports it."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("agrotools-worker-log"), "rb+", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


CALLS_PER_WORKER = 20_000
"""Number of calls after which a worker is replaced. A worker that has grown too large asks to be replaced sooner."""


class WorkerPool:
    """Pool of at most ``size`` workers. Use as an async context manager; on exit all processes are removed."""

    def __init__(self, size: int, memory_mb: int, threads: int = 1) -> None:
        self.size = size
        self.memory_mb = memory_mb
        self.threads = threads
        self._free = asyncio.Semaphore(size)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
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
    async def worker_for(self, target: str, *, fresh: bool = False) -> AsyncIterator[Worker]:
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
            if worker.spent or worker.calls >= CALLS_PER_WORKER or not worker.alive or self.closed:
                self.discard(worker)
            elif worker in self._busy:
                self._busy.discard(worker)
                self._idle.append(worker)

    def discard(self, worker: Worker) -> None:
        """Kill a worker and remove everything it left behind."""
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
        worker = await Worker.start(self.memory_mb, self.threads)
        if self.closed:
            await worker.end()
            raise InfrastructureError("the tool executor was closed while a call was running")
        return worker
