"""Tool calls on a Ray cluster (``executor = "ray"`` in a configuration file, extra ``ray``).

Only tool calls leave the process of the run, each as one Ray task. Requests to models, cost, pace, budget, records and
the cache of results stay where they are without Ray. On its node, a call runs in a worker process of its own
(:mod:`agrotools.calling.worker_process`), as without Ray: the same limits of time and memory, no keys, and the same
errors if the tool crashes.

A task may be lost with its worker or its node. Ray does not repeat it (``max_retries=0``); the executor does, a limited
number of times, and then raises an InfrastructureError, which makes the sample invalid, never incorrect.

Files go by the hash of their content. A node that has a file at the same path (a shared folder), or from an earlier
call, uses it; otherwise its content is put into the object store, once for all nodes.
"""

import asyncio
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from agrotools.calling.cache import (
    ResultCache,
    Sweeper,
    code_hash,
    library_versions,
    limit_from_environment,
)
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.result import Reply
from agrotools.calling.worker import load
from agrotools.calling.worker_process import START_TIMEOUT_S
from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.core.files import cache_dir, write_whole
from agrotools.core.lazy import import_of_extra

MOST_TRIES = 3
"""Number of times that a call is sent before its sample becomes invalid."""
_LARGE_FILES = 16 * 2**20
"""Bytes of the files of a call from which it reserves the memory that a worker may use."""
_MOST_STORED = 2 * 2**30
"""Bytes of files that are kept in the object store for nodes that may still need them."""
_QUEUE_S = 600.0
"""Seconds that a call may wait for a node, or for a CPU that other users of the cluster occupy."""
_LOOK_S = 1.0
"""Seconds between two looks at the size of the cluster."""
_PAUSE_S = 0.2
_SAME_EVERYWHERE = "install the same versions on every node; agrotools doctor prints them"
Answer = (
    tuple[Literal["reply"], Reply]
    | tuple[Literal["missing"], list[str]]
    | tuple[Literal["different"], str]
)
"""Answer of a task: the reply, the hashes of files that the node does not have, or how its installation differs."""


def import_ray() -> Any:
    """Import Ray, without its usage statistics; UsageError if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its default prints a warning
    return import_of_extra("ray", "ray", 'executor = "ray" needs Ray')


@cache
def installation(target: str, backend: str) -> dict[str, str]:
    """Return what results of a tool depend on here: versions, code, and the data files of a back-end."""
    parts = {"agrotools": version("agrotools"), **library_versions()}
    parts["code"] = code_hash(target.partition(":")[0])[:12]
    with suppress(ToolError):  # the call says so
        paths = [path for path in load(target).files_for(backend) if path.is_file()]
        parts |= {f"file {path.name}": _hashes().file_hash(path) for path in paths}
    return parts


def first_difference(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return the first difference of an installation from the expected one; empty if there is none."""
    names = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
    there, here = ((each.get(names[0], "none")[:20] if names else "") for each in (found, expected))
    return f"{names[0]} {there}, and this machine {here}" if names else ""


def run_call(
    request: dict[str, Any],
    files: Mapping[str, tuple[str, str]],
    contents: Mapping[str, Any],
    expected: Mapping[str, str],
    limits: tuple[float, int, int],
) -> Answer:
    """Task that runs one tool call on this node.

    ``files``: path on the driver and SHA-256 of each file by name; ``contents``: Ray references to contents by SHA-256,
    fetched only where a file is missing; ``expected``: installation of the driver; ``limits``: seconds, megabytes and
    threads. RuntimeError: a file changed or was removed meanwhile; the call is run again.
    """
    if different := first_difference(expected, installation(request["target"], request["backend"])):
        return "different", different
    local = {
        name: _local_file(Path(path), digest, contents) for name, (path, digest) in files.items()
    }
    if missing := [files[name][1] for name, path in local.items() if path is None]:
        return "missing", missing
    reply = _worker(limits)({**request, "paths": {name: str(path) for name, path in local.items()}})
    if lost := next((path for path in local.values() if path and not path.exists()), None):
        raise RuntimeError(f"{lost} was removed during the call")
    return "reply", reply


@cache
def _hashes() -> ResultCache:
    return ResultCache()


@cache
def _sweeper() -> Sweeper:
    return Sweeper(cache_dir("ray-files"), limit_from_environment())


