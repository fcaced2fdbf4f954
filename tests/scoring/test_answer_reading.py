"""Golden vectors of reading an answer, and how claims in free text are weighed against each other."""

import pytest

from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, ToleranceSlot
from agrotools.scoring.slots import score_slot
from agrotools.scoring.word_forms import families

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


ROT = ExactSlot(
    name="rot",
    label="rot of the apple",
    value="blue mould",
    choices=("blue mould", "grey mould", "brown rot", "bitter rot"),
    aliases={"blue mould": ("Penicillium expansum",), "brown rot": ("Monilinia fructigena",)},
)
STAGE = ExactSlot(
    name="stage", label="growth stage", value="flowering", choices=("tillering", "heading", "flowering", "ripening")
)
PESTS = ChoiceSetSlot(
    name="pests",
    label="pests on the trap",
    value=("aphid", "thrips"),
    choices=("aphid", "thrips", "whitefly", "leafminer"),
    aliases={"aphid": ("蚜虫",), "thrips": ("蓟马",), "whitefly": ("粉虱",), "leafminer": ("潜叶蝇",)},
)
COVER = ExactSlot(
    name="cover", label="land cover in the second image", value="orchard", choices=("cropland", "orchard", "pond")
)
PLOT = ExactSlot(name="plot", label="variety on plot 4", value="Aurora", choices=("Aurora", "Borealis", "Corona"))
RUST = ExactSlot(name="rust", label="grade of rust", value="moderate", choices=("slight", "moderate", "severe"))
POOREST = FileSlot(name="worst", label="长势最差的图像", value="c.png", choices=("a.png", "b.png", "c.png"))
FENCE = ChoiceSetSlot(
    name="fence",
    label="faults of the fence",
    value=("broken posts", "loose wire"),
    choices=("broken posts", "loose wire", "open gate"),
)
LACKING = ChoiceSetSlot(name="lacking", label="缺乏的养分", value=("氮", "钾"), choices=("氮", "磷", "钾", "镁"))
TREES = FileSlot(name="more", label="image with more trees", value="b.png", choices=("a.png", "b.png"))


@pytest.mark.parametrize(
    ("label", "text", "said"),
    [
        ("the gate is open", "The gate stands closed.", False),
        ("the gate is closed", "The gate has not been shut.", False),
        ("the soil is wet", "On top lies stubble. The soil of the plot is bone dry.", False),
        ("the hay is dry enough to bale", "At 24 % the hay is still too wet, so baling is not advised.", False),
        ("all animals are inside the fence", "109 ewes lie within the fence. Three have got out.", False),
        ("all animals are inside the fence", "并非所有牲畜都在围栏内。", False),
        ("part of the wheat has lodged", "In the south some wheat is flattened; the rest stands upright.", True),
        ("the left plot has more weeds than the right plot", "The right plot has more weeds than the left one.", False),
        ("the left field is flooded", "The right field is flooded, the left field is dry.", False),
        ("the fence is intact", "It would be wrong to say that the fence is broken.", True),
        ("the field is flooded", "If it rained, the field would be flooded.", None),
        ("the field is flooded", "Last week the field was flooded, but now it is dry.", False),
        ("the field is flooded", "I cannot tell whether the field is flooded.", None),
        ("the fence is intact", "Is the fence broken anywhere? No.", True),
        ("the field is irrigated", "- clouds: no\n- pivot: seen\n\nThe field is irrigated.", True),
        ("the field is irrigated", "The field is irrigated. The field is not irrigated.", None),
        ("水渠已经干涸", "水渠里仍有水,并未干涸。", False),
        ("田里有积水", "田面干燥,没有积水。", False),
        ("A地块的产量高于B地块", "B地块的产量高于A地块。", False),
        ("the ditch is blocked", "Apart from some leaves, the ditch is clear.", False),
        ("the crop has lodged", "I see nothing that would point to lodging.", False),
        ("the crop has lodged", "I was going to say no, but the crop has lodged.", True),
        ("the pond has grown", "Is the pond bigger? It went from 1.2 ha to 1.9 ha, so it is.", True),
        ("there are stones between the rows", "The soil between the rows is free of stones.", False),
        ("苗床适合播种", "土块过大,目前不适合播种。", False),
        ("田里有积水", "是否有积水无法判断。", None),
        ("新修了道路", "可能新修了,也可能是旧路翻新。", None),
        ("地表残留地膜", "地表干净,未发现任何残膜。", False),
        ("水位高于警戒线", "水位已超过警戒线。", True),
        ("birds are breeding in the hedge", "树篱中有三个鸟巢,说明有鸟在树篱中繁殖。", True),
    ],
)
def test_a_reply_answers_by_what_it_says_of_the_statement(label, text, said):
    right = {value: score_slot(slot, (slot,), text).value for value in (True, False) if (slot := yes_no(label, value))}
    assert right == {True: said is True, False: said is False}


