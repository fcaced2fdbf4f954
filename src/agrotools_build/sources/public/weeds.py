"""Fields and pots with weeds: WeedMap and WeedSense.

WeedMap (Sa et al. 2018) shows sugar beet and weeds from a drone, in tiles of multispectral maps with labels per pixel.
The authors define no split; maps 003 (RedEdge) and 005 (Sequoia) are customarily the test part. Pixels that are black
in all channels are outside the map. Questions about bands (``band_tile``: a raster whose bands are all ranked;
``band_set``: three named bands of it) use the statistic of the tool as truth (:mod:`agrotools_tools.crop_weed.bands`),
computed on the true classes.

WeedSense (Sarker et al. 2025) shows potted weeds, filmed week by week, with masks of the plants (test split). Frames
were split at random, so neighbours of test frames are in the training split; therefore at most one frame of each
species and week is used. The table also has heights, but pixel sizes are unknown, so there are no questions about them.
Frames do not identify the pot either, so questions compare pictures of a species, not the growth of one plant.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import JsonValue

from agrotools.calling.result import round_significant
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools_build.area_truth import AreaTruth, Region, count_area, quarters
from agrotools_build.sources.land import describe_separation
from agrotools_build.sources.part import (
    DataSet,
    Part,
    listed,
    listing_of,
    named,
    pairs_of,
    photo_subject,
    photo_thing,
    reasons,
)
from agrotools_build.sources.reading import (
    Item,
    find_root,
    folders_below,
    geotiff_of,
    listed_items,
    read_bands,
    read_mask,
    read_photo,
    spread,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.field import MEASURE, FieldPicture, field_picture
from agrotools_build.templates.template import field_templates
from agrotools_build.templates.thing import Subject
from agrotools_tools.crop_weed.bands import ranked_bands
from agrotools_tools.crop_weed.result import CROP, NO_DATA, SOIL, WEED
from agrotools_tools.plants.measure import find_plants

WORDS: Mapping[str, str] = listing_of("weedmap").layout["words"]
_MOST_PX = 4_000_000
"""Maximum number of pixels of a tile; the authors' tiles have 480 x 360."""
_LEAST_DATA = 0.5
"""Minimum share of each quarter of a tile that must hold data, so that every half and quarter can be asked about."""
_PAIRS_A_BAND_PAIR = 4
_IN_SET = 3
_NEEDED = "NIR"
"""Band that every set must include, because plants are separated from soil by an index that uses it."""


class _Tile(NamedTuple):
    """A tile of a map. ``classes``: 0 other, 1 crop, 2 weed; ``channels``: files in the order of the map's channels."""

    map: str
    channels: Sequence[Path]
    classes: NDArray[np.uint8]


class TileTruth(NamedTuple):
    """True classes of a tile, the mask of pixels that hold data, and the raster with its named bands."""

    classes: NDArray[np.uint8]
    valid: NDArray[np.bool_]
    path: Path
    names: tuple[str, ...]

    def area(self, region: Region | None) -> AreaTruth:
        return count_area(self.classes, None, region, self.valid)

    def ranking(self, names: Sequence[str]) -> JsonValue:
        """Return the tool's ranking of sets of three of these bands for the true classes; None without two classes."""
        classes = np.choose(self.classes, (SOIL, CROP, WEED)).astype(np.uint8)
        classes[~self.valid] = NO_DATA
        bands = dict(zip(self.names, read_bands(self.path), strict=True))
        rows, columns = classes.shape
        ranking = ranked_bands(
            {name: bands[name] for name in names}, classes, (0, 0, columns, rows), "labels"
        )
        return None if ranking is None else ranking.model_dump(mode="json")


_ShownTile = tuple[SampleFile, TileTruth]


