"""``agrotools compare``: differences of runs, with the samples that changed and the causes of lost points."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.output import check_table_format, print_json

if TYPE_CHECKING:
    from agrotools.scoring import Comparison

_COLUMNS = "first second mode kind name difference lower upper p p_adjusted detectable n clusters".split()


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark, at least two.")],
    flips: Annotated[int, typer.Option(min=0, help="Samples of each kind (up, down) to list, with the reason.")] = 5,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="md|csv|latex", help="Print all differences as one table.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparisons as JSON.")] = False,
) -> None:
    """Compare runs, first minus second, paired by sample: overall, by task and by cause, and sample by sample.

    Several runs are compared pair by pair. Nothing is written.
    """
    from itertools import combinations

    from agrotools.report.comparison import comparison_tables, with_reasons
    from agrotools.report.html import incomparable
    from agrotools.report.layout import print_parts
    from agrotools.runner.rescore import compare_runs
    from agrotools.runner.store import read_manifest
    from agrotools.scoring.attribution import read_attribution

    check_table_format(format_, as_json=as_json)
    compared = compare_runs(runs)
    for difference in incomparable([read_manifest(run) for run in runs]):
        typer.echo(f"warning: the runs differ in more than the model: {difference}", err=True)
    splits = [read_attribution(run) for run in runs]
    for run, (split, outdated) in zip(runs, splits, strict=True):
        if outdated:
            typer.echo(f"warning: {outdated}", err=True)
        elif split is None and any(other for other, _ in splits):
            typer.echo(
                f"warning: {run} has no split of its lost points, so causes are the first part of a sample that went "
                f"wrong: agrotools attribute {run}",
                err=True,
            )
    if format_:
        typer.echo(_table_text(compared, format_), nl=False)
        return
    compared = [with_reasons(each, pair, flips) for each, pair in zip(compared, combinations(runs, 2), strict=True)]
    if as_json:
        print_json([each.model_dump(mode="json") for each in compared])
        return
    for at, each in enumerate(compared):
        if at:
            typer.echo()
        print_parts(comparison_tables(each, flips=flips))


def _table_text(compared: "Sequence[Comparison]", format_: str) -> str:
    """Return the differences as CSV (fractions), or as a Markdown or LaTeX table (points)."""
    from agrotools.analysis.study_tables import Cell, StudyTable, csv_text, latex, markdown
    from agrotools.report.comparison import difference_rows
    from agrotools.report.layout import DASH, p_text, points, size

    rows = [(each, mode, *row) for each in compared for mode in each.modes for row in difference_rows(each, mode)]
    if format_ == "csv":
        table: list[tuple[object, ...]] = [tuple(_COLUMNS)]
        for each, mode, kind, name, d in rows:
            ends = (d.interval.lower, d.interval.upper) if d.interval else ("", "")
            figures = (d.value, *ends, d.p, d.p_adjusted, d.detectable, d.n, d.n_clusters)
            table.append((each.first, each.second, mode, kind, name, *figures))
        return csv_text(table)
    notes = ["First minus second in points, paired by sample; 95 % intervals by cluster; p adjusted by Holm's method."]
    header = ["mode", "row", "difference", "p", "n (clusters)"]
    tables = [StudyTable(f"{each.first} minus {each.second}", [], header, [], notes) for each in compared]
    by_pair = {id(each): table for each, table in zip(compared, tables, strict=True)}
    for each, mode, kind, name, d in rows:
        interval = f"({points(d.interval.lower)} to {points(d.interval.upper)})" if d.interval else ""
        p = p_text(d.p_adjusted) if d.p_adjusted is not None else DASH
        row = [Cell(mode), Cell(f"{kind} {name}"), Cell(points(d.value), interval), Cell(p), Cell(size(d))]
        by_pair[id(each)].rows.append(row)
    return markdown(tables) if format_ == "md" else latex(tables, "Differences of runs")
