"""Trees seen from the air: crowns boxed in plots, trees of towns, oil palms, and crowns that are dead or alive."""

import hashlib
from collections.abc import Mapping, Sequence
from csv import DictReader
from dataclasses import replace
from functools import partial
from typing import Any

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools_build.area_truth import Region, halves
from agrotools_build.sources.part import (
    Adapter,
    DataSet,
    Part,
    Photo,
    photo_subject,
    photo_thing,
)
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from field_parts.converted import as_photo
from field_parts.halves import counted_halves
from field_parts.kept import CROWNS_OF_FORESTS, TREES_OF_TOWNS, is_kept
from field_parts.parcels import (
    Parcel,
    Point,
    found_first,
    is_outlined,
    note_of,
    only_inside,
    parcel_of,
    points_inside,
)
from prepared import read_items

_DIGITS = 6
_M2_PER_HA = 10_000
PLOT_SIDE_PX = 400
"""Least side of the pictures of trees from the air."""
_TREE = {"tree": "tree", "trees": "trees"}
_PALM = {"tree": "oil palm", "trees": "oil palms"}
_SITE = "the site"
_LAND = {"palm_photo": "the grower's block", "date_grove": "the grower's land"}
"""What a note calls the ground that a question is about, by kind of picture."""
_DATE_PALM = {"tree": "date palm", "trees": "date palms"}


@partial(Adapter, "field.neon_trees")
def trees_from_the_air(data: DataSet) -> Part:
    """Crowns that people boxed in pictures of 0.1 m from the air: plots, and their halves; places are not mixed."""
    places: dict[str, list[tuple[SampleFile, list[Point]]]] = {}
    for item in read_items(data.folder, ("gsd_m",), ("image", "boxes")):
        note = f"Seen from straight above, from an aeroplane.{note_of(None, _SITE)}"
        with (data.folder / item["boxes"]).open(encoding="utf-8") as lines:
            boxes = [
                [float(row[edge]) for edge in ("xmin", "xmax", "ymin", "ymax")]
                for row in DictReader(lines)
            ]
        centres = [((x0 + x1) / 2, (y0 + y1) / 2) for x0, x1, y0, y1 in boxes]
        file = as_photo(data, item, gsd_m=item["gsd_m"], note=note)
        # One of the three places is shown in several tiles; the others, of open woodland, are compared with each other.
        place = "tiles" if "crop" in item["source"] else "plots"
        places.setdefault(place, []).append((file, centres))
    subjects: list[Subject] = []
    for place, plots in places.items():
        subjects.append(
            photo_subject(f"trees-{place}", plots, _plot_of_trees, {"place": place}, "tree_plot")
        )
        for number, (file, centres) in enumerate(plots):
            alone = photo_subject(
                f"trees-{place}-{number}-alone", [(file, centres)], _plot_of_trees, {}, "tree_plot"
            )
            subjects.append(alone)
            parts = halves(int(file.width_px or PLOT_SIDE_PX), int(file.height_px or PLOT_SIDE_PX))[
                number % 2
            ]
            subjects.append(_half_plots(f"trees-{place}-{number}", file, centres, parts, _TREE))
    return data.part(subjects, ["tree_plots"])


def _plot_of_trees(file: SampleFile, centres: list[Point], _: int) -> Thing:
    return _counted_on(file, centres, None, _TREE)


def _half_plots(
    name: str,
    file: SampleFile,
    centres: list[Point],
    parts: Sequence[tuple[str, Region]],
    words: Mapping[str, str],
) -> Subject:
    how_many = f"{words['trees']} stand"
    return counted_halves(
        name, file, centres, parts, words["tree"], how_many, words, of="tree_half_plot"
    )


_MOST_TREES = 40
"""Most trees of a whole picture of a town. With more, most crowns are two or three pixels wide or grown together, and
whoever looks does not come within the tolerance of the people who marked them."""


