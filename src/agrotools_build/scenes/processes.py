"""Processes that draw scenes, for callers that do not import the drawing code, and the looks of drawn files.

They use neither AVX nor fused multiply-add, so that all x86-64 processors round alike and draw the same pixels. This
costs a tenth of the time.
"""

import hashlib
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson

from agrotools.core import FrozenModel, InfrastructureError
from agrotools.core.libraries import require_libraries
from agrotools.core.processes import STOP_SIGNALS, kill_process

if TYPE_CHECKING:
    from agrotools_build.scenes.scene import Difficulty

T = TypeVar("T")
RECORD_FILE = "record.json"
_PARTS = 6
_ROUNDING = 0.01
_WORKER = f"""
import signal
for number in {[*map(int, STOP_SIGNALS)]}:
    signal.signal(number, signal.SIG_IGN)  # they are for the parent, which ends its workers
from agrotools_build.sources.drawn.drawing import draw_orders
draw_orders()
"""


@dataclass(frozen=True)
class Order:
    """A subject of the kind ``name`` to be drawn; ``files``: the files to draw alone, empty for all and the record."""

    name: str
    seed: int
    difficulty: "Difficulty"
    files: tuple[str, ...] = ()


def read_record(place: Path) -> dict[str, Any]:
    """Return the truth of the scene in ``place``; if only some files were drawn, the looks of these by name."""
    return orjson.loads((place / RECORD_FILE).read_bytes())


def each_finished(
    draw: Callable[[T], object], items: Sequence[T], workers: int, stop: Callable[[], None]
) -> Iterator[T]:
    """Call ``draw`` for each item in ``workers`` threads and yield the items as they finish; then call ``stop``."""
    pool = ThreadPoolExecutor(max(1, min(workers, len(items))))
    try:
        pending = {pool.submit(draw, item): item for item in items}
        for finished in as_completed(pending):
            finished.result()
            yield pending[finished]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        stop()
        pool.shutdown()


class DrawingProcesses:
    """Processes that draw scenes, one for each thread that asks at the same time: fresh interpreters.

    Pictures must not depend on what the caller has imported or seeded, and its script must not be run again.
    """

    def __init__(self) -> None:
        self._started: list[Popen[str]] = []
        self._idle: list[Popen[str]] = []
        self.close = weakref.finalize(self, _end, self._started)

    def draw(self, order: Order, place: Path) -> None:
        """Draw an order into the folder ``place``; OSError if the disk fails, MissingLibraryError without the extra
        ``tools``, else InfrastructureError."""
        line, reply, is_new = (
            orjson.dumps({**asdict(order), "place": str(place)}).decode(),
            "",
            False,
        )
        while not (reply or is_new):  # one that has waited for long may have ended
            try:
                worker = self._idle.pop()
            except IndexError:
                worker, is_new = self._start(), True
            assert worker.stdout is not None
            with suppress(BrokenPipeError):  # A missing reply is treated as the end of the worker.
                print(line, file=worker.stdin, flush=True)
            if reply := worker.stdout.readline():
                self._idle.append(worker)
        fault, number = orjson.loads(reply) if reply else ("the process ended", None)
        if number is not None:
            raise OSError(number, fault)
        if fault:
            raise InfrastructureError(
                f"a scene could not be drawn: {order.name}, seed {order.seed}: {fault}",
                hint="run it again: finished scenes are kept",
            )

    def _start(self) -> Popen[str]:
        require_libraries("drawing scenes")
        command, environment = (
            [sys.executable, "-c", _WORKER],
            {**os.environ, **_plain_arithmetic()},
        )
        worker = Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment)
        self._started.append(worker)
        return worker


def _end(workers: Sequence[Popen[str]]) -> None:
    for worker in workers:
        kill_process(worker)
    for worker in workers:
        worker.communicate()


def _plain_arithmetic() -> dict[str, str]:
    """Return the environment in which numpy, OpenCV, BLAS and the C library use the same instructions everywhere."""
    core = import_module("numpy._core._multiarray_umath")
    widest = (
        ",AVX512-SKX" if getattr(core, "__cpu_features__", {}).get("AVX512_SKX", True) else ""
    )  # else it complains

    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(getattr(core, "__cpu_dispatch__", ())),
        "OPENCV_CPU_DISABLE": f"SSE4.1,SSE4.2,AVX,FP16,AVX2,FMA3{widest}",
        "OPENCV_IPP": "disabled",
        "OPENCV_FOR_THREADS_NUM": "1",
        "OPENCV_LOG_LEVEL": "ERROR",
        "OPENBLAS_CORETYPE": "Nehalem",
        "OPENBLAS_NUM_THREADS": "1",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
    }


class Look(FrozenModel):
    """The decoded pixels of a file: their hash, and a coarse picture to tell rounding from another picture.

    ``blocks``: mean of each of 6 by 6 parts over all bands, as hexadecimal bytes, 255 for the ``brightest``.
    """

    pixels: str
    blocks: str
    brightest: float

    def resembles(self, other: "Look") -> bool:
        """Return True if no part differs by more than 1 % of the brightest: the same picture, rounded otherwise."""
        mine, others = (
            np.frombuffer(bytes.fromhex(one.blocks), np.uint8) * one.brightest
            for one in (self, other)
        )
        most = _ROUNDING * max(self.brightest, other.brightest)
        return len(mine) == len(others) and float(np.abs(mine - others).max()) <= 255 * most


def look_of(path: Path) -> Look:
    """Read a file of a drawn scene and return its look."""
    if path.suffix == ".tif":
        import rasterio

        with (
            warnings.catch_warnings(action="ignore"),
            rasterio.open(path) as raster,
        ):  # not every one is at a place
            pixels = np.moveaxis(raster.read(), 0, -1)
    else:
        from PIL import Image

        with Image.open(path) as picture:
            pixels = np.atleast_3d(np.asarray(picture))
    described = f"{pixels.shape} {pixels.dtype.newbyteorder('<').str}".encode()
    digest = hashlib.sha256(
        described + np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("<"))).tobytes()
    )
    plane = np.maximum(pixels.mean(axis=2, dtype=np.float64), 0.0)
    parts = [
        part.mean()
        for rows in np.array_split(plane, _PARTS)
        for part in np.array_split(rows, _PARTS, axis=1)
    ]
    brightest = max(*parts, 1e-9)
    blocks = np.round(np.array(parts) * (255 / brightest)).astype(np.uint8).tobytes().hex()
    return Look(pixels=digest.hexdigest(), blocks=blocks, brightest=float(f"{brightest:.6g}"))
