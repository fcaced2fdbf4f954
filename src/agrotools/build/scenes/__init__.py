"""Procedural scenes: pictures drawn from nothing, whose truth is known pixel by pixel."""

from agrotools.build.scenes.rows import class_counts, make_scene
from agrotools.build.scenes.scene import Scene

__all__ = ["Scene", "class_counts", "make_scene"]