def weedmap(data: DataSet) -> Part:
    """Areas of crop and weeds, and the bands that separate them."""
    of = data.layout
    maps: Mapping[str, tuple[str, ...]] = of["maps"]
    folders = folders_below(data.folder, maps, ["tile", "groundtruth"])
    if not folders:
        raise BenchmarkError(f"{data.folder} has no tiles of map {' or '.join(maps)}")
    # Maps take turns, and tiles with both crop and weeds come first.
    by_mixture: dict[bool, list[_Tile]] = {True: [], False: []}
    for tile in (one for name, root in folders.items() for one in _tiles_of(root, name, data)):
        by_mixture[bool((tile.classes == 1).any() and (tile.classes == 2).any())].append(tile)
    in_turn = [
        one
        for some in by_mixture.values()
        for one in spread(some, lambda one: one.map, len(some), of["seed"])
    ]
    by_map: dict[str, dict[str, _ShownTile]] = {name: {} for name in maps}
    for tile in in_turn:
        if sum(map(len, by_map.values())) == data.wanted:
            break
        shown = _shown(tile, maps[tile.map], data)
        if isinstance(shown, str):
            data.dropped[shown] += 1
        else:
            by_map[tile.map][str(shown[0].sha256)] = shown
    facts: dict[str, JsonValue] = {"tiles": len(data.originals.files)}

    def described(finished: Sequence[Sample]) -> dict[str, JsonValue]:
        return {"weedmap": {**facts, **describe_separation(finished)}}

    pairs = [pair for of_map in by_map.values() for pair in pairs_of(of_map.values())]
    subjects = [
        photo_subject(f"weedmap-{number}", pair, _picture, {"pair": number}, "field", "bands")
        for number, pair in enumerate(pairs)
    ]
    for number in range(0, len(pairs), _PAIRS_A_BAND_PAIR):  # truth about bands is slow to compute
        metadata: dict[str, JsonValue] = {"pair": number}
        subjects.append(tile_subject(f"weedmap-bands-{number}", pairs[number], metadata))
        for place, (file, tile) in enumerate(pairs[number]):
            subjects.append(set_subject(f"weedmap-sets-{number}-{place}", file, tile, metadata))
    return data.part(subjects, [*field_templates(), "bands"], {"weedmap": facts}, described)


def _tiles_of(root: Path, name: str, data: DataSet) -> Iterator[_Tile]:
    """Yield the tiles of a map that contain plants; the others are counted as left out."""
    colours = np.array(data.layout["colours"])
    for path in sorted(root.glob(f"groundtruth/{name}_frame*_GroundTruth_color.png")):
        frame = path.name.split("_")[1]
        channels = [root / f"tile/{channel}/{frame}.png" for channel in data.layout["maps"][name]]
        coloured = _pixels(path, "RGB")
        if coloured is None or not all(one.is_file() for one in channels):
            data.dropped["unreadable" if coloured is None else "incomplete"] += 1
            continue
        matches = (coloured[..., None, :] == colours).all(axis=-1)
        if not matches.any(axis=-1).all():
            data.dropped["with labels of other colours"] += 1
        elif not matches[..., 1:].any():
            data.dropped["empty"] += 1
        else:
            yield _Tile(name, channels, matches.argmax(axis=-1).astype(np.uint8))


def _pixels(path: Path, mode: str | None = None) -> NDArray[Any] | None:
    """Return the picture, converted to ``mode`` if given; None if it cannot be read."""
    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > _MOST_PX:
                return None
            return np.asarray(picture.convert(mode) if mode else picture)
    except Exception:  # Decoders raise exceptions of many types for damaged files.
        return None


def _shown(tile: _Tile, names: tuple[str, ...], data: DataSet) -> _ShownTile | str:
    """Return the raster made from a tile with its truth, or the reason for leaving it out."""
    bands: list[NDArray[Any]] = []
    for pixels in map(_pixels, tile.channels):
        # A grey picture may be stored with identical red, green and blue.
        if pixels is not None and pixels.ndim == 3 and (pixels == pixels[..., :1]).all():
            pixels = pixels[..., 0]
        if pixels is None or pixels.dtype != np.uint8 or pixels.shape != tile.classes.shape:
            return "unreadable"
        bands.append(pixels)
    valid = np.any(np.asarray(bands) > 0, axis=0)
    rows, columns = valid.shape
    has_data = all(
        valid[y0:y1, x0:x1].mean() >= _LEAST_DATA for _, (x0, y0, x1, y1) in quarters(columns, rows)
    )
    if not has_data or not tile.classes[valid].any():
        return "mostly outside the map"
    # 0 marks missing data, so the darkest valid value becomes 1.
    stored = np.where(valid, np.maximum(bands, 1), 0).astype(np.uint8)
    file = data.originals.add_content(
        geotiff_of(stored, names, nodata=0, predictor=2, photometric="MINISBLACK"),
        ".tif", kind="raster", bands=names, width_px=columns, height_px=rows, gsd_m=data.layout["gsd_m"],
        note=data.layout["note"].format(listed([WORDS[name] for name in names], "and")),
    )  # fmt: skip
    return file, TileTruth(tile.classes, valid, data.originals.files[file.path], names)


