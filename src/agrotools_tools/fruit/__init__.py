"""Fruit sizes from an image and its depth."""
