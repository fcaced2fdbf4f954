"""The run store: a folder with a manifest, one line per finished sample, and artifacts by content.

``records.jsonl`` is append-only. A line is written at once and synced to disk each second; a torn last line (the
process was killed while writing) is cut off when the run is opened again. The last record of a key counts.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO

import orjson
from pydantic import ValidationError

from agrotools.core import Observation, Record, RunStoreError
from agrotools.runner.manifest import Manifest, differences, merged
from agrotools.runner.plan import Key

_SYNC_EVERY_S = 1.0


class RunStore:
    """An open run folder, held by one process at a time.

    Raises:
        RunStoreError: the folder is held by another process, belongs to another run, or cannot be written.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        with ExitStack() as undo:
            try:
                _refuse_foreign(folder)
                (folder / "artifacts").mkdir(parents=True, exist_ok=True)
                self._lock = undo.enter_context(_hold(folder))
                self.scratch = _emptied(folder / ".scratch")
                self.manifest = _agree(folder, manifest)
                write_whole(folder / "manifest.json", _pretty(self.manifest))
                self.finished: set[Key] = _recover(folder / "records.jsonl")
                self._lines = (folder / "records.jsonl").open("ab", buffering=0)
            except OSError as error:
                raise RunStoreError(
                    f"cannot write the run folder {folder}: {error.strerror or error}",
                    hint="choose another folder with --out, or free some space",
                ) from error
            undo.pop_all()
        self._synced = time.monotonic()

    def append(self, record: Record) -> None:
        """Write one record. It is handed to the operating system before this returns, synced each second.

        Raises:
            RunStoreError: it cannot be written; what was written before stays.
        """
        try:
            line = memoryview(_line(record))
        except orjson.JSONEncodeError as error:
            # What no file can hold (text that is no Unicode) must not cost the other samples.
            kept = {"trajectory": None, "actions": None, "invalid": f"the record cannot be stored: {error}"}
            record = record.model_copy(update=kept)
            line = memoryview(_line(record))
        with self._writing():
            while line:
                line = line[self._lines.write(line) :]
            if time.monotonic() - self._synced >= _SYNC_EVERY_S:
                os.fsync(self._lines.fileno())
                self._synced = time.monotonic()
        if record.invalid is None:
            self.finished.add(record.key)

    def keep_artifacts(self, observation: Observation, folder: Path) -> None:
        """Move what a call wrote into ``folder`` to ``artifacts/``, named by content, if it is not there yet."""
        for artifact in observation.artifacts:
            made = folder / artifact.name
            if artifact.sha256 is None or not made.is_file():
                continue
            kept = artifact_path(self.folder, artifact.sha256, made.suffix)
            with self._writing():
                if not kept.exists():
                    temporary = kept.with_name(f".{kept.name}.{os.getpid()}")
                    shutil.copyfile(made, temporary)
                    temporary.replace(kept)

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise RunStoreError(
                f"cannot write to the run folder {self.folder}: {error.strerror or error}",
                hint="free some space and give the same command again: what has finished is kept",
            ) from error

    def close(self) -> None:
        try:
            os.fsync(self._lines.fileno())
        finally:
            self._lines.close()
            shutil.rmtree(self.scratch, ignore_errors=True)
            self._lock.close()

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _line(record: Record) -> bytes:
    return orjson.dumps(record.model_dump(mode="json", by_alias=True)) + b"\n"


def artifact_path(run: Path, sha256: str, suffix: str) -> Path:
    """Where an artifact of a run lies."""
    return run / "artifacts" / f"{sha256}{suffix}"


def read_manifest(run: Path) -> Manifest:
    """The manifest of a run folder.

    Raises:
        RunStoreError: no run there, or not one this version can read.
    """
    path = run / "manifest.json"
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise RunStoreError(
            f"{run} is not a run folder (no manifest.json)", hint="give the folder that agrotools eval printed"
        ) from error
    except (OSError, ValidationError) as error:
        raise RunStoreError(
            f"the manifest of {run} cannot be read: {str(error).splitlines()[0]}",
            hint="the run was made by another version, or the file was altered",
        ) from error


def read_records(run: Path) -> list[Record]:
    """The records of a run, one per key (the last one written counts), by mode, sample and epoch.

    The order is not that of writing: which sample ends first is chance, and resampled intervals follow the order.
    """
    latest = _latest(run / "records.jsonl")
    return [latest[key] for key in sorted(latest)]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _latest(path: Path) -> dict[Key, Record]:
    latest: dict[Key, Record] = {}
    for record in _records(path):
        latest[record.key] = record
    return latest


def _records(path: Path) -> Iterator[Record]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunStoreError(f"{path} cannot be read: {error.strerror}", hint="make it a file you may read") from error
    with file as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return  # torn: the writer was killed in the middle of this line
            try:
                yield Record.model_validate(orjson.loads(line))
            except (orjson.JSONDecodeError, ValidationError) as error:
                raise RunStoreError(
                    f"{path}, line {number} is not a record: {str(error).splitlines()[0]}",
                    hint="remove that line to go on without it",
                ) from error


def _recover(path: Path) -> set[Key]:
    """Cut off a torn last line and return the keys of the finished records."""
    if not path.exists():
        return set()
    finished = {record.key for record in _latest(path).values() if record.invalid is None}
    with path.open("rb+") as lines:
        whole = _end_of_last_line(lines)
        lines.truncate(whole)
    return finished


def _end_of_last_line(lines: IO[bytes]) -> int:
    """Offset just behind the last line break."""
    size = lines.seek(0, os.SEEK_END)
    block = 1 << 16
    end = size
    while end > 0:
        start = max(0, end - block)
        lines.seek(start)
        at = lines.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def _hold(folder: Path) -> IO[str]:
    """An exclusive lock on the run, given back when the process ends in whatever way."""
    lock = (folder / ".lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise RunStoreError(
            f"the run {folder} is in use by process {holder}", hint="wait for it, or choose another folder with --out"
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _refuse_foreign(folder: Path) -> None:
    """Nothing is written into, or cut off in, a folder that holds something else than a run."""
    if not folder.is_dir() or (folder / "manifest.json").exists():
        return
    of_a_start = {"artifacts", ".lock", ".scratch"}
    foreign = [entry.name for entry in folder.iterdir() if entry.name not in of_a_start]
    if any(not name.startswith(".manifest.json.") for name in foreign):
        raise RunStoreError(
            f"{folder} is neither empty nor a run folder (no manifest.json); it is left as it is",
            hint="choose an empty or new folder with --out",
        )


def _emptied(folder: Path) -> Path:
    """A place for files that nobody needs after the run; what a killed process left there goes first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _agree(folder: Path, manifest: Manifest) -> Manifest:
    if not (folder / "manifest.json").exists():
        return manifest
    old = read_manifest(folder)
    changed = differences(old, manifest)
    records = folder / "records.jsonl"
    if changed and not (records.exists() and records.stat().st_size):
        return manifest  # A command that was refused before its first record (a wrong model name, say) binds nobody.
    if changed:
        raise RunStoreError(
            f"{folder} holds a run with another configuration: {'; '.join(changed)}",
            hint="choose another folder with --out, or remove this one",
        )
    return merged(old, manifest)


def _pretty(manifest: Manifest) -> bytes:
    return orjson.dumps(manifest.model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n"
