"""Run store: a folder with a manifest, one line per finished sample, artifacts by content hash, and prompts.

``records.jsonl`` is append-only. A line is written immediately and synced to disk within a second; an incomplete last
line after a crash is removed when the run is opened again (:func:`agrotools.runner.records.recover`).
"""

import asyncio
import errno
import filecmp
import os
import shutil
import socket
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout
from pydantic import ValidationError

from agrotools.core import Observation, Record, RunStoreError, first_error
from agrotools.core.errors import NoRunError
from agrotools.core.files import (
    MANIFEST_COPY,
    MANIFEST_FILE,
    Journal,
    artifact_path,
    copy_whole,
    is_full,
    remedy,
    sync,
    temporary_sibling,
)
from agrotools.formats.manifest import (
    FORMAT,
    Manifest,
    differences,
    manifest_json,
    merged,
    parse_manifest,
    sum_setup,
    sum_usage,
)
from agrotools.runner.prompts import PromptLog, Request
from agrotools.runner.records import RECORDS_FILE, Key, recover

LOCK_FILE = ".lock"
AGENT_LOG = "agent.log"
"""What a Python function or a program that is evaluated as an agent printed, by sample."""
_ARTIFACTS = "artifacts"
_SCRATCH = ".scratch"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class RunStore:
    """An open run folder, used by one process at a time.

    ``opened_with``: index of the records when the run was opened; ``failed``: keys whose record was invalid then;
    ``notes``: repairs made then; ``scratch``: temporary folder, emptied when the run is opened or closed.

    Raises:
        RunStoreError: the folder is in use by another process, belongs to another run, or cannot be written;
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._stored_artifacts: set[Path] = set()
        with ExitStack() as undo:
            try:
                _refuse_foreign(folder)
                self._new_folders = _make(folder)
                undo.callback(_remove_empty, self._new_folders)
                self._lock = RunLock(folder)
                undo.callback(self._lock.close)
                undo.callback(
                    _discard, self._new_folders
                )  # only with the lock: another process may be faster
                self.manifest, notes = resolved_manifest(folder, manifest)
                self.opened_with, repairs = recover(folder)
                self.failed = self.opened_with.failed
                self.has_finished = self.opened_with.n_finished > 0
                """True if the run has a record that is not invalid."""
                self.has_printed = False
                """True if an agent has printed something since the run was opened."""
                self.notes = [*notes, *repairs]
                if (artifacts := folder / _ARTIFACTS).is_symlink():
                    raise RunStoreError(
                        f"{artifacts} is a link to another folder; a run keeps its files in its own",
                        hint="remove the link, or choose another folder with --out",
                    )
                artifacts.mkdir(exist_ok=True)
                self.scratch = _empty_folder(folder / _SCRATCH)
                _write_manifest(folder, self.manifest)
                self._records = Journal(folder / RECORDS_FILE)
                self._prompts = PromptLog(folder)
                sync(folder)
            except OSError as error:
                raise folder_error(folder, error) from error
            undo.pop_all()

    def add_endpoint(self, found: Mapping[str, Sequence[str]], usage: Mapping[str, int]) -> None:
        """Add what replies said of their origin, and their tokens, to the manifest."""
        known, sums = self.manifest.endpoint, sum_usage(self.manifest.usage, usage)
        names = {
            kind: tuple(dict.fromkeys((*known.get(kind, ()), *found.get(kind, ()))))
            for kind in {**known, **found}
        }
        self.manifest = self.manifest.model_copy(update={"endpoint": names, "usage": sums})
        with self._writing():
            _write_manifest(self.folder, self.manifest)

    def add_setup(self, tool: str, text: str) -> bool:
        """Add what a person can do about errors of a tool to the manifest; False if it is there."""
        if text in self.manifest.setup.get(tool, ()):
            return False
        setup = sum_setup(self.manifest.setup, {tool: (text,)})
        self.manifest = self.manifest.model_copy(update={"setup": setup})
        with self._writing():
            _write_manifest(self.folder, self.manifest)
        return True

    def add_printed(self, key: Key, text: str) -> None:
        """Add what an agent printed on a sample to its log, below a line that names the sample."""
        mode, sample_id, epoch = key
        entry = f"== {sample_id}, {mode}, epoch {epoch}\n{text}\n\n"
        with self._writing(), (self.folder / AGENT_LOG).open("ab") as log:
            log.write(entry.encode(errors="replace"))
        self.has_printed = True

    def append(self, record: Record, requests: Sequence[Request] = ()) -> None:
        """Write one record, preceded by the requests that were sent to a model for it; both are synced within a second.

        Raises:
            RunStoreError: they cannot be written; records written before are kept.
        """
        stored_record, line = _stored(record)
        with self._writing():
            if requests:
                self._prompts.write(self._prompts.lines(record.key, requests))
            self._records.append(line)
        self.has_finished |= stored_record.invalid is None

    async def keep_artifacts(self, observation: Observation, folder: Path) -> None:
        """Copy the files that a call wrote to ``folder`` to ``artifacts/``, by content hash, unless already stored."""
        for artifact in observation.artifacts:
            source = folder / artifact.name
            if artifact.sha256 is None:
                continue
            target = artifact_path(self.folder, artifact.sha256, source.suffix)
            if (
                target not in self._stored_artifacts
                and source.is_file()
                and not source.is_symlink()
            ):
                with self._writing():
                    await asyncio.to_thread(_keep, source, target)
                self._stored_artifacts.add(target)

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise RunStoreError(
                f"cannot write to the run folder {self.folder}: {error.strerror or error}",
                hint=f"{remedy(error)} and run the same command again to resume",
            ) from error

    def close(self, *, discard_unused: bool = False) -> None:
        """Sync written data and release the lock on the run.

        Args:
            discard_unused: remove the folder if it was created for this run and contains no record.

        Raises:
            RunStoreError: the last records could not be written to disk.
        """
        try:
            with self._writing():
                try:
                    self._prompts.close()
                finally:
                    self._records.close()
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)
            if discard_unused:
                _discard(self._new_folders)  # before another process can open the run
            self._lock.close()

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close(discard_unused=error is not None)
        except RunStoreError:
            if not isinstance(error, RunStoreError):  # otherwise it was already reported
                raise


def read_manifest(run: Path) -> Manifest:
    """Return the manifest of a run folder, or its copy if the manifest is damaged or missing.

    Raises:
        RunStoreError: not a run folder, or not one that this version can read.
    """
    return _read_manifest(run)[0]


def _read_manifest(run: Path) -> tuple[Manifest, bool]:
    """Return the manifest, and True if it had to be read from the copy."""
    try:
        if (path := run / MANIFEST_FILE).exists() and not path.is_file():
            raise OSError(f"{MANIFEST_FILE} is not a regular file")
        manifest = parse_manifest(path)
        if manifest.format > FORMAT:
            raise RunStoreError(
                f"the run {run} was made by a later version (format {manifest.format}, this one knows {FORMAT})",
                hint=f"read it with agrotools {manifest.agrotools} or later",
            )
        return manifest, False
    except (OSError, ValueError) as error:  # ValueError: an invalid file name, or not a manifest
        with suppress(OSError, ValueError):
            return parse_manifest(run / MANIFEST_COPY), True
        if isinstance(error, FileNotFoundError | NotADirectoryError) or not isinstance(
            error, OSError | ValidationError
        ):
            raise NoRunError(
                f"{run} is not a run folder (no {MANIFEST_FILE})",
                hint="give the folder that agrotools eval printed",
            ) from error
        problem = first_error(error) if isinstance(error, ValidationError) else str(error)
        raise RunStoreError(
            f"the manifest of {run} cannot be read: {problem.removeprefix('the whole: ')}",
            hint=f"read a run of another version with that version; if {MANIFEST_FILE} is damaged, put it back from a"
            f" copy of the run, or start another run with --out: {RECORDS_FILE} is left as it is",
        ) from error


def resolved_manifest(folder: Path, manifest: Manifest) -> tuple[Manifest, list[str]]:
    """Return the manifest of the resumed run, and notes; RunStoreError if the folder holds another run."""
    if not has_manifest(folder):
        return manifest, []
    old, from_copy = _read_manifest(folder)
    notes = (
        [f"{MANIFEST_FILE} was damaged or missing and is written anew from its copy"]
        if from_copy
        else []
    )
    changed = differences(old, manifest)
    records = folder / RECORDS_FILE
    has_records = records.exists() and records.stat().st_size > 0
    if changed and not has_records:
        return (
            manifest,
            notes,
        )  # A command that failed before its first record (e.g. by a wrong model name) is ignored.
    if changed:
        raise RunStoreError(
            f"{folder} holds a run with another configuration: {'; '.join(changed)}",
            hint="choose another folder with --out, or remove this one",
        )
    if old.name and manifest.name and old.name != manifest.name:
        # The finished answers are of the model with the old name: a new name would claim them for another.
        raise RunStoreError(
            f"{folder} holds the run of {old.name!r}, not of {manifest.name!r}",
            hint="--out DIR starts another run; leave out --name to go on with this one",
        )
    if has_records and manifest.name and not old.name:
        notes.append(
            f"the answers of {old.model} that are in {folder} get the name {manifest.name!r}; "
            "of another version of the agent, --out DIR starts another run"
        )
    return merged(old, manifest), notes


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    content = manifest_json(manifest)
    for path in (folder / MANIFEST_FILE, folder / MANIFEST_COPY):
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                continue
        with temporary_sibling(path) as temporary:
            temporary.write_bytes(content)


def _line(record: Record) -> bytes:
    return record.__pydantic_serializer__.to_json(record, by_alias=True) + b"\n"


def _stored(record: Record) -> tuple[Record, bytes]:
    """Return a record and its line; a record that cannot be stored (invalid Unicode) becomes invalid."""
    try:
        return record, _line(record)
    except ValueError as error:
        if "KeyboardInterrupt" in str(
            error
        ):  # pydantic raises an error of its own for a signal that came meanwhile
            raise KeyboardInterrupt from None
        reason = f"the record cannot be stored: {error}"
    record = record.model_copy(update={"trajectory": None, "actions": None, "invalid": reason})
    try:
        return record, _line(record)
    except ValueError as fault:
        raise RunStoreError(
            f"the sample {record.sample.id!r} cannot be stored: {fault}",
            hint="correct it in the benchmark",
        ) from fault


def _keep(source: Path, target: Path) -> None:
    """Copy ``source`` unless ``target`` has the same content (it may be incomplete after a power cut)."""
    if (
        target.is_symlink()
        or not target.is_file()
        or not filecmp.cmp(source, target, shallow=False)
    ):
        copy_whole(source, target)


def _refuse_foreign(folder: Path) -> None:
    if not folder.is_dir() or has_manifest(folder):
        return
    of_a_start = {_ARTIFACTS, LOCK_FILE, _SCRATCH}
    foreign = [entry.name for entry in folder.iterdir() if entry.name not in of_a_start]
    if any(not name.startswith(f".{MANIFEST_FILE}.") for name in foreign):
        raise RunStoreError(
            f"{folder} is neither empty nor a run folder (no {MANIFEST_FILE}); it was not changed",
            hint="choose an empty or new folder with --out",
        )


def has_manifest(folder: Path) -> bool:
    """True if a folder holds the manifest of a run or its copy."""
    return (folder / MANIFEST_FILE).exists() or (folder / MANIFEST_COPY).is_file()


def folder_error(folder: Path, error: OSError) -> RunStoreError:
    """Return the error of a run folder that cannot be written."""
    file = next(
        (path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), None
    )
    return RunStoreError(
        f"cannot write the run folder {folder}: {f'{file} is a file' if file else error.strerror or error}",
        hint="choose another folder with --out"
        + (", or free some space" if is_full(error) else ""),
    )


def _make(folder: Path) -> list[Path]:
    """Create a folder and its parents; return the created ones, innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        _remove_empty(missing)
        raise
    return missing


