"""What an answer states is read without the gold: no text is right for two golds, and swapped options read the same."""

from collections.abc import Callable
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, Slot, ToleranceSlot
from agrotools.core.form_item import form_item
from agrotools.scoring.slots import refuses, score_slot

COMPARED = ("off_by", "jaccard")
"""Details of a reading that the comparison with the gold adds."""


def options(
    name: str, label: str, *choices: str, aliases: dict[str, tuple[str, ...]] | None = None
) -> list[Slot]:
    """The same question with each of its options as the gold, which is listed first."""
    return [
        ExactSlot(
            name=name, label=label, value=each, aliases=aliases or {},
            choices=(each, *(other for other in choices if other != each)),
        )
        for each in choices
    ]  # fmt: skip


def names(name: str, *golds: tuple[str, ...]) -> list[Slot]:
    return [
        ExactSlot(name=name, label=name, value=gold[0], aliases={gold[0]: gold[1:]})
        for gold in golds
    ]


def numbers(name: str, label: str, unit: str | None, margin: float, *golds: float) -> list[Slot]:
    return [
        ToleranceSlot(name=name, label=label, value=gold, unit=unit, abs_tol=margin)
        for gold in golds
    ]


PARTS = ("leaf", "stem", "root")
QUESTIONS: dict[str, list[Slot]] = {
    "half": options("half", "half with more trees", "left half", "right half"),
    "half in Chinese": options("half", "树木较多的一半", "左半", "右半"),
    "change": options(
        "change", "what happened to a pond", "dried up", "refilled", "neither",
        aliases={"dried up": ("dry",), "refilled": ("full again",), "neither": ("unchanged",)},
    ),
    "crop": options("crop", "crop", "maize", "wheat", "rice", aliases={"maize": ("corn", "玉米"), "wheat": ("小麦",)}),
    "own aliases": [
        ExactSlot(name="weed", label="weed", value=each, choices=("Lantana", "Parthenium"), aliases={each: (also,)})
        for each, also in (("Lantana", "wild sage"), ("Parthenium", "银胶菊"))
    ],
    "species": names("species", ("Lantana", "Lantana camara"), ("Siam weed", "飞机草"), ("Parthenium",)),
    "rows": [ExactSlot(name="rows", label="number of rows", value=value) for value in (0, 1, 2, 3, 12, 14, 15, 16, -3)],
    "more": [BooleanSlot(name="more", label="more weeds than crop", value=value) for value in (True, False)],
    "which": [
        FileSlot(name="which", label="image with more trees", value=one, choices=(one, other))
        for one, other in (("image_1.jpg", "image_2.jpg"), ("image_2.jpg", "image_1.jpg"))
    ],
    "parts": [
        ChoiceSetSlot(name="parts", label="affected parts", value=chosen, choices=(*chosen, *(set(PARTS) - {*chosen})))
        for n in (1, 2, 3)
        for chosen in combinations(PARTS, n)
    ],
    "count": numbers("count", "number of trees", None, 1, 0, 3, 12, 15, 18, 21, -14),
    "change_ha": numbers("change_ha", "change of the forest", "ha", 0.1, 3.2, -3.2, 0, 32, -32),
    "effect": numbers("effect", "effect of the trees", "degC", 0.1, 1.9, -1.9, 0),
    "gap": numbers("gap", "gap between the rows", "mm", 3, 75, 750, 7.5, 82, 68),
    "share": numbers("share", "share of weeds", "fraction", 0.02, 0.35, 0.40, 0.30, 0.003),
}  # fmt: skip
WORDS = [
    *"the a is are it this that not no yes true false or and but neither nor both either more less fewer".split(),
    *"left right half upper image first second trees weeds crop rows gap share change lost gained rose".split(),
    *"about between to from of in only maybe wait actually instead unknown unclear final answer none three".split(),
    "the other", "the other one", "the former", "the latter", "the first", "the second image", "the opposite", "all",
    "the same", "one of them", "whichever", "the former or the latter", "cannot be determined", "not sure", "I think",
    *"是 不是 否 没有 有 或 和 前者 后者 另一个 第一 第二幅 两者 都不 左 右 更多 减少 增加 无法确定".split(),
    *"约 共 亩 公顷 毫米".split(),
]  # fmt: skip
NUMBERS = (
    "0 1 2 3 12 14 15 16 -3 3.2 -3.2 32 32,000 0.35 35 37% 0.075 75 75±3 7.5 12-16 1.9 -1.9".split()
)
NUMBERS += ["十四", "三", "百分之三十五"]
UNITS = [
    "%",
    "ha",
    "m²",
    "m",
    "mm",
    "cm",
    "°C",
    "fraction",
    "mu",
    "per cent",
    "trees/ha",
    "km^2",
    "in",
]
MARKS = [*".,:;!?()[]{}-–=/|*+&~<>\"'`^$\\_。，、：（）", "\n", "\n- ", "\n1. ", "**", "...", "->"]
FRAMES = [
    "Final Answer:",
    "The answer is",
    "It is",
    "{}:",
    '{{"{}":',
    "**{}**",
    "|{}|",
    "{} =",
    "{} is",
]


def text_for(golds: list[Slot], random: Random) -> str:
    """A text of words, numbers, names, pronouns, marks and units, mostly with those of the question."""
    slot = golds[0]
    own = [slot.name, *slot.label.split(), *(str(getattr(each, "value", "")) for each in golds)]
    own += [
        name
        for each in golds
        if isinstance(each, ExactSlot)
        for names in each.aliases.values()
        for name in names
    ]
    own += [*(PARTS if slot.name == "parts" else ()), "image_1", "image_2"]
    kinds: list[Callable[[], str]] = [
        lambda: random.choice(own), lambda: random.choice(own), lambda: random.choice(WORDS),
        lambda: random.choice(WORDS), lambda: random.choice(NUMBERS), lambda: random.choice(UNITS),
        lambda: random.choice(MARKS), lambda: random.choice(FRAMES).format(slot.name),
    ]  # fmt: skip
    pieces = [random.choice(kinds)() for _ in range(random.choice((1, 2, 3, 4, 6, 8, 12, 20)))]
    start = f"{slot.name}: " if random.random() < 0.4 else ""
    return start + random.choice((" ", " ", "", "\n")).join(pieces)


def faults(golds: list[Slot], text: str) -> list[str]:
    """What is wrong with the scores of ``text`` for the golds of a question."""
    scores = [score_slot(gold, [gold], text) for gold in golds]
    readings = [
        {key: value for key, value in each.reading.items() if key not in COMPARED}
        for each in scores
    ]
    faults = ["right for several golds"] * (sum(each.value for each in scores) > 1)
    faults += ["read with the gold"] * any(each != readings[0] for each in readings)
    return faults + ["refuses with the gold"] * (len({refuses([gold], text) for gold in golds}) > 1)


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_golds_of_a_question_have_the_same_item(question: str):
    first, *others = map(form_item, QUESTIONS[question])
    assert [repr(each) for each in others] == [repr(first)] * len(others)


@pytest.mark.parametrize("question", QUESTIONS)
@given(seed=st.integers(0, 2**40))
def test_no_text_is_right_for_two_golds(question: str, seed: int):
    golds = QUESTIONS[question]
    text = text_for(golds, Random(seed))
    assert faults(golds, text) == [], text
