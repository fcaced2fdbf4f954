"""Benchmark folders written, copied and changed, whole or not at all, with their card and Croissant file."""

import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from agrotools.build.export.card import write_card
from agrotools.build.export.croissant import write_croissant
from agrotools.core import Sample
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.core.files import artifact_path
from agrotools.formats.folder import FILES_FOLDER, write_samples
from agrotools.formats.replacement import replace_folder

_SHA256 = re.compile(r"[0-9a-f]{64}")


def write_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write header and samples into ``folder``, whose ``files/`` are already there, and what describes them:
    the card (``README.md`` and ``card/``) and ``croissant.json``. Every line carries the header's canary GUID."""
    samples = tuple(sample.model_copy(update={"canary": header.canary}) for sample in samples)
    write_samples(folder, header, samples)
    describe_benchmark(folder, header, samples)


def describe_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write the card and ``croissant.json`` of the benchmark in ``folder``, in place of older ones.

    Neither is part of the benchmark's content hash. A ``README.md`` of the user's own is left as it is.
    """
    samples = tuple(samples)
    write_card(folder, header, samples)
    write_croissant(folder, header, samples)


def copy_benchmark(root: Path, header: BenchmarkHeader, samples: Iterable[Sample], out: Path) -> None:
    """Write the benchmark whose files lie in ``root`` to the folder ``out`` with its card and ``croissant.json``, whole
    or not at all.

    Raises:
        BenchmarkError: as :func:`~agrotools.formats.replacement.replace_folder`.
    """
    samples = tuple(samples)
    with replace_folder(out) as made:
        for path in dict.fromkeys(file.path for sample in samples for file in sample.files):
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, made / path)
        copy_artifacts(root, samples, made)
        write_benchmark(made, header, samples)


def copy_artifacts(root: Path, samples: Iterable[Sample], out: Path) -> None:
    """Copy what the reference calls of ``samples`` made, as far as ``root`` holds it: the review page shows it."""
    steps = (step for sample in samples if sample.reference for step in sample.reference.steps)
    for made in (artifact for step in steps if step.observation for artifact in step.observation.artifacts):
        # A hash that is none could lead out of the folder.
        if made.sha256 is None or not _SHA256.fullmatch(made.sha256):
            continue
        source, target = (artifact_path(folder, made.sha256, Path(made.name).suffix) for folder in (root, out))
        if source.is_file() and not source.is_symlink() and not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)


def rewrite_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Put ``header`` and ``samples`` in place of those of the benchmark in ``folder``; all its other files stay.

    Raises:
        BenchmarkError: ``folder`` is no benchmark, or its parent cannot be written.
    """
    folder = folder.resolve()
    kept = tuple(samples)
    with replace_folder(folder) as made:
        shutil.copytree(folder, made, copy_function=_copy_from(folder), symlinks=True, dirs_exist_ok=True)
        write_benchmark(made, header, kept)


def _copy_from(folder: Path) -> Callable[[str, str], str]:
    def copy(source: str, target: str) -> str:
        # Pictures are never written to, so a second name will do; all else may be.
        if Path(source).is_relative_to(folder / FILES_FOLDER):
            try:
                os.link(source, target)
                return target
            except OSError:
                pass
        return shutil.copy2(source, target)

    return copy
