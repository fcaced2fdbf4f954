"""Files of other programs: their answers as runs of a benchmark, and runs as the files of published scorers."""
