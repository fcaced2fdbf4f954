"""Worker process: it gets ready, reports that, reads one job, runs it, and ends. Its output is never trusted outside.

Started as a script with one JSON argument: ``result_fd``, ``parent`` (process id, 0 if the runner ends the worker),
``packages`` (folder of each package), ``warm`` (modules to import), ``read_only`` (paths to ``read`` and folders to
``list``, or null if the file system is the worker's own), ``drop`` (true to drop privileges), ``calls`` (numbers of
system calls).
Frames in both directions: one byte for the kind, four bytes for the length, the content.
"""

import base64
import builtins
import errno
import faulthandler
import json
import linecache
import os
import random
import struct
import sys
import traceback
import types
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agrotools.sandbox.inside import confine, drawing
else:
    import confine
    import drawing

_NAME = "<code>"
_DENIALS = (errno.EPERM, errno.EACCES, errno.EROFS)
_LONGEST_LINE = 160
_LONGEST_TEXT = 400
Done = dict[str, str | None]


class Out:
    """Writer of frames to the result pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.saved = 0

    def send(self, kind: bytes, content: bytes = b"") -> None:
        frame = memoryview(struct.pack(">cI", kind, len(content)) + content)
        while frame:
            frame = frame[os.write(self._fd, frame) :]

    def save(self, name: str, content: bytes) -> None:
        self.saved += 1
        self.send(b"A", name.encode() + b"\0" + content)


def main() -> None:
    config = json.loads(sys.argv[1])
    out = Out(config["result_fd"])
    draw = drawing.Drawing(out.save)
    if config["parent"]:
        confine.die_with(config["parent"])
    if config["drop"]:
        confine.drop_privileges()
    if config["read_only"] is not None:
        confine.read_only(config["read_only"]["read"], config["read_only"]["list"], config["calls"])
    del sys.path[0]  # the folder of this script
    sys.meta_path.append(Packages(config["packages"]))
    faulthandler.enable()
    setattr(builtins, "exit", sys.exit)  # noqa: B010 - only `site` makes them
    setattr(builtins, "quit", sys.exit)  # noqa: B010
    warm(config["warm"], draw)
    out.send(b"R")

    job = read_job()
    nothing, other_end = os.pipe()
    os.close(other_end)
    os.dup2(nothing, 0)
    os.close(nothing)
    limits = job["limits"]
    draw.most_pixels = limits["artifact_pixels"]
    reserve = confine.reserve()
    confine.limit(limits)
    if job["filter"]:
        confine.filter_calls(base64.b64decode(job["filter"]), config["calls"])
    out.send(b"S")
    try:
        outcome = run(job["code"], job["call"], limits["output_bytes"], out, draw)
    except BaseException as error:
        del reserve
        outcome = failure(error)
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(BaseException):
            stream.flush()  # pyright: ignore[reportOptionalMemberAccess]
    out.send(b"D", json.dumps(outcome).encode())
    os._exit(0)


class Packages:
    """Finder of the packages that code may import; other packages in the same folders are invisible to it."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if path is not None or name not in self._folders:
            return None
        return PathFinder.find_spec(name, [self._folders[name]], target)


def warm(modules: list[str], draw: drawing.Drawing) -> None:
    """Import commonly used packages, and seed random numbers so that equal code gives equal results."""
    for name in modules:
        with suppress(ImportError):
            if name == "matplotlib":
                draw.prepare()
            else:
                __import__(name)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


def run(code: str, call: str | None, limit: int, out: Out, draw: drawing.Drawing) -> Done:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    linecache.cache[_NAME] = (len(code), None, code.splitlines(keepends=True), _NAME)
    try:
        exec(compile(code, _NAME, "exec"), module.__dict__)
    except SystemExit as error:
        if call is not None or error.code not in (None, 0):
            raise
    value: Any = None
    if call is not None:
        function = module.__dict__.get(call)
        if not callable(function):
            message = f"the code defines no function {call}(): define it, without arguments, and return the result"
            return {"status": "error", "message": message}
        value = function()
    if (figure := drawing.figure_in(value)) is not None:
        if value is not None or not out.saved:
            out.send(b"F", b"plot.png\0" + draw.png(figure))
        value = None
    text = None if value is None else str(value)
    if text is not None and (size := len(text.encode("utf-8", "replace"))) > limit:
        return {
            "status": "output_cap",
            "message": f"the result has {size:,} bytes as text, more than {limit:,}",
        }
    return {"status": "ok", "value": text}


def failure(error: BaseException) -> Done:
    """Return the report of an exception: its type, its text and the last line of the code in its traceback."""
    with suppress(BaseException):
        return {"status": status_of(error), "message": line_of(error), "log": traceback_of(error)}
    return {"status": "error", "message": type(error).__name__}


def status_of(error: BaseException | None) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, drawing.TooManyPixels):
        return "artifact_cap"
    for _ in range(10):
        if not isinstance(error, BaseException):
            break
        if isinstance(error, OSError) and error.errno in _DENIALS:
            return "denied"
        if type(error).__name__ == "gaierror" or "can't start new thread" in words_of(error):
            return "denied"
        error = getattr(error, "reason", None) or error.__cause__ or error.__context__
    return "error"


def words_of(error: BaseException) -> str:
    """Return the text of an exception; empty if its ``__str__`` raises one itself."""
    try:
        return str(error)
    except BaseException:
        return ""


def line_of(error: BaseException) -> str:
    if isinstance(error, drawing.TooManyPixels):
        return str(error)
    if isinstance(error, SyntaxError) and error.filename == _NAME:
        number, text = error.lineno, error.msg
    else:
        frames = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == _NAME
        ]
        number, text = (frames[-1] if frames else None), words_of(error)
    summary = type(error).__name__ + (f": {text[:_LONGEST_TEXT]}" if text else "")
    if number is None:
        return summary
    return f"{summary} (line {number}: {linecache.getline(_NAME, number).strip()[:_LONGEST_LINE]})"


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-20))[-20_000:]


def read_job() -> Any:
    _, length = struct.unpack(">cI", read(5))
    return json.loads(read(length))


def read(size: int) -> bytes:
    """Read exactly ``size`` bytes of standard input; at its end no job will follow, so the process exits."""
    parts: list[bytes] = []
    while size:
        part = os.read(0, min(size, 2**20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main()