def _local_file(path: Path, digest: str, contents: Mapping[str, Any]) -> Path | None:
    """Return a file with this content on this node: at the same path, else one fetched earlier or now; else None."""
    place = cache_dir("ray-files", digest[:2], digest, path.name)
    for candidate in (path, place):
        with suppress(OSError):
            if candidate.is_file() and _hashes().file_hash(candidate) == digest:
                return candidate
    if digest not in contents:
        return None
    content: bytes = import_module("ray").get(contents[digest])
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, content, synced=False)  # the hash is compared before each use
    _sweeper().record_write(len(content))
    if _hashes().file_hash(place) != digest:
        raise RuntimeError(f"{path} has changed since the call began")
    return place


@cache
def _worker(limits: tuple[float, int, int]) -> Callable[[dict[str, Any]], Reply]:
    """Start an event loop in a thread, because Ray runs tasks in the main thread, and return the function that asks a
    worker process of this Ray process. It dies with the thread, which lives as long as the process."""
    # Ray puts the folder of its own worker script on the import path, which has modules named like others.
    sys.path[:] = [
        entry for entry in sys.path if Path(entry).parts[-3:] != ("ray", "_private", "workers")
    ]
    loop, (timeout_s, memory_mb, threads) = asyncio.new_event_loop(), limits
    threading.Thread(target=loop.run_forever, daemon=True, name="agrotools tool worker").start()
    executor = ToolExecutor(1, timeout_s, memory_mb, threads=threads)
    return lambda request: asyncio.run_coroutine_threadsafe(
        executor.reply_to(request), loop
    ).result()


