"""The kinds of drawn scenes, and drawing in parallel; scenes finished before an interruption are not drawn again."""

import hashlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from subprocess import PIPE, Popen

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
from agrotools.core import InfrastructureError
from agrotools.core.base import Progress

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
_DONE = "drawn"


@dataclass(frozen=True)
class Order:
    """A subject to be drawn; ``name`` is its kind in :data:`SCENE_KINDS`."""

    name: str
    seed: int
    difficulty: Difficulty


def draw_all(orders: Sequence[Order], folder: Path, progress: Progress, workers: int = 2) -> list[DrawnScene]:
    """Draw each order into a separate subfolder of ``folder``; scenes finished by an earlier run are reused.

    Raises:
        OSError: ``folder`` cannot be written.
        InfrastructureError: a scene cannot be drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = {order: folder / f"{order.name}-{order.difficulty}-{order.seed}-{_code()}" for order in orders}
    missing = [order for order, place in places.items() if not (place / _RECORD).is_file()]
    finished = len(places) - len(missing)
    progress("scenes", finished, len(places))
    for _ in _finished(missing, places, workers):
        finished += 1
        progress("scenes", finished, len(places))
    return [
        DrawnScene(order.name, order.seed, order.difficulty, place, orjson.loads((place / _RECORD).read_bytes()))
        for order, place in places.items()
    ]


def _finished(missing: Sequence[Order], places: Mapping[Order, Path], workers: int) -> Iterator[Order]:
    """Yield the orders as they finish, each drawn in one of ``workers`` processes.

    Workers are fresh interpreters that only import the drawing code, because pictures must not depend on what the
    caller has imported or seeded, and the caller's script must not be run again.
    """
    command = [sys.executable, "-m", __spec__.name]
    everyone = [Popen(command, stdin=PIPE, stdout=PIPE, text=True) for _ in range(min(workers, len(missing)))]
    idle: SimpleQueue[Popen[str]] = SimpleQueue()
    for worker in everyone:
        idle.put(worker)

    def draw(order: Order) -> Order:
        worker = idle.get()
        assert worker.stdout is not None
        with suppress(BrokenPipeError):  # A missing reply is treated as the end of the worker.
            line = orjson.dumps({**asdict(order), "place": str(places[order])}).decode()
            print(line, file=worker.stdin, flush=True)
        reply = worker.stdout.readline().strip()
        idle.put(worker)
        if reply != _DONE:
            raise InfrastructureError(
                f"a scene could not be drawn: {order.name}, seed {order.seed}: {reply or 'the process ended'}",
                hint="try again; what is drawn is kept",
            )
        return order

    pool = ThreadPoolExecutor(max(1, len(everyone)))
    try:
        for finished in as_completed([pool.submit(draw, order) for order in missing]):
            yield finished.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in everyone:
            worker.kill()
        pool.shutdown()
        for worker in everyone:
            worker.communicate()


def _work() -> None:
    """Draw the orders on stdin, one per line, until it ends."""
    for line in sys.stdin:
        order = orjson.loads(line)
        try:
            _draw(Order(order["name"], order["seed"], order["difficulty"]), Path(order["place"]))
            reply = _DONE
        except Exception as error:
            reply = f"{type(error).__name__}: {error}".replace("\n", " ")
        sys.stdout.write(f"{reply}\n")
        sys.stdout.flush()


def _draw(order: Order, place: Path) -> None:
    """Draw an order. The record is written last and atomically, so a folder that has one is complete."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    record = SCENE_KINDS[order.name].draw(order.seed, order.difficulty, place, every_file)
    unfinished = place / f".{_RECORD}"
    unfinished.write_bytes(orjson.dumps(record))
    unfinished.replace(place / _RECORD)


@cache
def _code() -> str:
    """Return ten hexadecimal digits that change with the drawing code."""
    digest = hashlib.sha256()
    root = Path(agrotools.build.__path__[0])
    for part in ("scenes", "sources/drawn"):
        for file in sorted((root / part).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:10]


if __name__ == "__main__":
    _work()
