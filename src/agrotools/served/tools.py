"""Tools of servers in a run: which there are, and their calls, each sample with sessions of its own.

Servers have state. A sample has one session with a server (over standard input and output a process), which opens at
its first call and ends with the sample. No result is kept for another sample, and none is replayed.
"""

import asyncio
import mimetypes
import re
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from agrotools.calling.contract import SERVED, Tool
from agrotools.calling.services import run_now
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    AgreementKind,
    Arguments,
    Artifact,
    DeclaredTool,
    InfrastructureError,
    Observation,
    ToolError,
    ToolOutcome,
    UsageError,
)
from agrotools.core.texts import count_text
from agrotools.formats.manifest import ServerUse
from agrotools.sandbox.agents import Isolation, is_available
from agrotools.served.address import ServerAddress, read_address
from agrotools.served.binding import (
    BINDING_FAULT,
    Binding,
    BoundCall,
    BoundTool,
    check_against,
    filled_arguments,
    given_arguments,
    our_result,
    read_binding,
)
from agrotools.served.expressions import NoValue, value_of
from agrotools.served.files import SampleFolder, check_arguments
from agrotools.served.session import CALL_TIMEOUT_S, Listing, ServedReply, ServerSession
from agrotools.text.expression_functions import ExpressionError

_CALLABLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that all endpoints take for a tool."""
_LONGEST_ERROR = 2_000
"""Characters of an error of a served tool that a model sees; some end with a stack trace."""
_FILE_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class ListedServer:
    """A tool server with its listing, and how its processes are started."""

    address: ServerAddress
    name: str
    listing: Listing
    isolation: Isolation

    @property
    def is_sealed(self) -> bool:
        return self.address.kind == "stdio" and self.isolation.sealed

    @property
    def use(self) -> ServerUse:
        """What the manifest holds of the server."""
        listing = self.listing
        return ServerUse(
            name=self.name,
            address=self.address.text,
            version=listing.version,
            schemas=listing.schema_hash,
            sealed=self.is_sealed,
        )


class OwnTool(NamedTuple):
    """A served tool that samples offer beside ours, under a name of its own."""

    server: ListedServer
    served: str
    """Name on the server."""
    spec: DeclaredTool


@dataclass(frozen=True, eq=False)
class ServedToolset:
    """The servers of a run: their own tools by the names that samples offer, and the bindings of ours."""

    servers: tuple[ListedServer, ...] = ()
    own: Mapping[str, OwnTool] = field(default_factory=dict[str, OwnTool])
    bound: Mapping[str, tuple[ListedServer, BoundTool]] = field(
        default_factory=dict[str, tuple[ListedServer, BoundTool]]
    )
    bindings: tuple[Binding, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What is said of the servers before a run begins, one line each."""
        lines: list[str] = []
        for server in self.servers:
            bound = [name for name, (other, _) in self.bound.items() if other is server]
            own = [name for name, each in self.own.items() if each.server is server]
            use = f"runs {', '.join(bound)}" if bound else f"offers {count_text(len(own), 'tool')}"
            sealed = "" if server.is_sealed else ", unsealed"
            version = f" {server.listing.version}" if server.listing.version else ""
            lines.append(f"tool server {server.name}{version}{sealed}: {use}")
            if server.address.is_elsewhere:
                lines.append(
                    f"tool server {server.name} is on another machine: it gets files by content "
                    "(contentEncoding base64), and cannot read paths of this one"
                )
        return lines

    @property
    def backends(self) -> dict[str, str]:
        """Back-end of each tool of ours that a binding makes."""
        return {
            name: f"{SERVED}{binding.path}" for binding in self.bindings for name in binding.tools
        }

    @property
    def specs(self) -> list[DeclaredTool]:
        """The tools that samples offer beside ours."""
        return [own.spec for own in self.own.values()]

    @property
    def uses(self) -> tuple[ServerUse, ...]:
        return tuple(server.use for server in self.servers)


NO_SERVERS = ServedToolset()
"""The tools of a run without tool servers."""


