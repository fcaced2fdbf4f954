"""Report: a table of grades, and a line beneath the tables."""

from collections.abc import Callable, Iterator, Mapping

from agrotools.plugin import Metric, Mode, ModeSummary, Reporting, Setting, Summary


def _metrics(mode: Mode) -> Callable[[Summary], Mapping[str, Metric] | None]:
    def metrics(summary: Summary) -> Mapping[str, Metric] | None:
        part = summary.modes.get(mode)
        return part.metrics if part is not None and "ripeness.grade" in part.metrics else None

    return metrics


def _notes(part: ModeSummary) -> Iterator[str]:
    if "ripeness.grade" in part.metrics:
        yield f"{part.metrics['ripeness.grade'].overall.n} tomatoes graded"


_MODES: tuple[Mode, ...] = ("end-to-end", "no-tool")
REPORTING = Reporting(
    settings=tuple(
        Setting(f"Ripeness of tomatoes, {mode}", mode, ("ripeness.grade",), _metrics(mode)) for mode in _MODES
    ),
    notes=_notes,
)
