"""Folding, stemming, n-grams and slips: what retrieval compares."""

import random

from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.words import Lexicon, concepts, edit_distance, folded, stem, terms, tokens

TEXT = st.text(max_size=60)
LETTERS = st.text("abc", max_size=8)


def by_table(a: str, b: str) -> int:
    """Optimal string alignment by its textbook table."""
    d = [[max(i, j) if not i or not j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(
                d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[-1][-1]


@given(LETTERS, LETTERS)
def test_edit_distance_is_that_of_the_table(a, b):
    assert edit_distance(a, b) == by_table(a, b)


@given(TEXT)
def test_folding_is_idempotent(text):
    assert folded(folded(text)) == folded(text)


def test_latin_names_keep_their_endings_and_words_one_concept():
    assert stem("indica") == "indica"
    assert stem("virus") == "virus"
    import tomllib
    from importlib.resources import files

    table = tomllib.loads(files("agrotools.knowledge").joinpath("concepts.toml").read_text("utf-8"))
    words = [word for key, found in table.items() for word in {key, *found}]
    assert sorted(word for word in set(words) if words.count(word) > 1) == []
    assert all(" " not in word for word in words)
    assert len(concepts()) > 300


def test_single_slips_are_corrected_to_near_and_known_words():
    lexicon = Lexicon(["maize", "mango", "sunflower", "rust"])
    assert lexicon.corrections("maqze") == ("maize",)
    assert lexicon.corrections("sufnolwer") == ("sunflower",)
    assert lexicon.corrections("maize") == ()
    assert lexicon.corrections("rxx") == ()
    assert lexicon.corrections("kilimanjaro") == ()
    lexicon = Lexicon(["cercospora", "phytophthora", "barnyardgrass"])
    rng = random.Random(3)
    for word in lexicon.words:
        for at in range(len(word)):
            wrong = word[:at] + rng.choice("qxz") + word[at + 1 :]
            assert lexicon.corrections(wrong) == (word,)


def test_words_of_like_meaning_are_one_and_chinese_runs_give_pairs():
    pairs = (
        ("Épinards", "epinard"),
        ("ＡＰＨＩＤ’s", "aphids"),
        ("berries", "berry"),
        ("larvae", "maggots"),
    )
    for one, other in pairs:
        assert terms(one) == terms(other)
    assert tokens("大豆蚜。 aphid") == ("大豆", "豆蚜", "aphid")
