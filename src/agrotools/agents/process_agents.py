"""Agents that are programs in isolated processes: ``--model python:MODULE:FUNCTION`` and ``--model "mcp:COMMAND"``.

A process of a Python agent is used for one task after another. A command is started once for each sample. It gets the
question in ``{prompt}`` (or on standard input) and the tools from an MCP server on this machine, in ``{config}`` (a
file in the form of ``mcpServers``) or ``{url}``. What it prints is its answer, unless it calls ``final_answer``, whose
first call returns the form of the answer. The program reports its usage with ``report_usage``.

What a process prints on a sample is kept beside its answer, in ``FormExchange.printed``.
"""

import asyncio
import json
import logging
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from agrotools.agents.external import AgentStopped, CallTool, FormExchange, form_task
from agrotools.agents.mcp_server import (
    Headers,
    ReportProgress,
    ToolService,
    bearer_token,
    http_server,
    tool_server,
)
from agrotools.agents.task import SendUsage, ToolDescription, ToolReply, to_reply
from agrotools.core import InfrastructureError, UsageError
from agrotools.core.errors import last_words
from agrotools.core.processes import kill_descendants, kill_group
from agrotools.sandbox.agents import Isolation, code_hash, interpreter_of

if TYPE_CHECKING:
    from agrotools.agents.counting_endpoint import CountingEndpoint

