"""Benchmarks built from public data sets: alone, joined, and from the command line."""

from pathlib import Path

import pytest
from data_sets import write_deepweeds
from hypothesis import given
from hypothesis import strategies as st

from agrotools.build.sources import build_sources
from agrotools.build.sources.public import folders_in
from agrotools.build.sources.reading import spread
from agrotools.core import BenchmarkError, UsageError


def test_data_sets_are_found_by_the_names_of_their_folders(tmp_path: Path) -> None:
    write_deepweeds(tmp_path / "all" / "deepweeds")
    assert folders_in(tmp_path / "all") == {"deepweeds": tmp_path / "all" / "deepweeds"}
    with pytest.raises(BenchmarkError, match="none of the data sets"):
        folders_in(tmp_path / "all" / "deepweeds")


@pytest.mark.parametrize("sources", [["deepweeds=a", "sessions=b"], ["deepweeds=a", "deepweeds=b"]])
def test_sources_that_cannot_be_joined_are_refused(tmp_path: Path, sources: list[str]) -> None:
    with pytest.raises(UsageError, match=r"joined|twice"):
        build_sources(sources, tmp_path / "out")


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 40))
def test_items_are_spread_over_kinds(kinds: list[int], count: int) -> None:
    items = list(enumerate(kinds))
    some = spread(items, lambda item: item[1], count, 3)
    assert len(some) == min(count, len(items))
    assert len(set(some)) == len(some)
    chosen = {kind: sum(one[1] == kind for one in some) for kind in kinds}
    for kind, number in chosen.items():
        assert number == kinds.count(kind) or number >= max(chosen.values()) - 1
    assert some == spread(items, lambda item: item[1], count, 3)
