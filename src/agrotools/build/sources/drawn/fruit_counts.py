"""Fruit on plants and ears of wheat to be counted: plain pictures, pictures with marks, and four-band rasters."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agrotools.build.area_truth import halves
from agrotools.build.references import ref
from agrotools.build.scenes.marks import Box
from agrotools.build.scenes.orchard import LEAST_SEEN, make_orchard
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.scenes.wheat import LEAST_SEEN as LEAST_EAR
from agrotools.build.scenes.wheat import make_wheat
from agrotools.build.sources.drawn import DrawnScene
from agrotools.build.sources.drawn.saving import find_mark, mark_each, save_jpeg
from agrotools.build.sources.part import Originals, named
from agrotools.build.templates.thing import Subject, Thing
from agrotools.core import SampleFile

NAME = "fruit_counts"
STANDS_FOR = "deepnir"
TEMPLATES = ("drawn_count", "drawn_count_marks", "drawn_ears")
PICTURES = 4
KINDS: dict[str, tuple[str, dict[str, JsonValue]]] = {
    "apple": ("apples", {}),
    "tomato": ("tomatoes", {}),
    "orange": ("oranges", {}),
    "cherry": ("cherries", {}),
    "peach": ("peaches", {}),
    "red pepper": ("red peppers", {"mode": "fruit"}),
    "wheat head": ("wheat heads", {"mode": "blob", "expected_size_px": 30}),
}
"""Counted thing: its plural, and how a call says what to look for where the name alone does not."""
_BORNE = {"cherry": (3, 26), "wheat head": (15, 34)}
"""Least and most in a picture, where not 3 to 15. Of wheat that is 250 to 580 ears per square metre."""
_GRAMS = {
    "apple": (120, 220), "tomato": (70, 160), "orange": (120, 230), "cherry": (7, 12), "peach": (100, 190),
    "red pepper": (110, 220), "wheat head": (2, 3),
}  # fmt: skip
"""Weight of one fruit, range."""
_PENS = ("blue", "magenta", "cyan")
_RASTER_OF = 5
"""Every fifth subject comes as rasters with near infrared instead of photographs."""


def draw(seed: int, difficulty: Difficulty, folder: Path) -> dict[str, JsonValue]:
    """Four pictures of one kind of plant that bear differently, plain and with two marked parts."""
    rng = np.random.default_rng([seed, zlib.crc32(b"fruit_counts"), difficulty])
    kind = list(KINDS)[seed % len(KINDS)]
    raster = seed % _RASTER_OF == 2
    least, most = _BORNE.get(kind, (3, 15))
    # What all four bear together must not be the same for every plant.
    bears = np.linspace(least, least + (most - least) * rng.uniform(0.7, 1.15), PICTURES)
    counts = rng.permutation(bears + rng.uniform(-1.5, 1.5, PICTURES)).round().astype(int)
    skin: str | None = None
    pictures: list[JsonValue] = []
    for number in range(PICTURES):
        scene_seed = int(rng.integers(2**31))
        if kind == "wheat head":
            scene = make_wheat(scene_seed, difficulty, int(counts[number]))
        else:
            scene = make_orchard(scene_seed, difficulty, kind, fruits=int(counts[number]), skin=skin)
            skin = str(scene.truth["skin"])
        photo = np.array(scene.images["rgb"])
        if raster:
            _save_bands(photo, scene.images["nir"], folder / f"photo_{number}.tif")
        else:
            save_jpeg(photo, folder / f"photo_{number}.jpg")
        centres = _centres(scene)
        pens = [str(pen) for pen in rng.permutation(_PENS)[:2]]
        marks = mark_each(photo, _frames(rng, photo), pens, rng, shapes=("box",))
        save_jpeg(photo, folder / f"marked_{number}.jpg")
        pictures.append(
            cast(JsonValue, {"centres": centres, "marks": marks, "area_m2": scene.truth.get("area_m2")})
        )  # fmt: skip
    return {"kind": kind, "suffix": ".tif" if raster else ".jpg", "pictures": pictures}


def subjects(drawn: DrawnScene, originals: Originals) -> list[Subject]:
    """Whole pictures, their halves, and parts marked by pen."""
    kind, suffix = str(drawn.record["kind"]), str(drawn.record["suffix"])
    pictures = cast("list[dict[str, Any]]", drawn.record["pictures"])
    metadata: dict[str, JsonValue] = {"difficulty": drawn.difficulty, "fruit": kind}
    files = [_file(originals, drawn.folder / f"photo_{number}{suffix}", kind) for number in range(len(pictures))]
    marked = [_file(originals, drawn.folder / f"marked_{number}.jpg", kind) for number in range(len(pictures))]
    base = f"{NAME}-{drawn.seed}"

    def whole(index: int, place: int) -> Thing:
        return _whole(files[index], pictures[index], kind, place)

    all_subjects = [Subject(f"{base}-pictures", len(pictures), whole, metadata, of="fruit_picture")]
    if kind == "wheat head":
        all_subjects.append(Subject(f"{base}-ears", len(pictures), whole, metadata, of="ear_picture"))
    for number, picture in enumerate(pictures):
        all_subjects += _parts(f"{base}-{number}", metadata, files[number], marked[number], picture, kind)

    def first_mark(index: int, place: int) -> Thing:
        return _in_mark(marked[index], pictures[index], 0, kind, place)

    all_subjects.append(Subject(f"{base}-marked", len(pictures), first_mark, metadata, of="marked_fruit_picture"))
    return all_subjects


def _parts(
    base: str, metadata: dict[str, JsonValue], file: SampleFile, marked: SampleFile, picture: dict[str, Any], kind: str
) -> list[Subject]:
    def half(parts: list[tuple[str, Box]]) -> Subject:
        def shown(index: int, place: int) -> Thing:  # noqa: ARG001 - parts of one picture, whatever their place
            return _half(file, picture, kind, parts[index])

        return Subject(f"{base}-{parts[0][0]}", 2, shown, metadata, of="fruit_half")

    def mark(index: int, place: int) -> Thing:  # noqa: ARG001 - all marks are on one picture
        return _in_mark(marked, picture, index, kind, 1)

    across, down = halves(file.width_px or 0, file.height_px or 0)
    return [half(across), half(down), Subject(f"{base}-marks", len(picture["marks"]), mark, metadata, of="fruit_mark")]


def _file(originals: Originals, path: Path, kind: str) -> SampleFile:
    note = f"{KINDS[kind][0].capitalize()}, daylight."
    if path.suffix == ".tif":
        return originals.file(path, kind="raster", bands=("R", "G", "B", "NIR"), note=note)
    return originals.file(path, note=note)


def _words(kind: str, file: str) -> dict[str, str]:
    least, most = _GRAMS[kind]
    return {"fruit": kind, "fruits": KINDS[kind][0], "file": file, "least_g": str(least), "most_g": str(most)}


def _arguments(image: str, kind: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"image": image, "target": kind, **KINDS[kind][1], **more}


def _whole(file: SampleFile, picture: Mapping[str, Any], kind: str, place: int) -> Thing:
    picture_file = named(file, "image", place)
    thought = f"I need to know how many {KINDS[kind][0]} there are in {picture_file.name}."
    words = _words(kind, picture_file.name)
    if picture["area_m2"]:
        words["area"] = f"{picture['area_m2']:.3f}"
    truth: dict[str, JsonValue] = {"count": len(picture["centres"])}
    return Thing(
        (picture_file,), "count_objects", _arguments(picture_file.name, kind), truth, picture_file.name, thought, words
    )


def _half(file: SampleFile, picture: Mapping[str, Any], kind: str, part: tuple[str, Box]) -> Thing:
    picture_file, (name, box) = named(file, "image", 1), part
    called = f"{name} half"
    thought = f"I need to know how many {KINDS[kind][0]} there are in the {called}."
    truth: dict[str, JsonValue] = {"count": _inside(picture["centres"], box)}
    arguments = _arguments(picture_file.name, kind, region=[*box])
    return Thing((picture_file,), "count_objects", arguments, truth, called, thought, _words(kind, picture_file.name))


def _in_mark(file: SampleFile, picture: Mapping[str, Any], index: int, kind: str, place: int) -> Thing:
    picture_file, mark = named(file, "image", place), picture["marks"][index]
    colour, inner = str(mark["color"]), cast(Box, tuple(mark["truth"]["crop_box"]))
    return Thing(
        (picture_file,),
        "count_objects",
        _arguments(picture_file.name, kind, region=ref(0, "crop_box")),
        {"count": _inside(picture["centres"], inner)},
        picture_file.name,
        f"Now the {KINDS[kind][0]} inside the {colour} mark in {picture_file.name}.",
        {**_words(kind, picture_file.name), "colour": colour},
        before=(find_mark(picture_file.name, colour, dict(mark["truth"])),),
    )


def _inside(centres: list[list[float]], box: Box) -> int:
    return sum(box[0] <= x < box[2] and box[1] <= y < box[3] for x, y in centres)


def _centres(scene: Scene) -> list[list[float]]:
    """Of what can be seen: of a fruit its own middle, of an ear that of its visible part."""
    if "heads" in scene.truth:
        boxes = [head["box"] for head in scene.truth["heads"] if head["visibility"] >= LEAST_EAR]
        return [[(x0 + x1) / 2, (y0 + y1) / 2] for x0, y0, x1, y1 in boxes]
    return [fruit["centre_px"] for fruit in scene.truth["fruits"] if fruit["visibility"] >= LEAST_SEEN]


def _frames(rng: np.random.Generator, photo: NDArray[np.uint8]) -> list[Box]:
    """Boxes that each take a quarter to two fifths of the picture, one left and one right."""
    rows, columns = photo.shape[:2]
    frames: list[Box] = []
    for left in (0, columns // 2):
        width, height = int(columns / 2 * rng.uniform(0.72, 0.9)), int(rows * rng.uniform(0.6, 0.9))
        x0 = left + int(rng.integers(8, max(9, columns // 2 - width - 8)))
        y0 = int(rng.integers(8, rows - height - 8))
        frames.append((x0, y0, x0 + width, y0 + height))
    return [frames[int(k)] for k in rng.permutation(2)]


def _save_bands(photo: NDArray[np.uint8], infrared: NDArray[np.uint8], path: Path) -> None:
    """Red, green, blue and near infrared as a GeoTIFF of four 8-bit bands."""
    import warnings

    import rasterio
    from rasterio.errors import NotGeoreferencedWarning

    rows, columns = infrared.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        profile = {"driver": "GTiff", "count": 4, "height": rows, "width": columns, "dtype": "uint8"}
        with rasterio.open(path, "w", compress="deflate", **profile) as target:
            target.write(np.concatenate([photo.transpose(2, 0, 1), infrared[None]]))
            for band, role in enumerate(("R", "G", "B", "NIR"), start=1):
                target.set_band_description(band, role)