class RayToolExecutor(ToolExecutor):
    """Runs tool calls as tasks of a Ray cluster; otherwise like :class:`ToolExecutor`, with the same arguments.

    It connects to the cluster of ``RAY_ADDRESS``, else to the one that this machine belongs to. A call occupies one
    CPU.

    Raises:
        UsageError: Ray is not installed. At a call: see :meth:`reply_to`.
        InfrastructureError: on entering: the cluster cannot be reached.
    """

    def __init__(self, workers: int = 2, **options: Any) -> None:
        super().__init__(workers, **options)
        self._ray: Any = import_ray()
        self._task = self._ray.remote(run_call)
        self._connected = False
        self._in_flight = 0
        self._freed = asyncio.Event()
        self._nodes: list[dict[str, Any]] = []
        """Living nodes that can run calls."""
        self._looked = -_LOOK_S
        self._hashes = self.cache or ResultCache()
        self._stored: dict[str, asyncio.Task[Any]] = {}
        """References to contents in the object store, by hash."""
        self._stored_bytes = 0

    async def __aenter__(self) -> "RayToolExecutor":
        if not self._ray.is_initialized():
            self._connect()
            self._connected = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        await super().__aexit__(*exc)
        self._stored.clear()
        if self._connected:
            self._connected = False
            self._ray.shutdown()

    async def prepare(self, tools: Sequence[str]) -> None:
        """Do nothing: workers start with the first call on each node."""

    def _connect(self) -> None:
        address = os.environ.get("RAY_ADDRESS", "") or "auto"
        host, _, port = address.rpartition(":")
        try:
            if address != "auto":  # Ray itself tries for minutes, and then exits
                socket.create_connection((host, int(port)), timeout=10).close()
            self._ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (
            RuntimeError,
            ValueError,
            OSError,
            OverflowError,
        ) as error:  # also other versions of Ray or Python
            why = " ".join(str(error).split())[:300]
            raise InfrastructureError(
                f"there is no Ray cluster at {address} that can be used: {why}",
                hint="RAY_ADDRESS is HOST:PORT of ray start --head; check that ray status works",
            ) from error

    async def reply_to(self, request: dict[str, Any]) -> Reply:
        """Return the reply of a worker on the cluster; see :meth:`ToolExecutor.reply_to`. UsageError: the node has
        other versions, code or data files; InfrastructureError: the call was lost :data:`MOST_TRIES` times, or there
        are no nodes."""
        paths = {name: Path(path) for name, path in request["paths"].items()}
        try:
            files = {
                name: (str(path), await asyncio.to_thread(self._hashes.file_hash, path))
                for name, path in paths.items()
            }
        except OSError as error:
            raise InfrastructureError(f"a file of a call cannot be read: {error}") from error
        expected = await asyncio.to_thread(installation, request["target"], request["backend"])
        self._pool.calls += 1
        last = ""
        for number in range(MOST_TRIES):
            if number:
                self.calls_sent_again += 1
                await asyncio.sleep(_PAUSE_S * number)
            try:
                async with self._remote(paths) as remote:
                    return await self._send(remote, request, files, expected)
            except self._ray.exceptions.RayError as error:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
                if (
                    isinstance(error, self._ray.exceptions.RayTaskError)
                    and "No module named" in lines[-1]
                ):
                    why = f"a Ray node cannot run agrotools: {lines[-1]}"
                    raise UsageError(why, hint=_SAME_EVERYWHERE) from error
                last = f"{type(error).__name__}: {lines[0]} {lines[-1]}"
            except TimeoutError:
                last = "no reply in time"
        raise InfrastructureError(
            f"a call of {request['target'].partition(':')[2]} was lost on the Ray cluster {MOST_TRIES} times: {last}",
            hint="the same command runs the sample again",
        )

    @asynccontextmanager
    async def _remote(self, paths: Mapping[str, Path]) -> AsyncIterator[Callable[..., Any]]:
        """Wait for a CPU of the cluster as it is now, and provide the function that sends a call there."""
        began = time.monotonic()
        while self._in_flight >= (cpus := await self._count_cpus()):
            if not cpus and time.monotonic() - began > _QUEUE_S:
                raise InfrastructureError(
                    "the Ray cluster has no nodes left", hint="ray status shows them"
                )
            self._freed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _LOOK_S)
        self._in_flight += 1
        try:
            options: dict[str, Any] = {"num_cpus": 1, "max_retries": 0}
            if sum(path.stat().st_size for path in paths.values()) >= _LARGE_FILES:
                largest = max(
                    (int(node["Resources"].get("memory", 0)) for node in self._nodes), default=0
                )
                options["memory"] = min(self.memory_mb * 2**20, largest)
            yield self._task.options(**options).remote
        finally:
            self._in_flight -= 1
            self._freed.set()

    async def _send(
        self,
        remote: Callable[..., Any],
        request: dict[str, Any],
        files: Mapping[str, tuple[str, str]],
        expected: Mapping[str, str],
    ) -> Reply:
        """Send a call once, and again with the contents of files that its node does not have."""
        limits = (self.timeout_s, self.memory_mb, self.threads)
        # a worker may be tried twice, and a new one has to start and load the tool
        limit_s = _QUEUE_S + 2 * (START_TIMEOUT_S + self.timeout_s)
        contents = dict[str, Any]()
        while True:
            reference = remote(request, files, contents, expected, limits)
            try:
                answer: Answer = await asyncio.wait_for(
                    asyncio.wrap_future(reference.future()), limit_s
                )
            except (TimeoutError, asyncio.CancelledError):
                with suppress(Exception):
                    self._ray.cancel(reference, force=True)
                raise
            if answer[0] == "reply":
                return answer[1]
            if answer[0] == "different":
                raise UsageError(f"a Ray node has {answer[1]}", hint=_SAME_EVERYWHERE)
            for path, digest in files.values():
                if digest in answer[1]:
                    contents[digest] = await self._store(Path(path), digest)

    async def _store(self, path: Path, digest: str) -> Any:
        """Return the reference to the content of a file, which is put into the object store once."""
        if self._stored_bytes > _MOST_STORED:
            self._stored.clear()
            self._stored_bytes = 0
        task = self._stored.get(digest)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._stored[digest] = asyncio.create_task(asyncio.to_thread(self._put, path))
        return await asyncio.shield(task)

    def _put(self, path: Path) -> Any:
        content = path.read_bytes()
        self._stored_bytes += len(content)
        return self._ray.put(content)

    async def _count_cpus(self) -> int:
        """Return the CPUs that the cluster has, looked up once a second."""
        if time.monotonic() - self._looked > _LOOK_S:
            self._looked = time.monotonic()
            every = await asyncio.to_thread(self._ray.nodes)
            self._nodes = [
                node for node in every if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
            ]
        return sum(int(node["Resources"].get("CPU", 0)) for node in self._nodes)
