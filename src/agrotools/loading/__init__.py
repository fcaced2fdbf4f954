"""From the name or folder of a benchmark to its samples: loading, downloading, validating and describing."""

from agrotools.core import BENCHMARKS
from agrotools.formats.benchmark import Benchmark, load_folder, with_clusters
from agrotools.loading.benchmarks import Loading, load_benchmark

__all__ = ["BENCHMARKS", "Benchmark", "Loading", "load_benchmark", "load_folder", "with_clusters"]
