"""WeedSense (Sarker et al. 2025): potted weeds filmed week by week, with masks of the plants; the test split.

Frames were split at random, so neighbours of test frames are in the training split; therefore at most one frame of each
species and week is used. The table also has heights, but pixel sizes are unknown, so there are no questions about them.
Frames do not identify the pot either, so questions compare pictures of a species, not the growth of one plant.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import AreaTruth
from agrotools.build.sources.part import DataSet, Part, photo_subject, photo_thing, reasons
from agrotools.build.sources.reading import find_root, listed_items, read_mask, read_photo, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.field import MEASURE
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.tools.plants.measuring import find_plants
from agrotools.tools.result import round_significant


class _Frame(NamedTuple):
    """A frame of the table."""

    species: str
    week: int
    image: Path
    mask: Path


class _Truth(NamedTuple):
    """Truth of a picture; ``form`` is None if the plant is in several pieces."""

    words: Mapping[str, str]
    cover: Mapping[str, Any]
    form: Mapping[str, Any] | None


_Shown = tuple[SampleFile, _Truth]


def weedsense(data: DataSet) -> Part:
    """Covers and forms of plants, over weeks."""
    of = data.layout
    items = sorted(listed_items(data, find_root(data.folder, of["root"])))
    frames = _chosen(
        [
            _Frame(one.told["species"].upper(), int(float(one.told["week"])), one.files["picture"], one.files["mask"])
            for one in items
        ],
        data,
    )
    known = ({*range(len(of["species"]) + 1), of["undecided"]},)
    masks = [read_mask(frame.mask, known).astype(np.uint8) for frame in frames]
    numbers = _numbers(frames, masks, of["undecided"])
    by_species: defaultdict[str, list[_Shown]] = defaultdict(list)
    for frame, values in zip(frames, masks, strict=True):
        read_photo(frame.image, (values.shape[0], values.shape[1]))
        decided = values != of["undecided"]
        plant = (values > 0) & decided  # pixels with a wrong species number are plants too
        if decided.mean() < 1 - of["most_undecided"]:
            data.dropped["with more than 1 % left undecided"] += 1
        elif not plant.any():
            data.dropped["without a plant"] += 1
        elif np.sum(values == numbers.get(frame.species, -1)) < (1 - of["most_other"]) * plant.sum():
            data.dropped["with the number of another species"] += 1
        else:
            name = of["species"][frame.species]
            file = data.originals.file(frame.image, note=f"Frame of a video of potted {name}.")
            result = AreaTruth(0, int(plant.sum()), 0, int(decided.sum())).as_result()
            # Pixels outside the plant are pot, floor and wall: the mask says nothing about crop, weeds and soil.
            cover = {key: result[key] for key in ("total_px", "veg_px", "veg_pct")}
            truth = _Truth({"species": name, "week": str(frame.week)}, cover, _form(plant, of["least_in_one_piece"]))
            by_species[frame.species].append((file, truth))
    used = sum(map(len, by_species.values()))
    if 2 * used < len(frames):
        raise BenchmarkError(f"most of the masks compared in {data.folder} cannot be used ({reasons(data.dropped)})")
    subjects = [subject for code in sorted(by_species) for subject in _subjects(code, by_species[code])]
    return data.part(subjects, ["pot_weed"], {"weedsense": {"pictures": used, "species": len(by_species)}})


def _chosen(frames: Sequence[_Frame], data: DataSet) -> list[_Frame]:
    """Choose one frame of each species and week, limiting the species so that each keeps several weeks."""
    seed: int = data.layout["seed"]
    one_of_each = spread(frames, lambda one: one[:2], len({frame[:2] for frame in frames}), seed)
    species = sorted({frame.species for frame in frames})
    order = [species[int(place)] for place in np.random.default_rng(seed).permutation(len(species))]
    chosen = order[: max(1, data.wanted // data.layout["weeks_of_a_species"])]
    return spread((one for one in one_of_each if one.species in chosen), lambda one: one.species, data.wanted, seed)


def _numbers(frames: Sequence[_Frame], masks: Sequence[NDArray[np.uint8]], undecided: int) -> dict[str, int]:
    """Return the number of each species in the masks, which is not published: the most frequent one among its plants.

    Numbers are unique: of two species, the one with more pictures gets it, and the pictures of the other are not used.
    """
    frames_of_count: Counter[tuple[str, int]] = Counter()
    for frame, values in zip(frames, masks, strict=True):
        counts = np.bincount(values.ravel(), minlength=undecided + 1)
        counts[[0, undecided]] = 0
        if counts.any():
            frames_of_count[frame.species, int(counts.argmax())] += 1
    numbers: dict[str, int] = {}
    for (species, number), _ in sorted(frames_of_count.items(), key=lambda item: (-item[1], item[0])):
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
        "convex_hull_px": plant.hull_area_px,
        "solidity": round_significant(plant.solidity, 6),
    }
    return {"plants": [described]}


def _subjects(code: str, pictures: Sequence[_Shown]) -> list[Subject]:
    """Return subjects of a species: pictures by week, in arbitrary order, and those with a measurable form."""
    by_week = sorted(pictures, key=lambda one: int(one[1].words["week"]))
    mixed = sorted(pictures, key=lambda one: str(one[0].sha256))
    formed = [one for one in by_week if one[1].form is not None]
    some = (("", by_week, _cover, "pot_weed"), ("-mixed", mixed, _cover, "pot_weed_mixed"))
    return [
        photo_subject(f"weedsense-{code}{suffix}", photos, thing, {"species": photos[0][1].words["species"]}, of)
        for suffix, photos, thing, of in (*some, ("-form", formed, _measured_form, "pot_weed_form"))
        if photos
    ]


def _cover(file: SampleFile, one: _Truth, _: int) -> Thing:
    thought = f"I need the share of {file.name} that the plant covers."
    return photo_thing(file, MEASURE, one.cover, thought, one.words)


def _measured_form(file: SampleFile, one: _Truth, _: int) -> Thing:
    thought = f"I need the form of the plant in {file.name}."
    return photo_thing(file, "measure_weed_phenotype", one.form or {}, thought, one.words)
