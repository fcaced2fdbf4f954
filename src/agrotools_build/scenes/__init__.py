"""Procedural scenes: drawn pictures whose truth is known pixel by pixel."""
