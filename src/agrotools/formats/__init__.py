"""Reading and writing of benchmark folders. Independent of how a benchmark is built or run."""
