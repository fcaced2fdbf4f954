"""Answers as models write them: Markdown, LaTeX, tables, JSON, Chinese; and the rules behind the golden vectors."""

import pytest

from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    Fact,
    FileSlot,
    OpenTextSlot,
    PlotSlot,
    ToleranceSlot,
)
from agrotools.scoring.slots import score_slot

SHARE = ToleranceSlot(name="weed_share", label="share of weeds in the vegetation", value=12.5, unit="%", abs_tol=0.2)
TREES = ToleranceSlot(name="trees", label="number of trees", value=14)
MORE = BooleanSlot(name="more_weeds", label="whether there are more weeds than crop", value=True)
WHICH = FileSlot(
    name="weedier", label="the image with more weeds", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
)
SPECIES = ExactSlot(name="species", label="species", value="Siam weed", distractors=("Snake weed", "Lantana"))
PARTS = ChoiceSetSlot(
    name="parts",
    label="affected parts",
    value=("leaf", "stem"),
    choices=("leaf", "stem", "root"),
    aliases={"leaf": ("leaves",)},
)


@pytest.mark.parametrize(
    "text",
    [
        "weed_share: 12.5 %",
        "**weed_share:** 12.5 %",
        "**weed_share**: 12.5%",
        "- weed_share: 12.5 %",
        "* `weed_share`: 12.5 %",
        "1. weed_share: 12.5 percent",
        "### weed_share: **12.5 %**",
        "> weed_share: 12.5 %",
        "| weed_share | 12.5 % |",
        "| item | value |\n|---|---|\n| weed_share | 12.5 % |",
        "Weed share: 12.5 %",
        "WEED_SHARE = 12.5 %",
        "weed_share：１２．５％",
        "weed_share: $12.5\\%$",
        "weed_share: \\boxed{12.5\\%}",
        "The answer is \\boxed{12.5\\,\\text{percent}}",
        "$$\\frac{1}{8} \\approx 12.5\\%$$",
        "weed_share: 0.125 fraction",
        "weed_share: approximately 12.5 %",
        "weed_share: 12.5",
        "weed_share: ~12.5%",
        "weed_share: 12.4-12.6 %",
        "weed_share: 12.5 % (of 1,204 px)",
        "weed_share: 12.5 %, trees: 14",
        "Final Answer: weed_share: 12.5 %",
        "Final Answer: 30 %\nWait, I must correct that.\nFinal Answer: weed_share: 12.5 %",
        "最终答案：weed_share：12.5%",
        '{"weed_share": 12.5}',
        '{"weed_share": "12.5 %"}',
        '{"weed_share": {"value": 12.5, "unit": "%"}}',
        '{"answer": {"weed_share": 12.5, "trees": 14}}',
        '```json\n{"weed_share": 12.5,\n "trees": 14}\n```',
        'Here {is} a brace, and then {"weed_share": 12.5}',
        "First I measured 40 % vegetation.\n\nweed_share: 12.5 %\ntrees: 14",
        "The share of weeds in the vegetation is 12.5 %.",
        "The vegetation covers 40 % of the image. The share of weeds in the vegetation is 12.5 %. The soil is dry.",
        "I divided 5 % by 40 %, which gives 12.5 %.",
        "Weeds make up 5 % of 40 %, i.e. 5/40 = 12.5 %",
        "杂草占植被的12.5%。",
        "杂草占植被的百分之12.5",
        "约12.5个百分点",
        "weed_share: 12.5 ± 0.3 %",
        "It is not 30 % but 12.5 %.",
        "About one in eight plants; 12.5 percent.",
    ],
)
def test_a_share_is_read(text):
    assert score_slot(SHARE, [SHARE, TREES], text).value == 1


