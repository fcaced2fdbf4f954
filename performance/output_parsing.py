"""Time to read what a model, a judge or a proposing model wrote (slots included): 100 kB and 1 MB of one thing.

Tool of developers; ``tests/engine/agents/test_long_outputs.py`` runs its readers on long texts.

    python performance/output_parsing.py [--reader NAME] [--unit TEXT] [--quick] [--json]

Every reader of such text gets every unit repeated, alone and inside of what it looks for (a call, a fence, an answer).
Seconds are those of the processor; printed is each reader with its slowest text. Reading is linear if 1 MB takes at
most 15 times as long as 100 kB. What takes more than two seconds is stopped, and not tried at the next size.
With ``--quick`` 4 kB and 40 kB stand for 100 kB and 1 MB.
"""

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from agrotools.agents.parsing import parse_output
from agrotools.core import (
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    Fact,
    FileSlot,
    KeywordsSlot,
    OpenTextSlot,
    ReferenceTextsSlot,
    ToleranceSlot,
)
from agrotools.models import RequestedCall
from agrotools.models.chat_format import read_error
from agrotools.scoring.judging.questions import read_grade, read_published_yes, read_yes_no
from agrotools.scoring.slots import score_slot
from agrotools.text.loose_json import NotJson, loads
from agrotools_benchmarks._dialogs import corrected_scorer, lagent_format
from agrotools_benchmarks.agent_x import replies as agent_x
from agrotools_benchmarks.agent_x.judge import read_judge_score
from agrotools_benchmarks.agrieval.plugin import OptionsSlot, ReferenceTextSlot
from agrotools_benchmarks.agrieval.score import read_options, text_values

_LETTERS = {"A": "remove the leaves", "B": "14", "C": "both", "D": "none"}
_SINGLE, _MULTIPLE, _JUDGED = (
    OptionsSlot(name="choice", label="choice", options=options, kind=kind, value=value)
    for options, kind, value in (
        (_LETTERS, "single", ("A",)),
        (_LETTERS, "multiple", ("A", "B")),
        ({"A": "正确", "B": "错误"}, "true_false", ("A",)),
    )
)
_TEXT = ReferenceTextSlot(name="text", label="text", value="remove the leaves. 除去病叶")
_OFFERED: dict[str, Any] = {
    name: {"properties": {"text": {"type": "string"}}} for name in ("count", "a", "b_c")
}
_TOOL = lagent_format.DeclaredTool(
    "Count", "", (lagent_format.Parameter("text", "text", None, True),)
)


def _lagent(text: str) -> None:
    reply = lagent_format.read_reply(lagent_format.strip_reply(text))
    if reply.kind != "answer":
        lagent_format.check_call(reply, (_TOOL,), {"a.png"}.__contains__)


def _loads(text: str) -> None:
    with suppress(NotJson):
        loads(text)


