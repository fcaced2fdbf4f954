"""Plug-in of the released AgroTools questions."""

from pathlib import Path

from agrotools.core.registry import deferred
from agrotools.loading.facts import plugin_of, read_facts


def _roots(data_root: Path | None) -> list[Path]:
    from agrotools_benchmarks.released.load import converted_folder

    return [converted_folder(data_root)]


PLUGIN = plugin_of(
    read_facts(__file__),
    load=deferred("agrotools_benchmarks.released.load:load_released"),
    find=deferred("agrotools_benchmarks.released.load:find_folder"),
    propose=deferred("agrotools_benchmarks.released.load:propose_map"),
    check=deferred("agrotools_benchmarks.released.load:check_released"),
    roots=_roots,
)
