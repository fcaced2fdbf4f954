"""The kinds of drawn scenes, and drawing in parallel; scenes finished before an interruption are not drawn again."""

import errno
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from select import select

import orjson

import agrotools_build
from agrotools.core import InfrastructureError, SampleFile
from agrotools.core.progress import Progress
from agrotools_build.scenes.processes import (
    RECORD_FILE,
    DrawingProcesses,
    Order,
    each_finished,
    look_of,
    read_record,
)
from agrotools_build.sources.drawn import (
    DrawnScene,
    SceneKind,
    can_be_blank,
    every_file,
    fruit,
    land,
    plants,
    rows,
    save_blank,
)
from agrotools_build.sources.part import Originals
from agrotools_build.templates.thing import Subject

SCENE_KINDS: Mapping[str, SceneKind] = {
    "blocks": land.BLOCKS,
    "tracts": land.TRACTS,
    "farmland_aerial": land.FARMLAND_AERIAL,
    "farmland_satellite": land.FARMLAND_SATELLITE,
    "pond_pairs": land.PONDS,
    "apples": fruit.APPLES,
    "fruit_counts": fruit.FRUIT_COUNTS,
    "leaf_lesions": plants.LEAF_LESIONS,
    "pots": plants.POTS,
    "rows": rows.ROWS,
}
_BLANK = "blank_"
"""Prefix of the name of a file that holds nothing and takes the place of another one."""
_SHARED_BY_SCENES = (
    "sources/drawn/__init__.py",
    "sources/tables.toml",
    "scenes/kinds.toml",
    "scenes/levels.toml",
)
_FULL_BELOW, _KEPT_S = 1 << 20, 60.0
_SCENES_IMPORT = re.compile(rb"agrotools_build\.scenes\.(\w+) import")


def draw_all(
    orders: Sequence[Order], folder: Path, progress: Progress, workers: int = 2
) -> list[DrawnScene]:
    """Draw each order into a subfolder of ``folder`` unless an earlier run did; errors as in :func:`draw_each`."""
    folder.mkdir(parents=True, exist_ok=True)
    places = {
        order: folder / f"{order.name}-{order.difficulty}-{order.seed}-{_code(order.name)}"
        for order in orders
    }
    missing = [order for order, place in places.items() if not (place / RECORD_FILE).is_file()]
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

    return [
        replace(subject, blank=blank)
        for subject in SCENE_KINDS[scene.name].subjects(scene, originals)
    ]


def draw_each(places: Mapping[Order, Path], workers: int = 2) -> Iterator[Order]:
    """Draw each order into its folder, in one of ``workers`` processes, and yield the orders as they finish.

    Raises OSError if a folder cannot be written, and InfrastructureError if a scene cannot be drawn.
    """
    processes = DrawingProcesses()
    yield from each_finished(
        lambda order: processes.draw(order, places[order]), [*places], workers, processes.close
    )


def draw_orders() -> None:
    """Draw the orders on stdin, one per line, until none comes for a while; print fault and error number of each."""
    while select([sys.stdin], [], [], _KEPT_S)[0] and (line := sys.stdin.readline()):
        order = orjson.loads(line)
        reply: tuple[str, int | None] = "", None
        try:
            _draw(
                Order(order["name"], order["seed"], order["difficulty"], tuple(order["files"])),
                Path(order["place"]),
            )
        except OSError as error:
            # Pillow notices only later that a full disk has cut a file, and names no error number.
            is_full = shutil.disk_usage(Path(order["place"]).parent).free < _FULL_BELOW
            number = error.errno or (errno.ENOSPC if is_full else errno.EIO)
            reply = error.strerror or (os.strerror(number) if is_full else str(error)), number
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
    unfinished = place / f".{RECORD_FILE}"
    unfinished.write_bytes(orjson.dumps(record))
    unfinished.replace(place / RECORD_FILE)


@cache
def _code(name: str) -> str:
    """Return ten hexadecimal digits that change with the code that draws this kind of scene."""
    if name not in SCENE_KINDS:
        raise InfrastructureError(
            f"there are no drawn scenes {name!r}", hint=f"known: {', '.join(SCENE_KINDS)}"
        )
    draw = SCENE_KINDS[name].draw
    folder = Path(agrotools_build.__path__[0])
    module = (
        getattr(draw, "func", draw).__module__.removeprefix("agrotools_build.").replace(".", "/")
    )
    pending = {folder / f"{module}.py", *(folder / name for name in _SHARED_BY_SCENES)}
    contents: dict[Path, bytes] = {}
    while pending:
        file = pending.pop()
        contents[file] = file.read_bytes()
        used = {
            folder / "scenes" / f"{scenes.decode()}.py"
            for scenes in _SCENES_IMPORT.findall(contents[file])
        }
        pending |= used - contents.keys()
    return hashlib.sha256(b"".join(contents[file] for file in sorted(contents))).hexdigest()[:10]
