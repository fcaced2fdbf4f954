"""Loading of a set of AG-VQA questions from its files, as its field map says.

Rows that cannot be used, and fields that the map does not read, are reported with their number. Pictures get neutral
names, because published names often tell what they show.
"""

import base64
import binascii
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from pydantic import ValidationError

from agrotools.core import BenchmarkError, FrozenModel, Sample, SampleFile, UsageError, first_error
from agrotools.core.files import cache_dir, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.core.taxonomy import AnswerType
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, SourceNote
from agrotools.loading.benchmarks import Loading, find_below, settings_of
from agrotools.loading.checking import EntryFault, FileCheck, count_list, shorten
from agrotools.loading.values import read_rows
from agrotools_benchmarks._dialogs.loading import IMAGE_SUFFIXES, FileTable
from agrotools_benchmarks.agvqa.field_map import (
    MAPS,
    FieldMap,
    Kind,
    Row,
    RowFault,
    map_files,
    read_map,
    read_question,
)
from agrotools_benchmarks.agvqa.plugin import OWN

OWN_MAP = "agvqa-map.toml"
NO_IMAGES = "none"
_EMBEDDED, _ELSEWHERE = "agvqa-embedded", "agvqa-images"
_MISSING = "an image is not there"
_SHOWN = 12
_ANSWER_TYPES: Mapping[Kind, AnswerType] = {"number": "tolerance", "text": "open_text"}


class SetSettings(FrozenModel):
    """Options of ``agrotools eval NAME`` for a set of AG-VQA questions."""

    map: str = ""
    """Field map (TOML) instead of that of the package."""
    files: str = ""
    """Patterns of files below the folder of the set, with commas between."""
    images: str = ""
    """Folder of the images, or ``none`` to ask all questions without them."""
    allow_missing: bool = False
    """Leave out rows with an image that is not there; they are counted."""


class ReadRows(NamedTuple):
    """Samples of all usable rows of the files in ``root``, and what was found.

    ``faults``: ids of unusable rows with what was found there, by reason; ``unread``: number of rows by field.
    """

    root: Path
    files: Sequence[Path]
    rows: int
    samples: Sequence[Sample]
    faults: Mapping[str, Sequence[tuple[str, str]]]
    unread: Counter[str]
    without_image: int
    folders: Mapping[str, Path]
    """Folders of images outside ``root``, by the first part of their paths."""


def find_set(name: str, data_root: Path | None) -> str:
    """Return folder and files of the set ``name``, for a list of benchmarks; NoFileError if they are not there."""
    root, files = _files(name, map_of(name, data_root, ""), data_root, "")
    return f"{root}: {shorten(', '.join(str(path.relative_to(root)) for path in files), 200)}"


def image_roots(name: str, data_root: Path | None) -> list[Path]:
    """Return the folders that the paths of images are relative to."""
    return [_files(name, map_of(name, data_root, ""), data_root, "")[0], _cache().parent]


def map_of(name: str, data_root: Path | None, given: str) -> FieldMap:
    """Return the map of the set ``name``: the given one, or that of the package, or a user's own beside their files.

    Raises:
        NoFileError: there is no such map.
        BenchmarkError: the map cannot be read.
    """
    if given:
        return read_map(Path(given).expanduser())
    return read_map(
        (data_root or Path()).expanduser() / OWN_MAP if name == OWN else MAPS / f"{name}.toml"
    )


def _files(
    name: str, fields: FieldMap, data_root: Path | None, patterns: str
) -> tuple[Path, list[Path]]:
    names = tuple(part.strip() for part in patterns.split(",")) if patterns else fields.files
    get = (
        f"agrotools benchmarks get {name} (from {fields.url})"
        if fields.download
        else f"they are at {fields.url}"
    )
    # The patterns fit many files, so that a folder of any name is only searched if the map names none.
    itself = not fields.folders or (
        data_root is not None and data_root.expanduser().resolve().name in fields.folders
    )
    missing = " or ".join(dict.fromkeys(names))
    return find_below(
        name, data_root, fields.folders, partial(map_files, names), missing, get, itself=itself
    )


