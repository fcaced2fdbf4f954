"""Small corpora of made-up text."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

_CHARACTERS = "稻麦玉米病虫害土壤肥水田耕种收"


def write_lines(path: Path, texts: Sequence[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def made_up(count: int, seed: int) -> list[str]:
    """Texts short enough to be a passage each."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_CHARACTERS, k=rng.randint(1, 3))) for _ in range(60)] + [
        " rice ",
        " 3.5 ",
        "，",
    ]
    return [
        f"第{number}号" + "".join(rng.choices(words, k=rng.randint(1, 60))).strip()
        for number in range(count)
    ]
