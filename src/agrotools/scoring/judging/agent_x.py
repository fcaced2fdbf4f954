"""The twelve questions that Agent-X has a model judge a chain of reasoning by."""

import json
from collections.abc import Mapping
from typing import Any, cast

from agrotools.scoring.judging.replies import JudgeQuestion, mark_of, prompt_hash, read_score
from agrotools.scoring.judging.rubrics import Rubrics, our_rubrics
from agrotools.scoring.reference.agent_x import COLUMNS

METRICS = {key: f"agent_x.{column}" for key, column in COLUMNS.items()}
"""Metric of each criterion, by its name in Agent-X's files."""

_LONGEST_PART = 20_000


def agent_x_questions(
    gold: Mapping[str, Any], prediction: Mapping[str, Any], rubrics: Rubrics | None = None
) -> list[JudgeQuestion]:
    """What is asked about one prediction; nothing where it has neither steps nor an answer.

    Args:
        gold: ``query``, ``query_type``, ``reasoning_steps``, ``final_answer`` and ``tool_metadata``, as published.
        prediction: ``reasoning_steps`` and ``final_answer`` in Agent-X's form.
        rubrics: what the judge is told to grade by; None: ours.
    """
    steps: Any = prediction.get("reasoning_steps") or []
    answer: Any = prediction.get("final_answer")
    if not steps and not _said(answer):
        return []
    values: dict[str, Any] = {
        "task": gold.get("query"),
        "reference_steps": gold.get("reasoning_steps"),
        "reference_answer": gold.get("final_answer"),
        "kind": gold.get("query_type"),
        "tools": gold.get("tool_metadata"),
        "steps": steps,
        "answer": answer,
    }
    texts = {name: _text(value) for name, value in values.items()}
    words = rubrics or our_rubrics()
    mark = mark_of(texts.values())
    found: list[JudgeQuestion] = []
    for key, (rubric, shows) in words.criteria.items():
        system = words.system.replace("{mark}", mark).replace("{rubric}", rubric).strip()
        user = "\n".join(f"{words.parts[part]}:\n{mark}\n{texts[part]}\n{mark}" for part in shows)
        prompt = prompt_hash(words.system + rubric)
        found.append(JudgeQuestion(METRICS[key], key, system, user, prompt, most=1, read=read_score))
    return found


def _said(answer: Any) -> bool:
    return any(cast("Mapping[str, Any]", answer).values()) if isinstance(answer, Mapping) else bool(answer)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]} [...]"
