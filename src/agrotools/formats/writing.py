"""Writing of benchmark folders: header and samples, and atomic replacement of a folder."""

import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agrotools.core import BenchmarkError, Sample
from agrotools.core.files import write_whole
from agrotools.formats.benchmark import (
    CARD_FILE,
    CROISSANT_FILE,
    FILES_FOLDER,
    HEADER_FILE,
    QUALITY_FILE,
    SAMPLES_FILE,
    BenchmarkHeader,
)

AGREEMENT_FILE = "agreement.csv"
"""Table of own photos: what the table says of each photo, and what the tool returned."""
_BUILT = {HEADER_FILE, SAMPLES_FILE, CARD_FILE, CROISSANT_FILE, QUALITY_FILE, FILES_FOLDER}
_BUILT |= {"traces.jsonl", "artifacts", "labels.jsonl", AGREEMENT_FILE}
"""Entries of a benchmark folder that every build writes anew."""

_CANARIES = uuid.UUID("5d0c7a3e-6c1f-4b57-9a64-0b1f2f6f7a11")


def canary_of(name: str, version: str) -> str:
    """Return the canary GUID of a benchmark, which is the same for every build."""
    return str(uuid.uuid5(_CANARIES, f"{name} {version}"))


def header_toml(header: BenchmarkHeader) -> str:
    """Return the header as TOML."""
    import tomli_w

    return tomli_w.dumps(
        header.model_dump(
            mode="json", exclude_none=True, exclude=None if header.quick else {"quick"}
        )
    )


def write_samples(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write ``benchmark.toml`` and ``samples.jsonl`` into ``folder``, with the clusters that samples name."""
    write_whole(folder / HEADER_FILE, header_toml(header).encode(), synced=False)
    lines = (sample.model_dump_json(by_alias=True, exclude_none=True) for sample in samples)
    write_whole(
        folder / SAMPLES_FILE, "".join(f"{line}\n" for line in lines).encode(), synced=False
    )


@contextmanager
def replace_folder(
    target: Path, mark: str = HEADER_FILE, what: str = "a benchmark"
) -> Iterator[Path]:
    """Create a temporary folder next to ``target`` that replaces it if the block succeeds and is removed if it fails.

    What users added to an older benchmark (the decisions of a review, notes) is moved to the new folder.

    Raises:
        BenchmarkError: raised by :func:`check_replaceable`; or the parent folder is not writable, or the disk is full.
    """
    check_replaceable(target, mark, what)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-building-", dir=target.parent))
    except OSError as error:
        fault = f"{target.parent} cannot be written: {error.strerror}"
        raise BenchmarkError(fault, hint="choose another --out") from error
    try:
        folder.chmod(0o755)
        yield folder
        _swap(folder, target, keep_additions=mark == HEADER_FILE)
    except OSError as error:
        at = f" ({error.filename})" if error.filename else ""
        raise BenchmarkError(
            f"{target} could not be written: {error.strerror or error}{at}",
            hint="nothing was written; check the space on the disk and that the files can be read",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_replaceable(target: Path, mark: str = HEADER_FILE, what: str = "a benchmark") -> None:
    """Refuse to overwrite anything but ``what``, a folder that contains the file ``mark``.

    Raises:
        BenchmarkError: ``target`` is a file or a link, or a folder that contains something else.
    """
    if not target.exists() and not target.is_symlink():
        return
    if target.is_symlink() or not target.is_dir():
        raise BenchmarkError(f"{target} is not a folder", hint="choose another --out")
    if any(target.iterdir()) and not (target / mark).is_file():
        fault = f"{target} is not empty and not {what}; it was not changed"
        raise BenchmarkError(fault, hint="choose an empty or new folder")


def _swap(folder: Path, target: Path, keep_additions: bool) -> None:
    """Rename ``folder`` to ``target``. An older folder is moved aside between the two renames."""
    aside = folder.with_name(f"{folder.name}-old")
    if target.exists():
        target.replace(aside)
    try:
        folder.replace(target)
    except OSError:
        if aside.exists():
            aside.replace(target)
        raise
    if keep_additions and aside.is_dir():
        for entry in aside.iterdir():
            if entry.name not in _BUILT and not (target / entry.name).exists():
                entry.replace(target / entry.name)
    shutil.rmtree(aside, ignore_errors=True)
