"""IP102's detection part: VOC annotations of its test pictures, one box an insect, classes as numbers.

Where the numbers begin is not written down. They are told by the names of files, whose prefixes follow a known
pattern (000 to 030 count from zero, 032 to 102 from one): the reading of the numbers that agrees with it is taken, and
a picture whose number and name disagree is left out.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from agrotools.build.sources.public.ip102_classes import Pest, pests
from agrotools.build.sources.public.reading import SUFFIXES, find_root
from agrotools.core import BenchmarkError

MARKERS = ("Annotations", "JPEGImages", "ImageSets/Main/test.txt")
Box = tuple[int, int, int, int]

_LARGEST_XML = 500_000
_PREFIX = re.compile(r"IP(\d{3})\d{6}")
_AGREES = 0.9
"""Share of the pictures whose number and name must agree."""
_READINGS: Mapping[str, Callable[[int], int]] = {
    "from 1": lambda number: number - 1,
    "from 0": lambda number: number,
    "as in the names of files": lambda number: number if number <= 30 else number - 1,
}
"""From a class number to a label, 0 to 101."""


@dataclass(frozen=True)
class Boxed:
    """A picture whose insects are boxed: all of one class. Boxes in pixels of a picture of ``size`` (width, height)."""

    path: Path
    pest: Pest
    boxes: tuple[Box, ...]
    size: tuple[int, int]


@dataclass(frozen=True)
class _Annotated:
    stem: str
    path: Path
    numbers: tuple[int, ...]
    boxes: tuple[Box, ...]
    size: tuple[int, int]


def read_boxed(folder: Path, dropped: Counter[str], *, get_it: str) -> tuple[list[Boxed], str | None]:
    """The boxed test pictures, and how class numbers were read; none where the detection part is not there.

    Raises:
        BenchmarkError: it is there but most of it cannot be used.
    """
    root = None
    with suppress(BenchmarkError):
        root = find_root(folder, MARKERS, get_it=get_it)
    if root is None:
        return [], None
    stems = _listed(root / MARKERS[2], get_it)
    annotated = [one for stem in stems if (one := _annotated(root, stem, dropped)) is not None]
    if 2 * len(annotated) < len(stems):
        raise BenchmarkError(
            f"of {len(stems)} test pictures of {root} only {len(annotated)} have a picture and an annotation",
            hint=get_it,
        )
    reading = _reading(annotated)
    if reading is None:
        dropped["boxed, with class numbers that cannot be told"] += len(annotated)
        return [], None
    found: list[Boxed] = []
    for one in annotated:
        label = _READINGS[reading](one.numbers[0])
        pest = pests().get(label)
        if len(set(one.numbers)) > 1:
            dropped["boxed, with insects of several classes"] += 1
        elif label != _label_of_name(one.stem):
            dropped["boxed, with a class that its name contradicts"] += 1
        elif pest is None:
            dropped["of a class that cannot be told"] += 1
        else:
            found.append(Boxed(one.path, pest, one.boxes, one.size))
    return found, reading


def _listed(path: Path, get_it: str) -> list[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=get_it) from error
    return list(dict.fromkeys(Path(line.split()[0]).name for line in lines if line.strip()))


def _annotated(root: Path, stem: str, dropped: Counter[str]) -> _Annotated | None:
    picture = next((path for suffix in SUFFIXES if (path := root / "JPEGImages" / f"{stem}{suffix}").is_file()), None)
    xml = root / "Annotations" / f"{stem}.xml"
    if picture is None or not xml.is_file():
        dropped["boxed, without a picture or an annotation"] += 1
        return None
    try:
        if xml.stat().st_size > _LARGEST_XML:
            raise ValueError("too large for the annotation of a picture")
        text = xml.read_text("utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ValueError("an annotation declares no entities")
        tree = ElementTree.fromstring(text)
        size = int(tree.findtext("size/width", "")), int(tree.findtext("size/height", ""))
        objects = [(int(one.findtext("name", "")), _box(one)) for one in tree.iter("object")]
    except (OSError, ValueError, ElementTree.ParseError):
        dropped["boxed, with an annotation that cannot be read"] += 1
        return None
    boxes = dict.fromkeys(box for _, box in objects)
    if not boxes or not all(_fits(box, size) for box in boxes):
        dropped["boxed, without boxes or with some outside the picture"] += 1
        return None
    return _Annotated(stem, picture, tuple(number for number, _ in objects), tuple(boxes), size)


def _box(one: ElementTree.Element) -> Box:
    x0, y0, x1, y1 = (round(float(one.findtext(f"bndbox/{edge}", ""))) for edge in ("xmin", "ymin", "xmax", "ymax"))
    return x0, y0, x1, y1


def _fits(box: Box, size: tuple[int, int]) -> bool:
    """VOC counts pixels from 1, so the last column is the width."""
    x0, y0, x1, y1 = box
    return 0 <= x0 < x1 <= size[0] and 0 <= y0 < y1 <= size[1]


def _label_of_name(stem: str) -> int | None:
    """The label that a file's prefix stands for; 031 is none."""
    match = _PREFIX.fullmatch(stem)
    if match is None or int(match[1]) == 31:
        return None
    return int(match[1]) if int(match[1]) <= 30 else int(match[1]) - 1


def _reading(annotated: Sequence[_Annotated]) -> str | None:
    """Numbering of classes that agrees with their names; None where no way does, or where two that do would
    differ on some picture."""
    known = [(number, label) for one in annotated for number in one.numbers[:1]
             if (label := _label_of_name(one.stem)) is not None]  # fmt: skip
    if not known:
        return None
    agrees = {name: sum(to_label(number) == label for number, label in known) for name, to_label in _READINGS.items()}
    best = max(agrees, key=lambda name: agrees[name])
    return best if agrees[best] >= _AGREES * len(known) else None
