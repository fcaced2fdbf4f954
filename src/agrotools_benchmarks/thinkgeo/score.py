"""Scorer and judge of ThinkGeo (arXiv 2505.23752), published and corrected, and the tables of its paper.

Ported from the behaviour of opencompass/datasets/ThinkGeo_bench.py (github.com/mbzuai-oryx/ThinkGeo, commit
95086de5bcb6f008851615f4651ae85ee6a8ed1a, Apache-2.0). The two judge prompts are copied verbatim; the original asks
gpt-4o-mini with temperature 0 and at most 3 tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import BenchmarkError, KeywordsSlot, Record
from agrotools.core.registry import deferred
from agrotools.loading.facts import differences_of
from agrotools.report.contracts import Reporting
from agrotools.scoring.judging.contracts import JudgedMetric, Judging
from agrotools.scoring.judging.questions import (
    JudgeQuestion,
    Rubrics,
    prompt_hash,
    read_published_yes,
    read_yes_no,
)
from agrotools.scoring.prediction_format import PredictionFormat
from agrotools.scoring.predictions import (
    Figure,
    PredictionScores,
    SampleParts,
    ScoreSum,
    Similarity,
    published,
    read_json,
    summed,
)
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs import published_scorer
from agrotools_benchmarks._dialogs.plugin_parts import table_layouts
from agrotools_benchmarks._dialogs.published_scorer import Dialogue, Rules
from agrotools_benchmarks._dialogs.scores import (
    JudgeScorer,
    compare_dialogues,
    prediction_content,
    scoring_by,
)
from agrotools_benchmarks.thinkgeo.plugin import FACTS, PAPER_RUN, has_questions

RULES = Rules(
    name="thinkgeo",
    categories={f"{category[0]}_f1": tools for category, tools in FACTS["tool_categories"].items()},
    image_tools=FACTS["image_tools"],
    image_metric="ans_i",
    recall=lambda hits, gold: hits / (gold + 1e-8),
    lowers=True,
)
SCORING = scoring_by(RULES, PAPER_RUN)

LLM_SCORE = "thinkgeo.llm_score"
LLM_SCORE_CORRECTED = "thinkgeo.llm_score_corrected"

JUDGE_SYSTEM = "Only respond with 'Yes' or 'No'."
JUDGE_USER = (
    "Response: {answer}\nGiven the above response, answer the following question in Yes or No."
    "\nQuestion: {question}?"
)


def judge_prompt(answer: str, question: str) -> tuple[str, str]:
    """Return the system and the user message for one question about an answer."""
    return JUDGE_SYSTEM, JUDGE_USER.format(answer=answer, question=question.strip().rstrip("?"))


def _questions(record: Record, _: Rubrics | None) -> list[JudgeQuestion]:
    """Return ThinkGeo's questions about an answer, in its wording; every reply to a correct answer is yes.

    Each question occurs for two metrics: with ThinkGeo's parser (only ``yes`` counts), and with one that accepts
    ``Yes.`` and gives no grade to a reply that is neither yes nor no.
    """
    answer = (
        record.trajectory.answer_text
        if record.trajectory is not None and record.invalid is None
        else None
    )
    if answer is None or not answer.strip():
        return []
    prompt = prompt_hash(JUDGE_SYSTEM + JUDGE_USER)
    questions: list[JudgeQuestion] = []
    for slot in record.sample.answer:
        for number, question in enumerate(
            slot.questions if isinstance(slot, KeywordsSlot) else (), start=1
        ):
            system, user = judge_prompt(answer, question)
            for metric, read in (
                (LLM_SCORE, read_published_yes),
                (LLM_SCORE_CORRECTED, read_yes_no),
            ):
                questions.append(
                    JudgeQuestion(metric, f"{slot.name} {number}", system, user, prompt, 1, read, 3)
                )
    return questions


JUDGING = Judging(
    metrics={
        LLM_SCORE: JudgedMetric(has_questions, min),
        LLM_SCORE_CORRECTED: JudgedMetric(has_questions, min, replies_of=LLM_SCORE),
    },
    questions=_questions,
)


class Judgement(NamedTuple):
    """Replies of the judge on one answer. ``position``: position of the sample in the file, from 0."""

    position: int
    replies: tuple[str, ...]


_FORM = 'a log looks like [{"id": 0, "scores": ["yes", "no"]}, ...]'


def read_log(path: Path) -> tuple[list[Judgement], list[str]]:
    """Read the judgements of a log, and descriptions of its malformed parts.

    A sample with a malformed entry counts as not judged, and a reply that is not text counts as empty. If a sample has
    two entries, the first one counts.

    Raises:
        BenchmarkError: the file cannot be read, or holds no list of judgements.
    """
    data = read_json(path)
    if not is_list(data):
        raise BenchmarkError(f"{path.name} is no list of judgements", hint=_FORM)
    judgements: dict[int, Judgement] = {}
    malformed: list[str] = []
    for index, entry in enumerate(data):
        position: Any = entry.get("id") if is_object(entry) else None
        replies: Any = entry.get("scores") if is_object(entry) else None
        if type(position) is not int or not is_list(replies):
            malformed.append(f"{path.name}, entry {index} is no judgement")
        elif position in judgements:
            malformed.append(f"{path.name}, entry {index}: sample {position} is judged twice")
        else:
            if not all(map(is_text, replies)):
                malformed.append(f"{path.name}, entry {index}: a reply is no text")
            judgements[position] = Judgement(
                position, tuple(r if is_text(r) else "" for r in replies)
            )
    if data and not judgements:
        raise BenchmarkError(malformed[0], hint=_FORM)
    return list(judgements.values()), malformed


def score_end(
    samples: Sequence[Dialogue],
    similarity: Similarity | None = None,
    data: Mapping[str, Any] | None = None,
    judgements: Sequence[Judgement] | None = None,
) -> PredictionScores:
    """Compute the metrics of an end-to-end file, with ``llm_score`` from saved ``judgements``.

    That is the share of answers with only "yes" among all entries of ``data``, the whole data set, that have questions,
    answered or not.

    Raises:
        PublishedScorerStops: the original raises an exception.
    """
    scores = published_scorer.score_end(samples, RULES, similarity)
    if judgements is None or data is None:
        reason = (
            "needs saved judgements"
            if judgements is None
            else "needs the data set, whose questions it counts"
        )
        return replace(scores, left_out={**scores.left_out, LLM_SCORE: reason})
    with published("the data set"):
        n_judged = sum("evaluation" in entry for entry in data.values())
    passed = sum(all(reply == "yes" for reply in judgement.replies) for judgement in judgements)
    figure = Figure(passed / n_judged * 100 if n_judged else 0.0, n_judged)
    metrics = {**scores.metrics, LLM_SCORE: figure}
    return replace(scores, metrics=metrics, counts={**scores.counts, "judged": len(judgements)})


def with_llm_score(
    scores: PredictionScores, judgements: Sequence[Judgement], data: Mapping[str, Any]
) -> PredictionScores:
    """Return ``scores`` with :data:`LLM_SCORE_CORRECTED`, over all samples for which the data set has questions.

    A sample passes if there is a reply to each of its questions and every reply begins with yes; a sample that was not
    judged fails. ``scores`` has one sample for each entry of ``data``, in the same order.
    """
    replies_by_position = {judgement.position: judgement.replies for judgement in judgements}
    samples: list[SampleParts] = []
    for position, (sample, entry) in enumerate(zip(scores.samples, data.values(), strict=True)):
        questions: Any = entry.get("evaluation") if is_object(entry) else None
        if not is_list(questions) or not questions:
            samples.append(sample)
            continue
        replies = replies_by_position.get(position, ())
        passed = len(replies) >= len(questions) and all(
            read_yes_no(reply) == 1 for reply in replies
        )
        samples.append(
            replace(sample, parts={**sample.parts, LLM_SCORE_CORRECTED: ScoreSum(float(passed), 1)})
        )
    metrics = {**scores.metrics, **summed(samples, [LLM_SCORE_CORRECTED])}
    return replace(scores, metrics=metrics, samples=tuple(samples))


FORMAT = PredictionFormat(
    "ThinkGeo",
    "thinkgeo",
    partial(compare_dialogues, rules=RULES, judge=JudgeScorer(read_log, score_end, with_llm_score)),
    differences_of(FACTS, "thinkgeo"),
    write=partial(prediction_content, PAPER_RUN),
)
_tables = deferred("agrotools_benchmarks._dialogs.report:published_tables")
# Table A1 has the runs on radar images; no table has those on all images.
REPORTING = Reporting(
    tables=partial(_tables, "thinkgeo", table_layouts(FACTS), split_tables={"sar": "A1", "all": ""})
)
