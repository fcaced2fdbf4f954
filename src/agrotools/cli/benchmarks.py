"""``agrotools benchmarks``: list of benchmarks, checks of their files, and descriptions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.options import AsJson
from agrotools.cli.output import print_json, terminal_progress

if TYPE_CHECKING:
    from agrotools.benchmarks.checking import Checkup

app = typer.Typer(
    help="List benchmarks, check that their files are complete, describe what they hold.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DataRoot = Annotated[
    Path | None, typer.Option(help="Folder that holds the files of benchmarks.", metavar="DIR", show_default=False)
]


@app.command("list")
def list_all(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the known benchmarks, the files each needs, and whether they are found below --data-root."""
    from agrotools.benchmarks.checking import list_benchmarks

    states = list_benchmarks(data_root)
    if as_json:
        print_json([each._asdict() for each in states])
        return
    for each in states:
        state = {True: f"found: {each.where}", False: f"not found: {each.where}", None: "not searched"}[each.found]
        typer.echo(f"{each.name}: {each.about}\n  needs {each.needs}\n  {state}")
    if data_root is None:
        typer.echo("use --data-root DIR to search a folder for the files; give your own benchmark folder by its path")


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="Name of a benchmark.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of its files (as --data-root).", metavar="[DIR]", show_default=False)
    ] = None,
    propose_map: Annotated[
        bool,
        typer.Option("--propose-map", help="List what files of unknown form hold, and write a field map beside them."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a benchmark's files: missing and broken parts, and counts beside the published ones.

    Exit code 0: complete, and the decisive counts agree; 1: something is broken or different; 2: no such
    benchmark or folder, or no files of it there. A benchmark folder is checked by `agrotools validate DIR`.
    """
    from agrotools.benchmarks.checking import check_benchmark, propose_map_of

    if propose_map:
        typer.echo("\n".join(propose_map_of(name, folder, terminal_progress())))
        return
    result = check_benchmark(name, folder, terminal_progress())
    if as_json:
        print_json(_as_json(result))
    else:
        _print_check(result)
    raise typer.Exit(2 if result.missing else 0 if result.sound else 1)


def _as_json(result: "Checkup") -> dict[str, object]:
    faults = [fault._asdict() for fault in result.faults]
    counts = [{**count._asdict(), "agrees": count.agrees} for count in result.counts]
    return {**result._asdict(), "faults": faults, "counts": counts, "sound": result.sound}


def _print_check(result: "Checkup") -> None:
    if result.missing:
        typer.echo(f"{result.name}: {result.missing}")
        if result.hint:
            typer.echo(f"  {result.hint}")
        return
    typer.echo(f"{result.name}: {', '.join(result.files)}")
    typer.echo(f"{result.usable} of {result.entries} entries can be used")
    for fault in result.faults:
        typer.echo(f"  {fault}")
    if result.hint:
        typer.echo(f"  {result.hint}")
    for note in result.notes:
        typer.echo(f"  note: {note}")
    width = max((len(count.what) for count in result.counts), default=0)
    if result.counts:
        typer.echo(f"{'':{width}}  {'here':>7}  published")
    for count in result.counts:
        verdict = "" if count.agrees else "  differs" if count.decides else "  differs (not decisive)"
        typer.echo(f"{count.what:{width}}  {count.here:>7,}  {count.published:>9,}{verdict}")
    typer.echo("sound" if result.sound else "not sound: see above")


@app.command("describe")
def describe_one(
    name: Annotated[str, typer.Argument(help="Name or folder of a benchmark.")],
    data_root: DataRoot = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the figure; NAME.png in the working folder if not given.", metavar="DIR"),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="Benchmark option, NAME=VALUE (repeatable).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print and draw what a benchmark holds: steps, tools, combinations of tools, files, answers, categories, modes."""
    from agrotools.benchmarks.describing import describe
    from agrotools.benchmarks.loading import Loading, load_as
    from agrotools.core import UsageError
    from agrotools.report.description import description_png, print_description
    from agrotools.runner.config import benchmark_options

    options = benchmark_options(option) if option else {}
    loading = Loading(data_root, options, terminal_progress(), files_later=True, questions_only=True)
    benchmark = load_as(name, loading)
    described = describe(benchmark)
    folder = (out or Path()).expanduser()
    picture = folder / f"{described.name}.png"
    if picture.exists() and not picture.is_file():
        raise UsageError(f"{picture} is not a file", hint="give another folder: --out DIR")
    folder.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(description_png(described))
    if as_json:
        print_json({**described.model_dump(mode="json"), "figure": str(picture)})
        return
    print_description(described)
    typer.echo(f"figure: {picture}")
