"""Building of benchmarks from drawn scenes, public data sets or a user's own photographs; checks, export and review."""
