"""Plug-in of the released AgroTools questions."""

from agrotools.plugin import BenchmarkPlugin, Download, ExpectedCount, deferred

_folder = deferred("agrotools.benchmarks.released.load:converted_folder")

PLUGIN = BenchmarkPlugin(
    name="agrotools",
    title="AgroTools",
    about="the 539 questions that the authors of AgroTools released; untested: we have had no access to these files",
    needs="DIR/agrotools/ with JSON or parquet files, huggingface.co/datasets/AgroTools/AgroTools",
    load=deferred("agrotools.benchmarks.released.load:load_released"),
    takes_options=True,
    find=deferred("agrotools.benchmarks.released.load:find_entries"),
    file_roots=lambda data_root: [_folder(data_root)],
    download=Download(
        "https://huggingface.co/datasets/AgroTools/AgroTools",
        "as its page at Hugging Face states",
        "agrotools",
    ),
    expected=(ExpectedCount("questions", 539, True, len),),
)
