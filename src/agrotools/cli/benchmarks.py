"""``agrotools benchmarks``: list, download, check and describe benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agrotools.cli.options import command_group, sub_command
from agrotools.cli.output import (
    allow_closed_pipe,
    command_line,
    count_text,
    print_json,
    terminal_progress,
)
from agrotools.cli.reading import new_readings, print_readings
from agrotools.core.registry import function_of
from agrotools.exit_codes import DONE, FAULTS

if TYPE_CHECKING:
    from agrotools.loading.checking import Checkup
    from agrotools.loading.obtaining import Obtained


app = command_group("List, download, check and describe benchmarks.")


@sub_command(app, "benchmarks list")
def list_all(data_root: Path | None = None, as_json: bool = False) -> None:
    """List the known benchmarks: content, files needed, address, size, terms, and whether files are downloaded."""
    from agrotools.loading.obtaining import list_benchmarks

    rows = list_benchmarks(data_root)
    if as_json:
        print_json([each._asdict() for each in rows])
        return
    for each in rows:
        state = f"{each.state}: {each.where}" if each.where else each.state
        if each.there_mb is not None:
            state += f" ({each.there_mb:,.1f} MB there)"
        typer.echo(f"{each.name}: {each.about}")
        if each.scope:
            typer.echo(f"  {each.scope}")
        typer.echo(f"  needs {each.needs}\n  {state}")
        if each.address:
            size = "" if each.size_mb is None else f" ({each.size_mb:,.1f} MB)"
            typer.echo(f"  from {each.address}{size}\n  terms: {each.licence}")
    typer.echo(
        "get one with: agrotools benchmarks get NAME; give your own benchmark folder by its path"
    )
    if data_root is None:
        typer.echo("use --data-root DIR to search a folder for the files")


@sub_command(app, "benchmarks get")
def get(
    name: str, out: Path | None = None, mirror: str = "", quick: bool = False, as_json: bool = False
) -> None:
    """Download the files of a benchmark. The same command continues an interrupted download.

    Exit code 0: all files are there and have the expected content; 1: some could not be obtained; 3: no server could be
    reached.
    """
    from agrotools.loading.benchmarks import data_folder
    from agrotools.loading.obtaining import Request, obtain

    root = (out or data_folder()).expanduser().resolve()

    def print_note(line: str) -> None:
        typer.echo(line, err=True)

    obtained = obtain(name, Request(root, mirror, quick, terminal_progress(), print_note))
    if as_json:
        print_json(
            {
                "root": str(root),
                "files": len(obtained.files),
                "failures": [failure._asdict() for failure in obtained.failures],
                "sources": [
                    source.model_dump(mode="json", exclude_none=True) for source in obtained.sources
                ],
                "notes": [*obtained.notes],
            }
        )
    else:
        _print_obtained(name, out, root, obtained, quick=quick)
    raise typer.Exit(FAULTS if obtained.failures else 0)


def _print_obtained(
    name: str, out: Path | None, root: Path, obtained: "Obtained", *, quick: bool
) -> None:
    """Print what was downloaded, what is lacking, and the next command."""
    from agrotools.loading.obtaining import LICENCES_FILE, lacking_lines, pictures

    size = sum(path.stat().st_size for path in obtained.files)
    typer.echo(f"{count_text(len(obtained.files), 'file')}, {size / 1e6:,.1f} MB, in {root}")
    typer.echo(f"terms of {count_text(len(obtained.sources), 'data set')}: {root / LICENCES_FILE}")
    for note in obtained.notes:
        typer.echo(note)
    again: list[object] = ["benchmarks", "get", name]
    train: list[object] = ["tools", "packs", "train", name]
    evaluate: list[object] = ["eval", name]
    if quick:
        again += ["--quick"]
        evaluate += ["--quick"]
    if out:
        again += ["--out", out]
        train += ["--data", out / name]
        evaluate += ["--data-root", out]
    lacking = lacking_lines(obtained, command_line(*again))
    if lacking:
        for line in lacking:
            typer.echo(line)
    else:
        following = train if name in pictures() else evaluate
        typer.echo(f"next: {command_line(*following)}")


@sub_command(app, "benchmarks check")
def check(
    name: str | None = None,
    folder: Path | None = None,
    quality: bool = False,
    schema: bool = False,
    propose_map: bool = False,
    option: list[str] | None = None,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Check a benchmark. NAME: missing and broken files, and counts beside the published ones. DIR: every file, hash,
    sample, tool, argument, reference and answer.

    Exit code 0: no errors (whatever --quality finds), and the decisive counts agree; 1: something is broken or
    different, or a proposed map does not read all entries; 2: no such benchmark or folder, or no files of it there, or
    none in a known form; 3: the files cannot be read; 4: the files may be read in two ways.
    """
    from agrotools.core import BENCHMARKS, UsageError
    from agrotools.core.installed import benchmark_id
    from agrotools.loading.checking import check_benchmark, propose_map_of
    from agrotools.runner.config_file import benchmark_options

    if schema:
        from agrotools.loading.validate import format_schema

        print_json(format_schema())
        return
    if name is None:
        raise UsageError("check needs a benchmark", hint="give its name or its folder")
    if benchmark_id(name) not in BENCHMARKS and Path(name).is_dir():
        from agrotools.formats.benchmark import HEADER_FILE
        from agrotools.runner.store import has_manifest

        if folder or propose_map or option:
            raise UsageError(
                f"{name} is a benchmark folder",
                hint="FILES, --propose-map and --option are for a benchmark's name",
            )
        if (
            has_manifest(Path(name)) and not (Path(name) / HEADER_FILE).exists()
        ):  # drawn benchmarks have both
            raise UsageError(f"{name} is a run folder", hint=f"its scores: agrotools score {name}")
        raise typer.Exit(check_folder(Path(name), quality, as_json))
    if quality:
        raise UsageError(
            f"--quality is for a benchmark folder, and {name} is not one", hint="give the folder"
        )
    readings, options = new_readings(yes=yes), benchmark_options(option or ())
    if propose_map:
        proposal = propose_map_of(name, folder, terminal_progress(), options, readings)
        print_readings(readings)
        typer.echo("\n".join(proposal.lines))
        raise typer.Exit(DONE if proposal.reads_all else FAULTS)
    result = check_benchmark(name, folder, terminal_progress(), options, readings)
    print_readings(readings)
    if as_json:
        faults = [fault._asdict() for fault in result.faults]
        counts = [{**count._asdict(), "agrees": count.agrees} for count in result.counts]
        checked = {**result._asdict(), "faults": faults, "counts": counts, "sound": result.sound}
        print_json({**checked, **readings.as_data()})
    else:
        _print_check(result)
    raise typer.Exit(result.exit_code)


