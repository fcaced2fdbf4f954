"""Worker processes as their parent sees them: start, calls, end, removal of all remains; and the pool of those in use.

The pool is separate from the sandbox's on purpose: that one's workers run hostile code, serve one job each and are read
under a limit for each kind of frame; these are reused, and their calls are pipelined on the event loop.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from agrotools.core import InfrastructureError
from agrotools.core.files import cache_dir, hub_cache
from agrotools.tools.result import BrokenFrame, FrameReader, Reply, pack_frame

START_TIMEOUT_S = 120.0
"""A worker imports the tool's libraries before its first call; on a busy machine that takes a while."""
_TOKEN = "AGROTOOLS_WORKER"
"""Variable by which the processes that a tool starts are known as ours, wherever they hide."""
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
_DRAIN_S = 0.05
"""Time to read the pipe after a worker's end: its last output may still be there."""
_TIME_TO_END_S = 2.0
"""A process closes its output a little before it ends."""

_MOST_SWEEPS = 10
"""A process that is being killed may just have started another."""


def worker_environment(threads: int = 1) -> dict[str, str]:
    """All that a worker knows of this process: its import path, where caches and the user's knowledge base are.

    No keys, no PATH, no HOME. ``threads`` are those of numeric libraries.
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
        # weights of large models are read from there and from nowhere else
        "HF_HUB_CACHE": str(hub_cache()),
        "HF_HUB_OFFLINE": "1",
        **dict.fromkeys((*_THREAD_LIMITS, THREADS), str(threads)),
        "MALLOC_ARENA_MAX": "2",
        WORKERS_VARIABLE: "1",  # a tool is asked for one thing at a time
        # GDAL writes .aux.xml files beside what it reads, and reads files that lie beside it, unless told otherwise
        "GDAL_PAM_ENABLED": "NO",
        "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    }
    # the first two: without them some installations of Python do not start
    for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", RUNNER_VARIABLE):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


class CallNotStarted(Exception):
    """The worker ended, or was given up, while it was at work on what it had been asked before."""


class _ReplyChannel(asyncio.SubprocessProtocol):
    """Reply channel of a worker: one frame for each call, in order, and at last the news that it has ended."""

    def __init__(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.transport: asyncio.SubprocessTransport | None = None
        self.exited: asyncio.Future[int] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.broken: BrokenFrame | None = None
        self.at_end = False
        """True if its output is closed: as a rule because it is ending."""
        self._frames = FrameReader()
        self._asked: deque[tuple[asyncio.Future[Reply], float]] = deque()
        """Pending replies and the time limit of each. The worker is at work on the first."""
        self._since = 0.0
        """Time at which the worker began with the first."""
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def expected(self) -> int:
        """Number of pending replies."""
        return len(self._asked)

    def expect(self, limit_s: float) -> "asyncio.Future[Reply]":
        """One more frame, to come within ``limit_s`` of the one before it, or of now.

        The future raises TimeoutError where it does not, BrokenFrame where it never will, and NotBegun where either
        befalls one before it.

        Raises:
            BrokenFrame: none will come.
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
        # An alarm that rings too early looks again: one for each call would cost more than most calls take.
        if self._alarm is None or self._alarm.when() > at:
            self._ring_at(at)

    def _ring_at(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(at, self._look_at_first)

    def _look_at_first(self) -> None:
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
            self._break(BrokenFrame("it speaks unasked"))

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
        # A process that the worker started may hold its output open, so that its end would never be seen there.
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

    def __init__(self, transport: asyncio.SubprocessTransport, line: _ReplyChannel, log: IO[bytes], token: str) -> None:
        self._transport = transport
        self._line = line
        self._log = log
        self._token = token
        self.pid: int = transport.get_pid()
        self.loaded: set[str] = set()
        self.calls = 0
        self.quick = False
        """True if all its pending calls are known to be quick."""
        self.spent = False
        """True if the last call left something behind that the next one should not meet."""
        self.given_up = False
        self._unsent: list[bytes] = []

    @classmethod
    async def start(cls, memory_mb: int, threads: int = 1) -> "Worker":
        """A worker that has said that it is ready.

        Raises:
            InfrastructureError: it cannot be started, or does not get ready.
        """
        token = f"{os.getpid()}-{uuid4().hex}"
        try:
            log = _anonymous_file()
        except OSError as error:
            raise InfrastructureError(f"a tool worker does not start: no temporary file, {error}") from error
        try:
            transport, line = await asyncio.get_running_loop().subprocess_exec(
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
        worker = cls(transport, line, log, token)
        try:
            await line.expect(START_TIMEOUT_S)
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
        """True if it can take another call."""
        return not self._line.exited.done() and self._line.broken is None

    @property
    def asked(self) -> int:
        """Number of pending replies."""
        return self._line.expected

    def ask(self, message: dict[str, Any], limit_s: float) -> "asyncio.Future[Reply]":
        """Send a message; the reply, to come ``limit_s`` after the one before it at most.

        Messages are answered in order. Those of one turn of the loop are sent together.

        Raises:
            BrokenFrame: the worker died or wrote nonsense; so does the reply. It raises TimeoutError, too, and NotBegun
                where the worker never came to this message.
        """
        reply = self._line.expect(limit_s)
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send)
        self._unsent.append(pack_frame(message))
        return reply

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        stdin = self._transport.get_pipe_transport(0)
        if self._line.broken is None:
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(b"".join(unsent))

    def kill(self) -> None:
        """End the worker and whatever it started in its own group, now."""
        if not self._line.exited.done():
            with suppress(ProcessLookupError, PermissionError):  # macOS forbids it for one that has just ended
                os.killpg(self.pid, signal.SIGKILL)

    async def exit_status(self) -> int | None:
        """The exit status, once the worker has ended; None where it broke the line but lives, and had to be killed."""
        if self._line.at_end:
            await asyncio.wait([self._line.exited], timeout=_TIME_TO_END_S)
        if not self._line.exited.done():
            self.kill()
            return None
        return self._line.exited.result()

    async def end(self) -> None:
        """Kill the worker and see to it that no process, pipe or file of it is left."""
        clean = self.alive and not self.spent and not self._line.expected
        self.kill()
        await self._line.exited
        if not clean:
            _kill_descendants(self.pid, self._token)
        self._transport.close()
        await self._line.closed
        self._log.close()

    def read_log(self) -> str:
        """The end of what the running call printed: the worker empties it before each."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 8000, max(0, size - 8000)).decode(errors="replace")


def _anonymous_file() -> IO[bytes]:
    """A file that is gone with the last process that has it open; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("agrotools-worker-log"), "rb+", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _kill_descendants(worker: int, token: str) -> None:
    """Kill what a worker started: processes of its session, and those that left it but carry its token."""
    for _ in range(_MOST_SWEEPS):
        found = [pid for pid in _processes() if pid not in (worker, os.getpid()) and _is_descendant(pid, worker, token)]
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - many, and often
    except OSError:
        return []


def _is_descendant(pid: int, session: int, token: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            state, _, _, its_session = file.read().rpartition(b")")[2].split()[:4]
        if state == b"Z":
            return False
        if int(its_session) == session:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return token.encode() in file.read()
    except (OSError, ValueError):
        return False


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
