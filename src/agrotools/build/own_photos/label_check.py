"""Comparison of a table's numbers with what the tool measures on the photos, to find mistakes in the table."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple

from agrotools.build.own_photos.plan import Column, measures
from agrotools.build.own_photos.questions import Pictured, tolerance_of
from agrotools.core import Sample, UnresolvedRef
from agrotools.core.record import Results, resolve_ref

_FACTORS = (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)
_LIKE = 0.2
_LEAST_PHOTOS, _LEAST_ROWS, _MOST_LISTED = 6, 3, 5


class _Pair(NamedTuple):
    name: str
    label: float
    measured: float


def compare_with_tool(
    samples: Sequence[Sample],
    columns: Sequence[Column],
    part_of: Mapping[str, list[Pictured]],
    names: Mapping[str, str],
) -> Iterator[str]:
    """Yield a line for each column of numbers that says on how many photos the tool agrees with the table, and where a
    slip in the table explains the rest: another unit, or labels of the photo in the next or previous row.

    ``names``: file names of photos by SHA-256.
    """
    for column in columns:
        measure = measures()[column.ask]
        measured = {
            str(file.sha256): value
            for sample in samples
            if sample.reference and sample.metadata["column"] == column.column
            for step in sample.reference.steps
            if step.tool == measure.tool and step.observation and step.observation.result
            for file in sample.files
            if file.name in step.arguments.values()
            and (value := _value_at(measure.answer, [step.observation.result])) is not None
        }
        pairs = [
            _Pair(names[digest], float(each.value), measured[digest])
            for each in part_of[column.column]
            if measure.kind == "number" and (digest := str(each.file.sha256)) in measured
        ]
        if len(pairs) >= _LEAST_PHOTOS:
            yield _line(f"{column.column}: {measure.tool}", pairs, *tolerance_of(column, measure))


def _value_at(path: str, result: Results) -> float | None:
    with suppress(UnresolvedRef):
        value = resolve_ref(f"steps[0].observation.{path}", result)
        return value if isinstance(value, int | float) else None
    return None


def _line(what: str, pairs: Sequence[_Pair], absolute: float, relative: float) -> str:
    def agree(label: float, measured: float) -> bool:
        return abs(label - measured) <= max(absolute, relative * measured)

    far = [pair for pair in pairs if not agree(pair.label, pair.measured)]
    within = " or ".join([f"{absolute:g}"] * bool(absolute) + [f"{100 * relative:g} %"] * bool(relative))
    more = fmean(pair.measured - pair.label for pair in pairs)
    line = f"{what} agrees with the table on {len(pairs) - len(far)} of {len(pairs)} photos within {within}"
    line += f", {abs(more):.3g} too {'high' if more > 0 else 'low'} on average" * (round(abs(more), 6) > 0)
    for step, row in ((1, "next"), (-1, "previous")):
        others = [*pairs[step:], *pairs[:step]]
        shifted = [pair for pair, other in zip(pairs, others, strict=True) if agree(pair.label, other.measured)]
        if len(shifted) > max(len(pairs) / 2, len(pairs) - len(far)):
            return f"{line}; {len(shifted)} values fit the photo of the {row} row: are the rows shifted?"
    scaled = {
        factor: [pair for pair in far if abs(pair.label * factor - pair.measured) < _LIKE * pair.measured]
        for factor in _FACTORS
    }
    factor = max(scaled, key=lambda each: len(scaled[each]))
    if len(found := scaled[factor]) >= max(_LEAST_ROWS, len(far) / 3):
        times = f"{factor:g} times smaller" if factor > 1 else f"{1 / factor:g} times larger"
        line += f"; {len(found)} values are {times} than measured: are they in another unit? "
        return line + ", ".join(f"{pair.name} {pair.label:g}" for pair in found[:_MOST_LISTED])
    if len(far) > len(pairs) / 2:
        line += "; it measures these photos badly, or the table means something else"
    if far:
        worst = sorted(far, key=lambda pair: -abs(pair.label - pair.measured))[:_MOST_LISTED]
        each = ", ".join(f"{pair.name} {pair.label:g} (measured {pair.measured:.3g})" for pair in worst)
        line += f"; look at these, either may be wrong: {each}"
    return line
