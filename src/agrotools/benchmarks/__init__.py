"""Benchmarks: loading and validation, and a folder for each benchmark that ships with the package."""

from agrotools.benchmarks.benchmark import Benchmark, with_clusters
from agrotools.benchmarks.folder import load_folder
from agrotools.benchmarks.loading import Loading, load_benchmark
from agrotools.core import BENCHMARKS

__all__ = ["BENCHMARKS", "Benchmark", "Loading", "load_benchmark", "load_folder", "with_clusters"]
