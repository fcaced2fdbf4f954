"""Agents that are programs and speak MCP: ``--model "mcp:COMMAND"``.

For each sample the command is started once. It gets the question in ``{prompt}`` (or on standard input) and the tools
from an MCP server on this machine, in ``{config}`` (a file in the form of ``mcpServers``) or ``{url}``. What it prints
is its answer, unless it calls ``final_answer``, whose first call returns the form of the answer. The program reports
its usage with ``report_usage``.
"""

import asyncio
import json
import logging
import os
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, NamedTuple

from agrotools.agents.external import AgentStopped, CallTool
from agrotools.agents.form_exchange import FormExchange
from agrotools.agents.mcp_server import Headers, ReportProgress, ToolService, bearer_token, http_server, tool_server
from agrotools.agents.process_agents import (
    TemporaryFolders,
    code_hash,
    endpoint_variables,
    lay_out,
    read_end,
    start_process,
)
from agrotools.agents.task import SendUsage, ToolDescription, ToolReply, to_reply
from agrotools.core import InfrastructureError, UsageError
from agrotools.core.processes import kill_descendants
from agrotools.sandbox.agents import agent_command, agent_variables, answer_folders, interpreter_of

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


_ENDED = ToolReply({"error": {"kind": "sample_ended", "message": "the sample has ended"}})
_ANSWERED = ToolReply(
    {"error": {"kind": "sample_ended", "message": "the answer is given", "hint": "call final_answer with its form"}}
)


class _Session(NamedTuple):
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
        sealed: True to isolate the program with bubblewrap.
        variables: names of environment variables that it gets.
        paths: files and folders that it may read, besides the system and its own folder.
    """

    command: str
    sealed: bool
    variables: Sequence[str] = ()
    paths: Sequence[Path] = ()
    answers: Sequence[Path] = ()
    """Folders with answers, besides those that are found below what it may read."""
    _hidden: list[Path] | None = None
    _sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _url: "asyncio.Future[str] | None" = None
    _folders: TemporaryFolders = field(default_factory=TemporaryFolders)

    def __post_init__(self) -> None:
        """Raise a UsageError if the command is empty, cannot be parsed, or names no program."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(f"mcp:{self.command}: {error}", hint="quote it as in a shell") from error
        program = shutil.which(words[0]) if words else None
        if program is None:
            raise UsageError(f"mcp:{self.command}: there is no program {words[0] if words else ''}", hint="install it")
        self._own = [Path(word).resolve() for word in words[1:] if Path(word).exists()]
        # A command such as python3 may be a script in the home folder (pyenv), which is hidden from the program.
        self._program, self._libraries = interpreter_of(Path(program)) if self.sealed else (Path(program), [])
        self._arguments = [str(Path(word).resolve()) if Path(word).exists() else word for word in words[1:]]

    @property
    def code_hash(self) -> str:
        """SHA-256 over the command and the files that it names."""
        return code_hash(self.command, [*self._own, *(path.resolve() for path in self.paths)])

    async def solve(self, task: Mapping[str, Any], call: CallTool, report: SendUsage, exchange: FormExchange) -> None:
        """Run the program on a task, and submit its answer; InfrastructureError if it failed."""
        url, token = await self._address(), token_urlsafe(16)
        tools = [*(ToolDescription(**tool) for tool in task["tools"]), FINAL_ANSWER]
        ended = asyncio.get_running_loop().create_future()
        session = self._sessions[token] = _Session(tools, call, report, exchange, ended)
        folder = self._folders.add()
        try:
            files = lay_out(task["files"], folder)
            server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
            (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"agrotools": server}}))
            prompt = task["prompt"] + (f"\n\nThe files are in this folder: {folder}" if files else "")
            variables = {_URL: url, _TOKEN: token}
            if endpoint := task.get("endpoint"):
                variables |= endpoint_variables(endpoint)
            await self._run(session, prompt, variables, folder)
        finally:
            del self._sessions[token]
            shutil.rmtree(folder, ignore_errors=True)

    async def close(self) -> None:
        """End the MCP server."""
        await self._stack.aclose()
        self._folders.remove()

    async def _run(self, session: _Session, prompt: str, variables: Mapping[str, str], folder: Path) -> None:
        places = {"{prompt}": prompt, "{config}": str(folder / "mcp.json"), "{url}": variables[_URL]}
        command = [str(self._program), *(_filled(word, places) for word in self._arguments)]
        variables = {**agent_variables(self.variables), **variables}
        readable = [self._program, self._program.resolve().parent, *self._own, *self.paths, *self._libraries]
        if self._hidden is None:
            self._hidden = answer_folders(readable, self.answers) if self.sealed else []
        process = await start_process(
            *agent_command(
                command, variables, sealed=self.sealed, readable=readable, folder=folder, hidden=self._hidden
            )
        )
        exchange = asyncio.ensure_future(_exchange(process, b"" if "{prompt}" in self.command else prompt.encode()))
        try:
            await asyncio.wait({exchange, session.ended}, return_when=asyncio.FIRST_COMPLETED)
            if session.ended.done():
                return
            output, errors = exchange.result()
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # also what it left behind
            if not self.sealed:
                kill_descendants(variables[_TOKEN])
            with suppress(Exception):
                await asyncio.wait_for(exchange, 5)
            process._transport.close()  # pyright: ignore # pipes that another process holds would outlive the loop
        if process.returncode:
            last = errors.decode(errors="replace").strip().splitlines()[-1:] or ["it wrote nothing"]
            is_missing = process.returncode in (126, 127) or "No such file or directory" in last[0]
            raise InfrastructureError(
                f"the agent ended with exit code {process.returncode}: {last[0]:.300}"
                + _HIDDEN * (self.sealed and is_missing)
            )
        session.exchange.submit(output.decode(errors="replace").strip())

    async def _address(self) -> str:
        """Return the address of the MCP server, which the first sample starts."""
        if self._url is None:
            self._url = asyncio.get_running_loop().create_future()
            logging.getLogger("mcp").setLevel(logging.CRITICAL)  # calls that are open when a sample ends are no fault
            service = ToolService(lambda headers: self._sessions[bearer_token(headers)].tools, self._call)
            try:
                serving = http_server(tool_server(service), self._sessions.__contains__)
                self._url.set_result(await self._stack.enter_async_context(serving))
            except BaseException as error:
                self._url.set_exception(error)
        return await asyncio.shield(self._url)

    async def _call(self, tool: str, arguments: dict[str, Any], headers: Headers, _report: ReportProgress) -> ToolReply:
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


def _filled(word: str, places: Mapping[str, str]) -> str:
    for place, value in places.items():
        if place in word:
            return value.join(word.split(place))
    return word


async def _exchange(process: asyncio.subprocess.Process, prompt: bytes) -> tuple[bytes, bytes]:
    """Write a prompt to a process, and return the ends of its output and its errors when it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = bytearray(), bytearray()
    transfer = asyncio.gather(
        read_end(process.stdout, output, _LONGEST_OUTPUT),
        read_end(process.stderr, errors, _LONGEST_OUTPUT),
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
