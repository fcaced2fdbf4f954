"""Golden vectors of reading an answer: each says what a fair reader would."""

import pytest

from agrotools.core import BooleanSlot, ExactSlot, ToleranceSlot
from agrotools.scoring.slots import score_slot

DEEPWEEDS = ("Chinee apple", "Parkinsonia", "Parthenium", "Prickly acacia", "Rubber vine", "Siam weed", "Snake weed")


def count(value: float, abs_tol: float = 0.0) -> ToleranceSlot:
    return ToleranceSlot(name="count", label="number of trees", value=value, abs_tol=abs_tol)


def number(value: float, unit: str | None, *, abs_tol: float = 0.0, rel_tol: float = 0.0) -> ToleranceSlot:
    return ToleranceSlot(name="value", label="the value", value=value, unit=unit, abs_tol=abs_tol, rel_tol=rel_tol)


def exact(value: str, *aliases: str, distractors: tuple[str, ...] = ()) -> ExactSlot:
    return ExactSlot(name="species", label="species", value=value, aliases=aliases, distractors=distractors)


LANTANA = exact("Lantana", "Lantana camara", distractors=DEEPWEEDS)
AREA = number(1204, "m^2", rel_tol=0.01)

VECTORS = [
    ("There are 14 trees.", count(15, 1), 1),
    ("There are 14 trees.", count(16, 1), 0),
    ("There are 14 trees in 2 images.", count(14), 1),
    ("14 in total", count(14), 1),
    ("12 and 9, so the difference is 3", count(3), 1),
    ("I counted 14, not 12.", count(14), 1),
    ("not 12 but 14", count(14), 1),
    ("12-16 apples", count(14), 0),
    ("13-15 apples", count(14, 1), 1),
    ("0-28 apples", count(14, 1), 0),
    ("The mean diameter is 0.075 m", number(75, "mm", rel_tol=0.05), 1),
    ("about 7.5", number(75, "mm", rel_tol=0.05), 0),
    ("either 3 or 40 or 75 mm", number(75, "mm", rel_tol=0.05), 0),
    ("Two measurements: 71 mm and 75 mm.", number(75, "mm", rel_tol=0.01), 0),
    ("1,204 m²", AREA, 1),
    ("Area: 3.2 ha (32,000 m²)", number(3.2, "ha", rel_tol=0.01), 1),
    ("面积约3.2万平方米", number(32000, "m^2", rel_tol=0.01), 1),
    (
        "The first tile has 0.8 ha and the second 1.2 ha, a loss of 0.4 ha.",
        number(0.4, "ha", rel_tol=0.02),
        1,
    ),
    ("The canopy covers 42.5 % of the 1.3 ha plot", number(42.5, "%", abs_tol=0.1), 1),
    ("Between 40 and 45 %", number(42.5, "%", abs_tol=2), 0),
    ("Between 40 and 45 %", number(42.5, "%", abs_tol=3), 1),
    ("Severity is 35%.", number(0.35, "fraction", abs_tol=0.02), 1),
    ("-0.3", number(-0.3, None, abs_tol=0.01), 1),
    ("约有12株玉米", count(12), 1),
    ("3.5", exact("3"), 0),
    ("3,500", exact("3"), 0),
    ("-3", exact("3"), 0),
    ("1-3", exact("3"), 0),
    ("112", exact("12"), 0),
    ("is -3", exact("-3"), 1),
    ("It costs $5", exact("$5"), 1),
    ("about 50%.", exact("50%"), 1),
    ("答案是5个", exact("5"), 1),
    ("This is lantana.", exact("Lantana", "Lantana camara"), 1),
    ("It is not lantana but parthenium.", exact("Lantana"), 0),
    ("It is not lantana but parthenium.", exact("Parthenium"), 1),
    ("Unlike parthenium, this is lantana.", LANTANA, 1),
    ("It could be lantana, parthenium or siam weed", LANTANA, 0),
    ("The mean is 75 mm (n = 12).", number(75, "mm", rel_tol=0.01), 1),
    ("75 ± 3 mm", number(75, "mm", rel_tol=0.01), 1),
    ("75 on average", number(75, "mm", rel_tol=0.01), 1),
    ("3.2 hectares", number(3.2, "ha", rel_tol=0.01), 1),
    ("1204 m2", AREA, 1),
    ("1.204 × 10^3 m²", AREA, 1),
    ("Severity is 37%.", number(0.35, "fraction", abs_tol=0.02), 1),
    ("It is bean rust.", exact("bean rust", distractors=("rust",)), 1),
    ("", count(14), 0),
    ("", LANTANA, 0),
    ("  \n ", BooleanSlot(name="weeds", label="weeds", value=True), 0),
]


@pytest.mark.parametrize(("text", "slot", "score"), VECTORS)
def test_golden_vector(text, slot, score):
    assert score_slot(slot, [slot], text).value == score


def test_a_json_answer_is_read_by_its_keys():
    species, trees = exact("Lantana", distractors=DEEPWEEDS), count(4)
    text = '{"species": "Lantana", "count": 4}'
    assert [score_slot(slot, [species, trees], text).value for slot in (species, trees)] == [1, 1]


def test_each_slot_is_read_from_its_own_line():
    a = ToleranceSlot(name="a", label="first length", value=12, unit="m")
    b = ToleranceSlot(name="b", label="second length", value=14, unit="m")
    assert [score_slot(slot, [a, b], "a: 12 m\nb: 14 m").value for slot in (a, b)] == [1, 1]