def yes_no(label: str, value: bool) -> BooleanSlot:
    return BooleanSlot(name="it", label=label, value=value)


@pytest.mark.parametrize(
    ("slot", "text", "score"),
    [
        (ROT, "Soft tissue with blue-green tufts: Penicillium. Monilinia would show rings.", 1),
        (ROT, "It looks like grey mould at first, but the tufts are those of P. expansum.", 1),
        (ROT, "- Brown rot: buff rings. Does not fit.\n- Blue mould: blue tufts. Fits.", 1),
        (ROT, "| rot | here |\n|---|---|\n| brown rot | no |\n| blue mould | yes |", 1),
        (ROT, "Blue mould is the one rot that I can exclude.", 0),
        (ROT, "This is blue mould. It is brown rot.", 0),
        (ROT, "It is blue mould, or perhaps brown rot.", 0),
        (ROT, "Blue mould would be softer.", 0),
        (STAGE, "Heading is over and ripening will begin next week; the crop is flowering.", 1),
        (STAGE, "The wheat was at heading two weeks ago and is flowering now.", 1),
        (PESTS, "Whitefly 0, aphids 12, thrips 38.", 1),
        (PESTS, "Aphids 12, thrips 38, whiteflies 3 (below 5), leafminers 1. So the pests are aphids and thrips.", 1),
        (PESTS, "有蚜虫46头、蓟马18头,粉虱和潜叶蝇均未发现。", 1),
        (PESTS, "Only aphids were caught; thrips were found last year.", 0),
        (PESTS, "Present: aphids, thrips. Not found: whiteflies, leafminers.", 1),
        (PESTS, "| pest | n |\n|---|---|\n| aphid | 9 |\n| thrips | 4 |\n| whitefly | 0 |\n\nThrips are few.", 1),
        (COVER, "What was cropland in the first image is an orchard in the second.", 1),
        (COVER, "It changed from cropland to orchard.", 1),
        (COVER, "In 2014 there was cropland; by 2021 an orchard had been planted.", 1),
        (COVER, "It changed from orchard to cropland.", 0),
        (PLOT, "Plot 2 is Corona, plot 3 Borealis and plot 4 Aurora.", 1),
        (PLOT, "Plot 2 is Aurora, plot 3 Borealis and plot 4 Corona.", 0),
        (RUST, "It is moderate, neither slight nor severe.", 1),
        (RUST, "The rust ranges from moderate at the edge to severe in the middle.", 0),
        (POOREST, "a.png 长势最好,b.png 中等,c.png 整片发黄,长势最差。", 1),
        (POOREST, "a.png 长势最差,其次是 c.png。", 0),
        (FENCE, "Two of the posts are broken and the wire is loose. The gate is closed.", 1),
        (FENCE, "The posts are not broken, the wire is loose.", 0),
        (LACKING, "缺氮和钾,磷、镁含量正常。", 1),
        (LACKING, "氮和钾含量正常,缺磷、镁。", 0),
        (TREES, "a.png holds 34 trees and b.png 41.", 1),
        (TREES, "a.png holds 41 trees and b.png 34.", 0),
        (TREES, "a.png is sparse, b.png is not. The latter has more trees.", 1),
        (TREES, "The second image has more trees.", 1),
        (TREES, "Compared with b.png, the other image has more trees.", 0),
        (TREES, "a.png的树较少,因此选择后者b.png。", 1),
    ],
)
def test_the_place_that_counts_most_is_the_answer(slot, text, score):
    assert score_slot(slot, (slot,), text).value == score


def test_no_word_says_a_thing_and_its_opposite():
    for family in families():
        for word in ("open", "dry", "healthy", "intact", "within", "完好", "未成熟"):
            assert len({said for start, _, said in family.find(word) if start == 0}) <= 1


@pytest.mark.parametrize(
    "shape", ["dry field ", "more than ", "the latter a.png ", "| a.png | no |\n", "? no. ", "not "]
)
def test_reading_takes_linear_time(shape):
    for slot in (
        yes_no("the left field is wetter than the right field", True),
        yes_no("the field is wet", True),
        TREES,
    ):
        score_slot(slot, (slot,), shape * (100_000 // len(shape)))
