"""Postings written by way of sorted partitions."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.corpus.building import IndexWriter
from agrotools.knowledge.corpus.index import OFFSETS, POSTINGS, TERMS

Batch = list[list[int]]
"""Terms of each passage."""


def written(folder: Path, batches: list[Batch], buffered: int, partitions: int) -> dict[int, list[tuple[int, int]]]:
    """Term -> (passage, number of times), by way of the disk."""
    with IndexWriter(folder, buffered, partitions) as writer:
        for batch in batches:
            terms = np.array([term for passage in batch for term in passage], np.uint64)
            owners = np.array([number for number, passage in enumerate(batch) for _ in passage], np.int64)
            writer.add_terms(terms, owners, len(batch))
    counts = writer.finish()
    terms, offsets, postings = (
        np.fromfile(path, kind)
        for path, kind in ((folder / TERMS, "<u8"), (folder / OFFSETS, "<u8"), (folder / POSTINGS, "<u4"))
    )
    assert counts == (len(terms), len(postings))
    assert len(offsets) == len(terms) + 1
    assert offsets[-1] == len(postings)
    assert (np.diff(terms.astype(np.int64)) > 0).all()
    assert not list(folder.glob("partition-*"))
    return {
        int(term): [(int(each) >> 6, int(each) & 63) for each in postings[start:end]]
        for term, start, end in zip(terms, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    }


def plain_postings(batches: list[Batch]) -> dict[int, list[tuple[int, int]]]:
    postings: dict[int, list[tuple[int, int]]] = {}
    for number, passage in enumerate(passage for batch in batches for passage in batch):
        for term, count in Counter(passage).items():
            postings.setdefault(term, []).append((number, min(count, 63)))
    return dict(sorted(postings.items()))


_TERMS = st.sampled_from([0, 1, 2, 3, 5, 2**31, 2**47, 2**48 - 1])


@given(st.lists(st.lists(st.lists(_TERMS, max_size=8), max_size=5), max_size=12), st.integers(1, 30), st.integers(1, 9))
def test_postings_are_those_that_a_dictionary_holds(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Batch], buffered: int, partitions: int
):
    folder = tmp_path_factory.getbasetemp() / "postings"
    folder.mkdir(exist_ok=True)
    assert written(folder, batches, buffered, partitions) == plain_postings(batches)


def test_a_buffer_numbers_no_more_passages_than_it_can(tmp_path: Path):
    batches = [[[number % 3] for number in range(25_000)] for _ in range(3)]
    assert written(tmp_path, batches, 1_000_000, 4) == plain_postings(batches)
