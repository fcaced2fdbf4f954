"""Photographs that are left out, with reasons (``left_out.toml``), and clauses of questions (``asked.toml``)."""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from agrotools.core import SampleFile
from agrotools_build.sources.part import DataSet, Photo

T = TypeVar("T")

NO_FARM = "no farm"
"""Name of the group of samples whose place is no farm, so that figures without them can be given."""
TREES_OF_TOWNS = {NO_FARM: "trees of towns"}
CROWNS_OF_FORESTS = {NO_FARM: "crowns of forests"}
HEIGHTS_OF_FORESTS = {NO_FARM: "heights of forests"}
CHANGES_OF_SUBURBS = {NO_FARM: "changes of suburbs"}


@cache
def _table(name: str) -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


def is_kept(data: DataSet, what: SampleFile | str) -> bool:
    """Return False for a photograph, or a box in one, that is left out; its reason is then counted."""
    key = str(what.sha256)[:6] if isinstance(what, SampleFile) else what
    reason = _table("left_out").get(data.listing.part, {}).get(key)
    if reason is not None:
        data.dropped[reason] += 1
    return reason is None


def kept_of(data: DataSet, photos: Sequence[Photo[T]]) -> list[Photo[T]]:
    """Return the photographs that are not left out."""
    return [photo for photo in photos if is_kept(data, photo[0])]


def asked_of(entry: str) -> dict[str, str]:
    """Return what is asked of an entry by topic, as words of templates; empty for topics that are not asked about."""
    clauses = _table("asked").get(entry, {})
    return {
        f"ask_{topic}": clauses.get(topic, "") for topic in ("causes", "management", "symptoms")
    }
