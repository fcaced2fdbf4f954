"""Plug-in of the released AgroTools questions."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.core import AgrotoolsError
from agrotools.plugin import BenchmarkPlugin, Download, ExpectedCount, deferred


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks.released.load import find_entries

    return str(find_entries(data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks.released.load import converted_folder

    try:
        return [converted_folder(data_root)]
    except AgrotoolsError:
        return []


PLUGIN = BenchmarkPlugin(
    name="agrotools",
    title="AgroTools",
    about="the 539 questions that the authors of AgroTools released; read by a field map, never seen here",
    needs="DIR/agrotools/ with JSON or parquet files, huggingface.co/datasets/AgroTools/AgroTools",
    load=deferred("agrotools.benchmarks.released.load:load_released"),
    takes_options=True,
    find=_find,
    file_roots=_file_roots,
    download=Download(
        "https://huggingface.co/datasets/AgroTools/AgroTools",
        "as its page at Hugging Face states",
        "agrotools",
    ),
    expected=(ExpectedCount("questions", 539, True, len),),
)