@pytest.mark.parametrize(
    "text",
    [
        "weed_share: 30 %",
        "weed_share: 12.5 % or 30 %",
        "weed_share: 12.5, 30",
        "weed_share: 10-20 %",
        "weed_share: not 12.5 %",
        "weed_share: 12.5 ha",
        "weed_share: unknown\nThe field has 12.5 ha.",
        "weed_share: -12.5 %",
        "weed_share: 12,500 %",
        "I cannot tell.",
        "weed_share_2: 12.5 %\nweed_share: 8 %",
        '{"weed_share": null, "trees": 12.5}',
        "12.5 % of the soil is wet. The share of weeds in the vegetation is 30 %.",
        "The share of weeds in the vegetation is not 12.5 %.",
    ],
)
def test_a_wrong_or_undecided_share_scores_nothing(text):
    assert score_slot(SHARE, [SHARE, TREES], text).value == 0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("I count fourteen... no: twelve trees", 0),
        ("There are twelve trees", 0),
        ("trees: 14", 1),
        ("trees: 14 trees", 1),
        ("In image 1, 14 trees stand.", 1),
        ("In tile 3 there are 14 trees", 1),
        ("图1中有14棵树", 1),
        ("2 images, 14 trees", 1),
        ("14th of May: no trees at all", 0),
        ("The trees stand 14 m high.", 0),
        ("trees: 14.0", 1),
        ("trees: 1.4e1", 1),
        ("trees: 10-18", 0),
        ("14 or 15", 0),
        ("14, 14 and 14", 1),
        ("14/15 trees", 0),
        ("14、15棵", 0),
        ("from 12 to 16 trees", 0),
        ("14至14棵", 1),
    ],
)
def test_a_count_is_read(text, score):
    assert score_slot(TREES, [SHARE, TREES], text).value == score


def test_number_words_count_beside_digits_where_the_label_names_what_they_count():
    five = ToleranceSlot(name="ponds", label="ponds", value=5)
    assert score_slot(five, [five], "I see five ponds.").value == 1
    assert score_slot(five, [five], "共有五个池塘").value == 1
    assert score_slot(five, [five], "I see five ponds and 3 trees.").value == 1
    assert score_slot(five, [five], "The largest one has 5 inlets.").value == 1
    two = ToleranceSlot(name="ponds", label="ponds", value=2)
    assert score_slot(two, [two], "有两个池塘").value == 1


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("more_weeds: yes", 1),
        ("Yes, there are.", 1),
        ("**Yes**", 1),
        ("more_weeds: true", 1),
        ('{"more_weeds": true}', 1),
        ('{"more_weeds": false}', 0),
        ("是的", 1),
        ("有", 1),
        ("没有", 0),
        ("不是", 0),
        ("No.", 0),
        ("I do not know.", 0),
        ("I noticed weeds.", 0),
        ("trees: yes\nmore_weeds: no", 0),
    ],
)
def test_yes_and_no(text, score):
    assert score_slot(MORE, [MORE, TREES], text).value == score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("weedier: image_2.jpg", 1),
        ("weedier: image_2", 1),
        ("Image 2 is weedier.", 1),
        ("image_1.jpg", 0),
        ("image_1.jpg and image_2.jpg", 0),
        ("Not image_1.jpg but image_2.jpg.", 1),
        ("image_1.jpg has 3 %, image_2.jpg has 5 %.\nweedier: image_2.jpg", 1),
        ("image_22.jpg", 0),
    ],
)
def test_a_file_is_named(text, score):
    assert score_slot(WHICH, [WHICH], text).value == score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("It is siam weed.", 1),
        ("It is Siam-weed.", 1),
        ("siam\nweed", 1),
        ("neither lantana nor snake weed; it is siam weed", 1),
        ("It isn't snake weed. It is siam weed.", 1),
        ("This cannot be lantana. Siam weed.", 1),
        ("not only siam weed", 1),
        ("It is not lantana, snake weed or siam weed.", 0),
        ("siam weed, not lantana", 1),
        ("Siam weed rather than lantana", 1),
        ("这不是lantana，而是siam weed", 1),
        ("没有siam weed", 0),
        ("without siam weed", 0),
        ("siam weeds", 1),
        ("Based on the leaves I first thought of lantana.\nspecies: Siam weed", 1),
        ("无人机图像显示 siam weed", 1),
    ],
)
def test_a_label_is_asserted(text, score):
    assert score_slot(SPECIES, [SPECIES], text).value == score


