"""``agrotools benchmarks``: which benchmarks there are, whether their files are whole, and what they hold."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.json_output import print_json

if TYPE_CHECKING:
    from agrotools.benchmarks.checking import Checkup

app = typer.Typer(
    help="List benchmarks, check that their files are whole, describe what they hold.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Where the files of benchmarks lie.", metavar="DIR", show_default=False)
]


@app.command("list")
def list_all(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """Every benchmark that is known by name, what it needs, and whether its files are found below --data-root."""
    from agrotools.benchmarks.checking import list_benchmarks

    found = list_benchmarks(data_root)
    if as_json:
        print_json([each._asdict() for each in found])
        return
    for each in found:
        state = {True: f"found: {each.where}", False: f"not found: {each.where}", None: "not looked for"}[each.found]
        typer.echo(f"{each.name}: {each.about}\n  needs {each.needs}\n  {state}")
    if data_root is None:
        typer.echo("give --data-root DIR to look for files there; a benchmark folder of your own is named by its path")


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="Name of a benchmark.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Where its files lie (as --data-root).", metavar="[DIR]", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what of a benchmark's files is missing or broken, and how its counts compare with the published ones.

    Exit status 0: all is there and the counts that make the benchmark agree; 1: something is missing, broken or
    different; 2: no such benchmark, or no folder. A benchmark folder is checked by `agrotools validate DIR`.
    """
    import sys

    from agrotools.benchmarks.checking import check_benchmark
    from agrotools.runner.progress import stage_progress

    found = check_benchmark(name, folder, stage_progress(sys.stderr))
    if as_json:
        print_json(_as_json(found))
    else:
        _print_check(found)
    raise typer.Exit(0 if found.sound else 1)


def _as_json(found: "Checkup") -> dict[str, object]:
    faults = [fault._asdict() for fault in found.faults]
    counts = [{**count._asdict(), "agrees": count.agrees} for count in found.counts]
    return {**found._asdict(), "faults": faults, "counts": counts, "sound": found.sound}


def _print_check(found: "Checkup") -> None:
    from agrotools.benchmarks._dialogs.findings import shortened

    if found.missing:
        typer.echo(f"{found.name}: {found.missing}")
        if found.hint:
            typer.echo(f"  {found.hint}")
        return
    typer.echo(f"{found.name}: {', '.join(found.files)}")
    typer.echo(f"{found.usable} of {found.entries} entries can be used")
    for fault in found.faults:
        typer.echo(f"  entry {shortened(fault.entry, 40)}: {fault.message}")
    if found.hint:
        typer.echo(f"  {found.hint}")
    for note in found.notes:
        typer.echo(f"  note: {note}")
    width = max((len(count.what) for count in found.counts), default=0)
    if found.counts:
        typer.echo(f"{'':{width}}  {'here':>7}  published")
    for count in found.counts:
        said = "" if count.agrees else "  differs" if count.decides else "  differs (not decisive)"
        typer.echo(f"{count.what:{width}}  {count.here:>7,}  {count.published:>9,}{said}")
    typer.echo("sound" if found.sound else "not sound: see above")


@app.command("describe")
def describe_one(
    name: Annotated[str, typer.Argument(help="Name or folder of a benchmark.")],
    data_root: DataRoot = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the figure; NAME.png in the working folder if not given.", metavar="DIR"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="NAME=VALUE, for benchmarks that can be put in several ways."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print and draw what a benchmark holds: steps, tools, combinations of tools, files, answers, categories, modes."""
    import sys

    from agrotools.benchmarks import load_benchmark
    from agrotools.benchmarks.describing import describe
    from agrotools.core import UsageError
    from agrotools.report.description import description_png, print_description
    from agrotools.runner.config import benchmark_options
    from agrotools.runner.progress import stage_progress

    options = benchmark_options(option) if option else {}
    benchmark = load_benchmark(name, data_root, stage_progress(sys.stderr), options)
    described = describe(benchmark)
    folder = (out or Path()).expanduser()
    picture = folder / f"{described.name}.png"
    if picture.exists() and not picture.is_file():
        raise UsageError(f"{picture} is no file", hint="give another folder: --out DIR")
    folder.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(description_png(described))
    if as_json:
        print_json({**described.model_dump(mode="json"), "figure": str(picture)})
        return
    print_description(described)
    typer.echo(f"figure: {picture}")
