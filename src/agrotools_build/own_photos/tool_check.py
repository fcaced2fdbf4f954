"""How often the tool agrees with a grower's table, photo by photo: each photo with a value is measured once."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from agrotools.calling import get_tool
from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services import run_now
from agrotools.calling.workspace import Workspace
from agrotools.core import Observation, ToolCall, UnresolvedRef
from agrotools.core.progress import Progress
from agrotools.core.record import resolve_ref
from agrotools.formats.tool_check import LabelCount, ToolCheck
from agrotools.formats.tool_labels import AskedLabel, ToolLabels, nearest_label
from agrotools.scoring.statistics import exact_share_interval
from agrotools_build.own_photos.plan import Column, Measure, measures
from agrotools_build.own_photos.questions import (
    ColumnNames,
    Pictured,
    arguments_of,
    tolerance_of,
)
from agrotools_build.references import MISSING_BACKEND
from agrotools_build.sources.part import named
from agrotools_tools.recognition.candidates import PACK
from agrotools_tools.recognition.packs import list_packs

Observed = Mapping[str, Mapping[str, Observation]]
"""What tools returned, by column and by the hash of the photo."""
_WORKERS = 2
"""Tool workers of a build, as for the reference calls."""


def observe_photos(
    columns: Sequence[Column],
    part_of: Mapping[str, Sequence[Pictured]],
    originals: Mapping[str, Path],
    progress: Progress,
    backends: Mapping[str, str],
) -> Observed:
    """Run the tool of each column on all of its photos, before questions are chosen.

    The photos without a question are those whose values look wrong: only all of them show that a unit is wrong. The
    reference calls of the questions find these results in the cache. Calls whose tool lacks a back-end on this machine
    say nothing about it, and are left out. ``originals``: the files, by the path that they have in the benchmark.
    ``backends``: by tool, where not the default.

    Raises:
        InfrastructureError: no tool worker starts.
    """
    pairs = [(column, each) for column in columns for each in part_of[column.column]]
    observed: dict[str, dict[str, Observation]] = {column.column: {} for column in columns}

    async def observe() -> None:
        finished = 0
        with TemporaryDirectory(prefix="agrotools-") as scratch:
            async with ToolExecutor(
                workers=_WORKERS, timeout_s=300, cache=ResultCache(), backends=backends
            ) as executor:
                gate = asyncio.Semaphore(2 * _WORKERS)

                async def one(number: int, column: Column, each: Pictured) -> None:
                    nonlocal finished
                    measure = measures()[column.ask]
                    file = named(each.file, "image", 1)
                    arguments = arguments_of(file, measure.tool, column, measure.arguments)
                    path = originals[file.path].resolve()
                    placed = file.model_copy(update={"path": str(path)})
                    workspace = Workspace((placed,), Path(scratch, str(number)))
                    async with gate:
                        ran = await executor.run(
                            ToolCall(tool=measure.tool, arguments=arguments),
                            workspace,
                            [measure.tool],
                        )
                    error = ran.observation.error
                    if error is None or error.kind != MISSING_BACKEND:
                        observed[column.column][str(file.sha256)] = ran.observation
                    finished += 1
                    progress("photos measured", finished, len(pairs))

                async with asyncio.TaskGroup() as running:
                    for number, (column, each) in enumerate(pairs):
                        running.create_task(one(number, column, each))

    if pairs:
        run_now(observe())
    return observed


def tool_checks(
    observed: Observed,
    columns: Sequence[Column],
    part_of: Mapping[str, Sequence[Pictured]],
    backends: Mapping[str, str],
) -> list[ToolCheck]:
    """Return a check of each column whose tool was run on at least one of its photos."""
    checks: list[ToolCheck] = []
    for column in columns:
        seen = observed.get(column.column, {})
        check = _check(column, part_of[column.column], seen)
        if check is not None:
            checks.append(check.model_copy(update={"backend": backends.get(check.tool)}))
    return checks


def asked_labels(
    columns: Sequence[Column], part_of: Mapping[str, Sequence[Pictured]]
) -> list[ToolLabels]:
    """Return the labels of each column of names, with the results of its tool that mean them."""
    asked: list[ToolLabels] = []
    for column in columns:
        measure = measures()[column.ask]
        written = [str(each.value) for each in part_of[column.column]]
        if measure.kind != "name" or not written:
            continue
        names = ColumnNames.of(column, written)
        counted = Counter(map(names.label_of, written))
        labels = [
            AskedLabel(label=label, names=names.ids_of(label), n=n)
            for label, n in sorted(counted.items())
        ]
        file = part_of[column.column][0].file
        arguments = arguments_of(file, measure.tool, column, measure.arguments)
        arguments.pop("image", None)
        of_column = ToolLabels(
            column=column.column, tool=measure.tool, arguments=arguments, labels=tuple(labels)
        )
        asked.append(of_column)
    return asked


def columns_without_recogniser(
    asked: Sequence[ToolLabels], backends: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns of which the recogniser of the tool knows no label, each with the reason why it is not asked.

    What it would say of each photo is wrong, and the same for all benchmarks of such labels.
    """
    lacking: dict[str, str] = {}
    for each in asked:
        tool = get_tool(each.tool)
        backend = backends.get(each.tool, tool.backends[0])
        nameable = tool.nameable(backend, each.arguments) if tool.nameable is not None else None
        if nameable and len(each.unnamed_by(nameable)) == len(each.labels):
            known = f"{each.tool} with the back-end {backend}"
            lacking[each.column] = f"{known} knows none of the labels of {each.column}"
    return lacking


