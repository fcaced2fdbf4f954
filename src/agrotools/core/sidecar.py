"""What a file's metadata says as arguments: the values that hold where a call leaves them out."""

from pydantic import JsonValue

from agrotools.core.sample import SampleFile


def known_arguments(file: SampleFile) -> dict[str, JsonValue]:
    """The arguments that ``file`` answers by itself, named as tools name them.

    ``gsd_m`` and ``depth_unit_mm`` as they stand, ``fx_px`` to ``cy_px`` of the intrinsics, ``bands`` as band name to
    number (from 1), ``label_map`` as meaning to class numbers.
    """
    known: dict[str, JsonValue] = {"gsd_m": file.gsd_m, "depth_unit_mm": file.depth_unit_mm}
    if file.intrinsics is not None:
        known |= file.intrinsics.model_dump()
    if file.bands is not None:
        known["bands"] = {name: number for number, name in enumerate(file.bands, start=1)}
    if file.classes is not None:
        known["label_map"] = _by_meaning(file.classes)
    return {name: value for name, value in known.items() if value is not None}


def _by_meaning(classes: dict[str, str]) -> dict[str, JsonValue]:
    numbers = {index: int(index) for index in classes if index.isdecimal()}
    return {
        meaning: [numbers[index] for index, other in classes.items() if other == meaning and index in numbers]
        for meaning in classes.values()
    }
