"""Policies without a model: ceilings and floors to compare every result with."""

from agrotools.agents.baselines.planner import PlannerPolicy, PlanTable
from agrotools.agents.baselines.prior import PriorPolicy, PriorTable
from agrotools.agents.baselines.simple import (
    EchoPolicy,
    GuessPolicy,
    OraclePolicy,
    RandomPolicy,
    ReplayPolicy,
    RightAnswerPolicy,
    TruthTools,
)

BASELINES = ("oracle", "perfect-tools", "planner", "prior", "guess", "random", "echo")
"""Names after ``baseline:``."""

__all__ = [
    "BASELINES",
    "EchoPolicy",
    "GuessPolicy",
    "OraclePolicy",
    "PlanTable",
    "PlannerPolicy",
    "PriorPolicy",
    "PriorTable",
    "RandomPolicy",
    "ReplayPolicy",
    "RightAnswerPolicy",
    "TruthTools",
]
