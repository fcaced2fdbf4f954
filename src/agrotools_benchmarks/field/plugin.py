"""Plug-in of the benchmark ``field``."""

from agrotools.core.registry import deferred
from agrotools.loading.facts import plugin_of, read_facts

_folder = deferred("agrotools_benchmarks.field.load:field_folder")
PLUGIN = plugin_of(
    read_facts(__file__),
    load=deferred("agrotools_benchmarks.field.load:load_field"),
    find=_folder,
    roots=lambda data_root: [_folder(data_root)],
)
