"""Pool of warm workers, which are started in advance, used for one job each, and replaced in the background; and the
result of a job."""

import atexit
import base64
import json
import os
import queue
import select
import signal
import subprocess
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from agrotools.core import InfrastructureError, UsageError
from agrotools.sandbox import WORKERS_VARIABLE, runners
from agrotools.sandbox.result import (
    START_TIMEOUT_S,
    BadPicture,
    Exchange,
    JobOutcome,
    Limits,
    SandboxArtifact,
    SandboxResult,
    SandboxTermination,
    check_picture,
    drain,
    frame,
)
from agrotools.sandbox.runners import WARM

FROM_OUTSIDE = "the worker was killed from outside"
_LONGEST_MESSAGE = 700
_SIGNALS = {-6: "aborted", -7: "bus error", -11: "segmentation fault", -31: "bad system call"}
_CPU, _KILLED = -24, -9
_OUT_OF_MEMORY = (b"bad_alloc", b"Cannot allocate memory", b"MemoryError", b"Memory allocation")
_READY = frame(b"R")
_EXIT_TIMEOUT_S = 1.0
_KILL_TIMEOUT_S = 10.0
_FINAL_OUTPUT_S = 0.2
_SIGNALLED = 128
"""Offset that bubblewrap, like a shell, adds to the number of a signal in its exit status."""


