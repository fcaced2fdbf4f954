"""ThinkGeo's scorer (arXiv 2505.23752): its rules, the metric of its judge, to the letter and corrected.

Ported from the behaviour of opencompass/datasets/ThinkGeo_bench.py (github.com/mbzuai-oryx/ThinkGeo, commit
95086de5bcb6f008851615f4651ae85ee6a8ed1a, Apache-2.0).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from agrotools.benchmarks._dialogs import published_scorer
from agrotools.benchmarks._dialogs.published_scorer import Dialogue, Rules
from agrotools.benchmarks._dialogs.scores import (
    IMAGES,
    JudgeScorer,
    compare_dialogues,
    differences_of,
    prediction_content,
    scoring_by,
)
from agrotools.benchmarks.thinkgeo.judge import LLM_SCORE, LLM_SCORE_CORRECTED, Judgement, judge_prompt, read_log
from agrotools.benchmarks.thinkgeo.plugin import CATEGORIES, IMAGE_TOOLS, PAPER_RUN
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.judging.questions import read_yes_no
from agrotools.scoring.predictions import Compared, Figure, Part, SampleParts, Scores, Similarity, published, summed
from agrotools.text.loose_json import is_list, is_object

RULES = Rules(
    name="thinkgeo",
    categories={f"{category[0]}_f1": tools for category, tools in CATEGORIES.items()},
    image_tools=IMAGE_TOOLS,
    image_metric="ans_i",
    recall=lambda hits, gold: hits / (gold + 1e-8),
    lowers=True,
)
SCORING = scoring_by(RULES, PAPER_RUN)

Judge = Callable[[str, str], str]
"""Given the system's and the user's message, what a model replies."""


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
    question_judgements: list[Judgement] = []

    def ask(position: int, answer: str) -> None:
        questions = entries.get(str(position), {}).get("evaluation", None)
        if judge is not None and questions:
            texts = [question["question"] for question in questions]
            replies = (judge(*judge_prompt(answer, text)).strip().lower() for text in texts)
            question_judgements.append(Judgement(position, tuple(replies)))

    scores = published_scorer.score_end(samples, RULES, similarity, on_objective=ask)
    if judge is None and judgements is None:
        reason = "needs a judge or saved judgements"
    elif data is None:
        reason = "needs the data set, whose questions it counts"
    else:
        figure = llm_score(question_judgements if judge is not None else judgements or (), data)
        counts = {**scores.counts, "judged": len(question_judgements if judge is not None else judgements or ())}
        return replace(scores, metrics={**scores.metrics, LLM_SCORE: figure}, counts=counts)
    return replace(scores, left_out={**scores.left_out, LLM_SCORE: reason})


def llm_score(judgements: Sequence[Judgement], data: Mapping[str, Any]) -> Figure:
    """Answers that passed over all entries of the data set that have questions, answered or not.

    Raises:
        PublishedScorerStops: an entry of the data set is no object.
    """
    with published("the data set"):
        n_judged = sum("evaluation" in entry for entry in data.values())
    passed = sum(judgement.passed for judgement in judgements)
    return Figure(passed / n_judged * 100 if n_judged else 0.0, n_judged)


def with_llm_score(scores: Scores, judgements: Sequence[Judgement], data: Mapping[str, Any]) -> Scores:
    """``scores`` with :data:`LLM_SCORE_CORRECTED`, over all samples that the data set has questions for.

    A sample passes where each reply begins with yes, whatever follows, and there is a reply to each of its questions;
    one that was not judged does not. ``scores`` has one sample for each entry of ``data``, in its order.
    """
    replies_by_position = {judgement.position: judgement.replies for judgement in judgements}
    samples: list[SampleParts] = []
    for position, (sample, entry) in enumerate(zip(scores.samples, data.values(), strict=True)):
        questions: Any = entry.get("evaluation") if is_object(entry) else None
        if not is_list(questions) or not questions:
            samples.append(sample)
            continue
        replies = replies_by_position.get(position, ())
        passed = len(replies) >= len(questions) and all(read_yes_no(reply) == 1 for reply in replies)
        samples.append(replace(sample, parts={**sample.parts, LLM_SCORE_CORRECTED: Part(float(passed), 1)}))
    metrics = {**scores.metrics, **summed(samples, [LLM_SCORE_CORRECTED])}
    return replace(scores, metrics=metrics, samples=tuple(samples))


def _published(
    samples: Sequence[Dialogue],
    similarity: Similarity | None,
    data: Mapping[str, Any] | None,
    log: Sequence[Judgement] | None,
) -> Scores:
    return score_end(samples, similarity, data=data, judgements=log)


def _compare(inputs: PredictionInput) -> Compared:
    return compare_dialogues(inputs, RULES, JudgeScorer(read_log, _published, with_llm_score))


FORMAT = PredictionFormat(
    "ThinkGeo",
    "thinkgeo",
    _compare,
    differences_of(RULES, ans_i=IMAGES, llm_score="a reply may say more than yes"),
    write=partial(prediction_content, PAPER_RUN),
)
