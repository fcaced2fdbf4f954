"""WeedMap (Sa et al. 2018): sugar beet and weeds from a drone, in tiles of multispectral maps with labels per pixel.

The authors define no split; maps 003 (RedEdge) and 005 (Sequoia) are customarily the test part. Pixels that are black
in all channels are outside the map. Questions about bands (``band_tile``: a raster whose bands are all ranked;
``band_set``: three named bands of it) use the statistic of the tool as truth (:mod:`agrotools.tools.crop_weed.bands`),
computed on the true classes.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth, Region, count_area, quarters
from agrotools.build.sources.part import DataSet, Part, listed, listing_of, named, pairs_of, photo_thing, reasons
from agrotools.build.sources.photos import describe_separation
from agrotools.build.sources.reading import find_root, geotiff_of, read_bands, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.field import MEASURE, FieldPicture, field_picture, field_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.tools.crop_weed.bands import ranked_bands
from agrotools.tools.crop_weed.result import CROP, NO_DATA, SOIL, WEED

MAPS: Mapping[str, tuple[str, ...]] = {"003": ("B", "G", "R", "RE", "NIR"), "005": ("G", "R", "RE", "NIR")}
"""Maps of the test part and the channels of their cameras, RedEdge and Sequoia."""
COLOURS = {(0, 0, 0): 0, (0, 255, 0): 1, (255, 0, 0): 2}
"""Classes by colour of the labels: 0 other, 1 crop, 2 weed."""
WORDS: Mapping[str, str] = listing_of("weedmap").layout["words"]
_MOST_PX = 4_000_000
"""Maximum number of pixels of a tile; the authors' tiles have 480 x 360."""
_GSD_M = 0.01
_LEAST_DATA = 0.5
"""Minimum share of each quarter of a tile that must hold data, so that every half and quarter can be asked about."""
_SEED = 18
_PAIRS_A_BAND_PAIR = 4
_IN_SET = 3
_NEEDED = "NIR"
"""Band that every set must include, because plants are separated from soil by an index that uses it."""

Classes = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tile:
    """A tile of a map. ``classes``: 0 other, 1 crop, 2 weed; ``channels``: files in the order of the map's channels."""

    map: str
    channels: tuple[Path, ...]
    classes: Classes

    @property
    def bands(self) -> NDArray[np.uint8] | None:
        """Bands (channels, rows, columns); None if a channel cannot be read or differs in size from the labels."""
        read = [_pixels(path) for path in self.channels]
        # A grey picture may be stored with identical red, green and blue.
        grey = [
            one[..., 0] if one is not None and one.ndim == 3 and (one == one[..., :1]).all() else one for one in read
        ]
        bands = [one for one in grey if one is not None and one.dtype == np.uint8 and one.shape == self.classes.shape]
        return np.asarray(bands, np.uint8) if len(bands) == len(read) else None


@dataclass(frozen=True, eq=False)
class TileTruth:
    """True classes of a tile, the mask of pixels that hold data, and the raster with its named bands."""

    classes: Classes
    valid: Mask
    path: Path
    names: tuple[str, ...]

    def area(self, region: Region | None) -> AreaTruth:
        """Return the areas in a region, or in the whole tile for None."""
        return count_area(self.classes, None, region, self.valid)

    def ranking(self, names: Sequence[str]) -> JsonValue:
        """Return the tool's ranking of sets of three of these bands for the true classes; None without two classes."""
        classes = np.choose(self.classes, (SOIL, CROP, WEED)).astype(np.uint8)
        classes[~self.valid] = NO_DATA
        bands = dict(zip(self.names, read_bands(self.path), strict=True))
        rows, columns = classes.shape
        ranking = ranked_bands({name: bands[name] for name in names}, classes, (0, 0, columns, rows), "labels")
        return None if ranking is None else ranking.model_dump(mode="json")


_Shown = tuple[SampleFile, TileTruth]


