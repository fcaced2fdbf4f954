"""The tiles of WeedMap as they lie in files: channels, labels in two forms, masks whose meaning the pictures tell."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agrotools.build.sources.public.layout import find_root
from agrotools.core import BenchmarkError

GET_IT = (
    "get the tiles of WeedMap from the ETH Research Collection (doi.org/10.3929/ethz-c-000788571), so that the folders"
    " RedEdge/003 and Sequoia/005 hold groundtruth, mask and tile; one of the two is enough"
)
MAPS: Mapping[str, tuple[str, ...]] = {"003": ("B", "G", "R", "RE", "NIR"), "005": ("G", "R", "RE", "NIR")}
"""Maps of the test part and the channels of their cameras, RedEdge and Sequoia."""
COLOURS = {(0, 0, 0): 0, (0, 255, 0): 1, (255, 0, 0): 2}
"""Of the coloured labels: other, crop, weed."""
NUMBERS = {0: 0, 10000: 1, 2: 2}
"""Of the numbered labels, which say the same in 16 bits."""
_MOST_PX = 4_000_000
"""Of a tile; the authors' have 480 x 360."""
_TILES_LOOKED_AT = 24
"""By which it is decided whether white or black in a map's masks stands for data."""
_FITS_MAP = 0.9

Classes = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tile:
    """``classes`` 0 other, 1 crop, 2 weed; ``white``: where its mask is; ``channels``: files in the map's order."""

    map: str
    frame: str
    channels: tuple[Path, ...]
    classes: Classes
    white: Mask


def maps_in(folder: Path) -> dict[str, Path]:
    """Folders of the maps that are there, by name.

    Raises:
        BenchmarkError: there is none.
    """
    found: dict[str, Path] = {}
    for name in MAPS:
        markers = [f"{name}/{part}" for part in ("tile", "groundtruth", "mask")]
        with suppress(BenchmarkError):
            found[name] = find_root(folder, markers, get_it=GET_IT) / name
    if not found:
        raise BenchmarkError(f"{folder} has no tiles of map {' or '.join(MAPS)}", hint=GET_IT)
    return found


def tiles_of(root: Path, name: str, dropped: Counter[str]) -> list[Tile]:
    """The tiles of a map in which something grows; the others are counted in ``dropped`` by reason.

    Raises:
        BenchmarkError: in most tiles the two kinds of labels contradict each other.
    """
    tiles: list[Tile] = []
    odd: list[str] = []
    read_in_all = 0
    for path in sorted((root / "groundtruth").iterdir()):
        match = re.fullmatch(rf"{name}_(frame\d+)_GroundTruth_color\.png", path.name)
        if match is None:
            continue
        frame = match[1]
        channels = tuple(root / "tile" / channel / f"{frame}.png" for channel in MAPS[name])
        numbers = path.with_name(f"{name}_{frame}_GroundTruth_iMap.png")
        mask = root / "mask" / f"{frame}.png"
        if not all(one.is_file() for one in (*channels, numbers, mask)):
            dropped["incomplete"] += 1
            continue
        coloured, numbered, marked = _pixels(path, "RGB"), _pixels(numbers), _pixels(mask, "L")
        if coloured is None or numbered is None or marked is None:
            dropped["unreadable"] += 1
            continue
        read_in_all += 1
        classes = _classes(coloured, numbered)
        if classes is None or marked.shape != classes.shape or not np.isin(marked, (0, 255)).all():
            dropped["with labels that contradict each other, or an odd mask"] += 1
            odd.append(frame)
        elif not classes.any():
            dropped["empty"] += 1
        else:
            tiles.append(Tile(name, frame, channels, classes, marked == 255))
    if 2 * len(odd) > read_in_all:
        raise BenchmarkError(
            f"in {len(odd)} of {read_in_all} tiles of {root}, such as {odd[0]}, colours and numbers of the labels do"
            " not say the same (black 0, green 10000, red 2), or the mask is not black and white",
            hint=GET_IT,
        )
    return tiles


def _pixels(path: Path, mode: str | None = None) -> NDArray[np.generic] | None:
    """The picture, converted to ``mode`` or as it is stored (which 8 bits would spoil); None if it cannot be read."""
    from PIL import Image

    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > _MOST_PX:
                return None
            return np.asarray(picture.convert(mode) if mode else picture)
    except Exception:  # Decoders raise whatever a damaged file leads them to.
        return None


def _classes(coloured: NDArray[np.generic], numbered: NDArray[np.generic]) -> Classes | None:
    """The classes, if colours and numbers agree on all pixels and there is nothing else."""
    if numbered.shape != coloured.shape[:2]:
        return None
    classes = np.full(numbered.shape, 255, np.uint8)
    for colour, value in COLOURS.items():
        classes[(coloured == np.array(colour)).all(axis=2)] = value
    same = np.full(numbered.shape, 255, np.uint8)
    for number, value in NUMBERS.items():
        same[numbered == number] = value
    return classes if (classes < 255).all() and np.array_equal(classes, same) else None


def white_is_data(root: Path, tiles: Sequence[Tile]) -> bool:
    """Whether white in the masks stands for data. The authors say so, readers of the files say the opposite: what is
    black in all channels tells. Tiles at the edge of the map, where a mask has both, are asked first.

    Raises:
        BenchmarkError: the masks fit neither way.
    """
    by_edge = sorted(tiles, key=lambda tile: tile.white.all() or not tile.white.any())
    agreeing = total = 0
    for tile in by_edge[:_TILES_LOOKED_AT]:
        bands = bands_of(tile)
        if bands is not None:
            agreeing += int(np.count_nonzero(tile.white == (bands > 0).any(axis=0)))
            total += tile.white.size
    share = agreeing / total if total else 0.5
    if max(share, 1 - share) < _FITS_MAP:
        raise BenchmarkError(
            f"the masks of {root} do not fit its tiles: {100 * share:.0f} % of the pixels are white in the mask where"
            " the tile is not black, or black where it is",
            hint=GET_IT,
        )
    return share > 0.5


def bands_of(tile: Tile) -> NDArray[np.uint8] | None:
    """Channels, rows, columns; None if one cannot be read or has another form than its labels."""
    read = [_one_band(_pixels(path)) for path in tile.channels]
    bands = [one for one in read if one is not None and one.dtype == np.uint8 and one.shape == tile.classes.shape]
    return np.asarray(bands, np.uint8) if len(bands) == len(read) else None


def _one_band(pixels: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
    """A grey picture may be stored with the same values for red, green and blue."""
    if pixels is None or pixels.ndim != 3 or not (pixels == pixels[..., :1]).all():
        return pixels
    return pixels[..., 0]
