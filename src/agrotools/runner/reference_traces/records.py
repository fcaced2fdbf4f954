"""Traces as data, and the file of them: it only grows, and survives being stopped at any moment."""

import hashlib
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import JsonValue, ValidationError

from agrotools.agents.prompts import building_prompt_hash
from agrotools.core import Arguments, Noun, Observation, RunStoreError, Sample
from agrotools.core.refs import literal_value
from agrotools.runner.durable import Journal, copy_whole

TRACES_FILE = "traces.jsonl"


class TraceStep(Noun):
    """One call of a model's chain beside the reference; see the module's documentation."""

    tool: str
    reference_step: int
    thought: str = ""
    arguments: Arguments | None = None
    observation: Observation | None = None
    agrees: dict[str, bool] = {}
    agreed: bool = False
    reason: str = ""
    tries: int = 1


class TraceRecord(Noun):
    """A model's chain for one sample; see the module's documentation."""

    id: str
    model: str
    asked: str
    steps: tuple[TraceStep, ...] = ()
    answer: str | None = None
    answer_agrees: bool | None = None
    answer_slots: dict[str, float] = {}
    complete: bool = False
    left_open: tuple[str, ...] = ()
    reason: str = ""

    @property
    def confirms(self) -> bool:
        """Whether the chain is complete, all its arguments agree, and so does the answer as far as that can be told."""
        return self.complete and all(step.agreed for step in self.steps) and self.answer_agrees is not False

    def line(self) -> bytes:
        """As a line of the file."""
        return orjson.dumps(self.model_dump(mode="json")) + b"\n"


Traces = Mapping[tuple[str, str], TraceRecord]
"""By sample id and model."""


def asked_hash(sample: Sample) -> str:
    """A hash of all that a trace of ``sample`` depends on but the model, 16 hexadecimal digits.

    Thoughts of the reference are no part of it: they may be filled in from traces.
    """
    steps = sample.reference.steps if sample.reference else ()
    content: JsonValue = [
        building_prompt_hash(),
        sample.query,
        [[file.name, file.sha256] for file in sample.files],
        [[step.tool, literal_value(dict(step.arguments)), step.group] for step in steps],
        [slot.model_dump(mode="json", by_alias=True) for slot in sample.answer],
    ]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def read_traces(folder: Path) -> dict[tuple[str, str], TraceRecord]:
    """The traces in a benchmark folder by sample id and model; none where none were made. A torn last line is no trace.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is no trace.
    """
    return _read(folder / TRACES_FILE)[0]


class TraceFile:
    """``traces.jsonl`` of a folder, to be gone on with: ``held`` is what it holds, :meth:`add` appends.

    A line is handed to the operating system before :meth:`add` returns, and synced within a second.

    Raises:
        RunStoreError: it cannot be read or written, or a line in it is no trace.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / TRACES_FILE
        self.held, whole = _read(path)
        try:
            if path.exists() and path.stat().st_size > whole:
                os.truncate(path, whole)
            self._journal = Journal(path)
        except OSError as error:
            raise _unwritable(path, error) from error

    def add(self, record: TraceRecord) -> None:
        """Append one.

        Raises:
            RunStoreError: it cannot be written; nothing of it is left in the file.
        """
        self.held[record.id, record.model] = record
        try:
            self._journal.append(record.line())
        except OSError as error:
            raise _unwritable(self._journal.path, error) from error

    def close(self) -> None:
        """Sync and let go of the file.

        Raises:
            RunStoreError: the disk refused what was written last.
        """
        try:
            self._journal.close()
        except OSError as error:
            raise _unwritable(self._journal.path, error) from error

    def __enter__(self) -> "TraceFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def kept_traces(folder: Path) -> Generator[None]:
    """Keep ``traces.jsonl`` of a benchmark that the block builds anew, also if the block is killed and done again.

    Raises:
        OSError: it cannot be copied.
    """
    aside = folder.parent / f".{folder.name}-{TRACES_FILE}"
    if (folder / TRACES_FILE).is_file():
        copy_whole(folder / TRACES_FILE, aside)
    yield
    if aside.is_file() and folder.is_dir():
        aside.replace(folder / TRACES_FILE)


def _read(path: Path) -> tuple[dict[tuple[str, str], TraceRecord], int]:
    """The traces and where the last whole line ends."""
    found: dict[tuple[str, str], TraceRecord] = {}
    whole = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                if line.strip():
                    record = _record(path, number, line)
                    found[record.id, record.model] = record
                whole += len(line)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise RunStoreError(f"{path} cannot be read: {error.strerror}", hint="make it a file you may read") from error
    return found, whole


def _record(path: Path, number: int, line: bytes) -> TraceRecord:
    try:
        return TraceRecord.model_validate_json(line)
    except ValidationError as error:
        hint = "remove that line; its sample is then asked about again"
        raise RunStoreError(f"{path}, line {number} is no trace", hint=hint) from error


def _unwritable(path: Path, error: OSError) -> RunStoreError:
    return RunStoreError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="free some space and give the same command again: what has finished is kept",
    )
