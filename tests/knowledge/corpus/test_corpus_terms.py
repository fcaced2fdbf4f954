"""From text to terms."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import UsageError
from agrotools.core.base import install_command
from agrotools.knowledge.corpus import known_tokens
from agrotools.knowledge.corpus.terms import TERM_BITS, TermCutter
from agrotools.text.rouge import jieba_cutter

BIGRAMS = TermCutter("bigrams")


def terms(text: str) -> list[int]:
    return sorted(BIGRAMS.terms([text])[0].tolist())


def test_pairs_of_characters_are_their_own_numbers():
    assert terms("水稻病") == sorted([ord("水") << 16 | ord("稻"), ord("稻") << 16 | ord("病")])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rice BLAST", "blast, rice!"),
        ("ＲＩＣＥ　３．５", "rice 3.5"),
        ("稻 3.5kg", "3.5KG、稻"),
        ("Éclair", "éclair"),
        ("𠀀𠀁", "（𠀀𠀁）"),
    ],
)
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
    found, owners = BIGRAMS.terms(texts)
    assert len(found) == len(owners)
    for number, text in enumerate(texts):
        assert sorted(found[owners == number].tolist()) == terms(text)
    assert not found.size or int(found.max()) < 1 << TERM_BITS


@given(st.text("水稻病ab1 ,。", max_size=60))
def test_terms_are_those_of_a_plain_reading(text: str):
    expected = 0
    for before, now in pairwise((" ", *text)):
        if now in "水稻病":
            expected += 1
        elif now in "ab1":
            expected += before not in "ab1"
    runs = "".join(char if char in "水稻病" else " " for char in text).split()
    expected -= sum(len(run) > 1 for run in runs)
    assert len(terms(text)) == expected


def test_a_million_words_have_a_million_numbers():
    words = [f"w{number}" for number in range(1_000_000)]
    assert len(np.unique(BIGRAMS.terms([" ".join(words)])[0])) == 1_000_000


def test_unknown_names_are_refused():
    assert known_tokens("jieba") == "jieba"
    with pytest.raises(UsageError, match="bigram") as caught:
        known_tokens("bigram")
    assert caught.value.hint == "choose bigrams or jieba"


def test_without_jieba_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    jieba_cutter.cache_clear()
    with pytest.raises(UsageError, match="needs jieba") as caught:
        TermCutter("jieba")
    assert install_command("zh") in str(caught.value.hint)


def test_jieba_cuts_words():
    pytest.importorskip("jieba", reason="jieba (extra zh) is not installed", exc_type=ImportError)
    tokens = TermCutter("jieba")
    assert "jieba" in tokens.version
    found = tokens.terms(["水稻纹枯病 Rice 3.5", "水稻", "RICE", "3.5"])
    of = [set(found[0][found[1] == number].tolist()) for number in range(4)]
    assert of[1]
    assert of[1] < of[0]
    assert of[2] < of[0]
    assert of[3] < of[0]
