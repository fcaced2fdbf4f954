"""Sorted runs and their merging."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.corpus import runs as runs_module
from agrotools.knowledge.corpus.runs import Spill, merge, run_files

Batch = list[list[int]]
"""Terms of each passage."""


def merged(folder: Path, batches: list[Batch], capacity: int, memory: int) -> dict[int, list[tuple[int, int]]]:
    """term -> (passage, how often), by way of the disk."""
    for path in folder.iterdir():
        path.unlink()
    spill = Spill(folder, capacity)
    for batch in batches:
        terms = np.array([term for passage in batch for term in passage], np.uint64)
        owners = np.array([number for number, passage in enumerate(batch) for _ in passage], np.int64)
        spill.add(terms, owners, len(batch))
    written = spill.finish()
    if not written:
        return {}
    counts = merge(written, folder / "postings", memory)
    terms, offsets, postings = (
        np.fromfile(path, kind)
        for path, kind in zip(run_files(folder / "postings"), ("<u8", "<u8", "<u4"), strict=True)
    )
    assert counts == (len(terms), len(postings))
    assert len(offsets) == len(terms) + 1
    assert offsets[-1] == len(postings)
    assert (np.diff(terms.astype(np.int64)) > 0).all()
    assert sorted(path.name for path in folder.iterdir()) == ["postings.offsets", "postings.postings", "postings.terms"]
    return {
        int(term): [(int(each) >> 6, int(each) & 63) for each in postings[start:end]]
        for term, start, end in zip(terms, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    }


def plainly(batches: list[Batch]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for number, passage in enumerate(passage for batch in batches for passage in batch):
        for term, count in sorted(Counter(passage).items()):
            found.setdefault(term, []).append((number, min(count, 63)))
    return dict(sorted(found.items()))


_TERMS = st.sampled_from([0, 1, 2, 3, 5, 2**31, 2**47, 2**48 - 1])


@given(st.lists(st.lists(st.lists(_TERMS, max_size=8), max_size=5), max_size=12), st.integers(1, 30), st.integers(2, 5))
def test_runs_are_merged_to_what_a_dictionary_holds(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Batch], capacity: int, fan_in: int
):
    folder = tmp_path_factory.getbasetemp() / "runs"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs_module, "_FAN_IN", fan_in)
        patch.setattr(runs_module, "_SLICE", 3)
        assert merged(folder, batches, capacity, 1) == plainly(batches)


def test_terms_larger_than_what_is_loaded_at_once(tmp_path: Path):
    """Some terms have more postings than a reader takes in, and more entries than that lie side by side."""
    numbers = np.random.default_rng(5)
    batches = [
        [[7, *numbers.integers(0, 3000, 4).tolist(), 9] for _ in range(4000)],
        [[7, 7] for _ in range(3000)],
        [[7, *numbers.integers(0, 3000, 4).tolist()] for _ in range(4000)],
    ]
    assert merged(tmp_path, batches, 5000, 1) == plainly(batches)


def test_a_run_numbers_no_more_passages_than_it_can(tmp_path: Path):
    batches = [[[number % 3] for number in range(50_000)] for _ in range(3)]
    assert merged(tmp_path, batches, 1_000_000, 1 << 20) == plainly(batches)


def test_a_term_counts_63_times_at_most(tmp_path: Path):
    assert merged(tmp_path, [[[4] * 62, [4] * 63, [4] * 5000]], 100, 1) == {4: [(0, 62), (1, 63), (2, 63)]}
