"""Question sets of AgriEval and CMMLU's agronomy part: options, files of a folder, loaders."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agrotools.benchmarks.loading import Loading, settings_of
from agrotools.core import BenchmarkError, FrozenModel, UsageError
from agrotools.formats.benchmark import SourceNote

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark

AGRIEVAL_SOURCE = SourceNote(
    name="AgriEval",
    licence="Apache-2.0, and the AgriBench community licence: the questions for non-commercial use only",
    url="https://github.com/YanPioneer/AgriEval",
    citation="AgriEval (arXiv 2507.21773)",
)
CMMLU_SOURCE = SourceNote(
    name="CMMLU, agronomy",
    licence="CC BY-NC-SA 4.0",
    url="https://github.com/haonan-li/CMMLU",
    citation="Li et al. 2023, CMMLU (arXiv 2306.09212)",
)

Order = Literal["given", "shuffled", "later", "rotated"]


class QuestionSettings(FrozenModel):
    """The options of ``agrotools eval agrieval`` and of other sets of questions (``--option NAME=VALUE``)."""

    part: Literal["all", "choice", "question"] = "all"
    """Multiple choice, open questions, or both."""
    files: str = ""
    """Names of files in the folder, separated by commas; the main files, or what there is, if empty."""
    shots: Annotated[int, Field(ge=0, le=5)] = 0
    """Solved examples before each question, of the same kind."""
    examples: Path | None = None
    """File that the examples are taken from; the questions of other groups if not given."""
    cot: bool = False
    """Ask for reasoning before the answer."""
    retrieval: Path | None = None
    """Index of a corpus (``agrotools kb index``); the passages it finds stand before the question."""
    passages: Annotated[int, Field(ge=1, le=20)] = 3
    order: Order = "given"
    """Options as in the file, shuffled, with right ones moved to later places, or once in every rotation."""
    seed: int = 0
    language: Literal["zh", "en"] = "zh"
    """Of the prompts."""

    @property
    def label(self) -> str:
        """What reports call this setting: ``zero-shot``, ``5-shot``, ``cot``, ``retrieval, shuffled``..."""
        told = [f"{self.shots}-shot"] if self.shots else []
        told += ["cot"] if self.cot else []
        told += ["retrieval"] if self.retrieval else []
        told = told or ["zero-shot"]
        return ", ".join([*told, *([self.order] if self.order != "given" else [])])


def load_agrieval(loading: Loading) -> "Benchmark":
    """The questions of AgriEval in ``data_root/agrieval`` (or ``data_root``), put as ``loading.options`` say.

    Raises:
        UsageError: an option that there is not, or a value that it cannot have.
        BenchmarkError: the files are not there or cannot be read.
    """
    return _load("agrieval", AGRIEVAL_SOURCE, loading)


def load_cmmlu_agronomy(loading: Loading) -> "Benchmark":
    """The agronomy questions of CMMLU in ``data_root/cmmlu`` (or ``data_root``); raises as :func:`load_agrieval`."""
    return _load("cmmlu-agronomy", CMMLU_SOURCE, loading)


def _load(name: str, source: SourceNote, loading: Loading) -> "Benchmark":
    from agrotools.benchmarks.agrieval.items import read_items
    from agrotools.benchmarks.agrieval.samples import question_benchmark

    settings = settings_of(QuestionSettings, name, loading.options)
    root, paths = find_files(name, loading.data_root, settings)
    files = [read_items(path) for path in paths]
    return question_benchmark(name, source, root, files, settings, loading.progress)


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
