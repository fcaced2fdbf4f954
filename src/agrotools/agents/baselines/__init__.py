"""Baseline policies without a model: upper and lower bounds for every result."""

from agrotools.agents.baselines.planner import PlannerPolicy, PlanTable
from agrotools.agents.baselines.planted import Planted, PlantedPolicy
from agrotools.agents.baselines.prior import PriorPolicy, PriorTable
from agrotools.agents.baselines.simple import (
    EchoPolicy,
    GuessPolicy,
    OraclePolicy,
    RandomPolicy,
    RefusePolicy,
    ReplayPolicy,
    RightAnswerPolicy,
    TruthTools,
)

BASELINES = (
    "oracle",
    "perfect-tools",
    "planner",
    "planted:ABILITY[:SEED]",
    "prior",
    "guess",
    "random",
    "echo",
    "refuse",
)
"""Names that can follow ``baseline:``."""
