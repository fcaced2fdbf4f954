"""Files on disk: benchmark folders, read and written. No knowledge of how a benchmark is built or run."""
