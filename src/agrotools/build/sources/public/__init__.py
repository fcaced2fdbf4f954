"""The public data sets that AgroTools (arXiv 2605.22366) drew its images from: one adapter each.

An adapter reads a data set as its authors distribute it, keeps to their test split, and drops items whose annotation is
incomplete. None downloads: each says where its data set is to be had and how it must lie.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from pydantic import JsonValue

from agrotools.build.allocation import QUERIES, SOURCE_PCTS, apportioned
from agrotools.build.sources.assembling import assembled
from agrotools.build.sources.part import Part
from agrotools.core import BenchmarkError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.formats.replacement import check_replaceable


@dataclass(frozen=True)
class Public:
    """``module`` in this package holds ``read(folder, scratch, samples) -> Part``; ``share_pct``: of the published
    queries (:mod:`agrotools.build.allocation`)."""

    module: str
    share_pct: float

    def read(self, folder: Path, scratch: Path, samples: int) -> Part:
        """The data set in ``folder`` as a part of at most ``samples`` samples; ``scratch`` takes files made from it.

        Raises:
            BenchmarkError: it is not there, incomplete, or not as its authors describe it.
        """
        reader: Callable[[Path, Path, int], Part] = import_module(f"{__name__}.{self.module}").read
        return reader(folder, scratch, samples)


DATASETS: Mapping[str, Public] = {name: Public(name, share) for name, share in SOURCE_PCTS.items()}
"""By name, as after ``--source``."""


def build_public(name: str) -> Callable[[Path, Path, Progress], BenchmarkHeader]:
    """The builder of one data set's benchmark, as :data:`agrotools.build.sources.SOURCES` wants it."""

    def build(folder: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
        return _built({name: folder}, out, name, progress)

    return build


def folders_in(folder: Path) -> dict[str, Path]:
    """The data sets that lie in ``folder``, each in a folder of its name.

    Raises:
        BenchmarkError: none is there.
    """
    there = {name: folder / name for name in DATASETS if (folder / name).is_dir()}
    if not there:
        raise BenchmarkError(
            f"{folder} holds none of the data sets", hint=f"name their folders {', '.join(sorted(DATASETS))}"
        )
    return there


def build_all(
    folders: Mapping[str, Path], out: Path, progress: Progress = no_progress, queries: int = QUERIES
) -> BenchmarkHeader:
    """Build one benchmark from these data sets, each in its share of ``queries``; those absent leave theirs empty.
    What a data set falls short, and why, stands in the header's metadata under ``shares``.

    Raises:
        BenchmarkError: one is incomplete, or ``out`` holds something else than a benchmark.
    """
    return _built(folders, out, "public-sources", progress, queries)


def _built(
    folders: Mapping[str, Path], out: Path, name: str, progress: Progress, queries: int = QUERIES
) -> BenchmarkHeader:
    check_replaceable(out)
    with tempfile.TemporaryDirectory(prefix="agrotools-") as scratch:
        wanted = apportioned({one: data_set.share_pct for one, data_set in DATASETS.items()}, queries)
        parts = [DATASETS[one].read(folder, Path(scratch), wanted[one]) for one, folder in folders.items()]
        absent = sorted(DATASETS.keys() - folders.keys()) if name not in DATASETS else []
        missing: dict[str, JsonValue] = {
            one: {"wanted": wanted[one], "made": 0, "why": "its data set is not there"} for one in absent
        }
        return assembled(
            parts,
            out,
            name=name,
            version="1",
            description="Questions on images of public agricultural data sets, with their ground truth.",
            metadata={"absent": [*absent]} if absent else {},
            shares=missing,
            progress=progress,
        )
