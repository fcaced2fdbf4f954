import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks._dialogs.corrected_scorer import is_scorable, matches_keywords
from agrotools.benchmarks._dialogs.published_scorer import is_correct


@pytest.mark.parametrize(
    ("text", "alias", "stated"),
    [("x = −3", "-3", True), ("2.5 boxes", "2", False), ("答案是5个", "5", True), ("about 50%", "50%", True)],
)
def test_signs_decimals_and_chinese_are_read_where_the_published_rule_fails(text, alias, stated):
    reference = {"whitelist": [[alias]], "blacklist": None}
    assert matches_keywords(text, reference) is stated is not is_correct(text, reference)


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


@given(
    st.lists(st.sampled_from("red blue 12 7 apple tree".split()), max_size=5), st.sampled_from("red 12 apple".split())
)
def test_plain_words_are_found_as_in_the_published_rule(words, alias):
    reference = {"whitelist": [[alias]], "blacklist": None}
    assert matches_keywords(" ".join(words), reference) == is_correct(" ".join(words), reference)