READERS: dict[str, Callable[[str], Any]] = {
    "react": lambda text: parse_output(text, tools=_OFFERED),
    "tool calling": lambda text: parse_output(text, protocol="tool-calling", tools=_OFFERED),
    "no tool": lambda text: parse_output(text, answer_only=True),
    "native call": lambda text: parse_output(text, [RequestedCall(name="count", arguments=text)]),
    "lagent": _lagent,
    "agent-x": agent_x.read_prediction,
    "agent-x, one key": agent_x.raw_object,
    "json": _loads,
    "one option": lambda text: read_options(_SINGLE, text),
    "options": lambda text: read_options(_MULTIPLE, text),
    "right or wrong": lambda text: read_options(_JUDGED, text),
    "reference text": lambda text: text_values(_TEXT, text),
    "grade": read_grade,
    "yes or no": read_yes_no,
    "published yes": read_published_yes,
    "judge of agent-x": read_judge_score,
    "error body": lambda text: read_error(400, text.encode()),
}
SLOTS = (
    ToleranceSlot(name="share", label="share of weeds", value=12.5, unit="%", abs_tol=0.2),
    ToleranceSlot(name="trees", label="number of trees", value=14),
    ExactSlot(
        name="species",
        label="species",
        value="Siam weed",
        choices=("Siam weed", "Snake weed", "Lantana"),
    ),
    ExactSlot(name="pest", label="pest", value="Siam weed"),
    BooleanSlot(name="changed", label="whether the farmland changed", value=True),
    ChoiceSetSlot(name="parts", label="parts", value=("leaf",), choices=("leaf", "stem")),
    FileSlot(
        name="which", label="image", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
    ),
    OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("remove leaves",)),)),
    KeywordsSlot(
        name="answer", label="answer", whitelist=(("14", "fourteen"), ("siam weed",), ("yes",))
    ),
    ReferenceTextsSlot(name="text", label="text", values=("remove the leaves",)),
)
_LISTS = {"whitelist": [["14", "fourteen"], ["siam weed"], ["yes"]], "blacklist": [["no"]]}
SLOT_READERS: dict[str, Callable[[str], Any]] = {
    **{f"slot {slot.name} ({slot.type})": partial(score_slot, slot, SLOTS) for slot in SLOTS},
    "keywords, corrected": lambda text: corrected_scorer.matches_keywords(text, _LISTS),
}
UNITS = (
    *(
        " ",
        "\n",
        "\t",
        " \n",
        "\r\n",
        "\u3000",
        "*",
        "_",
        "#",
        "# ",
        "**",
        "* ",
        "> ",
        "- ",
        "`",
        "```",
        "```\n",
    ),
    *(
        "```json\n",
        "{",
        "[",
        "(",
        "}",
        "]",
        "[{",
        "{}",
        "[]",
        "{},",
        "[1,",
        '{"',
        '{"a":',
        '{"a": 1} ',
        "{'a': 1}, ",
    ),
    *(
        '{"name": "a", ',
        '{"name": "count", "arguments": {} ',
        '{"name": "count", ',
        '"arguments": ',
        '"name":',
    ),
    *(
        '{"score": ',
        '{"grade": 1}',
        '"',
        "'",
        "“",
        "”",
        '\\"',
        "\\",
        "\\\\",
        "\\x",
        "\\U0001",
        "'a', ",
        "{'",
    ),
    *(
        '["a", ',
        ",",
        ",}",
        ", ",
        "//",
        "/",
        "None ",
        "True",
        "action",
        "Action:",
        "Action: a\n",
        "Action:\n",
    ),
    *(
        "Action: None\n",
        "Action Input:",
        "Action Input: {",
        "Action 1:",
        "Action: a\nAction Input: {}\n",
    ),
    *(
        "Final Answer:",
        "Final Answer",
        "Final Answer:\n",
        "final_",
        "final answer ",
        "Thought:",
        "Thought",
    ),
    *(
        "thought *",
        "Observation:",
        "<think>",
        "</think>",
        "</think>\n",
        "<think",
        "<tool_call>",
        "<|",
        "[TOOL_CALLS]",
    ),
    *(
        "最终答案：",
        "最终答案",
        "行动：",
        "行动输入：",
        "思考",
        "思考：",
        "观察：",
        "答案",
        "答案A",
        "答案是",
        "选",
    ),
    *(
        "A",
        "B",
        "AB",
        "A、",
        "A. ",
        "A or ",
        "选A",
        "选项A",
        "选项",
        "选项A ",
        "正确",
        "错误",
        "综上所述",
    ),
    *(
        "综上所述A",
        "不是A，",
        "C错误",
        "score",
        "score:",
        "score: 1 ",
        "Grade: ",
        "评分：",
        "grade is ",
        "grade ",
    ),
    *(
        "1",
        "1/",
        "1 / ",
        "1.",
        "0.5",
        "-",
        "1-",
        "1 or ",
        "12 ",
        "9",
        "1e",
        "e9",
        "字",
        "除去病叶",
        "。",
        "yes",
    ),
    *(
        "yes ",
        "no",
        "是",
        "不",
        "a",
        "a ",
        "a.",
        "abc ",
        "remove the leaves ",
        "\ud800",
        "é",
        "<",
        "<a",
        "|",
    ),
    *(
        "| a | b |\n",
        ":",
        "：",
        "=",
        "is ",
        "of ",
        "to ",
        "\u0000",
        "1 1 1\n",
        "7",
        "1,234,",
        "1,",
        "1.2.3.",
    ),
    *(
        "1-1-1 ",
        "12 or ",
        "12 trees, ",
        "12 % ",
        "12.5 % or ",
        "14 (",
        "14 (8) ",
        '{"trees": 14} ',
        '{"trees": 14, ',
    ),
    *(
        "'1",
        "a: ",
        "a: a: a: ",
        "trees: ",
        "trees: 14 ",
        "trees: 14\n",
        "trees\n",
        "trees: yes no ",
    ),
    *(
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "| trees | share |\n|---|---|\n| 14 | 2 |\n",
        "siam weed ",
        "siam weed, ",
    ),
    *(
        "siam weed or ",
        "siam weed\n",
        "siam weed (",
        "it is siam weed. ",
        "lantana; ",
        "it is not siam weed. ",
    ),
    *(
        "siam weed is ruled out and ",
        "is siam weed? ",
        "leaf and stem, ",
        "not ",
        "not, a, ",
        "n't ",
        "没有",
    ),
    *(
        "不是马缨丹，",
        "一",
        "一二三",
        "十百千万",
        "百分之",
        "三分之一",
        "一成",
        "一棵",
        "是否",
        "的",
        "1个",
    ),
    *(
        "yes no ",
        "no, ",
        "yes or no ",
        "changed ",
        "it has not changed. ",
        "one ",
        "twenty one ",
        "one hundred and ",
    ),
    *(
        "a hundred ",
        "more than 14 ",
        "from 1 to 2 ",
        "total 14 ",
        "= 3 ",
        "8 + 6 = ",
        "in image 1 ",
    ),
    *(
        "images 1, 2, 3, ",
        "2023-05-14 ",
        "10^",
        "\\text{",
        "$",
        "final answer: ",
        "wait ",
        "so ",
        "therefore ",
        "or ",
    ),
    *(
        "maybe. ",
        ". ",
        "\t \n",
        "1. ",
        "²",
        "12 per ",
        "per ",
        "square ",
        "?",
        "e",
        "+",
        "image_1.jpg ",
    ),
    *("remove leaves ", "%", "reasoning_steps", '{"reasoning_steps": [], '),
    *(
        '{"reasoning_steps": [], "final_answer": "a"} ',
        '{"Score": 1, ',
        "{'Score': 0.5} ",
        '{"variants": ["a"]} ',
    ),
    *(
        "((",
        "(1, ",
        "count(",
        "count()\n",
        "a(x=1) ",
        "[count(",
        "[count(x=1), ",
        "x=",
        "to=count",
        "to=count {",
    ),
    *(
        "<count ",
        "<function=a>",
        "<parameter=x>",
        "<parameter=x>1</parameter>\n",
        "<arg_key>x</arg_key>",
        "<|count",
    ),
    *(
        '<invoke name="a">',
        "<tool_call>a",
        "[TOOL_CALLS]a",
        "<｜tool▁call▁begin｜>a<｜tool▁sep｜>{}",
        "<name>count",
    ),
    *(
        "```tool_code\n",
        "print(",
        "Result: 1\n",
        "User:",
        "Action: Finish[",
        "]\n",
        "assistantfinal",
        "<|channel|>",
    ),
    *(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        '{"a": "count"',
        "Thought: a\n",
        "> ",
        '\\"',
        "count",
        "count{",
    ),
)
FRAMES = (
    ("", ""),
    ("x", "x"),
    ("Thought: a\n", "\nFinal Answer: 3"),
    ("Final Answer: ", ""),
    ("Action: count\nAction Input: ", ""),
    ('Action: count\nAction Input: {"text": "', '"}'),
    ("Action: count", "\nAction Input: {}\n"),
    ("", "Action: count\nAction Input: {}\n"),
    ("<think>", "</think>\nFinal Answer: 3"),
    ("```json\n", "\n```"),
    ('{"text": "', '"}'),
    ('{"name": "count", "arguments": {"text": "', '"}}'),
    ('{"name": "count", "arguments": ', "}"),
    ('{"reasoning_steps": [', '], "final_answer": {"value": "a"}}'),
    ('"', '"'),
    ("score", "1"),
    ("score:", "x"),
    ("1", "x"),
    ("答案", "A"),
    ("<function=a>", "</function>"),
    ("<function=a><parameter=x>", "</parameter></function>"),
    ("[count(x=", ")]"),
    ("```tool_code\ncount(x='", "')\n```"),
    ("to=functions.a", "{}"),
)
SIZES, QUICK = (10_000, 100_000, 1_000_000), (4_000, 40_000)
TOO_LONG = 2.0


