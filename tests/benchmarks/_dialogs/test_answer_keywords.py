import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks._dialogs.answer_keywords import is_scorable, matches_keywords
from agrotools.benchmarks._dialogs.published_scorer import is_correct


@pytest.mark.parametrize(
    ("text", "alias", "stated"),
    [
        # Where the published rule and this one say the same.
        ("The answer is 2.", "2", True),
        ("new_york", "new", False),
        ("about 50%", "50", True),
        ("nothing", "no", False),
        # Signs and marks at the ends of an alias.
        ("is -3.", "-3", True),
        ("x = −3", "-3", True),
        ("x-3", "-3", False),
        ("5 minus 3", "-3", False),
        ("It costs $5", "$5", True),
        ("5 euros", "$5", False),
        ("about 50%", "50%", True),
        ("50 boxes", "50%", False),
        ("C++ and C", "C++", True),
        # Numbers as a whole.
        ("2.5 boxes", "2", False),
        ("-3", "3", False),
        ("1,200 trees", "1200", True),
        ("1,200 trees", "200", False),
        ("version 1.2.3", "2", False),
        ("007", "7", False),
        # Units may stick to numbers, other letters do not.
        ("2kg", "2", True),
        ("答案是-2", "-2", True),
        ("2kg of rice", "2 kg", False),
        ("the 2nd box", "2", False),
        ("3D", "3", False),
        # Letters that are written without spaces.
        ("答案是5个", "5", True),
        ("这是一只猫。", "猫", True),
        ("是red的", "red", True),
        # Words that begin or end with a number.
        ("2.5 kg", "5 kg", False),
        ("-3 kg", "3 kg", False),
        ("at 10:30", "10:30", True),
        ("model b2.5", "b2", False),
        ("New\nYork", "new york", True),
    ],
)
def test_an_alias_is_stated(text, alias, stated):
    assert matches_keywords(text, {"whitelist": [[alias]], "blacklist": None}) is stated


def test_groups_and_blacklists():
    colours = {"whitelist": [["red"], ["blue", "azure"]], "blacklist": [["green"]]}
    assert matches_keywords("red and azure", colours)
    assert not matches_keywords("red", colours)
    assert not matches_keywords("red, blue and green", colours)
    assert matches_keywords("yes", {"whitelist": [["yes"]], "blacklist": [[]]})
    assert matches_keywords("yes", {"whitelist": [["yes"], []], "blacklist": []})


@pytest.mark.parametrize("reference", [{"whitelist": []}, {"whitelist": [[], [" "]], "blacklist": [[]]}])
def test_lists_that_ask_for_nothing_cannot_be_scored(reference):
    assert not is_scorable(reference)


words = st.text(st.sampled_from("ab 5-"), min_size=1, max_size=6).map(str.strip).filter(bool)


@given(
    st.lists(st.sampled_from("red blue 12 7 apple tree".split()), max_size=5), st.sampled_from("red 12 apple".split())
)
def test_plain_words_are_found_as_in_the_published_rule(words, alias):
    reference = {"whitelist": [[alias]], "blacklist": None}
    assert matches_keywords(" ".join(words), reference) == is_correct(" ".join(words), reference)
