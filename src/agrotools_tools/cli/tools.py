"""``agrotools tools`` and ``serve``: list, describe and run tools, compare their back-ends, and offer them over MCP."""

import sys
from pathlib import Path
from typing import Any, Literal, NoReturn

import typer

from agrotools.cli.options import command_group, sub_command
from agrotools.cli.output import allow_closed_pipe, count_text, print_json, warn_of_hidden
from agrotools.exit_codes import BAD_USAGE, FAULTS, NOT_DONE, STOPPED, code_of
from agrotools_tools.cli.kb import app as kb
from agrotools_tools.cli.packs import app as packs

app = command_group(
    "List, describe, run and compare the tools; their recognisers and knowledge base."
)
app.add_typer(packs, name="packs")
app.add_typer(kb, name="kb")


@sub_command(app, "tools list")
def list_tools(as_json: bool = False) -> None:
    """List every tool with category and purpose, and the tools under published names with their benchmarks."""
    from agrotools.calling import get_tool, tool_names
    from agrotools.core import UsageError
    from agrotools.report.terminal import print_parts
    from agrotools_tools.cli.tool_text import summary, tool_tables

    rows: list[dict[str, Any]] = []
    for name in tool_names():
        try:
            tool = get_tool(name)
        except UsageError as error:
            rows.append(
                {
                    "name": name,
                    "category": None,
                    "version": None,
                    "summary": None,
                    "error": str(error),
                }
            )
            continue
        rows.append(
            {
                "name": name,
                "category": tool.category,
                "version": tool.version,
                "summary": summary(tool),
            }
        )
    if as_json:
        print_json(rows)
    else:
        print_parts(tool_tables(rows))


@sub_command(app, "tools describe")
def describe(tool: str, as_json: bool = False) -> None:
    """Describe a tool: purpose, arguments, results and errors. In JSON, `expert` names those no model is shown."""
    from agrotools.calling.result import certificate
    from agrotools.report.terminal import print_parts
    from agrotools_tools.cli.tool_text import description, result_schema

    implementation = _find(tool, as_json)
    if as_json:
        certified = {"certificate": certificate(implementation.name, implementation.version)}
        print_json(
            implementation.spec.model_dump(mode="json")
            | {"result": result_schema(implementation)}
            | certified
        )
    else:
        print_parts(description(implementation))


@sub_command(
    app, "tools run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def run(
    context: typer.Context,
    tool: str,
    arguments: str = "{}",
    out: Path = Path("agrotools-out"),
    backend: str | None = None,
    vlm_model: str | None = None,
    vlm_base_url: str | None = None,
    vlm_api_key_env: str | None = None,
    as_json: bool = False,
) -> None:
    """Run a tool. Its arguments are options of the same name: --image field.jpg --gsd-m 0.02.

    Files are paths on this machine; lists and objects are JSON. `agrotools tools describe TOOL` lists the arguments.
    """
    from agrotools.calling.execution import check_backend
    from agrotools.calling.result import encode_result, with_artifact_names
    from agrotools.calling.workspace import ArtifactWriteError, artifacts_in
    from agrotools.cli.option_words import in_options, options_of
    from agrotools.core import ToolError, UsageError
    from agrotools.report.terminal import print_parts
    from agrotools_tools.cli.tool_text import parse_arguments, result_table

    implementation = _find(tool, as_json)
    options = options_of(implementation.spec.parameters["properties"])
    vision = None
    try:
        call = parse_arguments(implementation.spec, arguments, context.args)
        if backend is not None:
            check_backend(implementation, backend)
        vision = _vision(implementation, backend, vlm_model, vlm_base_url, vlm_api_key_env)
        with artifacts_in(out, backend=backend, vision=vision):
            result = implementation(**call, out=out)
    except UsageError as error:
        _fail(error.message, error.hint, {"kind": "usage"}, as_json, BAD_USAGE)
    except ToolError as error:
        message = in_options(error.message, options, argument=error.argument)
        advice = None
        if error.advice:
            advice = in_options(error.advice, options, argument=error.argument)
        _fail(message, advice, error.info.model_dump(), as_json, code_of(error) or NOT_DONE)
    except ArtifactWriteError as error:
        message, hint = (
            f"{error.filename or out}: {error.strerror or error}",
            "--out says where made files go",
        )
        _fail(message, hint, {"kind": "tool_failed"}, as_json, NOT_DONE)
    except MemoryError:
        _fail(
            "there is not enough memory",
            "use a smaller region or file",
            {"kind": "limit"},
            as_json,
            NOT_DONE,
        )
    except (Exception, SystemExit) as error:
        message = f"{tool} failed on this input ({type(error).__name__}: {error})"
        _fail(
            message,
            "other arguments or another file may work",
            {"kind": "tool_failed"},
            as_json,
            NOT_DONE,
        )
    finally:
        if vision is not None and (cost := vision.cost()):
            typer.echo(cost, err=True)
    encoded, artifacts = encode_result(result, implementation.significant_digits)
    paths = [str(out / artifact.name) for artifact in artifacts]
    plain = with_artifact_names(encoded, paths)
    maps = [str(path) for path in result.paths.values() if str(path) not in paths]
    if as_json:
        rows = [
            {**artifact.model_dump(), "path": path}
            for artifact, path in zip(artifacts, paths, strict=True)
        ]
        print_json({"result": plain, "artifacts": rows, **({"maps": maps} if maps else {})})
    else:
        is_exact = implementation.significant_digits != 6
        table = result_table(plain, [*paths, *maps], exact=is_exact)
        table.notes = [in_options(note, options) for note in table.notes]
        print_parts([table])
        for path in (*paths, *maps):
            typer.echo(f"wrote {path}")


