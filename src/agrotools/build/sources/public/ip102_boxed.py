"""What is asked of IP102's boxed pictures: the insect inside a red outline (``pest_marked``), and how many there are
(``pest_count``). The outline is drawn by us around one of the boxes, a little outside it; the box itself is not shown.
"""

import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from agrotools.build.asking import Subject
from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.part import Originals, named
from agrotools.build.sources.public.ip102_boxes import Box, Boxed
from agrotools.build.sources.public.ip102_classes import Pest
from agrotools.build.sources.public.ip102_subjects import DIAGNOSE, NOTE, diagnosis_of, readable
from agrotools.build.sources.public.ip102_words import pair_words, rng_of, words_of
from agrotools.build.templates import Thing
from agrotools.core import SampleFile
from agrotools.vision.reading import RgbImage

EXTRACT = "extract_marked_region"
COUNT = "count_objects"
_LEAST_SHARE, _MOST_SHARE = 0.004, 0.5
"""Of a picture, that a box must take for an outline around it to say something."""
_STROKE = 0.006
"""Width of the outline, of the longer side."""
_RED = (255, 0, 0)
_LEAST_GAP_PX = 2
_PICTURES_COUNTED = 3


@dataclass(frozen=True)
class _Outlined:
    file: SampleFile
    pest: Pest
    outer: Box
    inner: Box


def boxed_subjects(boxed: Sequence[Boxed], originals: Originals, dropped: Counter[str], most: int) -> list[Subject]:
    """At most so many subjects, of outlines and of counts in turn; a picture is in one of them alone."""
    marked: list[Subject] = []
    counted: list[tuple[SampleFile, Boxed]] = []
    for one in boxed:
        if len(marked) + len(counted) // _PICTURES_COUNTED >= most:
            break
        picture = readable(one.path, dropped)
        if picture is None:
            continue
        if (picture.width, picture.height) != one.size:
            dropped["boxed, of another size than its annotation says"] += 1
        elif len(counted) < _PICTURES_COUNTED * (len(marked) + 1) and (len(one.boxes) > 1 or len(counted) % 3 == 2):
            counted.append((originals.file(one.path, note=NOTE), one))
        elif (outlined := _outlined(one, picture, originals)) is not None:
            marked.append(_marked_subject(len(marked), outlined))
        else:
            dropped["boxed, with no box that an outline fits around"] += 1
    groups = [counted[at : at + _PICTURES_COUNTED] for at in range(0, len(counted), _PICTURES_COUNTED)]
    return [*marked, *(_count_subject(number, group) for number, group in enumerate(groups))]


def _outlined(one: Boxed, picture: RgbImage, originals: Originals) -> _Outlined | None:
    """The picture with a red outline around the first box that has room for it; None where none has."""
    stroke = max(3, round(_STROKE * max(picture.width, picture.height)))
    for box in one.boxes:
        x0, y0, x1, y1 = box
        share = (x1 - x0) * (y1 - y0) / (picture.width * picture.height)
        gap = max(_LEAST_GAP_PX, stroke)
        inner = (x0 - gap, y0 - gap, x1 + gap, y1 + gap)
        outer = (inner[0] - stroke, inner[1] - stroke, inner[2] + stroke, inner[3] + stroke)
        fits = min(outer[:2]) >= 1 and outer[2] < picture.width and outer[3] < picture.height
        if fits and _LEAST_SHARE <= share <= _MOST_SHARE:
            file = originals.made(_drawn(picture, outer, inner), ".jpg", note=f"{NOTE} An outline was drawn on it.")
            return _Outlined(file, one.pest, outer, inner)
    return None


def _drawn(picture: RgbImage, outer: Box, inner: Box) -> bytes:
    from PIL import Image

    pixels = picture.pixels.copy()
    inside = pixels[inner[1] : inner[3], inner[0] : inner[2]].copy()
    pixels[outer[1] : outer[3], outer[0] : outer[2]] = _RED
    pixels[inner[1] : inner[3], inner[0] : inner[2]] = inside
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()


def _marked_subject(number: int, one: _Outlined) -> Subject:
    rng = rng_of("pest_marked", str(one.file.sha256))
    words = pair_words([one.pest], rng) | words_of(one.pest, rng)

    def shown(_: int, place: int) -> Thing:
        file = named(one.file, "image", place)
        region: dict[str, JsonValue] = {
            "index": 1, "box": [*one.outer], "inner_box": [*one.inner], "color": "red", "shape": "box",
        }  # fmt: skip
        marked = PlannedCall(
            EXTRACT,
            {"image": file.name, "mark_color": "red"},
            {"regions": [region], "selected": 1, "crop_box": [*one.inner]},
            thought=f"I need to know where in {file.name} the red outline is.",
        )
        return Thing(
            (file,),
            DIAGNOSE,
            {"image": file.name, "kind": "pest", "region": ref(0, "regions[0].inner_box")},
            diagnosis_of(one.pest),
            file.name,
            "I need to know which pest is inside the outline.",
            words,
            before=(marked,),
        )

    return Subject(f"ip102-marked-{number}", 1, shown, {"crop": one.pest.crop}, of="pest_marked")


def _count_subject(number: int, group: Sequence[tuple[SampleFile, Boxed]]) -> Subject:
    def shown(index: int, place: int) -> Thing:
        original, one = group[index]
        file = named(original, "image", place)
        kind = "mite" if one.pest.entry.taxonomy.order == "Trombidiformes" else "insect"
        thought = f"I need to know how many pests there are in {file.name}."
        words = {"bar": f"photo {place}", "bar_zh": f"照片{place}"}
        return Thing(
            (file,), COUNT, {"image": file.name, "target": kind}, {"count": len(one.boxes)}, file.name, thought, words
        )

    return Subject(f"ip102-count-{number}", len(group), shown, {"pictures": len(group)}, of="pest_count")


def boxed_wanted(samples: int) -> int:
    """Pictures of the detection part that so many samples take."""
    return max(24, math.ceil(1.5 * samples))
