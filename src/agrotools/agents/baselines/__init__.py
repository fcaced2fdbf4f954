"""Baseline policies without a model: upper and lower bounds for every result."""

BASELINES = tuple("oracle perfect-tools planner planted:ABILITY[:SEED] prior guess random echo refuse".split())
"""Names that can follow ``baseline:``."""
