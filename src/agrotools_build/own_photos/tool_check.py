"""How often the tool agrees with a grower's table, photo by photo: each photo with a value is measured once."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from agrotools.formats.tool_check import LabelCount, PhotoCheck, ToolCheck, unsure_text
from agrotools.formats.tool_labels import AskedLabel, ToolLabels, nearest_label
from agrotools.knowledge.kb_names import kb_names
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
    """Return the comparison of a column with what its tool returned; None if it was run on none of its photos."""
    shown = [each for each in pictured if str(each.file.sha256) in seen]
    if not shown:
        return None
    measure = measures()[column.ask]
    written = [str(each.value) for each in shown] if measure.kind == "name" else []
    names = ColumnNames.of(column, written)
    photos = [
        _photo_check(column, measure, names, each, seen[str(each.file.sha256)]) for each in shown
    ]
    agreed = sum(photo.agrees for photo in photos)
    lower, upper = exact_share_interval(agreed, len(photos))
    check = ToolCheck(
        column=column.column,
        tool=measure.tool,
        kind=measure.kind,
        n=len(photos),
        agreed=agreed,
        lower=lower,
        upper=upper,
        silent=tuple(photo.photo for photo in photos if photo.tool is None),
        photos=tuple(photos),
    )
    if measure.kind == "number":
        absolute, relative = tolerance_of(column, measure)
        differences = [abs(each.difference) for each in photos if each.difference is not None]
        of_numbers = {
            "mean_difference": fmean(differences) if differences else None,
            "unit": measure.unit,
            "abs_tol": absolute,
            "rel_tol": relative,
        }
        return check.model_copy(update=of_numbers)
    otherwise = [each.photo for each in photos if each.tool is not None and not each.agrees]
    return check.model_copy(
        update={"otherwise": tuple(otherwise), "labels": tuple(_label_counts(photos))}
    )


def result_of(observation: Observation, measure: Measure) -> object:
    """Return the value that a tool gave for a measure; None if it gave none."""
    if observation.result is None:
        return None
    with suppress(UnresolvedRef):
        return resolve_ref(f"steps[0].observation.{measure.answer}", [observation.result])
    return None


def _photo_check(
    column: Column,
    measure: Measure,
    names: ColumnNames,
    pictured: Pictured,
    observation: Observation,
) -> PhotoCheck:
    """Return what the table says of a photo, what the tool returned, and whether both agree."""
    result = result_of(observation, measure)
    value: str | float
    returned: str | float | None = None
    agrees = False
    difference: float | None = None
    if measure.kind == "number":
        value = float(pictured.value)
        if isinstance(result, int | float):
            absolute, relative = tolerance_of(column, measure)
            returned = result
            distance = abs(result - value)
            agrees = distance <= max(absolute, relative * abs(value))
            difference = float(f"{result - value:.6g}")  # as many digits as results have
    elif measure.kind == "name":
        value = names.label_of(str(pictured.value))
        if result is not None:
            returned = _name_in_words(str(result), names)
            agrees = result in names.ids_of(value)
    else:
        value = _YES_OR_NO[bool(pictured.value)]
        if result is not None:
            returned = _YES_OR_NO[_says(result)]
            agrees = returned == value
    return PhotoCheck(
        photo=pictured.name,
        table=value,
        tool=returned,
        agrees=agrees,
        difference=difference,
        reason=_reason(observation, pictured) if returned is None else None,
    )


def _reason(observation: Observation, pictured: Pictured) -> str | None:
    """Return why a tool gave no value: its error, or the name that it was not sure of."""
    if observation.error is not None:
        # The grower's photo has another name in the call.
        in_call = named(pictured.file, "image", 1).name
        return observation.error.message.replace(in_call, "it")
    for name in ("common_name", "label"):
        with suppress(UnresolvedRef):
            place = f"steps[0].observation.candidates[0].{name}"
            if nearest := resolve_ref(place, [observation.result]):
                return unsure_text(str(nearest))
    return None


def _name_in_words(result: str, names: ColumnNames) -> str:
    """Return a name that the tool returned as the table writes it, else in English."""
    for label in names.spelt.values():
        if result in names.ids_of(label):
            return label
    # A net returns its label, or the entry of the knowledge base that the label means.
    entries = [entry for entry in kb_names().entries if entry.id == result]
    entry = entries[0] if entries else kb_names().of_shipped(result)
    return entry.names.en if entry is not None else result.replace("_", " ")


def _label_counts(photos: Sequence[PhotoCheck]) -> Iterator[LabelCount]:
    """Yield for each label of the table what the tool called its photos."""
    for label in sorted({str(photo.table) for photo in photos}):
        of_label = [photo for photo in photos if photo.table == label]
        n_right = sum(photo.agrees for photo in of_label)
        n_silent = sum(photo.tool is None for photo in of_label)
        yield LabelCount(
            label=label,
            right=n_right,
            otherwise=len(of_label) - n_right - n_silent,
            not_named=n_silent,
        )


_YES_OR_NO = {True: "yes", False: "no"}


def _says(result: object) -> bool:
    """Return the yes or no of a tool: whether it is a weed, or the kind of its best candidate is not healthy."""
    return result if isinstance(result, bool) else result != "healthy"
