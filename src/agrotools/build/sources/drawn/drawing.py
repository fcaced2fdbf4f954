"""The kinds of drawn scenes, and drawing in parallel; scenes finished before an interruption are not drawn again.

Scenes are drawn by processes that use neither AVX nor fused multiply-add, so that all x86-64 processors round alike and
draw the same pixels. This costs a tenth of the time.
"""

import hashlib
import os
import re
import shutil
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, TypeVar

import orjson

import agrotools.build
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.sources.drawn import (
    DrawnScene,
    SceneKind,
    every_file,
    fruit,
    leaf_lesions,
    pairs,
    pots,
    rows,
    trees,
)
from agrotools.build.sources.drawn.saving import can_be_blank, look_of, save_blank
from agrotools.build.sources.part import Originals
from agrotools.build.templates.thing import Subject
from agrotools.core import InfrastructureError, SampleFile
from agrotools.core.base import Progress
from agrotools.core.interrupts import STOP_SIGNALS

T = TypeVar("T")
SCENE_KINDS: Mapping[str, SceneKind] = {
    "blocks": trees.BLOCKS,
    "tracts": trees.TRACTS,
    "farmland_aerial": pairs.FARMLAND_AERIAL,
    "farmland_satellite": pairs.FARMLAND_SATELLITE,
    "pond_pairs": pairs.PONDS,
    "apples": fruit.APPLES,
    "fruit_counts": fruit.FRUIT_COUNTS,
    "leaf_lesions": leaf_lesions.LEAF_LESIONS,
    "pots": pots.POTS,
    "rows": rows.ROWS,
}
_RECORD = "record.json"
_BLANK = "blank_"
"""Prefix of the name of a file that holds nothing and takes the place of another one."""
_SHARED_BY_SCENES = ("sources/drawn/saving.py", "sources/tables.toml", "scenes/kinds.toml", "scenes/levels.toml")
_WORKER = f"""
import signal
for number in {[*map(int, STOP_SIGNALS)]}:
    signal.signal(number, signal.SIG_IGN)  # they are for the parent, which ends its workers
from {__name__} import _work
_work()
"""
_SCENES_IMPORT = re.compile(rb"agrotools\.build\.scenes\.(\w+) import")


@dataclass(frozen=True)
class Order:
    """A subject to be drawn; ``name`` is its kind in :data:`SCENE_KINDS`.

    ``files``: the files to draw alone; empty: all files, and the record of the scene.
    """

    name: str
    seed: int
    difficulty: Difficulty
    files: tuple[str, ...] = ()


