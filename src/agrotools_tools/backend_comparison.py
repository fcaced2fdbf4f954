"""Comparison of back-ends of a tool on the same labelled photographs, paired by photograph."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from agrotools.calling import get_tool
from agrotools.calling.execution import check_backend
from agrotools.calling.services import VLM
from agrotools.calling.workspace import CallContext, call_context, write_artifact
from agrotools.core import FrozenModel, ToolError, UsageError
from agrotools.core.texts import count_text, counted_names
from agrotools.formats.tool_check import PhotoCheck, unsure_text
from agrotools.knowledge.kb_names import kb_names
from agrotools.report.layout import (
    DASH,
    ReportTable,
    TableColumn,
    harmless,
    new_table,
    value_cell,
)
from agrotools.scoring.statistics import Estimate, estimate_difference, estimate_mean
from agrotools_tools.recognition.candidates import PACK, display_name, identifier, recogniser_for
from agrotools_tools.recognition.labelled_pictures import LabelledImage
from agrotools_tools.recognition.packs import load_pack

NAMING = ("identify_weed", "diagnose_pest_disease")
COUNTING = "count_objects"
_PHOTOS_LISTED = 30
"""Photographs that the screen lists: about as many as fit on it."""
_NO_ANSWER = ("low_confidence", "nothing_found", "timeout", "limit", "tool_failed")
_UNKNOWN_CROP = ("backend_unavailable", "crop")
"""Kind and argument of the error of a back-end that knows no leaves of the crop: no answer, like a refusal."""
_UNREADABLE = ("unreadable_file", "file_not_found")
_UNREADABLE_NAMED = 3
"""Most unreadable photographs that a table names."""
_LABELS_NAMED = 8
"""Most labels that a line names: about as many as fit on it."""


class BackendScore(FrozenModel):
    """Score of a back-end on all photographs that can be read.

    ``score``: share of photographs named right, or mean absolute error of counts; ``difference``: that minus the first
    back-end's, paired by photograph, None for the first. ``better``, ``worse``: photographs on which it does better and
    worse than the first. ``refused``: share without an answer. ``likeliest``: share of names whose first candidate is
    right, refused or not. ``seen``: number of photographs that a pack learnt from, which say nothing about others.
    ``unreadable``: files left out for all back-ends. ``not_compared``: labels left out for all back-ends, with their
    number of photographs. ``unknown``: labels of the knowledge base that none of its names means.
    ``ms``: median time of a call. ``photos``: what it said of each photograph.
    """

    backend: str
    metric: str
    score: Estimate
    difference: Estimate | None
    better: int
    worse: int
    refused: float
    likeliest: float | None
    seen: int
    unreadable: tuple[str, ...]
    not_compared: dict[str, int]
    unknown: tuple[str, ...]
    ms: float
    photos: tuple[PhotoCheck, ...]


@dataclass(frozen=True)
class _Result:
    """Result of a call. ``value``: 1 if named right, else 0; or the absolute error of a count. ``no_crop``: the error
    of a back-end that knows no leaves of the crop. ``photo``: the label beside what was returned."""

    value: float
    refused: bool
    photo: PhotoCheck
    likeliest: bool = False
    no_crop: UsageError | None = None


def _check(tool: str, backends: Sequence[str], pictures: Sequence[LabelledImage]) -> None:
    if len(set(backends)) < 2:
        raise UsageError(
            "there is nothing to compare", hint="name two back-ends: --backends offline,pack:NAME"
        )
    if tool not in (*NAMING, COUNTING):
        raise UsageError(
            f"{tool} gives no names and no count", hint=f"tools: {', '.join((*NAMING, COUNTING))}"
        )
    for backend in backends:
        if backend == VLM:
            raise UsageError(
                "a vision model is compared by runs",
                hint="agrotools eval --backend, agrotools compare",
            )
        check_backend(get_tool(tool), backend)
    for one in pictures if tool == COUNTING else ():
        _count_of(one)


def compare_backends(
    tool: str,
    backends: Sequence[str],
    pictures: Sequence[LabelledImage],
    arguments: Mapping[str, Any],
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> list[BackendScore]:
    """Run each back-end on each photograph and score it; intervals are over groups of photographs.

    A name is right if it means the same as the label (:meth:`~agrotools.knowledge.kb_names.KbNames.mean_same`); a
    refusal is wrong. The error of a count that is refused is the whole label. Photographs that cannot be read are left
    out, and so are those with a label that the knowledge base does not know and some back-end does not use, unless all
    labels are of this kind.

    Raises:
        UsageError: fewer than two back-ends, a tool that gives neither names nor a count, labels that are no counts, a
            back-end that the tool lacks, arguments that the tool or a back-end does not accept, or no photograph that
            can be read.
    """
    _check(tool, backends, pictures)
    crop = arguments.get("crop")
    not_compared: dict[str, int] = {}
    if tool != COUNTING:
        not_compared = _labels_to_leave_out(tool, backends, pictures, crop, progress)
        pictures = [one for one in pictures if one.label not in not_compared]
    given: dict[str, list[_Result | None]] = {}
    ms: dict[str, float] = {}
    for backend in dict.fromkeys(backends):
        seconds: list[float] = []
        given[backend] = [_result(tool, backend, one, arguments, seconds) for one in pictures]
        ms[backend] = 1000 * median(seconds) if seconds else 0.0
        progress(f"{backend}: {len(pictures)} photographs")
    read = [
        place for place in range(len(pictures)) if all(results[place] for results in given.values())
    ]
    unreadable = tuple(one.path.name for place, one in enumerate(pictures) if place not in {*read})
    if not read:
        raise UsageError(
            f"no photograph can be read: {', '.join(unreadable[:3])}", hint="pass JPEG or PNG files"
        )
    results_read = [result for each in given.values() for place in read if (result := each[place])]
    no_crop = [result.no_crop for result in results_read if result.no_crop]
    if len(no_crop) == len(results_read):
        raise no_crop[0]
    groups = tuple(pictures[place].group for place in read)
    metric = "mean absolute error of counts" if tool == COUNTING else "named right, share"
    sign = -1 if tool == COUNTING else 1
    scores: list[BackendScore] = []
    first: list[float] | None = None
    for backend, all_results in given.items():
        results = [result for place in read if (result := all_results[place])]
        values = [result.value for result in results]
        gains = [value - before for value, before in zip(values, first or values, strict=True)]
        named = tool != COUNTING
        shown = [pictures[place] for place in read]
        pack = load_pack(backend.removeprefix(PACK)) if backend.startswith(PACK) else None
        scores.append(
            BackendScore(
                backend=backend,
                metric=metric,
                score=_estimate(tool, values, None, groups),
                difference=None if first is None else _estimate(tool, values, first, groups),
                better=sum(sign * gain > 0 for gain in gains),
                worse=sum(sign * gain < 0 for gain in gains),
                refused=sum(result.refused for result in results) / len(read),
                likeliest=sum(result.likeliest for result in results) / len(read)
                if named
                else None,
                seen=sum(
                    pack.has_seen(hashlib.sha256(one.path.read_bytes()).hexdigest())
                    for one in shown
                )
                if pack
                else 0,
                unreadable=unreadable,
                not_compared=not_compared,
                unknown=_unknown_labels(tool, backend, shown, crop) if named else (),
                ms=ms[backend],
                photos=tuple(result.photo for result in results),
            )
        )
        first = first or values
    return scores


def _result(
    tool: str,
    backend: str,
    picture: LabelledImage,
    arguments: Mapping[str, Any],
    seconds: list[float],
) -> _Result | None:
    """Return the result of one call and add its time to ``seconds``; None if the photograph cannot be read."""
    right = partial(kb_names().mean_same, picture.label, crop=arguments.get("crop"))
    try:
        result = _call(tool, backend, picture, arguments, seconds)
    except ToolError as error:
        if error.kind in _UNREADABLE:
            return None
        wrong_call = UsageError(
            f"{backend} on {picture.path.name}: {error.message}", hint=error.advice
        )
        photo = _photo(tool, picture, None, reason=error.message)
        if (error.kind, error.argument) == _UNKNOWN_CROP:
            return _Result(0.0, refused=True, photo=photo, no_crop=wrong_call)
        if error.kind not in _NO_ANSWER:
            raise wrong_call from error
        if tool == COUNTING:
            return _Result(_count_of(picture), refused=True, photo=photo)
        unlikely = error.candidates[:1] if error.kind == "low_confidence" else ()
        return _Result(0.0, refused=True, photo=photo, likeliest=any(map(right, unlikely)))
    if tool == COUNTING:
        error_of_count = abs(result.count - _count_of(picture))
        photo = _photo(tool, picture, result.count, agrees=error_of_count == 0)
        return _Result(error_of_count, refused=False, photo=photo)
    first = result.candidates[0]
    likeliest = right(identifier(first))
    if result.abstained:
        photo = _photo(tool, picture, None, reason=unsure_text(display_name(first)))
    else:
        photo = _photo(tool, picture, display_name(first), agrees=likeliest)
    is_right = likeliest and not result.abstained
    return _Result(float(is_right), result.abstained, photo, likeliest)


def _photo(
    tool: str,
    picture: LabelledImage,
    returned: str | float | None,
    *,
    agrees: bool = False,
    reason: str | None = None,
) -> PhotoCheck:
    """Return the label of a photograph beside what a tool returned for it; ``reason``: why it returned nothing."""
    counted = _count_of(picture) if tool == COUNTING else None
    return PhotoCheck(
        photo=picture.path.name,
        table=picture.label if counted is None else counted,
        tool=returned,
        agrees=agrees,
        difference=returned - counted
        if counted is not None and isinstance(returned, int | float)
        else None,
        reason=reason.replace(picture.path.name, "it") if reason else None,
    )


def photo_table(scores: Sequence[BackendScore]) -> ReportTable:
    """Return a table with a row for each photograph: its label, and what each back-end said of it.

    Photographs on which all back-ends agree with the label come last.
    """
    headings = ["your label", *(each.backend for each in scores)]
    table = new_table("Photo by photo", [TableColumn((heading,), "words") for heading in headings])
    photos = [*zip(*(each.photos for each in scores), strict=True)]
    photos.sort(key=lambda of_photo: all(each.agrees for each in of_photo))
    for of_photo in photos[:_PHOTOS_LISTED]:
        name, label, *_ = of_photo[0].cells(None)
        table.add_row(harmless(name), harmless(label), *map(_said, of_photo))
    if len(photos) > _PHOTOS_LISTED:
        table.notes.append(f"and {len(photos) - _PHOTOS_LISTED} more, which --json lists")
    return table


def _said(photo: PhotoCheck) -> str:
    """Return what a back-end said of a photograph; reasons of refusals are long, and in the JSON alone."""
    if photo.tool is None:
        return "no answer"
    _, _, value, verdict = photo.cells(None)
    return harmless(f"{value}: {verdict}")


def _call(
    tool: str,
    backend: str,
    picture: LabelledImage,
    arguments: Mapping[str, Any],
    seconds: list[float],
) -> Any:
    """Return the result of a call. The first is made twice, so that importing libraries is not timed."""
    with TemporaryDirectory(prefix="agrotools-compare-") as scratch:
        run = partial(get_tool(tool), image=picture.path.resolve(), **arguments)
        with call_context(CallContext(partial(write_artifact, Path(scratch)), backend=backend)):
            if not seconds:
                run()
            started = time.perf_counter()
            result = run()
            seconds.append(time.perf_counter() - started)
    return result


def _count_of(picture: LabelledImage) -> float:
    """Return the label of a photograph as a count; UsageError if it is not a finite number of at least 0."""
    try:
        count = float(picture.label)
    except ValueError:
        count = math.nan
    if not 0 <= count < math.inf:
        why = f"{picture.place}: the label of {picture.path.name} is {picture.label!r}, not a count"
        raise UsageError(why, hint="labels of count_objects are numbers of at least 0")
    return count


def _estimate(
    tool: str, values: Sequence[float], first: Sequence[float] | None, groups: Sequence[str]
) -> Estimate:
    """Return the mean of ``values``, or that of their paired differences to ``first``."""
    if tool != COUNTING and first is None:
        found = estimate_mean(values, groups)
    else:
        found = estimate_difference(values, first or [0.0] * len(values), groups)
    if tool == COUNTING and found.detectable is None:
        return found.model_copy(
            update={"interval": None}
        )  # errors that are all equal have no range
    return found


def backend_table(tool: str, scores: Sequence[BackendScore]) -> ReportTable:
    """Return a table of the scores, with notes on photographs and names that say nothing."""
    headings = (
        scores[0].metric,
        "difference",
        "better",
        "worse",
        "no answer",
        "first candidate right",
        "ms",
    )
    table = new_table(f"{tool} on {count_text(scores[0].score.n, 'photograph')}", headings)
    if left_out := scores[0].unreadable:
        listed = counted_names(left_out, _UNREADABLE_NAMED)
        table.notes.append(f"left out, as they cannot be read: {listed}")
    if labels := scores[0].not_compared:
        photographs = count_text(sum(labels.values()), "photograph")
        table.notes.append(
            f"left out: {photographs} with the {_shown_labels(labels)}, not in the knowledge base"
        )
    for each in scores:
        difference = value_cell(each.difference, "{:+.3f}".format)
        counts = (str(each.better), str(each.worse)) if each.difference else (DASH, DASH)
        likeliest = f"{each.likeliest:.3f}" if each.likeliest is not None else DASH
        cells = (difference, *counts, f"{each.refused:.0%}", likeliest, f"{each.ms:.0f}")
        table.add_row(each.backend, value_cell(each.score, "{:.3f}".format), *cells)
        if each.seen:
            seen = f"{each.backend} learnt from {each.seen} of these photographs"
            table.notes.append(f"{seen}, so this says nothing about others")
        if each.unknown:
            unknown = ", ".join(each.unknown)
            table.notes.append(
                f"{each.backend} has no name for {unknown}: it cannot be right on these"
            )
    return table


_RENAME = (
    "To compare them, write English names in your tables of labels and train packs again with them; "
    "agrotools tools kb search NAME finds a name"
)


def _shown_labels(labels: Mapping[str, int]) -> str:
    word = "label" if len(labels) == 1 else "labels"
    return f"{word} {counted_names([*labels], _LABELS_NAMED)}"


def _labels_to_leave_out(
    tool: str,
    backends: Sequence[str],
    pictures: Sequence[LabelledImage],
    crop: str | None,
    progress: Callable[[str], None],
) -> dict[str, int]:
    """Return the labels that cannot be judged, with their number of photographs, and say so.

    A label that the knowledge base does not know, such as one in another language, equals no name but its own
    spelling. A back-end that names the same disease in English would be called wrong, and a pack that learnt the
    label would seem better. None is left out if all are unknown: of things that nobody else has names for, the table
    then shows what a pack of them can do.
    """
    unused = {
        label for backend in backends for label in _unknown_labels(tool, backend, pictures, crop)
    }
    names = kb_names()
    unknown = {
        label: sum(one.label == label for one in pictures)
        for label in sorted(unused)
        if not names.knows(label)
    }
    if not unknown:
        return {}
    why = (
        f"the knowledge base does not know your {_shown_labels(unknown)}. A back-end that uses other names can never "
        "agree with such a label"
    )
    if sum(unknown.values()) == len(pictures):
        progress(f"{why}, so only back-ends that use your names can be right here. {_RENAME}")
        return {}
    progress(f"{why}, so its photographs are left out. {_RENAME}")
    return unknown


def _unknown_labels(
    tool: str, backend: str, pictures: Sequence[LabelledImage], crop: str | None
) -> tuple[str, ...]:
    names = kb_names()
    net = "weeds" if tool == "identify_weed" else "leaves"
    known = recogniser_for(backend, net, pictures[0].path).labels
    labels = sorted({one.label for one in pictures})
    return tuple(
        label for label in labels if not any(names.mean_same(label, name, crop) for name in known)
    )
