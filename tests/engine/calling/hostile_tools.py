"""Tools that misbehave in every way the executor must survive. Imported by the tests and by their workers."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from agrotools.calling.contract import ImageFile, Tool, ToolResult, tool
from agrotools.calling.workspace import backend_in_use, file_info, save_artifact
from agrotools.core import Artifact, ToolError

Seconds = Annotated[float, Field(ge=0, description="how long, seconds")]


class Empty(ToolResult):
    pass


class Look(ToolResult):
    size_bytes: int
    gsd_m: float | None
    figure: Artifact
    runs: int


class Environment(ToolResult):
    names: tuple[str, ...]
    core_limit: int
    memory_limit_mb: float
    stdin: str
    backend: str | None
    dice: float
    opencv_threads: int
    blas_threads: str
    graph_threads: str


class Number(ToolResult):
    value: float


class Big(Number):
    figure: Artifact


@tool(category="general", backends=("offline", "learned"))
def environment() -> Environment:
    """Say what a tool can see of its surroundings."""
    import resource

    import cv2

    return Environment(
        names=tuple(sorted(os.environ)),
        core_limit=resource.getrlimit(resource.RLIMIT_CORE)[0],
        memory_limit_mb=resource.getrlimit(resource.RLIMIT_DATA)[0] / 2**20,
        stdin=sys.stdin.read(),
        backend=backend_in_use(),
        dice=random.random(),
        opencv_threads=cv2.getNumThreads(),
        blas_threads=os.environ["OPENBLAS_NUM_THREADS"],
        graph_threads=os.environ["AGROTOOLS_THREADS"],
    )


RUNS_FILE_SUFFIX = ".runs"


@tool(category="general")
def look(
    image: ImageFile,
    artifact_name: Annotated[str, Field(description="name of the artifact")] = "figure.png",
) -> Look:
    """Read a file, keep an artifact, and count how often this was really done."""
    info = file_info(image)
    log = image.with_name(image.name + RUNS_FILE_SUFFIX)
    with log.open("a") as runs:
        runs.write("x")
    content = image.read_bytes()
    return Look(
        size_bytes=len(content),
        gsd_m=info.gsd_m if info else None,
        figure=save_artifact(artifact_name, "plot", b"drawn from " + content),
        runs=log.stat().st_size,
    )


@tool(category="general")
def echo(value: Annotated[float, Field(description="any number")], wait_s: Seconds = 0.0) -> Number:
    """Give a number back, after a while."""
    time.sleep(wait_s)
    return Number(value=value)


@tool(category="general")
def shout(
    where: Annotated[Literal["python", "c", "both"], Field(description="which standard output")],
) -> Empty:
    """Print to standard output, where the protocol must not be."""
    if where in ("python", "both"):
        print("stray " * 1000)
        sys.stdout.flush()
    if where in ("c", "both"):
        os.write(1, b"\x00\x00\x00\x05stray from C" * 100)
    return Empty()


Failure = Literal[
    "exception",
    "tool_error",
    "abort",
    "segfault",
    "exit",
    "hard_exit",
    "memory",
    "big_result",
    "big_artifact",
    "wrong_type",
]


@tool(category="general")
def fail(how: Annotated[Failure, Field(description="in which way")]) -> Number:
    """Fail."""
    match how:
        case "exception":
            raise RuntimeError("secret detail of the inside")
        case "tool_error":
            raise ToolError(
                "nothing_found", "there is nothing here", argument="how", hint="look elsewhere"
            )
        case "abort":
            os.abort()
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            sys.exit(3)
        case "hard_exit":
            os._exit(3)
        case "memory":
            # Refused at once: filled pages would take time of a busy machine.
            return Number(value=len(bytearray(2**40)))
        case "big_result":
            return Number(value=0, notes=("x" * 2**25,))
        case "big_artifact":
            return Big(value=0, figure=save_artifact("big.png", "plot", bytes(300 * 2**20)))
        case "wrong_type":
            return {"value": 1}  # pyright: ignore[reportReturnType]
    return Number(value=float("nan"))


@tool(category="general")
def hang(
    how: Annotated[Literal["sleep", "spin", "child", "c"], Field(description="in which way")],
    pid_file: Annotated[str, Field(description="where to leave process ids")] = "",
) -> Empty:
    """Never come back."""
    if pid_file:
        Path(pid_file).write_text(str(os.getpid()))
    if how == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(pid_file).write_text(str(child.pid))
    while how == "spin":
        pass
    if how == "c":
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        ctypes.PyDLL(None).sleep(
            600
        )  # keeps Python's lock: no thread and no handler of this process runs
    time.sleep(600)
    return Empty()


LEAKED: list[bytearray] = []


@tool(category="general")
def keep_memory() -> Empty:
    """Succeed, and leave memory taken."""
    LEAKED.append(bytearray(600 * 2**20))
    return Empty()


@tool(category="general")
def weigh(
    size_mb: Annotated[int, Field(ge=1, description="megabytes to take and give back")],
) -> Number:
    """Need memory for a moment."""
    return Number(value=len(bytearray(size_mb * 2**20)) / 2**20)


@tool(category="general")
def read_raster() -> Empty:
    """Import what a plain installation lacks, without saying so in its declaration."""
    raise ModuleNotFoundError("No module named 'rasterio'", name="rasterio")


ALL = (environment, look, echo, shout, fail, hang, keep_memory, weigh, read_raster)
BY_NAME: dict[str, Tool] = {made.name: made for made in ALL}
