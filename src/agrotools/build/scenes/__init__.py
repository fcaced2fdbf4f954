"""Procedural scenes: pictures drawn from nothing, whose truth is known pixel by pixel."""
