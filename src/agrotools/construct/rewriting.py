"""Changing the questions of a benchmark folder that is already written, whole or not at all."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from agrotools.construct.export import FILES_FOLDER, replacing, write_benchmark
from agrotools.core import Sample
from agrotools.core.benchmark_header import BenchmarkHeader


def rewrite_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Put ``header`` and ``samples`` in place of those of the benchmark in ``folder``; all its other files stay.

    Raises:
        BenchmarkError: ``folder`` is no benchmark, or its parent cannot be written.
    """
    folder = folder.resolve()
    kept = tuple(samples)
    with replacing(folder) as made:
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