def _vision(
    tool: Any, backend: str | None, name: str | None, base_url: str | None, api_key_env: str | None
) -> Any:
    """Return the vision endpoint of the tool; None if it needs none."""
    if backend is None and name is None and base_url is None:
        return None
    from agrotools.calling.services.vision_endpoint import VisionEndpoint
    from agrotools.models import Endpoint
    from agrotools.runner.run_settings import tool_model

    backends = {tool.name: backend} if backend else {}
    endpoint = tool_model(backends, Endpoint(name or "", base_url, api_key_env))
    return VisionEndpoint(endpoint.model, endpoint.name, endpoint.price) if endpoint else None


def _find(name: str, as_json: bool) -> Any:
    from agrotools.calling import TOOLS, get_tool
    from agrotools.core import UsageError

    try:
        return get_tool(name)
    except UsageError as error:
        kind, code = (
            ("backend_unavailable", NOT_DONE) if name in TOOLS else ("unknown_tool", BAD_USAGE)
        )
        _fail(error.message, error.hint, {"kind": kind}, as_json, code)


def _fail(
    message: str, hint: str | None, info: dict[str, Any], as_json: bool, code: int
) -> NoReturn:
    if as_json:
        with allow_closed_pipe():
            print_json({"error": {**info, "message": message, "hint": hint}})
    for line in (f"error: {message}", f"hint: {hint}" if hint else ""):
        if line:
            typer.echo(" ".join(line.split()), err=True)
    raise typer.Exit(code)


