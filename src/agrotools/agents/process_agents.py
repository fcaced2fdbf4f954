"""Agents that are programs: Python functions in isolated processes, each used for one task at a time."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, TypeGuard

from agrotools.agents.external import CallTool
from agrotools.agents.form_exchange import FormExchange, form_task
from agrotools.agents.task import SendUsage
from agrotools.core import InfrastructureError, UsageError
from agrotools.sandbox.agents import agent_command, agent_variables, answer_folders

if TYPE_CHECKING:
    from agrotools.agents.counting_endpoint import CountingEndpoint

_LONGEST_LINE = 64 * 2**20
_START_TIMEOUT_S = 120.0
_LOG_BYTES = 2_000
_FOLDERS, _LOCK = "agrotools-agents-", "lock"
_MOST_HASHED = 64 * 2**20
_NOT_CODE = frozenset({"node_modules", "site-packages", "runs"})


@dataclass(frozen=True)
class PythonAgent:
    """Function of a module as an agent: ``python:MODULE:FUNCTION``."""

    module: str
    function: str
    folder: Path
    """Folder that contains the module or its top package."""
    code: tuple[Path, ...]
    """Files and folders that the process may read: the module or its top package, and those that the user names."""

    @classmethod
    def find(cls, spec: str, paths: Sequence[Path] = ()) -> "PythonAgent":
        """Find ``MODULE:FUNCTION``, without importing it, in the current folder, in ``paths`` or in this environment.

        Raises:
            UsageError: the text has another form, or there is no such module or path.
        """
        module, _, function = spec.partition(":")
        if not module or not function:
            raise UsageError(
                f"python:{spec} names no function", hint="give python:MODULE:FUNCTION, e.g. python:agent:solve"
            )
        if lacking := [path for path in paths if not path.exists()]:
            raise UsageError(f"--agent-path: there is no {lacking[0]}", hint="give an existing file or folder")
        searched = [str(Path.cwd()), *(str(path.resolve()) for path in paths if path.is_dir()), *filter(None, sys.path)]
        module_spec = PathFinder.find_spec(module.partition(".")[0], searched)
        if module_spec is None:
            raise UsageError(
                f"there is no module {module.partition('.')[0]!r} in the current folder or in this environment",
                hint="run from the folder that contains it, or name that folder with --agent-path",
            )
        places = module_spec.submodule_search_locations or [module_spec.origin]
        code = [Path(place).resolve() for place in places if place]
        return cls(module, function, code[0].parent, (*code, *(path.resolve() for path in paths)))

    @property
    def code_hash(self) -> str:
        """SHA-256 over the agent's files, see :func:`code_hash`."""
        return code_hash(f"{self.module}:{self.function}", self.code)


def code_hash(name: str, code: Sequence[Path]) -> str:
    """Return the SHA-256 over a name and files, but for hidden ones, caches and answers; beyond 64 MiB, their sizes."""
    digest, n_bytes = hashlib.sha256(name.encode()), 0
    skipped = {path.resolve() for path in answer_folders(code)}
    for root in code:
        for path in sorted(_files_below(root, skipped)):
            n_bytes += path.stat().st_size
            content = path.read_bytes() if n_bytes <= _MOST_HASHED else f"{path.stat().st_size}".encode()
            digest.update(f"{path.relative_to(root)}\0".encode() + content)
    return digest.hexdigest()


def _files_below(root: Path, skipped: AbstractSet[Path]) -> Iterator[Path]:
    if root.is_file():
        yield root
    for place, folders, names in os.walk(root):
        here = Path(place)
        folders[:] = [
            name for name in folders if name[0] not in "._" and name not in _NOT_CODE and here / name not in skipped
        ]
        yield from (here / name for name in names if name[0] != "." and (here / name).is_file())


