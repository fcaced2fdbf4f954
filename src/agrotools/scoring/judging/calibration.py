"""Answers whose right grades are known: those that ship, or a file of one's own."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from agrotools.core import FrozenModel, UsageError
from agrotools.scoring.judging.question import JudgeQuestion
from agrotools.scoring.judging.questions import OPEN_ANSWER, open_question

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
            found[open_question(OPEN_ANSWER, "answer", item.question, item.reference, item.answer)] = item.grade
    if not found:
        raise UsageError(f"{source} holds no answers with grades")
    return found
