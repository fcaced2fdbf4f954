"""Pieces that the recipes of the recognising nets share."""
