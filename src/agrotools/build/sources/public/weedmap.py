"""WeedMap (Sa et al. 2018): sugar beet and weeds from a drone, in tiles of multispectral maps with labels per pixel.

The authors divide nothing into train and test; maps 003 (RedEdge) and 005 (Sequoia) are by custom the test part.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth, count_area
from agrotools.build.asking import Subject
from agrotools.build.picture_parts import Region, quarters
from agrotools.build.questions import QUESTIONS, Picture
from agrotools.build.sources.band_sets import WORDS, BandTile, set_subject, tile_subject
from agrotools.build.sources.field.weeds import how_parted
from agrotools.build.sources.part import Originals, Part, named, pairs_of
from agrotools.build.sources.public.layout import spread
from agrotools.build.sources.public.weedmap_tiles import (
    GET_IT,
    MAPS,
    Classes,
    Mask,
    Tile,
    bands_of,
    maps_in,
    tiles_of,
    white_is_data,
)
from agrotools.build.sources.wording import reasons
from agrotools.build.templates import load_templates
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.benchmark_header import SourceNote

SOURCE = SourceNote(
    name="WeedMap",
    licence="not stated",
    url="https://doi.org/10.3929/ethz-c-000788571",
    citation="Sa, I. et al.: WeedMap: A Large-Scale Semantic Weed Mapping Framework Using Aerial Multispectral Imaging"
    " and Deep Neural Network for Precision Farming. Remote Sensing 10(9), 1423, 2018.",
    note="Questions, reference calls and tolerances are by agrotools; images and labels are the authors', the channels"
    " of a tile joined into one file. Maps 003 and 005.",
)
_GSD_M = 0.01
_FITS_TILE = 0.95
"""Share of pixels in which a mask must agree with what is black."""
_LEAST_DATA = 0.5
"""Share of each quarter of a tile that must hold data, so that no half or quarter is asked about in vain."""
_SEED = 18
_TILES_A_SAMPLE = 2
_PAIRS_A_BAND_PAIR = 4


@dataclass(frozen=True, eq=False)
class _Shown:
    """A tile as a file, with its truth."""

    file: SampleFile
    classes: Classes
    valid: Mask

    def area(self, region: Region | None) -> AreaTruth:
        return count_area(self.classes, None, region, self.valid)


def read(folder: Path, scratch: Path, samples: int) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    dropped: Counter[str] = Counter()
    tiles: list[tuple[Tile, Mask]] = []
    of_maps: dict[str, JsonValue] = {}
    for name, root in maps_in(folder).items():
        found = tiles_of(root, name, dropped)
        if not found:
            continue
        white = white_is_data(root, found)
        of_maps[name] = {"labelled_tiles": len(found), "data_in_mask": "white" if white else "black"}
        for tile in found:
            valid = tile.white if white else ~tile.white
            if _enough_data(valid) and (tile.classes[valid] > 0).any():
                tiles.append((tile, valid))
            else:
                dropped["mostly outside the map"] += 1
    originals = Originals(scratch)
    shown = _shown(_in_order(tiles), _TILES_A_SAMPLE * samples, originals, dropped)
    if samples and not any(shown.values()):
        raise BenchmarkError(f"no tile in {folder} can be used ({reasons(dropped) or 'there is none'})", hint=GET_IT)
    facts: dict[str, JsonValue] = {"maps": of_maps, "tiles": len(originals.files), "tiles_dropped": {**dropped}}

    def described(finished: Sequence[Sample]) -> dict[str, JsonValue]:
        return {"weedmap": {**facts, **how_parted(finished)}}

    pairs = [pair for of_map in shown.values() for pair in pairs_of(of_map)]
    subjects = [_subject(f"weedmap-{number}", number, pair) for number, pair in enumerate(pairs)]
    subjects += _band_subjects(pairs, originals)
    questions = (*QUESTIONS, *load_templates("bands"))
    return Part(
        "weedmap", SOURCE, subjects, questions, samples, originals.files, {"weedmap": facts}, described, dropped
    )


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


def _shown(
    tiles: Sequence[tuple[Tile, Mask]], wanted: int, originals: Originals, dropped: Counter[str]
) -> dict[str, dict[str, _Shown]]:
    """Files made of the first ``wanted`` tiles that can be used: by map, then by hash."""
    made: dict[str, dict[str, _Shown]] = {name: {} for name in MAPS}
    for tile, valid in tiles:
        if sum(map(len, made.values())) == wanted:
            break
        bands = bands_of(tile)
        if bands is None:
            dropped["unreadable"] += 1
        elif np.mean((bands > 0).any(axis=0) == valid) < _FITS_TILE:
            dropped["with a mask that does not fit"] += 1
        else:
            names = MAPS[tile.map]
            rows, columns = valid.shape
            facts = {"width_px": columns, "height_px": rows, "gsd_m": _GSD_M, "note": _note(names)}
            file = originals.made(_geotiff(bands, valid, names), ".tif", kind="raster", bands=names, **facts)
            made[tile.map][str(file.sha256)] = _Shown(file, tile.classes, valid)
    return made


def _note(names: Sequence[str]) -> str:
    words = [WORDS[name] for name in names]
    return (
        f"Sugar beet field seen straight from above by a drone, about 1 cm a pixel. Bands {', '.join(words[:-1])} and"
        f" {words[-1]}, 8 bits each. Pixels that are 0 lie outside the map and do not count."
    )


def _geotiff(bands: NDArray[np.uint8], valid: Mask, names: Sequence[str]) -> bytes:
    """0 stands for no data, so the darkest value where there is data becomes 1."""
    from rasterio.errors import NotGeoreferencedWarning
    from rasterio.io import MemoryFile

    profile = {
        "driver": "GTiff", "count": len(names), "height": bands.shape[1], "width": bands.shape[2], "dtype": "uint8",
        "nodata": 0, "compress": "deflate", "predictor": 2, "photometric": "MINISBLACK",
    }  # fmt: skip
    with warnings.catch_warnings(), MemoryFile() as memory:
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with memory.open(**profile) as target:
            target.write(np.where(valid, np.maximum(bands, 1), 0).astype(np.uint8))
            for number, name in enumerate(names, start=1):
                target.set_band_description(number, name)
        return memory.read()


def _subject(name: str, number: int, pair: Sequence[_Shown]) -> Subject:
    def picture(index: int, position: int) -> Picture:
        shown = pair[index]
        file = named(shown.file, "bands", position)
        rows, columns = shown.valid.shape
        return Picture((file,), {"image": file.name}, shown.area, columns, rows, "multispectral image")

    return Subject(name, len(pair), picture, {"pair": number})


def _band_subjects(pairs: Sequence[Sequence[_Shown]], originals: Originals) -> list[Subject]:
    """Every so many pairs of tiles also for the questions about bands, which take a while to answer."""
    subjects: list[Subject] = []
    for number, pair in enumerate(pairs):
        tiles = [BandTile(one.file, originals.files[one.file.path], one.classes, one.valid) for one in pair]
        if number % _PAIRS_A_BAND_PAIR == 0:
            subjects.append(tile_subject(f"weedmap-bands-{number}", tiles, {"pair": number}))
            subjects += [
                set_subject(f"weedmap-sets-{number}-{place}", tile, {"pair": number})
                for place, tile in enumerate(tiles)
            ]
    return subjects
