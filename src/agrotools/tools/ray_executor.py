"""Tool calls on a Ray cluster (``agrotools eval --executor ray``, extra ``ray``).

Only tool calls leave the process of the run, each as one Ray task; on a cluster with GPUs, a call with a ``learned``
back-end goes to an actor (:mod:`agrotools.tools.ray_actors`). Requests to models, cost, pace, budget, records and the
cache of results stay where they are without Ray. A task carries no environment variables and no keys, and the tool runs
in a worker process that has none.

A task may be lost with its worker or its node. Ray does not repeat it (``max_retries=0``); the executor does, a limited
number of times, and then raises an InfrastructureError, which makes the sample invalid, never incorrect.

Files go by the hash of their content. A node that has a file at the same path (a shared folder), or from an earlier
call, uses it; otherwise its content is put into the object store, once for all nodes.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.core.base import count_text, import_of_extra
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.ray_actors import GpuActors
from agrotools.tools.ray_node import Answer, check_installation, installation, run_call
from agrotools.tools.result import Reply
from agrotools.tools.worker import load
from agrotools.tools.worker_process import START_TIMEOUT_S
from agrotools.vision.learned import LEARNED

MOST_TRIES = 3
"""Number of times that a call is sent before its sample becomes invalid."""
_LARGE_FILES = 16 * 2**20
"""Bytes of the files of a call from which it reserves the memory that a worker may use."""
_MOST_STORED = 2 * 2**30
"""Bytes of files that are kept in the object store for nodes that may still need them."""
_QUEUE_S = 600.0
"""Seconds that a task may wait for a node that other users of the cluster occupy."""
_WAIT_FOR_NODES_S = 120.0
_PAUSE_S = 0.2
_CONNECT_S = 10.0
_LOOK_S = 1.0
"""Seconds between two looks at the size of the cluster."""
_NEW = "local"
"""Address at which Ray starts a cluster on this machine."""
_SAME_EVERYWHERE = "install the same versions on every node; agrotools doctor prints them"


def import_ray() -> Any:
    """Import Ray, without its usage statistics; UsageError if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its default prints a warning
    return import_of_extra("ray", "ray", "--executor ray needs Ray")


