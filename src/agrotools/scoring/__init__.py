"""Scoring of records: score rows, and metrics with intervals from them. It needs no network and no optional extra."""

from agrotools.scoring.aggregate import RunAggregator
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
