"""Workspace of a server, and recording of real use: the calls of MCP clients as a run folder without gold answers.

Each task of a client (from ``begin_task`` to the next one, at most 50 calls or 200 kB) is a record, written again
after every call, so that nothing is lost when the client ends the server. The files that tools opened are copied into
the run.
"""

import asyncio
import errno
import os
import platform
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from agrotools.core import (
    Artifact,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    Step,
    ToolCall,
    ToolError,
    ToolOutcome,
    Trajectory,
)
from agrotools.core.base import RunStoreError
from agrotools.core.files import copy_whole, sha256_of_file, sha256_of_json, write_whole
from agrotools.core.record import rename_texts
from agrotools.core.slot import UnansweredSlot
from agrotools.formats.benchmark import FILES_FOLDER, HEADER_FILE, BenchmarkHeader
from agrotools.formats.writing import header_toml
from agrotools.runner.manifest import Manifest
from agrotools.runner.store import RunStore
from agrotools.scoring.metrics import SCORING_VERSION
from agrotools.tools import tool_specs, tool_versions
from agrotools.tools.workspace import (
    ARTIFACT_NAME,
    SUFFIX,
    Workspace,
    file_not_found,
    path_inside,
    read_sidecar,
    regular_file,
    sidecars,
    write_artifact,
)


@dataclass(frozen=True)
class FolderWorkspace(Workspace):
    """All files of a folder by relative name, with metadata from their sidecars. ``root`` is the folder.

    Links are followed only within the folder. ``opened`` collects the files that were resolved, by the name given.
    """

    opened: dict[str, Path] = field(default_factory=dict[str, Path])

    def resolve(self, name: str, *, by_last_part: bool = False) -> Path:  # noqa: ARG002 - names are paths
        """Return the real path of a file of the folder, or of an artifact by its name. Errors as in the base class."""
        assert self.root is not None
        given, hint = name, "use the name of a file relative to the workspace, as in photos/field.jpg"
        name = path_inside(name, hint)
        path, made = self.root / name, self.artifacts / name
        if os.path.lexists(path):
            self.opened[given] = real = regular_file(path, name, within=self.root)
            return real
        if ARTIFACT_NAME.fullmatch(name) and os.path.lexists(made):
            return regular_file(made, name, within=self.artifacts)
        raise file_not_found(name, self.names(limit=1000), close_to=name)

    def info(self, name: str) -> SampleFile | None:
        """Return the metadata in the sidecar of a file, or None.

        Raises:
            ToolError: ``unreadable_file`` (the sidecar is invalid), ``path_outside_workspace`` (it is such a link).
        """
        path = self.resolve(name)
        for sidecar in sidecars(path):
            if os.path.lexists(sidecar):
                regular_file(sidecar, sidecar.name, within=self.root)
        return read_sidecar(path)

    def keep(self, artifact: Artifact, content: bytes) -> Artifact:
        """Write an artifact under a name that is unused, also in the folder itself.

        Raises:
            OSError: it cannot be written, or the folder of artifacts is a link.
        """
        assert self.root is not None
        if self.artifacts.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(self.artifacts))
        return write_artifact(self.artifacts, artifact, content, {entry.name for entry in self.root.iterdir()})

    def names(self, within: str = ".", *, limit: int) -> list[str]:
        """Return names of regular files below a subfolder, sorted by folder; hidden ones and sidecars are left out.

        Raises:
            ToolError: ``path_outside_workspace``; ``file_not_found``: there is no such subfolder.
        """
        assert self.root is not None
        found: list[str] = []
        start = self.root / path_inside(within)
        if not os.path.lexists(start):
            raise ToolError("file_not_found", f"there is no folder {within[:100]!r}")
        for folder, subfolders, files in os.walk(start):
            if not Path(folder).resolve().is_relative_to(self.root):
                raise ToolError("path_outside_workspace", f"{within[:100]!r} is a link that leads out of the workspace")
            visible = (each for each in subfolders if each[0] != ".")
            subfolders[:] = sorted(each for each in visible if Path(folder, each) != self.artifacts)
            shown = sorted(each for each in files if each[0] != "." and not each.endswith(SUFFIX))
            found += [str(Path(folder, each).relative_to(self.root)) for each in shown[: limit - len(found)]]
            if len(found) >= limit:
                break
        return found


