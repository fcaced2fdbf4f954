"""Agents: policies that choose actions, and the loops that execute the actions in each mode."""
