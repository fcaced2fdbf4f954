"""Apples on trees photographed with a depth camera; each was picked and measured with a calliper."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agrotools.build.sources.part import Originals, Part, named, pairs_of, read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, Intrinsics, SampleFile
from agrotools.formats.benchmark import SourceNote

APPLE_SAMPLES = 24
SOURCE = SourceNote(
    name="AK_SW apples (GRAP-UdL-AT)",
    licence="MIT (licence file of the repository GRAP-UdL-AT/ak_sw_benchmarker)",
    url="https://github.com/GRAP-UdL-AT/ak_sw_benchmarker",
    citation="Miranda, J. C. et al.: AKFruitData and AK_SW_BENCHMARKER, tools for fruit sizing with RGB-D cameras."
    " SoftwareX 20, 2022.",
    note="Questions, reference calls and tolerances are by agrotools; images, boxes and calliper sizes are the"
    " authors'. All frames show the same trees.",
)
FOCAL_PX = 955.0
"""The data do not say it. Estimated from the two calibration spheres that stand in every frame (60 and 120 mm)."""
_SPHERES = "BALL"
TOGETHER = 3
"""Fruits of one subject: the most that a question is about."""
_WELL_SEEN = "NO"
"""Value of ``occluded``: a size is only asked of fruits that are seen whole."""


def apples(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete."""
    originals = Originals()
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(folder, ("fruits",), ("image", "depth_mm_uint16"))):
        image = originals.file(folder / item["image"], note="Apple trees, daylight.")
        intrinsics = Intrinsics(
            fx_px=FOCAL_PX,
            fy_px=FOCAL_PX,
            cx_px=(image.width_px or 0) / 2,
            cy_px=(image.height_px or 0) / 2,
        )
        depth = originals.file(
            folder / item["depth_mm_uint16"], kind="depth", depth_unit_mm=1.0, note="Depth registered to the picture."
        )
        files = (image.model_copy(update={"intrinsics": intrinsics}), depth)
        fruits = _fruits(folder, item)
        for start in range(0, len(fruits) - TOGETHER + 1, TOGETHER):
            subjects.append(apple_subject(f"apples-{number}-{start}", files, fruits[start : start + TOGETHER]))
    return Part("apples", SOURCE, subjects, load_templates("apple"), APPLE_SAMPLES, originals.files)


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


SAMPLES = 16
_OWNER = "https://github.com/ai-agriculture-circuits-and-systems"
_LICENCE = "CC BY 4.0 (licence file of the repository)"
PLURAL = {"apple": "apples", "pear": "pears", "cherry": "cherries"}


def orchard(fruit: str, repository: str) -> Callable[[Path], Part]:
    """Reader of the tiles of one repository. The part raises BenchmarkError: the data set is incomplete."""

    def part(folder: Path) -> Part:
        originals = Originals()
        by_hash: dict[str, tuple[SampleFile, int]] = {}
        for item in read_items(folder, ("count",), ("image",)):
            if not isinstance(item["count"], int) or item["count"] < 0:
                raise BenchmarkError(f"{folder}: the count of {item.get('id')} is not a whole number")
            file = originals.file(folder / item["image"], note=f"Part of a photograph of a tree with {PLURAL[fruit]}.")
            by_hash[str(file.sha256)] = (file, item["count"])
        subjects = fruit_subjects(f"orchard-{fruit}", fruit, PLURAL[fruit], by_hash, of="orchard")
        source = SourceNote(
            name=repository,
            licence=_LICENCE,
            url=f"{_OWNER}/{repository}",
            citation="Boxes by the authors of the data set, as packed by ai-agriculture-circuits-and-systems.",
            note="Questions, reference calls and tolerances are by agrotools; images and boxes are the authors'. Fruit"
            " of rows behind is not always boxed.",
        )
        return Part(f"orchard-{fruit}", source, subjects, load_templates("orchard"), SAMPLES, originals.files)

    return part


def fruit_subjects(
    name: str, fruit: str, plural: str, counted: Mapping[str, tuple[SampleFile, int]], *, of: str
) -> list[Subject]:
    """Pictures with the number of fruits in each, by hash, two by two. ``fruit`` is what the tool is asked to count."""
    return [_subject(name, number, (fruit, plural), pair, of) for number, pair in enumerate(pairs_of(counted))]


def _subject(name: str, number: int, fruit: tuple[str, str], pair: list[tuple[SampleFile, int]], of: str) -> Subject:
    one, many = fruit

    def shown(index: int, place: int) -> Thing:
        original, count = pair[index]
        file = named(original, "image", place)
        thought = f"I need to know how many {many} there are in {file.name}."
        arguments: dict[str, Any] = {"image": file.name, "target": one}
        words = {"fruit": one, "fruits": many}
        return Thing((file,), "count_objects", arguments, {"count": count}, file.name, thought, words)

    return Subject(f"{name}-{number}", len(pair), shown, {"pair": number, "fruit": one}, of=of)
