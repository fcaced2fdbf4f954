"""Benchmarks built: from drawn scenes, public data sets or photographs of one's own; checked, exported, reviewed."""
