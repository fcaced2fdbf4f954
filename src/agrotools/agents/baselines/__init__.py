"""Baseline policies without a model: upper and lower bounds for every result."""

BASELINES = ("oracle", "perfect-tools", "planner", "guess", "constant", "colours", "refuse")
"""Names that can follow ``baseline:`` and that users are told. Others are for developers: docs/extending.md."""

FLOORS = {"guess": "agrotools.agents.baselines.guess:PROMPT_FLOOR"}
"""Floors that scoring may ask for (:mod:`agrotools.scoring.floors`): target of each, by name."""
