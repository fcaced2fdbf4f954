"""From text to terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.corpus.terms import TERM_BITS, terms_of


def terms(text: str) -> list[int]:
    return sorted(terms_of([text])[0].tolist())


def test_characters_count_in_overlapping_pairs():
    assert terms("水稻病") == sorted([*terms("水稻"), *terms("稻病")])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rice BLAST", "blast, rice!"), ("ＲＩＣＥ　３．５", "rice 3.5"), ("稻 3.5kg", "3.5KG、稻"),
        ("Éclair", "éclair"),
        ("𠀀𠀁", "（𠀀𠀁）"),
    ],
)  # fmt: skip
def test_what_counts_as_the_same(one: str, other: str):
    assert terms(one)
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("3.5", "3 5"), ("ab", "ba"), ("aab", "aba"), ("rice", "rices"), ("稻", "水"), ("𠀀𠀁", "𠀁𠀀"), ("ab", "a b")],
)
def test_what_does_not(one: str, other: str):
    assert terms(one) != terms(other)


def test_a_character_that_stands_alone_is_a_term():
    assert terms("稻") == terms("稻，")
    assert len(terms("a稻b")) == 3
    assert len(terms("水稻")) == 1
    assert terms("!?") == terms("") == []


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_texts_together_give_the_terms_of_each(texts: list[str]):
    found, owners = terms_of(texts)
    assert len(found) == len(owners)
    for number, text in enumerate(texts):
        assert sorted(found[owners == number].tolist()) == terms(text)
    assert not found.size or int(found.max()) < 1 << TERM_BITS