def test_a_choice_set_needs_exactly_its_members_and_shows_the_overlap():
    assert score_slot(PARTS, [PARTS], "parts: stem, leaves").value == 1
    assert score_slot(PARTS, [PARTS], '{"parts": ["leaf", "stem"]}').value == 1
    partly = score_slot(PARTS, [PARTS], "parts: leaf")
    assert (partly.value, partly.reading["jaccard"]) == (0, 0.5)
    too_many = score_slot(PARTS, [PARTS], "leaf, stem and root")
    assert (too_many.value, too_many.reading["jaccard"]) == (0, pytest.approx(2 / 3))
    assert score_slot(PARTS, [PARTS], "leaf and stem, but not the root").value == 1


def test_a_numeric_exact_value_allows_no_tolerance():
    rows = ExactSlot(name="rows", label="rows", value=7)
    assert score_slot(rows, [rows], "There are 7 rows.").value == 1
    assert score_slot(rows, [rows], "There are 7.1 rows.").value == 0


ADVICE = OpenTextSlot(
    name="advice",
    label="what to do",
    facts=(
        Fact(phrases=("remove infected leaves", "remove the infected leaves"), **{"not": ("leave infected leaves",)}),
        Fact(phrases=("avoid overhead irrigation",)),
    ),
)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Remove infected leaves and avoid overhead irrigation.", 1.0),
        ("Remove the infected leaves.", 0.5),
        ("Do not remove infected leaves, but avoid overhead irrigation.", 0.0),
        ("Leave infected leaves; avoid overhead irrigation.", 0.0),
        ("Water more.", 0.0),
        ("Do not remove infected leaves.", 0.0),
    ],
)
def test_open_text_counts_facts(text, score):
    assert score_slot(ADVICE, [ADVICE], text).value == score


def test_a_long_open_answer_loses_in_proportion():
    facts = "Remove infected leaves and avoid overhead irrigation. "
    assert score_slot(ADVICE, [ADVICE], facts + "word " * 293).value == pytest.approx(0.5)
    chinese = OpenTextSlot(name="advice", label="建议", facts=(Fact(phrases=("清除病叶",)),))
    assert score_slot(chinese, [chinese], "清除病叶" + "好" * 596).value == pytest.approx(0.5)


def test_an_open_answer_may_have_several_lines_in_the_form():
    text = "trees: 14\nadvice: Remove infected leaves.\nAlso avoid overhead irrigation."
    assert score_slot(ADVICE, [TREES, ADVICE], text).value == 1


def test_the_reading_says_how():
    reading = score_slot(SHARE, [SHARE, TREES], "Some words.\nweed_share: 30 %").reading
    assert reading["scope"] == "form line"
    assert reading["candidate"] == ["30 %"]
    assert reading["off_by"] == pytest.approx(17.5)
    assert score_slot(SHARE, [SHARE], "weed_share: 12.5 %").used_form
    assert not score_slot(SHARE, [SHARE], "I think 12.5 %").used_form


def test_a_plot_slot_is_not_text():
    plot = PlotSlot(name="chart", label="chart", value={})
    with pytest.raises(TypeError):
        score_slot(plot, [plot], "a chart")


