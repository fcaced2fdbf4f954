"""The figures of a benchmark's card: how its samples are distributed. Equal counts give equal bytes."""

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agrotools.build.export.tally import Tally
from agrotools.core import ANSWER_TYPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"exact": "#0072B2", "tolerance": "#E69F00", "plot": "#009E73", "open_text": "#CC79A7", "image": "#56B4E9"}
_ROW_IN = 0.32
_MOST_SOURCES = 25


def card_plots(counted: Tally) -> dict[str, bytes]:
    """PNG files by name: ``tasks.png``, ``shape.png``, ``tools.png``, ``sources.png``."""
    figures = {
        "tasks.png": lambda: _tasks(counted),
        "shape.png": lambda: _shape(counted),
        "tools.png": lambda: _bars(counted.tools, "reference calls", "Reference calls by tool"),
        "sources.png": lambda: _bars(_largest(counted.sources), "samples", "Samples by source of their files"),
    }
    return {name: _png(draw, _texts(counted)) for name, draw in figures.items()}


def _png(draw: Callable[[], "Figure"], texts: Sequence[str]) -> bytes:
    import warnings

    import matplotlib

    from agrotools.tools.plotting.sheet import STYLE, font_families

    families, _ = font_families(texts)
    with matplotlib.rc_context({**STYLE, "font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Glyph.*missing")
        buffer = io.BytesIO()
        draw().savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _tasks(counted: Tally) -> "Figure":
    names = [name for name, _ in counted.task_types.most_common()][::-1]
    figure, axes = _sheet(len(names))
    left = [0] * len(names)
    for answer_type in ANSWER_TYPES:
        widths = [counted.tasks[name, answer_type] for name in names]
        if any(widths):
            axes.barh(names, widths, left=left, color=_COLOURS[answer_type], label=answer_type.replace("_", " "))
        left = [before + width for before, width in zip(left, widths, strict=True)]
    _count(axes, left)
    axes.set_xlabel("samples")
    _title(figure, "Samples by task type and answer type")
    figure.legend(loc="outside lower center", ncols=len(ANSWER_TYPES))
    return figure


def _shape(counted: Tally) -> "Figure":
    """Three small charts: distinct tools, calls and files of a sample."""
    figure = _figure(9, 3.1)
    panels = (
        ("distinct tools", counted.distinct_tools, "#0072B2"),
        ("reference calls", counted.calls, "#E69F00"),
        ("files", counted.files, "#009E73"),
    )
    for place, (label, counts, colour) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, 3, place)
        names = [str(number) for number in range(min(counts, default=0), max(counts, default=0) + 1)]
        bars = axes.bar(names, [counts[int(name)] for name in names], color=colour)
        axes.bar_label(bars, labels=[str(counts[int(name)] or "") for name in names], padding=2, fontsize=9)
        axes.margins(y=0.12)
        axes.set_xlabel(f"{label} of a sample")
        if place == 1:
            axes.set_ylabel("samples")
    _title(figure, "How much a sample takes")
    return figure


def _bars(counts: Mapping[str, int], label: str, title: str) -> "Figure":
    names = sorted(counts, key=lambda name: (counts[name], name))
    figure, axes = _sheet(len(names))
    widths = [counts[name] for name in names]
    axes.barh(range(len(names)), widths, color="#0072B2")
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    _count(axes, widths)
    axes.set_xlabel(label)
    _title(figure, title)
    return figure


def _sheet(rows: int) -> "tuple[Figure, Axes]":
    figure = _figure(9, 1.6 + _ROW_IN * max(rows, 1))
    axes = figure.add_subplot()
    axes.margins(x=0.08)
    return figure, axes


def _figure(width_in: float, height_in: float) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in))
    FigureCanvasAgg(figure)
    return figure


def _title(figure: "Figure", text: str) -> None:
    figure.suptitle(text, x=0.02, ha="left", fontsize=12, fontweight="bold")


def _count(axes: "Axes", totals: Sequence[int]) -> None:
    for row, total in enumerate(totals):
        axes.annotate(str(total), (total, row), (4, 0), textcoords="offset points", va="center", fontsize=9)


def _largest(counts: Counter[str]) -> Counter[str]:
    shown = Counter(dict(counts.most_common(_MOST_SOURCES)))
    if rest := counts.total() - shown.total():
        shown[f"{len(counts) - len(shown)} others"] = rest
    return shown


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"


def _texts(counted: Tally) -> list[str]:
    return ["Sample…", *counted.task_types, *counted.tools, *counted.sources]
