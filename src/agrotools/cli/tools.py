"""``agrotools tools``: list, describe and run tools, and compare their back-ends."""

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from agrotools.cli.kb import app as kb
from agrotools.cli.options import AsJson, Commands
from agrotools.cli.output import BAD_USAGE, NOT_DONE, allow_closed_pipe, code_of, print_json
from agrotools.cli.packs import app as packs

app = typer.Typer(
    cls=Commands,
    help="List, describe, run and compare the tools; their recognisers and knowledge base.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(packs, name="packs")
app.add_typer(kb, name="kb")


@app.command("list")
def list_tools(as_json: AsJson = False) -> None:
    """List every tool with category and purpose, and the tools under published names with their benchmarks."""
    from agrotools.cli.tool_text import summary, tool_tables
    from agrotools.core import UsageError
    from agrotools.report.terminal import print_parts
    from agrotools.tools import get_tool, tool_names

    rows: list[dict[str, Any]] = []
    for name in tool_names():
        try:
            tool = get_tool(name)
        except UsageError as error:
            rows.append({"name": name, "category": None, "version": None, "summary": None, "error": str(error)})
            continue
        rows.append({"name": name, "category": tool.category, "version": tool.version, "summary": summary(tool)})
    if as_json:
        print_json(rows)
    else:
        print_parts(tool_tables(rows))


@app.command()
def describe(tool: Annotated[str, typer.Argument(help="Name of the tool.")], as_json: AsJson = False) -> None:
    """Describe a tool: purpose, arguments, results and errors; as JSON the schema that models see."""
    from agrotools.cli.tool_text import description, result_schema
    from agrotools.report.terminal import print_parts
    from agrotools.tools.result import certificate

    implementation = _find(tool, as_json)
    if as_json:
        certified = {"certificate": certificate(implementation.name, implementation.version)}
        print_json(implementation.spec.model_dump(mode="json") | {"result": result_schema(implementation)} | certified)
    else:
        print_parts(description(implementation))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="Name of the tool.")],
    arguments: Annotated[
        str, typer.Option(help="Arguments as a JSON object; options on the command line take precedence.")
    ] = "{}",
    out: Annotated[
        Path, typer.Option(help="Folder for pictures, and for GeoTIFF and GeoJSON maps of a georeferenced raster.")
    ] = Path("agrotools-out"),
    backend: Annotated[str | None, typer.Option(help="Back-end of the tool, e.g. pack:NAME or vlm.")] = None,
    vlm_model: Annotated[str | None, typer.Option(help="Vision model for --backend vlm.")] = None,
    vlm_base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint of that model.")] = None,
    vlm_api_key_env: Annotated[str | None, typer.Option(help="Environment variable with its key.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a tool. Its arguments are options of the same name: --image field.jpg --gsd-m 0.02.

    Files are paths on this machine; lists and objects are JSON. `agrotools tools describe TOOL` lists the arguments.
    """
    from agrotools.cli.tool_text import parse_arguments, result_table
    from agrotools.core import ToolError, UsageError
    from agrotools.report.terminal import print_parts
    from agrotools.tools.execution import check_backend
    from agrotools.tools.result import encode_result, with_artifact_names
    from agrotools.tools.workspace import ArtifactWriteError, artifacts_in

    implementation = _find(tool, as_json)
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
        _fail(error.message, error.hint, error.info.model_dump(), as_json, code_of(error) or NOT_DONE)
    except ArtifactWriteError as error:
        message, hint = f"{error.filename or out}: {error.strerror or error}", "--out says where made files go"
        _fail(message, hint, {"kind": "tool_failed"}, as_json, NOT_DONE)
    except MemoryError:
        _fail("there is not enough memory", "use a smaller region or file", {"kind": "limit"}, as_json, NOT_DONE)
    except (Exception, SystemExit) as error:
        message = f"{tool} failed on this input ({type(error).__name__}: {error})"
        _fail(message, "other arguments or another file may work", {"kind": "tool_failed"}, as_json, NOT_DONE)
    finally:
        if vision is not None and (cost := vision.cost()):
            typer.echo(cost, err=True)
    encoded, artifacts = encode_result(result, implementation.significant_digits)
    paths = [str(out / artifact.name) for artifact in artifacts]
    plain = with_artifact_names(encoded, paths)
    maps = [str(path) for path in result.paths.values() if str(path) not in paths]
    if as_json:
        artifact_rows = [
            {**artifact.model_dump(), "path": path} for artifact, path in zip(artifacts, paths, strict=True)
        ]
        print_json({"result": plain, "artifacts": artifact_rows, **({"maps": maps} if maps else {})})
    else:
        is_exact = implementation.significant_digits != 6
        print_parts([result_table(plain, [*paths, *maps], exact=is_exact)])
        for path in (*paths, *maps):
            typer.echo(f"wrote {path}")


def _vision(tool: Any, backend: str | None, name: str | None, base_url: str | None, api_key_env: str | None) -> Any:
    """Return the vision endpoint of the tool; None if it needs none."""
    if backend is None and name is None and base_url is None:
        return None
    from agrotools.models import Endpoint
    from agrotools.runner.config import tool_model
    from agrotools.tools.services.vision_endpoint import VisionEndpoint

    backends = {tool.name: backend} if backend else {}
    endpoint = tool_model(backends, Endpoint(name or "", base_url, api_key_env))
    return VisionEndpoint(endpoint.model, endpoint.name, endpoint.price) if endpoint else None


def _find(name: str, as_json: bool) -> Any:
    from agrotools.core import UsageError
    from agrotools.tools import TOOLS, get_tool

    try:
        return get_tool(name)
    except UsageError as error:
        kind, code = ("backend_unavailable", NOT_DONE) if name in TOOLS else ("unknown_tool", BAD_USAGE)
        _fail(error.message, error.hint, {"kind": kind}, as_json, code)


def _fail(message: str, hint: str | None, info: dict[str, Any], as_json: bool, code: int) -> NoReturn:
    with allow_closed_pipe():
        if as_json:
            print_json({"error": {**info, "message": message, "hint": hint}})
    lines = [f"error: {message}", *([f"hint: {hint}"] if hint else [])]
    for line in lines:
        typer.echo(" ".join(line.split()), err=True)
    raise typer.Exit(code)


@app.command()
def compare(
    backends: Annotated[str, typer.Option(help="Back-ends, separated by commas, e.g. offline,pack:mine.")],
    data: Annotated[Path, typer.Option(help="Folder of labelled photographs: a folder per class, or with --labels.")],
    tool: Annotated[str, typer.Option(help="Tool that names or counts.")] = "diagnose_pest_disease",
    labels: Annotated[
        Path | None,
        typer.Option(help="CSV or xlsx image,label[,group]; labels of count_objects are numbers.", metavar="FILE"),
    ] = None,
    argument: Annotated[
        list[str] | None, typer.Option("--argument", "-a", help="Argument of the tool, NAME=VALUE (repeatable).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare back-ends of a tool on your labelled photographs, paired by photograph.

    The first back-end is the one that the others are compared with. Intervals are 95 %, over groups of photographs.
    """
    from agrotools.analysis.backends import backend_table, compare_backends
    from agrotools.cli.tool_text import named_values
    from agrotools.report.terminal import print_parts
    from agrotools.tools.recognition.labelled_pictures import read_labelled

    scores = compare_backends(
        tool,
        [name.strip() for name in backends.split(",") if name.strip()],
        read_labelled(data, labels, to_learn=False),
        named_values(argument or ()),
        progress=lambda line: typer.echo(line, err=True),
    )
    if as_json:
        print_json([one.model_dump(mode="json") for one in scores])
    else:
        print_parts([backend_table(tool, scores)])


@app.command()
def zones(
    rasters: Annotated[list[Path], typer.Argument(help="GeoTIFF or ENVI files, one for each date.")],
    zones: Annotated[
        str, typer.Option(help="Polygons (GeoJSON, GeoPackage, shapefile) or a grid.", metavar="FILE|GRID")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the table, the map and the chart.")] = Path("agrotools-out"),
    value: Annotated[
        list[str] | None, typer.Option(help="cover, height, an index (ndvi) or a band (3) to measure (repeatable).")
    ] = None,
    band: Annotated[list[str] | None, typer.Option(help="Band of a role, R=3 or NIR=4 (repeatable).")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure plots or other zones in rasters of one or many dates: a table, a map and, of many dates, a chart.

    A grid is x=500000,y=5000000,rows=20,columns=50,width=1.5,length=6,rotation=12,gap=0.5, from its upper left corner.
    """
    from agrotools.cli.tool_text import named_values
    from agrotools.tools.zones import measure_zones

    table = measure_zones(rasters, zones, values=value or (), bands=named_values(band or ()) or None, out=out)
    if as_json:
        print_json({"rows": table.rows, "notes": table.notes, "files": [str(path) for path in table.files]})
        return
    for line in (*table.notes, *map(str, table.files)):
        typer.echo(line)
