"""Crop rows with weeds, as photo or as five-band raster; and bands that separate their classes in surveyed squares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools_build.area_truth import AreaTruth, Region, count_area, cut_out
from agrotools_build.scenes.marks import grown, outlined, random_box
from agrotools_build.scenes.rows import (
    BANDS,
    CLASSES,
    COLUMNS_PX,
    ROWS_PX,
    UNSURVEYED,
    make_scene,
    surveyed,
)
from agrotools_build.scenes.scene import Box, Difficulty
from agrotools_build.sources.drawn import (
    INSIDE,
    SHARES_WITH_MARK,
    DrawnScene,
    Only,
    SceneKind,
    find_outline,
    save_jpeg,
    save_png,
    save_raster,
    turn_of,
)
from agrotools_build.sources.part import Originals, named, photo_thing
from agrotools_build.templates import Thing, field
from agrotools_build.templates.field import MEASURE, FieldPicture, field_picture
from agrotools_build.templates.thing import Subject
from agrotools_tools.crop_weed.bands import ranked_bands

COMPOSITES: tuple[tuple[str, str, str], ...] = (
    ("R", "G", "B"), ("NIR", "R", "G"), ("RE", "R", "G"), ("NIR", "RE", "R"), ("NIR", "G", "B"), ("RE", "G", "B"),
)  # fmt: skip
"""Composites of three bands, in the order of their names."""
_FIELDS = 2
_WEED_PCT = (2.0, 36.0)
"""Range of weed covers, percent; weeds cover less than the crop in about half of the fields."""
_OPEN_PCT = 35.0
"""Plant cover in percent below which soil shows between the plants everywhere; above it a stand is dense."""
_SHOWN_COMPOSITES = 4
_PLOT_SHARES, _PLOT_TRIES = (0.3, 0.6), 200
_TRIAL_SHARES, _TRIAL_TRIES = (0.35, 0.6), 40
"""Sides of a box around surveyed squares as shares of the picture's, and boxes tried."""
_ACCURACIES_APART = 0.045
"""Least difference of the accuracies of most composites in such a box and in the whole field: values are right within
0.03, bars within a twentieth.
"""
_LEAST_OF_CLASS_PX = 300
"""Least number of surveyed pixels of each class in such a box; of fewer, an accuracy is known too roughly."""
_LOOSE_PX, _STEADY = 2, 0.02
"""Pixels by which a box may be taken too large, and the largest change of an accuracy by that."""
_DIGITS = 6
_PHOTO_NOTE = "Drawn. Field seen straight from above, natural colours."
_PLOT_NOTE = f"{_PHOTO_NOTE} Where a red box is drawn, only the part inside it is asked for."
_RASTER_NOTE = (
    "Drawn. Field seen straight from above, calibrated reflectance times 10,000 in five bands."
)
_BOX_RULE = "Where a red box is drawn in the photo, only the part inside it is asked for."
_SQUARES_NOTE = (
    "Classes of the pixels in a few surveyed squares of the picture of the same number; 255: not surveyed. "
    f"{_BOX_RULE} Expected accuracy: the share of pixels classified correctly in parts of the squares that were held "
    "out of training, mean of crop, weeds and soil, by the better of two classifiers, quadratic discriminant analysis "
    "and a smoothed histogram."
)
View = Literal["photo", "bands"]