def label_warnings(asked: Sequence[ToolLabels], backends: Mapping[str, str]) -> list[str]:
    """Return which labels the tools cannot give, and the packs that know some.

    ``backends``: by tool, the only back-end that is looked at; else the own recogniser and each pack on this machine.
    """
    lines: list[str] = []
    unknown = columns_without_recogniser(asked, backends)
    for each in asked:
        tool = get_tool(each.tool)
        if tool.nameable is None:
            continue
        packs = [f"{PACK}{info.name}" for info in list_packs()[0]]
        tried = [backends[each.tool]] if each.tool in backends else [tool.backends[0], *packs]
        if reason := unknown.get(each.column):
            lines.append(f"{each.column}: {reason}, so that it is not asked")
        for backend in tried:
            nameable = tool.nameable(backend, each.arguments) or {}
            is_near = any(nearest_label(one.label, nameable.values()) for one in each.labels)
            if not nameable or (backend in packs and not is_near):
                continue  # It has no back-end for this column, or is a pack of other things.
            warning = each.warning(nameable, f"{each.tool} with the back-end {backend}")
            if backend in packs and not warning and each.column in unknown:
                warning = f"{each.column}: {backend} knows all labels: add --backend {each.tool}={backend}"
            lines.append(warning)
    return [line for line in lines if line]


def _check(
    column: Column, pictured: Sequence[Pictured], seen: Mapping[str, Observation]
) -> ToolCheck | None:
    shown = [each for each in pictured if str(each.file.sha256) in seen]
    if not shown:
        return None
    measure = measures()[column.ask]
    results = [result_of(seen[str(each.file.sha256)], measure) for each in shown]
    if measure.kind == "number":
        return _number_check(column, measure, shown, results)
    return _name_check(column, measure, shown, results)


def result_of(observation: Observation, measure: Measure) -> object:
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
        label = names.label_of(str(each.value)) if is_name else _YES_OR_NO[bool(each.value)]
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


_YES_OR_NO = {True: "yes", False: "no"}


def _says(result: object) -> bool:
    """Return the yes or no of a tool: whether it is a weed, or the kind of its best candidate is not healthy."""
    return result if isinstance(result, bool) else result != "healthy"