def read_set(
    name: str,
    fields: FieldMap,
    data_root: Path | None,
    settings: SetSettings,
    progress: Progress = no_progress,
) -> ReadRows:
    """Read all rows of the set.

    Raises:
        NoFileError: the files are not there.
        BenchmarkError: a file cannot be read.
    """
    root, files = _files(name, fields, data_root, settings.files)
    images = _Images(root, fields, settings)
    faults: dict[str, list[tuple[str, str]]] = defaultdict(list)
    unread, samples, ids = Counter[str](), list[Sample](), Counter[str]()
    clusters: dict[str, str] = {}
    shapes: dict[tuple[Any, ...], tuple[str, ...]] = {}
    rows = 0
    for done, path in enumerate(files):
        progress(f"{fields.title}: files", done, len(files))
        for number, data in enumerate(read_rows(path), 1):
            rows += 1
            if not isinstance(data, Mapping):
                faults["it is no object of fields"].append((f"{path.name} {number}", ""))
                continue
            row = Row(data, path, number)
            shape = tuple(
                (name, tuple(value) if isinstance(value, Mapping) else None)
                for name, value in data.items()
            )
            if shape not in shapes:
                shapes[shape] = tuple(row.unread(fields))
            unread.update(shapes[shape])
            sample_id = _sample_id(str(row.get(fields.id) or f"{path.stem}-{number}"), ids)
            try:
                sample = _sample(sample_id, row, fields, images)
                if fields.cluster:
                    cluster = clusters.setdefault(str(row.get(fields.cluster)), sample_id)
                    sample = sample.model_copy(update={"cluster": cluster})
                samples.append(sample)
            except RowFault as fault:
                faults[fault.reason].append((sample_id, fault.detail))
    progress(f"{fields.title}: files", len(files), len(files))
    without = sum(not sample.files for sample in samples) if fields.images else 0
    return ReadRows(root, files, rows, samples, faults, unread, without, images.folders)


