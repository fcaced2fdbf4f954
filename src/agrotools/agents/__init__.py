"""Agents: policies that decide, and the loops that execute their decisions in each mode."""

from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import UNPARSEABLE_LIMIT, run_end_to_end, run_no_tool, run_single_shot, run_step_by_step
from agrotools.agents.policy import ModelAgent, Policy
from agrotools.agents.prompts import prompt_hash

__all__ = [
    "UNPARSEABLE_LIMIT",
    "LLMAgent",
    "ModelAgent",
    "Policy",
    "prompt_hash",
    "run_end_to_end",
    "run_no_tool",
    "run_single_shot",
    "run_step_by_step",
]
