"""Worker process that reads calls from standard input, runs them and writes the replies to standard output.

:mod:`agrotools.calling.worker_process` starts it with a minimal environment. Output printed by a tool goes to standard
error. The process ends when its input ends, so that no worker outlives the process that started it.
"""

import faulthandler
import importlib
import mmap
import os
import random
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from agrotools.calling.result import (
    OUT_OF_MEMORY,
    Reply,
    ToolResult,
    encode_result,
    failure,
    pack_frame,
    read_frame,
)
from agrotools.calling.services import VLM, AnswerNeeded, Replies
from agrotools.calling.workspace import CallContext, call_context
from agrotools.core import Artifact, ErrorInfo, SampleFile, ToolError
from agrotools.core.errors import words_of
from agrotools.core.libraries import library_of
from agrotools.core.systems import (
    HAS_GROUPS,
    end_with_parent,
    limit_memory,
    wait_for_writer_end,
)

_LARGEST_SHARE = 0.75
"""A worker is replaced once its memory exceeds this share of its limit, so that leaks do not affect calls."""
_OF_MEMORY = ("Insufficient memory", "bad_alloc", "Cannot allocate memory")


def main() -> None:
    memory_mb, parent = int(sys.argv[1]), int(sys.argv[2])
    requests, replies = _private_streams()
    _end_with_parent(parent, requests)
    limit_memory(memory_mb * 2**20)
    with suppress(
        OSError, AttributeError
    ):  # yield to the parent, which serves all samples while this serves one
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    faulthandler.enable()
    replies.write(pack_frame({"ready": True}))
    replies.flush()
    most_bytes = memory_mb * 2**20 * _LARGEST_SHARE
    while (frame := read_frame(requests)) is not None:
        reply, contents = answer(frame[0])
        if _private_memory() > most_bytes:
            reply["spent"] = True
        replies.write(_pack_reply(reply, contents))
        replies.flush()


def answer(request: dict[str, Any]) -> Reply:
    """Return the reply to a request: ``{"load": target}`` or a call (see :func:`_run`). Never raises."""
    try:
        if "load" in request:
            load(request["load"])
            return {"loaded": True}, []
        return _run(request)
    except ToolError as error:
        return failure(error.info)
    except MemoryError:
        return failure(OUT_OF_MEMORY, traceback.format_exc())
    except BaseException as error:
        if module := library_of(error):  # no fault of the call: the run ends
            return {"missing_library": module, "artifacts": []}, []
        if any(words in words_of(error) for words in _OF_MEMORY):  # as native libraries report it
            return failure(OUT_OF_MEMORY, traceback.format_exc())
        message = f"the tool failed on this input ({type(error).__name__})"
        info = ErrorInfo(
            kind="tool_failed", message=message, hint="other arguments or another file may work"
        )
        return failure(info, traceback.format_exc())


def _pack_reply(reply: dict[str, Any], contents: list[bytes]) -> bytes:
    try:
        return pack_frame(reply, contents)
    except OverflowError as error:
        large = ErrorInfo(kind="limit", message=f"the result is too large: {error}")
        return pack_frame(failure(large, traceback.format_exc())[0])
    except MemoryError:
        return pack_frame(failure(OUT_OF_MEMORY, traceback.format_exc())[0])


def load(target: str) -> Any:
    """Import the tool at ``package.module:name``."""
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ToolError(
            "backend_unavailable", f"the tool {name} cannot be loaded: {words_of(error)}"
        ) from error


def _run(request: dict[str, Any]) -> Reply:
    """Run a call with ``target``, ``arguments``, ``paths``, ``files`` and ``backend``.

    ``paths`` and ``files`` map file names of the call to paths and to metadata of the sample. With ``asking`` (the
    replies of a vision model or service so far) the reply may be another ``request``.
    """
    tool = load(request["target"])
    paths = {name: Path(path) for name, path in request["paths"].items()}
    infos = {
        paths[name]: SampleFile.model_validate(file) for name, file in request["files"].items()
    }
    contents: dict[Artifact, bytes] = {}

    def keep(artifact: Artifact, content: bytes) -> Artifact:
        contents[artifact] = content
        return artifact

    arguments = tool.prepare_arguments(request["arguments"], paths.__getitem__)
    _reset_state()
    started = time.perf_counter()
    replies = Replies(**request["asking"]) if "asking" in request else None
    vision = replies if request["backend"] == VLM else None
    with call_context(CallContext(keep, infos, request["backend"], vision=vision, replies=replies)):
        try:
            result = tool.function(**arguments)
        except AnswerNeeded as needed:
            asked = {"service": needed.request.service, "body": needed.request.body}
            return {"request": asked, "artifacts": []}, list(needed.request.pictures)
    seconds = time.perf_counter() - started
    if not isinstance(result, ToolResult):
        raise TypeError(
            f"{tool.name} returned an object of type {type(result).__name__}, not a ToolResult"
        )
    encoded, artifacts = encode_result(result, tool.significant_digits)
    message = {
        "result": encoded,
        "artifacts": [artifact.model_dump() for artifact in artifacts],
        "seconds": seconds,
    }
    return message, [contents[artifact] for artifact in artifacts]


def _reset_state() -> None:
    """Reset the random state and the log, so that a call does not depend on earlier calls in this process."""
    if os.lseek(2, 0, os.SEEK_CUR):  # 0 if nothing was printed
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)


def _private_memory() -> int:
    """Return the memory that counts against the limit in bytes, 0 if it is unknown."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[5]) * mmap.PAGESIZE
    return 0


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return private copies of standard input and output; tools get empty input, and their output goes to the log."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb")


def _end_with_parent(parent: int, requests: BinaryIO) -> None:
    """End this process with its parent, even during a call: by the kernel on Linux, else by a thread on our input.

    On Windows, it ends after the call, when it reads on. The Python of a virtual environment starts another one there,
    which is the parent.
    """
    if not HAS_GROUPS:
        return
    end_with_parent()
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        wait_for_writer_end(requests.fileno())
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watch for the parent's end").start()


if __name__ == "__main__":
    main()