async def list_server(address: ServerAddress, answers: Sequence[Path] = ()) -> ListedServer:
    """Return a server with its listing, which a session of its own gives.

    Args:
        answers: folders with answers, which its processes may not read.

    Raises:
        UsageError: its command may not be read by a sealed process, or the SDK is not installed.
        InfrastructureError: it does not start or answer.
    """
    is_sealed = address.kind == "stdio" and is_available()
    readable = address.readable() if is_sealed else []
    isolation = Isolation(
        is_sealed, readable=readable, answers=answers, has_network=False, works_in_folder=True
    )
    session = ServerSession(address, isolation, isolation.add_folder())
    try:
        await session.open()
        listing = await session.listing()
    finally:
        await session.close()
        isolation.close()
    name = address.name or re.sub(r"[^A-Za-z0-9_-]+", "_", listing.name)[:32]
    return ListedServer(address, name, listing, isolation)


async def served_toolset(
    addresses: Sequence[str],
    bindings: Sequence[str],
    find_tool: Callable[[str], Tool[..., Any]],
    *,
    taken: Collection[str] = (),
    answers: Sequence[Path] = (),
) -> ServedToolset:
    """Return the servers and bindings that a user names, checked against each other.

    A server that a binding uses only runs tools of ours; samples offer the tools of every other one.

    Args:
        addresses: addresses of servers.
        bindings: files; one that names no server is for the only one that is given.
        taken: names of tools that samples offer anyway.

    Raises:
        UsageError: see :func:`read_address`, :func:`read_binding`; two bindings of one tool, or no server for one.
        InfrastructureError: a server does not start.
    """
    for name, given_names in (("tool_servers", addresses), ("bindings", bindings)):
        if isinstance(given_names, str):
            raise UsageError(
                f"{name} is the text {given_names!r}, and must be a list of texts",
                hint=f"{name}=[{given_names!r}]",
            )
    read = [read_binding(Path(file), find_tool) for file in bindings]
    given = [read_address(text) for text in addresses]
    of_binding: list[ServerAddress] = []
    for binding in read:
        if not binding.server and len(given) != 1:
            raise UsageError(
                f"binding {binding.path}: no server is given",
                hint='name it: --tool-server ADDRESS, or server = "ADDRESS" in the file',
            )
        of_binding.append(read_address(binding.server) if binding.server else given[0])
    distinct = list(dict.fromkeys([*given, *of_binding]))
    listed = await asyncio.gather(*(list_server(each, answers) for each in distinct))
    servers = dict(zip(distinct, listed, strict=True))
    if len({server.name for server in listed}) < len(listed):
        raise UsageError(
            "two tool servers have the same name", hint="name one: --tool-server NAME=ADDRESS"
        )
    bound: dict[str, tuple[ListedServer, BoundTool]] = {}
    for binding, address in zip(read, of_binding, strict=True):
        check_against(binding, servers[address].listing, find_tool)
        for name, tool in binding.tools.items():
            if name in bound:
                raise UsageError(f"two bindings make {name}", hint="give one of them")
            bound[name] = servers[address], tool
    own = _own_tools([servers[each] for each in given if each not in of_binding], taken)
    return ServedToolset(tuple(listed), own, bound, tuple(read))


def _own_tools(servers: Sequence[ListedServer], taken: Collection[str]) -> dict[str, OwnTool]:
    """Return the tools of servers by the names that samples offer: with the server's in front where two are equal."""
    names = [tool.name for server in servers for tool in server.listing.tools]
    used = {*taken, *(name for name in names if names.count(name) > 1)}
    own: dict[str, OwnTool] = {}
    for server in servers:
        for tool in server.listing.tools:
            name = f"{server.name}_{tool.name}" if tool.name in used else tool.name
            if not is_callable_name(name) or name in own or name in taken:
                raise UsageError(
                    f"the tool server {server.name} has a tool {name!r}, a name that models cannot call",
                    hint="names have letters, digits, _ and -, at most 64, and each is there once",
                )
            schema: Any = tool.arguments
            properties: dict[str, Any] = schema.get("properties", {})
            spec = DeclaredTool(
                name=name,
                category="served",
                version=server.listing.version or "1",
                description=tool.description,
                parameters={**schema, "properties": properties},
                agreement={each: _agreement(about) for each, about in properties.items()},
                defaults={
                    each: about["default"]
                    for each, about in properties.items()
                    if "default" in about
                },
                server=server.name,
            )
            own[name] = OwnTool(server, tool.name, spec)
    return own


def is_callable_name(name: str) -> bool:
    """True if all endpoints take ``name`` as that of a tool."""
    return _CALLABLE_NAME.fullmatch(name) is not None


