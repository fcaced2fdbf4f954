"""Procedural scenes: pictures drawn from nothing, whose truth is known pixel by pixel."""

from agrotools.construct.scenes.rows import Scene, class_counts, make_scene

__all__ = ["Scene", "class_counts", "make_scene"]
