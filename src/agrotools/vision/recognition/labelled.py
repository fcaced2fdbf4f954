"""A user's own labelled pictures: a table beside a folder, or a folder per class."""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from agrotools.core import UsageError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
MOST_PICTURES = 50_000
LEAST_PER_CLASS = 4
"""Pictures of a class, and fewer cannot be split into pictures to learn from and pictures to check on."""
LEAST_GROUPS = 2
_SHOWN = 5


@dataclass(frozen=True)
class Labelled:
    """``group``: what no split may cut apart (a plant, a day, a field); where none is given, a picture is its own."""

    path: Path
    label: str
    group: str


def read_labelled(images: Path, labels: Path | None = None) -> list[Labelled]:
    """The pictures that ``labels`` names (CSV with a line ``image,label`` or ``image,label,group`` first, paths within
    ``images``), or, without it, those in the folders of ``images``, each folder a class.

    Raises:
        UsageError: no such folder or table, no pictures, a table of another form, pictures that are not there or stand
            twice, fewer than two classes, a class with too few pictures or groups.
    """
    if not images.is_dir():
        raise UsageError(f"{images} is no folder", hint="--images names the folder of your pictures")
    found = _from_table(images, labels) if labels else _from_folders(images)
    if not found:
        raise UsageError(f"there are no pictures in {labels or images}", hint=_FORMS)
    if len(found) > MOST_PICTURES:
        raise UsageError(
            f"{len(found):,} pictures are more than the {MOST_PICTURES:,} that a pack learns from",
            hint="take a part of them, the same number of each class",
        )
    check_classes(found)
    return found


def check_classes(found: list[Labelled]) -> None:
    """Refuse what no head can be trained and checked on.

    Raises:
        UsageError: one class, or a class with too few pictures or groups.
    """
    counts = Counter(one.label for one in found)
    if len(counts) < 2:
        raise UsageError(
            f"all pictures are of one class ({next(iter(counts))}): there is nothing to tell apart",
            hint="add pictures of what it must be told from",
        )
    if few := [f"{label} ({number})" for label, number in sorted(counts.items()) if number < LEAST_PER_CLASS]:
        raise UsageError(
            f"fewer than {LEAST_PER_CLASS} pictures of {_listed(few)}",
            hint="with so few nothing can be learnt and checked; 30 of a class are a fair beginning",
        )
    groups = {label: {one.group for one in found if one.label == label} for label in counts}
    if alone := [label for label, own in sorted(groups.items()) if len(own) < LEAST_GROUPS]:
        raise UsageError(
            f"all pictures of {_listed(alone)} are of one group: none can be held back to check on",
            hint="a class needs two groups (plants, days, fields) or more; without the column each picture is its own",
        )


_FORMS = "a CSV with the columns image,label or image,label,group, or without --labels a folder per class"


def _from_folders(images: Path) -> list[Labelled]:
    found: list[Labelled] = []
    for folder in sorted(path for path in images.iterdir() if path.is_dir() and not path.name.startswith(".")):
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in SUFFIXES and path.is_file() and not path.name.startswith("."):
                name = path.relative_to(images).as_posix()
                found.append(Labelled(path, folder.name, name))
                if len(found) > MOST_PICTURES:
                    return found
    return found


def _from_table(images: Path, table: Path) -> list[Labelled]:
    found: list[Labelled] = []
    absent: list[str] = []
    seen: dict[str, int] = {}
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            columns = [name.strip() for name in rows.fieldnames or ()]
            if not {"image", "label"} <= set(columns):
                raise UsageError(f"the first line of {table} must name the columns image and label", hint=_FORMS)
            rows.fieldnames = columns
            for row in rows:
                image, label = ((row[name] or "").strip() for name in ("image", "label"))
                if not image or not label:
                    raise UsageError(f"line {rows.line_num} of {table} lacks an image or a label", hint=_FORMS)
                path = Path(image)
                if path.is_absolute() or ".." in path.parts:
                    raise UsageError(
                        f"line {rows.line_num} of {table}: {image} leads out of {images}",
                        hint="write paths within the folder of the pictures",
                    )
                if image in seen:
                    raise UsageError(
                        f"{image} stands in {table} twice (lines {seen[image]} and {rows.line_num})",
                        hint="a picture has one label",
                    )
                seen[image] = rows.line_num
                if not (images / path).is_file():
                    absent.append(image)
                group = (row.get("group") or "").strip()
                found.append(Labelled(images / path, label, f"group {group}" if group else f"picture {image}"))
                if len(found) > MOST_PICTURES:
                    break
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the labels {table}: {error}", hint=_FORMS) from error
    if absent:
        raise UsageError(
            f"{table} names {len(absent)} pictures that are not in {images}: {_listed(absent)}",
            hint="paths are relative to --images",
        )
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