GAP = ToleranceSlot(name="gap", label="difference in cover", value=-3.2, unit="%", abs_tol=0.05)
AREA = ToleranceSlot(name="area", label="area under weeds", value=3.2, unit="ha", rel_tol=0.01)
DENSITY = ToleranceSlot(name="density", label="plant density", value=250, unit="1/ha", rel_tol=0.01)
PONDS = ToleranceSlot(name="ponds", label="number of ponds", value=3)


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        # Signs, ranges, spreads.
        ("gap: minus 3.2 %", GAP),
        ("The difference is negative 3.2 percent.", GAP),
        ("差值为负3.2个百分点", GAP),
        ("gap: 33.3 % - 36.5 % = -3.2 %", GAP),
        ("12.4%-12.6%", SHARE),
        ("12.4 % to 12.6 %", SHARE),
        ("12.5 (± 0.3) %", SHARE),
        ("3.19公顷-3.21公顷", AREA),
        # Units in brackets, behind the key or the number, and in other spellings.
        ("area (m²): 32000", AREA),
        ("area [ha]: 3.2", AREA),
        ("| area (in m²) | 32,000 |", AREA),
        ('{"area (m²)": 32000}', AREA),
        ("area: 32000 [m²]", AREA),
        (r"$32{,}000\,\mathrm{m^2}$", AREA),
        (r"32\,000 m²", AREA),
        ("250 plants ha⁻¹", DENSITY),
        ("4500 kg ha-1", ToleranceSlot(name="yield_t", label="y", value=4.5, unit="t/ha")),
        ("3 ha-3.4 ha", ToleranceSlot(name="area", label="a", value=3.2, unit="ha", abs_tol=0.2)),
        ("1 ha-1.5 ha", ToleranceSlot(name="area", label="a", value=1.25, unit="ha", abs_tol=0.25)),
        ("2 m²-1 m²", ToleranceSlot(name="area", label="a", value=1.5, unit="m^2", abs_tol=0.5)),
        ("0.025 m⁻²", DENSITY),
        # Numbers that name or date things are no quantities.
        ("14 trees in images 1, 2 and 3.", TREES),
        ("14 trees on tiles 1-4", TREES),
        ("14 trees in row 3", TREES),
        ("14 trees were counted on 12 May 2023.", TREES),
        ("14 trees (as of 2023-05-12, 10:30)", TREES),
        ("14棵树（2023年5月12日）", TREES),
        # Number words and Chinese multipliers.
        (
            "I see 3 rows. The number of trees is twelve.",
            ToleranceSlot(name="trees", label="t", value=12),
        ),
        ("The number of ponds is three. I used 2 tools.", PONDS),
        ("共十二棵", ToleranceSlot(name="trees", label="t", value=12)),
        ("约3千棵", ToleranceSlot(name="trees", label="t", value=3000)),
        ("two thousand trees", ToleranceSlot(name="trees", label="t", value=2000)),
        ("3千克", ToleranceSlot(name="mass", label="m", value=3, unit="kg")),
        # A calculation states its result.
        ("trees: 8 + 6 = 14", TREES),
        ("trees: 8 trees + 6 trees = 14 trees", TREES),
        ("trees: 14 (= 8 + 6)", TREES),
        ("trees: 14 = 8 + 6", TREES),
        ("weed_share: 5 % / 40 % = 12.5 %", SHARE),
        ("weed_share: 12.5 % (5/40 = 0.125)", SHARE),
        # Where the value stands.
        ("**trees**:\n14", TREES),
        ("trees: 14\nI could also count other trees: just ask.", TREES),
        ("Here is how I counted the trees: row by row.\nThere are 14 of them.", TREES),
        ("| weed_share | trees |\n|---|---|\n| 12.5 % | 14 |", TREES),
        ("| weed_share (%) | trees |\n|---|---|\n| 12.5 | 14 |", SHARE),
        ("| trees | 14 |\n|---|---|\n| weed_share | 12.5 % |", TREES),
        ("| image | trees |\n|---|---|\n| image_1.jpg | 8 |\n| image_2.jpg | 6 |\n\ntrees: 14", TREES),
        ('[{"name": "trees", "value": 14}, {"name": "weed_share", "value": 12.5}]', TREES),
        ('{"answers": [{"slot": "trees", "answer": "14"}, {"slot": "weed_share", "answer": "30 %"}]}', TREES),
        ('{"trees": {"confidence": 0.9, "value": 14}}', TREES),
        ('{"results": [{"trees": 14}, {"weed_share": 30}]} in 2 images', TREES),
    ],
)
def test_a_number_is_read_as_a_fair_reader_would(text, slot):
    slots = [slot, *(other for other in (SHARE, TREES) if other.name != slot.name)]
    assert score_slot(slot, slots, text).value == 1


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("gap: 3.2 %", GAP),
        ("The cover is 40 % minus 3.2 %", GAP),
        ("trees: 8 + 6 = 15", TREES),
        ("共二十四棵", ToleranceSlot(name="trees", label="t", value=4)),
        ("trees: 13-15 (n = 14)", TREES),
        ("area (ha): 32000", AREA),
        ("area: 32000 (ha)", AREA),
    ],
)
def test_a_number_that_only_looks_right_scores_nothing(text, slot):
    assert score_slot(slot, [slot], text).value == 0


