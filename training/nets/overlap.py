"""No training picture may be a test picture: the guard that every recipe runs before it trains.

    python training/nets/overlap.py --pool ../shared/train --test-data ../shared/data

A picture of the pool offends if it shares its photograph's name with a test picture of the same repository, or if the
64-bit perceptual hash (signs of the 8 x 8 lowest frequencies of a discrete cosine transform against their median;
Zauner 2010) of the test picture, in any of its eight orientations, lies within Hamming distance 6 of its own.
"""

import argparse
import csv
import io
import json
import logging
import math
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

MAX_DISTANCE = 6
SIDE, KEPT = 32, 8
PICTURES = {".jpg", ".jpeg", ".png", ".webp"}
TILE = re.compile(r"_\d{1,2}$")
"""Ends the name of a tile cut from a photograph."""
TILED = ("AppleBBCH", "Pear640", "CherryBBCH")
"""Repositories whose pictures are such tiles."""
LEFT_OUT = {"leaf_disease/coffee__rust__dfea1d1493.jpg"}
"""Pictures of the pool that no recipe reads: by their hash they might be a test picture."""
log = logging.getLogger("overlap")


class OverlapError(Exception):
    """A picture of the pool is, or may be, a picture that the tools are tested on."""


@dataclass(frozen=True)
class Hashed:
    """``names``: (repository, name of photograph) pairs; ``hashes``: uint64 of one or of eight orientations."""

    where: str
    names: frozenset[tuple[str, str]]
    hashes: tuple[int, ...]


def cosines() -> np.ndarray:
    """The first rows of the orthonormal type-II transform of ``SIDE`` points."""
    k, n = np.mgrid[:KEPT, :SIDE]
    rows = np.cos(math.pi * k * (2 * n + 1) / (2 * SIDE)) * math.sqrt(2 / SIDE)
    rows[0] /= math.sqrt(2)
    return rows


COSINES = cosines()
BITS = np.uint64(1) << np.arange(KEPT * KEPT, dtype=np.uint64)


def hash_of(grey: np.ndarray) -> int:
    """Of a (32, 32) grey picture."""
    low = (COSINES @ grey @ COSINES.T).ravel()
    return int(BITS[low > np.median(low[1:])].sum())


def small_grey(picture: Image.Image) -> np.ndarray:
    picture.draft("L", (4 * SIDE, 4 * SIDE))
    grey = picture.convert("RGB").convert("L")
    return np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.LANCZOS), float)


def orientations(grey: np.ndarray) -> Iterator[np.ndarray]:
    for flipped in (grey, grey[:, ::-1]):
        for turns in range(4):
            yield np.rot90(flipped, turns)


def photo_names(repository: str, path: str, group: str = "") -> frozenset[tuple[str, str]]:
    """Names by which a picture's photograph may be known: of the file, of the file less a tile's number, of its
    group (in some pools the photograph or the leaf)."""
    stem = Path(path).stem
    names = {stem, group.rsplit("/", 1)[-1]} - {""}
    if any(word in repository for word in TILED):
        names.add(TILE.sub("", stem))
    return frozenset((repository.lower(), name.lower()) for name in names)


def pool_rows(folder: Path) -> list[dict[str, str]]:
    table = folder / "labels.csv"
    if table.exists():
        with table.open(newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]


def pool_hashes(folder: Path) -> list[Hashed]:
    """Of every picture in a task's folder of the pool."""
    archive = next(folder.glob("images*.zip"))
    found: list[Hashed] = []
    with zipfile.ZipFile(archive) as file:
        for row in pool_rows(folder):
            if f"{folder.name}/{row['image']}" in LEFT_OUT:
                continue
            repository, _, path = row["source"].partition(":")
            with Image.open(io.BytesIO(file.read(row["image"]))) as picture:
                value = hash_of(small_grey(picture))
            names = photo_names(repository, path, "" if folder.name == "weeds" else row["group"])
            found.append(Hashed(f"{folder.name}/{row['image']}", names, (value,)))
    return found


