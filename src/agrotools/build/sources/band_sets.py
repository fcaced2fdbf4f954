"""Separability of crop, weeds and soil by bands: truth from channels and a class map of the same place.

The statistic is the tool's own (:mod:`agrotools.tools.crop_weed.bands`), worked out on the true classes.
``band_tile`` is a raster whose bands are all ranked, ``band_set`` three named bands of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.sources.part import named
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import SampleFile
from agrotools.tools.crop_weed.bands import ranked_bands
from agrotools.tools.crop_weed.result import CROP, NO_DATA, SOIL, WEED

MEASURE = "measure_crop_weed_area"
WORDS = {"B": "blue", "G": "green", "R": "red", "RE": "red edge", "NIR": "near infrared"}
WORDS_ZH = {"B": "蓝", "G": "绿", "R": "红", "RE": "红边", "NIR": "近红外"}
_IN_SET = 3
_NEEDED = "NIR"
"""Plants are told from soil by an index, and every set must allow one."""


@dataclass(frozen=True, eq=False)
class BandTile:
    """A raster in ``path`` with its true classes (rows, columns): 0 other, 1 crop, 2 weed; ``valid`` where it holds
    data. The names of its bands stand in ``file``."""

    file: SampleFile
    path: Path
    classes: NDArray[np.uint8]
    valid: NDArray[np.bool_]

    @property
    def names(self) -> tuple[str, ...]:
        return self.file.bands or ()


def tile_subject(name: str, tiles: Sequence[BandTile], metadata: dict[str, JsonValue]) -> Subject:
    """Rasters of one camera whose bands are all compared."""

    @cache
    def truth(index: int) -> dict[str, JsonValue]:
        return {"separability": band_ranking(tiles[index], tiles[index].names)}

    def shown(index: int, place: int) -> Thing:
        tile = tiles[index]
        file = named(tile.file, "bands", place)
        thought = f"I need to know how well the bands of {file.name} tell crop, weeds and soil apart."
        return Thing(
            (file,), MEASURE, {"image": file.name}, truth(index), file.name, thought, _words_of_tile(tile.names)
        )

    return Subject(name, len(tiles), shown, metadata, of="band_tile")


def set_subject(name: str, tile: BandTile, metadata: dict[str, JsonValue]) -> Subject:
    """Every three bands of one raster, among them near infrared, each a thing of its own."""
    sets = [chosen for chosen in combinations(tile.names, _IN_SET) if _NEEDED in chosen]

    @cache
    def truth(index: int) -> dict[str, JsonValue]:
        return {"separability": band_ranking(tile, sets[index])}

    def shown(index: int, _: int) -> Thing:
        chosen = sets[index]
        file = named(tile.file, "bands", 1)
        numbers: Any = {band: tile.names.index(band) + 1 for band in chosen}
        called = "-".join(chosen)
        thought = f"I need to know how well {called} tell crop, weeds and soil apart."
        words = {"in_words": _listed([WORDS[band] for band in chosen]), "zh": "、".join(WORDS_ZH[b] for b in chosen)}
        return Thing((file,), MEASURE, {"image": file.name, "bands": numbers}, truth(index), called, thought, words)

    return Subject(name, len(sets), shown, metadata, of="band_set")


def band_ranking(tile: BandTile, names: Sequence[str]) -> JsonValue:
    """The tool's ranking of every three of these bands for the true classes; None with fewer than two classes."""
    rows, columns = tile.classes.shape
    classes = np.full((rows, columns), SOIL, np.uint8)
    classes[tile.classes == 1] = CROP
    classes[tile.classes == 2] = WEED
    classes[~tile.valid] = NO_DATA
    bands = dict(zip(tile.names, _values(tile.path), strict=True))
    ranking = ranked_bands({name: bands[name] for name in names}, classes, (0, 0, columns, rows), "labels")
    return None if ranking is None else cast(JsonValue, ranking.model_dump(mode="json"))


def _values(path: Path) -> NDArray[Any]:
    import warnings

    import rasterio
    from rasterio.errors import NotGeoreferencedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with rasterio.open(path, driver="GTiff") as raster:
            return raster.read()


def _words_of_tile(names: Sequence[str]) -> dict[str, str]:
    words = {
        "bands": str(len(names)),
        "listed": _listed([f"{name} ({WORDS[name]})" for name in names]),
        "listed_zh": "、".join(f"{name}（{WORDS_ZH[name]}）" for name in names),
    }
    return words | {f"band_{place}": names[min(place, len(names)) - 1] for place in range(1, 6)}


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
