"""A run in one small file, for ``gate``: what scoring reads, without the pictures that tools made and without pages.

A build keeps such a file of the last version that passed. It holds the records themselves, not their scores, so that
both versions are scored by the same rules, whichever they are by then.
"""

import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from agrotools.core import RunStoreError
from agrotools.core.errors import NoRunError
from agrotools.core.files import MANIFEST_FILE, RECORDS_FILE, remedy, temporary_sibling
from agrotools.runner.repeated_calls import REPEATED_CALLS_FILE
from agrotools.runner.rescore import EARLY_FILE, JUDGEMENTS_FILE, RUBRICS_PREFIX

ENDING = ".zip"
_KEPT = (MANIFEST_FILE, RECORDS_FILE, JUDGEMENTS_FILE, REPEATED_CALLS_FILE, EARLY_FILE)
"""Files of a run folder that its scores depend on; rubrics of judges are the only others."""
_MOST_BYTES = 4_000_000_000
"""Size of the content up to which a file is read. Records take some 15 kB each: these are more than 250,000."""
_SAME_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every file: the same run gives the same bytes, so that version control sees no change."""
_UNREADABLE = (
    OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError
)  # fmt: skip
"""What a damaged, encrypted or unusual archive raises."""


def is_saved_run(path: Path) -> bool:
    """Return True for a file with a run, and for its name if there is none."""
    return path.suffix.lower() == ENDING and not path.is_dir()


def save_run(run: Path, file: Path) -> None:
    """Write what the scores of ``run`` depend on into ``file``, whose name ends in ``.zip``.

    Raises:
        RunStoreError: the file cannot be written.
    """
    kept = [run / name for name in _KEPT] + sorted(run.glob(f"{RUBRICS_PREFIX}*"))
    try:
        with temporary_sibling(file) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for each in kept:
                if each.is_file():
                    entry = zipfile.ZipInfo(each.name, _SAME_DATE)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, each.read_bytes())
    except OSError as error:
        raise RunStoreError(
            f"cannot write {file}: {error.strerror or error}", hint=remedy(error)
        ) from error


@contextmanager
def opened_run(path: Path) -> Generator[Path]:
    """Yield the folder of a run: ``path`` itself, or the content of a file of :func:`save_run` for this while.

    Raises:
        NoRunError: there is no such file, or it holds no run.
        RunStoreError: the file cannot be read.
    """
    if not is_saved_run(path):
        yield path
        return
    with TemporaryDirectory(prefix="agrotools-run-") as folder:
        _unpack(path, Path(folder))
        yield Path(folder)


def _unpack(file: Path, folder: Path) -> None:
    """Write the known files of ``file`` into ``folder``: no other name of an archive is used as a path."""
    hint = "agrotools gate RUN --save FILE.zip writes such a file"
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise RunStoreError(f"{file} holds more than 4 GB, which no run is", hint=hint)
            for name in archive.namelist():
                is_rubrics = name.startswith(RUBRICS_PREFIX) and Path(name).name == name
                if name in _KEPT or is_rubrics:
                    (folder / name).write_bytes(archive.read(name))
    except FileNotFoundError as error:
        raise NoRunError(f"there is no file {file}", hint=hint) from error
    except _UNREADABLE as error:
        raise RunStoreError(f"{file} cannot be read: {error}", hint=hint) from error
    if not (folder / MANIFEST_FILE).is_file():
        raise NoRunError(f"{file} holds no run", hint=hint)