def _remove_empty(folders: Iterable[Path]) -> None:
    for path in folders:
        with suppress(OSError):
            path.rmdir()


def _discard(new_folders: Sequence[Path]) -> None:
    """Remove the folders that were created for a run, innermost first, unless they hold a record or another file."""
    own = (MANIFEST_FILE, MANIFEST_COPY, RECORDS_FILE, LOCK_FILE)
    for folder in new_folders[:1]:
        with suppress(OSError):
            others = [
                path for path in folder.iterdir() if path.name not in (*own, _SCRATCH, _ARTIFACTS)
            ]
            kept = [*others, folder / RECORDS_FILE, *(folder / _ARTIFACTS).glob("*")]
            if not any(path.exists() and path.stat().st_size for path in kept):
                for name in (_SCRATCH, _ARTIFACTS):
                    shutil.rmtree(folder / name, ignore_errors=True)
                for name in own:
                    (folder / name).unlink(missing_ok=True)
    _remove_empty(new_folders)


def _empty_folder(folder: Path) -> Path:
    """Return an empty folder for temporary files of the run; leftovers of a killed process are removed."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()  # only the link: its target belongs to someone else
    else:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return folder


class RunLock:
    """Exclusive lock on ``folder``, held until :meth:`close` or the end of the process.

    The lock file names its holder by process id and machine. A file left by a process that has ended is harmless: the
    lock itself is held by the operating system.

    Raises:
        RunStoreError: another process holds the lock, or the file system does not support locks.
        OSError: the lock file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_FILE
        self._lock = FileLock(
            path, timeout=0.1, poll_interval=0.02
        )  # recreates a file that was just removed
        try:
            self._lock.acquire()
        except Timeout as error:
            raise RunStoreError(
                f"the run {folder} is in use by {_holder(path)}",
                hint="wait for it, or choose another folder with --out",
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            path.unlink(missing_ok=True)
            raise RunStoreError(
                f"the file system of {folder} cannot lock files ({error.strerror}), so two processes could mix there",
                hint="choose a folder on a local disk with --out, and copy the run when it is done",
            ) from error
        with suppress(OSError):  # on a full disk the lock still holds, only the name is missing
            path.write_text(f"{os.getpid()} on {socket.gethostname()}\n")

    def close(self) -> None:
        self._lock.release()


def _holder(path: Path) -> str:
    """Return the process that wrote the lock file; a generic name if it says none."""
    with suppress(OSError):
        pid, _, machine = path.read_bytes()[:200].decode(errors="replace").strip().partition(" on ")
        if pid.isdecimal() and machine:
            return f"process {pid} on {machine}"
    return "another process"
