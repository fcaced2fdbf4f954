"""Tools that measure objects: sizes, counts, marked parts, plants."""
