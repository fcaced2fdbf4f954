"""Benchmarks that ship with agrotools, a folder each; what they add to the engine is in ``table``."""
