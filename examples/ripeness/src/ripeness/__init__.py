"""Ripeness: an example of a benchmark that a package of somebody else adds to agrotools."""
