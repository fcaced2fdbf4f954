"""ThinkGeo's scorer (arXiv 2505.23752), to the letter, with its judge.

Ported from the behaviour of opencompass/datasets/ThinkGeo_bench.py (github.com/mbzuai-oryx/ThinkGeo, commit
95086de5bcb6f008851615f4651ae85ee6a8ed1a, Apache-2.0); the two prompts of the judge are its words. The original asks
gpt-4o-mini with temperature 0 and at most 3 tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agrotools.scoring.figures import Figure, Scores, Similarity
from agrotools.scoring.reference import gta_family
from agrotools.scoring.reference.gta_family import Dialogue, Rules
from agrotools.scoring.reference.stops import published

RULES = Rules(
    name="thinkgeo",
    categories={
        "p_f1": (
            "OCR",
            "ImageDescription",
            "RegionAttributeDescription",
            "TextToBbox",
            "ChangeDetection",
            "ObjectDetection",
            "SegmentObjectPixels",
        ),
        "o_f1": ("DrawBox", "AddText", "GoogleSearch"),
        "l_f1": ("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"),
    },
    image_tools=("DrawBox", "AddText", "Plot"),
    image_metric="ans_i",
    recall=lambda hits, gold: hits / (gold + 1e-8),
    lowers=True,
)

Judge = Callable[[str, str], str]
"""Given the system's and the user's message, what a model replies."""

JUDGE_SYSTEM = "Only respond with 'Yes' or 'No'."
JUDGE_USER = (
    "Response: {answer}\nGiven the above response, answer the following question in Yes or No.\nQuestion: {question}?"
)


@dataclass(frozen=True)
class Judgement:
    """What the judge said of one answer. ``position``: of the sample in the file, from 0."""

    position: int
    replies: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether each reply is yes, and nothing but that."""
        return all(reply == "yes" for reply in self.replies)


def judge_prompt(answer: str, question: str) -> tuple[str, str]:
    """The system's and the user's message for one question about an answer."""
    return JUDGE_SYSTEM, JUDGE_USER.format(answer=answer, question=question.strip().rstrip("?"))


def score_steps(samples: Sequence[Dialogue], similarity: Similarity | None = None) -> Scores:
    """See :func:`gta_family.score_steps`."""
    return gta_family.score_steps(samples, RULES, similarity)


def score_end(
    samples: Sequence[Dialogue],
    similarity: Similarity | None = None,
    *,
    data: Mapping[str, Any] | None = None,
    judge: Judge | None = None,
    judgements: Sequence[Judgement] | None = None,
) -> Scores:
    """The metrics of an end-to-end file; ``llm_score`` from a ``judge``, or from ``judgements`` that were saved.

    ``data``: the whole data set, whose entries hold the questions, looked up by the position of a sample.

    Raises:
        PublishedScorerStops: the original ends with an exception.
    """
    entries = data or {}
    made: list[Judgement] = []

    def ask(position: int, answer: str) -> None:
        questions = entries.get(str(position), {}).get("evaluation", None)
        if judge is not None and questions:
            texts = [question["question"] for question in questions]
            replies = (judge(*judge_prompt(answer, text)).strip().lower() for text in texts)
            made.append(Judgement(position, tuple(replies)))

    scores = gta_family.score_end(samples, RULES, similarity, on_objective=ask)
    if judge is None and judgements is None:
        reason = "needs a judge or saved judgements"
    elif data is None:
        reason = "needs the data set, whose questions it counts"
    else:
        figure = llm_score(made if judge is not None else judgements or (), data)
        counts = {**scores.counts, "judged": len(made if judge is not None else judgements or ())}
        return replace(scores, metrics={**scores.metrics, "thinkgeo.llm_score": figure}, counts=counts)
    return replace(scores, left_out={**scores.left_out, "thinkgeo.llm_score": reason})


def llm_score(judgements: Sequence[Judgement], data: Mapping[str, Any]) -> Figure:
    """Answers that passed over all entries of the data set that have questions, answered or not.

    Raises:
        PublishedScorerStops: an entry of the data set is no object.
    """
    with published("the data set"):
        asked = sum("evaluation" in entry for entry in data.values())
    passed = sum(judgement.passed for judgement in judgements)
    return Figure(passed / asked * 100 if asked else 0.0, asked)