def draw_all(orders: Sequence[Order], folder: Path, progress: Progress, workers: int = 2) -> list[DrawnScene]:
    """Draw each order into a separate subfolder of ``folder``; scenes finished by an earlier run are reused.

    Raises:
        OSError: ``folder`` cannot be written.
        InfrastructureError: a scene cannot be drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = {order: folder / f"{order.name}-{order.difficulty}-{order.seed}-{_code(order.name)}" for order in orders}
    missing = [order for order, place in places.items() if not (place / _RECORD).is_file()]
    finished = len(places) - len(missing)
    progress("scenes", finished, len(places))
    for _ in draw_each({order: places[order] for order in missing}, workers):
        finished += 1
        progress("scenes", finished, len(places))
    return [
        DrawnScene(order.name, order.seed, order.difficulty, place, read_record(place))
        for order, place in places.items()
    ]


def subjects_of(scene: DrawnScene, originals: Originals) -> list[Subject]:
    """Return the subjects of a scene, with blank files to show in place of others."""

    def blank(file: SampleFile) -> SampleFile | None:
        drawn = originals.files[file.path]
        if not can_be_blank(drawn, file.kind):
            return None
        path = drawn.with_name(f"{_BLANK}{drawn.name}")
        if not path.exists():
            save_blank(path, drawn, scene.seed)
        stored = originals.file(path)
        return file.model_copy(update={"path": stored.path, "sha256": stored.sha256})

    return [replace(subject, blank=blank) for subject in SCENE_KINDS[scene.name].subjects(scene, originals)]


def read_record(place: Path) -> dict[str, Any]:
    """Return the truth of the scene in ``place``; if only some files were drawn, the looks of these by name."""
    return orjson.loads((place / _RECORD).read_bytes())


def draw_each(places: Mapping[Order, Path], workers: int = 2) -> Iterator[Order]:
    """Draw each order into its folder, in one of ``workers`` processes, and yield the orders as they finish.

    Raises:
        OSError: a folder cannot be written.
        InfrastructureError: a scene cannot be drawn.
    """
    processes = DrawingProcesses()
    yield from each_finished(lambda order: processes.draw(order, places[order]), [*places], workers, processes.close)


def each_finished(
    draw: Callable[[T], object], items: Sequence[T], workers: int, stop: Callable[[], None]
) -> Iterator[T]:
    """Call ``draw`` for each item in ``workers`` threads and yield the items as they finish.

    ``stop`` is called at the end, also at an early one, and ends what a thread waits for.
    """
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
    """Processes that draw scenes: one for each thread that asks at the same time, kept for the next scene.

    They are fresh interpreters that only import the drawing code, because pictures must not depend on what the caller
    has imported or seeded, and the caller's script must not be run again.
    """

    def __init__(self) -> None:
        self._started: list[Popen[str]] = []
        self._idle: list[Popen[str]] = []
        self.close = weakref.finalize(self, _end, self._started)

    def draw(self, order: Order, place: Path) -> None:
        """Draw an order into the folder ``place``.

        Raises:
            OSError: the folder cannot be written.
            InfrastructureError: the scene cannot be drawn.
        """
        try:
            worker = self._idle.pop()
        except IndexError:
            command, environment = [sys.executable, "-c", _WORKER], {**os.environ, **_plain_arithmetic()}
            worker = Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment)
            self._started.append(worker)
        assert worker.stdout is not None
        with suppress(BrokenPipeError):  # A missing reply is treated as the end of the worker.
            print(orjson.dumps({**asdict(order), "place": str(place)}).decode(), file=worker.stdin, flush=True)
        reply = worker.stdout.readline()
        fault, number = orjson.loads(reply) if reply else ("the process ended", None)
        if reply:
            self._idle.append(worker)
        if number is not None:
            raise OSError(number, fault)
        if fault:
            raise InfrastructureError(
                f"a scene could not be drawn: {order.name}, seed {order.seed}: {fault}",
                hint="try again; what is drawn is kept",
            )


def _end(workers: Sequence[Popen[str]]) -> None:
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.communicate()


def _plain_arithmetic() -> dict[str, str]:
    """Return the environment in which numpy, OpenCV, BLAS and the C library use the same instructions everywhere."""
    core = import_module("numpy._core._multiarray_umath")
    widest = ",AVX512-SKX" if getattr(core, "__cpu_features__", {}).get("AVX512_SKX", True) else ""  # else it complains

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


def _work() -> None:
    """Draw the orders on stdin, one per line, until it ends, and print a fault and its error number for each."""
    for line in sys.stdin:
        order = orjson.loads(line)
        reply: tuple[str, int | None] = "", None
        try:
            _draw(Order(order["name"], order["seed"], order["difficulty"], tuple(order["files"])), Path(order["place"]))
        except OSError as error:
            reply = error.strerror or str(error), error.errno
        except Exception as error:
            reply = f"{type(error).__name__}: {error}", None
        sys.stdout.write(f"{orjson.dumps(reply).decode()}\n")
        sys.stdout.flush()


def _draw(order: Order, place: Path) -> None:
    """Draw an order. The record is written last and atomically, so a folder that has one is complete."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    needed = {*order.files, *(name.removeprefix(_BLANK) for name in order.files)}
    record = SCENE_KINDS[order.name].draw(
        order.seed, order.difficulty, place, needed.__contains__ if order.files else every_file
    )
    if order.files:
        for name in order.files:
            if name.startswith(_BLANK):
                save_blank(place / name, place / name.removeprefix(_BLANK), order.seed)
        for path in [path for path in place.iterdir() if path.name not in order.files]:
            path.unlink()
        record = {name: look_of(place / name).model_dump() for name in order.files}
    unfinished = place / f".{_RECORD}"
    unfinished.write_bytes(orjson.dumps(record))
    unfinished.replace(place / _RECORD)


@cache
def _code(name: str) -> str:
    """Return ten hexadecimal digits that change with the code that draws this kind of scene."""
    if name not in SCENE_KINDS:
        raise InfrastructureError(f"there are no drawn scenes {name!r}", hint=f"known: {', '.join(SCENE_KINDS)}")
    draw = SCENE_KINDS[name].draw
    folder = Path(agrotools.build.__path__[0])
    module = getattr(draw, "func", draw).__module__.removeprefix("agrotools.build.").replace(".", "/")
    pending = {folder / f"{module}.py", *(folder / name for name in _SHARED_BY_SCENES)}
    contents: dict[Path, bytes] = {}
    while pending:
        file = pending.pop()
        contents[file] = file.read_bytes()
        used = {folder / "scenes" / f"{scenes.decode()}.py" for scenes in _SCENES_IMPORT.findall(contents[file])}
        pending |= used - contents.keys()
    return hashlib.sha256(b"".join(contents[file] for file in sorted(contents))).hexdigest()[:10]