def _sample_id(text: str, used: Counter[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-._")[:100] or "row"
    used[plain] += 1
    return plain if used[plain] == 1 else f"{plain}-{used[plain]}"


def _sample(sample_id: str, row: Row, fields: FieldMap, images: "_Images") -> Sample:
    option_files, names = images.option_files(row)
    question = read_question(row, fields, names)
    files = (*images.files(row), *option_files)
    groups = {"category": fields.category, **fields.groups}
    try:
        return Sample(
            id=sample_id,
            query=question.text,
            files=files,
            family="vqa",
            task_type=question.kind,
            answer_type=_ANSWER_TYPES.get(question.kind, "exact"),
            template=f"{question.kind}_{len(question.options)}"
            if question.options
            else question.kind,
            source=fields.title,
            toolset=(),
            answer=question.slots,
            groups={
                name: str(value)
                for name, path in groups.items()
                if path and (value := row.get(path)) is not None
            },
            metadata={"row": f"{row.file.name} {row.number}"},
        )
    except ValidationError as error:
        raise RowFault(f"it makes no sample: {first_error(error)}") from error


def _cache() -> Path:
    """Return the folder of images that rows hold themselves."""
    return cache_dir("agvqa").resolve() / _EMBEDDED


class _Images:
    """Images of a set: paths relative to a folder, bytes in parquet, and base64."""

    def __init__(self, root: Path, fields: FieldMap, settings: SetSettings) -> None:
        self._fields = fields
        self._none = settings.images == NO_IMAGES
        self._bases = [root / folder for folder in fields.image_folders]
        self._tops, self.folders = [root], {_EMBEDDED: _cache()}
        if settings.images and not self._none:
            self.folders[_ELSEWHERE] = elsewhere = Path(settings.images).expanduser().resolve()
            if not elsewhere.is_dir():
                raise UsageError(
                    f"there is no folder {elsewhere}", hint="--option images=DIR, or images=none"
                )
            self._tops.insert(0, elsewhere)
        self._tables = {
            first: FileTable(folder) for first, folder in {"": root, **self.folders}.items()
        }

    def files(self, row: Row) -> list[SampleFile]:
        """Return the images of a row, named ``image_1``..."""
        values = [
            value
            for path in self._fields.images
            if not self._none
            for value in _flat(row.get(path))
        ]
        return [self._file(value, row, f"image_{number}") for number, value in enumerate(values, 1)]

    def option_files(self, row: Row) -> tuple[list[SampleFile], dict[str, str]]:
        """Return the images that are options, and their names by letter; none if the options are texts."""
        value = row.get(self._fields.options) if isinstance(self._fields.options, str) else None
        if isinstance(value, list):
            value = dict(zip(ascii_uppercase, value, strict=False))
        values = (
            {letter: image for letter, image in value.items() if image}
            if isinstance(value, Mapping)
            else {}
        )
        if not values or not all(map(_is_image, values.values())):
            return [], {}
        if self._none:
            raise RowFault("its options are images, and none are used")
        found = {
            letter: self._file(image, row, f"option_{letter}") for letter, image in values.items()
        }
        return [*found.values()], {letter: file.name for letter, file in found.items()}

    def _file(self, value: Any, row: Row, name: str) -> SampleFile:
        path = self._stored(value) or self._path(value, row)
        first, table = next(
            each for each in self._tables.items() if path.is_relative_to(each[1].root)
        )
        try:
            file = table.image(
                path.relative_to(table.root).as_posix(), f"{name}{path.suffix.lower() or '.png'}"
            )
        except BenchmarkError as error:
            raise RowFault("an image cannot be read", path.name) from error
        return file.model_copy(update={"path": "/".join(filter(None, (first, file.path)))})

    def _stored(self, value: Any) -> Path | None:
        """Return the path in the cache of an image that the row holds itself; None if the value is a path."""
        content = value["bytes"] if isinstance(value, Mapping) and value.get("bytes") else value
        if isinstance(content, str) and (
            content.startswith(_BASE64) or len(content) > _LONGEST_PATH
        ):
            try:
                content = base64.b64decode(
                    content.partition("base64,")[2] or content, validate=True
                )
            except binascii.Error as error:
                raise RowFault("an image is not valid base64", error) from error
        if not isinstance(content, bytes):
            return None
        suffix = next((end for start, end in _STARTS.items() if content.startswith(start)), ".png")
        path = _cache() / f"{hashlib.sha256(content).hexdigest()[:40]}{suffix}"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        return path

    def _path(self, value: Any, row: Row) -> Path:
        text = value.get("path") or value.get("src") if isinstance(value, Mapping) else value
        if not isinstance(text, str) or not text.strip():
            raise RowFault("an image is neither a path nor bytes", text)
        if re.match(r"https?://", text):
            raise RowFault("an image is only an address, and nothing is downloaded", text)
        leads_out = False
        for relative in (text, Path(text).name):
            for base in (*self._tops, row.file.parent, *self._bases):
                with suppress(OSError, ValueError):  # too long, or with a null character
                    path = (base / relative).resolve()
                    if path.is_file() and any(map(path.is_relative_to, self._tops)):
                        return path
                    leads_out = leads_out or path.is_file()
        raise RowFault(_MISSING, f"{text} leads out of the folder" if leads_out else text)


_BASE64, _LONGEST_PATH = ("data:", "iVBORw0KGgo", "/9j/"), 1000
_STARTS = {
    b"\xff\xd8": ".jpg",
    b"\x89PNG": ".png",
    b"RIFF": ".webp",
    b"II*\0": ".tif",
    b"MM\0*": ".tif",
    b"BM": ".bmp",
}


def _flat(value: Any) -> Iterator[Any]:
    """Yield the single images of a field: of a list, or of an object of paths."""
    if isinstance(value, list):
        for inner in value:
            yield from _flat(inner)
    elif isinstance(value, Mapping) and not {"bytes", "path", "src"} & set(value):
        yield from value.values()
    elif value is not None and value != "":
        yield value


def _is_image(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value.get("bytes"))
    return isinstance(value, bytes) or (
        isinstance(value, str) and Path(value).suffix.lower() in IMAGE_SUFFIXES
    )


def notes_of(read: ReadRows, fields: FieldMap) -> list[str]:
    """Return lines on what was left out of a set, and on the fields that its map does not read."""
    notes = [f"map of {fields.title}: {fields.checked}"] if fields.checked else []
    notes += [
        f"left out, {reason}: {len(rows)} of {read.rows} rows ({_examples(rows)})"
        for reason, rows in sorted(read.faults.items(), key=lambda item: -len(item[1]))
    ]
    if read.without_image:
        notes.append(
            f"{read.without_image} of {len(read.samples)} questions are asked without an image"
        )
    if read.unread:
        notes.append(
            f"fields that the map does not read, with their number: {count_list(read.unread)}"
        )
    return notes


def _examples(rows: Sequence[tuple[str, str]]) -> str:
    shown = "; ".join(
        f"{row}: {shorten(detail, 60)}" if detail else row for row, detail in rows[:3]
    )
    return f"{shown}; ..." if len(rows) > 3 else shown


def check_set(name: str, data_root: Path | None, progress: Progress) -> FileCheck:
    """Check the files of the set: rows that cannot be used, by reason, and fields that are not read."""
    fields = map_of(name, data_root, "")
    read = read_set(name, fields, data_root, SetSettings(), progress)
    faults: list[EntryFault] = []
    for reason, rows in read.faults.items():
        more = f" and {len(rows) - 1} more" if rows[1:] else ""
        faults.append(EntryFault(rows[0][0] + more, f"{reason} ({_examples(rows)})"))
    notes = [note for note in notes_of(read, fields) if not note.startswith("left out")]
    files = tuple(str(path) for path in read.files[:_SHOWN])
    hint = "eval leaves these rows out and counts them; for missing images: --option images=DIR, images=none or "
    return FileCheck(
        files, read.rows, read.samples, faults, notes, f"{hint}allow_missing=true" if faults else ""
    )


def load_set(name: str, loading: Loading) -> Benchmark:
    """Load the questions of the set ``name`` below ``loading.data_root``.

    Raises:
        UsageError: an option is unknown, or pyarrow is needed and not installed.
        BenchmarkError: files or images are missing, or no row can be used; the message lists the reasons.
    """
    settings = settings_of(SetSettings, name, loading.options)
    fields = map_of(name, loading.data_root, settings.map)
    read = read_set(name, fields, loading.data_root, settings, loading.progress)
    notes = notes_of(read, fields)
    missing = read.faults.get(_MISSING, ())
    hint = "--option images=DIR gives the folder of the images, images=none asks all questions without images"
    if missing and not settings.allow_missing:
        fault = f"{name}: {len(missing)} of {read.rows} rows name an image that is not there ({_examples(missing)})"
        raise BenchmarkError(
            fault, hint=f"{hint}, allow_missing=true leaves these rows out and counts them"
        )
    if not read.samples:
        if len(missing) < read.rows:
            hint = (
                f"correct a copy of the map and give it: --option map=FILE (the maps are in {MAPS})"
            )
        fault = f"{name}: no row of {len(read.files)} files can be used"
        raise BenchmarkError("\n  ".join([fault, *notes]), hint=hint)
    header = BenchmarkHeader(
        name=name,
        version="1",
        licence=fields.licence,
        description=f"{fields.title}: {fields.about}",
        toolset=(),
        modes=("no-tool",),
        sources=(
            SourceNote(
                name=fields.title, licence=fields.licence, url=fields.url, citation=fields.citation
            ),
        ),
        metadata={
            "files": [path.relative_to(read.root).as_posix() for path in read.files],
            "left_out": {reason: len(rows) for reason, rows in read.faults.items()},
            "unread_fields": dict(read.unread),
            "notes": [*notes],
        },
    )
    benchmark = Benchmark.of(header, read.samples, read.root, read.folders)
    return replace(benchmark, samples=read.samples) if fields.cluster else benchmark
