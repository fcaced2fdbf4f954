"""Judging of reasoning chains by the criteria of Agent-X: questions, rubrics, and parsing of saved replies.

The judge is asked for a Python dict, ``{'Score': ..., 'Justification': ...}``; it is not known how the published tables
parsed it. Here its score is read like that of any judge (:func:`agrotools.scoring.judging.questions.read_score`).
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from agrotools.core import BenchmarkError, FrozenModel, Record, UsageError, first_error
from agrotools.core.files import read_table
from agrotools.core.texts import suggestion
from agrotools.scoring.judging.contracts import JudgedMetric, Judging
from agrotools.scoring.judging.questions import (
    JudgeQuestion,
    Rubrics,
    mark_of,
    prompt_hash,
    read_score,
)
from agrotools.scoring.predictions import read_csv, read_json
from agrotools.text.json_kinds import is_object, is_text
from agrotools_benchmarks.agent_x.plugin import is_published
from agrotools_benchmarks.agent_x.published_scorer import COLUMNS
from agrotools_benchmarks.agent_x.replies import gold_of, prediction_of

METRICS = {key: f"agent_x.{column}" for key, column in COLUMNS.items()}
"""Metric id of each criterion, by its key in the rubrics."""

SHIPPED = Path(__file__).with_name("judge.toml")
_SOURCE = "Agent-X"
_HINT = "the form: agrotools docs gta-thinkgeo-agent-x"
_RUBRIC_PLACE = "{rubric}"
_DIGITS = 12

_LONGEST_PART = 20_000

_Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
_Part = Literal["task", "reference_steps", "reference_answer", "kind", "tools", "steps", "answer"]


class _Criterion(FrozenModel):
    """Rubric of a criterion, and the texts shown to the judge; None to show those of the shipped rubric."""

    rubric: _Text
    shows: Annotated[tuple[_Part, ...] | None, Field(min_length=1)] = None


class _RubricFile(FrozenModel):
    system: _Text | None = None
    parts: dict[_Part, _Text] = {}
    criteria: Annotated[dict[str, _Criterion], Field(min_length=1)]


def agent_x_questions(
    gold: Mapping[str, Any], prediction: Mapping[str, Any], rubrics: Rubrics | None = None
) -> list[JudgeQuestion]:
    """Return the questions about one prediction; empty if it has neither steps nor an answer.

    ``gold`` and ``prediction`` have the published form; ``rubrics`` are None for the shipped ones.
    """
    steps: Any = prediction.get("reasoning_steps") or []
    answer: Any = prediction.get("final_answer")
    if not steps and not (any(answer.values()) if is_object(answer) else answer):
        return []
    texts = {part: _text(gold.get(name)) for part, name in _OF_GOLD.items()}
    texts |= {"steps": _text(steps), "answer": _text(answer)}
    words = rubrics or shipped_rubrics()
    mark = mark_of(texts.values())
    questions: list[JudgeQuestion] = []
    for key, (rubric, shows) in words.criteria.items():
        system = words.system.replace("{mark}", mark).replace("{rubric}", rubric).strip()
        user = "\n".join(f"{words.parts[part]}:\n{mark}\n{texts[part]}\n{mark}" for part in shows)
        prompt, read = prompt_hash(words.system + rubric), partial(read_score, shown=user)
        questions.append(JudgeQuestion(METRICS[key], key, system, user, prompt, most=1, read=read))
    return questions


_OF_GOLD = {
    **{"task": "query", "reference_steps": "reasoning_steps", "reference_answer": "final_answer"},
    **{"kind": "query_type", "tools": "tool_metadata"},
}


def _text(value: Any) -> str:
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, indent=1, default=str)
    )
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]} [...]"


@cache
def shipped_rubrics() -> Rubrics:
    """Return the shipped rubrics for all criteria."""
    file = _RubricFile.model_validate(read_table(SHIPPED))
    assert file.system is not None
    criteria = {key: (each.rubric, tuple(each.shows or ())) for key, each in file.criteria.items()}
    return Rubrics(file.system, {**file.parts}, criteria)


def read_rubrics(path: Path, name: str = "") -> Rubrics:
    """Read rubrics from a TOML file; omitted surrounding texts are those of the shipped rubrics.

    Raises:
        UsageError: the file cannot be read, has another form, or names a criterion that Agent-X does not have.
    """
    try:
        content = path.read_bytes()
        file = _RubricFile.model_validate(tomllib.loads(content.decode("utf-8-sig")))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"cannot read the rubrics {path}: {error}", hint=f"it must be a TOML file; {_HINT}"
        ) from error
    except ValidationError as error:
        raise UsageError(f"the rubrics {path}: {first_error(error)}", hint=_HINT) from error
    ours = shipped_rubrics()
    for key in file.criteria:
        if key not in ours.criteria:
            fault = f"the rubrics {path}: Agent-X has no criterion {key!r}"
            raise UsageError(fault, hint=suggestion(key, COLUMNS))
    system = file.system or ours.system
    if _RUBRIC_PLACE not in system:
        fault = f"the rubrics {path}: system says nowhere where the rubric goes"
        raise UsageError(fault, hint=f"write {_RUBRIC_PLACE} there")
    criteria = {
        key: (each.rubric, tuple(each.shows or ours.criteria[key][1]))
        for key, each in file.criteria.items()
    }
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    return Rubrics(
        system, {**ours.parts, **file.parts}, criteria, name or path.name, digest, content
    )


def _questions(record: Record, rubrics: Rubrics | None) -> list[JudgeQuestion]:
    if record.sample.source != _SOURCE or record.trajectory is None or record.invalid is not None:
        return []
    return agent_x_questions(gold_of(record.sample), prediction_of(record), rubrics)


JUDGING = Judging(
    metrics={metric: JudgedMetric(is_published) for metric in METRICS.values()},
    questions=_questions,
    read_rubrics=read_rubrics,
)


def read_judge_score(reply: Any) -> float | None:
    """Return the score in a saved reply, which may be a text, an object, a number or null; None if it has none or
    several, or if it is not between 0 and 1."""
    return read_score(reply if is_text(reply) else json.dumps(reply, default=str), most=1)


_ID_COLUMNS = ("id", "sample_id", "sample", "key", "index", "idx", "unnamed: 0", "")


@dataclass(frozen=True)
class JudgeTable:
    """Replies of a judge, one row per prediction in file order. ``ids`` is None if the file has no ids."""

    rows: tuple[Mapping[str, Any], ...]
    ids: tuple[str, ...] | None
    raw: bool
    """True if cells are complete replies instead of numbers."""
    malformed: tuple[str, ...] = ()
    """Descriptions, with their place in the file, of rows that are not objects of replies; these rows are empty."""

    @cached_property
    def columns(self) -> frozenset[str]:
        """Names of all columns that occur in any row."""
        return frozenset(column for row in self.rows for column in row)

    @cached_property
    def scores(self) -> tuple[Mapping[str, float | None], ...]:
        """Scores of each row by column, parsed once for both scorers. Columns without a reply are left out."""
        return tuple(
            {
                name: read_judge_score(cell)
                for name, cell in row.items()
                if name in COLUMNS and cell is not None and str(cell).strip()
            }
            for row in self.rows
        )


def read_judgements(path: Path) -> JudgeTable:
    """Read saved replies (``{id: {metric: reply}}``) or a table of numbers (CSV).

    Raises:
        BenchmarkError: the file cannot be read, or names none of the metrics.
    """
    table = (
        _read_csv(path)
        if path.suffix.lower() == ".csv"
        else parse_judgements(read_json(path), path.name)
    )
    if table.rows and not table.columns & COLUMNS.keys():
        hint = f"they are {', '.join(list(COLUMNS)[:4])}..."
        raise BenchmarkError(f"{path.name} names none of the metrics of Agent-X", hint=hint)
    return table


def parse_judgements(data: Any, name: str) -> JudgeTable:
    """Return replies by id, null where the judge failed; BenchmarkError if the data have another form."""
    if not is_object(data):
        raise BenchmarkError(
            f"{name} is no object", hint='judgements look like {"0": {"goal_accuray": "..."}}'
        )
    rows: list[Mapping[str, Any]] = [row if is_object(row) else {} for row in data.values()]
    faulty = [key for key, row in data.items() if row is not None and not is_object(row)]
    malformed = tuple(f'{name}, key "{key}" is no object of replies' for key in faulty)
    return JudgeTable(tuple(rows), tuple(map(str, data)), raw=True, malformed=malformed)


def _read_csv(path: Path) -> JudgeTable:
    rows = read_csv(path)
    names = list(rows[0]) if rows else []
    column = next((name for name in names if str(name).strip().lower() in _ID_COLUMNS), None)
    ids = None if column is None else tuple(str(row[column]).strip() for row in rows)
    if ids is not None and len(set(ids)) != len(ids):
        raise BenchmarkError(f"{path.name} has two rows with the same {column or 'first column'}")
    return JudgeTable(tuple(rows), ids, raw=False)
