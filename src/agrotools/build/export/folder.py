"""Atomic writing, copying and rewriting of benchmark folders, with their card and Croissant file."""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agrotools.build.export.card import write_card, write_croissant
from agrotools.core import BenchmarkError, Sample
from agrotools.core.files import artifact_path
from agrotools.formats.benchmark import BenchmarkHeader, resolve_file
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
    """Write card and ``croissant.json``, no part of the content hash; a user's own ``README.md`` stays."""
    samples = tuple(samples)
    write_card(folder, header, samples)
    write_croissant(folder, header, samples)


def copy_benchmark(root: Path, header: BenchmarkHeader, samples: Iterable[Sample], out: Path) -> None:
    """Copy the benchmark whose files are in ``root`` to ``out``, completely or not at all."""
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


EXPORT_FILE = "agrotools-export.toml"


@contextmanager
def replacing_export(target: Path, format: str) -> Iterator[Path]:
    """Replace an export of this format, which a note marks; BenchmarkError if ``target`` holds anything else."""
    note = f'format = "{format}"\n'
    mark = target / EXPORT_FILE
    if mark.is_file() and note not in mark.read_text(encoding="utf-8", errors="replace"):
        raise BenchmarkError(f"{target} holds an export of another format", hint="choose another folder")
    with replace_folder(target, EXPORT_FILE, f"an agrotools export in {format} format") as partial:
        (partial / EXPORT_FILE).write_text(note, encoding="utf-8")
        yield partial
