"""WeedSense (Sarker et al. 2025): potted weeds filmed week by week, with masks of the plants; the test split.

Frames were split at random, so neighbours of test frames are in the training split; therefore at most one frame of each
species and week is used. The table also has heights, but pixel sizes are unknown, so there are no questions about them.
Frames do not identify the pot either, so questions compare pictures of a species, not the growth of one plant.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import AreaTruth
from agrotools.build.sources.layout import listed_items
from agrotools.build.sources.part import DataSet, Part, listing_of, photo_subject, photo_thing, reasons
from agrotools.build.sources.reading import find_root, read_mask, read_photo, spread
from agrotools.build.templates import Thing
from agrotools.build.templates.field import MEASURE
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.tools.plants.measuring import find_plants
from agrotools.tools.result import round_significant

SPECIES: Mapping[str, str] = listing_of("weedsense").layout["species"]
IGNORE = 255
"""Value of pixels that the annotators left undecided."""
_CLASSES = range(len(SPECIES) + 1)
_MOST_IGNORED = 0.01
"""Largest share of undecided pixels in a picture. A tool cannot know which pixels to leave out, and the tolerance of
answers is two points.
"""
_MOST_OTHER = 0.01
"""Largest share of a plant with the number of another species; a picture shows a single species."""
_LEAST_IN_ONE_PIECE = 0.95
"""Smallest share of the plant in its largest piece for its form to be measured."""
_WEEKS_OF_A_SPECIES = 4
"""Number of pictures that a series needs for a curve."""
_SEED = 12
_DIGITS = 6

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Frame:
    """A frame of the table whose files exist."""

    image: Path
    mask: Path
    species: str
    week: int


@dataclass(frozen=True)
class _Truth:
    """Truth of a picture; ``form`` is None if the plant is in several pieces."""

    species: str
    week: int
    cover: Mapping[str, Any]
    form: Mapping[str, Any] | None

    @property
    def words(self) -> dict[str, str]:
        return {"species": SPECIES[self.species], "week": str(self.week)}


_Shown = tuple[SampleFile, _Truth]


def weedsense(data: DataSet) -> Part:
    """Covers and forms of plants, over weeks."""
    items = listed_items(data, find_root(data.folder, data.layout["root"]))
    frames = [
        Frame(item.files["picture"], item.files["mask"], item.told["species"].upper(), int(float(item.told["week"])))
        for item in sorted(items)
    ]
    some = _chosen(frames, data.wanted)
    masks = [_values(frame) for frame in some]
    numbers = _numbers(some, masks)
    by_species: defaultdict[str, list[_Shown]] = defaultdict(list)
    for frame, values in zip(some, masks, strict=True):
        reason = _refusal(values, numbers.get(frame.species))
        if reason:
            data.dropped[reason] += 1
        else:
            by_species[frame.species].append(_pot_picture(frame, values, data))
    used = sum(map(len, by_species.values()))
    if 2 * used < len(some):
        raise BenchmarkError(f"most of the masks compared in {data.folder} cannot be used ({reasons(data.dropped)})")
    subjects = [subject for code in sorted(by_species) for subject in _subjects(code, by_species[code])]
    return data.part(subjects, ["pot_weed"], {"weedsense": {"pictures": used, "species": len(by_species)}})


def _chosen(frames: Sequence[Frame], wanted: int) -> list[Frame]:
    """Choose one frame of each species and week, limiting the species so that each keeps several weeks."""
    kinds = {(frame.species, frame.week) for frame in frames}
    one_of_each = spread(frames, lambda frame: (frame.species, frame.week), len(kinds), _SEED)
    species = sorted({frame.species for frame in frames})
    order = [species[int(place)] for place in np.random.default_rng(_SEED).permutation(len(species))]
    chosen_species = set(order[: max(1, wanted // _WEEKS_OF_A_SPECIES)])
    return spread(
        (frame for frame in one_of_each if frame.species in chosen_species), lambda one: one.species, wanted, _SEED
    )


def _values(frame: Frame) -> NDArray[np.uint8]:
    values = read_mask(frame.mask, ({*_CLASSES, IGNORE},)).astype(np.uint8)
    read_photo(frame.image, (values.shape[0], values.shape[1]))
    return values


def _numbers(frames: Sequence[Frame], masks: Sequence[NDArray[np.uint8]]) -> dict[str, int]:
    """Return the number of each species in the masks, which the authors do not publish.

    It is the most frequent number among the plants of its pictures. Numbers are unique: if two species share one, the
    species with more pictures gets it, and the pictures of the other are not used.
    """
    frames_of_count: Counter[tuple[str, int]] = Counter()
    for frame, values in zip(frames, masks, strict=True):
        counts = np.bincount(values.ravel(), minlength=IGNORE + 1)
        counts[[0, IGNORE]] = 0
        if counts.any():
            frames_of_count[frame.species, int(counts.argmax())] += 1
    numbers: dict[str, int] = {}
    for (species, number), _ in sorted(frames_of_count.items(), key=lambda item: (-item[1], item[0])):
        if species not in numbers and number not in numbers.values():
            numbers[species] = number
    return numbers


def _refusal(values: NDArray[np.uint8], number: int | None) -> str | None:
    """Return the reason why no question can be asked about a picture, or None."""
    if np.mean(values == IGNORE) > _MOST_IGNORED:
        return "with more than 1 % left undecided"
    plant = int(np.count_nonzero(_plant(values)))
    if not plant:
        return "without a plant"
    if number is None or np.count_nonzero(values == number) < (1 - _MOST_OTHER) * plant:
        return "with the number of another species"
    return None


def _plant(values: NDArray[np.uint8]) -> Mask:
    """Return the mask of all plants; pixels with a wrong species number are plants too."""
    return (values > 0) & (values != IGNORE)


def _pot_picture(frame: Frame, values: NDArray[np.uint8], data: DataSet) -> _Shown:
    file = data.originals.file(frame.image, note=f"Frame of a video of potted {SPECIES[frame.species]}.")
    plant = _plant(values)
    result = AreaTruth(0, int(plant.sum()), 0, int(np.count_nonzero(values != IGNORE))).as_result()
    # Pixels outside the plant are pot, floor and wall: the mask says nothing about crop, weeds and soil.
    cover = {key: result[key] for key in ("total_px", "veg_px", "veg_pct")}
    return file, _Truth(frame.species, frame.week, cover, _form(plant))


def _form(mask: Mask) -> dict[str, Any] | None:
    """Return the form that a perfect tool measures: the same geometry, applied to the annotators' outline."""
    form = find_plants(mask, side_view=True)
    if not form.plants or form.plants[0].area_px < _LEAST_IN_ONE_PIECE * mask.sum():
        return None
    plant = form.plants[0]
    x0, y0, x1, y1 = plant.box
    described = {
        "box": [*plant.box],
        "area_px": plant.area_px,
        "height_px": y1 - y0,
        "width_px": x1 - x0,
        "convex_hull_px": plant.hull_area_px,
        "solidity": round_significant(plant.solidity, _DIGITS),
    }
    return {"plants": [described]}


def _subjects(code: str, pictures: Sequence[_Shown]) -> list[Subject]:
    """Return subjects of a species: pictures by week, in arbitrary order, and those with a measurable form."""
    by_week = sorted(pictures, key=lambda one: one[1].week)
    mixed = sorted(pictures, key=lambda one: str(one[0].sha256))
    formed = [one for one in by_week if one[1].form is not None]
    some = (("", by_week, _cover, "pot_weed"), ("-mixed", mixed, _cover, "pot_weed_mixed"))
    return [
        photo_subject(f"weedsense-{code}{suffix}", photos, thing, {"species": SPECIES[code]}, of)
        for suffix, photos, thing, of in (*some, ("-form", formed, _measured_form, "pot_weed_form"))
        if photos
    ]


def _cover(file: SampleFile, one: _Truth, _: int) -> Thing:
    thought = f"I need the share of {file.name} that the plant covers."
    return photo_thing(file, MEASURE, one.cover, thought, one.words)


def _measured_form(file: SampleFile, one: _Truth, _: int) -> Thing:
    thought = f"I need the form of the plant in {file.name}."
    return photo_thing(file, "measure_weed_phenotype", one.form or {}, thought, one.words)
