"""Labelled pictures: from folders of classes or from a table, and the share of them held out of training."""

import csv
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agrotools.core import UsageError
from agrotools.core.files import read_text
from agrotools.core.texts import count_text
from agrotools.text.tables import SheetTable, open_table

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".heic", ".heif", ".hif", ".avif")
MOST_PICTURES = 50_000
LEAST_PER_CLASS = 4
"""Smallest number of pictures per class that can be split into training and validation pictures."""
LEAST_GROUPS = 2
LABEL_COLUMNS = ("label", "class", "pest", "disease", "weed")
"""Headers of the labels in a table, the first one there."""
IMAGE_COLUMNS = ("image", "photo", "picture", "file", "filename")
"""Headers of the pictures in a table, the first one there."""
_GROUP = "group "
_MORE = (
    "add pictures (30 of a class are a fair beginning), "
    "or merge classes: their folders in one, or one label for all"
)
_FORMS = (
    "a CSV or xlsx file with the columns image,label[,group] (instead of image also "
    f"{', '.join(IMAGE_COLUMNS[1:])}; instead of label also {', '.join(LABEL_COLUMNS[1:])}), or without --labels a "
    "folder per class"
)
_SHOWN = 5


@dataclass(frozen=True)
class LabelledImage:
    """Picture with its class and group.

    ``group``: unit that is never divided between training and validation (a plant, a day, a field); a picture without
    a given group forms its own. ``place``: row of the table or folder that the label is from, for messages.
    """

    path: Path
    label: str
    group: str
    place: str = ""


def read_labelled(
    images: Path, labels: Path | None = None, *, to_learn: bool = True
) -> list[LabelledImage]:
    """List labelled pictures: of the CSV or xlsx file ``labels`` (columns image, label and perhaps group; paths
    relative to ``images``), else of a folder for each class in ``images``, or in the layout of IP102. If nothing is
    ``to_learn``, a class may have one picture. UsageError: a folder, table, column, cell, picture or class that
    cannot be used; BenchmarkError: the table cannot be decoded."""
    if not images.is_dir():
        raise UsageError(f"{images} is not a folder", hint="name the folder of your pictures")
    of_folders = _from_lists if (images / "classes.txt").is_file() else _from_folders
    labelled = _from_table(images, labels) if labels else of_folders(images)
    if not labelled:
        raise UsageError(f"there are no pictures in {labels or images}", hint=_FORMS)
    if len(labelled) > MOST_PICTURES:
        why = f"{len(labelled):,} pictures are more than the {MOST_PICTURES:,} that a pack learns from"
        raise UsageError(why, hint="take a part of them, the same number of each class")
    if to_learn:
        check_classes(labelled)
    return labelled


def hold_out(
    labelled: Sequence[LabelledImage], share: float
) -> tuple[list[LabelledImage], list[LabelledImage]]:
    """Divide pictures into those to learn from and those held out, whole groups at a time: of each class the nearest
    number to ``share`` of its groups, at least one; the draw is fixed. UsageError: a class keeps too few to learn
    from."""
    held: set[str] = set()
    placed: set[str] = set()
    draw = np.random.default_rng(0)
    for label in sorted({one.label for one in labelled}):
        groups = sorted({one.group for one in labelled if one.label == label})
        wanted = max(1, round(share * len(groups))) - sum(group in held for group in groups)
        free = [group for group in groups if group not in placed]
        held.update(free[place] for place in draw.permutation(len(free))[: max(0, wanted)])
        placed.update(groups)
    learnt = [one for one in labelled if one.group not in held]
    check_classes(learnt, labelled)
    return learnt, [one for one in labelled if one.group in held]


def label_column(labels: Path | None) -> str:
    """Return the header of the labels in a table, which may say what they are of; "label" for folders."""
    return _columns(open_table(labels))[1] if labels else LABEL_COLUMNS[0]


def check_writable(path: Path, labels: Path | None) -> None:
    """Refuse, before the training, a ``path`` that :func:`write_labels` cannot write, or the table of all labels."""
    if labels and path.resolve() == labels.resolve():
        raise UsageError(f"{path} is the table of all labels", hint="name another file with --held")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}", hint="name another file with --held")
    if path.exists() and path.suffix.lower() != ".csv":
        raise UsageError(
            f"{path} exists already and is no CSV file, so it is not overwritten",
            hint="name a new file with --held, e.g. held.csv",
        )


def write_labels(path: Path, images: Path, labelled: Sequence[LabelledImage], column: str) -> None:
    """Write a table of labels that :func:`read_labelled` reads, and ``agrotools build --answers``."""
    groups = [
        one.group.removeprefix(_GROUP) if one.group.startswith(_GROUP) else "" for one in labelled
    ]
    width = 3 if any(groups) else 2
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("image", column, "group")[:width])
        for one, group in zip(labelled, groups, strict=True):
            rows.writerow((one.path.relative_to(images).as_posix(), one.label, group)[:width])


