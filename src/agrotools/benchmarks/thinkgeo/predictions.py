"""Prediction files that ThinkGeo's evaluation writes, and the log of its judge."""

from collections.abc import Mapping, Sequence
from typing import Any

from agrotools.benchmarks._dialogs.predictions import IMAGES, JudgeScorer, compare_dialogues, differences_of
from agrotools.benchmarks._dialogs.published_scorer import Dialogue
from agrotools.benchmarks.thinkgeo.judge import Judgement, read_log
from agrotools.benchmarks.thinkgeo.score import RULES, score_end, with_llm_score
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import Compared, Scores, Similarity


def _published(
    samples: Sequence[Dialogue],
    similarity: Similarity | None,
    data: Mapping[str, Any] | None,
    log: Sequence[Judgement] | None,
) -> Scores:
    return score_end(samples, similarity, data=data, judgements=log)


def _compare(given: PredictionInput) -> Compared:
    return compare_dialogues(given, RULES, JudgeScorer(read_log, _published, with_llm_score))


FORMAT = PredictionFormat(
    "ThinkGeo",
    "thinkgeo",
    _compare,
    differences_of(RULES, ans_i=IMAGES, llm_score="a reply may say more than yes"),
)
