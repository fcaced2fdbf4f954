"""Runs: configuration, execution, records, costs, judging and scoring of evaluations."""
