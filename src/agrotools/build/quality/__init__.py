"""Checks of a benchmark's quality, and screening with baselines."""
