"""Atomic writing, copying and rewriting of benchmark folders, with their card and Croissant file."""

import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal

import orjson
from pydantic import ValidationError

from agrotools.build.export.card import write_card
from agrotools.build.export.croissant import write_croissant
from agrotools.core import BenchmarkError, FrozenModel, Sample, first_error
from agrotools.core.files import artifact_path
from agrotools.formats.benchmark import (
    CARD_FILE,
    CARD_FOLDER,
    CROISSANT_FILE,
    FILES_FOLDER,
    HEADER_FILE,
    SAMPLES_FILE,
    BenchmarkHeader,
    resolve_file,
)
from agrotools.formats.writing import replace_folder, write_samples

_SHA256 = re.compile(r"[0-9a-f]{64}")


def write_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write header, samples, card and ``croissant.json`` into ``folder``, whose ``files/`` exist already.

    Every sample gets the header's canary GUID, and all offer to refuse if one of them is unanswerable.
    """
    samples = tuple(samples)
    may_abstain = not all(sample.answerable for sample in samples)
    common = {"canary": header.canary, "may_abstain": may_abstain}
    samples = tuple(sample.model_copy(update=common) for sample in samples)
    write_samples(folder, header, samples)
    describe_benchmark(folder, header, samples)


def describe_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write the card and ``croissant.json`` of the benchmark in ``folder``, replacing older ones.

    Neither is part of the benchmark's content hash. A user's own ``README.md`` is not changed.
    """
    samples = tuple(samples)
    write_card(folder, header, samples)
    write_croissant(folder, header, samples)


def copy_benchmark(root: Path, header: BenchmarkHeader, samples: Iterable[Sample], out: Path) -> None:
    """Copy the benchmark whose files are in ``root`` to the folder ``out``, with card and ``croissant.json``.

    The target is written completely or not at all.

    Raises:
        BenchmarkError: raised by :func:`~agrotools.formats.writing.replace_folder`.
    """
    samples = tuple(samples)
    with replace_folder(out) as partial:
        copy_files(root, samples, partial)
        write_benchmark(partial, header, samples)


def copy_files(root: Path, samples: Sequence[Sample], out: Path) -> None:
    """Copy files and artifacts of ``samples`` from ``root`` to ``out``; BenchmarkError if a path leads out."""
    for path in sorted({file.path for sample in samples for file in sample.files}):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(resolve_file(root, path), out / path)
    copy_artifacts(root, samples, out)


def copy_artifacts(root: Path, samples: Iterable[Sample], out: Path) -> None:
    """Copy the existing artifacts of reference calls of ``samples`` from ``root`` to ``out``, for the review page."""
    steps = (step for sample in samples if sample.reference for step in sample.reference.steps)
    for artifact in (each for step in steps if step.observation for each in step.observation.artifacts):
        # An invalid hash could lead out of the folder.
        if artifact.sha256 is None or not _SHA256.fullmatch(artifact.sha256):
            continue
        source, target = (artifact_path(folder, artifact.sha256, Path(artifact.name).suffix) for folder in (root, out))
        if source.is_file() and not source.is_symlink() and not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)


def rewrite_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Replace header and samples of the benchmark in ``folder``; BenchmarkError if it is none or not writable."""
    folder = folder.resolve()
    samples = tuple(samples)
    with replace_folder(folder) as partial:
        shutil.copytree(folder, partial, copy_function=_copy_from(folder), symlinks=True, dirs_exist_ok=True)
        write_benchmark(partial, header, samples)


def _copy_from(folder: Path) -> Callable[[str, str], str]:
    def copy(source: str, target: str) -> str:
        # Files of samples are never modified, so a hard link is enough for them.
        if Path(source).is_relative_to(folder / FILES_FOLDER):
            try:
                os.link(source, target)
                return target
            except OSError:
                pass
        return shutil.copy2(source, target)

    return copy


EXPORT_FILE = "agrotools-export.toml"
Format = Literal["hf", "gta"]


class Exported(FrozenModel):
    """Note of an export. ``form`` is the version of the layout."""

    format: Format
    form: Literal[1] = 1
    header: BenchmarkHeader


@contextmanager
def replacing_export(target: Path, format: Format, header: BenchmarkHeader) -> Iterator[Path]:
    """Replace an export of this format, with its note; see :func:`~agrotools.formats.writing.replace_folder`.

    Raises:
        BenchmarkError: ``target`` contains something other than such an export, or is not writable.
    """
    import tomli_w

    what = f"an agrotools export in {format} format"
    if (target / EXPORT_FILE).is_file():
        read_exported(target, format)
    with replace_folder(target, EXPORT_FILE, what) as partial:
        note = Exported(format=format, header=header).model_dump(mode="json", exclude_none=True)
        (partial / EXPORT_FILE).write_text(tomli_w.dumps(note), encoding="utf-8")
        yield partial


def read_exported(folder: Path, format: Format) -> Exported:
    """Read the note of the export in ``folder``; BenchmarkError if it is unreadable or of another format."""
    path, hint = folder / EXPORT_FILE, f"export the benchmark again with `agrotools export DIR --format {format}`"
    if not path.is_file():
        raise BenchmarkError(
            f"{folder} is not an agrotools export in {format} format: it has no {EXPORT_FILE}", hint=hint
        )
    try:
        note = Exported.model_validate_json(orjson.dumps(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=hint) from error
    except ValidationError as error:
        raise BenchmarkError(f"{path}: {first_error(error)}", hint=hint) from error
    if note.format != format:
        raise BenchmarkError(f"{folder} holds an export of format {note.format}", hint="choose another folder")
    return note


def place_file(folder: Path, path: str, content: bytes) -> None:
    """Write a sample's file to ``path`` in the benchmark folder ``folder``; several samples may share it.

    Raises:
        BenchmarkError: raised by :func:`stored_path`, or another sample has a different file at this path.
    """
    place = folder / stored_path(path)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    elif place.read_bytes() != content:
        raise BenchmarkError(f"another sample has another file at {path}")


def safe_path(path: str) -> PurePosixPath:
    """Return a path inside a folder; BenchmarkError if it is absolute, empty, or with ``..``, backslash or null."""
    relative = PurePosixPath(path)
    if not relative.name or relative.is_absolute() or ".." in relative.parts or "\\" in path or "\0" in path:
        raise BenchmarkError(f"{path!r} leads out of the folder", hint="paths are relative to the folder")
    return relative


def stored_path(path: str) -> PurePosixPath:
    """Return the :func:`safe_path` of a sample's file; BenchmarkError if it is one of the folder's own files."""
    relative = safe_path(path)
    if relative.parts[0] in (HEADER_FILE, SAMPLES_FILE, CARD_FILE, CARD_FOLDER, CROISSANT_FILE):
        raise BenchmarkError(f"{path!r} is no place for a file of a sample", hint="files lie in files/")
    return relative
