"""WeedMap (Sa et al. 2018): sugar beet and weeds from a drone, in tiles of multispectral maps with labels per pixel.

The authors divide nothing into train and test; maps 003 (RedEdge) and 005 (Sequoia) are by custom the test part.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth, Region, count_area, quarters
from agrotools.build.sources.band_sets import WORDS, BandTile, set_subject, tile_subject
from agrotools.build.sources.field.weeds import describe_separation
from agrotools.build.sources.part import DataSet, Part, adapter, named, pairs_of, reasons
from agrotools.build.sources.reading import find_root, geotiff_of, spread
from agrotools.build.templates.field import FieldPicture, field_picture, field_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Sample, SampleFile

MAPS: Mapping[str, tuple[str, ...]] = {"003": ("B", "G", "R", "RE", "NIR"), "005": ("G", "R", "RE", "NIR")}
"""Maps of the test part and the channels of their cameras, RedEdge and Sequoia."""
COLOURS = {(0, 0, 0): 0, (0, 255, 0): 1, (255, 0, 0): 2}
"""Of the coloured labels: other, crop, weed."""
NUMBERS = {0: 0, 10000: 1, 2: 2}
"""Of the numbered labels, which say the same in 16 bits."""
_MOST_PX = 4_000_000
"""Of a tile; the authors' have 480 x 360."""
_TILES_COMPARED = 24
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
    folders: dict[str, Path] = {}
    for name in MAPS:
        markers = [f"{name}/{part}" for part in ("tile", "groundtruth", "mask")]
        with suppress(BenchmarkError):
            folders[name] = find_root(folder, markers) / name
    if not folders:
        raise BenchmarkError(f"{folder} has no tiles of map {' or '.join(MAPS)}")
    return folders


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
            " not say the same (black 0, green 10000, red 2), or the mask is not black and white"
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
    """True if white in the masks stands for data. The authors say so, readers of the files say the opposite: what is
    black in all channels tells. Tiles at the edge of the map, where a mask has both, are asked first.

    Raises:
        BenchmarkError: the masks fit neither way.
    """
    by_edge = sorted(tiles, key=lambda tile: tile.white.all() or not tile.white.any())
    agreeing = total = 0
    for tile in by_edge[:_TILES_COMPARED]:
        bands = bands_of(tile)
        if bands is not None:
            agreeing += int(np.count_nonzero(tile.white == (bands > 0).any(axis=0)))
            total += tile.white.size
    share = agreeing / total if total else 0.5
    if max(share, 1 - share) < _FITS_MAP:
        raise BenchmarkError(
            f"the masks of {root} do not fit its tiles: {100 * share:.0f} % of the pixels are white in the mask where"
            " the tile is not black, or black where it is"
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


_GSD_M = 0.01
_FITS_TILE = 0.95
"""Share of pixels in which a mask must agree with what is black."""
_LEAST_DATA = 0.5
"""Share of each quarter of a tile that must hold data, so that no half or quarter is asked about in vain."""
_SEED = 18
_PAIRS_A_BAND_PAIR = 4


@dataclass(frozen=True, eq=False)
class _Truth:
    """Truth of a tile."""

    classes: Classes
    valid: Mask

    def area(self, region: Region | None) -> AreaTruth:
        return count_area(self.classes, None, region, self.valid)


_Shown = tuple[SampleFile, _Truth]


@adapter("weedmap")
def read(data: DataSet) -> Part:
    """Areas of crop and weeds, and the bands that tell them apart."""
    dropped = data.dropped
    tiles: list[tuple[Tile, Mask]] = []
    of_maps: dict[str, JsonValue] = {}
    for name, root in maps_in(data.folder).items():
        tiles_of_map = tiles_of(root, name, dropped)
        if not tiles_of_map:
            continue
        white = white_is_data(root, tiles_of_map)
        of_maps[name] = {"labelled_tiles": len(tiles_of_map), "data_in_mask": "white" if white else "black"}
        for tile in tiles_of_map:
            valid = tile.white if white else ~tile.white
            if _enough_data(valid) and (tile.classes[valid] > 0).any():
                tiles.append((tile, valid))
            else:
                dropped["mostly outside the map"] += 1
    by_map = _usable_files(_in_order(tiles), data)
    if data.samples and not any(by_map.values()):
        raise BenchmarkError(f"no tile in {data.folder} can be used ({reasons(dropped) or 'there is none'})")
    facts: dict[str, JsonValue] = {"maps": of_maps, "tiles": len(data.originals.files)}

    def described(finished: Sequence[Sample]) -> dict[str, JsonValue]:
        return {"weedmap": {**facts, **describe_separation(finished)}}

    pairs = [pair for of_map in by_map.values() for pair in pairs_of(of_map)]
    subjects = [_subject(f"weedmap-{number}", number, pair) for number, pair in enumerate(pairs)]
    subjects += _band_subjects(pairs, data)
    return data.part(subjects, [*field_templates(), "bands"], {"weedmap": facts}, described)


def _enough_data(valid: Mask) -> bool:
    rows, columns = valid.shape
    return all(valid[y0:y1, x0:x1].mean() >= _LEAST_DATA for _, (x0, y0, x1, y1) in quarters(columns, rows))


def _in_order(tiles: Sequence[tuple[Tile, Mask]]) -> list[tuple[Tile, Mask]]:
    """Both maps in turn, tiles with crop and weeds first: more can be asked of them."""

    def has_both(item: tuple[Tile, Mask]) -> bool:
        tile, valid = item
        return {1, 2} <= set(np.unique(tile.classes[valid]).tolist())

    both = [item for item in tiles if has_both(item)]
    others = [item for item in tiles if not has_both(item)]
    return [item for some in (both, others) for item in spread(some, lambda item: item[0].map, len(some), _SEED)]


def _usable_files(tiles: Sequence[tuple[Tile, Mask]], data: DataSet) -> dict[str, list[_Shown]]:
    """Files made of the first tiles that can be used, as many as are wanted: by map."""
    by_map: dict[str, dict[str, _Shown]] = {name: {} for name in MAPS}
    for tile, valid in tiles:
        if sum(map(len, by_map.values())) == data.wanted:
            break
        bands = bands_of(tile)
        if bands is None:
            data.dropped["unreadable"] += 1
        elif np.mean((bands > 0).any(axis=0) == valid) < _FITS_TILE:
            data.dropped["with a mask that does not fit"] += 1
        else:
            names = MAPS[tile.map]
            rows, columns = valid.shape
            facts = {"width_px": columns, "height_px": rows, "gsd_m": _GSD_M, "note": _note(names)}
            # 0 stands for no data, so the darkest value where there is data becomes 1.
            marked = np.where(valid, np.maximum(bands, 1), 0).astype(np.uint8)
            content = geotiff_of(marked, names, nodata=0, predictor=2, photometric="MINISBLACK")
            file = data.originals.made(content, ".tif", kind="raster", bands=names, **facts)
            by_map[tile.map][str(file.sha256)] = (file, _Truth(tile.classes, valid))
    return {name: [*some.values()] for name, some in by_map.items()}


def _note(names: Sequence[str]) -> str:
    words = [WORDS[name] for name in names]
    return (
        f"Sugar beet field seen straight from above by a drone, about 1 cm a pixel. Bands {', '.join(words[:-1])} and"
        f" {words[-1]}, 8 bits each. Pixels that are 0 lie outside the map and do not count."
    )


def _subject(name: str, number: int, pair: Sequence[_Shown]) -> Subject:
    def picture(index: int, position: int) -> FieldPicture:
        file, truth = pair[index]
        file = named(file, "bands", position)
        rows, columns = truth.valid.shape
        return field_picture((file,), {"image": file.name}, truth.area, columns, rows, "multispectral image")

    return Subject(name, len(pair), picture, {"pair": number})


def _band_subjects(pairs: Sequence[Sequence[_Shown]], data: DataSet) -> list[Subject]:
    """Every so many pairs of tiles also for the questions about bands, which take a while to answer."""
    subjects: list[Subject] = []
    for number, pair in enumerate(pairs):
        if number % _PAIRS_A_BAND_PAIR:
            continue
        paths = data.originals.files
        tiles = [BandTile(file, paths[file.path], truth.classes, truth.valid) for file, truth in pair]
        subjects.append(tile_subject(f"weedmap-bands-{number}", tiles, {"pair": number}))
        for place, tile in enumerate(tiles):
            subjects.append(set_subject(f"weedmap-sets-{number}-{place}", tile, {"pair": number}))
    return subjects