class SandboxWorker:
    """Worker process that is starting or ready. Create it in a long-lived thread, because it ends with that thread."""

    def __init__(
        self, runner: str, warm: tuple[str, ...] = WARM, folder: str | None = None
    ) -> None:
        """Start the worker. Raises OSError if that fails."""
        self.runner = runner
        self._ready = False
        self._inner = -1
        self._result, result_out = os.pipe()
        filter_in, filter_out = os.pipe()
        try:
            start = runners.start(runner, result_out, filter_in, warm=warm, folder=folder)
            os.write(filter_out, start.filter)  # a pipe buffer is larger than any filter
            os.close(filter_out)
            filter_out = -1
            self._process = subprocess.Popen(
                start.argv,
                env=dict(start.environment),
                cwd=start.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(result_out, filter_in) if start.filter else (result_out,),
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._result)
            raise
        finally:
            for fd in (result_out, filter_in, filter_out):
                if fd >= 0:
                    os.close(fd)
        self._code_filter = start.code_filter
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (stream.fileno() for stream in streams if stream)
        self.pid = self._process.pid

    def wait_ready(self) -> bool:
        """Wait until the worker is ready; False if it does not report that in time."""
        poll = select.poll()
        poll.register(self._result, select.POLLIN)
        until = time.monotonic() + START_TIMEOUT_S
        received = b""
        while not self._ready:
            if not poll.poll(max(0.0, 1000 * (until - time.monotonic()))):
                return False
            part = os.read(self._result, len(_READY) - len(received))
            received += part
            if not part or not _READY.startswith(received):
                return False
            self._ready = received == _READY
        if self.runner == "bubblewrap" and self._inner < 0 and (inner := _children(self.pid)):
            with suppress(OSError):  # a system without pidfd
                self._inner = os.pidfd_open(inner[0])
        return True

    def run(self, code: str, call: str | None, limits: Limits) -> JobOutcome:
        """Run a job, at most one per worker. Call :meth:`end` afterwards."""
        program = base64.b64encode(self._code_filter).decode()
        job = json.dumps({"code": code, "call": call, "limits": asdict(limits), "filter": program})
        exchange = Exchange(self._stdin, self._stdout, self._stderr, self._result, limits)
        outcome = exchange.run(frame(b"J", job.encode()))
        if outcome.cause in ("ended", "not_started"):
            outcome.status = self.end()
        return outcome

    def end(self) -> int | None:
        """Wait for the process to end, or kill it and its children. Returns its exit status, None if it was killed."""
        status = self._process.returncode
        if status is None and self._at_end():
            status = self._wait(_EXIT_TIMEOUT_S)
        if status is None:
            self.kill()
            self._wait(_KILL_TIMEOUT_S)
        self._wait_inner()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        if self._result >= 0:
            os.close(self._result)
            self._result = -1
        if status is not None and status > _SIGNALLED and self.runner == "bubblewrap":
            return _SIGNALLED - status
        return status

    def kill(self) -> None:
        """Kill the process immediately."""
        if self._process.returncode is not None:
            return
        with suppress(OSError):
            if self.runner == "bubblewrap" and self._kill_inner():
                return
            if self.runner == runners.NONE:
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    def _kill_inner(self) -> bool:
        """Kill the process inside bubblewrap. Returns True if the outer process has then ended.

        While both processes are still starting (a few milliseconds), killing the outer one leaves the inner one waiting
        for it forever. Therefore the inner one is killed, once it has started the worker.
        """
        until = time.monotonic() + _EXIT_TIMEOUT_S
        while self._wait(0) is None and time.monotonic() < until:
            inner = _children(self.pid)
            if inner and _children(inner[0]):
                os.kill(inner[0], signal.SIGKILL)
                return self._wait(_FINAL_OUTPUT_S) is not None
            time.sleep(0.0005)
        return self._process.returncode is not None

    def _wait_inner(self) -> None:
        """Wait for the process inside bubblewrap to end.

        The outer one may end first; the inner one would then be seen as a process that the code left behind.
        """
        if self._inner >= 0:
            poll = select.poll()
            poll.register(self._inner, select.POLLIN)
            poll.poll(1000 * _KILL_TIMEOUT_S)
            os.close(self._inner)
            self._inner = -1

    def read_stderr(self) -> str:
        """Return the standard error so far of a worker that did not become ready."""
        return drain(self._stderr, 8000).decode(errors="replace")

    def _at_end(self) -> bool:
        if self._result < 0:
            return True
        poll = select.poll()
        poll.register(self._result, 0)
        return bool(poll.poll(0))

    def _wait(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None


def _children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except (OSError, ValueError):
        return []


class Pool:
    """Workers of one runner; none is started until the first is taken.

    One thread starts all of them, because each ends with the thread that started it.
    """

    def __init__(self, runner: str, size: int) -> None:
        self.runner = runner
        self._orders: queue.SimpleQueue[
            tuple[Future[SandboxWorker], tuple[str, ...], str | None] | None
        ] = queue.SimpleQueue()
        self._prepared: queue.SimpleQueue[Future[SandboxWorker]] = queue.SimpleQueue()
        self._alive: set[SandboxWorker] = set()
        self._starting = threading.Lock()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(
            target=self._start_workers, name=f"starts sandboxes ({runner})", daemon=True
        )
        self._thread.start()
        self._size = size
        self._filled = False

    def take(self) -> SandboxWorker:
        """Return the next prepared worker. Release it with :meth:`discard`.

        Raises:
            InfrastructureError: the worker cannot be started.
        """
        with self._lock:
            first = not self._filled
            self._filled = True
        for _ in range(self._size if first else 0):
            self.refill()
        future = self._prepared.get()
        if self._closed:
            self._prepared.put(_closed_future())  # for the next waiting caller
        return self._result(future)

    def start(self, warm: tuple[str, ...] = WARM, folder: str | None = None) -> SandboxWorker:
        """Start a worker outside the pool; errors as in :meth:`take`."""
        return self._result(self._order(warm, folder))

    def discard(self, worker: SandboxWorker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.end()

    def refill(self) -> None:
        """Order another worker to replace one that was taken."""
        self._prepared.put(self._order(WARM, None))

    def close(self) -> None:
        """Kill all workers. None can be taken afterwards."""
        with self._lock:
            self._closed = True
            alive = list(self._alive)
            self._alive = set()
        self._orders.put(None)
        for worker in alive:
            worker.kill()
            worker.end()
        self._prepared.put(_closed_future())

    def _order(self, warm: tuple[str, ...], folder: str | None) -> "Future[SandboxWorker]":
        future: Future[SandboxWorker] = Future()
        with self._lock:
            if self._closed:
                return _closed_future()
            self._orders.put((future, warm, folder))
        return future

    def _result(self, future: "Future[SandboxWorker]") -> SandboxWorker:
        try:
            return future.result()
        except OSError as error:
            raise InfrastructureError(
                f"a sandbox worker ({self.runner}) does not start: {error}"
            ) from error

    def _start_workers(self) -> None:
        while (order := self._orders.get()) is not None:
            future, warm, folder = order
            with self._starting:
                try:
                    worker = SandboxWorker(self.runner, warm, folder)
                except BaseException as error:
                    future.set_exception(error)
                    continue
                with self._lock:
                    self._alive.add(worker)
                    closed = self._closed
            if closed:
                self.discard(worker)
                future.set_exception(InfrastructureError("the sandboxes were closed"))
            else:
                future.set_result(worker)


def _closed_future() -> "Future[SandboxWorker]":
    future: Future[SandboxWorker] = Future()
    future.set_exception(InfrastructureError("the sandboxes were closed"))
    return future


_pools: dict[str, Pool] = {}
_pools_lock = threading.Lock()


def pool_of(runner: str) -> Pool:
    """Return the pool of this process for ``runner``; created on first use, closed when the process ends.

    Raises:
        UsageError: the environment variable for the number of workers is invalid.
    """
    with _pools_lock:
        if runner not in _pools:
            _pools[runner] = Pool(runner, pool_size())
        return _pools[runner]


def pool_size() -> int:
    """Return the number of workers: ``AGROTOOLS_SANDBOX_WORKERS``, or the number of cores available to this process."""
    text = os.environ.get(WORKERS_VARIABLE, "").strip()
    if not text:
        cores = (
            os.sched_getaffinity(0)
            if hasattr(os, "sched_getaffinity")
            else range(os.cpu_count() or 1)
        )
        return max(1, len(cores))
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise UsageError(
            f"{WORKERS_VARIABLE} is {text!r}",
            hint="give a whole number from 1 to 1024, or leave it out",
        )
    return int(text)


@atexit.register
def close_pools() -> None:
    """Kill all workers of this process."""
    with _pools_lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()


def _forget_pools() -> None:
    """Drop the pools in a forked process, because their workers belong to the parent process."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def run_in(worker: SandboxWorker, code: str, call: str | None, limits: Limits) -> SandboxResult:
    """Run code in a started worker, which the caller has to end."""
    if not worker.wait_ready():
        log = worker.read_stderr()
        return _infrastructure(
            worker, f"the worker did not get ready: {_last_line(log) or 'no reply'}", log
        )
    return _result_of(worker, worker.run(code, call, limits), limits)


def _result_of(worker: SandboxWorker, outcome: JobOutcome, limits: Limits) -> SandboxResult:
    """Convert the outcome of a job to a result. Data from the code are trusted only as the result of that code."""
    stdout, stderr = (
        _text(part.decode(errors="replace")) for part in (outcome.stdout, outcome.stderr)
    )
    if outcome.cause == "not_started":
        return _infrastructure(
            worker, f"the worker was lost: {_last_line(stderr) or 'no reply'}", stderr
        )
    termination, message = _termination_of(outcome, limits)
    if termination == "infrastructure":
        return _infrastructure(worker, message, stderr)
    artifacts: list[SandboxArtifact] = []
    try:
        for name, content in (*outcome.figures, *outcome.saved):
            artifact = check_picture(name, content, limits)
            if all(artifact.content != other.content for other in artifacts):
                artifacts.append(artifact)
    except BadPicture as error:
        if termination == "ok":
            termination = "artifact_cap"
            message = str(error)
    value = outcome.reply.get("value") if termination == "ok" else None
    exit_note = f"exit status {outcome.status}" if outcome.cause == "ended" else ""
    log = [exit_note, str(outcome.reply.get("log") or ""), stderr]
    return SandboxResult(
        _text(value) if isinstance(value, str) else None,
        stdout,
        tuple(artifacts),
        termination,
        one_line(message),
        outcome.seconds,
        worker.runner,
        log=""
        if termination == "ok" and not stderr
        else _text("\n".join(part for part in log if part))[-40_000:],
    )


def _termination_of(outcome: JobOutcome, limits: Limits) -> tuple[SandboxTermination, str]:
    said = outcome.reply.get("message")
    message = said if isinstance(said, str) else "it does not say why"
    match outcome.cause, outcome.reply.get("status"):
        case "wall_timeout", _:
            return (
                "wall_timeout",
                f"the code ran for more than {limits.wall_s:g} s and was stopped: make it quicker",
            )
        case "output_cap", _:
            return (
                "output_cap",
                f"the code printed more than {limits.output_bytes:,} bytes and was stopped: print less",
            )
        case "artifact_cap", _:
            limit = f"{limits.artifacts} pictures of {limits.artifact_bytes:,} bytes"
            return "artifact_cap", f"the code made more, or larger, pictures than allowed ({limit})"
        case "malformed", _:
            return "error", "the code wrote to a channel that is not its own"
        case "ended" | "not_started", _:
            return _termination_of_status(outcome, limits)
        case _, "ok":
            return "ok", ""
        case _, "memory":
            return (
                "memory",
                f"the code needs more than the {limits.memory_mb} MB of memory that it may use: {message}",
            )
        case _, "denied":
            limit = (
                "the code may not reach the network or other files, nor start processes or threads"
            )
            return "denied", f"{message}: not allowed here; {limit}"
        case _, "output_cap" | "artifact_cap" as status:
            return status, message
        case _:
            return "error", message


def _termination_of_status(outcome: JobOutcome, limits: Limits) -> tuple[SandboxTermination, str]:
    status = outcome.status
    if status == _CPU or (status == _KILLED and outcome.seconds >= limits.cpu_s):
        message = f"the code used more than {limits.cpu_s} s of processor time and was stopped: make it quicker"
        return "cpu_limit", message
    if any(words in outcome.stderr for words in _OUT_OF_MEMORY):
        return (
            "memory",
            f"the code needs more than the {limits.memory_mb} MB of memory that it may use",
        )
    if status == _KILLED:
        return "infrastructure", FROM_OUTSIDE
    if status in _SIGNALS:
        return "error", f"the code crashed the interpreter ({_SIGNALS[status]})"
    return (
        "error",
        f"the code ended the interpreter (exit status {'unknown' if status is None else status})",
    )


def _infrastructure(worker: SandboxWorker, message: str, log: str) -> SandboxResult:
    return SandboxResult(
        None, "", (), "infrastructure", one_line(message), 0.0, worker.runner, log=log
    )


def one_line(message: str) -> str:
    return _text(" ".join(message.split()))[:_LONGEST_MESSAGE]


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _text(value: str) -> str:
    """Replace lone surrogates in a text, because files cannot contain them."""
    return value.encode("utf-8", "replace").decode()
