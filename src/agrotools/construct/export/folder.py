"""Writing a benchmark folder, whole or not at all."""

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agrotools.construct.export.card import write_card
from agrotools.construct.export.croissant import write_croissant
from agrotools.core import BenchmarkError, Sample
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.core.files import artifact_path

_SHA256 = re.compile(r"[0-9a-f]{64}")
HEADER_FILE, SAMPLES_FILE, FILES_FOLDER = "benchmark.toml", "samples.jsonl", "files"


def write_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write header and samples into ``folder``, whose ``files/`` are already there, and what describes them:
    the card (``README.md`` and ``card/``) and ``croissant.json``. Every line carries the header's canary GUID."""
    samples = tuple(sample.model_copy(update={"canary": header.canary}) for sample in samples)
    (folder / HEADER_FILE).write_text(header_toml(header), encoding="utf-8")
    lines = [
        sample.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=False, exclude={"cluster"})
        for sample in samples
    ]
    (folder / SAMPLES_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    describe_benchmark(folder, header, samples)


def describe_benchmark(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write the card and ``croissant.json`` of the benchmark in ``folder``, in place of older ones.

    Neither is part of the benchmark's content hash. A ``README.md`` of the user's own is left as it is.
    """
    samples = tuple(samples)
    write_card(folder, header, samples)
    write_croissant(folder, header, samples)


def copy_benchmark(root: Path, header: BenchmarkHeader, samples: Iterable[Sample], out: Path) -> None:
    """Write the benchmark whose files lie in ``root`` to the folder ``out`` with its card and ``croissant.json``, whole
    or not at all.

    Raises:
        BenchmarkError: as :func:`replacing`.
    """
    samples = tuple(samples)
    with replacing(out) as made:
        for path in dict.fromkeys(file.path for sample in samples for file in sample.files):
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, made / path)
        copy_artifacts(root, samples, made)
        write_benchmark(made, header, samples)


def copy_artifacts(root: Path, samples: Iterable[Sample], out: Path) -> None:
    """Copy what the reference calls of ``samples`` made, as far as ``root`` holds it: the review page shows it."""
    steps = (step for sample in samples if sample.reference for step in sample.reference.steps)
    for made in (artifact for step in steps if step.observation for artifact in step.observation.artifacts):
        # A hash that is none could lead out of the folder.
        if made.sha256 is None or not _SHA256.fullmatch(made.sha256):
            continue
        source, target = (artifact_path(folder, made.sha256, Path(made.name).suffix) for folder in (root, out))
        if source.is_file() and not source.is_symlink() and not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)


def header_toml(header: BenchmarkHeader) -> str:
    """The header as TOML."""
    import tomli_w

    return tomli_w.dumps(header.model_dump(mode="json", exclude_none=True))


@contextmanager
def replacing(target: Path, mark: str = HEADER_FILE, what: str = "a benchmark") -> Iterator[Path]:
    """A new folder beside ``target`` that takes its place when the block ends well, and is removed when it does not.

    Raises:
        BenchmarkError: as :func:`check_replaceable`; its parent cannot be written, or the disk is full.
    """
    check_replaceable(target, mark, what)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        made = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
        held = os.open(made, os.O_RDONLY)
    except OSError as error:
        raise BenchmarkError(
            f"{target.parent} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
    try:
        _lock(held)
        made.chmod(0o755)
        yield made
        _swap(made, target)
    except OSError as error:
        at = f" ({error.filename})" if error.filename else ""
        raise BenchmarkError(
            f"{target} could not be written: {error.strerror or error}{at}",
            hint="nothing was left behind; check that there is space and that the files can be read",
        ) from error
    finally:
        os.close(held)
        shutil.rmtree(made, ignore_errors=True)


def _prefix(target: Path) -> str:
    return f".{target.name}-building-"


def _lock(folder: int) -> bool:
    """Lock a folder for as long as this process lives; False where another one holds it, or locks are unknown."""
    try:
        import fcntl

        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_abandoned(target: Path) -> None:
    """Remove what builds of ``target`` left that were killed: nobody holds the lock on their folder any more."""
    for left in target.parent.glob(f"{glob.escape(_prefix(target))}????????"):
        with suppress(OSError):
            held = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if _lock(held):
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(held)


def check_replaceable(target: Path, mark: str = HEADER_FILE, what: str = "a benchmark") -> None:
    """Refuse to write over anything that is not ``what``, a folder that holds the file ``mark``.

    Raises:
        BenchmarkError: ``target`` is a file or a link, or a folder that holds something else.
    """
    if not target.exists() and not target.is_symlink():
        return
    if target.is_symlink() or not target.is_dir():
        raise BenchmarkError(f"{target} is not a folder", hint="choose another --out")
    if any(target.iterdir()) and not (target / mark).is_file():
        raise BenchmarkError(
            f"{target} is not empty and not {what}; it is left as it is", hint="choose an empty or new folder"
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