def _picture(file: SampleFile, truth: TileTruth, _: int) -> FieldPicture:
    rows, columns = truth.valid.shape
    return field_picture(
        (file,), {"image": file.name}, truth.area, columns, rows, "multispectral image"
    )


def tile_subject(name: str, tiles: Sequence[_ShownTile], metadata: dict[str, JsonValue]) -> Subject:
    """Return a subject of rasters of one camera whose bands are all compared."""

    @cache
    def truth(index: int) -> dict[str, JsonValue]:
        tile = tiles[index][1]
        return {"separability": tile.ranking(tile.names)}

    def shown(index: int, place: int) -> Thing:
        names, file = tiles[index][1].names, named(tiles[index][0], "bands", place)
        thought = (
            f"I need to know how well the bands of {file.name} tell crop, weeds and soil apart."
        )
        words = {
            "bands": str(len(names)),
            "listed": listed([f"{name} ({WORDS[name]})" for name in names], "and"),
        }
        words |= {f"band_{place}": names[min(place, len(names)) - 1] for place in range(1, 6)}
        return photo_thing(file, MEASURE, truth(index), thought, words)

    return Subject(name, len(tiles), shown, metadata, of="band_tile")


def set_subject(
    name: str, raster: SampleFile, tile: TileTruth, metadata: dict[str, JsonValue]
) -> Subject:
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
        return Thing(
            (file,),
            MEASURE,
            {"image": file.name, "bands": numbers},
            truth(index),
            called,
            thought,
            words,
        )

    return Subject(name, len(sets), shown, metadata, of="band_set")


_Frame = tuple[str, int, Item]
"""A frame of the table: species, week, and its files."""
_FrameTruth = tuple[Mapping[str, str], Mapping[str, Any], Mapping[str, Any] | None]
"""Words, cover and form of the plant in a picture; the form is None if the plant is in several pieces."""
_ShownFrame = tuple[SampleFile, _FrameTruth]


def weedsense(data: DataSet) -> Part:
    """Covers and forms of plants, over weeks."""
    of = data.layout
    items = sorted(listed_items(data, find_root(data.folder, of["root"])))
    told = [(one.told["species"].upper(), int(float(one.told["week"])), one) for one in items]
    frames = _chosen_frames(told, data)
    known = ({*range(len(of["species"]) + 1), of["undecided"]},)
    masks = [read_mask(item.files["mask"], known).astype(np.uint8) for _, _, item in frames]
    numbers = _numbers(frames, masks, of["undecided"])
    by_species: defaultdict[str, list[_ShownFrame]] = defaultdict(list)
    for (code, week, item), values in zip(frames, masks, strict=True):
        read_photo(item.files["picture"], (values.shape[0], values.shape[1]))
        decided = values != of["undecided"]
        plant = (values > 0) & decided  # pixels with a wrong species number are plants too
        if decided.mean() < 1 - of["most_undecided"]:
            data.dropped["with more than 1 % left undecided"] += 1
        elif not plant.any():
            data.dropped["without a plant"] += 1
        elif np.sum(values == numbers.get(code, -1)) < (1 - of["most_other"]) * plant.sum():
            data.dropped["with the number of another species"] += 1
        else:
            name = of["species"][code]
            file = data.originals.file(
                item.files["picture"], note=f"Frame of a video of potted {name}."
            )
            result = AreaTruth(0, int(plant.sum()), 0, int(decided.sum())).as_result()
            # Pixels outside the plant are pot, floor and wall: the mask says nothing about crop, weeds and soil.
            cover = {key: result[key] for key in ("total_px", "veg_px", "veg_pct")}
            form = _form(plant, of["least_in_one_piece"])
            by_species[code].append((file, ({"species": name, "week": str(week)}, cover, form)))
    used = sum(map(len, by_species.values()))
    if 2 * used < len(frames):
        raise BenchmarkError(
            f"most of the masks compared in {data.folder} cannot be used ({reasons(data.dropped)})"
        )
    subjects = [
        subject
        for code in sorted(by_species)
        for subject in _frame_subjects(code, by_species[code])
    ]
    return data.part(
        subjects, ["pot_weed"], {"weedsense": {"pictures": used, "species": len(by_species)}}
    )


