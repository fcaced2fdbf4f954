"""Halves of pictures whose marked things are counted."""

from collections.abc import Mapping, Sequence
from typing import Any

from agrotools.core import SampleFile
from agrotools_build.area_truth import Region
from agrotools_build.sources.part import named
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject


def counted_halves(
    name: str,
    file: SampleFile,
    points: Sequence[Sequence[float]],
    parts: Sequence[tuple[str, Region]],
    target: str,
    how_many: str,
    words: Mapping[str, str],
    of: str,
) -> Subject:
    """Return the subject of two halves of a picture.

    Args:
        points: (x, y) of each counted thing, in pixels.
        parts: name and region of each half.
        target: what the counting tool is asked for.
        how_many: what the thought of a call wants to know: ``trees stand``, ``plants there are``.
        of: kind of the things.
    """
    on_the_line = (
        f"A {target} on the line between the halves belongs to the half that holds its middle."
    )
    file = named(file, "image", 1).model_copy(update={"note": f"{file.note} {on_the_line}"})

    def shown(index: int, _: int) -> Thing:
        called, (x0, y0, x1, y1) = parts[index]
        truth = {"count": sum(x0 <= x < x1 and y0 <= y < y1 for x, y in points)}
        arguments: dict[str, Any] = {
            "image": file.name,
            "target": target,
            "region": [x0, y0, x1, y1],
        }
        thought = f"I need to know how many {how_many} in the {called} half."
        return Thing((file,), "count_objects", arguments, truth, f"{called} half", thought, words)

    return Subject(name, len(parts), shown, {"plot": name}, of=of)
