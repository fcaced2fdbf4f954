"""Embedded benchmark: drawn scenes with questions for all agricultural tools."""
