"""Plug-in of the released AgroTools questions."""

from agrotools.benchmarks.facts import plugin_of, read_facts
from agrotools.core.registry import deferred

_folder = deferred("agrotools.benchmarks.released.load:converted_folder")
PLUGIN = plugin_of(
    read_facts(__file__),
    load=deferred("agrotools.benchmarks.released.load:load_released"),
    find=deferred("agrotools.benchmarks.released.load:find_folder"),
    propose=deferred("agrotools.benchmarks.released.load:propose_map"),
    check=deferred("agrotools.benchmarks.released.load:check_released"),
    roots=lambda data_root: [_folder(data_root)],
)
