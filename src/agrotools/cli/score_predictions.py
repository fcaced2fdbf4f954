"""``agrotools score --format``: a prediction file of another benchmark, scored as published and corrected."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agrotools.cli.json_output import print_json

if TYPE_CHECKING:
    from agrotools.scoring.figures import Scores
    from agrotools.scoring.predictions.comparing import Compared

DIFFERENCES = {
    "inst_acc": "all gold steps counted",
    "tool_acc": "missing steps counted",
    "arg_acc": "defaults, folders, true is not 1",
    "arg_acc_agreement": "sums, boxes and texts by agreement",
    "summ_acc": "signs, decimals, thousands read",
    "ans_acc": "signs, decimals, thousands read",
    "ans_acc_imggen": "all image calls, none free",
    "ans_i": "all image calls, none free",
    "p_f1": "each call once, no failed ones",
    "o_f1": "each call once, no failed ones",
    "l_f1": "each call once, no failed ones",
    "c_f1": "each call once, no failed ones",
    "goal_acc": "by query type, unreadable is 0",
    "goal_acc_imggen": "by query type, tool sets by code",
    "toolset_acc": "guessed by the judge",
    "toolset_f1": "by code",
}
_OF_JUDGES = "unreadable and missing is 0"
_TEXTUAL = ("summ_acc", "ans_acc", "ans_acc_imggen", "ans_i")


def score_predictions(
    files: Sequence[Path],
    format_: str,
    *,
    data: Path | None,
    judgements: Path | None,
    embedder: str | None,
    embedder_path: Path | None,
    as_json: bool,
) -> int:
    """Score one prediction file and print both columns. Returns 0.

    Raises:
        UsageError: an option does not fit; BenchmarkError: a file cannot be read.
    """
    from agrotools.core import UsageError
    from agrotools.scoring.predictions.comparing import FORMATS, Format, compare_file

    known: Format | None = next((name for name in FORMATS if name == format_), None)
    if known is None:
        raise UsageError(f"--format {format_}: no such format", hint=f"known: {', '.join(FORMATS)}")
    if len(files) != 1:
        raise UsageError("--format scores one prediction file", hint="give its path alone")
    similarity, name = _similarity(embedder, embedder_path) if known != "agentx" else (None, None)
    compared = compare_file(known, files[0], data=data, judgements=judgements, similarity=similarity, embedder=name)
    if as_json:
        print_json(_as_data(compared))
    else:
        _print(compared, files[0])
    return 0


def _similarity(embedder: str | None, folder: Path | None) -> tuple[Any, str | None]:
    """The similarity asked for; all-MiniLM-L6-v2 where nothing is, and it is installed."""
    from agrotools.core import UsageError
    from agrotools.scoring.embedders import MINILM, open_embedder

    if embedder is None and folder is not None:
        embedder = folder.name
    try:
        return open_embedder(embedder or MINILM, folder), embedder or MINILM
    except UsageError:
        if embedder is None:
            return None, None
        raise


def _as_data(compared: "Compared") -> dict[str, Any]:
    return {
        "format": compared.format,
        "mode": compared.mode,
        "samples": compared.samples,
        "embedder": compared.corrected.embedder,
        "published": _scores(compared.published) if compared.published else None,
        "published_stops": compared.stop,
        "corrected": _scores(compared.corrected),
        "errors": compared.errors.as_data(),
        "extra": compared.extra or {},
    }


def _scores(scores: "Scores") -> dict[str, Any]:
    from agrotools.scoring.predictions.comparing import finite

    metrics: dict[str, Any] = {}
    for name, figure in scores.metrics.items():
        estimate = scores.estimate(name)
        metrics[name] = {"value": finite(figure.value), "n": figure.n}
        if estimate is not None and estimate.interval is not None:
            metrics[name]["interval"] = [100 * estimate.interval.lower, 100 * estimate.interval.upper]
    return {"metrics": metrics, "counts": dict(scores.counts), "left_out": dict(scores.left_out)}


def _print(compared: "Compared", path: Path) -> None:
    from rich.table import Table

    from agrotools.report.layout import console_for, put

    console = console_for(None)
    table = Table(title=f"{path.name}: {compared.format}, {compared.mode}, {compared.samples} samples (percent)")
    for heading in ("metric", "published", "n", "corrected", "95 %", "n", "what differs"):
        words = heading in ("metric", "what differs")
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading == "metric")
    for row in _rows(compared):
        table.add_row(*row)
    put(console, table)
    for line in _notes(compared):
        typer.echo(line)
    put(console, _errors(compared))
    for heading, counts in (compared.extra or {}).items():
        said = ", ".join(f"{name} {count}" for name, count in counts.items() if count is not None)
        typer.echo(f"{heading}: {said}")


def _rows(compared: "Compared") -> list[tuple[str, ...]]:
    from agrotools.report.values import harmless

    published, corrected = compared.published, compared.corrected
    names = [name for scores in (published, corrected) if scores for name in (*scores.metrics, *scores.left_out)]
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(name.removesuffix("_corrected") for name in names):
        short = name.split(".")[-1]
        mine = corrected.metrics.get(f"{name}_corrected")
        theirs = published.metrics.get(name) if published else None
        label = f"{name} ({compared.corrected.embedder})" if corrected.embedder and short in _TEXTUAL else name
        same = theirs and mine and _shown(theirs.value) == _shown(mine.value)
        differs = "" if same or not (theirs or mine) else _difference(name)
        if mine and mine.value is None:
            differs = "nothing to count"
        rows.append(
            (
                harmless(label),
                _shown(theirs.value) if theirs else "-",
                str(theirs.n) if theirs else "",
                _shown(mine.value) if mine else "-",
                _interval(corrected, f"{name}_corrected"),
                str(mine.n) if mine else "",
                differs,
            )
        )
    return rows


def _difference(name: str) -> str:
    return DIFFERENCES.get(name.split(".")[-1], _OF_JUDGES if name.startswith("agent_x.") else "")


def _shown(value: float | None) -> str:
    from agrotools.scoring.predictions.comparing import finite

    known = finite(value)
    return "-" if known is None else f"{known:.2f}"


def _interval(scores: "Scores", name: str) -> str:
    estimate = scores.estimate(name)
    if estimate is None or estimate.interval is None:
        return ""
    return f"{100 * estimate.interval.lower:.1f} to {100 * estimate.interval.upper:.1f}"


def _notes(compared: "Compared") -> list[str]:
    lines = [f"published: {compared.stop}"] if compared.stop else []
    left_out = {**(compared.published.left_out if compared.published else {}), **compared.corrected.left_out}
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    lines += [f"left out: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    counted = ", ".join(
        f"{name.replace('_', ' ')} {count}" for name, count in compared.corrected.counts.items() if count
    )
    return [*lines, f"counted: {counted}"]


def _errors(compared: "Compared") -> Any:
    from rich.table import Table

    table = Table(title=f"errors in {compared.errors.steps} steps of {compared.errors.total} samples")
    for heading in ("error", "count", "of", "samples", "what it is"):
        table.add_column(heading, justify="right" if heading in ("count", "samples") else "left")
    for row in compared.errors.as_data():
        if row["not_looked_for"] is None:
            texts = (row["error"], row["count"], f"{row['unit']}s", row["samples"], row["meaning"])
            table.add_row(*map(str, texts))
    return table