NOT_STATED = "(not stated)"
"""Query of a session whose client did not call ``begin_task``."""
BENCHMARK = "recorded-sessions"
FILES = "recorded"
"""Folder in the run with a header and the files of the sessions, in the form of a benchmark folder."""
MOST_CALLS = 50
_MOST_CHARACTERS = 200_000
_MOST_RUNS, _MOST_CLIENTS = 20, 1000
_KINDS = {".tif": "raster", ".tiff": "raster", ".csv": "table", ".json": "document"}


@dataclass
class _Session:
    id: str
    query: str = NOT_STATED
    files: dict[str, SampleFile] = field(default_factory=dict[str, SampleFile])
    """Files by the name that the client used."""
    steps: list[Step] = field(default_factory=list[Step])
    answer: str | None = None
    size: int = 0
    """Length of the steps as JSON."""

    def record(self, toolset: Sequence[str]) -> Record:
        steps = tuple(self.steps)
        if self.answer is not None:
            steps = (*steps, Step(turn=len(steps), kind="answer", text=self.answer))
        sample = Sample(
            id=self.id,
            query=self.query,
            files=tuple(self.files.values()),
            family="recorded",
            task_type="recorded",
            answer_type="open_text",
            template="recorded",
            source="MCP client",
            toolset=tuple(toolset),
            answer=(UnansweredSlot(name="answer", label="the answer to the question"),),
            no_tool_eligible=False,
        )
        trajectory = Trajectory(steps=steps, termination="answered")
        if self.answer is None:
            reason = "the client gave no answer with end_task"
            trajectory = Trajectory(steps=steps, termination="max_steps", reason=reason)
        seconds = sum(step.seconds for step in steps)
        return Record(sample=sample, mode="end-to-end", trajectory=trajectory, seconds=seconds)


