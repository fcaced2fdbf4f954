"""Execution of tool calls: validation, cache look-up, worker processes, and conversion to observations."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast
from weakref import WeakValueDictionary

from agrotools.calling import get_tool
from agrotools.calling.arguments import OPTIONAL_HINT
from agrotools.calling.cache import ResultCache
from agrotools.calling.contract import SERVED, Tool
from agrotools.calling.example_calls import example_hint
from agrotools.calling.result import OUT_OF_MEMORY, BrokenFrame, Reply, failure, with_artifact_names
from agrotools.calling.services import (
    IMAGES,
    MOST_QUESTIONS,
    NAME_A_MODEL,
    SANDBOX,
    SERPER,
    VLM,
    Question,
    ServiceRequest,
    answer,
    check_service,
)
from agrotools.calling.worker_process import START_TIMEOUT_S, ToolWorker, WorkerPool
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    Arguments,
    Artifact,
    ErrorInfo,
    InfrastructureError,
    Observation,
    SampleFile,
    ToolCall,
    ToolError,
    ToolOutcome,
    UsageError,
)
from agrotools.core.frozen_model import from_valid
from agrotools.core.libraries import missing_libraries
from agrotools.core.processes import KILL

if TYPE_CHECKING:
    from agrotools.calling.services.vision_endpoint import VisionEndpoint


_OF_FILES = frozenset({"file_not_found", "unreadable_file"})
_ACCIDENTS = frozenset({"timeout", "limit", "tool_failed", "backend_unavailable"})
"""Kinds of errors that an equal call need not end with."""
_SERVED_BY_EXAMPLE = "learned:"
"""Back-end of version 0.2, an open model with weights on this machine: stored runs and files of users name it."""


class _CheckedCall(NamedTuple):
    tool: Tool[..., Any]
    backend: str
    arguments: Arguments
    """Canonical arguments, with files by name."""
    paths: dict[str, Path]

    def key_in(self, cache: ResultCache, infos: Mapping[str, SampleFile | None]) -> str:
        """Return the key of the call in a cache; errors as of :meth:`ResultCache.key`."""
        return cache.key(
            tool=self.tool,
            backend=self.backend,
            arguments=self.arguments,
            paths=self.paths,
            infos=infos,
        )


class ServedTools(Protocol):
    """What an executor needs of the tool servers of a run (:mod:`agrotools.served.tools`).

    Errors of both calls: ToolError, which the caller observes, and InfrastructureError.
    """

    def offers(self, tool: str) -> bool:
        """True if ``tool`` is one of a server that samples offer beside ours."""
        ...

    async def call_own(self, tool: str, arguments: Arguments, workspace: Workspace) -> ToolOutcome:
        """Return the outcome of a call of such a tool."""
        ...

    async def call_bound(
        self, tool: Tool[..., Any], arguments: Arguments, workspace: Workspace
    ) -> ToolOutcome:
        """Return the outcome of a call of one of our tools that is bound to a server."""
        ...

    async def end_sample(self, workspace: Workspace) -> None:
        """End the sessions of a sample."""
        ...

    async def close(self) -> None:
        """End all sessions."""
        ...


def check_backend(tool: Tool[..., Any], backend: str) -> None:
    """Refuse a back-end that ``tool`` does not have, or whose value is not usable; UsageError lists those it has."""
    if backend.startswith(_SERVED_BY_EXAMPLE):
        raise UsageError(
            f"there is no back-end {backend} of {tool.name}: a tool server runs open models now",
            hint="give examples/tool_servers/learned/server.py to --tool-server (agrotools docs general-tools)",
        )
    if not tool.has_backend(backend):
        known = ", ".join(f"{name}VALUE" if name.endswith(":") else name for name in tool.backends)
        raise UsageError(f"{tool.name} has no back-end {backend!r}", hint=f"it has {known}")
    try:
        tool.files_for(backend)
    except ToolError as error:
        raise UsageError(
            f"back-end {backend} of {tool.name}: {error.message}", hint=error.advice
        ) from error


def check_backends(
    backends: Mapping[str, str],
    find_tool: Callable[[str], Tool[..., Any]] = get_tool,
    *,
    has_vision: bool,
) -> None:
    """Check the back-end of each tool and the availability of what it requires; UsageError says what is missing."""
    for name, backend in backends.items():
        check_backend(find_tool(name), backend)
        if backend == VLM and not has_vision:
            raise UsageError(f"{name} needs a vision model, and none is given", hint=NAME_A_MODEL)
        if backend != VLM and needs_answers(backend):
            check_service(backend)


def _with_whole_path(backend: str) -> str:
    """Return the back-end with a path in its value made absolute, because workers run in another folder."""
    if backend.startswith(IMAGES):
        return backend  # names of models contain slashes too
    kind, colon, value = backend.partition(":")
    is_path = colon and os.sep in value
    return f"{kind}:{Path(value).expanduser().absolute()}" if is_path else backend


class ToolExecutor:
    """Runs tool calls in worker processes, any number of calls concurrently. Use as an async context manager.

    Args:
        workers: maximum number of worker processes.
        timeout_s: wall time limit of one call, after which the worker is killed.
        memory_mb: memory of a worker that it can write.
        cache: cache to read and store results; None runs every call.
        backends: back-end of each tool that does not use its default.
        vision: vision model that answers the questions of tools with the back-end ``vlm``.
        threads: threads that numeric libraries may use in a worker. Results do not depend on it, see
            ``agrotools benchmarks check``.
        find_tool: function from a name to the tool; the registry by default.
        served: tool servers, whose tools may be called beside ours or in their place; closed with the executor.

    Raises:
        UsageError: a tool or back-end in ``backends`` does not exist, or the value of a back-end is not usable.
    """

    def __init__(
        self,
        workers: int = 2,
        timeout_s: float = 60.0,
        memory_mb: int = 4096,
        cache: ResultCache | None = None,
        backends: Mapping[str, str] | None = None,
        find_tool: Callable[[str], Tool[..., Any]] = get_tool,
        vision: "VisionEndpoint | None" = None,
        threads: int = 1,
        served: ServedTools | None = None,
    ) -> None:
        self.timeout_s, self.memory_mb, self.threads = timeout_s, memory_mb, threads
        self.calls_sent_again = 0
        """Number of calls that were sent again after a machine was lost (:mod:`agrotools.calling.ray_executor`)."""
        self.cache = cache
        self.backends = {
            name: _with_whole_path(backend) for name, backend in (backends or {}).items()
        }
        self.vision = vision
        self._served = served
        if served is None and any(each.startswith(SERVED) for each in self.backends.values()):
            raise UsageError(
                "a tool server is a back-end, and none is given", hint="use --binding FILE"
            )
        self._find_tool = find_tool
        self._pool = WorkerPool(workers, memory_mb, threads)
        self._stack = AsyncExitStack()
        self._in_work: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        check_backends(self.backends, find_tool, has_vision=vision is not None)

    async def __aenter__(self) -> "ToolExecutor":
        await self._stack.enter_async_context(self._pool)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._served is not None:
            await self._served.close()
        await self._stack.aclose()

    async def end_sample(self, workspace: Workspace) -> None:
        """End what only the calls of one sample use: its sessions with tool servers."""
        if self._served is not None:
            await self._served.end_sample(workspace)

    @property
    def calls_of_workers(self) -> int:
        """Number of calls sent to a worker so far, not counting cached results."""
        return self._pool.calls

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the live workers."""
        return self._pool.pids

    async def prepare(self, tools: Sequence[str]) -> None:
        """Start all workers and load ``tools`` in each, so that no call has to wait for that.

        Errors are ignored here; they occur again, and are reported, in the call that needs the tool.
        """
        with suppress(InfrastructureError, UsageError, BrokenFrame, TimeoutError):
            targets = [_importable_target(self._find_tool(name)) for name in tools]
            await asyncio.gather(*(self._prepare_worker(targets) for _ in range(self._pool.size)))

    async def _prepare_worker(self, targets: Sequence[str]) -> None:
        async with self._pool.worker_for("", fresh=True) as worker:
            for target in targets:
                if target not in worker.loaded:
                    await _load(worker, target)

    async def run(
        self, call: ToolCall, workspace: Workspace, toolset: Sequence[str]
    ) -> ToolOutcome:
        """Run one call of a policy that has ``toolset``, on the files of ``workspace``.

        Faults caused by the policy or a file become observations with an error: unknown tool, bad arguments, missing or
        hostile file, time-out, memory, crash. UsageError: a tool of the toolset cannot be loaded, or needs a library
        that is not installed; InfrastructureError: no worker can be started, or artifacts cannot be written.
        """
        served = await self._served_outcome(call, workspace, toolset)
        outcome = served or await self._outcome(call, workspace, toolset)
        error = outcome.observation.error
        if error is None or call.tool not in toolset or served:
            return outcome
        tool = self._find_tool(call.tool)
        hints = [error.hint]
        if error.kind == "invalid_argument":
            hints.append(example_hint(tool, call.arguments, workspace.files))
        elif error.kind in _OF_FILES and error.argument in call.arguments:
            required = cast("Sequence[str]", tool.spec.parameters.get("required", ()))
            if error.argument not in required:
                hints.insert(0, f"{OPTIONAL_HINT}: {error.argument}")
        hint = "; ".join(filter(None, hints)) or None
        return replace(
            outcome, observation=Observation(error=error.model_copy(update={"hint": hint}))
        )

    async def _served_outcome(
        self, call: ToolCall, workspace: Workspace, toolset: Sequence[str]
    ) -> ToolOutcome | None:
        """Return the outcome of a call that a tool server answers; None for any other call. None is ever cached."""
        if self._served is None or call.tool not in toolset:
            return None
        started = time.perf_counter()
        try:
            if self._served.offers(call.tool):
                return await self._served.call_own(call.tool, call.arguments, workspace)
            if not self.backends.get(call.tool, "").startswith(SERVED):
                return None
            checked = self._checked(call, workspace, toolset)
            return await self._served.call_bound(checked.tool, checked.arguments, workspace)
        except ToolError as error:
            return ToolOutcome(Observation(error=error.info), time.perf_counter() - started)

    async def _outcome(
        self, call: ToolCall, workspace: Workspace, toolset: Sequence[str]
    ) -> ToolOutcome:
        started, cache = time.perf_counter(), self.cache
        try:
            checked = self._checked(call, workspace, toolset)
            if not checked.tool.cacheable or needs_answers(checked.backend):
                cache = None
            infos = {name: workspace.info(name) for name in checked.paths}
            key = await asyncio.to_thread(checked.key_in, cache, infos) if cache else ""
        except OSError as error:
            unreadable = ToolError(
                "unreadable_file", f"a file of this call cannot be read: {error.strerror}"
            )
            return ToolOutcome(Observation(error=unreadable.info), time.perf_counter() - started)
        except ToolError as error:  # also if files of a back-end were removed after the run began
            return ToolOutcome(Observation(error=error.info), time.perf_counter() - started)
        if cache is None:
            return await self._run_and_observe(checked, workspace)
        lock = self._in_work.setdefault(key, asyncio.Lock())
        async with lock:  # wait for an equal call that is running instead of running it twice
            if found := await asyncio.to_thread(cache.get, key):
                observation = await asyncio.to_thread(_observation, found, workspace)
                return ToolOutcome(observation, time.perf_counter() - started, "cache")
            return await self._run_and_observe(checked, workspace, cache, key)

    def _checked(
        self, call: ToolCall, workspace: Workspace, toolset: Sequence[str]
    ) -> _CheckedCall:
        if call.tool not in toolset:
            close = get_close_matches(call.tool, toolset, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(close)}?" if close else f"tools: {', '.join(toolset)}"
            )
            raise ToolError(
                "unknown_tool",
                f"there is no tool {call.tool!r}",
                hint=hint,
                candidates=tuple(close),
            )
        tool = self._find_tool(call.tool)
        arguments = tool.validate(call.arguments)
        paths: dict[str, Path] = {}

        def resolve(name: str) -> Path:
            paths[name] = workspace.resolve(name, by_last_part=tool.files_by_last_part)
            return paths[name]

        if tool.takes_files:
            tool.prepare_arguments(arguments, resolve)
        return _CheckedCall(tool, self.backends.get(tool.name, tool.backends[0]), arguments, paths)

    async def _run_and_observe(
        self,
        checked: _CheckedCall,
        workspace: Workspace,
        cache: ResultCache | None = None,
        key: str = "",
    ) -> ToolOutcome:
        started = time.perf_counter()
        checked.tool.check_libraries()
        message, contents = await (
            self._reply_with_answers(checked, workspace)
            if needs_answers(checked.backend)
            else self._reply_of_worker(checked, workspace)
        )
        if module := message.get("missing_library"):
            raise missing_libraries(checked.tool.name, [module])
        seconds = message.get("seconds", time.perf_counter() - started)
        reply = message, contents
        if cache is not None and message.get("error", {}).get("kind") not in _ACCIDENTS:
            await asyncio.to_thread(cache.put, key, reply)
        # Use a thread only to write artifacts: for a short call, switching threads takes longer than the work.
        observation = (
            await asyncio.to_thread(_observation, reply, workspace)
            if contents
            else _observation(reply, workspace)
        )
        return ToolOutcome(observation, seconds, log=message.get("log", ""))

    async def _reply_with_answers(self, checked: _CheckedCall, workspace: Workspace) -> Reply:
        """Return the reply of a worker, answering its questions in this process, because workers have no keys.

        A vision model or a network service answers. The call is run again with each answer, so that no worker waits
        for an endpoint and time limits only cover the tool's own work.
        """
        started, replies = time.perf_counter(), list[Any]()
        name = self.vision.name if self.vision is not None else ""
        while True:
            message, contents = await self._reply_of_worker(
                checked, workspace, {"replies": replies, "name": name}
            )
            if "request" not in message:
                return {**message, "seconds": time.perf_counter() - started}, contents
            request = ServiceRequest(**message["request"], pictures=tuple(contents))
            try:
                if len(replies) >= MOST_QUESTIONS:
                    raise ToolError("tool_failed", "the tool asks too many questions")
                if request.service == VLM:
                    assert self.vision is not None
                    replies.append(
                        await self.vision.answer(
                            Question(**request.body, pictures=request.pictures)
                        )
                    )
                else:
                    replies.append(await answer(request))
            except ToolError as error:
                return failure(error.info)

    async def _reply_of_worker(
        self, checked: _CheckedCall, workspace: Workspace, asking: dict[str, Any] | None = None
    ) -> Reply:
        request = {
            "target": _importable_target(checked.tool),
            "arguments": checked.arguments,
            "paths": {name: str(path) for name, path in checked.paths.items()},
            "files": {
                name: info.model_dump(mode="json")
                for name in checked.paths
                if (info := workspace.info(name))
            },
            "backend": checked.backend,
            **({"asking": asking} if asking else {}),
        }
        return await self.reply_to(request)

    async def reply_to(self, request: dict[str, Any]) -> Reply:
        """Return the reply of a worker to a call with the paths of its files: an error if the tool crashes, is too
        slow or needs too much memory. InfrastructureError: no worker can be started."""
        fresh = False
        while True:
            async with self._pool.worker_for(request["target"], fresh=fresh) as worker:
                reply, again = await self._ask(worker, request)
            if fresh or not again:
                return reply
            fresh = True

    async def _ask(self, worker: ToolWorker, request: dict[str, Any]) -> tuple[Reply, bool]:
        """Return the reply, and whether a new worker might succeed where this one failed.

        If the worker dies, the reply is an error derived from its exit status and log.
        """
        limit = START_TIMEOUT_S
        used = worker.calls > 0
        try:
            if request["target"] not in worker.loaded and (
                failed := await _load(worker, request["target"])
            ):
                return failed, False
            worker.calls += 1
            self._pool.calls += 1
            limit = self.timeout_s
            reply = await worker.ask(request, limit)
        except TimeoutError:
            log = worker.read_log()
            self._pool.discard(worker)
            message = f"the tool did not finish within {limit:g} s"
            error = ErrorInfo(
                kind="timeout", message=message, hint="use a smaller region or a smaller file"
            )
            return failure(error, log), False
        except BrokenFrame as broken:
            log = worker.read_log()
            status = await worker.exit_status()
            self._pool.discard(worker)
            if self._pool.closed:
                raise InfrastructureError(
                    "the tool executor was closed while a call was running"
                ) from None
            # An earlier call may have damaged the worker, and a machine that is short of memory kills innocent
            # processes.
            return failure(_error_of_death(log, status, broken), log), used or status == -KILL
        worker.spent |= bool(reply[0].pop("spent", False))
        if reply[0].get("error", {}).get("kind") == "limit":
            worker.spent = True
            return reply, used
        return reply, False


