"""Building of a benchmark from a plan, a folder of pictures and a table.

Its copies of photographs are without the place, names, dates and descriptions that cameras and people write into them.
"""

import hashlib
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, cast

from PIL import ExifTags, Image
from pydantic import JsonValue

from agrotools.core import BenchmarkError, Sample, SampleFile, ToolError
from agrotools.core.files import write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import count_text, difference_text
from agrotools.formats.benchmark import BenchmarkHeader, SourceNote
from agrotools.formats.picture_folder import PHONE_SUFFIXES, Images
from agrotools.formats.table_use import USE_KEY, TableUse, stored_use
from agrotools.formats.tool_check import METADATA_KEY, ToolCheck, photos_csv, stored_checks
from agrotools.formats.tool_labels import LABELS_KEY, ToolLabels, stored_labels
from agrotools.formats.writing import AGREEMENT_FILE, check_replaceable
from agrotools.knowledge.countables import COUNTERS, countables
from agrotools.report.text_tables import csv_text
from agrotools.text import cells
from agrotools.text.cells import Value
from agrotools.text.json_kinds import is_number
from agrotools.text.tables import CellFault
from agrotools.text.units import canonical_unit, convert
from agrotools.vision.rasters import open_raster
from agrotools.vision.reading import read_image
from agrotools_build.choosing import Chosen
from agrotools_build.labels import labels_of_subjects, write_labels
from agrotools_build.own_photos.columns import CLASS, EMPTY
from agrotools_build.own_photos.copies import copies_text, sets_of_copies
from agrotools_build.own_photos.headers import holds
from agrotools_build.own_photos.plan import Column, Measure, Plan, SkippedRows, listed, measures
from agrotools_build.own_photos.proposal import (
    NAMES,
    open_questions_of_column,
    unknown_names,
    unknown_reason,
)
from agrotools_build.own_photos.questions import (
    ColumnNames,
    Pictured,
    compared_columns,
    grouped,
    joined_clusters,
    note_of,
    subjects_of,
    templates_for,
    tolerance_of,
    tolerance_text,
)
from agrotools_build.own_photos.repeats import differing_photos, rows_of_photos
from agrotools_build.own_photos.shares import shares_among_percents
from agrotools_build.own_photos.strangers import named_column, stranger_subject, with_strangers
from agrotools_build.own_photos.table import DetectedTable
from agrotools_build.own_photos.tool_check import (
    Observed,
    asked_labels,
    columns_without_recogniser,
    label_warnings,
    observe_photos,
    result_of,
    tool_checks,
)
from agrotools_build.quality import PictureFeatures, picture_features
from agrotools_build.review.agreement import cohens_kappa, weighted_kappa
from agrotools_build.sources.assembling import assembled
from agrotools_build.sources.part import Originals, Part
from agrotools_build.templates import Template
from agrotools_build.templates.thing import Subject