@sub_command(app, "tools compare")
def compare(
    backends: str,
    data: Path,
    tool: str = "diagnose_pest_disease",
    labels: Path | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    argument: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Compare back-ends of a tool on your labelled photographs, paired by photograph.

    The first back-end is the one that the others are compared with. Intervals are 95 %, over groups of photographs.
    """
    from agrotools.cli.reading import new_readings, print_readings
    from agrotools.report.terminal import print_parts
    from agrotools_tools.backend_comparison import backend_table, compare_backends, photo_table
    from agrotools_tools.cli.tool_text import named_values
    from agrotools_tools.recognition.labelled_pictures import LabelColumns, read_labelled

    warn_of_hidden([labels] if labels else [])
    readings = new_readings(yes=False)
    columns = LabelColumns(image_column, label_column)
    pictures = read_labelled(data, labels, to_learn=False, columns=columns, readings=readings)
    print_readings(readings)
    scores = compare_backends(
        tool,
        [name.strip() for name in backends.split(",") if name.strip()],
        pictures,
        named_values(argument or ()),
        progress=lambda line: typer.echo(line, err=True),
    )
    if as_json:
        print_json([one.model_dump(mode="json") for one in scores])
    else:
        print_parts([backend_table(tool, scores), photo_table(scores)])


@sub_command(app, "tools check")
def check(
    benchmark: list[str] | None = None,
    tool_server: str | None = None,
    binding: Path | None = None,
    propose: Path | None = None,
    whole: bool = False,
    page: Path | None = None,
    as_json: bool = False,
) -> None:
    """Check the tools of an MCP server against truth, and say how many points they win in the place of ours.

    Without --binding, its schemas are checked. No model is needed. The same command goes on where it was stopped.
    """
    from agrotools.cli.output import stop_message
    from agrotools.core import UsageError
    from agrotools.core.files import write_whole
    from agrotools.report.terminal import print_parts
    from agrotools.report.text_tables import tables_page

    if propose is not None or binding is None:
        if tool_server is None:
            raise UsageError("no tool server is given", hint="add --tool-server ADDRESS")
        if page is not None or benchmark:
            raise UsageError(
                "schemas are checked without a benchmark, and have no page",
                hint="add --binding FILE",
            )
        _check_schemas(tool_server, propose, as_json=as_json)
        return
    from agrotools.analysis.served_check import (
        NoFittingCallError,
        ServedCheck,
        check_served,
        check_tables,
    )

    servers = [tool_server] if tool_server else []
    checks: list[ServedCheck] = []
    unfit: list[NoFittingCallError] = []
    with stop_message("finished questions are kept"):
        for name in benchmark or ["embedded"]:
            try:
                checks.append(
                    check_served(name, servers, str(binding), sys.stderr, quick=not whole)
                )
            except NoFittingCallError as error:
                unfit.append(error)
    if not checks:
        raise unfit[0]
    for error in unfit:
        typer.echo(error.message, err=True)
    tables = [table for each in checks for table in check_tables(each)]
    if page is not None:
        write_whole(page, tables_page(tables, f"Tools of {checks[0].server}").encode())
        typer.echo(f"wrote {page}", err=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in checks])
    else:
        print_parts(tables)
    if any(each.invalid for each in checks):
        raise typer.Exit(FAULTS)


def _check_schemas(server: str, propose: Path | None, *, as_json: bool) -> None:
    """Check the schemas of a server, and write a proposal of a binding if a file for it is given."""
    import asyncio

    from agrotools.calling import get_tool, tool_names
    from agrotools.core import UsageError
    from agrotools.core.files import write_new
    from agrotools.report.layout import new_table
    from agrotools.report.terminal import print_parts
    from agrotools.served.address import read_address
    from agrotools.served.proposal import check_schemas, proposed_binding
    from agrotools.served.tools import list_server

    listed = asyncio.run(list_server(read_address(server)))
    listing = listed.listing
    if propose is not None:
        tools = {name: get_tool(name) for name in tool_names()}
        arguments = {name: tool.spec.parameters for name, tool in tools.items()}
        fields = {
            name: [each for each in tool.result_type.model_fields if each not in ("notes", "flags")]
            for name, tool in tools.items()
            if tool.category not in ("general", "published")
        }
        if not write_new(propose, proposed_binding(listing, server, arguments, fields).encode()):
            raise UsageError(f"{propose} exists", hint="give another file, or remove it")
        typer.echo(f"wrote {propose}", err=True)
    rows = check_schemas(listing)
    if as_json:
        print_json({"server": listed.use.model_dump(), "tools": [row._asdict() for row in rows]})
        return
    sealed = "" if listed.is_sealed else ", unsealed"
    version = f" {listing.version}" if listing.version else ""
    title = f"{listed.name}{version}{sealed}"
    table = new_table(
        title, ["required", "optional", "files go in as", "fields of the result", "faults"]
    )
    for row in rows:
        table.add_row(
            row.tool,
            ", ".join(row.required),
            str(row.optional),
            row.files,
            ", ".join(row.result),
            "; ".join(row.faults),
        )
    print_parts([table])


@sub_command(app, "tools zones")
def zones(
    rasters: list[Path],
    zones: str,
    out: Path = Path("agrotools-out"),
    value: list[str] | None = None,
    band: list[str] | None = None,
    id_field: str | None = None,
    layer: list[str] | None = None,
    scale: list[str] | None = None,
    offset: float | None = None,
    table: Path | None = None,
    settings: list[str] | None = None,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Measure plots or other zones in rasters of one or many dates: a table, GeoJSON, a map and a chart of dates.

    With the plan of a trial (--table), also the means of its treatments and their differences from the control.

    A grid is x=500000,y=5000000,rows=20,columns=50,width=1.5,length=6,rotation=12,gap=0.5, from its upper left corner.
    """
    from agrotools.cli.option_words import in_options, with_pairs
    from agrotools.cli.reading import new_readings, print_readings
    from agrotools.core import ToolError
    from agrotools_tools.zones.measure import measure_zones

    readings = new_readings(yes=yes)
    try:
        measured = measure_zones(
            rasters,
            zones,
            values=value or (),
            bands=_pairs_of(band or [], "--band", "ROLE=BAND", "--band R=3 --band NIR=4") or None,
            id_field=id_field,
            layer=layer,
            scale=_scales_of(scale or []) or None,
            offset=offset,
            table=table,
            settings=_pairs_of(settings or [], "--set", "NAME=VALUE", "--set control=untreated"),
            out=out,
            progress=lambda line: typer.echo(line, err=True),
            readings=readings,
        )
    except ToolError as error:
        error.message = in_options(error.message, _OPTIONS_OF_ZONES, with_pairs)
        error.hint = in_options(error.hint or "", _OPTIONS_OF_ZONES, with_pairs) or None
        raise
    notes = [in_options(note, _OPTIONS_OF_ZONES, with_pairs) for note in measured.notes]
    print_readings(readings)
    if as_json:
        files = [str(path) for path in measured.files]
        content = {
            "rows": measured.rows,
            "treatments": measured.treatments,
            "notes": measured.notes,
        }
        print_json({**content, "files": files, **readings.as_data()})
        return
    for line in notes:  # before the tables: they say which plots the means are not of
        typer.echo(line)
    if measured.treatments:
        _print_treatments(measured.treatments)
    for file in measured.files:
        typer.echo(str(file))


def _print_treatments(rows: list[dict[str, str | float | None]]) -> None:
    """Print the treatments by the first value in the first and the last raster, its change, and columns of the plan."""
    from agrotools.core.texts import count_text
    from agrotools.report.layout import ReportTable, new_table
    from agrotools.report.terminal import print_parts
    from agrotools_tools.zones.shown import decimals_of, named_with_unit, rounded_text
    from agrotools_tools.zones.treatments import CHANGE

    first = str(rows[0]["value"])
    change = f"{CHANGE}{first}"
    rasters = [*dict.fromkeys(row["raster"] for row in rows if row["value"] == first)]
    by_title: dict[str, list[dict[str, str | float | None]]] = {}
    for row in rows:
        is_of_plan = row["raster"] is None
        is_of_first = row["value"] == first and row["raster"] in (rasters[0], rasters[-1])
        if is_of_plan or is_of_first or row["value"] == change:
            place = "" if is_of_plan else f", {row['date'] or row['raster']}"
            by_title.setdefault(f"{named_with_unit(str(row['value']))}{place}", []).append(row)
    tables: list[ReportTable] = []
    for title, shown in by_title.items():
        headings = ["n", "mean", "SD", f"minus {rows[0]['treatment']}", "95 % interval"]
        table = new_table(title, headings)
        decimals = decimals_of([float(row["sd"]) for row in shown if row["sd"] is not None])
        for row in shown:
            mean, sd, difference, lower, upper = (
                "" if row[name] is None else rounded_text(float(row[name] or 0), decimals)
                for name in ("mean", "sd", "difference", "lower_95", "upper_95")
            )
            interval = " to ".join(filter(None, (lower, upper)))
            table.add_row(str(row["treatment"]), str(row["n"]), mean, sd, difference, interval)
        tables.append(table)
    print_parts(tables)
    between = len(rasters) - 2
    if between > 0:
        typer.echo(f"{count_text(between, 'raster')} between these dates: see treatments.csv")


_OPTIONS_OF_ZONES = {"bands": "--band", "id_field": "--id", "values": "--value"}
"""Options of ``tools zones`` that have other names than the arguments."""


def _scales_of(texts: list[str]) -> dict[str, float]:
    """Return scales by raster, "" for all others. UsageError: a text is no number and not FILE=NUMBER, or twice."""
    from agrotools.core import UsageError

    scales: dict[str, float] = {}
    for text in texts:
        # A name of a file may have an equals sign, too.
        name, _, number = text.rpartition("=")
        try:
            factor = float(number)
        except ValueError:
            why = f"--scale {text}: {number!r} is not a number"
            raise UsageError(why, hint="--scale 0.01, or --scale FILE=0.01") from None
        if scales.setdefault(name, factor) != factor:
            raise UsageError(f"--scale {text} is given twice", hint="give each raster one scale")
    return scales


def _pairs_of(texts: list[str], option: str, form: str, example: str) -> dict[str, str]:
    """Return values by name, of texts as ``form`` says: ``NAME=VALUE``.

    Raises:
        UsageError: a text is not so, or a name is given twice.
    """
    from agrotools.core import UsageError

    pairs: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"{option} {text}: it is not {form}", hint=example)
        if pairs.setdefault(name, value) != value:
            left, _, right = form.lower().partition("=")
            raise UsageError(
                f"{option} {name} is given twice", hint=f"give each {left} one {right}"
            )
    return pairs


