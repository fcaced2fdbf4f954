"""Crops and weeds: potatoes (their plants counted) and sugar beets from drones, sesame from close above."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from agrotools.core import SampleFile
from agrotools.vision.reading import read_labels
from agrotools_build.area_truth import AreaTruth, Region, count_area, halves
from agrotools_build.sources.part import (
    Adapter,
    DataSet,
    Part,
    Photo,
    named,
    photo_subject,
    photo_thing,
)
from agrotools_build.templates import Thing, load_templates
from agrotools_build.templates.field import MEASURE, FieldPicture, field_picture
from agrotools_build.templates.template import Template, field_templates
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_photo
from field_parts.halves import counted_halves
from field_parts.kept import is_kept, kept_of
from field_parts.parcels import (
    PENS_ON_FALSE_COLOUR,
    Parcel,
    found_first,
    inside_of,
    is_outlined,
    note_of,
    only_inside,
    parcel_of,
    plot_of,
    points_inside,
)
from prepared import read_items

_SIDE_BY_SIDE = 2
"""Pictures that are compared in pairs."""
_TOGETHER = 4
"""Pictures of a block that are compared together."""


def _items_by_cluster(data: DataSet, note: str, *needed: str) -> dict[str, list[Photo[Any]]]:
    """Return pictures that are kept, and their items, by cluster."""
    found: dict[str, list[Photo[Any]]] = {}
    for item in read_items(data.folder, ("cluster", *needed), ("image", "mask")):
        file = data.originals.file(data.folder / item["image"], note=note)
        if is_kept(data, file):
            found.setdefault(str(item["cluster"]), []).append((file, item))
    return found


def _masked(data: DataSet, item: dict[str, Any]) -> NDArray[np.uint8]:
    return read_labels(data.folder / item["mask"]).classes.astype(np.uint8)


def _field_subjects(
    data: DataSet, cluster: str, photos: Sequence[Photo[Any]], noun: str, **more: Any
) -> list[Subject]:
    """Return subjects of two pictures and of four, whose areas of crop and weeds people outlined.

    ``more``: further arguments of the measurement.
    """
    masks = [_masked(data, item) for _, item in photos]

    def shown(members: Sequence[int]) -> Callable[[int, int], FieldPicture]:
        @cache  # a picture is used in many questions, and its areas take time to count
        def picture(index: int, place: int) -> FieldPicture:
            number = members[index]
            file, mask = named(photos[number][0], "image", place), masks[number]

            def area(region: Region | None) -> AreaTruth:
                return count_area(mask, None, region)

            rows, columns = mask.shape
            arguments = {"image": file.name, **more}
            return field_picture((file,), arguments, area, columns, rows, noun)

        return picture

    everything = range(len(photos))
    pairs = [
        everything[at : at + _SIDE_BY_SIDE]
        for at in range(0, len(photos) - _SIDE_BY_SIDE + 1, _SIDE_BY_SIDE)
    ]
    name = f"{data.listing.part}-{cluster}"
    subjects = [
        Subject(f"{name}-pair-{number}", len(pair), shown(pair), {"block": cluster})
        for number, pair in enumerate(pairs)
    ]
    if len(photos) >= _TOGETHER:
        four = everything[:_TOGETHER]
        subjects.append(
            Subject(f"{name}-four", _TOGETHER, shown(four), {"block": cluster}, "field_four")
        )
    return [replace(each, cluster=cluster) for each in subjects]


_PLOT = "the plot"
_SAME_AS_PLOT = (
    "plant_cover",
    "bare_soil",
    "weed_cover",
    "weed_limit",
    "crop_cover",
    "spot_litres",
    "plant_soil_pie",
    "surface_bars",
)
"""Templates that ask of a picture what is asked of a plot, where every picture is also asked about as a plot."""


def _plots(
    data: DataSet,
    cluster: str,
    photos: Sequence[Photo[Any]],
    pens: Sequence[str],
    **more: Any,
) -> list[Subject]:
    """Return each picture as a plot: the whole of it, or what a drawn line encloses."""
    return [
        replace(_plot(data, file, item, pens, **more), cluster=cluster) for file, item in photos
    ]


def _plot(
    data: DataSet, file: SampleFile, item: dict[str, Any], pens: Sequence[str], **more: Any
) -> Subject:
    name = f"{data.listing.part}-plot-{item['id']}"
    mask = _masked(data, item)
    rows, columns = mask.shape
    parcel = plot_of(name, columns, rows, pens) if is_outlined(name) else None
    note = f"{file.note}{note_of(parcel, _PLOT)}"
    shown = file.model_copy(update={"note": note})
    region: Region | None = None
    if parcel is not None:
        shown = as_photo(data, item, marks=(parcel,), note=note)
        region = inside_of(parcel[1])
    truth = count_area(mask, None, region).as_result()

    def thing(photo: SampleFile, _: object, __: int) -> Thing:
        thought = "I need the areas of crop, weeds and bare soil of the plot."
        before = found_first(photo, parcel)
        arguments = {**more, **only_inside(parcel)}
        return photo_thing(photo, MEASURE, truth, thought, {}, before, **arguments)

    return photo_subject(name, [(shown, None)], thing, {}, "plot")


_CHANNELS = {"NIR": 1, "R": 3}
"""Bands of the frames by channel: the copy took the tiles that the authors call CIR; plants are dark in the third."""


@partial(Adapter, "field.beet_weeds")
def beets(data: DataSet) -> Part:
    """Sugar beets and weeds (WeedMap): areas, in frames that experts marked pixel by pixel."""
    note = (
        "Sugar beets and weeds from a drone, in false colour: the red, green and blue channels show near infrared,"
        " green and red, so plants look yellow to orange, soil grey to blue."
    )
    subjects: list[Subject] = []
    for cluster, photos in _items_by_cluster(data, note).items():
        subjects += _field_subjects(data, cluster, photos, "drone picture", bands=_CHANNELS)
        subjects += _plots(data, cluster, photos, PENS_ON_FALSE_COLOUR, bands=_CHANNELS)
    return data.part(subjects, _asked())


def _asked() -> list[Template]:
    """Return the questions about fields and plots, without those that give a place in pixels."""
    every = (
        *field_templates(),
        *load_templates("scouting"),
        *load_templates("surely"),
        *load_templates("plot"),
        *load_templates("treating"),
    )
    return [each for each in every if each.template not in ("cover_in_box", *_SAME_AS_PLOT)]


_POTATO = {"plants": "potato plants", "seeds": "seed tubers"}


@partial(Adapter, "field.potato_weeds")
def potatoes(data: DataSet) -> Part:
    """Young potatoes from a drone: number of plants.

    Areas are not asked about: the outlines enclose ground between the leaves, and are 1.14 times as large as the green
    in them (median; 1.05 to 1.4 in most pictures).
    """
    note = (
        "Young potatoes in ridges, seen from straight above by a drone; a plant that the edge of the picture cuts"
        " counts, too."
    )
    subjects: list[Subject] = []
    for cluster, photos in _items_by_cluster(data, note, "plants").items():
        told = [photo for photo in photos if _can_be_told_from_weeds(data, photo[1])]
        subjects += _stands(data, f"{data.listing.part}-{cluster}", cluster, told)
    return data.part(subjects, load_templates("stand"))


_CROP, _WEED = 1, 2
_LEAST_OF_A_WEED = 0.5
"""Least size of the smallest plant of the crop, as a share of the largest weed: a person who counts seedlings on the
ridges goes by size, and takes larger weeds for potatoes."""


def _can_be_told_from_weeds(data: DataSet, item: dict[str, Any]) -> bool:
    """Return False if a weed is much larger than the smallest plant of the crop; it is then counted as left out."""
    mask = _masked(data, item)
    crop, weeds = _sizes(mask == _CROP), _sizes(mask == _WEED)
    is_told = min(crop, default=0) >= _LEAST_OF_A_WEED * max(weeds, default=0)
    if not is_told:
        data.dropped["with weeds twice as large as a plant of the crop"] += 1
    return is_told


def _sizes(marked: NDArray[np.bool_]) -> list[int]:
    """Return the pixels of each connected part."""
    parts, _ = ndimage.label(marked)
    return np.bincount(parts.ravel())[1:].tolist()


def _stands(data: DataSet, name: str, cluster: str, photos: Sequence[Photo[Any]]) -> list[Subject]:
    """Return the pictures of a block as stands of plants to be counted, and the halves of each."""
    pieces = [_piece(data, file, item) for file, item in photos]
    stands = photo_subject(f"{name}-stand", pieces, _stand, {"block": cluster}, "stand")
    split = [
        _half_stands(f"{name}-halves-{number}", file, item["plants"], number)
        for number, (file, item) in enumerate(photos[:_SIDE_BY_SIDE])
    ]
    return [replace(each, cluster=cluster) for each in (stands, *split)]


_PIECE = "the piece that was sampled"
_FEWEST_PLANTS = 3
"""Least number of plants inside a border."""
_Counted = tuple[int, Parcel | None]


def _piece(data: DataSet, file: SampleFile, item: dict[str, Any]) -> Photo[_Counted]:
    """Return the sampled piece of ground: the whole picture, or what a drawn line encloses."""
    name = f"{data.listing.part}-piece-{item['id']}"
    plants = [(float(x), float(y)) for x, y in item["plants"]]
    width, height = int(file.width_px or 0), int(file.height_px or 0)
    parcel = parcel_of(name, width, height, plants, _FEWEST_PLANTS) if is_outlined(name) else None
    note = f"{file.note}{note_of(parcel, _PIECE, 'plant')}"
    if parcel is None:
        return file.model_copy(update={"note": note}), (len(plants), None)
    marked = as_photo(data, item, marks=(parcel,), note=note)
    return marked, (len(points_inside(plants, parcel[1])), parcel)


def _stand(file: SampleFile, counted: _Counted, _: int) -> Thing:
    count, parcel = counted
    thought = f"I need to know how many plants there are in {file.name}."
    before, region = found_first(file, parcel), only_inside(parcel)
    truth = {"count": count}
    return photo_thing(
        file, "count_objects", truth, thought, _POTATO, before, target="plant", **region
    )


def _half_stands(name: str, file: SampleFile, plants: list[list[float]], number: int) -> Subject:
    parts = halves(int(file.width_px or 0), int(file.height_px or 0))[number % 2]
    how_many = "plants there are"
    return counted_halves(name, file, plants, parts, "plant", how_many, _POTATO, of="stand_half")


_SESAME_TOGETHER = 5
"""Photographs that are asked about together, so that no photograph is in more than a few questions."""


@partial(Adapter, "field.sesame_weeds")
def sesame(data: DataSet) -> Part:
    """Photographs of sesame or of weeds, several at a time: which show weeds?"""
    note = "A field of sesame, photographed from close above."
    photos = [
        (data.originals.file(data.folder / item["image"], note=note), str(item["label"]))
        for item in read_items(data.folder, ("label",), ("image",))
    ]
    photos = sorted(kept_of(data, photos), key=lambda photo: str(photo[0].sha256))
    # Spare photographs take the place of the only weed, or the only sesame: then none shows what is sought.
    spare = {
        kind: [photo for photo in photos if photo[1] == kind][:_SPARE] for kind in (_SESAME, "weed")
    }
    asked = [photo for photo in photos if photo not in (*spare[_SESAME], *spare["weed"])]
    subjects: list[Subject] = []
    for start in range(0, len(asked) - _SESAME_TOGETHER + 1, _SESAME_TOGETHER):
        some = asked[start : start + _SESAME_TOGETHER]
        name = f"sesame-{start // _SESAME_TOGETHER}"
        subject = photo_subject(name, some, _crop_or_weed, {}, "crop_or_weed")
        instead: dict[str, dict[str, SampleFile]] = {}
        for kind, sought in ((_SESAME, "weed"), ("weed", _SESAME)):
            paths = [file.path for file, label in some if label == sought]
            if spare[kind]:
                instead[f"no_{sought}"] = dict.fromkeys(paths, spare[kind].pop()[0])
        subjects.append(replace(subject, cluster=name, instead=instead))
    return data.part(subjects, ["crop_or_weed"])


_SESAME = "sesame"
_SPARE = 6
"""Photographs of each kind that are only shown in place of another one."""


def _crop_or_weed(file: SampleFile, label: str, _: int) -> Thing:
    is_weed = label != _SESAME
    truth = {"is_weed": is_weed, "abstained": False}
    thought = f"I need to know whether {file.name} shows a weed or the crop."
    words = {"crop": _SESAME}
    return photo_thing(file, "identify_weed", truth, thought, words)
