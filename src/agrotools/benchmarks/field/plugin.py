"""Plug-in of the benchmark ``field``."""

from agrotools.benchmarks.facts import plugin_of, read_facts
from agrotools.core.registry import deferred

_folder = deferred("agrotools.benchmarks.field.load:field_folder")
PLUGIN = plugin_of(
    read_facts(__file__),
    load=deferred("agrotools.benchmarks.field.load:load_field"),
    find=_folder,
    roots=lambda data_root: [_folder(data_root)],
)