class TemporaryFolders:
    """Folders of the files of running agents, in a locked one; those of processes that were killed are removed."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._lock = -1
        self._count = 0

    def add(self) -> Path:
        """Return a new folder."""
        if self._root is None:
            for left in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*/{_LOCK}"):
                with suppress(OSError), left.open("r+b") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left.parent, ignore_errors=True)
            self._root = Path(tempfile.mkdtemp(prefix=_FOLDERS))
            begun = self._root / f"{_LOCK}.new"
            self._lock = os.open(begun, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            begun.rename(self._root / _LOCK)
        self._count += 1
        folder = self._root / f"{self._count}"
        folder.mkdir()
        return folder

    def remove(self) -> None:
        """Remove all folders."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            os.close(self._lock)
            self._root = None


@dataclass(eq=False)
class _Worker:
    process: asyncio.subprocess.Process
    folder: Path
    token: str = ""
    number: int = 0
    """Number of the current task, which all messages on it carry; 0 before the first."""
    errors: bytearray = field(default_factory=bytearray)
    """End of what it wrote to standard error."""
    reading: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        assert self.process.stderr is not None
        self.reading = asyncio.create_task(read_end(self.process.stderr, self.errors, _LOG_BYTES))

    async def send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def receive(self) -> dict[str, Any]:
        """Return the next message on the current task, and drop those on earlier ones (threads that still run)."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not self._is_message(message):
                shown = line[:100].decode(errors="replace").strip()
                raise InfrastructureError(
                    f"the agent wrote a line that is not of the protocol: {shown}",
                    hint="print to standard output is redirected; do not write to its file descriptor",
                )
            if message["number"] == self.number:
                return message
        return {"lost": await self.last_words()}

    def _is_message(self, message: Any) -> TypeGuard[dict[str, Any]]:
        if not isinstance(message, dict) or message.get("number") not in range(self.number + 1):
            return False
        if "tool" in message:
            return isinstance(message.get("arguments"), dict) and "id" in message
        return not message.keys().isdisjoint(("usage", "answer", "error") if self.number else ("ready", "error"))

    async def last_words(self) -> str:
        """Return the last line that the process wrote to standard error."""
        if self.reading is not None:
            await asyncio.wait({self.reading}, timeout=1)
        text = self.errors.decode(errors="replace").strip()
        return text.splitlines()[-1] if text else "it wrote nothing"

    async def end(self) -> None:
        if self.process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)  # Process.kill may reap it, unseen by asyncio
        with suppress(Exception):
            await asyncio.wait_for(self.process.wait(), 5)
        if self.reading is not None:
            self.reading.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(eq=False)
class PythonAgents:
    """Processes of one Python agent, started when they are needed and used again for further tasks.

    ``sealed``: True to isolate them with bubblewrap. ``variables``: names of environment variables that they get.
    ``endpoint``: endpoint whose address they get, each with a token of its own, because a module may open its client
    when it is imported.
    """

    agent: PythonAgent
    sealed: bool
    variables: Sequence[str] = ()
    endpoint: "CountingEndpoint | None" = None
    answers: Sequence[Path] = ()
    """Folders with answers, besides those that are found below the agent's code."""
    _hidden: list[Path] | None = None
    _idle: list[_Worker] = field(default_factory=list[_Worker])
    _all: set[_Worker] = field(default_factory=set[_Worker])
    _folders: TemporaryFolders = field(default_factory=TemporaryFolders)

    async def solve(self, task: Mapping[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange) -> None:
        """Run the agent on a task, and submit its answer; InfrastructureError if it, or its process, failed."""
        endpoint = dict(task.get("endpoint", {}))
        worker = self._idle.pop() if self._idle else await self._start(endpoint)
        if self.endpoint is not None:
            self.endpoint.samples[worker.token] = self.endpoint.samples[endpoint["key"]]
        token = worker.token
        try:
            worker.number += 1
            task = {**task, "files": lay_out(task["files"], worker.folder)}
            await worker.send({"number": worker.number, "task": task})
            while True:
                message = await worker.receive()
                if "tool" in message:
                    observation = await call(str(message["tool"]), dict(message["arguments"]))
                    await worker.send({"id": message["id"], "observation": observation})
                    continue
                if "usage" in message:
                    report(message["usage"])
                    continue
                if "answer" in message:
                    form = exchange.submit(message["answer"])
                    if form and message.get("takes_form"):
                        worker.number += 1
                        await worker.send({"number": worker.number, "task": form_task(task, form)})
                        continue
                    _clear(worker.folder)
                    self._idle.append(worker)
                    worker = None
                    return
                if "error" in message:
                    raise InfrastructureError(str(message["error"]))
                raise InfrastructureError(f"the agent's process ended: {message['lost']}")
        except (OSError, ValueError) as error:
            words = await worker.last_words() if worker else error
            raise InfrastructureError(f"the agent's process ended: {words}") from error
        finally:
            if self.endpoint is not None:
                self.endpoint.samples.pop(token, None)
            if worker is not None:
                self._all.discard(worker)
                await worker.end()

    async def close(self) -> None:
        """End all processes."""
        for worker in [*self._all]:
            await worker.end()
        self._all.clear()
        self._idle.clear()
        self._folders.remove()

    async def _start(self, endpoint: Mapping[str, str]) -> _Worker:
        folder = self._folders.add()
        command = [sys.executable, "-m", "agrotools.agents.agent_process", self.agent.module, self.agent.function]
        command += [str(self.agent.folder), *(str(path) for path in self.agent.code[1:] if path.is_dir())]
        token = token_urlsafe(24)
        variables = agent_variables(self.variables)
        if endpoint:
            variables |= endpoint_variables({**endpoint, "key": token})
        if self._hidden is None:
            self._hidden = answer_folders(self.agent.code, self.answers) if self.sealed else []
        process = await start_process(
            *agent_command(
                command, variables, sealed=self.sealed, readable=self.agent.code, folder=folder, hidden=self._hidden
            )
        )
        worker = _Worker(process, folder, token)
        self._all.add(worker)
        try:
            first = await asyncio.wait_for(worker.receive(), _START_TIMEOUT_S)
        except TimeoutError:
            first = {"error": f"it was not ready after {_START_TIMEOUT_S:g} s"}
        except InfrastructureError as error:
            first = {"error": str(error)}
        if not first.get("ready"):
            self._all.discard(worker)
            reason = first.get("error") or first.get("lost")
            await worker.end()
            hint = None
            if "ModuleNotFoundError" in str(reason) or "FileNotFoundError" in str(reason):
                hint = "install the missing package; other files of the agent are named with --agent-path"
            raise UsageError(f"the agent {self.agent.module}:{self.agent.function} does not start: {reason}", hint=hint)
        return worker


async def start_process(command: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start an agent's process with pipes, in a session of its own; for the arguments see :func:`agent_command`."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, limit=_LONGEST_LINE, start_new_session=True
    )


async def read_end(stream: asyncio.StreamReader, end: bytearray, most: int) -> None:
    """Read a stream to its end, and keep its last ``most`` bytes in ``end``."""
    while chunk := await stream.read(2**16):
        end += chunk
        del end[:-most]


def endpoint_variables(endpoint: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables by which OpenAI's clients find the endpoint of a task, and its model."""
    names = {"url": "OPENAI_BASE_URL", "key": "OPENAI_API_KEY", "model": "OPENAI_MODEL"}
    return {names[field]: value for field, value in endpoint.items()}


def lay_out(files: Sequence[Mapping[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Copy the files of a task into ``folder`` under their names, and return them with their new paths."""
    placed: list[dict[str, Any]] = []
    for file in files:
        target = folder / str(file["name"])
        shutil.copyfile(file["path"], target)
        placed.append({**file, "path": str(target)})
    return placed


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
