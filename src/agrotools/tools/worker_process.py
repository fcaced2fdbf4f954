"""Parent side of worker processes (start, calls, end, clean-up) and the pool of workers.

The pool is deliberately separate from that of the sandbox, whose workers run hostile code, serve one job each and have
a size limit for each kind of frame. The workers here are reused, and their calls are pipelined on the event loop.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from agrotools.core import InfrastructureError
from agrotools.core.files import cache_dir, hub_cache
from agrotools.core.processes import kill_descendants
from agrotools.tools.result import BrokenFrame, FrameReader, Reply, pack_frame

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


class CallNotStarted(Exception):
    """Error for a call whose worker ended or was discarded while still running an earlier call."""


class _ReplyChannel(asyncio.SubprocessProtocol):
    """Reply channel of a worker: one frame for each call, in order, and the end of the process."""

    def __init__(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.transport: asyncio.SubprocessTransport | None = None
        self.exited: asyncio.Future[int] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.broken: BrokenFrame | None = None
        self.at_end = False
        """True if the worker's output is closed, usually because it is ending."""
        self._frames = FrameReader()
        self._asked: deque[tuple[asyncio.Future[Reply], float]] = deque()
        """Pending replies and the time limit of each. The worker is running the first call."""
        self._since = 0.0
        """Time at which the worker began the first pending call."""
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def expected(self) -> int:
        """Number of pending replies."""
        return len(self._asked)

    def expect(self, limit_s: float) -> "asyncio.Future[Reply]":
        """Return a future for the next frame, due ``limit_s`` after the previous frame, or from now if none is pending.

        The future raises TimeoutError if the frame is late, BrokenFrame if it cannot arrive any more, and
        CallNotStarted if the channel breaks during an earlier call.
        """
        if self.broken:
            raise self.broken
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._asked.append((reply, limit_s))
        if len(self._asked) == 1:
            self._turn_to_first()
        return reply

    def _turn_to_first(self) -> None:
        self._since = self._loop.time()
        at = self._since + self._asked[0][1]
        # An alarm that fires too early checks and rearms itself: one per call would cost more than most calls take.
        if self._alarm is None or self._alarm.when() > at:
            self._ring_at(at)

    def _ring_at(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(at, self._check_deadline)

    def _check_deadline(self) -> None:
        self._alarm = None
        if not self._asked:
            return
        reply, limit_s = self._asked[0]
        at = self._since + limit_s
        if self._loop.time() < at:
            self._ring_at(at)
        elif not reply.done():
            reply.set_exception(TimeoutError())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:  # noqa: ARG002
        assert isinstance(data, bytes)
        if self.broken:
            return
        try:
            while (reply := self._frames.feed(data)) is not None and self._asked:
                asked, _ = self._asked.popleft()
                if not asked.done():
                    asked.set_result(reply)
                if self._asked:
                    self._turn_to_first()
                data = b""
        except BrokenFrame as error:
            self._break(error)
            return
        if not self._asked and (reply is not None or not self._frames.empty):
            self._break(BrokenFrame("it sent an unexpected frame"))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.at_end = True
            self._break(BrokenFrame(str(exc) if exc else "it closed its output"))

    def process_exited(self) -> None:
        assert self.transport is not None
        status = self.transport.get_returncode()
        if not self.exited.done():
            self.exited.set_result(-1 if status is None else status)
        self.at_end = True
        # A process started by the worker may hold its output open, so that the pipe would never be closed.
        asyncio.get_running_loop().call_later(_DRAIN_S, self._break, BrokenFrame("it ended"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.closed.done():
            self.closed.set_result(None)

    def _break(self, error: BrokenFrame) -> None:
        if self.broken:
            return
        self.broken = error
        if self._alarm is not None:
            self._alarm.cancel()
        for number, (asked, _) in enumerate(self._asked):
            if not asked.done():
                asked.set_exception(CallNotStarted() if number else error)
        self._asked.clear()


class Worker:
    """One worker process and the tools it has already loaded."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, channel: _ReplyChannel, log: IO[bytes], token: str
    ) -> None:
        self._transport = transport
        self._channel = channel
        self._log = log
        self._token = token
        self.pid: int = transport.get_pid()
        self.loaded: set[str] = set()
        self.calls = 0
        self.quick = False
        """True if all pending calls are known to be quick."""
        self.spent = False
        """True if the last call left something behind that could affect the next one."""
        self.given_up = False
        self._unsent: list[bytes] = []

    @classmethod
    async def start(cls, memory_mb: int, threads: int = 1) -> "Worker":
        """Start a worker and wait until it is ready; InfrastructureError if it does not become ready."""
        token = f"{os.getpid()}-{uuid4().hex}"
        try:
            log = _anonymous_file()
        except OSError as error:
            raise InfrastructureError(f"a tool worker does not start: no temporary file, {error}") from error
        try:
            transport, channel = await asyncio.get_running_loop().subprocess_exec(
                _ReplyChannel,
                sys.executable,
                *("-s", "-P", "-m", "agrotools.tools.worker", str(memory_mb), str(os.getpid())),
                stderr=log,
                env={**worker_environment(threads), _TOKEN: token},
                cwd=os.sep,
                start_new_session=True,
            )
        except OSError as error:
            log.close()
            raise InfrastructureError(f"a tool worker does not start: {error}") from error
        except BaseException:
            log.close()
            raise
        worker = cls(transport, channel, log, token)
        try:
            await channel.expect(START_TIMEOUT_S)
        except (BrokenFrame, TimeoutError) as error:
            why = worker.read_log().strip().splitlines()
            await worker.end()
            raise InfrastructureError(
                f"a tool worker does not start: {why[-1] if why else str(error) or 'no reply'}",
                hint=f"its memory limit is {memory_mb} MB",
            ) from error
        except BaseException:
            await asyncio.shield(worker.end())
            raise
        return worker

    @property
    def alive(self) -> bool:
        """True if the worker can take another call."""
        return not self._channel.exited.done() and self._channel.broken is None

    @property
    def pending_calls(self) -> int:
        """Number of pending replies."""
        return self._channel.expected

    def ask(self, message: dict[str, Any], limit_s: float) -> "asyncio.Future[Reply]":
        """Send a message and return a future for the reply, due ``limit_s`` after the previous reply.

        Messages are answered in order. All messages of one iteration of the event loop are sent together.

        Raises:
            BrokenFrame: the worker died or wrote an invalid frame. The future can raise it too, and also TimeoutError,
                or CallNotStarted if the worker never reached this message.
        """
        reply = self._channel.expect(limit_s)
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send)
        self._unsent.append(pack_frame(message))
        return reply

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        stdin = self._transport.get_pipe_transport(0)
        if self._channel.broken is None:
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(b"".join(unsent))

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
        clean = self.alive and not self.spent and not self._channel.expected
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
_QUICK_S = 0.002
_MOST_PENDING = 32
"""Maximum number of quick calls queued on a worker, so that it does not wait for us between calls."""
_DECAY = 0.9
"""Decay of a tool's longest call time; a slow tool counts as quick again after about a hundred quick calls."""


class _WorkerUse:
    """Use of a worker for one call; as a generator, it would take as long as all else in this process for a call."""

    __slots__ = ("_fresh", "_is_shared", "_pool", "_target", "_worker")

    def __init__(self, pool: "WorkerPool", target: str, fresh: bool) -> None:
        self._pool, self._target, self._fresh = pool, target, fresh

    async def __aenter__(self) -> Worker:
        self._worker, self._is_shared = await self._pool.take(self._target, self._fresh)
        return self._worker

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._pool.discard(self._worker)
        self._pool.put_back(self._worker, self._is_shared)


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
        self._longest_s: dict[str, float] = {}
        """Recent longest call time of each tool, seconds."""
        self.closed = False
        self.started = 0
        """Number of workers started so far."""
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

    def record_duration(self, target: str, seconds: float) -> None:
        """Record the duration of a call of ``target``."""
        self._longest_s[target] = max(seconds, _DECAY * self._longest_s.get(target, 0.0))

    def worker_for(self, target: str, *, fresh: bool = False) -> "_WorkerUse":
        """Provide a worker for a call of ``target`` as an async context manager, preferably one that has it loaded.

        The worker is not shared, except between quick calls; with ``fresh`` it is a new process. It returns to the pool
        unless it was discarded or the block was left by an exception.

        Raises:
            InfrastructureError: the pool is closed, or no worker can be started.
        """
        return _WorkerUse(self, target, fresh)

    async def take(self, target: str, fresh: bool) -> tuple[Worker, bool]:
        """Return a worker for a call of ``target``, and True if other calls use it, too; :meth:`put_back` follows."""
        quick = self._longest_s.get(target, _QUICK_S) < _QUICK_S
        shared = self._shared(target) if quick and not fresh and self._free.locked() else None
        worker = shared or await self._acquire(target, fresh)
        worker.quick = quick
        return worker, shared is not None

    def put_back(self, worker: Worker, is_shared: bool) -> None:
        retires = worker.calls >= CALLS_PER_WORKER and not worker.pending_calls
        if worker.spent or retires or not worker.alive or self.closed:
            self.discard(worker)
        if not is_shared:
            if worker in self._busy:
                self._busy.discard(worker)
                self._idle.append(worker)
            self._free.release()

    async def _acquire(self, target: str, fresh: bool) -> Worker:
        """Wait for a worker that no other call uses."""
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
        """Return a worker that runs only quick calls and can take one more, or None."""
        able = (
            worker
            for worker in self._busy
            if worker.quick and target in worker.loaded and worker.pending_calls < _MOST_PENDING
            if worker.alive and not worker.spent and worker.calls < CALLS_PER_WORKER
        )
        return min(able, key=lambda worker: worker.pending_calls, default=None)

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
        self.started += 1
        worker = await Worker.start(self.memory_mb, self.threads)
        if self.closed:
            await worker.end()
            raise InfrastructureError("the tool executor was closed while a call was running")
        return worker