class RayToolExecutor(ToolExecutor):
    """Runs tool calls as tasks of a Ray cluster; otherwise like :class:`ToolExecutor`, with the same arguments.

    It connects to the cluster of ``RAY_ADDRESS``, else to the one that this machine belongs to, else it starts one on
    this machine with ``workers`` CPUs. A call occupies one CPU.

    Raises:
        UsageError: Ray is not installed. On entering: a node has other versions than this machine.
        InfrastructureError: on entering: the cluster cannot be reached. At a call: see :meth:`reply_to`.
    """

    def __init__(self, workers: int = 2, **options: Any) -> None:
        super().__init__(workers, **options)
        self._ray: Any = import_ray()
        self._task = self._ray.remote(run_call)
        self._workers = workers
        self._connected = False
        self._in_flight = 0
        self._freed = asyncio.Event()
        self._cpus, self._gpus, self._largest_memory, self._looked = 0, 0, 0, -_LOOK_S
        self._actors = GpuActors(self._ray, self._count_gpus)
        self._hashes = self.cache or ResultCache()
        self._stored: dict[str, tuple[asyncio.Task[Any], int]] = {}
        """References to contents in the object store and their sizes, by hash, least recently used first."""

    async def __aenter__(self) -> "RayToolExecutor":
        if not self._ray.is_initialized():
            self._connect()
            self._connected = True
        try:
            await self._check_nodes()
            await self._look()
        except BaseException:
            self._disconnect()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._disconnect()

    @property
    def place(self) -> str:
        """Sentence on the cluster that calls run on, with its size as it is now."""
        nodes = self._nodes()
        counts = {"node": len(nodes), "CPU": int(sum(map(_cpus, nodes))), "GPU": _gpus_of(nodes)}
        *first, last = [count_text(count, name) for name, count in counts.items() if count or name != "GPU"]
        return f"tool calls run on a Ray cluster of {', '.join(first)} and {last}"

    async def prepare(self, tools: Sequence[str]) -> None:
        """Do nothing: workers start with the first call on each node."""

    def _connect(self) -> None:
        address = os.environ.get("RAY_ADDRESS", "")
        if address.startswith("ray://"):
            raise UsageError(
                "RAY_ADDRESS names a Ray Client server", hint="run agrotools on a node of the cluster, with HOST:PORT"
            )
        if address not in ("", "auto", _NEW):
            _check_address(address)
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            try:
                if address != _NEW:
                    self._ray.init(address=address or "auto", **quiet)
            except ConnectionError:
                if address:
                    raise
            if not self._ray.is_initialized():
                # Ray counts the CPUs of the host, not those of a container, so it is told.
                self._ray.init(address=_NEW, num_cpus=self._workers, include_dashboard=False, **quiet)
        except (RuntimeError, ValueError, ConnectionError) as error:  # also other versions of Ray or Python
            why = " ".join(str(error).split())[:300]
            raise InfrastructureError(
                f"the Ray cluster{f' at {address}' if address else ''} cannot be used: {why}",
                hint="check RAY_ADDRESS, and that ray status works",
            ) from error

    def _disconnect(self) -> None:
        self._actors.close()
        self._stored.clear()
        if self._connected:
            self._connected = False
            self._ray.shutdown()

    async def _check_nodes(self) -> None:
        """Check that all nodes have the installation of this machine, before anything is paid for."""
        expected = installation()
        near = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        task = self._ray.remote(check_installation)
        checks = {
            node["NodeManagerAddress"]: task.options(
                num_cpus=0, max_retries=0, scheduling_strategy=near(node["NodeID"], soft=False)
            ).remote(expected)
            for node in self._nodes()
        }
        for address, reference in checks.items():
            try:
                different = await asyncio.wait_for(_result(reference), START_TIMEOUT_S)
            except TimeoutError:
                raise InfrastructureError(
                    f"the Ray node {address} does not answer", hint="ray status shows the nodes"
                ) from None
            except self._ray.exceptions.RayTaskError as error:
                why = f"the Ray node {address} cannot run agrotools: {_last_line(error)}"
                raise UsageError(why, hint=_SAME_EVERYWHERE) from error
            except self._ray.exceptions.RayError:
                continue  # the node was lost meanwhile
            if different:
                raise UsageError(f"a Ray node, {address}, has {different}", hint=_SAME_EVERYWHERE)

    async def reply_to(self, request: dict[str, Any]) -> Reply:
        """Return the reply of a worker on the cluster; see :meth:`ToolExecutor.reply_to`. UsageError: the node has
        other versions, code or data files; InfrastructureError: the call was lost :data:`MOST_TRIES` times, or there
        are no nodes."""
        paths = {name: Path(path) for name, path in request["paths"].items()}
        try:
            files = {
                name: (str(path), await asyncio.to_thread(self._hashes.file_hash, path)) for name, path in paths.items()
            }
        except OSError as error:
            raise InfrastructureError(f"a file of a call cannot be read: {error}") from error
        expected = await asyncio.to_thread(_expected, request["target"], request["backend"])
        self._pool.calls += 1
        last = ""
        for number in range(MOST_TRIES):
            if number:
                self.calls_sent_again += 1
                await asyncio.sleep(_PAUSE_S * number)
            try:
                async with self._remote(request, paths) as remote:
                    return await self._send(remote, request, files, expected)
            except self._ray.exceptions.RayTaskError as error:
                last = _last_line(error)
            except self._ray.exceptions.RayError as error:
                reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
                last = f"{type(error).__name__}: {reason}"
            except TimeoutError:
                last = "no reply in time"
        raise InfrastructureError(
            f"a call of {request['target'].partition(':')[2]} was lost on the Ray cluster {MOST_TRIES} times: {last}",
            hint="the same command runs the sample again",
        )

    @asynccontextmanager
    async def _remote(self, request: Mapping[str, Any], paths: Mapping[str, Path]) -> AsyncIterator[Callable[..., Any]]:
        """Wait for a GPU or a CPU, and provide the function that sends a call there."""
        if request["backend"].startswith(LEARNED):
            async with self._actors.actor() as actor:
                if actor is not None:
                    yield actor.run_call.remote
                    return
        async with self._place(request, paths) as options:
            yield self._task.options(max_retries=0, **options).remote

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
                answer: Answer = await asyncio.wait_for(_result(reference), limit_s)
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
        task, size = self._stored.pop(digest, (None, 0))
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            content = await asyncio.to_thread(path.read_bytes)
            size = len(content)
            if digest in self._stored:  # another call stored it meanwhile
                return await asyncio.shield(self._stored[digest][0])
            task = asyncio.create_task(asyncio.to_thread(self._ray.put, content))
        self._stored[digest] = task, size
        while len(self._stored) > 1 and sum(stored for _, stored in self._stored.values()) > _MOST_STORED:
            del self._stored[next(iter(self._stored))]
        return await asyncio.shield(task)

    @asynccontextmanager
    async def _place(self, request: Mapping[str, Any], paths: Mapping[str, Path]) -> AsyncIterator[dict[str, Any]]:
        """Wait until the cluster, as it is now, has a CPU for a call, and provide the options of its task."""
        began = time.monotonic()
        while self._in_flight >= await self._capacity():
            if not self._cpus and time.monotonic() - began > _WAIT_FOR_NODES_S:
                raise InfrastructureError("the Ray cluster has no nodes left", hint="ray status shows them")
            self._freed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _LOOK_S)
        self._in_flight += 1
        try:
            options: dict[str, Any] = {"num_cpus": 1}
            size = sum(path.stat().st_size for path in paths.values())
            if size >= _LARGE_FILES or request["backend"].startswith(LEARNED):
                options["memory"] = min(self.memory_mb * 2**20, self._largest_memory)
            yield options
        finally:
            self._in_flight -= 1
            self._freed.set()

    async def _capacity(self) -> int:
        await self._look()
        return self._cpus

    async def _count_gpus(self) -> int:
        await self._look()
        return self._gpus

    async def _look(self) -> None:
        if time.monotonic() - self._looked > _LOOK_S:
            self._looked = time.monotonic()
            nodes = await asyncio.to_thread(self._nodes)
            self._cpus, self._gpus = int(sum(map(_cpus, nodes))), _gpus_of(nodes)
            self._largest_memory = int(max((node["Resources"].get("memory", 0) for node in nodes), default=0))

    def _nodes(self) -> list[dict[str, Any]]:
        """Return the living nodes that can run calls."""
        return [node for node in self._ray.nodes() if node["Alive"] and _cpus(node) >= 1]


def _check_address(address: str) -> None:
    """Check that something listens at the address: Ray itself tries for minutes, and then exits."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise InfrastructureError(
            f"there is no Ray cluster at {address}: {error}", hint="RAY_ADDRESS is HOST:PORT of ray start --head"
        ) from error


def _cpus(node: Mapping[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0))


def _gpus_of(nodes: Sequence[Mapping[str, Any]]) -> int:
    return sum(int(node["Resources"].get("GPU", 0)) for node in nodes)


@cache
def _expected(target: str, backend: str) -> dict[str, str]:
    """Return the installation that a node needs for a tool: that of this machine."""
    try:
        has_files = bool(load(target).files_for(backend))
    except ToolError:
        has_files = False
    return installation(target, backend, has_files=has_files)


async def _result(reference: Any) -> Any:
    return await asyncio.wrap_future(reference.future())


def _last_line(error: BaseException) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
