"""Scoring: from records to score rows, from rows to metrics with intervals. Pure; no network, no optional extra."""

from agrotools.plugin import MetricInfo
from agrotools.scoring.aggregate import RunAggregator, compare, summarise
from agrotools.scoring.metrics import METRICS, stands_for_sample
from agrotools.scoring.slots import SlotScore, outcome_scores, score_record, score_slot
from agrotools.scoring.statistics import Estimate, Interval, estimate_difference, estimate_mean
from agrotools.scoring.summary import (
    Amount,
    CallRatio,
    Comparison,
    Correlation,
    Counts,
    Invalid,
    Metric,
    ModeSummary,
    NoToolPart,
    PublishedFigures,
    Summary,
)

__all__ = [
    "METRICS",
    "Amount",
    "CallRatio",
    "Comparison",
    "Correlation",
    "Counts",
    "Estimate",
    "Interval",
    "Invalid",
    "Metric",
    "MetricInfo",
    "ModeSummary",
    "NoToolPart",
    "PublishedFigures",
    "RunAggregator",
    "SlotScore",
    "Summary",
    "compare",
    "estimate_difference",
    "estimate_mean",
    "outcome_scores",
    "score_record",
    "score_slot",
    "stands_for_sample",
    "summarise",
]
