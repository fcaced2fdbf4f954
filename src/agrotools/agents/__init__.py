"""Agents: policies that decide, and the loops that carry decisions out in each mode."""

from agrotools.agents.end_to_end import UNPARSEABLE_LIMIT, run_end_to_end
from agrotools.agents.llm import LLMAgent
from agrotools.agents.no_tool import run_no_tool
from agrotools.agents.policy import ModelAgent, Policy
from agrotools.agents.prompts import prompt_hash
from agrotools.agents.step_by_step import run_step_by_step

__all__ = [
    "UNPARSEABLE_LIMIT",
    "LLMAgent",
    "ModelAgent",
    "Policy",
    "prompt_hash",
    "run_end_to_end",
    "run_no_tool",
    "run_step_by_step",
]
