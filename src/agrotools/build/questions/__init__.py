"""The questions that can be asked of pictures with crop, weeds and soil."""

from dataclasses import replace

from agrotools.build.questions.charts import CHARTS
from agrotools.build.questions.pairs import PAIRS
from agrotools.build.questions.question import Ask, Draft, Picture, Question, planned_calls, settled_draft
from agrotools.build.questions.regions import REGIONS
from agrotools.build.questions.single import SINGLE
from agrotools.build.templates.wording import Language

QUESTIONS: tuple[Question, ...] = (*SINGLE, *REGIONS, *PAIRS, *CHARTS)
"""All kinds of questions, those about one picture first."""


def questions_in(language: Language) -> tuple[Question, ...]:
    """The questions that can be asked in a language."""
    said = (replace(question, language=language) for question in QUESTIONS)
    return tuple(question for question in said if question.wordings)


__all__ = ["QUESTIONS", "Ask", "Draft", "Picture", "Question", "planned_calls", "questions_in", "settled_draft"]