_START_TIMEOUT_S = 120.0
_PRINTED_BYTES = 20_000
"""Bytes of printed text that are kept of a sample: 10 MB of 500 chatty samples. The last line explains a failure."""
_LAST_PRINTED_S = 0.01
"""Seconds to read what was printed before an answer. It is in the pipe already, so that a moment is enough."""
FINAL_ANSWER = ToolDescription(
    "final_answer",
    "Give the final answer in your own words. If it returns a form, call it again with the filled-in form.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
REPORT_USAGE = "report_usage"
"""Tool for the program, not for its model, which does not know its usage: ``tools/list`` does not name it."""
_LONGEST_OUTPUT = 2**20
_LAST_OUTPUT_S = 1.0
"""Seconds for the rest of the output of a program that has ended, which a process that it left behind may hold open."""
_HIDDEN = (
    "; isolated programs see those of the system and of this Python environment, and no home folder: name other files "
    "and folders that it needs with --agent-path"
)
_URL, _TOKEN = "AGROTOOLS_MCP_URL", "AGROTOOLS_MCP_TOKEN"
_EPOCH, _SEED = "AGROTOOLS_EPOCH", "AGROTOOLS_SEED"
_ENDED = ToolReply({"error": {"kind": "sample_ended", "message": "the sample has ended"}})
_ANSWERED = ToolReply(
    {
        "error": {
            "kind": "sample_ended",
            "message": "the answer is given",
            "hint": "call final_answer with its form",
        }
    }
)


def _lay_out(files: Sequence[Mapping[str, Any]], folder: Path) -> list[dict[str, Any]]:
    return [
        {**file, "path": shutil.copyfile(file["path"], str(folder / str(file["name"])))}
        for file in files
    ]


async def _read_end(stream: asyncio.StreamReader | None, end: bytearray, most: int) -> None:
    """Read a stream to its end, and keep its last ``most`` bytes in ``end``."""
    while stream is not None and (chunk := await stream.read(2**16)):
        end += chunk
        del end[:-most]


def _printed_text(end: bytes) -> str:
    """Return printed text of which ``end`` was kept, with a first line that says so if it may have been longer."""
    text = end[-_PRINTED_BYTES:].decode(errors="replace").rstrip()
    is_cut = len(end) >= _PRINTED_BYTES
    return f"[the last {_PRINTED_BYTES:,} bytes]\n{text}" if is_cut else text


def _kill(process: asyncio.subprocess.Process) -> None:
    kill_group(process.pid)  # Process.kill may reap it, unseen by asyncio


@dataclass(eq=False)
class _Worker:
    """A process of a Python agent, with its folder for the files of a task."""

    process: asyncio.subprocess.Process
    folder: Path
    token: str = ""
    number: int = 0
    """Number of the current task, which all messages on it carry; 0 before the first."""
    printed: bytearray = field(default_factory=bytearray)
    """End of what it printed on the current task, to standard output or standard error."""
    reading: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.reading = asyncio.create_task(
            _read_end(self.process.stderr, self.printed, _PRINTED_BYTES)
        )

    async def _begin(self, task: Mapping[str, Any]) -> None:
        """Send the next task; messages on earlier ones are dropped from now on."""
        self.number += 1
        await self._send({"number": self.number, "task": task})

    async def _send(self, message: Mapping[str, Any]) -> None:
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

    async def work_on(
        self, task: Mapping[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange
    ) -> None:
        """Give the process a task, and serve its calls until its answer is submitted."""
        await self._begin(task)
        while True:
            message = await self.receive()
            if "tool" in message:
                observation = await call(str(message["tool"]), dict(message["arguments"]))
                await self._send({"id": message["id"], "observation": observation})
            elif "usage" in message:
                report(message["usage"])
            elif "answer" in message:
                form = exchange.submit(message["answer"])
                if not (form and message.get("takes_form")):
                    return
                await self._begin(form_task(task, form))
            elif "error" in message:
                raise InfrastructureError(str(message["error"]))
            else:
                raise InfrastructureError(f"the agent's process ended: {message['lost']}")

    def _is_message(self, message: Any) -> TypeGuard[dict[str, Any]]:
        if not isinstance(message, dict) or message.get("number") not in range(self.number + 1):
            return False
        if "tool" in message:
            return isinstance(message.get("arguments"), dict) and "id" in message
        awaited = ("usage", "answer", "error") if self.number else ("ready", "error")
        return not message.keys().isdisjoint(awaited)

    async def last_words(self) -> str:
        """Return the last words that the process printed on its task."""
        if self.reading is not None:
            await asyncio.wait({self.reading}, timeout=1)
        return last_words(self.printed.decode(errors="replace")) or "it wrote nothing"

    def take_printed(self) -> str:
        """Return what the process printed on its task; the next task begins with nothing."""
        text = _printed_text(bytes(self.printed))
        self.printed.clear()
        return text

    async def end(self) -> None:
        if self.process.returncode is None:
            _kill(self.process)
        with suppress(Exception):
            await asyncio.wait_for(self.process.wait(), 5)
        if self.reading is not None:
            self.reading.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(eq=False)
class PythonAgents:
    """Processes of one Python agent, started when they are needed and used again for further tasks.

    Args:
        spec: ``MODULE:FUNCTION``, which is found, without importing it, in the current folder, in the readable ones or
            in this environment.
        isolation: ``readable`` grows by the module or its top package.
        endpoint: endpoint whose address the processes get, each with a token of its own, because a module may open its
            client when it is imported.

    Raises:
        UsageError: the spec has another form, or there is no such module or path.
    """

    spec: str
    isolation: Isolation
    endpoint: "CountingEndpoint | None" = None
    _idle: list[_Worker] = field(default_factory=list[_Worker])
    _all: set[_Worker] = field(default_factory=set[_Worker])

    def __post_init__(self) -> None:
        self._module, _, self._function = self.spec.partition(":")
        if not self._module or not self._function:
            raise UsageError(
                f"python:{self.spec} names no function",
                hint="give python:MODULE:FUNCTION, e.g. python:agent:solve",
            )
        paths = self.isolation.readable
        if lacking := [path for path in paths if not path.exists()]:
            raise UsageError(
                f"--agent-path: there is no {lacking[0]}", hint="give an existing file or folder"
            )
        resolved = [path.resolve() for path in paths]
        folders = [str(path) for path in resolved if path.is_dir()]
        package = self._module.partition(".")[0]
        found = PathFinder.find_spec(package, [str(Path.cwd()), *folders, *filter(None, sys.path)])
        if found is None:
            raise UsageError(
                f"there is no module {package!r} in the current folder or in this environment",
                hint="run from the folder that contains it, or name that folder with --agent-path",
            )
        places = found.submodule_search_locations or [found.origin]
        self._code = [*(Path(place).resolve() for place in places if place), *resolved]
        self.isolation.readable = self._code
        self._searched = [str(self._code[0].parent), *folders]

    @property
    def code_hash(self) -> str:
        """SHA-256 over the agent's files."""
        return code_hash(self.spec, self._code)

    async def solve(
        self, task: Mapping[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange
    ) -> None:
        """Run the agent on a task, and submit its answer; InfrastructureError if it, or its process, failed."""
        endpoint = dict(task.get("endpoint", {}))
        worker = self._idle.pop() if self._idle else await self._start(endpoint)
        if self.endpoint is not None:
            self.endpoint.samples[worker.token] = self.endpoint.samples[endpoint["key"]]
        is_idle = False
        try:
            task = {**task, "files": _lay_out(task["files"], worker.folder)}
            await worker.work_on(task, call, report, exchange)
            for path in worker.folder.iterdir():
                path.unlink()
            await asyncio.sleep(_LAST_PRINTED_S)
            exchange.printed = worker.take_printed()
            self._idle.append(worker)
            is_idle = True
        except (OSError, ValueError) as error:
            words = await worker.last_words()
            raise InfrastructureError(f"the agent's process ended: {words}") from error
        finally:
            if self.endpoint is not None:
                self.endpoint.samples.pop(worker.token, None)
            if not is_idle:
                self._all.discard(worker)
                await worker.end()
                exchange.printed = worker.take_printed()

    async def close(self) -> None:
        """End all processes."""
        for worker in [*self._all]:
            await worker.end()
        self._all.clear()
        self._idle.clear()
        self.isolation.close()

    async def _start(self, endpoint: Mapping[str, str]) -> _Worker:
        folder = self.isolation.add_folder()
        token = token_urlsafe(24)
        command = [
            sys.executable,
            "-u",  # print reaches the log at once, also if the process is killed later
            "-m",
            "agrotools.agents.agent_process",
            self._module,
            self._function,
            *self._searched,
        ]
        served = {**endpoint, "key": token} if endpoint else {}
        process = await self.isolation.start(command, {}, served, folder)
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
            raise UsageError(f"the agent {self.spec} does not start: {reason}", hint=hint)
        return worker


class _Session(NamedTuple):
    """A sample that a command works on."""

    tools: Sequence[ToolDescription]
    call: CallTool
    report: SendUsage
    exchange: FormExchange
    ended: "asyncio.Future[None]"


@dataclass(eq=False)
class CommandAgents:
    """Runs of a command, one for each sample, with one MCP server for all of them.

    Args:
        command: program and arguments, which may hold ``{prompt}``, ``{config}`` and ``{url}``.
        isolation: ``readable`` grows by the program and the files that the command names.

    Raises:
        UsageError: the command is empty, cannot be parsed, or names no program.
    """

    command: str
    isolation: Isolation
    _sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _url: "asyncio.Future[str] | None" = None

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(
                f"mcp:{self.command}: {error}", hint="quote it as in a shell"
            ) from error
        found = shutil.which(words[0]) if words else None
        if found is None:
            raise UsageError(
                f"mcp:{self.command}: there is no program {words[0] if words else ''}",
                hint="install it",
            )
        program, libraries = Path(found), list[Path]()
        if self.isolation.sealed:
            # A command such as python3 may be a script in the home folder (pyenv), which is hidden from the program.
            program, libraries = interpreter_of(program)
        named = {word: Path(word).resolve() for word in words[1:] if Path(word).exists()}
        self._words = [str(program), *(str(named.get(word, word)) for word in words[1:])]
        self._code = [*named.values(), *(path.resolve() for path in self.isolation.readable)]
        self.isolation.readable = [program, program.resolve().parent, *self._code, *libraries]

    @property
    def code_hash(self) -> str:
        """SHA-256 over the command and the files that it names."""
        return code_hash(self.command, self._code)

    async def solve(
        self, task: Mapping[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange
    ) -> None:
        """Run the program on a task, and submit its answer; InfrastructureError if it failed."""
        url = await self._address()
        token = token_urlsafe(16)
        tools = [*(ToolDescription(**tool) for tool in task["tools"]), FINAL_ANSWER]
        ended = asyncio.get_running_loop().create_future()
        session = self._sessions[token] = _Session(tools, call, report, exchange, ended)
        folder = self.isolation.add_folder()
        try:
            files = _lay_out(task["files"], folder)
            server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
            (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"agrotools": server}}))
            prompt = task["prompt"]
            if files:
                prompt += f"\n\nThe files are in this folder: {folder}"
            variables = {
                _URL: url,
                _TOKEN: token,
                _EPOCH: str(task["epoch"]),
                _SEED: str(task["seed"]),
            }
            await self._run(session, prompt, variables, task.get("endpoint", {}), folder)
        finally:
            del self._sessions[token]
            shutil.rmtree(folder, ignore_errors=True)

    async def close(self) -> None:
        """End the MCP server."""
        await self._stack.aclose()
        self.isolation.close()

    async def _run(
        self,
        session: _Session,
        prompt: str,
        variables: Mapping[str, str],
        endpoint: Mapping[str, str],
        folder: Path,
    ) -> None:
        places = {
            "{prompt}": prompt,
            "{config}": str(folder / "mcp.json"),
            "{url}": variables[_URL],
        }
        program, *words = self._words
        command = [program, *(_filled_in(word, places) for word in words)]
        process = await self.isolation.start(command, variables, endpoint, folder)
        on_standard_input = "" if "{prompt}" in self.command else prompt
        exchange = asyncio.ensure_future(_exchange(process, on_standard_input.encode()))
        try:
            await asyncio.wait({exchange, session.ended}, return_when=asyncio.FIRST_COMPLETED)
            if session.ended.done():
                return
            output, errors = exchange.result()
        finally:
            _kill(process)  # also what it left behind
            if not self.isolation.sealed:
                kill_descendants(variables[_TOKEN])
            with suppress(Exception):
                printed = await asyncio.wait_for(exchange, 5)
                session.exchange.printed = "\n".join(
                    _printed_text(each) for each in printed if each
                )
            # Pipes that another process holds would outlive the loop.
            process._transport.close()  # pyright: ignore
        if process.returncode:
            raise InfrastructureError(self._why_failed(process.returncode, errors))
        session.exchange.submit(output.decode(errors="replace").strip())

    def _why_failed(self, exit_code: int, errors: bytes) -> str:
        """Return exit code and last words of a program, and which files it cannot see if it lacks one."""
        last = last_words(errors.decode(errors="replace")) or "it wrote nothing"
        reason = f"the agent ended with exit code {exit_code}: {last:.300}"
        # 126 and 127 are a shell's exit codes for a command that cannot be executed or found.
        is_missing = exit_code in (126, 127) or "No such file or directory" in last
        return reason + _HIDDEN if self.isolation.sealed and is_missing else reason

    async def _address(self) -> str:
        if self._url is None:
            self._url = asyncio.get_running_loop().create_future()
            # Calls that are open when a sample ends are no fault.
            logging.getLogger("mcp").setLevel(logging.CRITICAL)
            service = ToolService(tools=self._tools, call=self._call)
            try:
                serving = http_server(tool_server(service), self._sessions.__contains__)
                self._url.set_result(await self._stack.enter_async_context(serving))
            except BaseException as error:
                self._url.set_exception(error)
        return await asyncio.shield(self._url)

    def _tools(self, headers: Headers) -> Sequence[ToolDescription]:
        return self._sessions[bearer_token(headers)].tools

    async def _call(
        self, tool: str, arguments: dict[str, Any], headers: Headers, _report: ReportProgress
    ) -> ToolReply:
        session = self._sessions.get(bearer_token(headers))
        if session is None:
            return _ENDED
        if tool == REPORT_USAGE:
            session.report(arguments)
            return ToolReply({"result": {"reported": True}})
        if tool != FINAL_ANSWER.name:
            if session.exchange.words is not None:
                return _ANSWERED
            try:
                return to_reply(await session.call(tool, arguments))
            except AgentStopped:
                return _ENDED
        if session.ended.done():
            return _ENDED
        if form := session.exchange.submit(str(arguments.get("text", ""))):
            return ToolReply({"result": {"form_request": form["form_request"]}})
        session.ended.set_result(None)
        return ToolReply({"result": {"submitted": True}})


def _filled_in(word: str, places: Mapping[str, str]) -> str:
    """Return a word of the command with the text of the first place that it holds."""
    for place, text in places.items():
        if place in word:
            return word.replace(place, text)
    return word


async def _exchange(process: asyncio.subprocess.Process, prompt: bytes) -> tuple[bytes, bytes]:
    """Write a prompt to a process, and return the ends of its output and its errors when it has ended."""
    assert process.stdin is not None
    output, errors = bytearray(), bytearray()
    transfer = asyncio.gather(
        _read_end(process.stdout, output, _LONGEST_OUTPUT),
        _read_end(process.stderr, errors, _LONGEST_OUTPUT),
        _write(process.stdin, prompt),
    )
    try:
        while process.returncode is None:  # noqa: ASYNC110 - wait() also waits until nobody holds the pipes
            await asyncio.sleep(0.02)
        await asyncio.wait({transfer}, timeout=_LAST_OUTPUT_S)
    finally:
        transfer.cancel()
    return bytes(output), bytes(errors)


async def _write(stdin: asyncio.StreamWriter, prompt: bytes) -> None:
    with suppress(ConnectionError):
        stdin.write(prompt)
        await stdin.drain()
    stdin.close()
