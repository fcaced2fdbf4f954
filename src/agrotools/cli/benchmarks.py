"""``agrotools benchmarks``: list, download, check and describe benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.options import AsJson, Commands
from agrotools.cli.output import FAULTS, command_line, count_text, print_json, terminal_progress

if TYPE_CHECKING:
    from agrotools.benchmarks.checking import Checkup

app = typer.Typer(
    cls=Commands, help="List, download, check and describe benchmarks.", no_args_is_help=True, rich_markup_mode=None
)

DataRoot = Annotated[
    Path | None, typer.Option(help="Folder with the files of benchmarks.", metavar="DIR", show_default=False)
]


@app.command("list")
def list_all(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the known benchmarks: content, files needed, address, size, terms, and whether files are downloaded."""
    from agrotools.benchmarks.obtaining import list_benchmarks

    rows = list_benchmarks(data_root)
    if as_json:
        print_json([each._asdict() for each in rows])
        return
    for each in rows:
        typer.echo(f"{each.name}: {each.about}\n  needs {each.needs}\n  {each.state}{each.where and f': {each.where}'}")
        if each.address:
            size = "" if each.size_mb is None else f" ({each.size_mb:,.1f} MB)"
            typer.echo(f"  from {each.address}{size}\n  terms: {each.licence}")
    typer.echo("get one with: agrotools benchmarks get NAME; give your own benchmark folder by its path")
    if data_root is None:
        typer.echo("use --data-root DIR to search a folder for the files")


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="Name of a benchmark, or pests: pictures for tools packs train pests.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the files (then --data-root DIR of eval); a cache by default.", metavar="DIR"),
    ] = None,
    mirror: Annotated[
        str, typer.Option(help="Folder or address of copies, used instead of the public addresses.", metavar="DIR|URL")
    ] = "",
    heads: Annotated[
        bool, typer.Option(help="Train the heads that tools need for `field` (a minute or two, extra train).")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Download the files of a benchmark. The same command continues an interrupted download.

    Exit code 0: all files are there and have the expected content; 1: some could not be obtained, or the heads could
    not be trained; 3: no server could be reached.
    """
    from agrotools.benchmarks.loading import data_folder
    from agrotools.benchmarks.obtaining import LICENCES_FILE, PEST_PICTURES, Request, lacking_lines, obtain

    root = (out or data_folder()).expanduser().resolve()
    request = Request(root, mirror, heads, terminal_progress(), lambda line: typer.echo(line, err=True))
    obtained = obtain(name, request)
    if as_json:
        failures = [each._asdict() for each in obtained.failures]
        sources = [source.model_dump(mode="json", exclude_none=True) for source in obtained.sources]
        counts = {"root": str(root), "files": len(obtained.files), "failures": failures}
        counts["lacking"] = obtained.lacking
        print_json({**counts, "sources": sources, "notes": [*obtained.notes]})
    else:
        size = sum(path.stat().st_size for path in obtained.files)
        typer.echo(f"{count_text(len(obtained.files), 'file')}, {size / 1e6:,.1f} MB, in {root}")
        typer.echo(f"terms of {count_text(len(obtained.sources), 'data set')}: {root / LICENCES_FILE}")
        ending = f"next: {command_line('eval', name, *(['--data-root', out] if out else []))}"
        if name == PEST_PICTURES.name:
            ending = f"next: {command_line('tools', 'packs', 'train', name, *(['--data', out / name] if out else []))}"
        lacking = lacking_lines(obtained, command_line("benchmarks", "get", name, *(["--out", out] if out else [])))
        for line in (*obtained.notes, *(lacking or [ending])):
            typer.echo(line)
    raise typer.Exit(FAULTS if obtained.failures or obtained.lacking else 0)


@app.command("check")
def check(
    name: Annotated[str | None, typer.Argument(help="Name or folder of a benchmark.", metavar="NAME|DIR")] = None,
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of the files of NAME (as --data-root).", metavar="FILES")
    ] = None,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality", help="Also look for near-duplicates, leaks and orders of tools; writes DIR/quality.jsonl."
        ),
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the format and stop.")] = False,
    propose_map: Annotated[
        bool, typer.Option("--propose-map", help="List the fields of files of unknown form, and write a field map.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a benchmark. NAME: missing and broken files, and counts beside the published ones. DIR: every file, hash,
    sample, tool, argument, reference and answer.

    Exit code 0: no errors (whatever --quality finds), and the decisive counts agree; 1: something is broken or
    different; 2: no such benchmark or folder, or no files of it there.
    """
    from agrotools.benchmarks.checking import check_benchmark, propose_map_of
    from agrotools.core import BENCHMARKS, UsageError
    from agrotools.plugin import benchmark_id

    if schema:
        from agrotools.benchmarks.validate import format_schema

        print_json(format_schema())
        return
    if name is None:
        raise UsageError("check needs a benchmark", hint="give its name or its folder")
    if benchmark_id(name) not in BENCHMARKS and Path(name).is_dir():
        from agrotools.cli.folder_check import check_folder
        from agrotools.formats.benchmark import HEADER_FILE
        from agrotools.runner.store import has_manifest

        if folder or propose_map:
            raise UsageError(f"{name} is a benchmark folder", hint="FILES and --propose-map are for a benchmark's name")
        if has_manifest(Path(name)) and not (Path(name) / HEADER_FILE).exists():  # drawn benchmarks have both
            raise UsageError(f"{name} is a run folder", hint=f"its scores: agrotools score {name}")
        raise typer.Exit(check_folder(Path(name), quality, as_json))
    if quality:
        raise UsageError(f"--quality is for a benchmark folder, and {name} is none", hint="give the folder")
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
    from agrotools.report.layout import Column, new_table
    from agrotools.report.terminal import print_parts

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
    table = new_table("", ["found", "published", Column(kind="words")])
    for count in result.counts:
        verdict = "" if count.agrees else "differs" if count.decides else "differs (not decisive)"
        table.add_row(count.what, f"{count.here:,}", f"{count.published:,}", verdict)
    print_parts([table] if table.rows else [])
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
    """Print and draw the content of a benchmark: steps, tools and combinations, files, answers, categories, modes."""
    from agrotools.benchmarks.describing import describe
    from agrotools.benchmarks.loading import Loading, load_as
    from agrotools.core import UsageError
    from agrotools.report.description import description_png, description_tables
    from agrotools.report.terminal import print_parts
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
    print_parts(description_tables(described))
    typer.echo(f"figure: {picture}")
