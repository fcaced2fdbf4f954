"""``agrotools tools bench``: accuracy and speed of the tools on images with known truth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.output import BAD_USAGE, NOT_DONE, STOPPED

if TYPE_CHECKING:
    from agrotools.build.accuracy.recorded import Nearness
    from agrotools.build.accuracy.studies import Planned, Row


def bench(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with one subfolder of images and a truth.json per source. Default: drawn scenes only."
        ),
    ] = None,
    tool: Annotated[list[str] | None, typer.Option(help="Only this tool (repeatable).")] = None,
    folder: Annotated[list[str] | None, typer.Option(help="Only this folder (repeatable).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figures as a Markdown document.")] = None,
    overlays: Annotated[Path | None, typer.Option(help="Write the overlays of the tools to this folder.")] = None,
    recorded: Annotated[
        list[Path] | None,
        typer.Option(
            help="Instead of measuring, compare what the reference calls of this benchmark folder returned with the"
            " truth. Given twice, side by side."
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option(min=1, help="Time limit per study, seconds.")] = 1800,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON.")] = False,
) -> None:
    """Measure the tools against ground truth: accuracy with intervals, time per call, peak memory.

    Each study runs in its own process on one core; a study that fails is reported as a row. Exit code 0 whatever the
    figures are, 1 if a study failed, 2 for a usage error, 3 if nothing could be measured.
    """
    from agrotools.build.accuracy.studies import plan, run

    if recorded:
        _show_recorded(recorded, as_json)
        return
    tools, folders = tool or [], folder or []
    bench_plan = plan(data, tools, folders)
    if out is not None and not out.absolute().parent.is_dir():
        typer.echo(f"error: {out.parent} is not a folder", err=True)
        raise typer.Exit(BAD_USAGE)
    if overlays is not None:
        overlays.mkdir(parents=True, exist_ok=True)
    if bench_plan.absent:
        where = "no --data given" if data is None else f"not in {data}"
        typer.echo(f"left out, {where}: {', '.join(bench_plan.absent)}", err=True)
    rows = list(bench_plan.faults)
    count = len(bench_plan.studies)
    numbers = {study: number for number, study in enumerate(bench_plan.studies, start=1)}

    def ended(study: "Planned", fresh: "list[Row]", seconds: float) -> None:
        rows.extend(fresh)
        failed = fresh[0].error
        outcome = f"not measured: {failed}" if failed else f"{len(fresh)} figures, {fresh[0].calls} calls"
        line = f"[{numbers[study]}/{count}] {study.tool} on {study.folder}: {outcome} ({seconds:.0f} s)"
        typer.echo(line, err=True)

    try:
        run(bench_plan.studies, time_limit_s=time_limit, ended=ended, overlays=overlays)
    except KeyboardInterrupt:
        typer.echo("Interrupted. Measured so far:", err=True)
        _show(rows, as_json)
        raise typer.Exit(STOPPED) from None
    _show(rows, as_json)
    if out is not None:
        from agrotools.build.accuracy.table import markdown

        out.write_text(markdown(rows, _command(tools, folders, data), bench_plan.absent), encoding="utf-8")
        typer.echo(f"wrote {out}", err=True)
    failures = sum(row.error is not None for row in rows)
    if failures == len(rows):
        typer.echo("error: nothing could be measured", err=True)
        raise typer.Exit(NOT_DONE)
    raise typer.Exit(1 if failures else 0)


def _show(rows: "list[Row]", as_json: bool) -> None:
    from dataclasses import asdict

    from agrotools.build.accuracy.table import printed
    from agrotools.cli.output import print_json

    if as_json:
        print_json([asdict(row) for row in rows])
    elif rows:
        typer.echo("\n".join(printed(rows)))


def _show_recorded(folders: list[Path], as_json: bool) -> None:
    """One column per benchmark, drawn ones also by difficulty."""
    from dataclasses import asdict

    from agrotools.benchmarks import load_folder
    from agrotools.build.accuracy.recorded import Nearness, nearness
    from agrotools.cli.output import print_json

    columns: dict[str, dict[tuple[str, str, str], Nearness]] = {}
    for folder in folders:
        benchmark = load_folder(folder)
        groups = {folder.name: benchmark.samples}
        for level in range(4):
            at = [sample for sample in benchmark.samples if sample.metadata.get("difficulty") == level]
            groups |= {f"{folder.name}, difficulty {level}": at} if at else {}
        for name, samples in groups.items():
            columns[name] = {(row.tool, row.what, row.kind): row for row in nearness(samples)}
    keys = list(dict.fromkeys(key for rows in columns.values() for key in rows))
    if as_json:
        print_json([{"benchmark": name, **asdict(row)} for name, rows in columns.items() for row in rows.values()])
        return
    typer.echo(
        f"median difference, or share that is right; n calls; without: left open or failed. {' | '.join(columns)}"
    )
    for key in keys:
        texts = [_nearness_text(rows.get(key)) for rows in columns.values()]
        typer.echo(f"{key[0]}, {key[1]} ({key[2]}): {' | '.join(texts)}")


def _nearness_text(row: "Nearness | None") -> str:
    if row is None:
        return "-"
    left_open = f", {row.without} without" if row.without else ""
    figure = "none" if row.figure is None else f"{row.figure:.3g}"
    return f"{figure} (n {row.n}{left_open})"


def _command(tools: list[str], folders: list[str], data: Path | None) -> str:
    words = ["agrotools tools bench", *(["--data DIR"] if data else [])]
    return " ".join([*words, *(f"--tool {name}" for name in tools), *(f"--folder {name}" for name in folders)])
