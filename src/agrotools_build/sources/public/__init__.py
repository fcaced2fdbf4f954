"""Adapters of the public data sets from which AgroTools (arXiv 2605.22366) drew its images.

An adapter reads a data set as its authors distribute it, uses only their test split (if there is one), and drops items
with incomplete annotation. Nothing is downloaded: the TOML of a data set states how to get it, how it is laid
out, and which real files its adapter has read; none has read a complete data set.
"""

import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from pydantic import JsonValue

from agrotools.core import BenchmarkError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.formats.writing import check_replaceable
from agrotools_build.choosing import QUERIES, SOURCE_PCTS, published
from agrotools_build.sources.assembling import assembled
from agrotools_build.sources.part import Adapter, Part, listing_of

DATASETS: Mapping[str, float] = SOURCE_PCTS
"""Names of the data sets, as used after ``--source``, with their share of the published queries in percent."""


def adapter_of(name: str) -> Adapter:
    """Return the adapter of a data set; its TOML states the function that makes subjects from it."""
    module, _, function = listing_of(name).reader.partition(":")
    return Adapter(name, getattr(import_module(f"{__name__}.{module}"), function))


def build_one(
    source: str,
    folder: Path,
    out: Path,
    progress: Progress = no_progress,
    allow_missing: bool = False,
) -> BenchmarkHeader:
    """Build the benchmark of one data set, with samples in proportion to its share of the published one."""
    return build_all({source: folder}, out, progress, allow_missing=allow_missing, name=source)


def folders_in(folder: Path) -> dict[str, Path]:
    """Return the data sets in ``folder``, each in a subfolder with its name; BenchmarkError if there are none."""
    there = {name: folder / name for name in DATASETS if (folder / name).is_dir()}
    if not there:
        raise BenchmarkError(
            f"{folder} contains none of the data sets",
            hint=f"name their folders {', '.join(sorted(DATASETS))}",
        )
    return there


def build_all(
    folders: Mapping[str, Path],
    out: Path,
    progress: Progress = no_progress,
    queries: int = QUERIES,
    allow_missing: bool = False,
    name: str = "public-sources",
) -> BenchmarkHeader:
    """Build one benchmark from these data sets, each with its share of ``queries``; shares of absent ones stay unused.

    The composition of several data sets is that of the published benchmark, as closely as their questions allow; what
    is missed is in the header's metadata. BenchmarkError: a data set is incomplete (with ``allow_missing``, all are).
    """
    check_replaceable(out)
    wanted = published(queries)
    shares, is_joined = wanted.sources, name == "public-sources"
    with tempfile.TemporaryDirectory(prefix="agrotools-") as scratch:
        parts: list[Part] = []
        missing: dict[str, JsonValue] = {}
        for one in DATASETS if is_joined else folders:
            why = "its data set is not there"
            if one in folders:
                try:
                    parts.append(
                        adapter_of(one)(folders[one], Path(scratch), shares[one], allow_missing)
                    )
                    continue
                except BenchmarkError as error:
                    if not allow_missing or len(folders) == 1:
                        raise
                    why = error.message.replace(str(folders[one]), one)
            missing[one] = {"wanted": shares[one], "made": 0, "why": why}
        return assembled(
            parts,
            out,
            name=name,
            version="1",
            description="Questions on images of public agricultural data sets, with their ground truth.",
            metadata={"absent": [*missing]} if missing else {},
            shares=missing,
            wanted=wanted if is_joined else None,
            progress=progress,
        )
