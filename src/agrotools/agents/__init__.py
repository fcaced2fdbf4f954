"""Agents: policies that choose actions, and the loops that execute the actions in each mode."""

from agrotools.agents.llm import LLMAgent, prompt_hash
from agrotools.agents.modes import (
    UNPARSEABLE_LIMIT,
    ModelAgent,
    Policy,
    run_end_to_end,
    run_no_tool,
    run_single_shot,
    run_step_by_step,
)
