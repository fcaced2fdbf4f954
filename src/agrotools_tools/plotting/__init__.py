"""Figures from data and a declarative specification."""