def test_hashes(data: Path) -> list[Hashed]:
    """Of every picture below the folder of test data, masks and depth left out; names from each ``truth.json``."""
    names: dict[Path, frozenset[tuple[str, str]]] = {}
    for truth in data.glob("*/truth.json"):
        items = json.loads(truth.read_text())
        for item in items if isinstance(items, list) else []:
            source = item.get("source")
            files = [truth.parent / value for value in item.values() if isinstance(value, str)]
            if isinstance(source, dict) and "repo" in source:
                paths = [
                    path
                    for path in source.get("paths", [])
                    if Path(path).suffix.lower() in PICTURES
                ]
                known = frozenset().union(*(photo_names(source["repo"], path) for path in paths))
                names.update((file, known) for file in files if file.suffix.lower() in PICTURES)
    found: list[Hashed] = []
    for path in sorted(data.rglob("*")):
        if path.suffix.lower() not in PICTURES or path.parent.name in {"masks", "depth"}:
            continue
        try:
            with Image.open(path) as picture:
                grey = small_grey(picture)
        except (UnidentifiedImageError, OSError):
            log.warning("not read, so not compared by its look: %s", path)
            found.append(Hashed(str(path.relative_to(data)), names.get(path, frozenset()), ()))
            continue
        values = tuple(hash_of(turned) for turned in orientations(grey))
        found.append(Hashed(str(path.relative_to(data)), names.get(path, frozenset()), values))
    return found


def offences(
    pool: Sequence[Hashed], tests: Sequence[Hashed], most: int = MAX_DISTANCE
) -> list[str]:
    """A line for each pair that shares a photograph or looks alike."""
    lines: list[str] = []
    known = {name: test.where for test in tests for name in test.names}
    for picture in pool:
        lines.extend(
            f"{picture.where} shares its photograph {name[1]} with test picture {known[name]}"
            for name in sorted(picture.names & known.keys())
        )
    ours = np.array([picture.hashes[0] for picture in pool], np.uint64)
    for test in tests:
        if not test.hashes or not len(ours):
            continue
        each = np.array(test.hashes, np.uint64)
        distance = np.bitwise_count(ours[:, None] ^ each[None, :]).min(axis=1)
        lines.extend(
            f"{pool[place].where} looks like test picture {test.where} (distance {distance[place]})"
            for place in np.flatnonzero(distance <= most)
        )
    return lines


def refuse_overlap(folders: Sequence[Path], data: Path) -> dict[str, int]:
    """Numbers compared, or ``OverlapError`` that names every offending pair."""
    tests = test_hashes(data)
    if not tests:
        raise OverlapError(
            f"{data} holds no test picture to compare with: give the folder of the test data"
        )
    pool = [picture for folder in folders for picture in pool_hashes(folder)]
    found = offences(pool, tests)
    if found:
        raise OverlapError(
            f"{len(found)} pairs of pool and test pictures overlap:\n" + "\n".join(found)
        )
    log.info(
        "no overlap: %d pool pictures, %d test pictures in eight orientations",
        len(pool),
        len(tests),
    )
    return {
        "pool_pictures": len(pool),
        "test_pictures": len(tests),
        "hash_distance_over": MAX_DISTANCE,
    }


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description="Fail if a picture of the pool is a test picture.")
    parser.add_argument(
        "--pool", type=Path, required=True, help="a task's folder of the pool, or the pool itself"
    )
    parser.add_argument("--test-data", type=Path, required=True, help="folder of the test data")
    options = parser.parse_args()
    folders = (
        [options.pool]
        if next(options.pool.glob("labels.*"), None)
        else sorted(options.pool.iterdir())
    )
    try:
        refuse_overlap([folder for folder in folders if folder.is_dir()], options.test_data)
    except OverlapError as error:
        log.error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
