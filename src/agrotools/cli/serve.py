"""``agrotools serve``: offer the tools over MCP."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agrotools.cli.output import STOPPED


def serve(
    workspace: Annotated[
        Path, typer.Option(help="Folder whose files the tools may open; results go to agrotools-results in it.")
    ] = Path(),
    tools: Annotated[
        str, typer.Option(help="Names of tools, separated by commas. Default: the toolset of the AgroTools benchmark.")
    ] = "",
    backend: Annotated[list[str] | None, typer.Option(help="TOOL=KIND, back-end of a tool (repeatable).")] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve on 127.0.0.1 with a token instead of stdio.")] = False,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port for --http. Default: any free port.")] = None,
    record: Annotated[Path | None, typer.Option(help="Run folder to which the calls are recorded.")] = None,
    output_schemas: Annotated[
        bool, typer.Option("--output-schemas", help="List the schema of each result, which takes much context.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit of one call, seconds.")] = 60.0,
    tool_workers: Annotated[int, typer.Option(min=1, help="Calls that run at the same time.")] = 2,
    config: Annotated[
        Literal["claude-desktop", "claude-code", "cursor", "vscode"] | None,
        typer.Option(help="Print the configuration for this client with the other options, and exit."),
    ] = None,
) -> None:
    """Serve tools over MCP (Model Context Protocol) to any client: Claude, Cursor, VS Code, your own agent.

    The tools open only files of the workspace. With --http the token is printed once, unless it is set in
    AGROTOOLS_MCP_TOKEN.
    """
    import asyncio
    import sys

    from agrotools.core import UsageError
    from agrotools.runner.config import tool_backends
    from agrotools.serve.mcp import (
        ServerOptions,
        access_token,
        check_tools,
        client_configuration,
        open_workspace,
        serve_http,
        serve_stdio,
    )
    from agrotools.tools import AGROTOOLS

    names = check_tools([name.strip() for name in tools.split(",") if name.strip()] or AGROTOOLS)
    folder = open_workspace(workspace.expanduser()).root
    assert folder is not None
    if port is not None and not http:
        raise UsageError("--port is for --http", hint="add --http")
    if config is not None:
        if http:
            raise UsageError("--config is for a server that the client starts", hint="omit --http")
        options = [("--workspace", folder), ("--tools", tools), ("--record", record and record.absolute())]
        options += [("--backend", each) for each in backend or []]
        options += [("--timeout", timeout)] * (timeout != ServerOptions.timeout_s)
        options += [("--tool-workers", tool_workers)] * (tool_workers != ServerOptions.workers)
        arguments = [text for name, value in options if value for text in (name, str(value))]
        arguments += ["--output-schemas"] * output_schemas
        content, place = client_configuration(config, arguments)
        typer.echo(f"# {place}", err=True)
        typer.echo(content)
        return
    chosen = ServerOptions(folder, names, tool_backends(backend or []), record, output_schemas, tool_workers, timeout)
    if not http:
        if sys.stdin.isatty():
            typer.echo(
                "waiting for an MCP client on standard input; --config CLIENT shows how to connect one", err=True
            )
        asyncio.run(serve_stdio(chosen))
        return
    token, is_new = access_token()

    def started(address: str) -> None:
        typer.echo(f"serving {len(names)} tools on {folder}\naddress: {address}")
        if is_new:
            typer.echo(f"token: {token}")
        typer.echo("Press Ctrl-C to stop")

    asyncio.run(serve_http(chosen, port or 0, token, started))
    raise typer.Exit(STOPPED)
