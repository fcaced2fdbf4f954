"""Drawn diseased leaves whose crop and disease the asker knows, and potted weeds that grow beside a disc of known size.

Leaves: single ones, repeated visits, and leaves in a row. Pots are seen from the side, week by week.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools.knowledge.kb_names import shipped_names
from agrotools_build.references import ref
from agrotools_build.scenes.leaf_photo import MOST_LEAVES, make_leaf_photo
from agrotools_build.scenes.marks import grown, mark_each
from agrotools_build.scenes.pot_plants import FORMS, draw_growth, make_pot
from agrotools_build.scenes.scene import Difficulty
from agrotools_build.sources.drawn import (
    INSIDE,
    SHARES_WITH_MARK,
    DrawnScene,
    Only,
    SceneKind,
    absent_colour,
    find_mark,
    find_outline,
    save_jpeg,
)
from agrotools_build.sources.part import TABLES, Originals, named, photo_thing
from agrotools_build.templates.thing import Subject, Thing
from agrotools_tools.lesions.result import GradeScale, grade_of

PICTURES = 4
_PENS = ("blue", "magenta", "cyan")
_LEAST_HEALTHIER_PCT = 8.0
"""Diseased share from which another leaf can be clearly healthier."""


DISEASES: Sequence[Mapping[str, str]] = TABLES["diseases"]
"""Diseases named in questions: words of the templates, and the kind of drawn lesions."""


def _draw_leaves(
    seed: int, difficulty: Difficulty, folder: Path, only: Only
) -> dict[str, JsonValue]:
    """Draw four photographs of one diseased crop, with severity rising by visit, and pictures of marked leaves."""
    rng = np.random.default_rng([seed, zlib.crc32(b"leaf_lesions"), difficulty])
    place = seed % len(DISEASES)
    crop, lesion = DISEASES[place]["crop"], DISEASES[place]["lesion"]
    # The largest rise may be at any visit.
    rises = np.array([2.5, *rng.permutation([5.0, 7.0, 9.0])]) * rng.uniform(0.5, 1.7)
    shares = np.cumsum(rng.uniform(0.6, 1.0, PICTURES) * rises)
    with_others, pen = float(rng.choice(SHARES_WITH_MARK)), str(rng.choice(_PENS))
    pictures: list[JsonValue] = []
    for number, share in enumerate(shares):
        if not (only(f"leaf_{number}.jpg") or only(f"unmarked_{number}.jpg")):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"leaf_lesions"), difficulty, 1 + number])
        pictured, photo, unmarked = _draw_leaf(
            rng, difficulty, (crop, lesion), float(share), with_others, pen
        )
        save_jpeg(folder / f"leaf_{number}.jpg", photo)
        if pictured["mark"]:
            save_jpeg(folder / f"unmarked_{number}.jpg", unmarked)
        pictures.append(pictured)
    boards: list[JsonValue] = []
    for number, count in enumerate((MOST_LEAVES, 2)):
        if not only(f"board_{number}.jpg"):
            continue
        rng = np.random.default_rng([seed, zlib.crc32(b"leaf_boards"), difficulty, 1 + number])
        scene = make_leaf_photo(int(rng.integers(2**31)), difficulty, crop, lesion, leaves=count)
        photo, leaves = np.array(scene.images["rgb"]), scene.truth["leaves"]
        boxes = [grown(leaf["box"], 5) for leaf in leaves]
        marks: Any = mark_each(
            photo, boxes, [str(pen) for pen in rng.permutation(_PENS)], rng, shapes=("box",)
        )
        save_jpeg(folder / f"board_{number}.jpg", photo)
        boards.append({"leaves": leaves, "marks": marks, "ground": scene.truth["ground"]})
    return {"told": place, "pen": pen, "pictures": pictures, "boards": boards}


def _draw_leaf(
    rng: np.random.Generator,
    difficulty: Difficulty,
    kind: tuple[str, str],
    share_pct: float,
    with_others: float,
    pen: str,
) -> tuple[dict[str, Any], NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw a leaf of a crop and lesion, or, with probability ``with_others``, several leaves of which one is framed.

    The other leaves are clearly healthier or sicker than the framed one, so that the frame matters. Returns the truth
    of the leaf, the photograph, and the photograph without the frame.
    """
    seed = int(rng.integers(2**31))
    if rng.uniform() < with_others:
        count = int(rng.integers(2, MOST_LEAVES + 1))
        meant = int(rng.integers(count))
        shares = [_unlike(rng, share_pct) for _ in range(count)]
        shares[meant] = share_pct
        scene = make_leaf_photo(seed, difficulty, *kind, leaves=count, severity_pct=shares)
        photo, leaf = np.array(scene.images["rgb"]), scene.truth["leaves"][meant]
        box = grown(leaf["box"], int(rng.integers(4, 8)))
        if marks := mark_each(photo, [box], [pen], rng, shapes=("box",)):
            truth = {"leaf": leaf, "ground": scene.truth["ground"], "mark": marks[0]["truth"]}
            return truth, photo, scene.images["rgb"]
    scene = make_leaf_photo(seed, difficulty, *kind, severity_pct=share_pct)
    truth = {"leaf": scene.truth["leaves"][0], "ground": scene.truth["ground"], "mark": None}
    return truth, scene.images["rgb"], scene.images["rgb"]