class _StoppedError(BaseException):
    """Reading took too long."""


class Row(NamedTuple):
    """A reader and a text: seconds for each of ``SIZES``; those that were not tried are missing."""

    reader: str
    frame: tuple[str, str]
    unit: str
    seconds: list[float]

    @property
    def ratio(self) -> float:
        """How many times as long ten times the text takes, at the largest size that was tried."""
        return self.seconds[-1] / max(self.seconds[-2], 1e-3) if len(self.seconds) > 1 else 0.0


def rows(
    readers: dict[str, Callable[[str], Any]], units: tuple[str, ...], sizes: tuple[int, ...]
) -> Iterator[Row]:
    """The times of ``readers``, one text after another."""
    for unit in units:
        for head, tail in FRAMES:
            texts = [head + (unit * (size // len(unit) + 1))[:size] + tail for size in sizes]
            for name, read in readers.items():
                row = Row(name, (head, tail), unit, [])
                for text in texts:
                    started = time.process_time()
                    whole = _ends(lambda read=read, text=text: read(text))
                    row.seconds.append(time.process_time() - started)
                    if not whole:
                        break
                yield row


def _ends(work: Callable[[], Any]) -> bool:
    """Whether ``work`` ends within ``TOO_LONG`` seconds of the processor; else it is stopped."""

    def stop(*_: object) -> None:
        raise _StoppedError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, TOO_LONG)
    try:
        work()
    except _StoppedError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reader", choices=READERS | SLOT_READERS)
    parser.add_argument("--unit")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    readers = READERS | SLOT_READERS
    readers = {given.reader: readers[given.reader]} if given.reader else readers
    slowest: dict[str, Row] = {}
    faults: list[Row] = []
    sizes = QUICK if given.quick else SIZES
    for row in rows(readers, (given.unit,) if given.unit else UNITS, sizes):
        if given.json:
            print(json.dumps(row._asdict()), flush=True)
        if len(row.seconds) < len(sizes) or row.seconds[-1] > TOO_LONG or row.ratio > 15:
            faults.append(row)
        if row.reader not in slowest or _rank(row) > _rank(slowest[row.reader]):
            slowest[row.reader] = row
    if not given.json:
        for row in [*slowest.values(), *faults]:
            times = " ".join(f"{second:8.3f}" for second in row.seconds)
            print(
                f"{row.reader:20} {times} s {row.ratio:6.1f}  {row.frame[0]!r} {row.unit!r} {row.frame[1]!r}"
            )
        print(f"{len(faults)} texts take more than 15 times as long at ten times the length")


def _rank(row: Row) -> tuple[int, float]:
    return -len(row.seconds), row.seconds[-1]


if __name__ == "__main__":
    main()
