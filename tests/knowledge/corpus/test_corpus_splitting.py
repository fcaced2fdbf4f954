"""From documents to passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.corpus import terms as splitting
from agrotools.knowledge.corpus.terms import UNSPACED, WORD, code_points, kinds, split

_TEXT = st.text(st.sampled_from('稻麦病虫害ab 019.。！？；，,”"\n\u3000-😀\u0e01'), max_size=400)


def _units(text: str) -> int:
    found = kinds(code_points(text))
    runs = sum(1 for before, now in pairwise((0, *found)) if now == WORD and before != WORD)
    return runs + int((found == UNSPACED).sum())


def test_passages_end_at_sentences_counted_in_words_and_long_ones_are_cut():
    assert list(split(["  水稻。\n"])) == [(2, "水稻。")]
    assert list(split([])) == []
    assert list(split([" \n --- "])) == []
    text = "水稻纹枯病由立枯丝核菌引起。" * 100
    found = [text for _, text in split([text])]
    assert all(passage.endswith("。") for passage in found)
    assert {_units(passage) for passage in found[:-1]} == {299}  # 23 sentences of 13
    text = "他说：“水稻得了纹枯病。”" * 60
    assert all(passage.endswith("。”") for _, passage in split([text]))
    text = "Rice blast is caused by a fungus. It spreads at 25.5 degrees. " * 60
    found = [text for _, text in split([text])]
    assert all(passage.endswith(".") for passage in found)
    assert all(295 <= _units(passage) <= 300 for passage in found[:-1])
    assert not any(passage.endswith("25.") for passage in found)
    assert all(passage.endswith("，") for _, passage in list(split(["水稻小麦玉米，" * 200]))[:-1])
    assert [len(passage) for _, passage in split(["稻" * 1000])] == [300, 300, 300, 100]
    assert [len(passage) for _, passage in split(["a" * 7000])] == [3000, 3000, 1000]
    assert list(split(["水\x1b[31m稻\x00"])) == [(0, "水 [31m稻")]


@given(_TEXT, st.integers(1, 40), st.data())
def test_nothing_is_lost_moved_or_too_long(text: str, units: int, data: st.DataObject):
    found = list(split([text], units))
    end = 0
    for position, passage in found:
        assert position >= end
        assert not _units(text[end:position])
        assert text[position : position + len(passage)] == passage
        assert passage == passage.strip()
        assert 1 <= _units(passage) <= units
        assert len(passage) <= 10 * units
        end = position + len(passage)
    assert not _units(text[end:])


@given(_TEXT, st.integers(1, 20), st.lists(st.integers(0, 400), max_size=6), st.integers(1, 4))
def test_it_does_not_matter_how_a_document_is_pieced(text: str, units: int, places: list[int], fold: int):
    text *= fold
    cuts = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "_BLOCK", 10 * units + 8)  # so that short texts are many blocks
        in_blocks = list(split(pieces, units))
    assert in_blocks == list(split([text], units))
