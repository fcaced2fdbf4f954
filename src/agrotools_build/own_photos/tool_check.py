"""How often the tool agrees with a grower's table, photo by photo, from the reference calls of a finished build."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import fmean

from agrotools.core import Observation, Sample, UnresolvedRef
from agrotools.core.record import resolve_ref
from agrotools.formats.tool_check import LabelCount, ToolCheck
from agrotools.scoring.statistics import exact_share_interval
from agrotools_build.own_photos.plan import Column, Measure, measures
from agrotools_build.own_photos.questions import ColumnNames, Pictured, tolerance_of
from agrotools_build.references import MISSING_BACKEND


def tool_checks(
    samples: Sequence[Sample], columns: Sequence[Column], part_of: Mapping[str, Sequence[Pictured]]
) -> list[ToolCheck]:
    """Return a check of each column whose tool was run on at least one of its photos.

    Calls whose tool lacks a back-end on this machine say nothing about it, and are left out.
    """
    checks = (
        _check(column, part_of[column.column], _observations(samples, column)) for column in columns
    )
    return [check for check in checks if check is not None]


def _observations(samples: Sequence[Sample], column: Column) -> dict[str, Observation]:
    """Return what the tool of a column returned, by the hash of the photo."""
    tool = measures()[column.ask].tool
    seen: dict[str, Observation] = {}
    for sample in samples:
        if sample.reference is None or sample.metadata.get("column") != column.column:
            continue
        if not sample.answerable:
            continue  # The photo of a stranger has no label.
        hashes = {file.name: str(file.sha256) for file in sample.files}
        for step in sample.reference.steps:
            given = step.arguments.values()
            photos = [hashes[name] for name in given if isinstance(name, str) and name in hashes]
            if step.tool != tool or step.observation is None or len(photos) != 1:
                continue
            error = step.observation.error
            if error is None or error.kind != MISSING_BACKEND:
                seen[photos[0]] = step.observation
    return seen


def _check(
    column: Column, pictured: Sequence[Pictured], seen: Mapping[str, Observation]
) -> ToolCheck | None:
    shown = [each for each in pictured if str(each.file.sha256) in seen]
    if not shown:
        return None
    measure = measures()[column.ask]
    results = [_result(seen[str(each.file.sha256)], measure) for each in shown]
    if measure.kind == "number":
        return _number_check(column, measure, shown, results)
    return _name_check(column, measure, shown, results)


def _result(observation: Observation, measure: Measure) -> object:
    """Return the value that a tool gave for a measure; None if it gave none."""
    if observation.result is None:
        return None
    with suppress(UnresolvedRef):
        return resolve_ref(f"steps[0].observation.{measure.answer}", [observation.result])
    return None


def _number_check(
    column: Column, measure: Measure, shown: Sequence[Pictured], results: Sequence[object]
) -> ToolCheck:
    absolute, relative = tolerance_of(column, measure)
    silent: list[str] = []
    differences: list[float] = []
    agreed = 0
    for each, result in zip(shown, results, strict=True):
        if not isinstance(result, int | float):
            silent.append(each.name)
            continue
        value = float(each.value)
        differences.append(abs(result - value))
        agreed += differences[-1] <= max(absolute, relative * abs(value))
    lower, upper = exact_share_interval(agreed, len(shown))
    return ToolCheck(
        column=column.column,
        tool=measure.tool,
        kind=measure.kind,
        n=len(shown),
        agreed=agreed,
        lower=lower,
        upper=upper,
        silent=tuple(silent),
        mean_difference=fmean(differences) if differences else None,
        unit=measure.unit,
        abs_tol=absolute,
        rel_tol=relative,
    )


def _name_check(
    column: Column, measure: Measure, shown: Sequence[Pictured], results: Sequence[object]
) -> ToolCheck:
    is_name = measure.kind == "name"
    names = ColumnNames.of(column, [str(each.value) for each in shown] if is_name else [])
    right: Counter[str] = Counter()
    otherwise: Counter[str] = Counter()
    not_named: Counter[str] = Counter()
    others: list[str] = []
    silent: list[str] = []
    for each, result in zip(shown, results, strict=True):
        label = str(each.value) if is_name else "yes" if each.value else "no"
        if result is None:
            not_named[label] += 1
            silent.append(each.name)
        elif (result in names.ids_of(label)) if is_name else _says(result) is bool(each.value):
            right[label] += 1
        else:
            otherwise[label] += 1
            others.append(each.name)
    lower, upper = exact_share_interval(right.total(), len(shown))
    labels = sorted({*right, *otherwise, *not_named})
    return ToolCheck(
        column=column.column,
        tool=measure.tool,
        kind=measure.kind,
        n=len(shown),
        agreed=right.total(),
        lower=lower,
        upper=upper,
        silent=tuple(silent),
        otherwise=tuple(others),
        labels=tuple(
            LabelCount(
                label=label,
                right=right[label],
                otherwise=otherwise[label],
                not_named=not_named[label],
            )
            for label in labels
        ),
    )


def _says(result: object) -> bool:
    """Return the yes or no of a tool: whether it is a weed, or the kind of its best candidate is not healthy."""
    return result if isinstance(result, bool) else result != "healthy"