def _chosen_frames(frames: Sequence[_Frame], data: DataSet) -> list[_Frame]:
    """Choose one frame of each species and week, limiting the species so that each keeps several weeks."""
    seed: int = data.layout["seed"]
    one_of_each = spread(frames, lambda one: one[:2], len({frame[:2] for frame in frames}), seed)
    species = sorted({code for code, _, _ in frames})
    order = [species[int(place)] for place in np.random.default_rng(seed).permutation(len(species))]
    chosen = order[: max(1, data.wanted // data.layout["weeks_of_a_species"])]
    return spread(
        (one for one in one_of_each if one[0] in chosen), lambda one: one[0], data.wanted, seed
    )


def _numbers(
    frames: Sequence[_Frame], masks: Sequence[NDArray[np.uint8]], undecided: int
) -> dict[str, int]:
    """Return the number of each species in the masks, which is not published: the most frequent one among its plants.

    Numbers are unique: of two species, the one with more pictures gets it, and the pictures of the other are not used.
    """
    frames_of_count: Counter[tuple[str, int]] = Counter()
    for (code, _, _), values in zip(frames, masks, strict=True):
        counts = np.bincount(values.ravel(), minlength=undecided + 1)
        counts[[0, undecided]] = 0
        if counts.any():
            frames_of_count[code, int(counts.argmax())] += 1
    numbers: dict[str, int] = {}
    for (species, number), _ in sorted(
        frames_of_count.items(), key=lambda item: (-item[1], item[0])
    ):
        if species not in numbers and number not in numbers.values():
            numbers[species] = number
    return numbers


def _form(mask: NDArray[np.bool_], least_in_one_piece: float) -> dict[str, Any] | None:
    """Return the form that a perfect tool measures: the same geometry, applied to the annotators' outline."""
    form = find_plants(mask, side_view=True)
    if not form.plants or form.plants[0].area_px < least_in_one_piece * mask.sum():
        return None
    plant = form.plants[0]
    x0, y0, x1, y1 = plant.box
    described = {
        "box": [*plant.box],
        "area_px": plant.area_px,
        "height_px": y1 - y0,
        "width_px": x1 - x0,
    }
    hull = {"convex_hull_px": plant.hull_area_px, "solidity": round_significant(plant.solidity, 6)}
    return {"plants": [{**described, **hull}]}


def _frame_subjects(code: str, pictures: Sequence[_ShownFrame]) -> list[Subject]:
    """Return subjects of a species: pictures by week, in arbitrary order, and those with a measurable form."""
    by_week = sorted(pictures, key=lambda one: int(one[1][0]["week"]))
    mixed = sorted(pictures, key=lambda one: str(one[0].sha256))
    formed = [one for one in by_week if one[1][2] is not None]
    some = (("", by_week, _cover, "pot_weed"), ("-mixed", mixed, _cover, "pot_weed_mixed"))
    return [
        photo_subject(
            f"weedsense-{code}{suffix}", photos, thing, {"species": photos[0][1][0]["species"]}, of
        )
        for suffix, photos, thing, of in (*some, ("-form", formed, _measured_form, "pot_weed_form"))
        if photos
    ]


def _cover(file: SampleFile, truth: _FrameTruth, __: int) -> Thing:
    words, cover, _ = truth
    return photo_thing(
        file, MEASURE, cover, f"I need the share of {file.name} that the plant covers.", words
    )


def _measured_form(file: SampleFile, truth: _FrameTruth, __: int) -> Thing:
    words, _, form = truth
    thought = f"I need the form of the plant in {file.name}."
    return photo_thing(file, "measure_weed_phenotype", form or {}, thought, words)