def weedmap(data: DataSet) -> Part:
    """Areas of crop and weeds, and the bands that separate them."""
    tiles = [tile for name, root in _maps_in(data.folder).items() for tile in _tiles_of(root, name, data.dropped)]
    by_map = _usable_files(_in_order(tiles), data)
    if data.samples and not any(by_map.values()):
        raise BenchmarkError(f"no tile in {data.folder} can be used ({reasons(data.dropped) or 'there is none'})")
    facts: dict[str, JsonValue] = {"tiles": len(data.originals.files)}

    def described(finished: Sequence[Sample]) -> dict[str, JsonValue]:
        return {"weedmap": {**facts, **describe_separation(finished)}}

    pairs = [pair for of_map in by_map.values() for pair in pairs_of(of_map)]
    subjects = [_subject(f"weedmap-{number}", number, pair) for number, pair in enumerate(pairs)]
    subjects += _band_subjects(pairs)
    return data.part(subjects, [*field_templates(), "bands"], {"weedmap": facts}, described)


def _maps_in(folder: Path) -> dict[str, Path]:
    """Return the folders of the available maps, by name."""
    folders: dict[str, Path] = {}
    for name in MAPS:
        with suppress(BenchmarkError):
            folders[name] = find_root(folder, [f"{name}/{part}" for part in ("tile", "groundtruth")]) / name
    if not folders:
        raise BenchmarkError(f"{folder} has no tiles of map {' or '.join(MAPS)}")
    return folders


def _tiles_of(root: Path, name: str, dropped: Counter[str]) -> list[Tile]:
    """Return the tiles of a map that contain plants; the others are counted in ``dropped`` by reason."""
    tiles: list[Tile] = []
    for path in sorted((root / "groundtruth").iterdir()):
        match = re.fullmatch(rf"{name}_(frame\d+)_GroundTruth_color\.png", path.name)
        if match is None:
            continue
        channels = tuple(root / "tile" / channel / f"{match[1]}.png" for channel in MAPS[name])
        coloured = _pixels(path, "RGB")
        if not all(one.is_file() for one in channels):
            dropped["incomplete"] += 1
        elif coloured is None:
            dropped["unreadable"] += 1
        elif (classes := _classes(coloured)).max() > max(COLOURS.values()):
            dropped["with labels of other colours"] += 1
        elif not classes.any():
            dropped["empty"] += 1
        else:
            tiles.append(Tile(name, channels, classes))
    return tiles


def _pixels(path: Path, mode: str | None = None) -> NDArray[Any] | None:
    """Return the picture, converted to ``mode`` if given; None if it cannot be read."""
    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > _MOST_PX:
                return None
            return np.asarray(picture.convert(mode) if mode else picture)
    except Exception:  # Decoders raise exceptions of many types for damaged files.
        return None


def _classes(coloured: NDArray[Any]) -> Classes:
    """Return classes by colour, 255 for unknown colours."""
    classes = np.full(coloured.shape[:2], 255, np.uint8)
    for colour, value in COLOURS.items():
        classes[(coloured == np.array(colour)).all(axis=2)] = value
    return classes


def _in_order(tiles: Sequence[Tile]) -> list[Tile]:
    """Order tiles so that both maps take turns and tiles with both crop and weeds come first."""
    both = [tile for tile in tiles if {1, 2} <= set(np.unique(tile.classes).tolist())]
    others = [tile for tile in tiles if tile not in both]
    return [tile for some in (both, others) for tile in spread(some, lambda tile: tile.map, len(some), _SEED)]


