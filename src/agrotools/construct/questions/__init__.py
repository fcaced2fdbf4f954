"""The questions that can be asked of pictures with crop, weeds and soil."""

from agrotools.construct.questions.charts import CHARTS
from agrotools.construct.questions.pairs import PAIRS
from agrotools.construct.questions.question import Ask, Draft, Picture, Question, planned_calls, settled_draft
from agrotools.construct.questions.regions import REGIONS
from agrotools.construct.questions.single import SINGLE

QUESTIONS: tuple[Question, ...] = (*SINGLE, *REGIONS, *PAIRS, *CHARTS)
"""All kinds of questions, those about one picture first."""

__all__ = ["QUESTIONS", "Ask", "Draft", "Picture", "Question", "planned_calls", "settled_draft"]
