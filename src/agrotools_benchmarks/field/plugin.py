"""Plug-in of the benchmark ``field``."""

from pathlib import Path

from agrotools.core.registry import deferred
from agrotools.loading.facts import plugin_of, read_facts


def _roots(data_root: Path | None) -> list[Path]:
    from agrotools_benchmarks.field.load import field_folder

    return [field_folder(data_root)]


PLUGIN = plugin_of(
    read_facts(__file__),
    load=deferred("agrotools_benchmarks.field.load:load_field"),
    find=deferred("agrotools_benchmarks.field.load:field_folder"),
    roots=_roots,
)
