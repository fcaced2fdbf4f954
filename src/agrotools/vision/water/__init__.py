"""Standing water, and what became of it."""
