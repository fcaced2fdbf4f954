"""Photos to label: a choice of all blocks, days and devices, as a table to fill in, and the precision of a score."""

import csv
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from warnings import catch_warnings

from PIL import Image

from agrotools.core import ToolError, UsageError
from agrotools.core.texts import command_line
from agrotools.formats.picture_folder import Images
from agrotools.scoring.statistics import MIN_CLUSTERS, planned_half_width
from agrotools.vision.formats import file_format
from agrotools_build.own_photos.plan import MOST_QUESTIONS, QUESTIONS_A_PHOTO, Column
from agrotools_build.sources.part import first_few


class Photo(NamedTuple):
    """A photo. ``values``: its block, day and device; ``time``: in seconds, or its place in the folder without EXIF."""

    path: str
    values: tuple[str, ...]
    time: float


def write_choice(folder: Path, count: int, by: str | None, out: Path) -> Iterator[str]:
    """Write a table of chosen photos with an empty column ``answer``; yield what was chosen and what it tells."""
    groups = Column.SLICES[:3]
    if not {*(wanted := by.replace(" ", "").split(",") if by else groups)} <= {*groups}:
        raise UsageError(f"--by {by} is unknown", hint=f"one or more of {','.join(groups)}")
    if out.suffix != ".csv" or out.exists():
        raise UsageError(
            f"{out} {'exists' if out.exists() else 'is no .csv file'}", hint="name a new .csv file"
        )
    if not (photos := [*read_photos(images := Images(folder))]):
        raise UsageError(
            f"none of the {len(images)} photos in {folder} can be read", hint="see agrotools doctor"
        )
    readable = [photo.path for photo in photos]
    varied = [len({photo.values[place] for photo in photos}) > 1 for place in range(3)]
    places = [place for place in range(3) if groups[place] in wanted and (by or varied[place])]
    photos = [
        photo._replace(values=tuple(photo.values[place] for place in places)) for photo in photos
    ]
    chosen = choose_photos(photos, count)
    with out.open("x", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerow(("photo", *(groups[place] for place in places), "answer"))
        csv.writer(file).writerows((photo.path, *photo.values, "") for photo in chosen)
    unread = sorted(
        {path.relative_to(images.folder).as_posix() for path in images.paths} - {*readable}
    )
    lost = f"{len(unread)} cannot be read{': ' * bool(unread)}{first_few(unread)}"
    yield f"{out}: {len(chosen)} of {len(photos)} photos ({count} wanted, {lost})"
    for at, place in enumerate(places):
        of_all, of_chosen = (
            Counter(photo.values[at] for photo in some) for some in (photos, chosen)
        )
        listed = [f"{value} {of_chosen[value]} of {n}" for value, n in of_all.most_common(12)]
        note = (
            f"{len(of_chosen)} of {len(of_all)} groups" if varied[place] else "all photos share it"
        )
        yield f"{groups[place]}: {note}: {', '.join(listed)}{', ...' * (len(of_all) > len(listed))}"
    yield from precision_lines(chosen)
    yield "Next, fill in the column answer and name it by its content (e.g. apples, severity %, disease), then:"
    yield f"  {command_line('build', '--images', folder, '--answers', out, '--out', 'my-farm')}"


def read_photos(images: Images) -> Iterator[Photo]:
    """Yield the photos that can be read, by their EXIF data, without decoding them."""
    for place, path in enumerate(images.paths):
        name, device, time = path.relative_to(images.folder), "", None
        with suppress(ToolError, OSError, Image.DecompressionBombError):
            file_format(path)
            with (
                catch_warnings(action="ignore"),
                Image.open(path) as picture,
                suppress(Exception),
            ):  # damaged EXIF
                exif = (
                    picture.getexif()
                    if picture.format != "PNG" or "exif" in picture.info
                    else Image.Exif()
                )
                device = " ".join(
                    dict.fromkeys(
                        f"{exif.get(271, '')} {exif.get(272, '')}".replace("\0", " ").split()
                    )
                )
                written = exif.get_ifd(0x8769).get(36867) or exif.get(306)
                time = datetime.strptime(str(written)[:19], "%Y:%m:%d %H:%M:%S")  # noqa: DTZ007
            block = name.parent.as_posix() if name.parent.name else images.folder.name
            values = (block, f"{time:%Y-%m-%d}" if time else "unknown", device or "unknown")
            yield Photo(name.as_posix(), values, time.timestamp() if time else place)


def choose_photos(photos: Sequence[Photo], count: int) -> list[Photo]:
    """Choose photos from each combination of values by its share, from each value, and at random times in it."""
    draw, count, chosen = random.Random(0), min(count, len(photos)), list[Photo]()
    ordered = [photo.values for photo in sorted(photos, key=lambda photo: photo.values)]
    numbers = Counter(
        ordered[(2 * place + 1) * len(photos) // (2 * count)] for place in range(count)
    )
    has = {pair for values in numbers for pair in enumerate(values)}
    for values in dict.fromkeys(ordered):
        most = max(numbers, key=lambda one: numbers[one])
        if numbers[most] > 1 and not has.issuperset(enumerate(values)):
            numbers.update({values: 1, most: -1})
            has.update(enumerate(values))
    for values, number in numbers.items():
        alike = [photo for photo in photos if photo.values == values]
        left, taken = draw.sample(alike, len(alike)), list[Photo]()
        for gap in (60, 10, 2, 0):  # seconds between two photos: as many as leave enough of them
            order, left = left, list[Photo]()
            for photo in order:
                far = all(abs(photo.time - other.time) >= gap for other in taken)
                (taken if far and len(taken) < number else left).append(photo)
        chosen += taken
    return sorted(chosen)


def precision_lines(chosen: Sequence[Photo]) -> Iterator[str]:
    """Yield how well a score will be known if no photos are alike, and by the clusters of the tables."""
    n, questions = len(chosen), min(MOST_QUESTIONS, QUESTIONS_A_PHOTO * len(chosen))
    asked = [questions // n + (place < questions % n) for place in range(n)]
    yield "half width of the 95 % interval of a score on photos like those of the folder, in points:"
    alike = f"{questions} questions (of a new plan) on {min(n, questions)} photos"
    for what, sizes in (f"{n} photos that are not alike", [1] * n), (alike, [*filter(None, asked)]):
        (half, effect), (less, _) = (planned_half_width(sizes, mean) for mean in (0.5, 0.8))
        known = f"±{100 * half + 0.5:.0f} at 50 %, ±{100 * less + 0.5:.0f} at 80 %, design effect {effect:.2f}"
        yield f"  {what}: {known if len(sizes) >= MIN_CLUSTERS else 'no interval, too few'}"
    yield "  (correlation in a cluster: 0.5; the plan sets the questions; other blocks or days may differ more)"
