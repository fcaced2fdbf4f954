"""AgriEval: what a model knows of agriculture, from examination questions in Chinese. No tools, no pictures.

The paper (arXiv 2507.21773) has 14,697 multiple-choice and 2,167 open questions; its repository publishes the open
ones, and 1,074 of the others. Sets in the same shape, in any language, and CMMLU's agronomy questions load alike.
"""

from agrotools.benchmarks.agrieval.files import find_files
from agrotools.benchmarks.agrieval.items import read_items
from agrotools.benchmarks.agrieval.samples import question_benchmark
from agrotools.benchmarks.agrieval.settings import QuestionSettings
from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.core.benchmark_header import SourceNote
from agrotools.formats.benchmark import Benchmark

AGRIEVAL = SourceNote(
    name="AgriEval",
    licence="Apache-2.0, and the AgriBench community licence: the questions for non-commercial use only",
    url="https://github.com/YanPioneer/AgriEval",
    citation="AgriEval (arXiv 2507.21773)",
)
CMMLU = SourceNote(
    name="CMMLU, agronomy",
    licence="CC BY-NC-SA 4.0",
    url="https://github.com/haonan-li/CMMLU",
    citation="Li et al. 2023, CMMLU (arXiv 2306.09212)",
)


def load_agrieval(loading: Loading) -> Benchmark:
    """The questions of AgriEval in ``data_root/agrieval`` (or ``data_root``), put as ``loading.options`` say.

    Raises:
        UsageError: an option that there is not, or a value that it cannot have.
        BenchmarkError: the files are not there or cannot be read.
    """
    return _load("agrieval", AGRIEVAL, loading)


def load_cmmlu_agronomy(loading: Loading) -> Benchmark:
    """The agronomy questions of CMMLU in ``data_root/cmmlu`` (or ``data_root``); raises as :func:`load_agrieval`."""
    return _load("cmmlu-agronomy", CMMLU, loading)


def _load(name: str, source: SourceNote, loading: Loading) -> Benchmark:
    settings = settings_of(QuestionSettings, name, loading.options)
    root, paths = find_files(name, loading.data_root, settings)
    files = [read_items(path) for path in paths]
    return question_benchmark(name, source, root, files, settings, loading.progress)


__all__ = ["QuestionSettings", "load_agrieval", "load_cmmlu_agronomy"]