def _agreement(schema: Mapping[str, Any]) -> AgreementKind:
    return "number" if schema.get("type") in ("integer", "number") else "choice"


@dataclass(eq=False)
class _OpenSample:
    """The sessions of one sample with servers, by name, and its folder for each."""

    workspace: Workspace
    sessions: dict[str, tuple[ServerSession, SampleFolder]] = field(
        default_factory=dict[str, tuple[ServerSession, SampleFolder]]
    )
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class ServedCalls:
    """Calls of served tools, of any number of samples at a time. Implements what a tool executor needs of them.

    Args:
        toolset: the servers of the run.
        timeout_s: seconds of one call of a server.
    """

    def __init__(self, toolset: ServedToolset, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._toolset = toolset
        self._timeout_s = timeout_s
        self._open: dict[Path, _OpenSample] = {}

    def offers(self, tool: str) -> bool:
        """True if ``tool`` is a served tool that samples offer beside ours."""
        return tool in self._toolset.own

    async def call_own(self, tool: str, arguments: Arguments, workspace: Workspace) -> ToolOutcome:
        """Return the outcome of a call of a served tool that samples offer.

        Raises:
            ToolError: the arguments do not fit its schema or name a file outside.
            InfrastructureError: the server is broken.
        """
        own = self._toolset.own[tool]
        session, folder = await self._session(own.server, workspace)
        started = time.perf_counter()  # the start of a server is no work of the tool
        reply = await _call(own.server, own.served, arguments, session, folder)
        return ToolOutcome(
            _observation(reply, reply.result, workspace), time.perf_counter() - started
        )

    async def call_bound(
        self, tool: Tool[..., Any], arguments: Arguments, workspace: Workspace
    ) -> ToolOutcome:
        """Return the outcome of a call of one of our tools that is bound to a server; ``arguments``: valid ones.

        Raises:
            ToolError: the binding is not made for the call, or the server refuses it.
            InfrastructureError: the server is broken.
        """
        server, bound = self._toolset.bound[tool.name]
        if unfit := bound.unfit(arguments):
            raise unfit
        session, folder = await self._session(server, workspace)
        started = time.perf_counter()  # the start of a server is no work of the tool
        if bound.is_whole:
            # What is not given is the same on both sides: ours are read as null, theirs have a default.
            given = given_arguments(arguments, tool.spec.defaults)
            reply = await _call(server, bound.name, given, session, folder)
            observation = _observation(reply, reply.result, workspace)
        else:
            reply, result = await _call_in_turn(server, bound, arguments, session, folder)
            observation = _observation(reply, result, workspace)
        return ToolOutcome(observation, time.perf_counter() - started)

    async def _session(
        self, server: ListedServer, workspace: Workspace
    ) -> tuple[ServerSession, SampleFolder]:
        """Return the session of a sample with a server, which is opened if there is none yet."""
        sample = self._open.setdefault(workspace.artifacts, _OpenSample(workspace))
        async with sample.opening:
            if server.name not in sample.sessions:
                folder = SampleFolder(workspace, server.isolation.add_folder())
                await asyncio.to_thread(folder.lay_out)
                session = ServerSession(
                    server.address, server.isolation, folder.path, self._timeout_s
                )
                sample.sessions[server.name] = session, folder
                await session.open()
            return sample.sessions[server.name]

    async def end_sample(self, workspace: Workspace) -> None:
        """End the sessions of a sample, with their processes and folders."""
        sample = self._open.pop(workspace.artifacts, None)
        if sample is None:
            return
        for session, folder in sample.sessions.values():
            await session.close()
            await asyncio.to_thread(shutil.rmtree, folder.path, ignore_errors=True)

    async def close(self) -> None:
        """End all sessions, and remove the folders of the servers.

        It uses no thread: at the exit of the interpreter, none starts any more.
        """
        samples = [*self._open.values()]
        self._open.clear()
        sessions = [session for sample in samples for session, _ in sample.sessions.values()]
        await asyncio.gather(*(session.close() for session in sessions))
        for server in self._toolset.servers:
            server.isolation.close()


async def _call(
    server: ListedServer,
    name: str,
    arguments: Mapping[str, Any],
    session: ServerSession,
    folder: SampleFolder,
) -> ServedReply:
    """Return the reply to one call, with the files of the sample by name. ToolError: the tool reports an error."""
    served = server.listing.tool(name)
    assert served is not None  # checked before the run
    check_arguments(name, arguments, served.arguments)
    schemas: Any = served.arguments.get("properties", {})
    given = {key: folder.given(value, schemas.get(key, {})) for key, value in arguments.items()}
    reply = await session.call(name, given)
    if reply.error is not None:
        message = folder.without_paths(reply.error)[:_LONGEST_ERROR]
        raise ToolError("tool_failed", message, hint="other arguments or another file may work")
    return reply._replace(result=folder.without_paths(reply.result))


async def _call_in_turn(
    server: ListedServer,
    bound: BoundTool,
    arguments: Arguments,
    session: ServerSession,
    folder: SampleFolder,
) -> tuple[ServedReply, dict[str, JsonValue]]:
    """Make the calls of a binding, and return the last reply, with the files of all, and our result."""
    given = {name: value for name, value in arguments.items() if value is not None}
    asked: dict[str, Any] = {**_known(arguments, folder.workspace), **given}
    values = {**asked, "files": str(folder.path)}
    kept: dict[str, Any] = {}
    files: list[Any] = []
    reply = ServedReply({})
    for call in bound.calls:
        try:
            reply = await _call(server, call.tool, filled_arguments(call, values), session, folder)
            kept |= _kept_values(call, reply)
        except (NoValue, ExpressionError) as error:
            message = f"{BINDING_FAULT}: {call.tool}: {error}"
            raise ToolError("tool_failed", message) from error
        except ToolError as error:
            if error.kind != "invalid_argument":
                raise
            # The arguments are those of the binding: a server that refuses them is never asked.
            message = f"{BINDING_FAULT}: {error.message}"
            raise ToolError(error.kind, message, hint=error.hint) from error
        values |= kept
        files += reply.files
    return reply._replace(files=tuple(files)), our_result(bound, {**asked, **kept, **reply.result})


def _known(arguments: Arguments, workspace: Workspace) -> Arguments:
    """Return arguments that follow from what is known about the files of a call, as our own tools complete them."""
    known: dict[str, JsonValue] = {}
    for value in arguments.values():
        file = workspace.info(value) if isinstance(value, str) else None
        known |= file.known_arguments if file is not None else {}
    return known


def _kept_values(call: BoundCall, reply: ServedReply) -> dict[str, Any]:
    return {name: value_of(expression, reply.result) for name, expression in call.keep.items()}


def _observation(
    reply: ServedReply, result: dict[str, JsonValue], workspace: Workspace
) -> Observation:
    """Return a result with the files of a reply, which are kept under the names that the result then has for them."""
    renamed: dict[str, str] = {}
    artifacts: list[Artifact] = []
    for file in reply.files:
        name = _artifact_name(file.name, file.media_type)
        is_picture = file.media_type.startswith("image/")
        kind: Literal["image", "table"] = "image" if is_picture else "table"
        made = Artifact(
            name=name,
            kind=kind,
            media_type=file.media_type,
            sha256=sha256(file.content).hexdigest(),
        )
        try:
            kept = workspace.keep(made, file.content)
        except OSError as error:
            raise InfrastructureError(
                f"artifacts cannot be written to {workspace.artifacts}: {error.strerror}"
            ) from error
        artifacts.append(kept)
        if kept.name != file.name:
            renamed[file.name] = kept.name
    named = {
        key: renamed.get(value, value) if isinstance(value, str) else value
        for key, value in result.items()
    }
    return Observation(result=named, artifacts=tuple(artifacts))


def _artifact_name(name: str, media_type: str) -> str:
    """Return a name that an artifact may have."""
    stem, dot, ending = _FILE_NAME.sub("_", name).lstrip("_.-").rpartition(".")
    if not dot:
        stem, ending = ending, (mimetypes.guess_extension(media_type) or ".bin").lstrip(".")
    return f"{stem[:80] or 'file'}.{ending[:15]}"


def open_toolset(
    addresses: Sequence[str],
    bindings: Sequence[str],
    find_tool: Callable[[str], Tool[..., Any]],
    *,
    taken: Collection[str] = (),
    answers: Sequence[Path] = (),
) -> ServedToolset:
    """Return what :func:`served_toolset` returns, also where this thread runs an event loop."""
    return run_now(served_toolset(addresses, bindings, find_tool, taken=taken, answers=answers))
