"""How long it takes to read a value out of a hostile answer: 100 kB and 1 MB of one thing, for every kind of slot.

    python performance/answer_reading.py [--only NAME] [--json]

Seconds are those of the processor. For each shape the slowest slot is shown.
Reading is linear if 1 MB takes at most 15 times as long as 100 kB.
"""

import argparse
import json
import time

from agrotools.benchmarks._dialogs import answer_keywords
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
from agrotools.scoring.slots import score_slot

SLOTS = (
    ToleranceSlot(name="share", label="share of weeds", value=12.5, unit="%", abs_tol=0.2),
    ToleranceSlot(name="trees", label="number of trees", value=14),
    ExactSlot(name="species", label="species", value="Siam weed", distractors=("Snake weed", "Lantana")),
    ExactSlot(name="pest", label="pest", value="Siam weed"),
    BooleanSlot(name="changed", label="whether the farmland changed", value=True),
    ChoiceSetSlot(name="parts", label="parts", value=("leaf",), choices=("leaf", "stem")),
    FileSlot(name="which", label="image", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")),
    OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("remove leaves",)),)),
    KeywordsSlot(name="answer", label="answer", whitelist=(("14", "fourteen"), ("siam weed",), ("yes",))),
    ReferenceTextsSlot(name="text", label="text", values=("remove the leaves",)),
)
LISTS = {"whitelist": [["14", "fourteen"], ["siam weed"], ["yes"]], "blacklist": [["no"]]}
SHAPES = (
    "1 ",
    "1 1 1\n",
    "7",
    "1,234,",
    "1,",
    "1.2.3.",
    "1-",
    "1-1-1 ",
    "12 or ",
    "12 trees, ",
    "12 % ",
    "12.5 % or ",
    "14 (",
    "14 (8) ",
    "(",
    "[",
    "{",
    '{"a":',
    '{"trees": 14} ',
    '{"trees": 14, ',
    '"',
    "'",
    "'1",
    "a: ",
    "a: a: a: ",
    "trees: ",
    "trees: 14 ",
    "trees: 14\n",
    "trees\n",
    "trees: yes no ",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "| trees | share |\n|---|---|\n| 14 | 2 |\n",
    "|",
    "| ",
    "siam weed ",
    "siam weed, ",
    "siam weed or ",
    "siam weed\n",
    "siam weed (",
    "it is siam weed. ",
    "it is not siam weed. ",
    "siam weed is ruled out and ",
    "is siam weed? ",
    "lantana, siam weed; ",
    "leaf and stem, ",
    "not ",
    "not, a, ",
    "no no ",
    "n't ",
    "不是",
    "没有",
    "不是马缨丹，",
    "一",
    "一二三",
    "十百千万",
    "百分之",
    "三分之一",
    "一成",
    "一棵",
    "是",
    "是否",
    "yes ",
    "yes no ",
    "no, ",
    "yes or no ",
    "changed ",
    "it has not changed. ",
    "one ",
    "twenty one ",
    "one hundred and ",
    "a hundred ",
    "more than 14 ",
    "from 1 to 2 ",
    "total 14 ",
    "= 3 ",
    "8 + 6 = ",
    "in image 1 ",
    "images 1, 2, 3, ",
    "2023-05-14 ",
    "10^",
    "\\text{",
    "\\",
    "$",
    "**",
    "`",
    "_",
    "final answer: ",
    "wait ",
    "so ",
    "therefore ",
    "or ",
    "maybe. ",
    ". ",
    "\n",
    " ",
    "\t \n",
    "- ",
    "1. ",
    "a",
    "a ",
    "²",
    "12 per ",
    "per ",
    "square ",
    "?",
    "e",
    "1e",
    "+",
    "-",
    "的",
    "1个",
    "image_1.jpg ",
    "remove leaves ",
)


def seconds(text: str) -> tuple[float, str]:
    """The time of the slowest reader of ``text``, and which it is."""
    slowest = (0.0, "")
    for number, slot in enumerate(SLOTS):
        own = f"{'ab'[len(text) > 100_000]}{number}\n{text}"  # nothing that is kept from one reading serves another
        started = time.process_time()
        score_slot(slot, SLOTS, own)
        slowest = max(slowest, (time.process_time() - started, slot.type))
    started = time.process_time()
    answer_keywords.states(text, LISTS)
    return max(slowest, (time.process_time() - started, "keywords, corrected"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    for shape in (given.only,) if given.only else SHAPES:
        short, small = seconds((shape * (100_000 // len(shape) + 1))[:100_000])
        long, slot = seconds((shape * (1_000_000 // len(shape) + 1))[:1_000_000])
        rows.append(
            {
                "shape": shape,
                "s_100kB": short,
                "s_1MB": long,
                "ratio": long / max(short, 1e-3),
                "slowest": slot if long > short else small,
            }
        )
        if not given.json:
            print(f"{shape!r:40} {short:7.3f} s {long:7.3f} s {long / max(short, 1e-3):5.1f} {slot}", flush=True)
    if given.json:
        print(json.dumps(rows, ensure_ascii=False))
    else:
        slowest = max(float(str(row[size])) for row in rows for size in ("s_100kB", "s_1MB"))
        print(f"slowest: {slowest:.2f} s")


if __name__ == "__main__":
    main()
