"""Whether a reply asserts or rejects what it says: what the model reads, and what it makes of it."""

import pytest

from agrotools.text.claims import reply_of
from agrotools.text.stance import features, frame, stance_of

FACTS = ("remove debris", "rotate", "mulch", "avoid overfeed")


def test_words_of_the_facts_are_masked_and_lists_are_one():
    told = frame(reply_of("Rotation, mulch and clearing debris: why bother? Do not overfeed in 2020."), FACTS)
    assert told == [["??", "<F>", "and", "<F>", ",", "whi", "bother"], ["do", "not", "<A>", "in", "0"]]
    assert {"<F> , whi", "whi bother", "not <A>", "both-"} <= features(told)


@pytest.mark.parametrize(
    "reply",
    [
        "Mulch and rotation belong on the scrapheap of bad ideas.",
        "Rotation, mulch, clearing debris: much talked about, never delivered.",
        "Whoever still swears by mulch and rotation has never grown a tomato.",
        "If mulch or rotation worked, nobody would have this disease any more.",
        "轮作、覆盖、清除残体，做不做都一样。",
    ],
)
def test_irony_and_dismissal_are_denials(reply):
    stance = stance_of(reply_of(reply), FACTS)
    assert stance.denies
    assert stance.phrases


@pytest.mark.parametrize(
    "reply",
    [
        "Rotate, mulch the soil and remove debris after harvest.",
        "Never leave debris lying about. Wait three years before tomatoes return, and mulch. Do not overfeed.",
        "Sprays are of little use here: rotation, mulch and clean fields are what counts.",
        "清除病残体，实行轮作，地面覆盖，不要过量施肥。",
    ],
)
def test_right_advice_with_its_own_negatives_is_no_denial(reply):
    assert not stance_of(reply_of(reply), FACTS).denies


def test_plain_advice_is_known_as_such():
    assert stance_of(reply_of("After harvest collect the debris, and cover the ground with mulch."), FACTS).plain
    assert not stance_of(reply_of("Do not rotate and do not mulch."), FACTS).plain
