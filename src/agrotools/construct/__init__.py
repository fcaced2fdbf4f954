"""Builds benchmarks: scenes, sources, questions, reference trajectories, export."""