_CAMERA = {ExifTags.Base.Make, ExifTags.Base.Model, ExifTags.Base.Orientation}
"""EXIF tags that stay: make, model and orientation."""
_EXPOSURE = {33434, 33437, 34855, 37386, 40962, 40963, 41486, 41487, 41488, 41989}
"""Tags of the EXIF block that stay: exposure, aperture, sensitivity, focal length, size and resolution."""
_EXIF_BLOCK = 0x8769
_EXIF = b"Exif\0\0"
_SCAN, _END, _APP1 = 0xDA, 0xD9, 0xE1
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""Marker after the compressed pixels of a scan."""
_PRIVATE = {_APP1, 0xED, 0xFE}
"""JPEG segments with EXIF, XMP, IPTC or a comment."""
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_TEXTS = {b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"tIME"}


def without_identity(path: Path) -> bytes | None:
    """Return a JPEG or PNG without metadata on where, when and by whom it was taken, with equal pixels.

    HEIC and AVIF become JPEG, since no provider reads them. None: no such metadata, another type, or a damaged file.
    """
    content = path.read_bytes()
    try:
        if content[4:8] == b"ftyp":
            return _as_jpeg(path)
        if content.startswith(_PNG):
            parts = [part for name, part in _chunks(content) if name not in _PNG_TEXTS]
            cleaned = _PNG + b"".join(parts)
        elif content.startswith(b"\xff\xd8"):
            cleaned = _clean_jpeg(content)
        else:
            return None
    except (IndexError, ValueError, ToolError):
        return None
    return cleaned if cleaned != content else None


def _as_jpeg(path: Path) -> bytes:
    pixels, stream = read_image(path, may_be_blank=True).pixels, BytesIO()
    with Image.open(path) as picture:
        profile, exif = (
            picture.info.get("icc_profile"),
            _camera_data(picture.info.get("exif", b""), _CAMERA - {ExifTags.Base.Orientation}),
        )
    Image.fromarray(pixels).save(
        stream, "JPEG", quality=95, subsampling=0, icc_profile=profile, exif=exif
    )
    return stream.getvalue()


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    while at < len(content):
        end = at + 12 + int.from_bytes(content[at : at + 4])
        if end > len(content):
            raise ValueError("the last chunk is cut off")
        yield content[at + 4 : at + 8], content[at:end]
        at = end


def _clean_jpeg(content: bytes) -> bytes:
    parts, at = [content[:2]], 2
    while True:
        if content[at] != 0xFF:
            raise ValueError("no segment where one is expected")
        marker, end = content[at + 1], at + 2 + int.from_bytes(content[at + 2 : at + 4])
        if (
            marker == _END
        ):  # what follows is a further picture or data of the phone, with metadata of its own
            return b"".join([*parts, content[at : at + 2]])
        if marker == _SCAN:
            after = _AFTER_SCAN.search(content, end)
            end = after.start() if after else len(content)
        payload = content[at + 4 : end]
        if marker not in _PRIVATE:
            parts.append(content[at:end])
        elif payload.startswith(_EXIF) and (exif := _camera_data(payload)):
            parts.append(bytes([0xFF, _APP1]) + (len(exif) + 2).to_bytes(2) + exif)
        at = end


def _camera_data(payload: bytes, kept: Set[int] = _CAMERA) -> bytes:
    """Return the EXIF data about the camera, as they are if there are no others; empty if there are none."""
    old, new = Image.Exif(), Image.Exif()
    try:
        old.load(payload)
        block = old.get_ifd(_EXIF_BLOCK)
        new.update({tag: value for tag, value in old.items() if tag in kept})
        new.get_ifd(_EXIF_BLOCK).update(
            {tag: value for tag, value in block.items() if tag in _EXPOSURE}
        )
    except Exception:  # Pillow may raise any exception for a damaged block.
        return b""
    if not {*old} - kept - {_EXIF_BLOCK} and not {*block} - _EXPOSURE:
        return payload
    return new.tobytes() if len(new) or new.get_ifd(_EXIF_BLOCK) else b""


_PICTURES_A_SAMPLE = 4
_LEAST_PICTURES = 200
_MOST_WARNED = 8
_MOST_REASONS = 3
"""Reasons for left out rows that an error repeats: the most frequent ones."""


@dataclass(frozen=True)
class BuiltBenchmark:
    """A finished benchmark.

    ``used``: pictures in questions, by column. ``skipped``: not used, with reasons. ``agreements``: of two observers.
    ``warnings``: names that the knowledge base does not have, and labels that the tool cannot give. ``label_checks``:
    how often a tool agrees with the table.
    """

    header: BenchmarkHeader
    used: Mapping[str, int]
    skipped: SkippedRows
    warnings: tuple[str, ...] = ()
    n_cleaned: int = 0
    """Photographs whose copies were freed from places, names, dates or descriptions."""
    agreements: tuple[str, ...] = ()
    label_checks: tuple[str, ...] = ()
    tool_checks: tuple[ToolCheck, ...] = ()
    """How often the tool agrees with the table, by column."""
    use: TableUse | None = None
    """How many rows with a photo are used."""
    copies: str = ""
    """Which photos are copies of one another; empty if none are."""


def build_from_photos(
    seen: DetectedTable,
    plan: Plan,
    out: Path,
    progress: Progress = no_progress,
    strangers: Images | None = None,
    backends: Mapping[str, str] | None = None,
) -> BuiltBenchmark:
    """Build the benchmark from all columns without open questions and write it to ``out``, completely or not at all.

    Rows with names that no tool result can match are left out. ``strangers``: pictures that show none of the names of
    the table; one question about each has no answer. ``backends``: by tool, where not the default.

    BenchmarkError: no column or picture can be used, or ``out`` holds something else. InfrastructureError: no worker.
    """
    check_replaceable(out)
    backends = backends or {}
    skipped = seen.skipped
    columns = _columns_to_ask(seen, plan)
    agreed = {column.column: agreed_answers(seen, column, skipped) for column in columns}
    values = {column: answers for column, (answers, _) in agreed.items()}
    asked = _Asked(seen, plan, columns, values)
    # One body, as copies of photographs stay in the scratch folder until they are in the benchmark.
    with tempfile.TemporaryDirectory(prefix="agrotools-") as scratch:
        originals = Originals(Path(scratch))
        stored = _stored(asked, originals, progress)
        copies = sets_of_copies(stored.digest_of, seen.sources, stored.features)
        are_together = plan.copies == "one-cluster"
        clusters = stored.clusters(copies) if are_together else {}
        measured = _measure_photos(columns, stored.part_of, originals, progress, backends)
        compared = measured.compared
        used = dict[str, int]()
        described = partial(_described, asked=asked, stored=stored, measured=measured, used=used)
        part = replace(
            _part(asked, stored.part_of, clusters, measured.lacking, originals), described=described
        )
        labels_of_all = labels_of_subjects(part.subjects)
        paired = None
        if strangers is not None:
            subjects, paired = _strangers(strangers, asked, stored.part_of, originals)
            part = replace(part, subjects=[*part.subjects, *subjects])
        try:
            header = assembled(
                [part],
                out,
                name=plan.name,
                version="1",
                description=plan.description,
                progress=progress,
                paired=paired,
                backends=backends,
            )
        except BenchmarkError as error:
            left_out = [f"left out: {line}" for line in skipped.lines()[:_MOST_REASONS]]
            # A wrong unit may be why all numbers are too small to be asked about.
            why = "; ".join([error.message, *left_out, *compared])
            raise BenchmarkError(why, hint=error.advice) from error
    write_labels(out, labels_of_all)
    checks = stored_checks(header.metadata)
    write_whole(out / AGREEMENT_FILE, csv_text(photos_csv(checks)).encode(), synced=False)
    warnings = [
        *_unknown_names(columns, stored.part_of),
        *copies_that_differ(copies, columns, values, seen),
        *label_warnings(stored_labels(header.metadata), backends),
    ]
    agreements = tuple(said for _, said in agreed.values() if said)
    return BuiltBenchmark(
        header,
        used,
        skipped,
        tuple(warnings),
        stored.n_cleaned,
        agreements,
        compared,
        tuple(checks),
        stored_use(header.metadata),
        copies_text(copies, are_together=are_together),
    )


@dataclass(frozen=True)
class _Asked:
    """Columns that are asked about, without open questions, and the value of each photo in them.

    ``values``: by column and photo, without those that a second observer contradicts.
    """

    seen: DetectedTable
    plan: Plan
    columns: Sequence[Column]
    values: Mapping[str, Mapping[Path, Value]]

    @property
    def skipped(self) -> SkippedRows:
        """Rows and photos that are left out, to which every step of a build adds."""
        return self.seen.skipped

    @property
    def n_questions(self) -> int:
        """Largest number of questions."""
        return self.plan.most_questions(len({matched.image for matched in self.seen.matched}))

    @property
    def photos(self) -> set[Path]:
        """Photos with a value in any column."""
        return {path for of_column in self.values.values() for path in of_column}


def _columns_to_ask(seen: DetectedTable, plan: Plan) -> list[Column]:
    """Return the columns of the plan without open questions; the others are added to the skipped ones."""
    columns: list[Column] = []
    for column in plan.columns:
        # Rows with unknown names are left out below: they need no answer.
        needs = [need for need in open_questions_of_column(column, seen) if need.key != NAMES]
        if column.is_asked and not needs:
            columns.append(column)
        elif needs:
            lacking = ", ".join(dict.fromkeys(need.key for need in needs))
            asked = "".join(f" ({need.question})" for need in needs if need.key == "crop")
            reason = f"column is skipped because the plan does not set {lacking}{asked}"
            if column.ask and lacking == "ask":
                reason = f"column is skipped. {needs[0].question}"
            hint = f"answer it by --set '{column.column}.{needs[0].key}=...'"
            seen.skipped.add(column.column, reason, hint)
    return columns


@dataclass(frozen=True)
class _Measured:
    """What the tools say of the photos before any question is chosen."""

    labels: Sequence[ToolLabels]
    """labels of the columns of names, and the results that mean them"""
    lacking: Mapping[str, str]
    """columns whose tool knows none of their labels, and why they are not asked"""
    checks: Sequence[ToolCheck]
    """how often the tool agrees with the table, by column"""
    compared: tuple[str, ...]
    """the same for numbers, as lines that name a slip in the table"""


def _measure_photos(
    columns: Sequence[Column],
    part_of: Mapping[str, list[Pictured]],
    originals: Originals,
    progress: Progress,
    backends: Mapping[str, str],
) -> _Measured:
    """Run the tool of each column on its photos, unless its recogniser knows none of the labels.

    Raises:
        InfrastructureError: no tool worker starts.
    """
    labels = asked_labels(columns, part_of)
    lacking = columns_without_recogniser(labels, backends)
    recognised = [column for column in columns if column.column not in lacking]
    observed = observe_photos(recognised, part_of, originals.files, progress, backends)
    return _Measured(
        labels,
        lacking,
        tool_checks(observed, recognised, part_of, backends),
        tuple(compare_with_tool(observed, columns, part_of)),
    )


def _count_used(
    samples: Sequence[Sample],
    asked: _Asked,
    part_of: Mapping[str, list[Pictured]],
    used: dict[str, int],
) -> set[str]:
    """Write into ``used`` how many photos of each column the samples ask about, and say why not about the others.

    Returns: names of the photos that are asked about, and of those that would be with a larger number of questions.
    """
    usable: set[str] = set()
    reached = asked.n_questions if len(samples) >= asked.n_questions else 0
    for column, pictured in part_of.items():
        photos = {str(each.file.sha256): each for each in pictured}
        shown = {
            str(file.sha256)
            for sample in samples
            if sample.metadata["column"] == column and sample.answerable
            for file in sample.files
        }
        used[column] = len(shown)
        usable |= {photos[digest].name for digest in shown & photos.keys()}
        for digest in sorted(photos.keys() - shown):
            photo = photos[digest]
            if isinstance(photo.value, bool) and _is_alone(photo, photos.values()):
                # A yes or no is asked about several photos, and more questions would not help.
                reason = f"no other photo has the same {' and '.join(photo.slices)}"
                finest = _finest([each.slices for each in photos.values()])
                hint = f"--set '{finest}.ask=nothing' does not keep these photos apart"
            elif not shown and len({each.value for each in photos.values()}) == 1:
                reason = "all its photos have the same answer"
                hint = "add photos with other answers"
            else:
                others = [each.value for other, each in photos.items() if other != digest]
                reason, hint = _why_unused(photo.value, others, asked.plan, column, reached)
            if reason == _limit_reached(reached):
                usable.add(photo.name)
            asked.skipped.add_photo(column, reason, hint, photo.name)
    return usable


def _is_alone(photo: Pictured, photos: Iterable[Pictured]) -> bool:
    """Return True if no other photo has the same values in the columns of slices."""
    return [each.slices for each in photos].count(photo.slices) == 1


def _limit_reached(questions: int) -> str:
    """Return the reason of photos for which the benchmark has no further questions."""
    return f"the benchmark has its {questions} questions"


def _finest(groups: Collection[Mapping[str, str]]) -> str:
    """Return the column of groups with the most different values."""
    names = [*dict.fromkeys(name for each in groups for name in each)]
    return max(names, key=lambda name: len({each.get(name) for each in groups}))


def _why_unused(
    value: Value, others: Sequence[Value], plan: Plan, name: str, reached: int
) -> tuple[str, str]:
    """Return why a photo is in no question of a column, and what would change it.

    ``others``: values of the other photos in this column; ``reached``: the largest number of questions, if there are so
    many; else 0.
    """
    column = plan.column(name)
    number = _number(value)
    smaller = f"--set '{name}.abs_tol=NUMBER' with a smaller number"
    twice = 0.0
    if column is not None and number is not None:
        measure = measures()[column.ask]
        tolerance = tolerance_of(column, measure)[0]
        near = difference_text(f"{tolerance:g}", measure.unit)
        # With more questions, a small number may still be asked about beside a limit.
        if abs(number) <= tolerance and not reached:
            # No tolerance brings a value of exactly 0 in.
            hint = smaller if number else "--set pairs=true adds other questions"
            return (
                f"the value is within {near} of 0, so an answer of 0 would be right, and no further question beside a "
                "limit can be asked",
                hint,
            )
        twice = 2 * tolerance
        numbers = [each for each in map(_number, others) if each is not None]
        if plan.pairs and any(abs(number - each) <= tolerance for each in numbers):
            # More questions would not help.
            return _TOO_NEAR, smaller
    if reached:
        return _limit_reached(reached), f"--set samples={2 * reached} asks more"
    if number is None:
        return "too few photos can be compared with it", "add photos with other answers"
    if abs(number) < twice:
        return "the value is less than twice the tolerance, so that it is easily guessed", smaller
    if plan.pairs:
        return _TOO_NEAR, smaller
    return "all wordings of its questions are used", "--set pairs=true adds other questions"


_TOO_NEAR = "the value is too near those of other photos to ask which of them has more"


def _number(value: Value) -> float | None:
    return cast(float, value) if is_number(value) else None


def _column_for_strangers(
    columns: Sequence[Column], part_of: Mapping[str, list[Pictured]]
) -> Column:
    """Return the column whose questions are asked about strangers.

    Raises:
        BenchmarkError: no column holds names.
    """
    column = named_column([each for each in columns if part_of[each.column]])
    if column is None:
        raise BenchmarkError(
            "no column holds names, so that nothing can be asked about strangers",
            hint="add a column of names (such as diseases) to the table, or leave out --strangers",
        )
    return column


def _strangers(
    strangers: Images,
    asked: _Asked,
    part_of: Mapping[str, list[Pictured]],
    originals: Originals,
) -> tuple[list[Subject], Callable[[list[Chosen], list[Subject]], list[Chosen]]]:
    """Return the subjects of the strangers, and what adds their questions to those of the photos.

    Raises:
        BenchmarkError: no column holds names, or none of the strangers can be shown.
    """
    column = _column_for_strangers(asked.columns, part_of)
    shown = _stored_strangers(strangers, column, asked, originals, part_of)

    def add_twins(chosen: list[Chosen], _subjects: list[Subject]) -> list[Chosen]:
        return with_strangers(chosen, shown, column, asked.skipped)

    return [subject for subject, _ in shown], add_twins


def _stored_strangers(
    strangers: Images,
    column: Column,
    asked: _Asked,
    originals: Originals,
    part_of: Mapping[str, list[Pictured]],
) -> list[tuple[Subject, SampleFile]]:
    """Return the strangers that can be opened and are none of the photos, each once."""
    known = {str(each.file.sha256) for pictured in part_of.values() for each in pictured}
    stored: list[tuple[Subject, SampleFile]] = []
    for path in sorted(strangers.paths):
        if fault := _fault_of(path, column):
            reason = f"cannot be used: {fault.message.replace(path.name, 'it', 1)}"
            hint = fault.hint or "replace it by one that opens"
            asked.skipped.add("stranger", reason, hint, example=path.name)
            continue
        file = _stored_file(path, column, asked.plan, originals, set())
        if str(file.sha256) in known:
            reason = "is one of the photos, or a copy of another stranger"
            asked.skipped.add("stranger", reason, "remove it from one folder", example=path.name)
            continue
        known.add(str(file.sha256))
        subject = stranger_subject(len(stored) + 1, file, path, strangers.folder, column)
        stored.append((subject, file))
    if not stored:
        raise BenchmarkError(
            f"none of the pictures in {strangers.folder} can be shown as a stranger",
            hint="--strangers names a folder of pictures of other things than the photos",
        )
    return stored


class _Stored(NamedTuple):
    """Pictures that can be opened. ``part_of``: by column. ``digest_of``: hash of the stored file, by photo.

    ``n_cleaned``: how many were freed from metadata about people. ``features``: what they look like. ``not_needed``:
    photos with values that so few questions do not need.
    """

    part_of: dict[str, list[Pictured]]
    digest_of: dict[Path, str]
    n_cleaned: int
    features: dict[Path, PictureFeatures]
    not_needed: set[Path]

    def clusters(self, copies: Sequence[Sequence[Path]]) -> dict[str, str]:
        """Return the name of a cluster for each photo, by its hash, that is one of several copies."""
        return {
            self.digest_of[photo]: f"copies-{number}"
            for number, members in enumerate(copies, start=1)
            for photo in members
        }


def _stored(asked: _Asked, originals: Originals, progress: Progress) -> _Stored:
    """Return the pictures of each column that are needed and can be opened."""
    pictures = _select_pictures(asked.photos, asked.n_questions, asked.skipped)
    slices = _slices_of_photos(asked)
    features: dict[Path, PictureFeatures] = {}
    faults = _open_photos(asked, pictures, features, progress)
    cleaned: set[Path] = set()
    part_of: dict[str, list[Pictured]] = {column.column: [] for column in asked.columns}
    digest_of: dict[Path, str] = {}
    for column in asked.columns:
        for path, value in asked.values[column.column].items():
            if path not in pictures or faults[path] is not None:
                continue
            file = _stored_file(path, column, asked.plan, originals, cleaned)
            digest_of[path] = str(file.sha256)
            shown = Pictured(file, value, slices[path], asked.seen.images.shown_name(path))
            part_of[column.column].append(shown)
    return _Stored(part_of, digest_of, len(cleaned), features, asked.photos - pictures)


def _open_photos(
    asked: _Asked, pictures: Set[Path], features: dict[Path, PictureFeatures], progress: Progress
) -> dict[Path, ToolError | None]:
    """Return why each of the pictures cannot be used, None if it can; ``features`` get what it looks like."""
    faults: dict[Path, ToolError | None] = {}
    for column in asked.columns:
        for path in sorted(pictures & asked.values[column.column].keys() - faults.keys()):
            fault = faults[path] = _fault_of(path, column, features)
            if fault is not None:
                reason = f"cannot be used: {fault.message.replace(path.name, 'it', 1)}"
                hint = fault.hint or "replace it by one that opens"
                asked.skipped.add("picture", reason, hint, example=path.name)
            progress("pictures opened", len(faults), len(pictures))
    return faults


def _slices_of_photos(asked: _Asked) -> defaultdict[Path, dict[str, str]]:
    """Return the values of each photo in the columns of slices; empty cells have none."""
    slices = defaultdict[Path, dict[str, str]](dict)
    for column in asked.plan.columns:
        if column.ask != "slice":
            continue
        for _, path, text in asked.seen.cells_of(column.column):
            if not cells.is_empty(text):
                slices[path][column.column] = text
    return slices


def _stored_file(
    path: Path, column: Column, plan: Plan, originals: Originals, cleaned: set[Path]
) -> SampleFile:
    facts, content = _facts(path, column, plan), without_identity(path)
    is_phone = (
        path.suffix.lower() in PHONE_SUFFIXES
    )  # perhaps a JPEG in truth, as some programs write it
    if content is None and not is_phone:
        return originals.file(path, **facts)
    cleaned.add(path)
    suffix = ".jpg" if is_phone else path.suffix.lower()
    return originals.add_content(content or path.read_bytes(), suffix, **facts)


def _unknown_names(
    columns: Iterable[Column], part_of: Mapping[str, list[Pictured]]
) -> Iterator[str]:
    """Yield a warning for each column with names that the knowledge base does not have."""
    for column in columns:
        texts = (
            [str(each.value) for each in part_of[column.column]]
            if measures()[column.ask].kind == "name"
            else []
        )
        names = ColumnNames.of(column, texts)
        if unknown := [text for text in texts if not names.is_known(text)]:
            listed = ", ".join(
                f"{name!r} ({n})" for name, n in Counter(unknown).most_common(_MOST_WARNED)
            )
            yield (
                f"{column.column}: not in the knowledge base, but offered as answers: {listed}; correct the table if "
                "they are not names (agrotools tools kb search NAME)"
            )


def _part(
    asked: _Asked,
    part_of: Mapping[str, list[Pictured]],
    clusters: Mapping[str, str],
    lacking: Mapping[str, str],
    originals: Originals,
) -> Part:
    """Return subjects and questions of all columns.

    ``clusters``: by hash, of photos that are copies of one another. ``lacking``: as in :class:`_Measured`.

    Raises:
        BenchmarkError: no column has a picture.
    """
    plan = asked.plan
    groups = grouped(_columns_by_photo(part_of), compared_columns(plan))
    clusters = joined_clusters(clusters, groups)
    subjects: list[Subject] = []
    templates: list[Template] = []
    n_of_kind: Counter[str] = Counter()
    for number, column in enumerate(asked.columns):
        pictured = part_of[column.column]
        if not pictured:
            continue
        kind = measures()[column.ask].kind
        place = n_of_kind[kind]
        n_of_kind[kind] += 1
        without = lacking.get(column.column, "")
        subjects += subjects_of(column, number, pictured, groups, clusters, without)
        numbers = [each.value for each in pictured if isinstance(each.value, int | float)]
        has_area = all(each.file.gsd_m for each in pictured)
        templates += templates_for(column, place, plan, numbers, counted_per_area=has_area)
    if not subjects:
        what = "; ".join(asked.skipped.lines()[:_MOST_REASONS]) or "the plan ignores all columns"
        raise BenchmarkError(
            f"no questions can be generated: {what}",
            hint="run the command again with such --set, or correct the table",
        )
    return Part(
        name=plan.name.replace(".", "-")[:40],
        source=SourceNote(
            name=plan.name, licence=plan.licence, note="Pictures and answers are their owner's."
        ),
        subjects=subjects,
        questions=templates,
        samples=asked.n_questions,
        files=originals.files,
    )


def _columns_by_photo(part_of: Mapping[str, list[Pictured]]) -> dict[str, frozenset[str]]:
    """Return the columns with a value for a photo, and its slices, by its hash: equal ones may be asked together."""
    columns_of: dict[str, set[str]] = {}
    for name, pictured in part_of.items():
        for each in pictured:
            slices = {*map(str, each.slices.items())}
            columns_of.setdefault(str(each.file.sha256), slices).add(name)
    return {digest: frozenset(names) for digest, names in columns_of.items()}


def _described(
    samples: Sequence[Sample],
    *,
    asked: _Asked,
    stored: _Stored,
    measured: _Measured,
    used: dict[str, int],
) -> dict[str, JsonValue]:
    """Return what the header says about the finished samples: how many rows they use, what they leave out, and how
    often the tool agrees with the table. ``used`` gets the number of photos in questions by column."""
    seen = asked.seen
    usable = _count_used(samples, asked, stored.part_of, used)
    usable |= {seen.images.shown_name(path) for path in stored.not_needed}
    use = TableUse(
        used=sum(_shown_first(seen, each.image) in usable for each in seen.matched),
        with_photo=len(seen.matched) + seen.n_elsewhere,
    )
    return {
        USE_KEY: use.model_dump(mode="json"),
        "dropped": [*filter(None, [use.warning()]), *asked.skipped.lines()],
        METADATA_KEY: [
            check.model_dump(mode="json", exclude_none=True) for check in measured.checks
        ],
        LABELS_KEY: [of_column.model_dump(mode="json") for of_column in measured.labels],
    }


def _shown_first(seen: DetectedTable, image: Path) -> str:
    """Return the name of a picture, or of the first of its copies, which is the one that is used."""
    return seen.images.shown_name(seen.copies.get(image, image))


def _select_pictures(paths: set[Path], samples: int, skipped: SkippedRows) -> set[Path]:
    """Return the pictures to open: all, or an even selection by the hash of their names if there are very many."""
    most = max(_LEAST_PICTURES, _PICTURES_A_SAMPLE * samples)
    if len(paths) <= most:
        return paths
    chosen = sorted(paths, key=lambda path: hashlib.sha256(path.name.encode()).digest())[:most]
    reason = f"were not needed for {samples} samples ({len(paths) - most} of {len(paths)})"
    skipped.add("picture", reason, f"--set samples={len(paths)} uses more")
    return set(chosen)


def _fault_of(
    path: Path, column: Column, features: dict[Path, PictureFeatures] | None = None
) -> ToolError | None:
    """Return why a picture cannot be used, None if it can; ``features`` then get what it looks like."""
    try:
        if column.ask == "canopy_height":
            with open_raster(path) as raster:
                raster.read([1])
        else:
            looks = picture_features(read_image(path).pixels)
            if features is not None and looks is not None:
                features[path] = looks
    except ToolError as error:
        return error
    return None


def _facts(path: Path, column: Column, plan: Plan) -> dict[str, Any]:
    """Return the fields of a file in its sample besides hash and size: kind, bands, pixel size, camera, note."""
    facts: dict[str, Any] = {}
    if column.ask == "canopy_height":
        facts |= {"kind": "raster", "bands": ("height",)}
    if column.gsd_m:
        facts["gsd_m"] = column.gsd_m
    if column.fx_px:
        with Image.open(path) as picture:
            middle = {"cx_px": picture.width / 2, "cy_px": picture.height / 2}
        facts["intrinsics"] = {"fx_px": column.fx_px, "fy_px": column.fx_px, **middle}
    if note := note_of(column, plan.note):
        facts["note"] = note
    return facts


_MAY_BE_SHARE = "has two decimals more than the other percentages, so that it may be a share of 1 (0.067 for 6.7 %)"
_UNIT_IN_CELL = "write it with its unit, as 6.7 % or 0.067 %"


def answers_of(
    seen: DetectedTable,
    column: Column,
    skipped: SkippedRows,
    unknown: Collection[str] = (),
    of: str = "",
) -> dict[Path, Value]:
    """Return the value of each picture; unusable cells and contradictory values are added to ``skipped``.

    ``unknown``: names that no tool result can match; their cells are not used. ``of``: the column in the plan, if
    ``column`` is that of a second observer.
    """
    measure = measures()[column.ask]
    by_image: dict[Path, list[tuple[int, Value]]] = {}
    texts = seen.cells_of(column.column)
    if all(cells.is_empty(text) for _, _, text in texts):
        skipped.add(column.column, f"column is {EMPTY}", "write the answers into the table")
    # Rows with equal numbers are parts, too, if those with different ones are.
    may_be_parts = bool(differing_photos(seen, column))
    shares = shares_among_percents([text for _, _, text in texts], column, measure)
    for image, rows in rows_of_photos(seen, column.column).items():
        for row, text in rows:
            try:
                if text in shares:
                    raise CellFault(_MAY_BE_SHARE, _UNIT_IN_CELL)
                value = _value(text, column, measure, unknown)
            except CellFault as fault:
                # The keys of a second observer's column are those of the first.
                hint = fault.hint.replace("COLUMN", of or column.column)
                skipped.add(column.column, fault.reason, hint, row, text[:60])
                if may_be_parts:
                    # Without one of its parts the number of the photo is not known.
                    by_image.pop(image, None)
                    break
                continue
            by_image.setdefault(image, []).append((row, value))
    ways = _ways_to_merge(seen, by_image, of or column.column)
    merged = {
        image: _merge_answers(
            seen.images.shown_name(image), answers, column, skipped, ways, may_be_parts=may_be_parts
        )
        for image, answers in by_image.items()
    }
    known = {image: value for image, value in merged.items() if value is not None}
    return _without_contradicting_copies(known, seen, column, skipped)


def range_text(seen: DetectedTable, column: Column) -> str:
    """Return the smallest and the largest number that can be used of a column: ``0.6 to 7.2 %``; empty if none can."""
    numbers = numbers_of(seen, column)
    if not numbers:
        return ""
    measure = measures()[column.ask]
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{min(numbers):.3g} to {max(numbers):.3g}{unit}"


def numbers_of(seen: DetectedTable, column: Column) -> list[float]:
    """Return the numbers of a column in the unit of its measure, one for each photo; empty if it has none."""
    if measures()[column.ask].kind != "number":
        return []
    values = answers_of(seen, column, SkippedRows()).values()
    return [number for number in map(_number, values) if number is not None]


def _without_contradicting_copies(
    values: Mapping[Path, Value],
    seen: DetectedTable,
    column: Column,
    skipped: SkippedRows,
) -> dict[Path, Value]:
    """Return one of the pictures with the same bytes for each value, none if their values differ."""
    by_first: dict[Path, list[Path]] = {}
    for image in values:
        by_first.setdefault(seen.copies.get(image, image), []).append(image)
    kept: dict[Path, Value] = {}
    shown = seen.images.shown_name
    for images in by_first.values():
        if len({values[image] for image in images}) == 1:
            kept[images[0]] = values[images[0]]
            for image in images[1:]:
                reason = "is a copy of another photo (identical bytes) with the same answer"
                skipped.add(column.column, reason, "used once", example=shown(image))
        else:
            several = " and ".join(f"{shown(image)}: {values[image]!r}" for image in images)
            reason = "are copies of one photo (identical bytes) with different answers"
            skipped.add(column.column, reason, "keep the right one", example=several)
    return kept


def agreed_answers(
    seen: DetectedTable, column: Column, skipped: SkippedRows
) -> tuple[dict[Path, Value], str]:
    """Return the values of a column, without those that a second observer contradicts, and their agreement as text."""
    is_named = measures()[column.ask].kind == "name" and column.ask != CLASS
    unknown = unknown_names(seen, column) if is_named else {}
    first = answers_of(seen, column, skipped, unknown)
    if not column.second:
        return first, ""
    by_second = column.model_copy(update={"column": column.second, "second": column.column})
    second = answers_of(seen, by_second, skipped, unknown, column.column)
    measure = measures()[column.ask]
    both = [image for image in first if image in second]
    if measure.kind == "number":
        numbers = [(float(first[image]), float(second[image])) for image in both]
        alike, agreement = _agreement_of_numbers(numbers, *tolerance_of(column, measure))
    else:
        category_of = _categories(column, measure, [*first.values(), *second.values()])
        pairs = [(category_of(first[image]), category_of(second[image])) for image in both]
        alike, agreement = _agreement_of_categories(pairs)
    values = second | first
    alone = f"--set '{column.column}.second=only {column.column}'"
    hint = f"agree on one value, or {alone} takes the first alone"
    for image, is_alike in zip(both, alike, strict=True):
        if is_alike:
            continue
        example = f"{seen.images.shown_name(image)}: {values.pop(image)!r} and {second[image]!r}"
        skipped.add(column.column, f"is another value in {column.second}", hint, example=example)
    said = f"{column.column} and {column.second}: {agreement}, n = {len(both)}, {sum(alike)} alike"
    return values, f"{said}; {_rule_of_truth(column, first, second, seen)}"


def _agreement_of_numbers(
    pairs: Sequence[tuple[float, float]], abs_tol: float, rel_tol: float
) -> tuple[list[bool], str]:
    """Return which numbers of two observers agree within the tolerance, and their agreement as text."""
    alike = [abs(a - b) <= max(abs_tol, rel_tol * (a + b) / 2) for a, b in pairs]
    mean = sum(a - b for a, b in pairs) / max(1, len(pairs))
    concordance = weighted_kappa(pairs)
    shown = "undefined" if concordance is None else f"{concordance:.2f}"
    return alike, f"mean difference {mean:.3g}, Lin's concordance {shown}"


def _agreement_of_categories(pairs: Sequence[tuple[str, str]]) -> tuple[list[bool], str]:
    """Return which categories of two observers are the same, and their agreement as text."""
    alike = [a == b for a, b in pairs]
    kappa, why = cohens_kappa(pairs)
    return alike, f"kappa undefined ({why})" if kappa is None else f"Cohen's kappa {kappa:.2f}"


def _categories(
    column: Column, measure: Measure, values: Sequence[Value]
) -> Callable[[Value], str]:
    """Return a function that gives the category of a value: for a name, the thing that it stands for."""
    names = ColumnNames.of(column, map(str, values) if measure.kind == "name" else ())
    key_of = {text: names.key_of(text) for text in names.labels.entries}

    def category_of(value: Value) -> str:
        text = str(value)
        return key_of.get(text, text)

    return category_of


def copies_that_differ(
    copies: Sequence[Sequence[Path]],
    columns: Sequence[Column],
    values: Mapping[str, Mapping[Path, Value]],
    seen: DetectedTable,
) -> Iterator[str]:
    """Yield a line for each column with the copies of photos that have different answers; all of them are kept."""
    for column in columns:
        if column.column in seen.table.counted:
            continue  # A cropped copy has fewer of the annotated objects.
        of_column = values[column.column]
        differ: list[str] = []
        for photos in copies:
            answers = {photo: of_column[photo] for photo in photos if photo in of_column}
            if not _are_alike([*answers.values()], column):
                each = [f"{seen.images.shown_name(at)}: {value!r}" for at, value in answers.items()]
                differ.append(" and ".join(each))
        if differ:
            yield (
                f"{column.column}: copies of one photo have different answers in {count_text(len(differ), 'set')} "
                f"({listed(differ)}); all are kept. Correct the wrong ones in the table"
            )


def _are_alike(values: Sequence[Value], column: Column) -> bool:
    """Return True if values are one answer: names of one thing, or numbers within the tolerance of each other."""
    measure = measures()[column.ask]
    if measure.kind == "number":
        numbers = sorted(float(value) for value in values)
        if not numbers:
            return True
        alike, _ = _agreement_of_numbers(
            [(numbers[0], numbers[-1])], *tolerance_of(column, measure)
        )
        return all(alike)
    category_of = _categories(column, measure, values)
    return len({category_of(value) for value in values}) <= 1


def _rule_of_truth(
    column: Column, first: Mapping[Path, Value], second: Mapping[Path, Value], seen: DetectedTable
) -> str:
    """Return which value of two observers is the truth, and the photos that one of them alone has seen."""
    rule = f"the truth is that of {column.column} where both agree"
    measure = measures()[column.ask]
    if measure.kind == "number":
        rule += f" {tolerance_text(column, measure, of='their mean')}"
    alone = sorted(first.keys() ^ second.keys())
    if alone:
        names = listed([seen.images.shown_name(image) for image in alone])
        rule += f", and that of the only one for {names}"
    return rule


def _value(text: str, column: Column, measure: Measure, unknown: Collection[str]) -> Value:
    if measure.kind == "yes":
        return cells.yes_or_no(text, column.yes, column.no)
    if measure.kind == "name":
        name = cells.name(text)
        meant = column.meaning_of(name)
        if meant is None or name in unknown:
            hint = f"write a known name, or --set 'COLUMN.{NAMES}.{name}=KNOWN NAME'"
            raise CellFault(unknown_reason(name, column), hint)
        return meant
    number = cells.quantity(text, column.decimal or ".")
    value = _in_unit(number, column, measure)
    if measure.unit is None and value != round(value) and column.repeated != "mean":
        raise CellFault("is not a whole number", "write the count as a whole number")
    if measure.least is not None and value < measure.least:
        raise CellFault(
            f"is below {measure.least:g}{measure.unit or ''}", "correct the value or its unit"
        )
    if measure.most is not None and value > measure.most:
        raise CellFault(
            f"is above {measure.most:g} {measure.unit or ''}", "correct the value or its unit"
        )
    return value


def _in_unit(number: cells.CellQuantity, column: Column, measure: Measure) -> float:
    if measure.unit is None:
        if number.unit is not None:
            raise CellFault(
                f"is in {number.unit}, but a count has no unit", "write the count alone"
            )
        if number.counted and not _is_counted(number.counted, column, measure):
            raise CellFault(
                f"has {number.counted!r} after the number, which is not what is counted",
                "write the number alone",
            )
        return number.value
    if number.counted is not None:
        raise CellFault(
            f"has {number.counted!r} where a unit is expected",
            f"write the number in {measure.unit}",
        )
    unit = number.unit or canonical_unit(column.unit)
    if unit is None:
        raise CellFault(
            "has no unit", f"--set 'COLUMN.unit={measure.unit}' or the unit that they have"
        )
    try:
        return convert(number.value, unit, measure.unit)
    except ValueError as error:
        hint = f"write it in {measure.unit}, or in a unit of the same kind"
        raise CellFault(
            f"is in {unit}, which cannot be converted to {measure.unit}", hint
        ) from error


def _is_counted(noun: str, column: Column, measure: Measure) -> bool:
    """Return True if a noun after a number is what a column counts, or only says that it is counted."""
    words = [
        *COUNTERS,
        *filter(None, (column.target, column.objects, column.objects_zh)),
    ]
    if thing := countables().get(column.target or ""):
        words += [*thing.words, *thing.plurals]
    if measure.name != "count":
        words += measure.words
    return any(holds(noun, word) for word in words)


def _ways_to_merge(
    seen: DetectedTable, by_image: Mapping[Path, Sequence[tuple[int, Value]]], name: str
) -> str:
    """Return what may be done with several values of one photo.

    They are parts of a sum only if most photos have several: a photo that is listed twice was counted twice.
    """
    if seen.table.is_of_annotations:
        return "keep one of them"
    n_several = sum(len(answers) > 1 for answers in by_image.values())
    are_parts = 2 * n_several > len(by_image)
    ways = ["mean", *["sum"] * are_parts]
    return "keep one, or " + " or ".join(f"--set '{name}.repeated={way}'" for way in ways)


def _merge_answers(
    photo: str,
    answers: Sequence[tuple[int, Value]],
    column: Column,
    skipped: SkippedRows,
    ways: str,
    *,
    may_be_parts: bool,
) -> Value | None:
    """Return the value of a picture with one or several (row, value), or None if these contradict each other.

    ``ways``: hint on what may be done about it. ``may_be_parts``: several rows with one number may be parts of a sum.
    """
    values = list(dict.fromkeys(value for _, value in answers))
    is_one = len(answers) == 1 or (len(values) == 1 and not may_be_parts)
    if is_one and column.repeated != "sum":
        return values[0]
    numbers = [value for _, value in answers if isinstance(value, int | float)]
    if (
        column.repeated in ("mean", "sum")
        and len(numbers) == len(answers)
        and not isinstance(values[0], bool)
    ):
        return sum(numbers) if column.repeated == "sum" else sum(numbers) / len(numbers)
    several = " and ".join(f"{value!r} (row {row})" for row, value in answers[:3])
    hint = ways if numbers else "keep one of them"
    reason = "has different answers for one picture"
    if len(values) == 1:
        reason = "has several rows for one picture, which are not one answer on other pictures"
    skipped.add(
        column.column,
        reason,
        hint,
        answers[0][0],
        f"{photo}: {several}",
    )
    return None


_FACTORS = (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)
_LIKE = 0.2
_LEAST_PHOTOS, _LEAST_ROWS, _MOST_LISTED = 6, 3, 5


class _Pair(NamedTuple):
    name: str
    label: float
    measured: float


def compare_with_tool(
    observed: Observed, columns: Sequence[Column], part_of: Mapping[str, list[Pictured]]
) -> Iterator[str]:
    """Yield a line for each column of numbers that says on how many photos the tool agrees with the table, and where a
    slip in the table explains the rest: another unit, or labels of the photo in the next or previous row.
    """
    for column in columns:
        measure = measures()[column.ask]
        if measure.kind != "number":
            continue
        pairs: list[_Pair] = []
        for each in part_of[column.column]:
            observation = observed[column.column].get(str(each.file.sha256))
            measured = None if observation is None else result_of(observation, measure)
            if isinstance(measured, int | float):
                pairs.append(_Pair(each.name, float(each.value), measured))
        if len(pairs) >= _LEAST_PHOTOS:
            yield _line(column, measure, pairs)


def _is_like(pair: _Pair, factor: float) -> bool:
    """Return True if a value of the table times a factor is about what was measured."""
    return abs(pair.label * factor - pair.measured) < _LIKE * pair.measured


def _line(column: Column, measure: Measure, pairs: Sequence[_Pair]) -> str:
    """Return on how many photos the tool agrees with the table, and which slip in the table explains the others."""
    absolute, relative = tolerance_of(column, measure)

    def agree(label: float, measured: float) -> bool:
        return abs(label - measured) <= max(absolute, relative * abs(label))

    far = [pair for pair in pairs if not agree(pair.label, pair.measured)]
    n_near = len(pairs) - len(far)
    within = tolerance_text(column, measure, of="the table's value")
    line = f"{column.column}: {measure.tool} agrees with the table on {n_near} of {len(pairs)} photos, {within}"
    more = fmean(pair.measured - pair.label for pair in pairs)
    if round(abs(more), 6) > 0:
        amount = difference_text(f"{abs(more):.3g}", measure.unit)
        line += f"; it is {amount} too {'high' if more > 0 else 'low'} on average"
    for step, row in ((1, "next"), (-1, "previous")):
        others = [*pairs[step:], *pairs[:step]]
        shifted = [
            pair
            for pair, other in zip(pairs, others, strict=True)
            if agree(pair.label, other.measured)
        ]
        if len(shifted) > max(len(pairs) / 2, n_near):
            return f"{line}; {len(shifted)} values fit the photo of the {row} row: are the rows shifted?"
    # Small numbers are within the tolerance of each other, whatever their unit.
    other = [pair for pair in pairs if not _is_like(pair, 1.0)]
    scaled = {factor: [pair for pair in other if _is_like(pair, factor)] for factor in _FACTORS}
    factor = max(scaled, key=lambda each: len(scaled[each]))
    if len(found := scaled[factor]) >= max(_LEAST_ROWS, len(other) / 3):
        times = f"{factor:g} times smaller" if factor > 1 else f"{1 / factor:g} times larger"
        line += f"; {len(found)} values are {times} than measured: are they in another unit? "
        return line + ", ".join(f"{pair.name} {pair.label:g}" for pair in found[:_MOST_LISTED])
    if len(far) > len(pairs) / 2:
        line += "; it measures these photos badly, or the table means something else"
    if far:
        worst = sorted(far, key=lambda pair: -abs(pair.label - pair.measured))[:_MOST_LISTED]
        each = ", ".join(
            f"{pair.name} {pair.label:g} (measured {pair.measured:.3g})" for pair in worst
        )
        line += f"; look at these, either may be wrong: {each}"
    return line
