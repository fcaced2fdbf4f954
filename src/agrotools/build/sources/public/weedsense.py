"""WeedSense (Sarker et al. 2025): potted weeds filmed week by week, with masks of the plants; the test split.

Frames were divided by chance, so that neighbours of a test frame are in the training split: of each species and week
one frame at most is shown. Heights are in the table too, but no frame tells how large a pixel is: none is asked about.
Which pot a frame shows is not told either, so questions compare pictures of a species, not the growth of one plant.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.area_truth import AreaTruth
from agrotools.build.sources.part import Originals, Part, named, reasons
from agrotools.build.sources.public.change_pairs import refuse_other_size, refused
from agrotools.build.sources.public.reading import SUFFIXES, find_root, read_table, spread, upright_size
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.field import MEASURE
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote
from agrotools.tools.plants.measuring import Plant, find_plants
from agrotools.tools.result import round_significant
from agrotools.vision.reading import read_labels

GET_IT = (
    "get the folder test of the Hugging Face data set baselab/weedsense and unpack its images.zip and mmseg_masks.zip,"
    " so that test_data.csv, images/ and mmseg_masks/ lie side by side"
)
SOURCE = SourceNote(
    name="WeedSense",
    licence="CC BY-NC-SA 4.0 (as its page at Hugging Face says)",
    url="https://huggingface.co/datasets/baselab/weedsense",
    citation="Sarker, T. et al.: WeedSense: Multi-Task Learning for Weed Segmentation, Height Estimation, and Growth"
    " Stage Classification. ICCV Workshops, 2025.",
    note="Questions, reference calls and tolerances are by agrotools; images, masks and weeks are the authors'. Test"
    " split, at most one frame of a species and week; frames close to it are in the training split.",
)
SPECIES: Mapping[str, str] = {
    "ABUTH": "velvetleaf", "AMAPA": "Palmer amaranth", "AMARE": "redroot pigweed", "AMATU": "waterhemp",
    "AMBEL": "common ragweed", "CHEAL": "common lambsquarters", "CYPES": "yellow nutsedge", "DIGSA": "large crabgrass",
    "ECHCG": "barnyardgrass", "ERICA": "horseweed", "PANDI": "fall panicum", "SETFA": "giant foxtail",
    "SETPU": "yellow foxtail", "SIDSP": "prickly sida", "SORHA": "johnsongrass", "SORVU": "shattercane",
}  # fmt: skip
"""By EPPO code, as the table gives it; what people call the weed."""
WEEKS = range(1, 12)
IGNORE = 255
"""Value of pixels that the annotators left undecided."""
_CLASSES = range(len(SPECIES) + 1)
_MOST_IGNORED = 0.01
"""Share of a picture: a tool cannot know which pixels to leave out, and questions are right within two points."""
_MOST_OTHER = 0.01
"""Share of the plant that may bear the number of another species; one species is in a picture."""
_MOST_LACKING = 0.05
"""Share of the table's rows that may lack a file; more means that archives were not unpacked whole."""
_LEAST_IN_ONE_PIECE = 0.95
"""Share of the plant in its largest piece, for its form to be that of the plant."""
_WEEKS_OF_A_SPECIES = 4
"""Pictures that a series needs for a curve."""
_SEED = 12
_PICTURES_A_SAMPLE = 2
_DIGITS = 6

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Frame:
    """A frame of the table whose files are there."""

    image: Path
    mask: Path
    species: str
    week: int


@dataclass(frozen=True)
class _Shown:
    """A picture with what is true of it. ``form`` is None where the plant is in pieces."""

    file: SampleFile
    species: str
    week: int
    cover: Mapping[str, Any]
    form: Mapping[str, Any] | None


def read(folder: Path, scratch: Path, samples: int) -> Part:  # noqa: ARG001 - nothing is made from these pictures
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root = find_root(folder, ("test_data.csv",), get_it=GET_IT)
    dropped: Counter[str] = Counter()
    frames = _frames(root, dropped)
    some = _chosen(frames, _PICTURES_A_SAMPLE * samples)
    masks = [_values(frame) for frame in some]
    numbers = _numbers(some, masks)
    originals = Originals()
    shown: defaultdict[str, list[_Shown]] = defaultdict(list)
    for frame, values in zip(some, masks, strict=True):
        reason = _refusal(values, numbers.get(frame.species))
        if reason:
            dropped[reason] += 1
        else:
            shown[frame.species].append(_shown(frame, values, originals))
    used = sum(map(len, shown.values()))
    if 2 * used < len(some):
        raise BenchmarkError(f"most masks looked at in {root} cannot be used ({reasons(dropped)})", hint=GET_IT)
    subjects = [subject for code in sorted(shown) for subject in _subjects(code, shown[code])]
    counts = {"pictures": used, "species": len(shown), "dropped": {**dropped}}
    return Part(
        "weedsense", SOURCE, subjects, load_templates("pot_weed"), samples, originals.files, {"weedsense": counts},
        dropped=dropped,
    )  # fmt: skip


