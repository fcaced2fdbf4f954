"""What a model is asked: the published prompt to the letter, examples, passages, and options in every order."""

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import UsageError
from agrotools_benchmarks.agrieval.items import Item, QuestionSettings
from agrotools_benchmarks.agrieval.plugin import OptionKind
from agrotools_benchmarks.agrieval.prompting import Examples, orders_of, prompt_of

ITEM = Item(
    "7", "multiple", "哪些{options}叶对生()", ("A", "C"), {"A": "薄荷", "B": "小麦", "C": "丁香"}
)


class Found(NamedTuple):
    text: str
    title: str


def asked(
    item: Item = ITEM,
    shots: list[Item] | None = None,
    found: tuple[Found, ...] = (),
    **settings: Any,
) -> str:
    return prompt_of(item, item.options, QuestionSettings(**settings), shots or [], found)


def test_the_prompts_are_the_published_ones():
    assert asked() == (
        "以下是中国关于农业考试的多项选择题，请直接输出正确答案的选项，无需生成解释。\n"
        "问题：哪些{options}叶对生()\nA. 薄荷\nB. 小麦\nC. 丁香\n答案：\n"
    )
    kinds: tuple[tuple[OptionKind, str], ...] = (("single", "单项选择题"), ("true_false", "判断题"))
    for kind, word in kinds:
        prompt = asked(Item("1", kind, "问", ("A",), {"A": "对", "B": "错"}))
        assert prompt.startswith(f"以下是中国关于农业考试的{word}，")
    shot = Item("9", "multiple", "例", ("A", "B"), {"A": "甲", "B": "乙"})
    assert asked(shots=[shot, shot]) == (
        "以下是中国关于农业考试的多项选择题，请直接输出正确答案的选项，无需生成解释。\n以下是两个例子：\n"
        "问题：例\nA. 甲\nB. 乙\n答案：AB\n问题：例\nA. 甲\nB. 乙\n答案：AB\n"
        "\n问题：哪些{options}叶对生()\nA. 薄荷\nB. 小麦\nC. 丁香\n答案：\n"
    )


def test_reasoning_and_open_questions_have_the_published_prompts_too():
    assert asked(cot=True) == (
        "以下是中国关于农业考试的多项选择题，回答时让我们一步步思考，逐个选项进行分析，最后输出答案。\n"
        "问题：哪些{options}叶对生()\nA. 薄荷\nB. 小麦\nC. 丁香\n答案：\n"
    )
    shot = Item("9", "multiple", "例", ("A", "B"), {"A": "甲", "B": "乙"})
    solved = "问题：例\nA. 甲\nB. 乙\n答案：AB\n"
    assert f"最后输出答案。\n{solved}\n{solved}问题：哪些" in asked(cot=True, shots=[shot, shot])
    open_question, solved = (
        Item("1", None, "为什么？", ("因为",)),
        Item("2", None, "怎样？", ("这样",)),
    )
    assert (
        asked(open_question)
        == "以下是中国关于农业考试的简答题，请输出正确答案。\n问题：为什么？\n答案：\n"
    )
    assert asked(open_question, shots=[solved]) == (
        "以下是中国关于农业考试的简答题，请输出正确答案。问题：怎样？\n答案：这样\n\n问题：为什么？\n答案：\n"
    )
    assert "一步步思考" in asked(open_question, cot=True)


letters = st.integers(2, 7).map(lambda count: "ABCDEFG"[:count])
questions = letters.flatmap(
    lambda all: st.tuples(
        st.just(all), st.lists(st.sampled_from(all), min_size=1, unique=True), st.text(max_size=9)
    )
)


@given(questions, st.sampled_from(["given", "shuffled", "later", "rotated"]))
def test_an_order_moves_texts_and_the_answer_with_them(
    question: tuple[str, list[str], str], order: Any
):
    known, right, seed = question
    options = {letter: f"text {letter}" for letter in known}
    orders = list(orders_of(options, right, order, seed))
    assert len(orders) == (len(known) if order == "rotated" else 1)
    for each in orders:
        assert list(each.options) == list(known), "letters stay"
        assert sorted(each.options.values()) == sorted(options.values())
        assert {each.options[letter] for letter in each.answer} == {
            options[letter] for letter in right
        }
        assert [options[known[place]] for place in each.origin] == list(each.options.values())
    if order == "given":
        assert orders[0].options == options
    if order == "rotated":
        everywhere = [{each.options[letter] for each in orders} for letter in known]
        assert everywhere == [set(options.values())] * len(known)
    assert orders == list(orders_of(options, right, order, seed))


def item(number: int, group: str, kind: Any = "single") -> Item:
    return Item(
        str(number),
        kind,
        f"问{number}",
        ("A",),
        {"A": "甲", "B": "乙"},
        {"domain": "d", "field": group},
    )


def test_examples_are_of_the_same_kind_another_group_and_other_words():
    pool = [item(n, "ab"[n % 2]) for n in range(40)] + [
        item(n, "c", "multiple") for n in range(40, 60)
    ]
    examples = Examples(pool, seed=0)
    for each in pool[:40]:
        drawn = examples.for_item(each, 5)
        assert len({other.question for other in drawn}) == 5
        assert {other.kind for other in drawn} == {"single"}
        assert each.groups["field"] not in {other.groups["field"] for other in drawn}
        assert drawn == Examples(pool, seed=0).for_item(each, 5)
    assert examples.groups_kept_out == {"single": True, "multiple": False}
    assert pool[41] not in examples.for_item(pool[41], 5), (
        "never itself, where all are of one group"
    )
    assert Examples(pool, seed=1).for_item(pool[0], 5) != examples.for_item(pool[0], 5)
    same = [
        replace(item(1, "a"), question="什么是间作？"),
        replace(item(2, "b"), question=" 什么是间作:"),
    ]
    pool = [*same, *(item(n, "b") for n in range(3, 8))]
    for seed in range(40):
        drawn = Examples(pool, seed).for_item(same[0], 5)
        assert {other.number for other in drawn} == {"3", "4", "5", "6", "7"}


def test_too_few_examples_are_an_error():
    examples = Examples([item(1, "a"), item(2, "b"), item(3, "b")], seed=0)
    with pytest.raises(UsageError, match="not 3 examples"):
        examples.for_item(item(1, "a"), 3)
    examples.check([item(1, "a")], 2)
    for few, count in ((item(1, "a"), 3), (item(4, "b"), 2)):
        with pytest.raises(UsageError, match=f"not {count} examples .* question {few.number}"):
            examples.check([item(1, "a")] * (count < 3) + [few], count)
