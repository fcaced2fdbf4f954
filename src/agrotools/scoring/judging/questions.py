"""Questions to a judge about a record, one for each part of an answer that it can grade, and about labelled answers.

Labelled answers, whose right grades are known, are those that ship, or a file of one's own.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from agrotools.core import (
    FrozenModel,
    OpenTextSlot,
    Record,
    Slot,
    UsageError,
)
from agrotools.plugin import JudgedMetric, WithPlugins, plugins
from agrotools.scoring.judging.replies import JudgeQuestion, mark_of, prompt_hash


@dataclass(frozen=True)
class Rubrics:
    """Instructions to a judge. ``criteria``: by name, the rubric and the texts that a judge is shown.

    ``name`` and ``digest`` are those of the user's file (SHA-256, its first twelve digits); empty for ours.
    """

    system: str
    parts: Mapping[str, str]
    criteria: Mapping[str, tuple[str, tuple[str, ...]]]
    name: str = ""
    digest: str = ""
    content: bytes = b""

    @property
    def label(self) -> str:
        """Source of the rubrics, for whoever reads scores by them."""
        return f"rubrics of {self.name} ({self.digest})" if self.digest else "rubrics of ours"


def shipped_rubrics() -> Rubrics:
    """Rubrics that ship with the benchmark that is judged by some; empty ones where none is installed."""
    judging = _judging_by_rubrics()
    return judging(None, "") if judging else Rubrics("", {}, {})


def read_rubrics(path: Path, name: str = "") -> Rubrics:
    """The rubrics of a user's file. ``name``: what to call it.

    Raises:
        UsageError: it cannot be read, is of another form, or no installed benchmark is judged by rubrics.
    """
    judging = _judging_by_rubrics()
    if judging is None:
        raise UsageError("no installed benchmark is judged by rubrics", hint="leave out --judge-rubrics")
    return judging(path, name)


def has_rubrics(metric: str) -> bool:
    """True if the metric is one of the criteria that are graded by rubrics."""
    return any(each.judging.rubrics and metric in each.judging.metrics for each in plugins() if each.judging)


def _judging_by_rubrics() -> "Callable[[Path | None, str], Rubrics] | None":
    return next((each.judging.rubrics for each in plugins() if each.judging and each.judging.rubrics), None)


OPEN_TEXT = "agrotools.ots_judge"


def _is_open_text(slot: Slot) -> bool:
    return isinstance(slot, OpenTextSlot)


JUDGED_METRICS = WithPlugins(
    {OPEN_TEXT: JudgedMetric(_is_open_text)}, lambda plugin: plugin.judging.metrics if plugin.judging else {}
)
"""All metrics that judges give, those of benchmark plug-ins behind those of the engine."""

_PROMPTS = Path(__file__).with_name("prompts.toml")
_LONGEST_ANSWER = 12_000
_HAN = re.compile(r"[一-鿿]")
_HOLE = re.compile(r"\{(mark|question|reference|answer)\}")


def judge_questions(record: Record, rubrics: Rubrics | None = None) -> list[JudgeQuestion]:
    """Questions to a judge about ``record``; none where it holds no answer that a judge can grade.

    ``rubrics``: those of the user's file; None: those that ship.
    """
    answer = record.trajectory.answer if record.trajectory is not None and record.invalid is None else None
    asked = [each for plugin in plugins() if plugin.judging for each in plugin.judging.questions(record, rubrics)]
    if answer is None or not answer.strip():
        return asked
    for slot in record.sample.answer:
        if isinstance(slot, OpenTextSlot):
            facts = "\n".join("- " + " / ".join(fact.phrases) for fact in slot.facts)
            asked.append(open_question(OPEN_TEXT, slot.name, record.sample.query, facts, answer))
    return asked


def open_question(metric: str, slot: str, question: str, reference: str, answer: str) -> JudgeQuestion:
    """A question on an answer that is compared with a reference text; in Chinese where the reference is."""
    if len(answer) > _LONGEST_ANSWER:
        answer = f"{answer[:_LONGEST_ANSWER]} [...]"
    language = "zh" if _HAN.search(reference) else "en"
    words = _words()["open_answer"][language]
    values = {
        "mark": mark_of((question, reference, answer)),
        "question": question,
        "reference": reference,
        "answer": answer,
    }
    system, user = (_HOLE.sub(lambda hole: values[hole[1]], words[part]).strip() for part in ("system", "user"))
    return JudgeQuestion(metric, slot, system, user, prompt=prompt_hash(words["system"] + words["user"]))


@cache
def _words() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads(_PROMPTS.read_text(encoding="utf-8"))


SHIPPED = "shipped"


class _Labelled(FrozenModel):
    question: Annotated[str, Field(min_length=1)]
    reference: Annotated[str, Field(min_length=1)]
    answer: Annotated[str, Field(min_length=1)]
    grade: Annotated[int, Field(ge=0, le=2)]
    why: str = ""


def labelled_questions(source: str) -> dict[JudgeQuestion, int]:
    """Questions to a judge with the right grades: ``shipped`` (30 of our own wording), or a JSONL file with
    ``question``, ``reference``, ``answer`` and ``grade`` (0 to 2) in every line.

    Raises:
        UsageError: no such file, or a line that is not so.
    """
    try:
        if source == SHIPPED:
            text = files("agrotools").joinpath("data", "judging", "open_answers.jsonl").read_text(encoding="utf-8")
        else:
            text = Path(source).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the answers with known grades cannot be read from {source}: {error}", hint=f"give a file, or {SHIPPED}"
        ) from error
    metric = _calibrated_metric()
    found: dict[JudgeQuestion, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would part at marks within texts, too
        if line.strip():
            try:
                item = _Labelled.model_validate_json(line)
            except ValidationError as error:
                fault = error.errors()[0]
                where = ".".join(map(str, fault["loc"])) or "the line"
                raise UsageError(
                    f"{source}, line {number}: {where}: {fault['msg'].lower()}",
                    hint="every line holds question, reference, answer and grade (0, 1 or 2)",
                ) from error
            found[open_question(metric, "answer", item.question, item.reference, item.answer)] = item.grade
    if not found:
        raise UsageError(f"{source} holds no answers with grades")
    return found


def _calibrated_metric() -> str:
    """Metric of answers that are compared with a reference text, as those with known grades are."""
    known = [plugin.judging.calibrated for plugin in plugins() if plugin.judging and plugin.judging.calibrated]
    if not known:
        raise UsageError("no installed benchmark has answers that are graded beside a reference text")
    return known[0]
