"""Scorers of published benchmarks as their code has them, to the digit, bugs included."""