def check_classes(labelled: Sequence[LabelledImage], of: Sequence[LabelledImage] = ()) -> None:
    """Refuse pictures, left ``of`` others if given, of one class only, or with too few pictures or groups of a
    class."""
    counts = Counter(one.label for one in labelled)
    counts.update(dict.fromkeys({one.label for one in of}, 0))
    if len(counts) < 2:
        why = (
            f"all pictures are of one class ({next(iter(counts))}): there is nothing to tell apart"
        )
        raise UsageError(why, hint="add pictures of what it must be told from")
    if few := [
        f"{label} ({number})"
        for label, number in sorted(counts.items())
        if number < LEAST_PER_CLASS
    ]:
        left = f" left to learn from, with {len(of) - len(labelled)} held out" if of else ""
        why = f"fewer than {LEAST_PER_CLASS} pictures of {_list_names(few)}{left}"
        raise UsageError(why, hint=_MORE)
    spellings: dict[str, set[str]] = {}
    for label in counts:
        spellings.setdefault(" ".join(label.casefold().split()), set()).add(label)
    if twice := [sorted(same) for same in spellings.values() if len(same) > 1]:
        why = f"labels that differ in spelling only: {' and '.join(map(repr, twice[0]))}"
        raise UsageError(why, hint="write one class in one way")
    groups = {label: {one.group for one in labelled if one.label == label} for label in counts}
    if alone := [
        label for label, class_groups in sorted(groups.items()) if len(class_groups) < LEAST_GROUPS
    ]:
        raise UsageError(
            f"all pictures of {_list_names(alone)} are of one group: none can be held back to check on",
            hint="a class needs two groups (plants, days, fields) or more; without the column group each picture "
            "is its own, but copies of one file are one",
        )


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.is_file() and not path.name.startswith(".")


def _from_folders(images: Path) -> list[LabelledImage]:
    if loose := sorted(path.name for path in images.iterdir() if _is_picture(path)):
        why = f"{count_text(len(loose), 'picture')} in no folder of a class in {images}: {_list_names(loose)}"
        hint = (
            "move each picture into the folder of its class, or name them in a table: --labels FILE"
        )
        raise UsageError(why, hint=hint)
    labelled: list[LabelledImage] = []
    folders = sorted(
        path for path in images.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    if closed := [path.name for path in folders if not os.access(path, os.R_OK | os.X_OK)]:
        raise UsageError(
            f"the folder of a class cannot be read: {_list_names(closed)}",
            hint="allow reading it, or take the folder away",
        )
    for folder in folders:
        for path in filter(_is_picture, sorted(folder.rglob("*"))):
            name = path.relative_to(images).as_posix()
            labelled.append(
                LabelledImage(path, folder.name, f"picture {name}", f"folder {folder.name}")
            )
            if len(labelled) > MOST_PICTURES:
                return labelled
    return labelled


def _from_lists(root: Path) -> list[LabelledImage]:
    """List the training pictures of IP102: lines ``NAME NUMBER``; the lines of its classes begin with NUMBER + 1."""
    try:
        path = next(each for pattern in ("train.txt", "*/train.txt") for each in root.glob(pattern))
        classes = [
            " ".join(line.split()[1:]) for line in read_text(root / "classes.txt").splitlines()
        ]
        rows = [line.rsplit(maxsplit=1) for line in read_text(path).splitlines() if line.strip()]
        labelled = [(path.parent / "images" / name, classes[int(number)]) for name, number in rows]
    except (StopIteration, ValueError, IndexError) as error:
        raise UsageError(
            f"{root} has classes.txt, but no train.txt as IP102 has it", hint=_FORMS
        ) from error
    return [
        LabelledImage(picture, label, f"picture {picture.name}", path.name)
        for picture, label in labelled
    ]


def _columns(table: SheetTable) -> tuple[str, str]:
    """Return the columns of the pictures and of their labels."""
    image = next((name for name in IMAGE_COLUMNS if name in table.columns), None)
    label = next((name for name in LABEL_COLUMNS if name in table.columns), None)
    if image is None or label is None:
        why = f"{table.path} has no columns image and label, but (read with {table.described}): "
        raise UsageError(why + _list_names(table.columns), hint=_FORMS)
    table.check_names(image, label, "group")
    return image, label


def _from_table(images: Path, path: Path) -> list[LabelledImage]:
    labelled: list[LabelledImage] = []
    absent: list[str] = []
    seen: dict[str, int] = {}
    table = open_table(path)
    columns = (*_columns(table), "group")
    for number, cells in table.named_rows():
        image, label, group = (cells.get(name, "").strip() for name in columns)
        place = f"row {number} of {path.name}"
        if not image or not label:
            raise UsageError(f"{place} lacks an image or a label", hint=_FORMS)
        if Path(image).is_absolute() or ".." in Path(image).parts:
            why = f"{place}: {image} leads out of {images}"
            raise UsageError(why, hint="write paths within the folder of the pictures")
        if image in seen:
            why = f"{image} stands in {path.name} twice (rows {seen[image]} and {number})"
            raise UsageError(why, hint="a picture has one label")
        seen[image] = number
        if not (images / image).is_file():
            absent.append(image)
        unit = f"{_GROUP}{group}" if group else f"picture {image}"
        labelled.append(LabelledImage(images / image, label, unit, place))
        if len(labelled) > MOST_PICTURES:
            break
    if absent:
        why = f"{path} names {count_text(len(absent), 'picture')} missing from {images}: {_list_names(absent)}"
        raise UsageError(why, hint="paths are relative to the folder of the pictures")
    return labelled


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
