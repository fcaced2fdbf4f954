"""The lines beneath the tables that hold for all of them: how to read them, and what is not there."""

from collections.abc import Sequence

from agrotools.report.agrieval.beside import MARK
from agrotools.report.agrieval.layout import OVERALL, PAPER_TABLES
from agrotools.report.agrieval.tables import BASE, LaidOutTable, Results
from agrotools.report.published import paper
from agrotools.scoring.statistics import MIN_CLUSTERS


def reading_lines(tables: Sequence[LaidOutTable], published: bool) -> list[str]:
    """How to read the values."""
    lines = [
        "Values in percent (of open questions ROUGE-L), beneath them 95 % intervals over clusters of items "
        f"(none under {MIN_CLUSTERS} clusters); n: items (clusters, where fewer), epochs averaged. "
        f"Δ: points against the same model's {BASE}, paired on the items of both "
        "(*: p under 0.05, adjusted by Holm's method for all Δ of the table; the intervals are not adjusted)."
    ]
    names = {
        column.code: column.name
        for table in tables
        for column in table.columns
        if table.layout.by != "field" and column.part != OVERALL and column.code != column.name
    }
    if names:
        lines.append("; ".join(f"{code} {name}" for code, name in names.items()) + ".")
    if published and any(table.published for table in tables):
        source = paper("agrieval")
        lines.append(
            f"{MARK} as printed in {source.title} (arXiv {source.arxiv}): {source.protocol}. Its questions, prompts "
            "and reading of answers are not those of these runs: a difference need not be one of models."
        )
    return lines


def missing_lines(tables: Sequence[LaidOutTable], of: Results, wanted: Sequence[str]) -> list[str]:
    """Tables of the paper that have no rows, by what was not run."""
    there = {table.layout.number for table in tables}
    absent = [table for table in PAPER_TABLES if table.number in wanted and table.number not in there]
    if not absent:
        return []
    reasons: dict[str, list[str]] = {}
    for table in absent:
        not_run = [setting for setting in table.settings if setting not in of.settings]
        reason = "no open questions" if table.open else f"not run: {', '.join(not_run)}" if not_run else "no such items"
        reasons.setdefault(reason, []).append(table.number)
    told = "; ".join(f"{', '.join(numbers)} ({reason})" for reason, numbers in reasons.items())
    return [f"Without rows: Table {told}."]
