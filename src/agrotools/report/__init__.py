"""Reports: terminal tables of runs, comparisons of two runs, and explanations of single samples."""
