"""Table of the correlations of steps with answers: over models, and over the samples of each run."""

from collections.abc import Sequence

from agrotools.core.texts import count_text
from agrotools.report.layout import (
    DASH,
    ReportTable,
    TableCell,
    TableColumn,
    interval_text,
    new_table,
    short_names,
)
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.summary import Correlation, RunComparison, Summary

OVER_MODELS = (
    "Over models: exact intervals, for models drawn from a normal distribution; few models leave them wide. A run is a "
    "point, and several runs of a model have no interval. Baselines are left out."
)
_NOTES = (
    "Pearson's r of the mean score of the steps, in step-by-step mode, with the score of the answer, end to end; 95 % "
    "intervals. A correlation shows no cause.",
    OVER_MODELS,
    "Over samples: intervals by bootstrap over clusters, from ten clusters on; n: samples (clusters).",
)
TITLE = "Correlation of steps with answers"


def correlations_between_runs(summaries: Sequence[Summary]) -> list[ReportTable]:
    """Return the table of runs that were scored together; empty with fewer than three models."""
    return correlation_tables(summaries[0].correlations, short_names(summaries))


def correlations_of_pairs(comparisons: Sequence[RunComparison]) -> list[ReportTable]:
    """Return the table of all runs of comparisons pair by pair; empty with fewer than three models."""
    names = list(dict.fromkeys(name for each in comparisons for name in (each.first, each.second)))
    together: dict[tuple[int | None, str, str], Correlation] = {}
    for pair in comparisons:
        of_pair = (names.index(pair.first), names.index(pair.second))
        for each in pair.correlations:
            number = None if each.run is None else of_pair[each.run]
            together[number, each.answer, each.step] = each.model_copy(update={"run": number})
    return correlation_tables([*together.values()], names)


def correlation_tables(
    correlations: Sequence[Correlation], names: Sequence[str], title: str = TITLE
) -> list[ReportTable]:
    """Return the table of correlations, of which ``names`` names the runs; empty if there are none over models."""
    of_models = [each for each in correlations if each.run is None]
    if not of_models:
        return []
    rows: dict[str, list[Correlation]] = {models_text(of_models[0]): of_models}
    for number, name in enumerate(names):
        of_run = [each for each in correlations if each.run == number]
        if of_run:
            rows[f"samples of {name}"] = of_run
    columns = list(dict.fromkeys((each.answer, each.step) for each in correlations))
    headings = [
        TableColumn((METRICS[step].label,), group=f"with {METRICS[answer].label}")
        for answer, step in columns
    ]
    table = new_table(title, headings)
    for label, of_row in rows.items():
        cells = {(each.answer, each.step): each for each in of_row}
        table.add_row(
            TableCell((label,)), *(correlation_cell(cells.get(place)) for place in columns)
        )
    table.notes += _NOTES
    if any(each.r is None for each in correlations):
        table.notes.append(f"{DASH}: all scores of the steps, or of the answers, are equal.")
    return [table]


def models_text(correlation: Correlation) -> str:
    """Return over how many models a correlation is: ``5 models``, ``6 runs of 3 models``."""
    models = count_text(correlation.n_clusters, "model")
    return (
        models if correlation.n == correlation.n_clusters else f"{correlation.n} runs of {models}"
    )


def correlation_cell(correlation: Correlation | None) -> TableCell:
    """Return the coefficient with its interval and size; a dash if there is none."""
    if correlation is None or correlation.r is None:
        return TableCell((DASH,), "dim")
    lines = [_two_digits(correlation.r), interval_text(correlation.interval, _two_digits)]
    if correlation.run is not None:
        lines.append(f"n {correlation.n} ({correlation.n_clusters})")
    return TableCell(tuple(filter(None, lines)), "bold")


def _two_digits(value: float) -> str:
    """Return a coefficient with two digits, and no minus before 0."""
    return f"{value:.2f}".replace("-0.00", "0.00")
