"""Plug-in of the released AgroTools questions."""

from agrotools.core.registry import deferred
from agrotools.loading.facts import plugin_of, read_facts

_folder = deferred("agrotools_benchmarks.released.load:converted_folder")
PLUGIN = plugin_of(
    read_facts(__file__),
    load=deferred("agrotools_benchmarks.released.load:load_released"),
    find=deferred("agrotools_benchmarks.released.load:find_folder"),
    propose=deferred("agrotools_benchmarks.released.load:propose_map"),
    check=deferred("agrotools_benchmarks.released.load:check_released"),
    roots=lambda data_root: [_folder(data_root)],
)
