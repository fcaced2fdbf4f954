"""Plug-ins of the packed benchmarks of drawn scenes."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agrotools.plugin import BenchmarkPlugin, deferred


def _folder(name: str) -> Path:
    from agrotools.benchmarks.embedded.load import folder_of
    from agrotools.benchmarks.pack import read_pack

    return folder_of(read_pack(name))


def _find(name: str) -> Callable[[Path | None], str]:
    def find(_: Path | None) -> str:
        folder = _folder(name)
        return f"{folder}{'' if folder.is_dir() else ' (is drawn when it is first used)'}"

    return find


def _file_roots(name: str) -> Callable[[Path | None], Sequence[Path]]:
    def roots(_: Path | None) -> Sequence[Path]:
        folder = _folder(name)
        return [folder] if folder.is_dir() else []

    return roots


EMBEDDED = BenchmarkPlugin(
    name="embedded",
    about="questions on drawn scenes that the tools of the package can answer, all agricultural tools",
    load=deferred("agrotools.benchmarks.embedded.load:load_embedded"),
    find=_find("embedded"),
    file_roots=_file_roots("embedded"),
)
FRONTIER = BenchmarkPlugin(
    name="frontier",
    about="questions on drawn scenes that the tools of the package get wrong: what better tools would win",
    load=deferred("agrotools.benchmarks.embedded.load:load_frontier"),
    find=_find("frontier"),
    file_roots=_file_roots("frontier"),
)