def _draw(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw two fields, each as photo, photo with a red box, and raster with surveyed squares and ranked bands."""
    rng = np.random.default_rng([seed, difficulty])
    of_plots = np.random.default_rng([seed, difficulty, 19])
    boxed, sign = float(of_plots.choice(SHARES_WITH_MARK)), float(of_plots.choice([-1.0, 1.0]))
    with_trial = float(np.random.default_rng([seed, difficulty, 20]).choice(SHARES_WITH_MARK))
    fields: list[JsonValue] = []
    for number in range(_FIELDS):
        # From clean to overgrown fields, so that no cover is typical.
        weed_pct = float(np.exp(rng.uniform(*np.log(_WEED_PCT))))
        width, height = (int(rng.uniform(0.45, 0.7) * side) for side in (COLUMNS_PX, ROWS_PX))
        x0, y0 = (
            int(rng.uniform(8, COLUMNS_PX - width - 8)),
            int(rng.uniform(8, ROWS_PX - height - 8)),
        )
        photo, with_box, map_of_squares, raster = names = (
            f"photo_{number}.jpg", f"marked_{number}.jpg", f"squares_{number}.png", f"bands_{number}.tif",
        )  # fmt: skip
        plot, trial = f"plot_{number}.jpg", f"trial_{number}.jpg"
        if not any(map(only, (*names, plot, trial))):
            continue
        scene = make_scene(_FIELDS * seed + number, difficulty, weed_pct=weed_pct)
        classes = cast("NDArray[np.uint8]", scene.masks["classes"])
        gsd_m = float(scene.sidecar["gsd_m"])
        marked, box = outlined(scene.images["rgb"], (x0, y0, x0 + width, y0 + height))
        squares = surveyed(classes, np.random.default_rng([seed, difficulty, number]))
        of_plot = np.random.default_rng([seed, difficulty, 19, number])
        plot_box = _telling_box(of_plot, classes, sign) if of_plot.uniform() < boxed else None
        if plot_box:
            with_plot, plot_box = outlined(scene.images["rgb"], plot_box)
            save_jpeg(folder / plot, with_plot, 93, full_colour=True)
        of_trial = np.random.default_rng([seed, difficulty, 20, number])
        trial_box = (
            _deciding_box(of_trial, scene.images["bands"], squares)
            if only(trial) and of_trial.uniform() < with_trial
            else None
        )
        if trial_box:
            # The outline is drawn along a line 3 px outside the pixels that it encloses, 2 px at the right and below.
            x0, y0, x1, y1 = trial_box
            with_trial_box, _ = outlined(scene.images["rgb"], (x0 - 3, y0 - 3, x1 + 2, y1 + 2))
            save_jpeg(folder / trial, with_trial_box, 93, full_colour=True)
        save_jpeg(folder / photo, scene.images["rgb"], 93, full_colour=True)
        save_jpeg(folder / with_box, marked, 93, full_colour=True)
        save_png(folder / map_of_squares, squares)
        if only(raster):
            save_raster(folder / raster, scene.images["bands"], BANDS, gsd_m, number)
        if all(map(only, names)):
            save_png(folder / f"classes_{number}.png", classes)
            facts: dict[str, Any] = {
                "gsd_m": gsd_m,
                "box": [*box],
                "plot": plot_box,
                "bands": _ranking(scene.images["bands"], squares),
                "trial": trial_box and [*trial_box],
                "trial_bands": trial_box and _ranking(scene.images["bands"], squares, trial_box),
            }
            fields.append(facts)
    composites = (
        _shown_composites(cast("Any", fields[0])["bands"], rng) if len(fields) == _FIELDS else []
    )
    return {"fields": fields, "composites": [[*bands] for bands in composites]}


def _telling_box(rng: np.random.Generator, classes: NDArray[np.uint8], sign: float) -> Box | None:
    """Return a box whose plant cover is clearly larger (``sign`` 1) or smaller (-1) than that of the whole field.

    The mean of two fields, one of them without a box, must differ by more than the answer may. None if there is none.
    """
    plants = classes > 0

    def cover_pct(box: Box) -> float:
        return 100.0 * float(plants[box[1] : box[3], box[0] : box[2]].mean())

    whole_pct = 100.0 * float(plants.mean())
    boxes = [random_box(rng, classes.shape, _PLOT_SHARES) for _ in range(_PLOT_TRIES)]
    best = max(boxes, key=lambda box: sign * cover_pct(box))
    least = 2.2 * max(2.0, 0.12 * cover_pct(best))
    return best if sign * (cover_pct(best) - whole_pct) >= least else None


def _shown_composites(
    ranking: Mapping[str, Any], rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    """Return composites in random order: one drawn first and worse ones, so that the best is not always the same."""

    def accuracy(bands: tuple[str, str, str]) -> float:
        return next(
            entry["expected_accuracy"] or 0.0
            for key, entry in ranking.items()
            if {*key.split("-")} == {*bands}
        )

    by_rank = sorted(COMPOSITES, key=accuracy, reverse=True)
    best = int(rng.integers(len(by_rank) - _SHOWN_COMPOSITES + 1))
    worse = by_rank[best + 1 :]
    composites = [
        by_rank[best],
        *(worse[int(k)] for k in rng.permutation(len(worse))[: _SHOWN_COMPOSITES - 1]),
    ]
    return [composites[int(k)] for k in rng.permutation(len(composites))]


def _deciding_box(
    rng: np.random.Generator, bands: NDArray[np.uint16], squares: NDArray[np.uint8]
) -> Box | None:
    """Return a box in which most composites are clearly better or worse than in the whole field; None if there is none.

    A box that is taken a little too large gives the same answers.
    """
    whole = _accuracies(bands, squares, None)
    if whole is None:
        return None
    for _ in range(_TRIAL_TRIES):
        box = random_box(rng, squares.shape, _TRIAL_SHARES)
        inside = _accuracies(bands, squares, box)
        if inside is None or float(np.median(abs(inside - whole))) < _ACCURACIES_APART:
            continue
        loose = _accuracies(bands, squares, grown(box, _LOOSE_PX))
        if loose is not None and float(abs(loose - inside).max()) <= _STEADY:
            return box
    return None


def _accuracies(
    bands: NDArray[np.uint16], squares: NDArray[np.uint8], box: Box | None
) -> NDArray[np.float64] | None:
    """Return the expected accuracy of each of :data:`COMPOSITES`; None if the box has too few pixels of a class."""
    if box is not None and not _has_all_classes(squares, box):
        return None
    ranking = _ranking(bands, squares, box)
    of_bands = {frozenset(key.split("-")): cast("Any", entry) for key, entry in ranking.items()}
    found = [of_bands[frozenset(one)]["expected_accuracy"] for one in COMPOSITES]
    return None if None in found else np.array(found, np.float64)


def _has_all_classes(squares: NDArray[np.uint8], box: Box) -> bool:
    inside = squares[box[1] : box[3], box[0] : box[2]]
    return all(np.count_nonzero(inside == number) >= _LEAST_OF_CLASS_PX for number in CLASSES)


def _ranking(
    bands: NDArray[np.uint16], classes: NDArray[np.uint8], box: Box | None = None
) -> dict[str, JsonValue]:
    """Return the separability of each set of three bands in the surveyed squares, by the joined names of its bands.

    ``box``: only what lies inside it counts.
    """
    planes = {name: bands[k].astype(np.float32) * np.float32(1e-4) for k, name in enumerate(BANDS)}
    region = box or (0, 0, classes.shape[1], classes.shape[0])
    ranked = ranked_bands(planes, classes, region, "labels")
    assert ranked is not None, "rows with crop, weeds and soil"
    return {
        "-".join(one.bands): {
            "expected_accuracy": None
            if one.expected_accuracy is None
            else round_significant(one.expected_accuracy, _DIGITS),
            "min_jm": round_significant(one.min_jm, _DIGITS),
        }
        for one in ranked.triplets
    }


def _subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``field``, ``row_part`` (inside a red box, open and dense apart), ``row_plot`` and ``composite``.

    ``row_plot`` is a field, or the part inside the red box where there is one, and ``row_ndvi`` the raster of the same;
    ``composite`` has three bands each, and ``composite_field`` the same three bands in each field, both inside the red
    box where there is one.
    """
    record = cast("dict[str, Any]", drawn.record)
    view: View = turn_of(drawn.seed, ("photo", "bands"))
    fields = [_Field(drawn.folder, k, item, originals) for k, item in enumerate(record["fields"])]
    first, composites = fields[0], [tuple(bands) for bands in record["composites"]]
    # One of the composites for both fields; their order is random.
    of_both = composites[0]

    @cache
    def picture(index: int, place: int) -> FieldPicture:
        return fields[index].picture(view, place)

    def alike(
        name: str, of: str, shown: Callable[[int, int], Thing], boxes: Sequence[Region | None]
    ) -> list[Subject]:
        """Return a subject of the open fields and one of the dense ones, as far as there are any."""
        covers = [field.area(box).veg_pct for field, box in zip(fields, boxes, strict=True)]
        subjects: list[Subject] = []
        for stand in ("open", "dense"):
            members = [
                k for k, cover in enumerate(covers) if (cover < _OPEN_PCT) == (stand == "open")
            ]

            def pick(index: int, place: int, members: list[int] = members) -> Thing:
                return shown(members[index], place)

            subjects.append(
                drawn.subject(f"{name}-{stand}", len(members), pick, of, variant=f"{name} {stand}")
            )
        return subjects

    return [
        *alike(view, "field", picture, [None] * _FIELDS),
        *(
            replace(
                subject, instead={"unmarked": {field.marked.path: field.photo for field in fields}}
            )
            for subject in alike(
                "part",
                "row_part",
                lambda index, place: fields[index].part(place),
                [field.box for field in fields],
            )
        ),
        *alike(
            "plot",
            "row_plot",
            lambda index, place: fields[index].plot(place),
            [field.plot_box for field in fields],
        ),
        drawn.subject("ndvi", _FIELDS, lambda index, place: fields[index].ndvi(place), "row_ndvi"),
        drawn.subject(
            "composites",
            len(composites),
            lambda index, _: first.composite(composites[index], 1),
            "composite",
        ),
        drawn.subject(
            "both",
            _FIELDS,
            lambda index, place: fields[index].with_composite(of_both, place),
            "composite_field",
        ),
    ]


class _Field:
    """A drawn field: its files and its truth."""

    def __init__(
        self, folder: Path, number: int, item: Mapping[str, Any], originals: Originals
    ) -> None:
        self.gsd_m, self.ranking = item["gsd_m"], item["bands"]
        self.box: Region = item["box"]
        self.plot_box: Region | None = item["plot"]
        self.trial_box: Region | None = item["trial"]
        self.trial_ranking: Mapping[str, Any] = item["trial_bands"] or self.ranking
        self._classes = folder / f"classes_{number}.png"
        self._raster = folder / f"bands_{number}.tif"
        size = {"width_px": COLUMNS_PX, "height_px": ROWS_PX, "gsd_m": self.gsd_m}
        self.photo = originals.file(folder / f"photo_{number}.jpg", note=_PHOTO_NOTE, **size)
        self.marked = originals.file(folder / f"marked_{number}.jpg", note=_PHOTO_NOTE, **size)
        shown = folder / (f"plot_{number}.jpg" if self.plot_box else f"photo_{number}.jpg")
        self.plot_photo = originals.file(shown, note=_PLOT_NOTE, **size)
        trial = folder / (f"trial_{number}.jpg" if self.trial_box else f"photo_{number}.jpg")
        self.trial_photo = originals.file(trial, note=_PLOT_NOTE, **size)
        self.raster = originals.file(
            folder / f"bands_{number}.tif",
            kind="raster",
            bands=BANDS,
            crs="EPSG:32632",
            note=_RASTER_NOTE,
            **size,
        )
        named_classes = {
            **{str(value): name for value, name in CLASSES.items()},
            str(UNSURVEYED): "ignore",
        }
        squares = folder / f"squares_{number}.png"
        self.squares = originals.file(
            squares, kind="mask", classes=named_classes, note=_SQUARES_NOTE, **size
        )

    def picture(self, view: View, place: int) -> FieldPicture:
        picture_file = (
            named(self.raster, "bands", place)
            if view == "bands"
            else named(self.photo, "image", place)
        )
        noun = "multispectral image" if view == "bands" else "photo"
        return field_picture(
            (picture_file,), {"image": picture_file.name}, self.area, COLUMNS_PX, ROWS_PX, noun
        )

    def area(self, region: Region | None) -> AreaTruth:
        return count_area(_class_map(self._classes), None, region)

    def composite(self, bands: tuple[str, ...], place: int) -> Thing:
        """Return three bands of the raster as a thing called by their names."""
        numbers: dict[str, JsonValue] = {name: BANDS.index(name) + 1 for name in bands}
        key = next(key for key in self.ranking if set(key.split("-")) == set(bands))
        called = "-".join(bands)
        photo, raster, labels = (
            named(file, stem, place)
            for file, stem in (
                (self.trial_photo, "image"), (self.raster, "bands"), (self.squares, "squares"),
            )
        )  # fmt: skip
        where = f" inside the red box of {photo.name}" if self.trial_box else ""
        thought = f"I need how well the bands {called} tell crop, weeds and soil apart{where}."
        truth = {"separability": {"triplets": [{"bands": [*bands], **self.trial_ranking[key]}]}}
        words = {"image": raster.name, "labels": labels.name, "bands": called}
        box: dict[str, Any] = {}
        if self.trial_box:
            box = {"before": (find_outline(photo.name, [*self.trial_box]),), "region": INSIDE}
        thing = photo_thing(raster, MEASURE, truth, thought, words, label_raster=labels.name, **box)
        return replace(
            thing,
            files=(photo, raster, labels),
            arguments={**thing.arguments, "bands": numbers},
            called=called,
        )

    def with_composite(self, bands: tuple[str, ...], place: int) -> Thing:
        """Return three bands of the raster as a thing called by the file."""
        thing = self.composite(bands, place)
        return replace(thing, called=thing.words["image"])

    def plot(self, place: int) -> Thing:
        photo = named(self.plot_photo, "image", place)
        if self.plot_box:
            return self._boxed(photo, self.plot_box)
        thought = f"I need the areas of crop, weeds and soil in {photo.name}."
        return photo_thing(photo, MEASURE, self.area(None).as_result(self.gsd_m), thought)

    def ndvi(self, place: int) -> Thing:
        """Return the raster of a field with its mean NDVI, inside the red box of its photo where there is one."""
        photo = named(self.plot_photo, "image", place)
        raster = named(self.raster, "bands", place)
        where, box = "", dict[str, Any]()
        if self.plot_box:
            where = f" inside the red box of {photo.name}"
            box = {"before": (find_outline(photo.name, [*self.plot_box]),), "region": INSIDE}
        thought = f"I need the mean NDVI of {raster.name}{where}."
        truth = {"ndvi": _mean_ndvi(self._raster, self.plot_box)}
        thing = photo_thing(raster, "describe_region", truth, thought, attributes=["cover"], **box)
        return replace(thing, files=(photo, raster))

    def part(self, place: int) -> Thing:
        return self._boxed(named(self.marked, "image", place), self.box)

    def _boxed(self, photo: SampleFile, box: Region) -> Thing:
        truth = self.area(box).as_result(self.gsd_m)
        thought = f"Now I need the areas of crop, weeds and soil inside the box in {photo.name}."
        return photo_thing(
            photo,
            MEASURE,
            truth,
            thought,
            before=(find_outline(photo.name, [*box]),),
            region=INSIDE,
        )


@cache
def _class_map(path: Path) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture, np.uint8)


def _mean_ndvi(path: Path, region: Region | None) -> float:
    """Return the mean NDVI of a drawn raster, in a region if there is one."""
    import rasterio

    with rasterio.open(path) as raster:
        red, near_infrared = (
            raster.read(BANDS.index(band) + 1).astype(np.float64) for band in ("R", "NIR")
        )
    ndvi = (near_infrared - red) / (near_infrared + red)
    mean = float(cut_out(ndvi, region).mean())
    return cast(float, round_significant(mean, _DIGITS))


# No trained heads, so that the observations are the same on every machine.
ROWS = SceneKind(
    11, ("drawn_bands", "drawn_rows", *field.TEMPLATES), _draw, _subjects, {MEASURE: "untrained"}
)
