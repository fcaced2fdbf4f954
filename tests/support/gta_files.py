"""Messages and samples in the form of GTA's prediction files, and a similarity that needs no model."""

import re
from typing import Any

from agrotools_benchmarks._dialogs.published_scorer import Dialogue

ERROR = {"type": "ARGS_ERROR", "msg": "invalid json format: {"}


def call(name: Any, arguments: Any, error: Any = None) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}],
    }
    return message | ({"error": error} if error is not None else {})


def answer(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def returned(text: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": [{"type": "text", "content": text}]}


def overlap(first: str, second: str) -> float:
    """Share of the words of both texts that both have: a stand-in for the cosine of embeddings."""
    one, other = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(one & other) / len(one | other) if one | other else 0.0


def step_sample(key: str, gold: list[Any], prediction: list[Any], reference: Any) -> Dialogue:
    return Dialogue(key, gold, prediction, reference)


def end_sample(key: str, gold: list[Any], prediction: list[Any], reference: Any) -> Dialogue:
    """Both lists are those of the first turn."""
    return Dialogue(key, [gold], [prediction], reference)


# The samples of three kinds that the published scorers were run on.
SIX = {"whitelist": [["6", "six"]], "blacklist": None}
CAT = ["a cat on a mat", "cat sitting", "the cat"]
STEP_GOLD = (
    (
        [
            call("OCR", {"image": "/d/image/1.jpg"}),
            call("Calculator", {"expression": "2*3"}),
            answer("6"),
        ],
        SIX,
    ),
    ([call("TextToImage", {"keywords": "cat"}), answer("")], None),
    ([call("ImageDescription", {"image": "/d/image/2.jpg"}), answer("a cat on a mat")], CAT),
)
END_GOLD = (
    ([call("OCR", {"image": "a"}), call("Calculator", {"expression": "2*3"}), answer("6")], SIX),
    ([call("TextToImage", {"keywords": "cat, mat"}), answer("")], None),
    ([*(call("OCR", {"image": name}) for name in "abc"), answer("a cat on a mat")], CAT),
)


def step_file(*predictions: list[Any]) -> list[Dialogue]:
    return [
        step_sample(str(i), gold, mine, ref)
        for i, ((gold, ref), mine) in enumerate(zip(STEP_GOLD, predictions, strict=True))
    ]


def end_file(*predictions: list[Any]) -> list[Dialogue]:
    return [
        end_sample(str(i), gold, mine, ref)
        for i, ((gold, ref), mine) in enumerate(zip(END_GOLD, predictions, strict=True))
    ]


GOLD_STEPS = [gold for gold, _ in STEP_GOLD]
GOLD_ENDS = [gold for gold, _ in END_GOLD]
