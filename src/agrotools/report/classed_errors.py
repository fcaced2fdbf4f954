"""Tables of the errors that a person classed: shares by class of each run, and by task type and answer type."""

from collections.abc import Sequence

from agrotools.report.layout import ReportTable, TableCell, TableColumn, new_table, value_cell
from agrotools.report.parts import part_cell, part_table
from agrotools.scoring.classed_errors import ClassedErrors

_TITLE = "Errors as a person classed them"
_NOTE = (
    "Share of each class among the classed samples in percent, with its 95 % interval over clusters, and below it the "
    "number of samples. The classes are those of the table."
)


def classed_error_tables(
    of_runs: Sequence[ClassedErrors], names: Sequence[str]
) -> list[ReportTable]:
    """Return a table of classes with a column for each run, then one for each run by task type and answer type."""
    classes = dict.fromkeys(error for each in of_runs for error in each.shares)
    headings = [
        TableColumn((name, f"n {each.n}"), "run") for name, each in zip(names, of_runs, strict=True)
    ]
    table = new_table(_TITLE, headings, first=22)
    for error in classes:
        table.add_row(error, *(_share_cell(error, each) for each in of_runs))
    table.notes.append(_NOTE)
    tables = [table]
    for name, each in zip(names, of_runs, strict=True):
        of_whom = f": {name}" if len(of_runs) > 1 else ""
        columns = [(TableColumn((error,)), metric) for error, metric in each.shares.items()]
        by_part = part_table(f"{_TITLE}, by task type and answer type{of_whom}", columns, part_cell)
        if by_part is not None:
            tables.append(by_part)
    return tables


def _share_cell(error: str, errors: ClassedErrors) -> TableCell:
    """Return the share of a class in a run with its number of samples; 0 if the run has none."""
    if not errors.n:
        return value_cell(None)
    metric = errors.shares.get(error)
    if metric is None:
        return TableCell(("0.0", f"0 of {errors.n}"), "dim")
    number = round(metric.overall.value * errors.n)
    return value_cell(metric.overall, below=[f"{number} of {errors.n}"])
