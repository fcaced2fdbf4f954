"""Pairs of two dates with a map of what changed, read from snapshots of public repositories (``change_pairs.toml``).

Part of ``measure_deep_change.py``.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from field_sources.snapshot import Snapshot, find_snapshot
from numpy.typing import NDArray
from PIL import Image

LIST = Path(__file__).with_name("change_pairs.toml")
TILE_PX = 96
"""Side of a tile that is cut out where nothing changed, pixels."""


@dataclass(frozen=True)
class Pair:
    """Two dates of one place, uint8 (rows, columns, 3). ``changed``: the truth, bool (rows, columns). ``labelled``:
    where the truth says anything."""

    source: str
    half: str
    name: str
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    changed: NDArray[np.bool_]
    labelled: NDArray[np.bool_]


def read_pairs(snapshots: Path) -> Iterator[Pair]:
    """Read all listed pairs from git directories below ``snapshots``."""
    for source in tomllib.loads(LIST.read_text())["source"]:
        git_dir = find_snapshot(snapshots, source["repo"])
        if git_dir is None:
            raise SystemExit(f"no git directory of {source['repo']} below {snapshots}")
        snapshot = Snapshot(git_dir, source["repo"], source["commit"])
        for name, pictures in _pictures(source, snapshot):
            yield _pair(source, name, pictures)


def _pictures(
    source: dict[str, Any], snapshot: Snapshot
) -> Iterator[tuple[str, list[Image.Image]]]:
    """Return name, before, after, truth and, where there is one, the picture of the unchanged pixels."""
    if "folders" in source:
        for path in snapshot.paths(source["folders"][-1] + "/", ".png"):
            name = path.rpartition("/")[2]
            files = [f"{folder}/{name}" for folder in source["folders"]]
            yield name, [snapshot.picture(file) for file in files]
    for files in source.get("files", ()):
        yield files[0].rpartition("/")[2], [snapshot.picture(file) for file in files]
    if "figure" in source:
        figure = snapshot.picture(source["figure"])
        for number, panels in enumerate(source["panels"]):
            yield str(number), [_panel(source, figure, *panel) for panel in panels]


def _panel(source: dict[str, Any], figure: Image.Image, column: int, row: int) -> Image.Image:
    (left, right), (top, bottom) = source["x"][column], source["y"][row]
    return figure.crop((left, top, right, bottom))


def _pair(source: dict[str, Any], name: str, pictures: list[Image.Image]) -> Pair:
    before, after, truth = (np.asarray(picture.convert("RGB")) for picture in pictures[:3])
    high, low = truth.max(axis=-1), truth.min(axis=-1)
    is_red = (truth[..., 0] > 128) & (truth[..., 1] < 128)
    changed = {"light": low > 127, "not white": low < 200, "red": is_red}[source["changed"]]
    labelled = np.ones_like(changed)
    if source["changed"] == "red":
        labelled = is_red | (high < 128)
    if len(pictures) > 3:
        labelled = changed | (np.asarray(pictures[3].convert("L")) > 127)
    return Pair(source["name"], source["half"], name, before, after, changed, labelled)


def unchanged_tiles(pair: Pair) -> Iterator[Pair]:
    """Cut out the tiles of a pair in which all pixels are labelled and none changed."""
    rows, columns = pair.changed.shape
    for top in range(0, rows - TILE_PX + 1, TILE_PX):
        for left in range(0, columns - TILE_PX + 1, TILE_PX):
            part = np.s_[top : top + TILE_PX, left : left + TILE_PX]
            if pair.labelled[part].all() and not pair.changed[part].any():
                yield Pair(
                    pair.source,
                    pair.half,
                    f"{pair.name} at {left},{top}",
                    np.ascontiguousarray(pair.before[part]),
                    np.ascontiguousarray(pair.after[part]),
                    pair.changed[part],
                    pair.labelled[part],
                )
