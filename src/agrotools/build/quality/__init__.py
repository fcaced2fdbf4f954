"""Checks of a benchmark's quality."""
