"""Objects that people marked in pictures, in any of the forms of :mod:`~agrotools_build.annotation_formats`."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any
from unicodedata import normalize
from xml.etree import ElementTree

from PIL import ExifTags, Image

from agrotools.core import BenchmarkError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import count_text
from agrotools.text.tables import SheetTable, open_table
from agrotools_build.annotation_formats import (
    OWN_NAME,
    Annotations,
    Mark,
    Marked,
    Reader,
    Size,
    has_area,
    read_box_table,
    read_file,
    read_yolo,
)
from agrotools_tools.counting.tool import singular

FORMATS = (
    "known are COCO, LabelMe, VIA, Label Studio, CreateML (.json), CVAT for images, Pascal VOC (.xml), tables of boxes"
    " as TensorFlow, DeepForest and VIA have them (.csv), and folders of them or of YOLO labels; CVAT, Label Studio and"
    " Roboflow export COCO JSON"
)
_NO_AREA = "box has no area"
_SHOWN = 5
"""Files or classes that a line names."""


def count_marks(marks: Iterable[Mark]) -> tuple[dict[str, int | None], Counter[tuple[str, str]]]:
    """Return the number of objects by class, and the (class, fault) of other marks.

    The number is None, unknown, beside a region of several objects, and where no mark of the class has an area.
    """
    seen, counts, faults = set[Any](), dict[str, int | None](), Counter[tuple[str, str]]()
    for number, (name, shape, group, is_crowd) in enumerate(marks):
        label, count = name or "object", counts.get(name or "object", 0)
        key = label, group or shape or number
        if is_crowd or count is None:
            counts[label] = None
            faults[
                label,
                "has a region of several objects (iscrowd; set it to 0 for masks of one), so no number",
            ] = 1
        elif not has_area(shape):
            faults[label, _NO_AREA] += 1
        elif key in seen:
            faults[label, "box occurs twice and is counted once"] += not group
        else:
            counts[label] = count + 1
        seen.add(key)
    for label, fault in faults:
        if fault == _NO_AREA:
            counts.setdefault(label, None)
    return counts, +faults


def photo_sizes(photo: Path) -> list[Size]:
    """Return the size of a photo, and its turned one if its EXIF data turn it; nothing for one that does not open.

    A photo that its EXIF data turn may have been annotated as it is stored or as it is shown.
    """
    try:
        with Image.open(photo) as picture:
            width, height = picture.size
            return [(width, height), (height, width)][: 1 + _is_turned(picture)]
    except (OSError, ValueError, Image.DecompressionBombError):
        return []  # what is wrong with the file is said where it is read


def marks_outside(marks: Iterable[Mark], sizes: Sequence[Size]) -> list[Mark]:
    """Return the marks that no pixel of a photo with one of these sizes is in: it is not the one that was annotated."""
    if not sizes:
        return []
    return [mark for mark in marks if not any(_is_in(mark.shape, size) for size in sizes)]


class Fit(StrEnum):
    """How the size of an annotated picture and that of a photo belong together."""

    SAME = "same"
    """They are equal, or one is not known."""
    CHANGED = "changed"
    """Resized or turned, or another picture."""
    OTHER = "other"
    """Another picture, or a part of it."""


_ROUNDED = 1
"""Pixels by which the sides of a resized picture are rounded."""


def fit_of(annotated: Marked, sizes: Sequence[Size]) -> Fit:
    """Return how the size that annotations say fits a photo with one of these sizes."""
    if annotated.size is None or not sizes:
        return Fit.SAME
    wide, high = annotated.size
    if any(_are_near(annotated.size, size) for size in sizes):
        return Fit.SAME
    for width, height in sizes:
        if _have_one_shape((wide, high), (width, height)):
            return Fit.SAME if annotated.is_relative else Fit.CHANGED
        if _have_one_shape((high, wide), (width, height)):
            return Fit.CHANGED
    return Fit.OTHER


def _are_near(one: Size, other: Size) -> bool:
    return all(abs(a - b) <= _ROUNDED for a, b in zip(one, other, strict=True))


def _have_one_shape(one: Size, other: Size) -> bool:
    """Return True if one size is the other times a factor, but for rounding."""
    small, large = sorted((one, other))
    by_width = large[0] / small[0], large[1] / small[1]
    return (
        abs(small[1] * by_width[0] - large[1]) <= _ROUNDED * by_width[0]
        or abs(small[0] * by_width[1] - large[0]) <= _ROUNDED * by_width[1]
    )


SIZES = "sizes"
"""Setting that says how objects are taken whose picture has another size than the photo."""
FITTED, KEPT, LEFT_OUT = "fitted", "kept", "left-out"


def choose_sizes(
    changed: Sequence[tuple[Marked, Path, Sequence[Size]]],
    readings: Readings,
    given: str | None = None,
) -> str:
    """Return how the objects of pictures are taken whose photos have other sizes: one of the values above.

    Args:
        changed: the pictures, with their photos and the sizes of these.
        given: the answer, if it is known.

    Raises:
        UsageError: the answer is none of the choices.
    """
    fitted = sum(len(one.marks) for one, _, _ in changed)
    kept = sum(len(one.marks) for one, _, at in changed if not marks_outside(one.marks, at))
    choices = (
        Choice(FITTED, f"the same pictures, resized or turned: {count_text(fitted, 'object')}"),
        Choice(KEPT, f"their places are those in the photos: {count_text(kept, 'object')}"),
        Choice(LEFT_OUT, "other pictures: nothing is said of these photos"),
    )
    one, photo, sizes = changed[0]
    text = (
        f"The size of {count_text(len(changed), 'photo')} is not that of the picture that was annotated"
        f" ({photo.name}: {_size_text(sizes[0])}, annotated at {_size_text(one.size)}). How are"
        " their objects taken?"
    )
    chosen = readings.choose(ReadingQuestion(text, f"--set={SIZES}", choices), given)
    number = count_text(len(changed), "photo")
    readings.take(f"objects of {number} of another size {chosen}")
    return chosen


def _size_text(size: Size | None) -> str:
    return "x".join(map(str, size or ()))


def size_fault(annotated: Marked) -> str:
    """Return why a photo of another shape is not used, as the continuation of its name."""
    return (
        f"has another shape than the picture that was annotated ({_size_text(annotated.size)}),"
        " which may be another one"
    )


_FIRST_TURNED = 5
"""First orientation of EXIF in which width and height change places."""


def _is_turned(picture: Image.Image) -> bool:
    return int(picture.getexif().get(ExifTags.Base.Orientation, 1)) >= _FIRST_TURNED


def _is_in(shape: Sequence[float], size: tuple[int, int]) -> bool:
    """Return True if a box or outline and a picture of this width and height overlap, or it has no shape."""
    if len(shape) < 2:
        return True
    across, down = shape[::2], shape[1::2]
    width, height = size
    return min(across) < width and max(across) >= 0 and min(down) < height and max(down) >= 0


def read_marks(
    path: Path,
    attribute: str = "",
    hint: str | None = None,
    readings: Readings | None = None,
    given: Mapping[str, str] | None = None,
) -> list[Marked] | None:
    """Return the annotated pictures of a file or folder, None for a table of others.

    Args:
        attribute: the attribute of VIA that is the class, whether or not a region has it; "" for one that is found.
        hint: of the errors.
        readings: what is said about the files.
        given: answers to questions, by name.

    Raises:
        BenchmarkError: a file is damaged, of no known form, or the output of a model.
        UsageError: an answer that is given is none of the choices.
    """
    readings = readings or Readings()
    reader = Reader(readings, attribute, given or {})
    suffix = path.suffix.lower()
    if suffix == ".zip" and path.is_file():
        raise BenchmarkError(f"{path.name} is an archive", hint="unpack it, and give its folder")
    if not path.is_dir() and suffix not in (".json", ".xml", ".csv"):
        return None
    found = dict[str, list[Marked]]()
    unread: list[Path] = []
    files = sorted(path.rglob("[!.]*.*")) if path.is_dir() else [path]

    def add(file: Path, read: Annotations) -> None:
        if read.pictures:
            found.setdefault(read.format, []).extend(read.pictures)
        else:
            unread.append(file)

    file = path
    try:
        for file in files:
            if file.suffix.lower() in (".json", ".xml"):
                add(file, read_file(file, path, reader))
            elif file.suffix.lower() == ".zip":
                unread.append(file)
        file = path
        if labels := list(read_yolo(path, reader)):
            found["YOLO"] = labels
        for file in files:
            if file.suffix.lower() != ".csv":
                continue
            # Beside other annotations, a table repeats them most often.
            is_alone = all(format_.startswith("table") for format_ in found)
            table = _opened(file, path) if is_alone else None
            add(file, read_box_table(table, reader) if table else Annotations())
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ElementTree.ParseError,
    ) as error:
        raise BenchmarkError(
            f"{file} cannot be read as annotations: {_reason(error)}", hint=hint
        ) from error
    if suffix == ".csv" and not found:
        return None
    if len(found) != 1:
        archives = [each.name for each in unread if each.suffix.lower() == ".zip"]
        if archives and not found:
            hint = f"unpack {', '.join(_some(archives))}"
        are_pictures = [each.suffix.lower() in _PICTURES for each in files]
        if are_pictures and all(are_pictures):
            hint = f"pictures are no annotations: masks are not read; {hint}"
        fault = (
            f"annotations of several kinds ({', '.join(found)})"
            if found
            else "no annotations that are known"
        )
        raise BenchmarkError(f"{path} holds {fault}", hint=hint)
    ((format_, pictures),) = found.items()
    what = "boxes" if any(picture.marks for picture in pictures) else "annotations"
    readings.take(f"{what} from {path.name} ({format_})")
    for what in _some([each.name for each in unread]):
        readings.leave(what)
    if format_ in _GROUPING:
        pictures = _without_groups(pictures, reader)
    return _with_one_spelling(pictures, readings)


_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
"""Endings of the files of masks."""
_GROUPING = ("LabelMe", "CVAT")
"""Formats in which people may give several shapes a ``group_id``."""
GROUPS = "groups"
"""Setting that says what counts where shapes have a ``group_id``: each group, or each shape."""
_AS_ONE, _EACH = "one-object", "each-shape"


def _without_groups(pictures: list[Marked], reader: Reader) -> list[Marked]:
    """Return the pictures, in which each shape of a group is an object of its own if the user says so.

    It is a question if groups have several shapes of one class: parts of one object, or objects of one tree.
    """
    apart = [
        picture._replace(marks=[mark._replace(group="") for mark in picture.marks])
        for picture in pictures
    ]
    n_together, n_apart = _number_of_objects(pictures), _number_of_objects(apart)
    if n_together == n_apart:
        return apart
    choices = (
        Choice(
            _AS_ONE, f"shapes of a group are parts of an object: {count_text(n_together, 'object')}"
        ),
        Choice(_EACH, count_text(n_apart, "object")),
    )
    text = "Shapes have a group_id. What counts as an object?"
    question = ReadingQuestion(text, f"--set={GROUPS}", choices)
    chosen = reader.readings.choose(question, reader.given.get(GROUPS))
    what = (
        "shapes with one group_id as one object" if chosen == _AS_ONE else "each shape as an object"
    )
    reader.readings.take(what)
    return pictures if chosen == _AS_ONE else apart


def _number_of_objects(pictures: Iterable[Marked]) -> int:
    counts = (count_marks(picture.marks)[0].values() for picture in pictures)
    return sum(count or 0 for of_picture in counts for count in of_picture)


def _opened(file: Path, path: Path) -> SheetTable | None:
    """Return a table; None for a file of a folder that is no table, as it may be any file.

    Raises:
        BenchmarkError: the file is the only one, and no table.
    """
    try:
        return open_table(file)
    except BenchmarkError:
        if file == path:
            raise
        return None


def _reason(error: Exception) -> str:
    match error:
        case KeyError():
            return f"an entry lacks {error}"
        case json.JSONDecodeError() | ElementTree.ParseError():
            return f"it is damaged or cut off: {error}"
        case OSError() | ValueError():
            return str(error)
        case _:
            return "an entry has another form than its format says"


def _some(names: Sequence[str]) -> list[str]:
    """Return the first names, and the number of the others."""
    others = len(names) - _SHOWN
    return [*names[:_SHOWN], *([f"{others} other files"] if others > 0 else [])]


def _with_one_spelling(pictures: list[Marked], readings: Readings) -> list[Marked]:
    """Return the pictures with one name for classes that differ in case, word breaks or number alone, and say so."""
    counts = Counter(mark.label for picture in pictures for mark in picture.marks)
    groups: dict[str, list[str]] = {}
    for label, _ in counts.most_common():
        groups.setdefault(_plain_class(label), []).append(label)
    names = {label: group[0] for group in groups.values() for label in group}
    for group in groups.values():
        if len(group) > 1:
            readings.take(f"classes {' and '.join(map(_quoted, group))} as one")
    return [
        picture._replace(marks=[mark._replace(label=names[mark.label]) for mark in picture.marks])
        for picture in pictures
    ]


def _plain_class(label: str) -> str:
    """Return what a class has in common with other spellings of it."""
    if not re.search(r"[^\W\d_]", label):
        return label
    words = re.sub(r"[-_\s]+", " ", normalize("NFKC", label)).strip().casefold()
    return singular(words)


def _quoted(name: str) -> str:
    return f'"{name}"'


def find_photos(
    annotated: Sequence[Marked],
    photo_of: Callable[[str], Path | None],
    readings: Readings,
    wanted: str | None = None,
) -> tuple[list[Path | None], str]:
    """Return the photo of each annotated picture, None where there is none, and the field that had to be chosen.

    Which name counts is a question if two names of a picture are those of different photos: photos and annotation files
    that were renamed together keep the old names inside the files.

    Args:
        photo_of: returns the photo of a name.
        readings: what is said about the files.
        wanted: the field that counts, if it was chosen before.

    Returns:
        The photos in the order of the pictures, and the field; "" if all names of each picture are those of one photo.
    """
    photos = [
        {field: photo for field, name in one.names.items() if (photo := photo_of(name))}
        for one in annotated
    ]
    unsure = [
        (one, found)
        for one, found in zip(annotated, photos, strict=True)
        if len(set(found.values())) > 1
    ]
    if wanted is not None and any(wanted in one.names for one in annotated):
        first = wanted
    else:
        first = _chosen_field(unsure, readings) if unsure else ""
    results: list[Path | None] = []
    for one, found in zip(annotated, photos, strict=True):
        field = first if first in found else next(iter(found), "")
        if field:
            readings.take(f"photo from {_FIELD_WORDS.get(field, field)}")
        original = photo_of(one.original) if one.original and not field else None
        results.append(found.get(field) or original)
    return results, first


_FIELD_WORDS = {OWN_NAME: "the name of its annotation file"}


def _chosen_field(unsure: Sequence[tuple[Marked, Mapping[str, Path]]], readings: Readings) -> str:
    """Return the field that names the photo in pictures whose fields name different ones."""
    fields = list(dict.fromkeys(field for _, found in unsure for field in found))
    choices: list[Choice] = []
    for field in fields:
        one, found = next(each for each in unsure if field in each[1])
        choices.append(Choice(field, f"{one.name} is {found[field].name}"))
    words = [_FIELD_WORDS.get(field, field) for field in fields]
    text = (
        f"{len(unsure)} annotated pictures have one photo by {words[0]} and another by {' or '.join(words[1:])}."
        " Which one counts?"
    )
    return readings.choose(ReadingQuestion(text, "--set=images_column", tuple(choices)))
