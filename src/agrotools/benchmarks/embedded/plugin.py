"""Plug-in of the embedded benchmark."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.plugin import BenchmarkPlugin, deferred


def _find(_: Path | None) -> str:
    from agrotools.benchmarks.embedded.load import embedded_folder, is_intact

    folder = embedded_folder()
    return f"{folder}{'' if is_intact(folder) else ' (is drawn when it is first used)'}"


def _file_roots(_: Path | None) -> Sequence[Path]:
    from agrotools.benchmarks.embedded.load import embedded_folder

    folder = embedded_folder()
    return [folder] if folder.is_dir() else []


PLUGIN = BenchmarkPlugin(
    name="embedded",
    about="78 questions on drawn scenes, all agricultural tools",
    load=deferred("agrotools.benchmarks.embedded.load:load_embedded"),
    find=_find,
    file_roots=_file_roots,
)