def serve(
    workspace: Path = Path(),
    tools: str = "",
    backend: list[str] | None = None,
    http: bool = False,
    port: int | None = None,
    output_schemas: bool = False,
    all_arguments: bool = False,
    timeout: float = 60.0,
    tool_workers: int = 2,
    config: Literal["claude-desktop", "claude-code", "cursor", "vscode"] | None = None,
) -> None:
    """Serve tools over MCP (Model Context Protocol) to any client: Claude, Cursor, VS Code, your own agent.

    The tools open only files of the workspace. With --http the token is printed once, unless it is set in
    AGROTOOLS_MCP_TOKEN.
    """
    import asyncio
    import sys

    from agrotools.core import UsageError
    from agrotools.runner.config_file import tool_backends
    from agrotools_tools import AGROTOOLS
    from agrotools_tools.serve.mcp import (
        ServerOptions,
        access_token,
        check_tools,
        client_configuration,
        open_workspace,
        serve_http,
        serve_stdio,
    )

    names = check_tools([name.strip() for name in tools.split(",") if name.strip()] or AGROTOOLS)
    folder = open_workspace(workspace.expanduser()).root
    assert folder is not None
    if port is not None and not http:
        raise UsageError("--port is for --http", hint="add --http")
    if config is not None:
        if http:
            raise UsageError("--config is for a server that the client starts", hint="omit --http")
        options = [("--workspace", folder), ("--tools", tools)]
        options += [("--backend", each) for each in backend or []]
        options += [("--timeout", timeout)] * (timeout != ServerOptions.timeout_s)
        options += [("--tool-workers", tool_workers)] * (tool_workers != ServerOptions.workers)
        arguments = [text for name, value in options if value for text in (name, str(value))]
        arguments += ["--output-schemas"] * output_schemas
        arguments += ["--all-arguments"] * all_arguments
        content, place = client_configuration(config, arguments)
        typer.echo(f"# {place}", err=True)
        typer.echo(content)
        return
    chosen = ServerOptions(
        folder,
        names,
        tool_backends(backend or []),
        output_schemas,
        all_arguments,
        tool_workers,
        timeout,
    )
    if not http:
        if sys.stdin.isatty():
            typer.echo(
                "waiting for an MCP client on standard input; --config CLIENT shows how to connect one",
                err=True,
            )
        asyncio.run(serve_stdio(chosen))
        return
    token, is_new = access_token()

    def started(address: str) -> None:
        typer.echo(f"serving {count_text(len(names), 'tool')} on {folder}\naddress: {address}")
        if is_new:
            typer.echo(f"token: {token}")
        typer.echo("Press Ctrl-C to stop")

    asyncio.run(serve_http(chosen, port or 0, token, started))
    raise typer.Exit(STOPPED)
