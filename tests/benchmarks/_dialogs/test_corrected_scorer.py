import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import BenchmarkError
from agrotools_benchmarks._dialogs.corrected_scorer import (
    is_scorable,
    matches_keywords,
    score_end,
    score_steps,
)
from agrotools_benchmarks._dialogs.published_scorer import is_correct
from agrotools_benchmarks.gta.score import RULES as GTA
from support.gta_files import (
    CAT,
    ERROR,
    GOLD_ENDS,
    GOLD_STEPS,
    SIX,
    answer,
    call,
    end_file,
    end_sample,
    overlap,
    returned,
    step_file,
    step_sample,
)


def steps(gold, prediction, reference=None, similarity=overlap):
    return score_steps([step_sample("0", gold, prediction, reference)], GTA, similarity)


def ends(gold, prediction, reference=None, similarity=overlap):
    return score_end([end_sample("0", gold, prediction, reference)], GTA, similarity)


def value(scores, name):
    return scores.metrics[f"gta.{name}_corrected"].value


def test_the_gold_has_all_and_missing_steps_are_wrong():
    scores = score_steps(step_file(*GOLD_STEPS), GTA, overlap)
    assert {name: figure.value for name, figure in scores.metrics.items()} == dict.fromkeys(
        scores.metrics, 100
    )
    assert scores.metrics["gta.inst_acc_corrected"].n == 7
    scores = score_end(end_file(*GOLD_ENDS), GTA, overlap)
    expected = dict.fromkeys(scores.metrics, 100) | {"gta.o_f1_corrected": None}
    assert {name: figure.value for name, figure in scores.metrics.items()} == expected
    gold = [call("OCR", {}), call("OCR", {}), answer("6")]
    scores = steps(gold, gold[:1], SIX)
    assert value(scores, "inst_acc") == pytest.approx(100 / 3)
    assert value(scores, "tool_acc") == 50
    assert value(scores, "summ_acc") == 0


@pytest.mark.parametrize(
    ("name", "predicted", "gold", "same", "alike"),
    [
        ("GoogleSearch", {"query": "a"}, {"query": "a", "k": 10}, 100, 100),
        ("GoogleSearch", {"query": "a", "k": 4}, {"query": "a"}, 0, 0),
        (
            "TextToBbox",
            {"image": "x.png", "text": "cat", "top1": 1},
            {"image": "x.png", "text": "cat"},
            0,
            0,
        ),
        (
            "DrawBox",
            {"image": "a", "bbox": "(0, 0, 9, 10)"},
            {"image": "a", "bbox": "(0, 0, 10, 10)"},
            0,
            100,
        ),
        ("Calculator", {"expression": "3*2"}, {"expression": "2*3"}, 0, 100),
        ("Calculator", {"expression": "3*3"}, {"expression": "2*3"}, 0, 0),
        ("Calculator", '{"expression"', {"expression": "2*3"}, 0, 0),
        ("MyTool", {"file": "/a/b.png"}, {"file": "b.png"}, 100, 100),
    ],
)
def test_arguments_are_compared_by_what_they_ask_for(name, predicted, gold, same, alike):
    scores = steps([call(name, gold)], [call(name, predicted)])
    assert value(scores, "tool_acc") == 100
    assert value(scores, "arg_acc") == same
    assert value(scores, "arg_acc_agreement") == alike


def test_empty_answers_are_wrong_and_failed_calls_do_not_count():
    def never(first, second):
        raise AssertionError

    assert value(steps([answer("a cat")], [answer(" ")], CAT, never), "summ_acc") == 0
    gold = [*(call("OCR", {"image": name}) for name in "abc"), answer("x")]
    scores = ends(
        gold, [call("OCR", {}), call("OCR", {}, ERROR), call("TextToBbox", {}), answer("x")], SIX
    )
    assert scores.metrics["gta.p_f1_corrected"] == pytest.approx((2 * 1 / (2 + 3) * 100, 5))
    assert value(scores, "l_f1") is None
    assert value(ends([answer("x")], [call("OCR", {}), answer("x")], SIX), "p_f1") == 0


BOXES = [call("DrawBox", {"image": "a", "bbox": box}) for box in ("(1, 2, 3, 4)", "(5, 6, 7, 8)")]


