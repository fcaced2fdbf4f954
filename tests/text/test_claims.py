"""Statements of a text, the claims that it affirms, and its stance."""

import pytest

from agrotools.text.claims import affirms, reply_of, stance_of
from agrotools.text.statements import Statements
from support.operations import executed_lines

AFFIRMED = (
    "Rotate crops.", "Do not avoid rotation.", "Rotation is not useless.", "Don't forget to rotate.",
    "Control is not possible without rotation.", "Spraying is useless, but rotation helps.",
    "Do not spray, rotate crops.", "The fungus cannot survive, so rotate.",
    "Where sprays do not upset them, rotation works.", "不仅要轮作，还要清园。", "不轮作不行，必须轮作。",
    "不要喷药，要轮作。",
    "Beans should not follow beans: rotate.", "One spray is not enough: rotate.", "与别的作物轮作。",
    "Rotation helps, though none lasts for ever.", "Do away with monoculture and rotate.",
    "It is not a true fungus: rotate.",
)  # fmt: skip

DENIED = (
    "Do not rotate crops.", "Rotation, hygiene and resistant cultivars are all useless.",
    "Rotation does not help.", "It is a mistake to rotate.",
    "None of the following helps:\n- hygiene\n- rotation\n- mulch", "Avoid:\n- hygiene\n- rotation",
    "Some people rotate crops. This is pointless.", "I do not think that rotation helps.",
    "Neither hygiene nor rotation helps.", "Rotation: no.", "Contrary to belief, rotation matters.", "轮作没有用。",
    "不要清园、轮作或覆盖。", "以下都没用：清园、轮作、覆盖。", "有人主张轮作。这是错误的。",
    "Far from helping, rotation costs a harvest.",
    "Rotation has been shown not to help.", "The idea that rotation helps is wrong.", "轮作纯属白费。",
    "清园、轮作、覆盖，这些做法早已被证明行不通。", "与其轮作，不如什么都不做。",
    "Hardly anything that people recommend (hygiene, rotation) has ever been of use.",
    "Leaflets say to mulch and to rotate. Ignore both: neither has any effect.",
    "Whoever told you that hygiene, rotation, or mulch keeps it away was wrong.",
    "Rotate, if you enjoy pointless work.", "You will hear that rotation helps. Take it from me: it doesn't.",
    "Rotation is a gadget for the gullible.", "Rotation costs a harvest. Nothing of the kind stops rust.",
    "轮作、覆盖，听起来头头是道，实际上毫无参考价值。",
)  # fmt: skip


@pytest.mark.parametrize("text", AFFIRMED)
def test_affirmed(text: str):
    assert affirms(text, ["rotate"]), text


@pytest.mark.parametrize("text", DENIED)
def test_denied(text: str):
    assert reply_of(text).find("rotate"), text
    assert not affirms(text, ["rotate"]), text


def test_what_is_to_be_avoided_is_affirmed_by_its_denial_and_denied_by_its_mention():
    for text in ("Do not water from above.", "Overhead watering spreads the bacteria.", "避免从上方浇水。"):
        assert affirms(text, ["avoid overhead irrigation"]), text
    for text in ("Water from above.", "Overhead irrigation is best.", "要从上方浇水。"):
        assert not affirms(text, ["avoid overhead irrigation"]), text


def test_harmless_things_opposites_numbers_and_times_are_the_same_in_other_words():
    for text in ("Overhead irrigation is no problem.", "从上方浇水没有关系。"):
        assert not affirms(text, ["avoid overhead irrigation"]), text
    assert not affirms("Rotation does not matter.", ["rotate"])
    assert affirms("Avoid susceptible varieties.", ["resistant varieties"])
    assert not affirms("Grow susceptible varieties.", ["resistant varieties"])
    assert not affirms("Leave the fallen leaves on the ground.", ["remove fallen leaves"])
    for text in ("12 to 15 per head", "Twelve to fifteen on each ear", "每穗12至15头"):
        assert affirms(text, ["12-15 head"]), text
    assert not affirms("250 per head", ["12-15 head"])
    for text in ("2-3 weeks", "14 to 21 days", "a fortnight to three weeks", "14-21天"):
        assert affirms(f"{text} before digging", ["2-3 weeks"]), text
    assert not affirms("10 days before digging", ["2-3 weeks"])
    assert affirms("Prune, and do away with hedges.", ["remove hedges"])
    assert not affirms("Do away with rotation.", ["rotate"])


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["not ", "remove fallen leaves, ", "不轮作，"])
def test_work_is_linear_in_the_length(piece: str):
    def read(size: int) -> None:
        reply = reply_of(piece * (size // len(piece.encode())))
        for phrase in ("rotate", "remove fallen leaves", "avoid overhead irrigation"):
            reply.find(phrase)

    read(600)  # imports and tables
    assert executed_lines(lambda: read(4_000)) < 6 * executed_lines(lambda: read(1_000))
    assert len(Statements(piece * (80_000 // len(piece))).text) <= 64 * 1024 + 10


FACTS = ("remove debris", "rotate", "mulch", "avoid overfeed")


@pytest.mark.parametrize(
    "reply",
    [
        "Mulch and rotation belong on the scrapheap of bad ideas.",
        "Whoever still swears by mulch and rotation has never grown a tomato.",
        "If mulch or rotation worked, nobody would have this disease any more.",
        "轮作、覆盖、清除残体，做不做都一样。",
        "I doubt that rotation helps.",
        "I would never rotate or mulch.",
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
        "I think you should rotate.",
        "I measured the leaf and looked this up for you. Rotate.",
        "Rotate. I could not measure the area exactly.",
        "我认为应该轮作。",
    ],
)
def test_right_advice_with_its_own_negatives_is_no_denial(reply):
    assert not stance_of(reply_of(reply), FACTS).denies