def test_a_value_given_for_another_slot_answers_none():
    same = PONDS.model_copy(update={"value": 14.0})
    assert score_slot(same, [TREES, same], "trees: 14").value == 0
    assert score_slot(same, [TREES, same], "trees:\n14").value == 0
    assert score_slot(PONDS, [TREES, PONDS], "trees: 14. I saw 3 ponds.").value == 1
    assert score_slot(PONDS, [TREES, PONDS], "Total trees: 14, total ponds: 3").value == 1
    assert score_slot(TREES, [TREES, PONDS], "Total trees: 14, total ponds: 3").value == 1
    below = BooleanSlot(name="below", label="below the limit", value=True)
    assert score_slot(below, [MORE, below], "more_weeds: yes").value == 0
    # A line of another kind may hold it.
    assert score_slot(WHICH, [WHICH, GAP], "gap: image_2.jpg by 3.2 %").value == 1


def test_a_label_inside_a_longer_one_is_not_mentioned():
    whole = ToleranceSlot(name="cover", label="plant cover", value=3.2, unit="%")
    first = ToleranceSlot(name="cover_1", label="plant cover of image 1", value=30.1, unit="%")
    text = "The plant cover is 3.2 %. The plant cover of image 1 is 30.1 %."
    assert [score_slot(slot, [whole, first], text).value for slot in (whole, first)] == [1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("杂草是否更多：否", False),
        ("杂草是否更多？是的。", True),
        ("答案是：没有", False),
        ("答案是否", False),
        ("答案是否定的", False),
        ("答案是 no", False),
        ("有没有更多：有", True),
        ("是，没有裸土", True),
    ],
)
def test_a_chinese_question_word_or_copula_is_no_answer(text, said):
    slot = MORE.model_copy(update={"value": said})
    assert score_slot(slot, [slot], text).value == 1


def test_a_list_below_its_key_is_its_value():
    assert score_slot(PARTS, [PARTS], "parts:\n\n* leaf\n* stem\n\nThe root is healthy.").value == 1
    assert score_slot(PARTS, [PARTS], "parts:\n1. leaf\n2. stem\n3. root").value == 0
    assert score_slot(SPECIES, [SPECIES], "species:\nSiam weed\n\nLantana was considered.").value == 1
    assert score_slot(SPECIES, [SPECIES], "| species |\n|---|\n| Siam weed |").value == 1
    assert score_slot(SPECIES, [SPECIES], "| species | Siam weed |\n|---|---|\n| certainty | high |").value == 1


@pytest.mark.parametrize(
    "query",
    [
        "How many trees are inside the magenta box on image_1.jpg, and is that more than 30?",
        "Was any cropland lost between before_1.jpg and after_1.jpg, and what percentage is that (0 if none)?",
        "品红框里有多少棵树，超过30棵了吗？",
    ],
)
def test_a_question_answers_nothing(query):
    more = BooleanSlot(name="more", label="there are more than 30 trees", value=True)
    share = ToleranceSlot(name="share", label="share", value=0.0, unit="%", abs_tol=1.0)
    assert score_slot(more, (more, share), query).value == 0
    assert score_slot(share, (more, share), query).value == 0
    assert score_slot(more, (more,), f"{query} Yes, there are 41.").value == 1
