"""Analyses of several runs together."""
