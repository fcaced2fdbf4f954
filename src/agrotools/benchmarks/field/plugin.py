"""Plug-in of the benchmark ``field``."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.plugin import BenchmarkPlugin, Download, deferred


def _find(data_root: Path | None) -> str:
    from agrotools.benchmarks.field.load import field_folder

    return str(field_folder(data_root))


def _file_roots(data_root: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks.field.load import field_folder

    return [field_folder(data_root)]


PLUGIN = BenchmarkPlugin(
    name="field",
    about="questions on photographs of fields, leaves and fruit, all agricultural tools",
    needs="its photographs: agrotools data get field",
    load=deferred("agrotools.benchmarks.field.load:load_field"),
    takes_options=True,
    find=_find,
    file_roots=_file_roots,
    download=Download(
        "the public repositories of ten data sets",
        "as each data set states: docs/field.md",
        "field",
        "agrotools.benchmarks.field.photographs:get_field",
        18.2,
    ),
)
