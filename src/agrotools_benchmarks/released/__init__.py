"""Benchmark ``agrotools``: the questions that the authors of AgroTools released, read by a field map."""
