"""Benchmarks built from public data sets: alone, joined, and from the command line."""

from pathlib import Path

import pytest
from fake_deepweeds import write_deepweeds
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.allocation import QUERIES
from agrotools.build.sources import build_source, build_sources
from agrotools.build.sources.public import DATASETS, folders_in
from agrotools.build.sources.reading import spread
from agrotools.core import BenchmarkError, UsageError


def test_a_data_set_becomes_a_sound_benchmark(tmp_path: Path) -> None:
    folder = write_deepweeds(tmp_path / "set")
    header = build_source(f"deepweeds={folder}", tmp_path / "out")
    assert validate_folder(tmp_path / "out") == []
    samples = load_folder(tmp_path / "out").samples
    assert 5 <= len(samples) <= round(QUERIES * DATASETS["deepweeds"] / 100)
    assert {sample.task_type for sample in samples} == {"weed_identification"}
    assert "CC BY 4.0" in header.licence
    shown = {file.path for sample in samples for file in sample.files}
    assert {f"files/{path.name}" for path in (tmp_path / "out" / "files").iterdir()} == shown


def test_the_shares_add_up() -> None:
    assert sum(DATASETS.values()) <= 100.01


def test_data_sets_are_found_by_the_names_of_their_folders(tmp_path: Path) -> None:
    write_deepweeds(tmp_path / "all" / "deepweeds")
    assert folders_in(tmp_path / "all") == {"deepweeds": tmp_path / "all" / "deepweeds"}
    with pytest.raises(BenchmarkError, match="none of the data sets"):
        folders_in(tmp_path / "all" / "deepweeds")


@pytest.mark.parametrize("sources", [["deepweeds=a", "field=b"], ["deepweeds=a", "deepweeds=b"]])
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
