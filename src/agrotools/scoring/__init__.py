"""Scoring of records: score rows, and metrics with intervals from them. It needs no network and no optional extra."""

from agrotools.scoring.aggregate import RunAggregator, summarise
from agrotools.scoring.comparisons import compare
from agrotools.scoring.metrics import METRICS, scores_sample
from agrotools.scoring.slots import SlotScore, outcome_scores, score_record, score_slot
from agrotools.scoring.statistics import Estimate, Interval
from agrotools.scoring.summary import (
    Amount,
    CallRatio,
    Comparison,
    Correlation,
    Metric,
    ModeSummary,
    PublishedFigures,
    Summary,
)

__all__ = [
    "METRICS",
    "Amount",
    "CallRatio",
    "Comparison",
    "Correlation",
    "Estimate",
    "Interval",
    "Metric",
    "ModeSummary",
    "PublishedFigures",
    "RunAggregator",
    "SlotScore",
    "Summary",
    "compare",
    "outcome_scores",
    "score_record",
    "score_slot",
    "scores_sample",
    "summarise",
]