def needs_answers(backend: str) -> bool:
    """True if a call may query a model or a service, so that its result may differ between equal calls."""
    return backend in (VLM, SERPER, SANDBOX) or backend.startswith(IMAGES)


async def _load(worker: ToolWorker, target: str) -> Reply | None:
    """Load a tool in a worker. Return the error reply if it cannot be loaded, else None."""
    loaded, _ = await worker.ask({"load": target}, START_TIMEOUT_S)
    if "error" in loaded:
        return loaded, []
    worker.loaded.add(target)
    return None


def _importable_target(tool: Tool[..., Any]) -> str:
    if tool.target.startswith("__main__:"):
        why = f"the tool {tool.name} is defined in the script that runs it, where a worker cannot find it"
        raise UsageError(why, hint="move it into a module and import it")
    return tool.target


def _error_of_death(log: str, status: int | None, broken: BrokenFrame) -> ErrorInfo:
    hint = "other arguments or another file may work"
    if status is None:
        return ErrorInfo(
            kind="tool_failed", message=f"the connection to the tool broke: {broken}", hint=hint
        )
    if status == -KILL or any(
        words in log for words in ("bad_alloc", "MemoryError", "Cannot allocate")
    ):
        return OUT_OF_MEMORY
    how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return ErrorInfo(
        kind="tool_failed", message=f"the tool crashed on this input ({how})", hint=hint
    )


def _observation(reply: Reply, workspace: Workspace) -> Observation:
    message, contents = reply
    if "error" in message:
        return Observation(error=ErrorInfo.model_validate(message["error"]))
    if not message["artifacts"]:
        return from_valid(
            Observation, {"result": message["result"], "error": None, "artifacts": ()}
        )
    made = [Artifact.model_validate(artifact) for artifact in message["artifacts"]]
    try:
        kept = [
            workspace.keep(artifact, content)
            for artifact, content in zip(made, contents, strict=True)
        ]
    except OSError as error:
        raise InfrastructureError(
            f"artifacts cannot be written to {workspace.artifacts}: {error.strerror}"
        ) from error
    result = with_artifact_names(message["result"], [artifact.name for artifact in kept])
    assert isinstance(result, dict)
    return Observation(result=result, artifacts=tuple(kept))
