"""What a column of a file of predictions holds, by its name."""

import re
from typing import Literal

from agrotools.foreign.transcripts import MODES_OF_KEYS

ColumnKind = Literal[
    "prediction",
    "answer",
    "reference",
    "id",
    "prompt",
    "transcript",
    "setting",
    "repeat",
    "fact",
    "",
]
"""``answer``: predictions, or the reference. ``setting``: what a system was run with. ``fact``: about a sample or a
reply. Empty: the name does not tell."""

QUESTIONS = ("question", "query")
IDS = (
    *("sample_id", "sample", "id", "question_id", "custom_id", "record_id", *QUESTIONS),
    "index",
)
"""Columns that identify the sample of a row, the surest first: an index may count rows of another file."""
PREDICTIONS = ("prediction", "response", "output")
"""Names of predictions, the one that is proposed first."""
ANSWER = "answer"
"""Name of predictions, and beside others of the reference."""

MODE = "mode"
"""Column that may say in which mode an answer was given: ``no-tool``, or ``end-to-end`` of a system with tools."""
STATED_MODES = frozenset(("no_tool", "end_to_end"))
"""Its values, as :func:`snake_case` writes them."""

_REPLIES = frozenset(
    "prediction predictions predicted predict pred preds response responses output outputs completion completions "
    "generation generations generated reply replies resps hypothesis".split()
)
PREDICTED = frozenset("prediction predictions predicted predict pred preds".split())
"""Words that make a label, or the name of a value, that of a prediction: ``predicted_label``."""
_LABELS = frozenset(("label", "labels"))
_ANSWERS = frozenset(("answer", "answers"))
_OF_SYSTEM = frozenset(
    "model llm vlm mllm system agent assistant my final raw extracted parsed candidate".split()
)
"""Words that make an answer that of a system: ``model_answer``."""
_REFERENCES = frozenset(
    "gold golden target targets reference references ref refr expected expectation ground truth gt true correct ideal "
    "label labels solution".split()
)
_FACTS = frozenset(
    # about a reply: output_tokens, response_time_s
    "token tokens time times second seconds s ms duration latency speed length len count cost price usage "
    "hash score scores logprob logprobs prob probability confidence status finish stop error errors filtered format "
    "reason reasoning thinking thought thoughts rationale explanation analysis cot note notes comment comments remark "
    # about a sample
    "task tasks split dataset category subcategory family type level difficulty image images picture photo file files "
    "path url uuid lang language source choices options date timestamp created metadata meta annotator doc "
    "metric metrics object cached usage index number no nr".split()
)
_IDENTIFIERS = frozenset(("id", "ids", "uid", "qid", "key", "idx"))
_PROMPTS = frozenset(
    "prompt prompts input inputs instruction instructions arguments request contents context".split()
)
_SETTINGS = frozenset(
    "model models generator llm vlm mllm mode provider system agent protocol config configuration variant method "
    "temperature setting settings harness backend engine checkpoint filter strategy list sheet".split()
)
_REPEATS = frozenset(
    "epoch epochs repeat repeats repetition rep trial attempt run seed iteration round rollout replicate".split()
)


def snake_case(name: str) -> str:
    """Return a name in lower case with underscores: ``modelOutput`` and ``Model output`` are ``model_output``."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s\-.]+", "_", split).lower()


def column_kind(name: str) -> ColumnKind:
    """Return what a column holds whose name is in lower case with underscores."""
    if name in IDS:
        return "id"
    if name in PREDICTIONS:
        return "prediction"
    if name == ANSWER:
        return "answer"
    if name in MODES_OF_KEYS:
        return "transcript"
    words = frozenset(re.findall(r"[^\W\d_]+|\d+", name))
    is_label = words & _REFERENCES <= _LABELS and bool(words & PREDICTED)  # predicted_label
    if words & _REFERENCES and not is_label:
        return "reference"
    if words & (_FACTS | _IDENTIFIERS) or len(name) == 1:  # a letter is an option: A, B, C
        return "fact"
    if words & _REPLIES or (words & _ANSWERS and words & _OF_SYSTEM):
        return "prediction"
    if words & _PROMPTS:
        return "prompt"
    if words & _ANSWERS:
        return "answer" if words <= _ANSWERS | {"text"} else "fact"
    if words & _REPEATS:
        return "repeat"
    return "setting" if words & _SETTINGS else ""
