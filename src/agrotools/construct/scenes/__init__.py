"""Procedural scenes: pictures drawn from nothing, whose truth is known pixel by pixel."""

from agrotools.construct.scenes.rows import class_counts, make_scene
from agrotools.construct.scenes.scene import Scene

__all__ = ["Scene", "class_counts", "make_scene"]
