"""Comparison of back-ends of a tool on the same labelled photographs, paired by photograph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from agrotools.build.accuracy.recognition import Answer, answers
from agrotools.build.accuracy.study import Bench, Estimate, estimate, mean_of
from agrotools.core import ToolError, UsageError
from agrotools.tools import get_tool
from agrotools.tools.execution import check_backend
from agrotools.tools.recognition.pack_training import LabelledImage
from agrotools.tools.services import VLM

NAMING = ("identify_weed", "diagnose_pest_disease")
COUNTING = "count_objects"


@dataclass(frozen=True)
class BackendScore:
    """Score of a back-end on all photographs.

    ``score``: share of photographs named right, or mean absolute error of counts; ``difference``: that minus the first
    back-end's, paired by photograph, None for the first. ``better``, ``worse``: photographs on which it does better and
    worse than the first. ``refused``: share without an answer. ``likeliest``: share of names whose first candidate is
    right, refused or not. ``ms``: median time of a call.
    """

    backend: str
    metric: str
    score: Estimate
    difference: Estimate | None
    better: int
    worse: int
    refused: float
    likeliest: float | None
    ms: float


def compare_backends(
    tool: str,
    backends: Sequence[str],
    pictures: Sequence[LabelledImage],
    arguments: Mapping[str, Any],
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> list[BackendScore]:
    """Run each back-end on each photograph and score it; intervals are over groups of photographs.

    A name is right if it is that of the label, or the entry of the knowledge base that the label names; a refusal is
    wrong. The error of a count that is refused is the whole label.

    Raises:
        UsageError: fewer than two back-ends, a tool that gives neither names nor a count, labels that are no counts, or
            a back-end that the tool lacks.
    """
    if len(set(backends)) < 2:
        raise UsageError("there is nothing to compare", hint="--backends offline,pack:NAME")
    if tool not in (*NAMING, COUNTING):
        raise UsageError(f"{tool} gives no names and no count", hint=f"tools: {', '.join((*NAMING, COUNTING))}")
    for backend in backends:
        if backend == VLM:
            raise UsageError("a vision model is compared by runs", hint="agrotools eval --backend, agrotools compare")
        check_backend(get_tool(tool), backend)
    scores: list[BackendScore] = []
    first: list[float] = []
    groups = tuple(one.group for one in pictures)
    counts = tool == COUNTING
    metric = "mean absolute error of counts" if counts else "named right, share"
    for backend in dict.fromkeys(backends):
        with TemporaryDirectory(prefix="agrotools-compare-") as scratch:
            bench = Bench(tool, Path(), Path(scratch))
            measure = _count_errors if counts else _right_names
            values, refused, likeliest = measure(bench, backend, pictures, arguments)
        progress(f"{backend}: {len(pictures)} photographs")
        gains = [value - before for value, before in zip(values, first or values, strict=True)]
        scores.append(
            BackendScore(
                backend,
                metric,
                estimate(mean_of(metric, values, clusters=groups)),
                estimate(mean_of(metric, gains, clusters=groups)) if first else None,
                sum(gain * (-1 if counts else 1) > 0 for gain in gains),
                sum(gain * (-1 if counts else 1) < 0 for gain in gains),
                refused / len(pictures),
                None if likeliest is None else likeliest / len(pictures),
                median(bench.call_ms) if bench.call_ms else 0.0,
            )
        )
        first = first or values
    return scores


def _right_names(
    bench: Bench, backend: str, pictures: Sequence[LabelledImage], arguments: Mapping[str, Any]
) -> tuple[list[float], int, int | None]:
    given: list[Answer | None] = []
    for one in pictures:
        item = {"image": str(one.path.resolve()), "label": one.label}
        try:
            given += answers(bench, [item], backend=backend, **arguments)
        except ToolError:
            given.append(None)
    right = [float(one is not None and one.named and one.likeliest) for one in given]
    likeliest = sum(one is not None and one.likeliest for one in given)
    return right, sum(one is None or not one.named for one in given), likeliest


def _count_errors(
    bench: Bench, backend: str, pictures: Sequence[LabelledImage], arguments: Mapping[str, Any]
) -> tuple[list[float], int, int | None]:
    errors: list[float] = []
    refused = 0
    for one in pictures:
        try:
            true = float(one.label)
        except ValueError:
            why = f"the label of {one.path.name} is {one.label!r}, not a count"
            raise UsageError(why, hint="labels of count_objects are numbers") from None
        try:
            errors.append(abs(bench.call(image=one.path.resolve(), backend=backend, **arguments).count - true))
        except ToolError as error:
            if error.kind == "invalid_argument":
                raise UsageError(f"{backend}: {error.message}", hint=error.hint) from error
            refused += 1
            errors.append(true)
    return errors, refused, None
