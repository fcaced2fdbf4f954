"""Where a model looks for the right option, in words under the tables."""

from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from agrotools.report.cells import percent, run_names
from agrotools.scoring import Estimate, OptionPlaces, Rotations, Summary

if TYPE_CHECKING:
    from rich.console import RenderableType


def option_lines(summaries: Sequence[Summary]) -> list["RenderableType"]:
    """:func:`option_notes` for a terminal."""
    from rich.text import Text

    lines = option_notes(summaries)
    return [Text("\n".join(lines))] if lines else []


def option_notes(summaries: Sequence[Summary]) -> list[str]:
    """For each run on multiple-choice questions: the places it chose, and what rotating the options changed."""
    lines: list[str] = []
    for name, summary in zip(run_names(summaries), summaries, strict=True):
        of_run = f"{name}, " if len(summaries) > 1 else ""
        for part in summary.modes.values():
            lines += [f"{of_run}{line}" for line in _lines(part.option_places, part.rotations)]
    return lines


def _lines(places: OptionPlaces | None, rotations: Rotations | None) -> Iterator[str]:
    if places is not None:
        given = sum(places.chosen)
        shares = " ".join(
            f"{ascii_uppercase[at]} {percent(chosen / given if given else 0)}/{percent(right / places.n)}"
            for at, (chosen, right) in enumerate(zip(places.chosen, places.right, strict=True))
        )
        unread = f"; nothing read from {places.unread} of {places.n}" if places.unread else ""
        yield f"places chosen/right: {shares}; preference {percent(places.preference)} points{unread}"
    if rotations is not None:
        yield (
            f"every rotation of {rotations.n_questions} questions, each question counted once: "
            f"accuracy {_estimate(rotations.accuracy)}, "
            f"by majority {_estimate(rotations.majority)}, same choice in all {_estimate(rotations.consistency)}"
        )


def _estimate(estimate: Estimate) -> str:
    inside = estimate.interval
    return percent(estimate.value) + (f" ({percent(inside.lower)} to {percent(inside.upper)})" if inside else "")
