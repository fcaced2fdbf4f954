"""Counting of objects: fruits, plants, trees, spots."""