def _unlike(rng: np.random.Generator, share_pct: float) -> float:
    """Return a diseased share that no one takes for ``share_pct``: at most 0.35 of it, or 8 points and 1.6 times it."""
    if share_pct >= _LEAST_HEALTHIER_PCT and rng.uniform() < 0.5:
        return share_pct * float(rng.uniform(0.1, 0.35))
    return max(share_pct + 8.0, 1.6 * share_pct) + float(rng.uniform(0.0, 8.0))


def _leaf_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return single leaves (with and without the disease's name), and marked leaves."""
    disease = DISEASES[cast(int, drawn.record["told"])]
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    boards = cast("list[dict[str, Any]]", drawn.record["boards"])
    note = f"{disease['crop'].capitalize()} leaf, detached."
    pen = str(drawn.record["pen"])
    rule = f"{note} Where there are several leaves, the one framed in {pen} is meant."
    files = [
        originals.file(drawn.folder / f"leaf_{number}.jpg", note=rule)
        for number in range(len(pictures))
    ]
    unmarked = {
        file.path: originals.file(drawn.folder / f"unmarked_{number}.jpg", note=rule)
        for number, (file, picture) in enumerate(zip(files, pictures, strict=True))
        if picture["mark"]
    }
    sheets = [
        originals.file(drawn.folder / f"board_{number}.jpg", note=note)
        for number in range(len(boards))
    ]

    def analysed(
        file: SampleFile,
        leaf: Mapping[str, Any],
        ground: str,
        thought: str,
        scale: GradeScale = "percent",
        **more: Any,
    ) -> Thing:
        # Leaves on soil are detected by colour, those on board or cloth by their difference from the background.
        mode = {"mode": "field"} if ground == "soil" else {}
        return photo_thing(
            file, "analyze_lesions", _result(leaf, scale), thought, disease, **mode, **more
        )

    def alone(index: int, place: int, scale: GradeScale = "percent", **more: Any) -> Thing:
        file, picture = named(files[index], "image", place), pictures[index]
        thought = f"I need to know how much of the leaf in {file.name} is diseased."
        if picture["mark"]:
            thought = f"Now the diseased share of the leaf inside the {pen} frame in {file.name}."
            look = find_mark(file.name, pen, picture["mark"])
            more |= {"before": (look,), "region": ref(0, "crop_box")}
        return analysed(file, picture["leaf"], picture["ground"], thought, scale, **more)

    def in_mark(number: int, index: int, _: int) -> Thing:
        file, board = named(sheets[number], "image", 1), boards[number]
        mark = board["marks"][index]
        colour = str(mark["color"])
        thought = f"Now the diseased share of the leaf inside the {colour} mark."
        leaf, region = board["leaves"][mark["place"]], ref(0, "crop_box")
        thing = analysed(file, leaf, board["ground"], thought, region=region)
        before, absent = (
            find_mark(file.name, colour, mark["truth"]),
            absent_colour(_PENS, board["marks"]),
        )
        return replace(thing, words={**thing.words, "colour": colour, **absent}, before=(before,))

    subject = partial(drawn.subject, variant=disease["lesion"])
    graded = partial(alone, scale="0-4", grade_scale="0-4")
    leaves = [
        subject("leaves", len(pictures), alone, "drawn_leaf"),
        subject("cases", len(pictures), alone, "told_leaf"),
        subject("graded", len(pictures), graded, "graded_leaf"),
    ]
    return [
        *(replace(each, instead={"unmarked": unmarked}) for each in leaves),
        *(
            subject(f"board-{number}", len(board["marks"]), partial(in_mark, number), "marked_leaf")
            for number, board in enumerate(boards)
        ),
    ]


def _result(leaf: Mapping[str, Any], scale: GradeScale) -> dict[str, JsonValue]:
    return {
        "leaf_area_px": leaf["leaf_area_px"],
        "lesion_area_px": leaf["lesion_area_px"],
        "severity_pct": round_significant(float(leaf["severity_pct"]), 6),
        "grade": grade_of(float(leaf["severity_pct"]), scale),
        "grade_scale": scale,
        "n_lesions": leaf["n_lesions"],
        "leaf_box": leaf["box"],
    }


LEAF_LESIONS = SceneKind(
    7, ("drawn_leaf", "drawn_leaf_marks", "drawn_leaf_disease"), _draw_leaves, _leaf_subjects
)


_WEEKS = 4
_LEAST_CM = 2.5
"""Minimum height; smaller plants are a few pixels high and cannot be measured to a tenth."""
_QUALITY = (95, 92, 85, 75)
_POT_NOTE = (
    "Drawn. Potted weeds from the side: where there are two, the one outlined in red is meant. A dark disc, where "
    "there is one,"
)
_MEASURED = ("height_cm", "width_cm", "area_cm2", "convex_hull_cm2", "solidity")


def _draw_pots(seed: int, difficulty: Difficulty, folder: Path, only: Only) -> dict[str, JsonValue]:
    """Draw one plant in four weeks, and five plants in one week, some of them outlined beside another plant.

    The fifth plant is as tall as one of the two tallest, within less than can be measured. Each picture is also drawn
    without disc and ruler, as ``bare``.
    """
    rng = np.random.default_rng([seed, difficulty])
    species = list(FORMS)[int(rng.integers(len(FORMS)))]
    grown = draw_growth(rng)
    low = next(week for week in range(1, 9) if grown.height_cm(week) >= _LEAST_CM)
    weeks = sorted(int(week) for week in rng.choice(np.arange(low, 12), _WEEKS, replace=False))
    week = int(rng.integers(5, 9))
    others = [max(_LEAST_CM, draw_growth(rng).height_cm(week)) for _ in range(_WEEKS)]
    close = sorted(others)[-int(rng.integers(1, 3))] * rng.uniform(0.99, 1.01)
    with_other = float(rng.choice(SHARES_WITH_MARK))

    def pot(number: int, height: float) -> dict[str, JsonValue]:
        names = {kind: f"{kind}_{number}.jpg" for kind in ("pot", "bare")}
        rng = np.random.default_rng([seed, difficulty, number])
        other = (
            max(_LEAST_CM, rng.uniform(0.55, 1.3) * height) if rng.uniform() < with_other else None
        )
        truth: dict[str, Any] = {}
        for kind, name in names.items():
            if only(name):
                scene = make_pot(
                    16 * seed + number, difficulty, species, height, other, scaled=kind == "pot"
                )
                truth |= scene.truth
                save_jpeg(
                    folder / name, scene.images["rgb"], _QUALITY[difficulty], full_colour=True
                )
        return {"file": names["pot"], "instead": {"bare": names["bare"]}, **truth}

    return {
        "species": species,
        "week": week,
        "growth": [{**pot(k, grown.height_cm(week)), "week": week} for k, week in enumerate(weeks)],
        "pots": [pot(_WEEKS + k, height) for k, height in enumerate([*others, close])],
    }


def _pot_subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Return ``pot_growth`` (one plant in four weeks), ``pot_row`` (four plants in one), ``pot_five`` (one more)."""
    record = cast("dict[str, Any]", drawn.record)
    species = str(record["species"])
    entry = next(iter(shipped_names().all_of_name(species)))

    def subject(items: list[dict[str, Any]], suffix: str, of: str) -> Subject:
        def file_of(item: dict[str, Any], name: str) -> SampleFile:
            # Also said of the picture without the disc, so that only looking at it shows that the scale is unknown.
            return originals.file(
                drawn.folder / name, note=f"{_POT_NOTE} is {item['disc_cm']:g} cm across."
            )

        files = [file_of(item, item["file"]) for item in items]
        bare = {
            file.path: file_of(item, item["instead"]["bare"])
            for file, item in zip(files, items, strict=True)
        }

        def shown(index: int, place: int) -> Thing:
            file, item = named(files[index], "image", place), items[index]
            arguments: dict[str, Any] = {
                "scale_marker": {"type": "circle", "size_cm": item["disc_cm"]}
            }
            truth = {"plants": [{name: item[name] for name in _MEASURED}]}
            week = str(item.get("week", record["week"]))
            words = {"species": species, "week": week, "entry": entry.id}
            thought = f"I need the size of the plant in {file.name}; the disc tells the scale."
            if "box" in item:
                arguments |= {"region": INSIDE, "before": (find_outline(file.name, item["box"]),)}
            return photo_thing(file, "measure_weed_phenotype", truth, thought, words, **arguments)

        return replace(drawn.subject(suffix, len(items), shown, of), instead={"bare": bare})

    return [
        subject(record["growth"], "growth", "pot_growth"),
        subject(record["pots"][:_WEEKS], "row", "pot_row"),
        subject(record["pots"], "five", "pot_five"),
    ]


POTS = SceneKind(10, ("drawn_pot",), _draw_pots, _pot_subjects)
