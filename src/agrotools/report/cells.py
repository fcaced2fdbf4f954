"""Cells of tables: percent with one decimal, intervals below, and numbered notes."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agrotools.report.layout import harmless
from agrotools.scoring import Estimate, Summary

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

DASH = "—"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Notes:
    """Numbered notes of a report; the same note keeps its number."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def mark(self, note: str) -> str:
        """The superscript that leads to ``note``."""
        if note not in self.lines:
            self.lines.append(note)
        return str(self.lines.index(note) + 1).translate(_SUPERSCRIPTS)

    def dash(self, note: str) -> "Text":
        """A dash that leads to ``note``."""
        return stacked([f"{DASH}{self.mark(note)}"], value_style="dim")

    def numbered(self) -> list[str]:
        """Every note behind its number."""
        return [f"{str(number).translate(_SUPERSCRIPTS)} {line}" for number, line in enumerate(self.lines, 1)]


def percent(value: float) -> str:
    """A fraction in percent, one decimal, without the sign for percent: ``62.5``."""
    return f"{100 * value:.1f}"


def on_scale(value: float, out_of: int = 100) -> str:
    """A fraction in percent (``62.5``), or in points of another number, two decimals (``6.25`` of 10)."""
    return percent(value) if out_of == 100 else f"{out_of * value:.2f}"


def points(value: float) -> str:
    """A signed difference of two fractions in percentage points: ``+4.2``."""
    return f"{100 * value:+.1f}"


def size(estimate: Estimate) -> str:
    """Units and clusters: ``48 (20)``."""
    return f"{estimate.n} ({estimate.n_clusters})"


def value_cell(estimate: Estimate, *, below: Sequence[str] = (), out_of: int = 100) -> "Text":
    """A mean over its interval, with further lines ``below``."""
    value = on_scale(estimate.value, out_of)
    if estimate.interval is None:
        return stacked([value, *below])
    interval = f"{on_scale(estimate.interval.lower, out_of)}–{on_scale(estimate.interval.upper, out_of)}"
    return stacked([value, interval, *below])


def difference_cell(estimate: Estimate, *, lower_is_better: bool = False, unadjusted: bool = False) -> "Text":
    """A difference over its interval and its p-value, with a star where it is one at the 5 % level: green for the
    better, red for the worse. ``unadjusted``: by the p-value of this difference alone, not of all in the table."""
    if estimate.interval is None:
        return stacked([points(estimate.value)])
    p = estimate.p if unadjusted else estimate.p_adjusted
    differs = estimate.differs(adjusted=not unadjusted)
    better = (estimate.value > 0) != lower_is_better
    style = "bold" if not differs else "bold green" if better else "bold red"
    interval = f"{points(estimate.interval.lower)} to {points(estimate.interval.upper)}"
    below = [interval] if p is None else [interval, f"p {p:.3f}" if p >= 0.001 else "p <0.001"]
    return stacked([f"{points(estimate.value)}{'*' if differs else ''}", *below], value_style=style)


def adjusted_line(differences: Iterable[Estimate], *, unadjusted: bool = False, where: str = "this table") -> str:
    """Meaning of the p-values below the differences of a table; empty where there are none."""
    n = sum(each.p is not None for each in differences)
    if not n:
        return ""
    how = (
        f"each difference alone, not adjusted for the {n} in {where}: equal runs differ in 5 % of such tests"
        if unadjusted
        else f"adjusted by Holm's method for all differences in {where} ({n}; agrotools score --unadjusted: each alone)"
    )
    return f"p: {how}. Coloured and starred below 0.05. The 95 % intervals are not adjusted."


def stacked(lines: Sequence[str], *, value_style: str = "bold") -> "Text":
    """Lines in one cell: the first in ``value_style``, the others dim."""
    from rich.text import Text

    text = Text(lines[0], style=value_style)
    for line in lines[1:]:
        text.append(f"\n{line}", style="not bold dim")
    return text


def run_names(summaries: Sequence[Summary]) -> list[str]:
    """A name for each run: its model, with what else tells it apart where two share a model: the options of the
    benchmark where they differ, else the protocol."""
    models = [harmless(summary.model) or "run" for summary in summaries]
    differing = len({str(summary.benchmark_options) for summary in summaries}) > 1
    names: list[str] = []
    for model, summary in zip(models, summaries, strict=True):
        options = ", ".join(f"{name}={harmless(str(value))}" for name, value in summary.benchmark_options.items())
        beside = options if differing else summary.protocol
        names.append(f"{model} ({beside})" if models.count(model) > 1 and beside else model)
    return names


def name_cell(name: str, summary: Summary) -> "Text":
    return stacked([name, "privileged"] if summary.privileged else [name], value_style="")


def new_table(title: str) -> "Table":
    """An open table without vertical rules."""
    from rich import box
    from rich.table import Table

    return Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