def _frames(root: Path, dropped: Counter[str]) -> list[Frame]:
    """The table's frames, in order of their names; no picture is opened.

    Raises:
        BenchmarkError: the table holds what it should not, or many files are not there.
    """
    table = root / "test_data.csv"
    told: dict[str, tuple[str, int]] = {}
    for number, row in enumerate(read_table(table, ("img", "species", "week"), get_it=GET_IT), start=2):
        stem, species, week = Path(row["img"].strip()).stem, row["species"].strip().upper(), row["week"].strip()
        if not (stem and species and week):
            dropped["without a name, species or week in the table"] += 1
            continue
        if species not in SPECIES or not _is_week(week):
            raise BenchmarkError(
                f"{table}, line {number}: {species[:20]!r} is none of the 16 species, or {week[:20]!r} no week from 1"
                " to 11",
                hint=GET_IT,
            )
        entry = (species, int(float(week)))
        if told.setdefault(stem, entry) != entry:
            raise BenchmarkError(f"{table}, line {number} contradicts another line on {stem[:80]}", hint=GET_IT)
    images = _by_stem(root, "images", SUFFIXES)
    masks = _by_stem(root, "mmseg_masks", (".png",))
    lacking = sorted(told.keys() - (images.keys() & masks.keys()))
    if not told or len(lacking) > _MOST_LACKING * len(told):
        names = ", ".join(lacking[:3]) or "all"
        raise BenchmarkError(
            f"{root}: of {len(told)} frames in test_data.csv, {len(lacking)} have no picture in images or no mask in"
            f" mmseg_masks ({names})",
            hint=GET_IT,
        )
    if lacking:
        dropped["without a picture or a mask"] += len(lacking)
    return [Frame(images[stem], masks[stem], *told[stem]) for stem in sorted(told.keys() - set(lacking))]


def _is_week(text: str) -> bool:
    """Spreadsheets write 3 as 3.0."""
    try:
        return float(text) in WEEKS
    except ValueError:
        return False


def _by_stem(root: Path, name: str, suffixes: Sequence[str]) -> dict[str, Path]:
    """Files below the folder of that name, which an archive may hold once more inside; a Mac's copies left out."""
    place = find_root(root, (name,), get_it=GET_IT) / name
    files = (path for path in sorted(place.rglob("*")) if path.suffix.lower() in suffixes)
    return {path.stem: path for path in files if not path.name.startswith(".") and "__MACOSX" not in path.parts}


