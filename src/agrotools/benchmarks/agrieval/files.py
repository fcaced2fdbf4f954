"""Which files of a folder a set of questions is read from."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.benchmarks.agrieval.settings import QuestionSettings
from agrotools.core import BenchmarkError, UsageError

_GET_IT = {
    "agrieval": "github.com/YanPioneer/AgriEval, folder Dataset (mind the licence beside it)",
    "cmmlu-agronomy": "github.com/haonan-li/CMMLU, data/test/agronomy.csv",
}
_FOLDERS = {"agrieval": ("agrieval", "AgriEval/Dataset", "AgriEval", "Dataset"), "cmmlu-agronomy": ("cmmlu", "CMMLU")}
_VARIANTS = ("(main)", "(rag)", "(shuffle)")
"""In the order in which they are taken where a set lies there in several."""


def find_files(name: str, data_root: Path | None, settings: QuestionSettings) -> tuple[Path, list[Path]]:
    """The folder of the set ``name`` and its files: those that ``settings`` name, or one for each part of the set.

    Raises:
        UsageError: no folder was given, or a file that is named is not there.
        BenchmarkError: the folder is not there or holds no such file.
    """
    if data_root is None:
        raise UsageError(f"where are the files of {name}?", hint=f"--data-root DIR; to be had from {_GET_IT[name]}")
    data_root = data_root.expanduser()
    root = next((data_root / each for each in _FOLDERS[name] if (data_root / each).is_dir()), data_root)
    if not root.is_dir():
        raise BenchmarkError(f"there is no folder {root}", hint=f"put there what is to be had from {_GET_IT[name]}")
    if settings.files:
        return root, [_named(root, each.strip()) for each in settings.files.split(",") if each.strip()]
    there = sorted(path for path in root.iterdir() if path.suffix.lower() in (".json", ".csv") and path.is_file())
    if name == "cmmlu-agronomy":
        found = [path for path in there if "agronomy" in path.name.lower()][:1]
    else:
        parts = [part for part in ("choice", "question") if settings.part in ("all", part)]
        found = list(dict.fromkeys(path for part in parts if (path := _preferred(there, part))))
    if not found:
        raise BenchmarkError(
            f"{root} holds no file of {name}",
            hint=f"put there what is to be had from {_GET_IT[name]}, or name files with --option files=NAME",
        )
    return root, found


def _named(root: Path, name: str) -> Path:
    path = root / name
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}", hint="--option files= takes names in the folder, with commas between"
        )
    return path


def _preferred(paths: Sequence[Path], part: str) -> Path | None:
    own = [path for path in paths if part in path.name.lower()]
    ranked = sorted(own, key=lambda path: next((i for i, each in enumerate(_VARIANTS) if each in path.name), 9))
    return ranked[0] if ranked else None
