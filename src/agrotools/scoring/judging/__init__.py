"""Questions to judges (models that grade answers) and scores from their replies. This package calls no model."""

from agrotools.scoring.judging.judgements import (
    GradedQuestion,
    JudgedRows,
    Judgement,
    Judgements,
    PanelTally,
    agreement,
    by_question,
    judged,
    judged_scores,
)
from agrotools.scoring.judging.questions import (
    JUDGED_METRICS,
    SHIPPED,
    JudgeQuestion,
    Rubrics,
    has_rubrics,
    judge_questions,
    labelled_questions,
    open_question,
    read_grade,
    read_rubrics,
)

__all__ = [
    "JUDGED_METRICS",
    "SHIPPED",
    "GradedQuestion",
    "JudgeQuestion",
    "JudgedRows",
    "Judgement",
    "Judgements",
    "PanelTally",
    "Rubrics",
    "agreement",
    "by_question",
    "has_rubrics",
    "judge_questions",
    "judged",
    "judged_scores",
    "labelled_questions",
    "open_question",
    "read_grade",
    "read_rubrics",
]
