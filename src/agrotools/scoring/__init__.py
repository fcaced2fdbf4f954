"""Scoring of records: score rows, and metrics with intervals from them. It needs no network and no optional extra."""

from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import compare
from agrotools.scoring.metrics import METRICS, scores_sample
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import Comparison, Metric, ModeSummary, Summary

__all__ = [
    "METRICS",
    "Comparison",
    "Estimate",
    "Metric",
    "ModeSummary",
    "RunAggregator",
    "Summary",
    "compare",
    "score_record",
    "scores_sample",
]