def _print_check(result: "Checkup") -> None:
    from agrotools.report.layout import TableColumn, new_table
    from agrotools.report.terminal import print_parts

    if result.missing:
        typer.echo(f"{result.name}: {result.missing}")
        if result.hint:
            typer.echo(f"  {result.hint}")
        return
    lines = [
        f"{result.name}: {', '.join(result.files)}",
        f"{result.usable} of {result.entries} entries can be used",
    ]
    below = [
        *map(str, result.faults),
        *filter(None, [result.hint]),
        *(f"note: {note}" for note in result.notes),
    ]
    typer.echo("\n".join([*lines, *(f"  {line}" for line in below)]))
    table = new_table("", ["found", "published", TableColumn(kind="words")])
    for count in result.counts:
        verdict = "" if count.agrees else "differs" if count.decides else "differs (not decisive)"
        table.add_row(count.what, f"{count.here:,}", f"{count.published:,}", verdict)
    print_parts([table] if table.rows else [])
    typer.echo("sound" if result.sound else "not sound: see above")


@sub_command(app, "benchmarks describe")
def describe_one(
    name: str, data_root: Path | None = None, option: list[str] | None = None, as_json: bool = False
) -> None:
    """Print the content of a benchmark: steps, tools and combinations, files, answers, categories, modes."""
    from agrotools.loading.benchmarks import Loading, load_as
    from agrotools.loading.describing import MOST_SAMPLES, describe
    from agrotools.loading.photos import photos_of, samples_of_photos
    from agrotools.report.description import description_tables
    from agrotools.report.terminal import print_parts
    from agrotools.runner.config_file import benchmark_options

    options = benchmark_options(option) if option else {}
    loading = Loading(
        data_root,
        options,
        terminal_progress(),
        files_later=True,
        questions_only=True,
        readings=new_readings(yes=False),
    )
    benchmark = load_as(name, loading)
    described = describe(benchmark)
    if described.questions <= MOST_SAMPLES:
        deciding = function_of("count_deciding")(benchmark.samples)
        described = described.model_copy(update={"deciding": deciding})
    described = described.model_copy(update={"funnel": function_of("funnel_of")(benchmark)})
    if as_json:
        of_photos = [each.model_dump(mode="json") for each in samples_of_photos(benchmark.samples)]
        print_json(described.model_dump(mode="json") | {"samples_of_photos": of_photos})
        return
    print_parts(description_tables(described))
    if any(photos_of(sample) for sample in benchmark.samples):
        listing = command_line("benchmarks", "describe", name, "--json")
        typer.echo(f"photo and question of each sample: {listing}")


def check_folder(folder: Path, quality: bool, as_json: bool) -> int:
    """Check a benchmark folder and print all errors; return the exit code."""
    from agrotools.core import BenchmarkError, UsageError
    from agrotools.loading.validate import folder_remarks, validate_folder

    faults = validate_folder(folder)
    remarks = folder_remarks(folder)
    try:
        findings = function_of("check_quality")(folder, terminal_progress()) if quality else None
    except (BenchmarkError, UsageError):  # it cannot be loaded, or names unknown tools
        if not faults:
            raise
        findings = None
        typer.echo("Quality checks skipped: fix the errors above first", err=True)
    with allow_closed_pipe():
        if as_json:
            rows = [{"where": fault.where, **fault.model_dump(mode="json")} for fault in faults]
            checks: dict[str, Any] = {}
            if findings is not None:
                checks["findings"] = [each.model_dump() for each in findings]
                checks["not_checked"] = function_of("list_unchecked")()
            print_json({"folder": str(folder), "faults": rows, "remarks": remarks, **checks})
        else:
            for fault in faults:
                typer.echo(f"{fault.where}\n  {fault.code}: {fault.message}\n  {fault.hint}")
            typer.echo(f"{folder}: {count_text(len(faults), 'error') if faults else 'no errors'}")
            for remark in remarks:
                typer.echo(f"remark: {remark}")
            if findings is not None:
                function_of("print_findings")(folder, findings)
    return 1 if faults else 0