@partial(Adapter, "field.town_trees")
def town_trees(data: DataSet) -> Part:
    """Trees of towns with a point on each: pictures and their halves."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("points", "cluster", "gsd_m"), ("image",)):
        note = "Part of a town, seen from straight above, from an aeroplane."
        whole = note + note_of(None, _SITE)
        file = as_photo(data, item, gsd_m=item["gsd_m"], note=whole)
        if not is_kept(data, file):
            continue
        points = _points(item)
        name = f"town-{item['cluster']}"
        marked = _with_border(data, item, name, note, _SITE, points)
        if marked is None and len(points) > _MOST_TREES:
            data.dropped["whole pictures with more trees than a person counts alike"] += 1
            continue
        photo = marked or (file, (points, None))
        own = [photo_subject(f"{name}-alone", [photo], _site, {}, "tree_plot")]
        if marked is None:
            own += _both_halves(name, file, points, _TREE)
        subjects += [
            replace(each, cluster=str(item["cluster"]), groups=TREES_OF_TOWNS) for each in own
        ]
    return data.part(subjects, ["tree_plots"])


_Counted = tuple[list[Point], Parcel | None]
"""The counted points, all inside the border if there is one."""


def _with_border(
    data: DataSet, item: dict[str, Any], name: str, note: str, land: str, points: list[Point]
) -> Photo[_Counted] | None:
    """Return a picture with the border of a parcel; None if it is not one of those that have one."""
    if not is_outlined(name):
        return None
    scale = {"gsd_m": item["gsd_m"]} if "gsd_m" in item else {}
    plain = as_photo(data, item, note=note, **scale)
    parcel = parcel_of(name, int(plain.width_px or 0), int(plain.height_px or 0), points)
    if parcel is None:
        return None
    marked = as_photo(
        data, item, marks=(parcel,), note=note + note_of(parcel, land, "tree"), **scale
    )
    return marked, (points_inside(points, parcel[1]), parcel)


def _site(file: SampleFile, counted: _Counted, _: int) -> Thing:
    return _counted_on(file, *counted, _TREE)


def _counted_on(
    file: SampleFile, points: Sequence[Point], parcel: Parcel | None, words: Mapping[str, str]
) -> Thing:
    """Return the count of the trees on a parcel, or on the whole picture without one."""
    truth: dict[str, Any] = {"count": len(points)}
    if file.gsd_m:
        x0, y0, x1, y1 = parcel[1] if parcel else (0, 0, file.width_px or 0, file.height_px or 0)
        hectares = (x1 - x0) * (y1 - y0) * file.gsd_m**2 / _M2_PER_HA
        truth["density_per_ha"] = round_significant(len(points) / hectares, _DIGITS)
    thought = f"I need to know how many {words['trees']} stand there in {file.name}."
    before = found_first(file, parcel)
    region = only_inside(parcel)
    target = words["tree"]
    return photo_thing(
        file, "count_objects", truth, thought, words, before, target=target, **region
    )


def _points(item: Mapping[str, Any]) -> list[Point]:
    return [(x, y) for x, y in item["points"]]


def _both_halves(
    name: str, file: SampleFile, points: list[Point], words: Mapping[str, str]
) -> list[Subject]:
    parts = halves(int(file.width_px or 0), int(file.height_px or 0))
    return [
        _half_plots(f"{name}-{direction}", file, points, some, words)
        for direction, some in zip(("across", "down"), parts, strict=True)
    ]


_PALMS_TOGETHER = 3
"""Pictures of a block that a question may compare."""


@partial(Adapter, "field.oil_palms")
def oil_palms(data: DataSet) -> Part:
    """Palms of a plantation, boxed by people: pictures, their halves, and pictures of one block together."""
    note = (
        "Part of an oil palm plantation, seen from straight above by a drone; a palm cut by the edge counts if its"
        " centre is in the picture."
    )
    return data.part(_palm_subjects(data, note, _PALM, "palm_photo"), ["palm", "tree_plots"])


@partial(Adapter, "field.date_palms")
def date_palms(data: DataSet) -> Part:
    """Palms of date groves, boxed by people: pictures, their halves, and pictures of one grove together."""
    note = (
        "Part of a grove of date palms, seen from straight above; palms cut by the edge count, too."
    )
    subjects = _palm_subjects(data, note, _DATE_PALM, "date_grove")
    return data.part(subjects, ["date_palms", "tree_plots"])


def _palm_subjects(data: DataSet, note: str, words: Mapping[str, str], of: str) -> list[Subject]:
    blocks: dict[str, list[Photo[_Counted]]] = {}
    for item in read_items(data.folder, ("points", "cluster"), ("image",)):
        file = as_photo(data, item, note=note + note_of(None, _LAND[of]))
        if not is_kept(data, file):
            continue
        block, points = str(item["cluster"]), _points(item)
        name = f"palms-{block}-{item['id']}"
        marked = _with_border(data, item, name, note, _LAND[of], points)
        blocks.setdefault(block, []).append(marked or (file, (points, None)))

    def palms(file: SampleFile, counted: _Counted, _: int) -> Thing:
        return _counted_on(file, *counted, words)

    subjects: list[Subject] = []
    for block, photos in blocks.items():
        own: list[Subject] = []
        for number, (file, counted) in enumerate(photos):
            name = f"palms-{block}-{number}"
            own.append(photo_subject(f"{name}-alone", [(file, counted)], palms, {}, of))
            points, parcel = counted
            if parcel is None:
                own += _both_halves(name, file, points, words)
        for start in range(0, len(photos), _PALMS_TOGETHER):
            some = photos[start : start + _PALMS_TOGETHER]
            if len(some) > 1:
                own.append(photo_subject(f"palms-{block}-from-{start}", some, palms, {}, of))
        subjects += [replace(each, cluster=block) for each in own]
    return subjects


_CROWNS_TOGETHER = 5
"""Least number of crowns of a group that questions choose from; a place is never in two groups."""
_DEAD, _ALIVE = "dead", "alive"
_EACH = 2
"""Least number of dead and of living crowns in a group."""
_SPARE_CROWNS = 8
"""Crowns of each state that are only shown in place of another one, so that none is what is sought."""


@partial(Adapter, "field.tree_crowns")
def tree_crowns(data: DataSet) -> Part:
    """Single crowns from the air, told by people to be dead or alive."""
    places: dict[str, list[Photo[str]]] = {}
    for item in read_items(data.folder, ("label", "cluster", "gsd_m"), ("image",)):
        note = "The crown of one tree, in the middle, seen from straight above, from an aeroplane."
        file = as_photo(data, item, gsd_m=item["gsd_m"], note=note)
        if is_kept(data, file):
            places.setdefault(str(item["cluster"]), []).append((file, str(item["label"])))
    in_order = sorted(places, key=lambda place: hashlib.sha256(place.encode()).hexdigest())
    spare: dict[str, list[Photo[str]]] = {_DEAD: [], _ALIVE: []}
    groups: list[list[Photo[str]]] = [[]]
    for place in in_order:
        label = places[place][0][1]
        if len(places[place]) == 1 and len(spare[label]) < _SPARE_CROWNS:
            spare[label] += places[place]
            continue
        if _is_full(groups[-1]):
            groups.append([])
        groups[-1] += places[place]
    if len(groups) > 1 and not _is_full(groups[-1]):
        groups[-2] += groups.pop()
    return data.part(
        [_crowns(number, group, spare) for number, group in enumerate(groups)], ["dead_trees"]
    )


def _is_full(group: Sequence[Photo[str]]) -> bool:
    labels = [label for _, label in group]
    few = min(labels.count(_DEAD), labels.count(_ALIVE))
    return len(group) >= _CROWNS_TOGETHER and few >= _EACH


def _crowns(
    number: int, group: Sequence[Photo[str]], spare: Mapping[str, list[Photo[str]]]
) -> Subject:
    # A spare crown replaces one of the other state, so that the picture asked for is not among those shown.
    others = {state: photos[number % len(photos)] for state, photos in spare.items() if photos}
    opposite = {_DEAD: _ALIVE, _ALIVE: _DEAD}
    another = {
        file.path: others[opposite[label]][0] for file, label in group if opposite[label] in others
    }
    subject = photo_subject(f"crowns-{number}", group, _crown, {"group": number}, "tree_crown")
    return replace(
        subject,
        instead={"another": another},
        cluster=f"group-{number}",
        groups=CROWNS_OF_FORESTS,
    )


def _crown(file: SampleFile, label: str, _: int) -> Thing:
    # People said dead or alive: as shares of colours, a living crown is green, and a dead one has no green or yellow.
    green = 100.0 if label == _ALIVE else 0.0
    truth = {"health": {"green_pct": green, "yellow_pct": 0.0, "brown_pct": 0.0}}
    thought = f"I need to know whether the tree in {file.name} has green leaves."
    return photo_thing(file, "describe_region", truth, thought, attributes=["health"])
