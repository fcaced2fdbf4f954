"""Intervals as small drawings: SVG made of numbers alone, with attributes that a strict content policy allows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from agrotools.report.cells import percent, points
from agrotools.scoring import Estimate

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTH, _HEIGHT, _MARGIN = 108, 14, 4


class Mark(NamedTuple):
    """Where another run stands: a ``ceiling`` (it sees the gold) or a ``floor`` (a baseline that does not)."""

    value: float
    kind: Literal["ceiling", "floor"]


def interval_drawing(estimate: Estimate, marks: Sequence[Mark] = (), *, privileged: bool = False) -> "Markup":
    """A mean in [0, 1] and its interval on a line from 0 to 100 %, with marks where ceilings and floors stand."""
    drawn = [_line(mark.kind, _x(mark.value), 2, _x(mark.value), _HEIGHT - 2) for mark in marks]
    label = f"{percent(estimate.value)} %"
    if estimate.interval is not None:
        lower, upper = estimate.interval.lower, estimate.interval.upper
        drawn.append(_line("interval", _x(lower), _HEIGHT / 2, _x(upper), _HEIGHT / 2))
        label += f", 95 % interval {percent(lower)} to {percent(upper)}"
    for kind in ("ceiling", "floor"):
        there = [percent(mark.value) for mark in marks if mark.kind == kind]
        label += f", {kind} {', '.join(there)}" if there else ""
    return _drawing(label, [*drawn, _point(_x(estimate.value), privileged)])


def difference_drawing(estimate: Estimate) -> "Markup":
    """A difference in [-1, 1] and its interval on a line with zero in the middle."""
    drawn = [_line("zero", _x(0.5), 1, _x(0.5), _HEIGHT - 1)]
    label = f"{points(estimate.value)} points"
    if estimate.interval is not None:
        lower, upper = estimate.interval.lower, estimate.interval.upper
        drawn.append(_line("interval", _x((lower + 1) / 2), _HEIGHT / 2, _x((upper + 1) / 2), _HEIGHT / 2))
        label += f", 95 % interval {points(lower)} to {points(upper)}"
    return _drawing(label, [*drawn, _point(_x((estimate.value + 1) / 2), False)])


def _drawing(label: str, parts: Sequence[str]) -> "Markup":
    from markupsafe import Markup, escape

    axis = _line("axis", _x(0), _HEIGHT / 2, _x(1), _HEIGHT / 2)
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    return Markup(f'<svg class="interval" role="img" aria-label="{escape(label)}" {box}>{axis}{"".join(parts)}</svg>')


def _x(value: float) -> float:
    return _MARGIN + (_WIDTH - 2 * _MARGIN) * min(max(value, 0.0), 1.0)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _point(x: float, privileged: bool) -> str:
    y = _HEIGHT / 2
    if privileged:
        return f'<path class="point open" d="M{x - 4:.1f} {y}L{x:.1f} {y - 4}L{x + 4:.1f} {y}L{x:.1f} {y + 4}Z"/>'
    return f'<circle class="point" cx="{x:.1f}" cy="{y}" r="3.2"/>'
