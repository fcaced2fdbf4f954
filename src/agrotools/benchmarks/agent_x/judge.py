"""Questions to a judge about a chain of reasoning, one for each criterion of Agent-X, and the rubrics of them."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError

from agrotools.benchmarks.agent_x.plugin import is_published
from agrotools.benchmarks.agent_x.published_scorer import COLUMNS
from agrotools.core import FrozenModel, Record, UsageError
from agrotools.plugin import JudgedMetric, Judging
from agrotools.scoring.judging import Rubrics
from agrotools.scoring.judging.questions import JudgeQuestion, mark_of, prompt_hash, read_score
from agrotools.scoring.published_form import agent_x_gold, agent_x_prediction

METRICS = {key: f"agent_x.{column}" for key, column in COLUMNS.items()}
"""Metric of each criterion, by its name in Agent-X's files."""

SHIPPED = Path(__file__).with_name("judge.toml")
_SOURCE = "Agent-X"
"""Source of its samples."""
_HINT = "the form: docs/gta-thinkgeo-agent-x.md"
_RUBRIC_PLACE = "{rubric}"
_DIGITS = 12

_LONGEST_PART = 20_000

_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
_Part = Literal["task", "reference_steps", "reference_answer", "kind", "tools", "steps", "answer"]


class _Criterion(FrozenModel):
    """Rubric of a criterion, and which texts a judge sees for it; None: those that the shipped one shows."""

    rubric: _Text
    shows: Annotated[tuple[_Part, ...] | None, Field(min_length=1)] = None


class _RubricFile(FrozenModel):
    system: _Text | None = None
    parts: dict[_Part, _Text] = {}
    criteria: Annotated[dict[str, _Criterion], Field(min_length=1)]


def agent_x_questions(
    gold: Mapping[str, Any], prediction: Mapping[str, Any], rubrics: Rubrics | None = None
) -> list[JudgeQuestion]:
    """Questions about one prediction; none where it has neither steps nor an answer.

    Args:
        gold: ``query``, ``query_type``, ``reasoning_steps``, ``final_answer`` and ``tool_metadata``, as published.
        prediction: ``reasoning_steps`` and ``final_answer`` in Agent-X's form.
        rubrics: instructions to grade by; None: those that ship.
    """
    steps: Any = prediction.get("reasoning_steps") or []
    answer: Any = prediction.get("final_answer")
    if not steps and not _has_text(answer):
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
    words = rubrics or shipped_rubrics()
    mark = mark_of(texts.values())
    questions: list[JudgeQuestion] = []
    for key, (rubric, shows) in words.criteria.items():
        system = words.system.replace("{mark}", mark).replace("{rubric}", rubric).strip()
        user = "\n".join(f"{words.parts[part]}:\n{mark}\n{texts[part]}\n{mark}" for part in shows)
        prompt = prompt_hash(words.system + rubric)
        questions.append(JudgeQuestion(METRICS[key], key, system, user, prompt, most=1, read=read_score))
    return questions


def _has_text(answer: Any) -> bool:
    return any(cast("Mapping[str, Any]", answer).values()) if isinstance(answer, Mapping) else bool(answer)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]} [...]"


@cache
def shipped_rubrics() -> Rubrics:
    """The rubrics that ship, for all criteria."""
    file = _RubricFile.model_validate(tomllib.loads(SHIPPED.read_text(encoding="utf-8")))
    assert file.system is not None
    criteria = {key: (each.rubric, tuple(each.shows or ())) for key, each in file.criteria.items()}
    return Rubrics(file.system, {**file.parts}, criteria)


def read_rubrics(path: Path, name: str = "") -> Rubrics:
    """The rubrics of a TOML file; what it leaves out of the words around them is as in ours. ``name``: what to call it.

    Raises:
        UsageError: it cannot be read, is of another form, or names a criterion that Agent-X has not.
    """
    try:
        content = path.read_bytes()
        file = _RubricFile.model_validate(tomllib.loads(content.decode("utf-8")))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the rubrics {path}: {error}", hint=f"it must be a TOML file; {_HINT}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"the rubrics {path}: {where}: {first['msg'].lower()}", hint=_HINT) from error
    ours = shipped_rubrics()
    for key in file.criteria:
        if key not in ours.criteria:
            close = get_close_matches(key, COLUMNS, n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise UsageError(
                f"the rubrics {path}: Agent-X has no criterion {key!r}", hint=f"{meant}known: {', '.join(COLUMNS)}"
            )
    system = file.system or ours.system
    if _RUBRIC_PLACE not in system:
        raise UsageError(
            f"the rubrics {path}: system says nowhere where the rubric goes", hint=f"write {_RUBRIC_PLACE} there"
        )
    criteria = {key: (each.rubric, tuple(each.shows or ours.criteria[key][1])) for key, each in file.criteria.items()}
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    return Rubrics(system, {**ours.parts, **file.parts}, criteria, name or path.name, digest, content)


def _rubrics_of(path: Path | None, name: str) -> Rubrics:
    return shipped_rubrics() if path is None else read_rubrics(path, name)


def _questions(record: Record, rubrics: Rubrics | None) -> list[JudgeQuestion]:
    if record.sample.source != _SOURCE or record.trajectory is None or record.invalid is not None:
        return []
    return agent_x_questions(agent_x_gold(record.sample), agent_x_prediction(record), rubrics)


JUDGING = Judging(
    metrics={metric: JudgedMetric(is_published) for metric in METRICS.values()},
    questions=_questions,
    rubrics=_rubrics_of,
)
