"""Baseline policies without a model: upper and lower bounds for every result."""

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
