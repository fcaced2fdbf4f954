"""Apples on trees photographed with a depth camera; each was picked and measured with a calliper."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agrotools.build.sources.part import Adapter, DataSet, Part, adapter, named, photo_pairs, photo_thing
from agrotools.build.sources.reading import read_items
from agrotools.build.templates import Thing
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Intrinsics, SampleFile

FOCAL_PX = 955.0
"""The data do not say it. Estimated from the two calibration spheres that stand in every frame (60 and 120 mm)."""
_SPHERES = "BALL"
TOGETHER = 3
"""Fruits of one subject: the most that a question is about."""
_WELL_SEEN = "NO"
"""Value of ``occluded``: a size is only asked of fruits that are seen whole."""


@adapter("field.rgbd_apples")
def apples(data: DataSet) -> Part:
    """Diameters of apples in boxes, in millimetres."""
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(data.folder, ("fruits",), ("image", "depth_mm_uint16"))):
        image = data.originals.file(data.folder / item["image"], note="Apple trees, daylight.")
        middle = {"cx_px": (image.width_px or 0) / 2, "cy_px": (image.height_px or 0) / 2}
        camera = Intrinsics(fx_px=FOCAL_PX, fy_px=FOCAL_PX, **middle)
        depth_path, note = data.folder / item["depth_mm_uint16"], "Depth registered to the picture."
        depth = data.originals.file(depth_path, kind="depth", depth_unit_mm=1.0, note=note)
        files = (image.model_copy(update={"intrinsics": camera}), depth)
        fruits = _fruits(data.folder, item)
        for start in range(0, len(fruits) - TOGETHER + 1, TOGETHER):
            subjects.append(apple_subject(f"apples-{number}-{start}", files, fruits[start : start + TOGETHER]))
    return data.part(subjects, ["apple"])


def _fruits(folder: Path, item: dict[str, Any]) -> list[tuple[tuple[int, ...], float]]:
    """Box and calliper size of each fruit that is seen whole."""
    try:
        return [
            (tuple(int(edge) for edge in fruit["box"]), float(fruit["caliber_mm"]))
            for fruit in item["fruits"]
            if not str(fruit["fruit_id"]).startswith(_SPHERES) and fruit["occluded"] == _WELL_SEEN
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BenchmarkError(f"{folder}: the fruits of {item.get('id')} cannot be read: {error!r}") from error


def apple_subject(
    name: str, files: tuple[SampleFile, SampleFile], fruits: Sequence[tuple[tuple[int, ...], float]]
) -> Subject:
    """Fruits of one picture, each a box in it and a diameter in millimetres; ``files``: the picture and its depth."""
    image, depth = named(files[0], "image", 1), named(files[1], "depth", 1)

    def shown(index: int, place: int) -> Thing:
        box, diameter_mm = fruits[index]
        arguments: dict[str, Any] = {"image": image.name, "depth": depth.name, "boxes": [[*box]]}
        truth: dict[str, Any] = {"fruits": [{"id": 1, "diameter_mm": diameter_mm}], "n": 1}
        words = {"box": f"({', '.join(map(str, box))})"}
        thought = f"I need the diameter of the fruit in the box {words['box']}."
        return Thing((image, depth), "measure_fruit_size", arguments, truth, f"apple {place}", thought, words)

    return Subject(name, len(fruits), shown, {"subject": name}, of="apple")


PLURAL = {"apple": "apples", "pear": "pears", "cherry": "cherries"}


def orchard(fruit: str, folder: str) -> Adapter:
    """Reader of the tiles with one fruit, which lie in ``folder``."""

    @adapter(f"field.{folder}")
    def read(data: DataSet) -> Part:
        note = f"Part of a photograph of a tree with {PLURAL[fruit]}."
        counted: list[tuple[SampleFile, int]] = []
        for item in read_items(data.folder, ("count",), ("image",)):
            if not isinstance(item["count"], int) or item["count"] < 0:
                raise BenchmarkError(f"{data.folder}: the count of {item.get('id')} is not a whole number")
            counted.append((data.originals.file(data.folder / item["image"], note=note), item["count"]))
        return data.part(fruit_subjects(f"orchard-{fruit}", fruit, PLURAL[fruit], counted, of="orchard"), ["orchard"])

    return read


def fruit_subjects(
    name: str, fruit: str, plural: str, counted: Iterable[tuple[SampleFile, int]], *, of: str
) -> list[Subject]:
    """Pictures with the number of fruits in each, two by two. ``fruit`` is what the tool is asked to count."""

    def thing(file: SampleFile, count: int, _: int) -> Thing:
        thought = f"I need to know how many {plural} there are in {file.name}."
        words = {"fruit": fruit, "fruits": plural}
        return photo_thing(file, "count_objects", {"count": count}, thought, words, target=fruit)

    return photo_pairs(name, counted, thing, {"fruit": fruit}, of)
