"""Plug-in of the benchmark ``field``."""

from agrotools.plugin import BenchmarkPlugin, Download, deferred

_folder = deferred("agrotools.benchmarks.field.load:field_folder")

PLUGIN = BenchmarkPlugin(
    name="field",
    about="questions on photographs of fields, leaves and fruit, all agricultural tools",
    needs="its photographs: agrotools data get field",
    load=deferred("agrotools.benchmarks.field.load:load_field"),
    takes_options=True,
    find=_folder,
    file_roots=lambda data_root: [_folder(data_root)],
    download=Download(
        "the public repositories of ten data sets",
        "as each data set states: docs/field.md",
        "field",
        "agrotools.benchmarks.field.photographs:get_field",
        18.2,
    ),
)
