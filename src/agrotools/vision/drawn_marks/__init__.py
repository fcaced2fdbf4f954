"""Boxes, ellipses, polygons and arrows that people drew on photographs."""