class SessionRecorder:
    """Writes the calls of clients into a run folder.

    Args:
        run: the folder; if another server writes to it, or it is of other tools, the next free one of ``run-2``...

    Raises:
        RunStoreError: no folder can be written.
    """

    def __init__(self, run: Path, toolset: Sequence[str]) -> None:
        self._toolset = tuple(toolset)
        self._sessions: dict[str, _Session] = {}
        self._lock = asyncio.Lock()
        self._store = _open_store(run, self._toolset)
        # Not their number: a session without a call took a number and left no record.
        numbers = [int(sample_id.rpartition("-")[2]) for _, sample_id, _ in self._store.opened_with.each_key()]
        self._count = max(numbers, default=0)
        folder = self.folder / FILES
        (folder / FILES_FOLDER).mkdir(parents=True, exist_ok=True)
        header = BenchmarkHeader(name=BENCHMARK, version="1", licence="not stated", toolset=self._toolset)
        write_whole(folder / HEADER_FILE, header_toml(header).encode())

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self._store.folder

    def begin(self, client: str, question: str) -> str:
        """Begin the record of a question, and return its id."""
        self._count += 1
        session = self._sessions[client] = _Session(f"session-{self._count:04d}", question)
        if len(self._sessions) > _MOST_CLIENTS:
            del self._sessions[next(iter(self._sessions))]
        return session.id

    def end(self, client: str, answer: str) -> str:
        """Write the answer of a client; the next call begins another record. Return the id.

        Raises:
            ToolError: ``invalid_argument``: nothing was called since the last answer.
        """
        session = self._sessions.get(client)
        if session is None or not session.steps:
            raise ToolError("invalid_argument", "no tool was called for this answer", hint="call begin_task and tools")
        session.answer = answer
        self._store.append(session.record(self._toolset))
        del self._sessions[client]
        return session.id

    async def add_call(self, client: str, call: ToolCall, outcome: ToolOutcome, workspace: FolderWorkspace) -> None:
        """Write a call with the files that it opened.

        Raises:
            RunStoreError, OSError: it cannot be written.
        """
        async with self._lock:
            session = self._session(client)
            for name, path in workspace.opened.items():
                if name not in session.files:
                    session.files[name] = await asyncio.to_thread(self._keep, name, path, workspace, session)
            await self._store.keep_artifacts(outcome.observation, workspace.artifacts)
            renamed = rename_texts(call.arguments, {name: file.name for name, file in session.files.items()})
            step = Step(
                turn=len(session.steps),
                kind="call",
                call=ToolCall(tool=call.tool, arguments=renamed),
                observation=outcome.observation,
                seconds=outcome.seconds,
                cached=outcome.cached,
            )
            session.steps.append(step)
            session.size += len(step.model_dump_json())
            self._store.append(session.record(self._toolset))

    def close(self) -> None:
        """Sync what was written and release the folder."""
        self._store.close(discard_unused=True)

    def _session(self, client: str) -> _Session:
        session = self._sessions.get(client)
        if session is None or len(session.steps) >= MOST_CALLS or session.size >= _MOST_CHARACTERS:
            self.begin(client, session.query if session else NOT_STATED)
        return self._sessions[client]

    def _keep(self, name: str, path: Path, workspace: FolderWorkspace, session: _Session) -> SampleFile:
        """Copy a file into the run, and return it as a file of the sample."""
        digest = sha256_of_file(path)
        place = f"{FILES_FOLDER}/{digest[:16]}{path.suffix.lower()}"
        target = self.folder / FILES / place
        if not target.exists():
            copy_whole(path, target)
        taken = {file.name for file in session.files.values()}
        safe = re.sub(r"[^A-Za-z0-9_.-]", "-", name).lstrip("_.-")[-90:].lstrip("_.-") or "file"
        unused = next(each for n in range(1, 10_000) if (each := safe if n == 1 else f"{n}-{safe}") not in taken)
        info = None
        with suppress(ToolError):  # an invalid sidecar, which was the result of the call
            info = workspace.info(name)
        kind = _KINDS.get(path.suffix.lower(), "image")
        known = info.model_dump(exclude_none=True) if info else {"kind": kind}
        return SampleFile.model_validate({**known, "name": unused, "path": place, "sha256": digest})


def _open_store(run: Path, toolset: Sequence[str]) -> RunStore:
    *first, last = (run, *(run.with_name(f"{run.name}-{number}") for number in range(2, _MOST_RUNS + 1)))
    for folder in first:
        with suppress(RunStoreError):
            return RunStore(folder, _manifest(folder, toolset))
    return RunStore(last, _manifest(last, toolset))


def _manifest(run: Path, toolset: Sequence[str]) -> Manifest:
    versions = tool_versions(tool_specs(toolset))
    return Manifest(
        agrotools=version("agrotools"),
        scoring=SCORING_VERSION,
        benchmark=BENCHMARK,
        benchmark_path=f"{run.resolve().name}/{FILES}",
        benchmark_version="1",
        benchmark_hash=sha256_of_json(BENCHMARK),
        model="MCP client",
        protocol="tool-calling",
        max_steps=MOST_CALLS,
        seed=0,
        toolset=versions,
        toolset_hash=sha256_of_json(versions),
        prompt_hash="",
        python=f"{platform.python_version()} on {sys.platform}",
        modes=("end-to-end",),
        epochs=1,
        sample_ids=(),
    )


def reference_of(trajectory: Trajectory) -> ReferenceTrajectory:
    """Return the successful calls of a session as reference calls."""
    steps = (
        ReferenceStep(tool=step.call.tool, arguments=step.call.arguments, observation=step.observation)
        for step in trajectory.calls
        if step.call and step.observation and step.observation.ok
    )
    return ReferenceTrajectory(steps=tuple(steps))
