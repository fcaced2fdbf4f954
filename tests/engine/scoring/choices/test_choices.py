"""Reading choices: replies labelled by hand, and what holds for any text.

``replies.jsonl``: replies to questions, written and labelled by hand before any code read them (``gold``: the letters
that a reader takes as the answer, ``null`` for none). Every wording and option is our own.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.scoring import choices
from agrotools.scoring.choices import ChoiceReading, read_choices
from agrotools_benchmarks.agrieval.plugin import OptionsSlot
from agrotools_benchmarks.agrieval.score import read_options

OPTIONS = {"A": "轮作", "B": "深耕", "C": "维生素C", "D": "以上都是"}
TRUTH = {"A": "错误", "B": "正确"}
ITEMS = [
    (OPTIONS, "single"),
    (OPTIONS, "multiple"),
    (TRUTH, "true_false"),
    ({"A": "a", "F": "AF"}, "multiple"),
]
PIECES = st.sampled_from(
    "A B C D F a b AB ABCD Ａ 答案 ： 选 不选 错误 正确 对 、 ， 和 或 轮作 深耕 维生素C \n ( ) [ ] { } \" ' \\boxed{ "
    "</think> <think> ** | - 1. the answer is not but option \u200b 應選 。 ?".split(" ")
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(PIECES, max_size=40).map(" ".join),
)


def read(reply: str, options: dict[str, str] | None = None, kind: str = "single") -> ChoiceReading:
    return read_choices(reply, OPTIONS if options is None else options, kind)  # pyright: ignore[reportArgumentType]


def letters(reply: str, kind: str = "single") -> str:
    return "".join(read(reply, kind=kind).letters)


def test_replies_are_read_as_labelled_or_not_at_all():
    lines = Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()
    counts: Counter[str] = Counter()
    for row in map(json.loads, lines):
        gold, found = (
            tuple(row["gold"] or ()),
            read(row["reply"], row["options"], row["kind"]).letters,
        )
        counts["right" if found == gold else "wrong" if found else "not read"] += 1
    # Measured: 297 of 312 right, 13 not read, 2 wrong.
    assert counts["wrong"] <= 0.01 * len(lines)
    assert counts["right"] >= 0.94 * len(lines)


@pytest.mark.parametrize(
    "reply",
    [
        "B", "b", "(B)", "**B**", "B. 深耕", "B、深耕。", "选B", "故选：B。", "應選Ｂ", "答案：\n\nB", "【答案】B",
        "深耕", "答案是深耕。", "\\boxed{B}", "$\\boxed{\\text{B}}$", "<answer>B</answer>", '{"answer": "B"}',
        "Final Answer: B", "The correct option is (B).", "A不对，C也不对。\n答案：B", "<think>选A</think>B",
        "B\n\n解析：A不对。", "先看A。\n\nB", "答案：A\n……\n更正，答案：B", "A\n\n所以选B",
        "B\n\n问题：下列哪项正确？\n答案：C", "不选A\nB", "<|im_start|>B<|im_end|>",
        "B项正确，A、C项错误", "A: no\nB: yes\nC: no", "选项B深耕是正确的。", "B is correct, A is not", "B是正确答案",
        "A×\nB√", "叶色发黄，所以是B。", "Hence B.", "结论：B", "因此属于深耕。", "I'd go with option B", "对应选项B",
        "B 解析：A不对", "B（深耕）能打破犁底层", "B，因为土壤板结", "B - 深耕", "深耕（B选项）", "「B」",
    ],
)  # fmt: skip
def test_a_statement_or_a_line_of_letters_is_the_answer(reply: str):
    assert letters(reply) == "B"


@pytest.mark.parametrize(
    "reply",
    [
        "", "。", "不知道", "A型血和B型血", "不选D", "A不对", "I would test A and B.", "答案不是A", "答案：E", "A或B",
        "A, B, C, D are all possible", "答案：A、B、C、D", "ABCD", "A. 轮作\nB. 深耕\nC. 维生素C\nD. 以上都是",
        "答案：\nA. 轮作\nB. 深耕\nC. 维生素C\nD. 以上都是", "B项不正确", "如果B正确", "Whether B is correct is open.",
        "Neither A nor B is correct.", "B正确吗？", "不是B", "无法判断是A还是B", "可能是A，也可能是B", "A正确，B正确",
        "B-羟基丁酸升高", "A. 轮作：减轻病害\nB. 深耕：打破犁底层",
    ],
)  # fmt: skip
def test_anything_else_is_no_answer(reply: str):
    assert letters(reply) == ""


def test_several_letters_answer_a_question_that_takes_several():
    for reply in (
        "AC", "A、C", "A, C", "答案：A和C", "Answer: A and C", "A. 轮作\nC. 维生素C", '{"answer": ["A", "C"]}',
    ):  # fmt: skip
        assert letters(reply, "multiple") == "AC", reply
        assert read(reply).ambiguous, reply
    assert read("A或C", kind="multiple").ambiguous
    for reply in (
        "A√ B× C√ D×", "A、C对，B、D错", "A：正确，养分互补。\nB：错误。\nC：正确。", "Both A and C", "轮作、维生素C",
    ):  # fmt: skip
        assert letters(reply, "multiple") == "AC", reply
    assert not letters("\n".join(f"{key}. {text}" for key, text in OPTIONS.items()), "multiple")


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "错误",
            "错",
            "×",
            "False",
            "No.",
            "答案：错误",
            "答案：A",
            "该说法错误。",
            "错误。应为酸性。",
            "It's false",
        ),
        *(
            "不正确，鱼类不是恒温动物。",
            "这种说法有误。",
            "题干的说法并不准确",
            "前半句正确，因此整体错误。",
        ),
    ],
)
def test_words_for_true_and_false_are_options(reply: str):
    assert read(reply, TRUTH, "true_false").letters == ("A",)
    assert read(reply, {"A": "对", "B": "错"}, "true_false").letters == (
        ("A",) if "A" in reply else ("B",)
    )
    for left_open in (
        "我不知道这个说法对不对。",
        "可能对也可能错",
        "Neither true nor false.",
        "学界意见相反",
    ):
        assert read(left_open, TRUTH, "true_false").letters == ()


@given(TEXTS)
def test_any_text_gives_at_most_one_reading_of_the_options(reply: str):
    for options, kind in ITEMS:
        reading = read(reply, options, kind)
        assert [key for key in options if key in reading.letters] == list(reading.letters)
        assert kind == "multiple" or len(reading.letters) <= 1
        assert not (reading.ambiguous and reading.letters)
        assert reading.rule
        assert reading == read(reply, options, kind)


@given(TEXTS)
def test_the_right_option_changes_nothing_in_the_reading(reply: str):
    slots = [
        OptionsSlot(name="choice", label="choice", options=OPTIONS, kind="single", value=(right,))
        for right in OPTIONS
    ]
    readings = [read_options(slot, reply)[0] for slot in slots]
    assert readings == readings[:1] * len(slots)
    assert sum(read_options(slot, reply)[1]["agrieval.accuracy"] for slot in slots) <= 1


HOSTILE = {
    "letters": "A" * 250_000, "listed letters": "A、" * 125_000, "spaced letters": "A  B" * 60_000 + "x",
    "answers": "答案：A\n" * 50_000, "markers": "答案" * 125_000, "lines": "A\n" * 125_000,
    "line breaks": "A" + "\n " * 125_000,
    "brackets": "([" * 125_000, "boxes": "\\boxed{" * 35_000, "thinking": "<think>" * 35_000, "tags": "<a " * 82_500,
    "English": "A plant is a thing, so the answer is not A. " * 5_500, "prose": "水稻病害的防治" * 35_000,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_long_reply_of_anything_is_read_in_bounded_time(name: str):
    for options, kind in ITEMS:
        read(HOSTILE[name], options, kind)
    # Four readings take 0.1 to 10 s; what is not linear takes minutes. The bound only has to tell these apart.


def wide(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


@pytest.mark.data
def test_right_answers_to_published_questions_are_read_in_every_form(field_data: Path):
    """Forms of the gold answer of each question; questions and options stay where they are."""
    path = field_data / "agrieval" / "simple_merged_choice_v6_5(rag).json"
    if not path.is_file():
        pytest.skip(f"no AgriEval questions at {path}")
    kinds = {"单选": "single", "多选": "multiple", "判断": "true_false"}
    wrong: list[Any] = []
    count = 0
    for entry in json.loads(path.read_text("utf-8")):
        options = {key: text for key, text in entry["options"].items() if text.strip()}
        gold, lines = entry["answer"], "\n".join(f"{key}. {text}" for key, text in options.items())
        forms = [
            gold,
            wide(gold),
            "、".join(gold),
            f"答案：{gold}",
            f"$\\boxed{{{gold}}}$",
            f"{lines}\n答案：{gold}",
        ]
        if gold != "".join(options):  # all of them in lines are the options of the question
            forms.append("\n".join(f"{key}. {options[key]}" for key in gold))
        forms += [gold.lower(), options[gold]] if len(gold) == 1 else []
        for reply in forms:
            count += 1
            if "".join(read(reply, options, kinds[entry["question_type"]]).letters) != gold:
                wrong.append((reply, entry["id"]))
    assert len(wrong) <= 0.001 * count, wrong[:20]  # measured: 1


# --- the pattern of the options in a reply ---------------------------------------------------------------------------

MANY = {
    "A": "轮作",
    "B": "B)",
    "C": "维生素C",
    "D": "Straße",
    "E": "A)、B)",
    "F": "istanbul",
}
NAMING_PIECES = (
    "A B C D E F A. B. (C) 、 ， 和 或 答案 ： 选 \n . "
    "轮作 B) 维生素c STRASSE straße İstanbul ISTANBUL A)、B)"
)
NAMING = st.lists(st.sampled_from(NAMING_PIECES.split(" ")), max_size=25)


@given(NAMING.map("".join), st.sampled_from(["single", "multiple"]))
def test_options_that_a_reply_does_not_hold_change_no_reading(reply: str, kind: str):
    found = read(reply, MANY, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "_naming", lambda options, _: choices._pattern_of(options))
        assert read(reply, MANY, kind) == found


def test_only_options_that_a_reply_holds_are_compiled():
    plain, _ = choices._known_texts(tuple(OPTIONS.items()), "single")
    assert [*choices._naming(plain, "答案：A").groupindex] == []
    assert [*choices._naming(plain, "答案：轮作或维生素c").groupindex] == ["C", "A"]


def test_letters_that_are_equal_to_a_pattern_fold_to_one_text():
    letters = [chr(code) for code in range(sys.maxunicode + 1)]
    for letter in letters:
        forms = {letter.lower(), letter.upper(), letter.casefold()}
        if forms == {letter}:
            continue  # it has no case, and equals only itself
        pattern = re.compile(re.escape(letter), re.IGNORECASE)
        for other in filter(pattern.fullmatch, {*forms, "i", "\u0131"}):
            assert choices._folded(letter) == choices._folded(other), hex(ord(letter))
