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


def test_number_words_count_only_without_digits():
    five = ToleranceSlot(name="ponds", label="ponds", value=5)
    assert score_slot(five, [five], "I see five ponds.").value == 1
    assert score_slot(five, [five], "共有五个池塘").value == 1
    assert score_slot(five, [five], "I see five ponds and 3 trees.").value == 0
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
        ("siam weeds", 0),
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
