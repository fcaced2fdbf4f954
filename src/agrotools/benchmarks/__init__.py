"""Loading and validation of benchmarks, and one package for each benchmark that ships with agrotools."""

from agrotools.benchmarks.loading import Loading, load_benchmark
from agrotools.core import BENCHMARKS
from agrotools.formats.benchmark import Benchmark, load_folder, with_clusters

__all__ = ["BENCHMARKS", "Benchmark", "Loading", "load_benchmark", "load_folder", "with_clusters"]