def _usable_files(tiles: Sequence[Tile], data: DataSet) -> dict[str, list[_Shown]]:
    """Return files made from the first usable tiles, as many as wanted, by map."""
    by_map: dict[str, dict[str, _Shown]] = {name: {} for name in MAPS}
    for tile in tiles:
        if sum(map(len, by_map.values())) == data.wanted:
            break
        bands = tile.bands
        if bands is None:
            data.dropped["unreadable"] += 1
            continue
        valid: Mask = np.any(bands > 0, axis=0)
        rows, columns = tile.classes.shape
        has_data = all(valid[y0:y1, x0:x1].mean() >= _LEAST_DATA for _, (x0, y0, x1, y1) in quarters(columns, rows))
        if not has_data or not tile.classes[valid].any():
            data.dropped["mostly outside the map"] += 1
            continue
        names = MAPS[tile.map]
        note = _NOTE.format(listed([WORDS[name] for name in names], "and"))
        facts = {"width_px": columns, "height_px": rows, "gsd_m": _GSD_M, "note": note}
        # 0 marks missing data, so the darkest valid value becomes 1.
        stored = np.where(valid, np.maximum(bands, 1), 0).astype(np.uint8)
        content = geotiff_of(stored, names, nodata=0, predictor=2, photometric="MINISBLACK")
        file = data.originals.add_content(content, ".tif", kind="raster", bands=names, **facts)
        by_map[tile.map][str(file.sha256)] = (
            file,
            TileTruth(tile.classes, valid, data.originals.files[file.path], names),
        )
    return {name: [*some.values()] for name, some in by_map.items()}


_NOTE = (
    "Sugar beet field seen straight from above by a drone, about 1 cm a pixel. Bands {}, 8 bits each. Pixels that are "
    "0 lie outside the map and do not count."
)


def _subject(name: str, number: int, pair: Sequence[_Shown]) -> Subject:
    def picture(index: int, position: int) -> FieldPicture:
        file, truth = pair[index]
        file = named(file, "bands", position)
        rows, columns = truth.valid.shape
        return field_picture((file,), {"image": file.name}, truth.area, columns, rows, "multispectral image")

    return Subject(name, len(pair), picture, {"pair": number})


def _band_subjects(pairs: Sequence[Sequence[_Shown]]) -> list[Subject]:
    """Return subjects for questions about bands, whose truth is slow to compute, from every fourth pair of tiles."""
    subjects: list[Subject] = []
    for number in range(0, len(pairs), _PAIRS_A_BAND_PAIR):
        metadata: dict[str, JsonValue] = {"pair": number}
        subjects.append(tile_subject(f"weedmap-bands-{number}", pairs[number], metadata))
        for place, (file, tile) in enumerate(pairs[number]):
            subjects.append(set_subject(f"weedmap-sets-{number}-{place}", file, tile, metadata))
    return subjects


def tile_subject(name: str, tiles: Sequence[_Shown], metadata: dict[str, JsonValue]) -> Subject:
    """Return a subject of rasters of one camera whose bands are all compared."""

    @cache
    def truth(index: int) -> dict[str, JsonValue]:
        tile = tiles[index][1]
        return {"separability": tile.ranking(tile.names)}

    def shown(index: int, place: int) -> Thing:
        names, file = tiles[index][1].names, named(tiles[index][0], "bands", place)
        thought = f"I need to know how well the bands of {file.name} tell crop, weeds and soil apart."
        words = {
            "bands": str(len(names)),
            "listed": listed([f"{name} ({WORDS[name]})" for name in names], "and"),
        }
        words |= {f"band_{place}": names[min(place, len(names)) - 1] for place in range(1, 6)}
        return photo_thing(file, MEASURE, truth(index), thought, words)

    return Subject(name, len(tiles), shown, metadata, of="band_tile")


def set_subject(name: str, raster: SampleFile, tile: TileTruth, metadata: dict[str, JsonValue]) -> Subject:
    """Return a subject with one thing for each set of three bands of a raster that includes near infrared."""
    sets = [chosen for chosen in combinations(tile.names, _IN_SET) if _NEEDED in chosen]

    @cache
    def truth(index: int) -> dict[str, JsonValue]:
        return {"separability": tile.ranking(sets[index])}

    def shown(index: int, _: int) -> Thing:
        chosen, file = sets[index], named(raster, "bands", 1)
        numbers: Any = {band: tile.names.index(band) + 1 for band in chosen}
        called = "-".join(chosen)
        thought = f"I need to know how well {called} tell crop, weeds and soil apart."
        words = {"in_words": listed([WORDS[band] for band in chosen], "and")}
        return Thing((file,), MEASURE, {"image": file.name, "bands": numbers}, truth(index), called, thought, words)

    return Subject(name, len(sets), shown, metadata, of="band_set")