def test_images_are_made_by_all_calls_of_a_tool_in_any_order():
    assert value(ends(BOXES, BOXES), "ans_acc_imggen") == 100
    assert value(ends(BOXES, BOXES[::-1]), "ans_acc_imggen") == 100
    assert value(ends(BOXES, [BOXES[0], *BOXES]), "ans_acc_imggen") == 100
    assert value(ends(BOXES, BOXES[:1]), "ans_acc_imggen") == 0
    assert value(ends(BOXES, [BOXES[0], BOXES[1] | {"error": ERROR}]), "ans_acc_imggen") == 0
    moved = [
        call("DrawBox", {"image": a, "bbox": b})
        for a, b in (("/d/a", "(1,2,3,4)"), ("a", "(5, 6, 7, 9)"))
    ]
    assert 0 < value(ends(BOXES, moved), "ans_acc_imggen") < 100


def test_a_task_that_asks_for_nothing_is_counted_and_not_free():
    scores = ends([call("OCR", {}), answer("x")], [answer("hi")])
    assert (scores.metrics["gta.ans_acc_imggen_corrected"], scores.counts["unscorable"]) == (
        (None, 0),
        1,
    )
    assert ends([answer("x")], [answer("x")], {"whitelist": []}).counts["unscorable"] == 1


def test_only_a_last_message_that_is_an_answer_counts():
    gold = [answer("6")]
    thought = {"role": "assistant", "content": "6", "meta": {"type": "thought"}}
    crash = {"role": "assistant", "content": "[LagentAgentError] 6", "error": ERROR}
    for last in (thought, crash, returned("6"), call("OCR", {}), None):
        assert value(ends(gold, [answer("6"), last], SIX), "ans_acc") == 0
    assert value(ends(gold, [returned(), answer(" 6")], SIX), "ans_acc") == 100


def test_without_an_embedder_the_objective_part_stands_alone():
    scores = score_end(
        end_file(
            GOLD_ENDS[0], [call("TextToImage", {"keywords": "dog"}), answer("")], [answer("cat")]
        ),
        GTA,
    )
    assert scores.left_out["gta.ans_acc_corrected"] == "1 subjective answers need an embedder"
    assert scores.left_out["gta.ans_acc_imggen_corrected"].startswith(
        "1 subjective answers and 1 image tasks"
    )
    assert "gta.ans_acc_corrected" not in scores.metrics
    assert scores.metrics["gta.ans_acc_objective_corrected"] == (100, 1)
    assert scores.estimate("gta.ans_acc_corrected") is None


@pytest.mark.parametrize(
    ("gold", "reference"),
    [
        ("x", SIX),
        ([{}], SIX),
        ([call("OCR", "raw")], SIX),
        ([call(None, {})], SIX),
        ([answer("6")], 3),
    ]
    + [
        ([answer("6")], reference)
        for reference in ("text", ["a", 1], {"whitelist": 1}, {"blacklist": None})
    ],
)
def test_a_faulty_gold_is_named(gold, reference):
    with pytest.raises(BenchmarkError, match="sample 0"):
        steps(gold, [], reference)


@pytest.mark.parametrize(
    ("text", "alias", "stated"),
    [
        ("x = −3", "-3", True),
        ("2.5 boxes", "2", False),
        ("答案是5个", "5", True),
        ("about 50%", "50%", True),
    ],
)
def test_signs_decimals_and_chinese_are_read_where_the_published_rule_fails(text, alias, stated):
    reference = {"whitelist": [[alias]], "blacklist": None}
    assert matches_keywords(text, reference) is stated is not is_correct(text, reference)


def test_groups_blacklists_and_lists_that_ask_for_nothing():
    colours = {"whitelist": [["red"], ["blue", "azure"]], "blacklist": [["green"]]}
    said = ("red and azure", "red", "red, blue and green")
    assert [matches_keywords(text, colours) for text in said] == [True, False, False]
    for more in (
        {"whitelist": [["yes"]], "blacklist": [[]]},
        {"whitelist": [["yes"], []], "blacklist": []},
    ):
        assert matches_keywords("yes", more)
    for nothing in ({"whitelist": []}, {"whitelist": [[], [" "]], "blacklist": [[]]}):
        assert not is_scorable(nothing)


@given(
    st.lists(st.sampled_from("red blue 12 7 apple tree".split()), max_size=5),
    st.sampled_from("red 12 apple".split()),
)
def test_plain_words_are_found_as_in_the_published_rule(words, alias):
    reference = {"whitelist": [[alias]], "blacklist": None}
    assert matches_keywords(" ".join(words), reference) == is_correct(" ".join(words), reference)
