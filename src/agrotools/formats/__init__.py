"""Reading and writing of benchmark folders, independent of how benchmarks are built or run."""
