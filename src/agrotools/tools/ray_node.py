"""Node side of tool calls on a Ray cluster: what a node has installed, and the task or actor that runs one call there.

Both run the tool in a worker process of their own (:mod:`agrotools.tools.worker_process`), as without Ray: the same
limits of time and memory, no keys in the environment, and the same errors if the tool crashes.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from agrotools.core import ToolError
from agrotools.core.files import cache_dir, write_whole
from agrotools.tools.cache import ResultCache, Sweeper, code_hash, library_versions, limit_from_environment
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.result import Reply
from agrotools.tools.worker import load

Answer = tuple[Literal["reply"], Reply] | tuple[Literal["missing"], list[str]] | tuple[Literal["different"], str]
"""Answer of a task: the reply, the hashes of files that the node does not have, or how its installation differs."""
_FILE = "file "
"""Prefix of the names of data files in an installation."""


class FileLost(Exception):
    """Error for a file that changed or was removed while a call needed it; the call is run again."""


def installation(target: str = "", backend: str = "", *, has_files: bool = False) -> dict[str, str]:
    """Return what results depend on here: versions and code, and for a ``target`` that ``has_files`` besides those
    of the call (so that it has to be imported) the data files of its back-end."""
    parts = {"agrotools": version("agrotools"), **library_versions()}
    parts["code"] = code_hash(target.partition(":")[0] or "agrotools.tools")
    if has_files:
        try:
            paths = load(target).files_for(backend)
        except ToolError:
            return parts
        parts |= {f"{_FILE}{path.name}": _hashes().file_hash(path) for path in paths if path.is_file()}
    return parts


def first_difference(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return the first difference of an installation from the expected one; empty if there is none."""
    for name in [*expected, *sorted(found.keys() - expected.keys())]:
        here, there = expected.get(name), found.get(name)
        if here == there:
            continue
        if name == "code":
            return f"other code of agrotools {expected['agrotools']} or of a plug-in"
        if name.startswith(_FILE):
            return f"another {name}" if here and there else f"{'no' if here else 'a'} {name}"
        return f"{name} {there}, and this machine {here}"
    return ""


def check_installation(expected: Mapping[str, str]) -> str:
    """Task that returns the first difference of this node from the ``expected`` installation."""
    return first_difference(expected, installation())


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
    threads. FileLost: a file changed or was removed meanwhile.
    """
    has_files = any(name.startswith(_FILE) for name in expected)
    if different := first_difference(expected, _installation(request["target"], request["backend"], has_files)):
        return "different", different
    paths, missing = dict[str, str](), list[str]()
    for name, (path, digest) in files.items():
        local = _local_file(Path(path), digest)
        if local is None and digest in contents:
            local = _fetch(Path(path), digest, contents[digest])
        if local is None:
            missing.append(digest)
        else:
            paths[name] = str(local)
    if missing:
        return "missing", missing
    reply = _runner(limits).reply_to({**request, "paths": paths})
    if lost := next((path for path in paths.values() if not os.path.exists(path)), None):  # noqa: PTH110
        raise FileLost(f"{lost} was removed during the call")
    return "reply", reply


class CallRunner:
    """Actor that runs one call at a time with a GPU, which its worker process keeps with the model of the last call."""

    def answer(self) -> None:
        """Do nothing: the answer shows that the actor has a GPU and can take a call."""

    def run_call(self, *call: Any) -> Answer:
        """Run a call as :func:`run_call` does."""
        return run_call(*call)


@cache
def _installation(target: str, backend: str, has_files: bool) -> dict[str, str]:
    return installation(target, backend, has_files=has_files)


@cache
def _hashes() -> ResultCache:
    return ResultCache()


@cache
def _sweeper() -> Sweeper:
    return Sweeper(cache_dir("ray-files"), limit_from_environment())


def _local_file(path: Path, digest: str) -> Path | None:
    """Return a file with this content on this node: at the same path (a shared folder), else one fetched earlier."""
    for candidate in (path, _place_of(path, digest)):
        try:
            if candidate.is_file() and _hashes().file_hash(candidate) == digest:
                return candidate
        except OSError:
            continue
    return None


def _place_of(path: Path, digest: str) -> Path:
    return cache_dir("ray-files", digest[:2], digest, path.name)


def _fetch(path: Path, digest: str, reference: Any) -> Path:
    content: bytes = import_module("ray").get(reference)
    place = _place_of(path, digest)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, content, synced=False)  # the hash is compared before each use
    _sweeper().record_write(len(content))
    if _hashes().file_hash(place) != digest:
        raise FileLost(f"{path} has changed since the call began")
    return place


class _Runner:
    """Worker process of this Ray process, on an event loop in a thread: Ray runs tasks in the main thread.

    The worker dies with the thread that started it, which lives as long as the process.
    """

    def __init__(self, timeout_s: float, memory_mb: int, threads: int) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="agrotools tool worker").start()
        self._executor = ToolExecutor(1, timeout_s, memory_mb, threads=threads)

    def reply_to(self, request: dict[str, Any]) -> Reply:
        return asyncio.run_coroutine_threadsafe(self._executor.reply_to(request), self._loop).result()


@cache
def _runner(limits: tuple[float, int, int]) -> _Runner:
    # Ray puts the folder of its own worker script on the import path, which has modules named like others.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(os.path.join("ray", "_private", "workers"))]  # noqa: PTH118
    return _Runner(*limits)