def _chosen(frames: Sequence[Frame], wanted: int) -> list[Frame]:
    """One frame of each species and week, of as many species as leaves each with several weeks."""
    kinds = {(frame.species, frame.week) for frame in frames}
    one_of_each = spread(frames, lambda frame: (frame.species, frame.week), len(kinds), _SEED)
    species = sorted({frame.species for frame in frames})
    order = [species[int(place)] for place in np.random.default_rng(_SEED).permutation(len(species))]
    taken = set(order[: max(1, wanted // _WEEKS_OF_A_SPECIES)])
    return spread((frame for frame in one_of_each if frame.species in taken), lambda one: one.species, wanted, _SEED)


def _values(frame: Frame) -> NDArray[np.uint8]:
    """The mask of a frame.

    Raises:
        BenchmarkError: it or its picture cannot be read, they differ in size, or it holds what is no class.
    """
    width, height = upright_size(frame.image, get_it=GET_IT)
    with refused(frame.mask, GET_IT):
        values = read_labels(frame.mask).classes
    refuse_other_size(frame.image, (height, width), (values.shape[0], values.shape[1]), get_it=GET_IT)
    strange = sorted({int(value) for value in np.unique(values)} - {*_CLASSES, IGNORE})
    if strange:
        said = ", ".join(map(str, strange[:5]))
        raise BenchmarkError(f"{frame.mask} has values that are neither 0 to 16 nor 255: {said}", hint=GET_IT)
    return values.astype(np.uint8)


def _numbers(frames: Sequence[Frame], masks: Sequence[NDArray[np.uint8]]) -> dict[str, int]:
    """The number of each species in the masks, which the authors do not publish: that of most of its pictures' plants.

    No two species have one number. Where two want the same, that with more pictures has it, and the other's pictures
    are not used.
    """
    wanted: Counter[tuple[str, int]] = Counter()
    for frame, values in zip(frames, masks, strict=True):
        counts = np.bincount(values.ravel(), minlength=IGNORE + 1)
        counts[[0, IGNORE]] = 0
        if counts.any():
            wanted[frame.species, int(counts.argmax())] += 1
    numbers: dict[str, int] = {}
    for (species, number), _ in sorted(wanted.items(), key=lambda item: (-item[1], item[0])):
        if species not in numbers and number not in numbers.values():
            numbers[species] = number
    return numbers


def _refusal(values: NDArray[np.uint8], number: int | None) -> str | None:
    """Why nothing can be asked about a picture."""
    if np.mean(values == IGNORE) > _MOST_IGNORED:
        return "with more than 1 % left undecided"
    plant = int(np.count_nonzero(_plant(values)))
    if not plant:
        return "without a plant"
    if number is None or np.count_nonzero(values == number) < (1 - _MOST_OTHER) * plant:
        return "with the number of another species"
    return None


def _plant(values: NDArray[np.uint8]) -> Mask:
    """Every class but the background: what bears a wrong number is a plant too."""
    return (values > 0) & (values != IGNORE)


def _shown(frame: Frame, values: NDArray[np.uint8], originals: Originals) -> _Shown:
    name = SPECIES[frame.species]
    file = originals.file(frame.image, note=f"Frame of a video of potted {name}.")
    plant = _plant(values)
    area = AreaTruth(0, int(plant.sum()), 0, int(np.count_nonzero(values != IGNORE)))
    result = area.as_result()
    # What is no plant is pot, floor and wall: of crop, weeds and soil the mask tells nothing.
    cover = {key: result[key] for key in ("total_px", "veg_px", "veg_pct")}
    return _Shown(file, frame.species, frame.week, cover, _form(plant))


def _form(mask: Mask) -> dict[str, Any] | None:
    """Form of the plant by a perfect tool: the same geometry, on the annotators' outline."""
    found = find_plants(mask, side_view=True)
    if not found.plants or found.plants[0].area_px < _LEAST_IN_ONE_PIECE * mask.sum():
        return None
    return {"plants": [_described(found.plants[0])]}


def _described(plant: Plant) -> dict[str, Any]:
    x0, y0, x1, y1 = plant.box
    return {
        "box": [*plant.box],
        "area_px": plant.area_px,
        "height_px": y1 - y0,
        "width_px": x1 - x0,
        "convex_hull_px": plant.hull_area_px,
        "solidity": round_significant(plant.solidity, _DIGITS),
    }


def _subjects(code: str, pictures: Sequence[_Shown]) -> list[Subject]:
    """The pictures of a species: by week, in an order that tells nothing, and those whose plant has a form."""
    by_week = sorted(pictures, key=lambda one: one.week)
    mixed = sorted(pictures, key=lambda one: str(one.file.sha256))
    formed = [one for one in by_week if one.form is not None]
    some = (
        Subject(f"weedsense-{code}", len(by_week), _covers(by_week), of="pot_weed"),
        Subject(f"weedsense-{code}-mixed", len(mixed), _covers(mixed), of="pot_weed_mixed"),
        Subject(f"weedsense-{code}-form", len(formed), _forms(formed), of="pot_weed_form"),
    )
    return [replace(subject, metadata={"species": SPECIES[code]}) for subject in some if subject.things]


def _covers(pictures: Sequence[_Shown]) -> Callable[[int, int], Thing]:
    def shown(index: int, place: int) -> Thing:
        one = pictures[index]
        file = named(one.file, "image", place)
        thought = f"I need the share of {file.name} that the plant covers."
        return Thing((file,), MEASURE, {"image": file.name}, one.cover, file.name, thought, _words(one))

    return shown


def _forms(pictures: Sequence[_Shown]) -> Callable[[int, int], Thing]:
    def shown(index: int, place: int) -> Thing:
        one = pictures[index]
        file = named(one.file, "image", place)
        thought = f"I need the form of the plant in {file.name}."
        truth = one.form or {}
        return Thing((file,), "measure_weed_phenotype", {"image": file.name}, truth, file.name, thought, _words(one))

    return shown


def _words(one: _Shown) -> dict[str, str]:
    return {"species": SPECIES[one.species], "week": str(one.week)}
