"""Writing a benchmark folder, whole or not at all."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agrotools.core import BenchmarkError, Sample
from agrotools.core.benchmark_header import BenchmarkHeader

HEADER_FILE, SAMPLES_FILE, FILES_FOLDER = "benchmark.toml", "samples.jsonl", "files"


def write_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write header and samples into ``folder``, whose ``files/`` are already there."""
    (folder / HEADER_FILE).write_text(header_toml(header), encoding="utf-8")
    lines = [
        sample.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=False, exclude={"cluster"})
        for sample in samples
    ]
    (folder / SAMPLES_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def header_toml(header: BenchmarkHeader) -> str:
    """The header as TOML."""
    import tomli_w

    return tomli_w.dumps(header.model_dump(mode="json", exclude_none=True))


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new folder beside ``target`` that takes its place when the block ends well, and is removed when it does not.

    Raises:
        BenchmarkError: ``target`` exists and is neither empty nor a benchmark, or its parent cannot be written.
    """
    check_replaceable(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise BenchmarkError(
            f"{target.parent} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
    try:
        made.chmod(0o755)
        yield made
        _swap(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def check_replaceable(target: Path) -> None:
    """Refuse to write over anything that is not a benchmark folder.

    Raises:
        BenchmarkError: ``target`` is a file or a link, or a folder that holds something else.
    """
    if not target.exists() and not target.is_symlink():
        return
    if target.is_symlink() or not target.is_dir():
        raise BenchmarkError(f"{target} is not a folder", hint="choose another --out")
    if any(target.iterdir()) and not (target / HEADER_FILE).is_file():
        raise BenchmarkError(
            f"{target} is not empty and not a benchmark; it is left as it is", hint="choose an empty or new folder"
        )


def _swap(made: Path, target: Path) -> None:
    """Rename ``made`` to ``target``. An older folder is moved aside for the blink between the two renames."""
    aside = made.with_name(f"{made.name}-old")
    if target.exists():
        target.replace(aside)
    try:
        made.replace(target)
    except OSError:
        if aside.exists():
            aside.replace(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
