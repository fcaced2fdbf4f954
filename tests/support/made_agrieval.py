"""Files in the shape of AgriEval, with made-up questions: as many as the paper has, with all of its groups."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHOICE_TASKS = {
    "术语解释": ("记忆", 125), "基本原理": ("记忆", 6077), "操作规程": ("记忆", 116), "生产管理要点": ("记忆", 880),
    "知识判断": ("理解", 1961), "类型识别": ("理解", 2253), "要点归纳": ("理解", 1324),
    "生产规划": ("推理", 471), "数值推理": ("推理", 707), "病害诊断": ("推理", 403), "生长状态分析": ("推理", 273),
    "遗传推断": ("推理", 107),
}  # fmt: skip
"""Tasks of the multiple-choice questions with level and number as in table 1 of the paper, in words of ours."""
DOMAINS = ("植物生产类", "林学类", "动物科学与技术类", "水产类", "草学类", "中草药类")
_SYLLABLES = "稻麦豆薯棉茶桑果菜瓜苗根茎叶花实土肥水光温虫菌草药牛羊猪鱼虾"


def choice_items(count: int = 14_697, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Multiple-choice items in the shares of the paper's tasks: seven options of one right answer, 3 to 5, or two."""
    rng = random.Random(seed)
    whole = sum(number for _, number in CHOICE_TASKS.values())
    ends = 0
    number = 0
    for task, (level, share) in CHOICE_TASKS.items():
        ends += share
        while number < round(count * ends / whole):
            kind = rng.choices(("单选", "多选", "判断"), (0.73, 0.10, 0.17))[0]
            if kind == "判断":
                texts = rng.choice((["正确", "错误"], ["对", "错"], ["错误", "正确"]))
            else:
                texts = [
                    f"{_word(rng)}{place}"
                    for place in range(7 if kind == "单选" else rng.randint(3, 5))
                ]
            letters = "ABCDEFG"[: len(texts)]
            right = (
                rng.sample(letters, rng.randint(2, len(letters)))
                if kind == "多选"
                else [rng.choice(letters)]
            )
            domain = rng.choice(DOMAINS)
            asked = "这种说法" if kind == "判断" else "下列说法"
            yield {
                "id": number, "type": domain, "question_type": kind,
                "question": f"第{number}题，关于{_word(rng)}的{_word(rng)}，{asked}（ ）",
                "options": dict(zip(letters, texts, strict=True)), "answer": "".join(sorted(right)),
                "domain": {"type": domain, "subtype": f"{domain}之{rng.randint(1, 5)}"},
                "class": {"class": level, "task": task},
            }  # fmt: skip
            number += 1


def question_items(count: int = 2167, seed: int = 8) -> Iterator[dict[str, Any]]:
    """Open questions; the last thirtieth lacks ``question_type``, as 63 of the published ones do."""
    rng = random.Random(seed)
    for number in range(count):
        item = {
            "id": number, "type": "简答", "question": f"第{number}问：{_word(rng)}怎样{_word(rng)}？",
            "answer": "，".join(_word(rng) * 3 for _ in range(rng.randint(2, 16))) + "。",
            "domain": {"type": rng.choice(DOMAINS), "subtype": "作物"}, "class": {"class": "生成", "task": "知识问答"},
        }  # fmt: skip
        yield item if number > count * 29 / 30 else {**item, "question_type": "简答"}


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))


def write_agrieval(folder: Path, choices: int = 14_697, questions: int = 2167) -> Path:
    """A folder with both files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, items in (
        ("choice(main)", choice_items(choices)),
        ("question(main)", question_items(questions)),
    ):
        (folder / f"made_{name}.json").write_text(
            json.dumps(list(items), ensure_ascii=False), encoding="utf-8"
        )
    return folder
